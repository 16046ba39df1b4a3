"""The benchmark runs from start to end on a handful of memories, and its numbers are sane."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from tests.conftest import create_database, drop_database

pytest.importorskip("numpy", reason="the benchmarks make their data with numpy")

from benchmarks import search
from benchmarks.data import VISIBLE, Dataset, places
from benchmarks.exact import recall


def test_the_lineages_asked_from_see_what_they_are_called_by() -> None:
    seen = {
        name: sum(place.memories for place in places() if scope.distance(place.scope) >= 0)
        for name, scope in VISIBLE.items()
    }
    assert seen == {"500": 500, "10,000": 10_000, "60,000": 60_000}
    assert sum(place.memories for place in places()) == 200_000


def test_the_same_seed_makes_the_same_data() -> None:
    one, other = (list(Dataset(600).records()) for _ in range(2))
    assert one == other


def test_recall_counts_what_is_as_near_as_the_last() -> None:
    assert recall(["a", "b"], frozenset("abc"), 2) == 1.0
    assert recall(["a", "x"], frozenset("abc"), 2) == 0.5
    assert recall([], frozenset(), 2) == 1.0


def test_every_part_is_measured(server: str, capsys: pytest.CaptureFixture[str]) -> None:
    dsn = create_database(server)
    try:
        search.main(["--dsn", dsn, "--rows", "800", "--questions", "3", "--seconds", "0.1"])
    finally:
        drop_database(server, dsn)
    printed = capsys.readouterr().out
    for part in ("rows a second", "search / statement", "search / nearest", "queries a second, 16 tasks"):
        assert part in printed
    # At this size every level is scanned exactly.
    recalls = re.findall(r"visible +(\d\.\d{3}) +(\d\.\d{3})   \((\w+)\)", printed)
    assert recalls == [("1.000", "1.000", "exact")] * 3


def test_bare_statements_say_what_they_are() -> None:
    for path in Path(search.__file__).with_name("queries").glob("*.sql"):
        name, description = (
            path.read_text(encoding="utf-8").splitlines()[0].removeprefix("-- ").split(": ", 1)
        )
        assert (name, bool(description)) == (path.stem, True)
