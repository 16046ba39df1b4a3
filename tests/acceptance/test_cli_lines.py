"""Memories as JSON lines: what `list --json` prints is what `remember` takes."""

from __future__ import annotations

import json
from datetime import UTC, datetime, timedelta

from hypothesis import given
from hypothesis import strategies as st

from symfonic_pg.cli.lines import read_batches, read_line
from symfonic_pg.cli.shapes import record_shape
from symfonic_pg.memory import MemoryRecord, MemoryScope

texts = st.text(st.characters(codec="utf-8", exclude_characters="\0"), min_size=1).filter(str.strip)
moments = st.datetimes(datetime(2000, 1, 1), datetime(2100, 1, 1), timezones=st.just(UTC))
documents = st.dictionaries(
    texts, st.recursive(st.none() | st.booleans() | st.integers() | texts, st.lists, max_leaves=5)
)


@st.composite
def records(draw: st.DrawFn) -> MemoryRecord:
    start = draw(moments)
    return MemoryRecord(
        draw(texts.filter(lambda text: len(text.encode()) <= 255)),
        MemoryScope.of(("org", draw(texts.filter(lambda text: len(text.encode()) <= 255)))),
        draw(st.sampled_from(["semantic", "episodic", "procedural", "prospective"])),
        draw(texts),
        draw(st.none() | st.floats(0, 1)),
        draw(st.sampled_from(["", "profile"])),
        created_at=draw(moments),
        updated_at=draw(moments),
        access_count=draw(st.integers(0, 2**40)),
        valid_from=start,
        valid_until=start + timedelta(days=1),
        expires_at=draw(st.none() | moments),
        language=draw(st.none() | st.just("german")),
        metadata=draw(documents),
    )


@given(records())
def test_a_record_survives_the_way_over_json(record: MemoryRecord) -> None:
    line = json.dumps(record_shape(record)).encode()
    assert read_line(1, line, vectors=False).record == record


@given(st.binary(max_size=200))
def test_whatever_a_line_holds_it_is_a_memory_or_a_fault(content: bytes) -> None:
    line = content.replace(b"\n", b" ")
    [batch] = list(read_batches([line], vectors=True))
    assert len(batch.faults) == bool(line.strip())
    assert batch.lines == ()


def test_batches_are_cut_by_line_and_blank_lines_count() -> None:
    raw = [b"{}\n", b"\n", b"{}\n", b"\n", b"{}\n"]
    batches = list(read_batches(raw, vectors=False, size=2))
    assert [batch.last for batch in batches] == [2, 4, 5]
    assert [[fault.number for fault in batch.faults] for batch in batches] == [[1], [3], [5]]
