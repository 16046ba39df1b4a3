"""The arguments that every repository takes, checked before any store is asked."""

from __future__ import annotations

from collections.abc import AsyncIterable, AsyncIterator, Iterable, Mapping, Sequence
from datetime import datetime
from typing import TypeVar

from symfonic_pg.memory import checks
from symfonic_pg.memory.records import MemoryRecord

ItemT = TypeVar("ItemT")

# Where a page of a listing ended: its last record, or that record's (updated_at, record_id).
PageEnd = MemoryRecord | tuple[datetime, str]
# What a bulk load takes: a record, or a pair of it and its vector or None.
LoadItem = MemoryRecord | tuple[MemoryRecord, Sequence[float] | None]


def distinct_ids(record_ids: Iterable[str]) -> list[str]:
    """The record ids in the order given, each once."""
    return list(dict.fromkeys(checks.record_ids(record_ids, "record_ids")))


def page_end(after: object) -> tuple[datetime, str] | None:
    """The (updated_at, record_id) after which the next page starts, None for the first page."""
    if after is None:
        return None
    if isinstance(after, MemoryRecord):
        return after.updated_at, after.record_id
    if not isinstance(after, tuple) or len(after) != 2:
        raise checks.broken("after", "a record or its (updated_at, record_id)", after)
    return checks.moment(after[0], "after"), checks.record_id(after[1], "after")


def load_pair(item: object, position: int) -> tuple[MemoryRecord, Sequence[float] | None]:
    """An item of a bulk load as a pair; the record itself is checked with its batch."""
    pair = item if isinstance(item, tuple) else (item, None)
    if len(pair) != 2:
        raise checks.broken(f"items[{position}]", "a record, or a pair of it and its vector", item)
    return pair


async def batches(
    items: Iterable[ItemT] | AsyncIterable[ItemT], size: int
) -> AsyncIterator[tuple[int, list[ItemT]]]:
    """Runs of at most `size` items, each with the position of its first."""
    if not isinstance(items, Iterable | AsyncIterable) or isinstance(items, str | bytes | Mapping):
        raise checks.broken("items", "an iterable or async iterable", items)
    start, batch = 0, list[ItemT]()
    async for item in _each(items):
        batch.append(item)
        if len(batch) == size:
            yield start, batch
            start, batch = start + size, []
    if batch:
        yield start, batch


async def _each(items: Iterable[ItemT] | AsyncIterable[ItemT]) -> AsyncIterator[ItemT]:
    if isinstance(items, AsyncIterable):
        async for item in items:
            yield item
    else:
        for item in items:
            yield item
