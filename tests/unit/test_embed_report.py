"""The report of embedding pending memories, how they are taken, and how long a watcher waits."""

from __future__ import annotations

from datetime import timedelta

import pytest

from symfonic_pg.embedders import EmbedderUnavailable
from symfonic_pg.memory import MemoryContractError, MemoryUnavailable
from symfonic_pg.store import EmbedReport, PendingCounts
from symfonic_pg.store.embedding import Pace, backoff


def test_every_memory_that_was_tried_is_in_one_number() -> None:
    report = EmbedReport(embedded=5, without_embedding=1, changed=2, failed=3, set_aside=2, remaining=9)
    assert report.tried == 11


def test_two_reports_make_one() -> None:
    first = EmbedReport(1, 2, 3, 4, 1, remaining=70, unavailable="down")
    second = EmbedReport(10, 20, 30, 40, 10, remaining=60)
    assert first + second == EmbedReport(11, 22, 33, 44, 11, remaining=60)


def test_what_is_left_and_why_it_stopped_are_the_later_ones() -> None:
    both = EmbedReport(remaining=5) + EmbedReport(unavailable="down")
    assert (both.remaining, both.unavailable) == (None, "down")


def test_a_report_adds_to_reports_alone() -> None:
    with pytest.raises(TypeError):
        EmbedReport() + 1  # type: ignore[operator]


def test_counts_of_two_stretches_make_one() -> None:
    assert PendingCounts(1, 2, 3) + PendingCounts(10, 20, 30) == PendingCounts(11, 22, 33)


@pytest.mark.parametrize(
    ("field", "value"),
    [
        ("limit", -1),
        ("limit", 1.5),
        ("batch_size", 0),
        ("batch_size", 1001),
        ("lease", timedelta(0)),
        ("lease", timedelta(days=2)),
        ("lease", 300),
        ("attempts", 1),
        ("attempts", True),
    ],
)
def test_a_pace_nobody_can_keep_is_refused(field: str, value: object) -> None:
    with pytest.raises(MemoryContractError) as caught:
        Pace(**{field: value})  # type: ignore[arg-type]
    assert caught.value.field == field


def test_a_limit_of_nothing_is_a_limit() -> None:
    assert Pace(limit=0).limit == 0


def test_a_watcher_waits_longer_each_time_up_to_five_minutes() -> None:
    down = MemoryUnavailable("gone")
    waits = [backoff(failures, down) for failures in range(1, 20)]
    assert 0.5 <= waits[0] <= 1.0
    assert 4.0 <= waits[3] <= 8.0
    assert all(150.0 <= wait <= 300.0 for wait in waits[9:])


def test_a_watcher_never_comes_back_before_it_was_asked_to() -> None:
    assert backoff(1, EmbedderUnavailable("busy", retry_after=20.0)) == 20.0
    assert backoff(1, EmbedderUnavailable("busy", retry_after=3600.0)) == 3600.0
    assert backoff(1, EmbedderUnavailable("busy", retry_after=0.0)) <= 1.0
