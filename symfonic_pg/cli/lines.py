"""Memories as JSON lines: one object a line with the fields of MemoryRecord, and optionally its embedding."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, fields
from datetime import datetime
from itertools import islice
from typing import Any, NoReturn

from symfonic_pg.memory import MemoryContractError, MemoryRecord
from symfonic_pg.memory.batches import checked_batch
from symfonic_pg.memory.vectors import vector
from symfonic_pg.terms import LANGUAGES

BATCH_LINES = 1000
EMBEDDING = "embedding"

FIELDS = tuple(part.name for part in fields(MemoryRecord) if part.init)
_NEEDED = ("record_id", "scope", "layer", "text")
_TIMES = ("created_at", "updated_at", "last_accessed_at", "valid_from", "valid_until", "expires_at")


@dataclass(frozen=True, slots=True)
class Line:
    """One memory of a file: its line, counted from 1, the record, and the vector that came with it."""

    number: int
    record: MemoryRecord
    embedding: tuple[float, ...] | None = None


@dataclass(frozen=True, slots=True)
class Fault:
    """Why a line cannot be taken."""

    number: int
    reason: str


@dataclass(frozen=True, slots=True)
class Batch:
    """A run of lines, to be written as a whole or not at all; `last` is the number of its last line."""

    last: int
    lines: tuple[Line, ...]
    faults: tuple[Fault, ...] = ()


def read_batches(raw: Iterable[bytes], *, vectors: bool, size: int = BATCH_LINES) -> Iterator[Batch]:
    """The lines of a file in batches of `size`, blank ones passed over.

    `vectors` says whether embeddings are welcome: without a model to ascribe them to, they are a fault.
    """
    numbered = enumerate(raw, start=1)
    while part := list(islice(numbered, size)):
        lines: list[Line] = []
        faults: list[Fault] = []
        for number, content in part:
            if not content.strip():
                continue
            try:
                lines.append(read_line(number, content, vectors=vectors))
            except MemoryContractError as error:
                faults.append(Fault(number, str(error)))
        yield Batch(part[-1][0], tuple(lines), tuple(faults))


def read_line(number: int, content: bytes, *, vectors: bool) -> Line:
    """The memory on a line; MemoryContractError says what is wrong with it."""
    given = _object(content)
    unknown = given.keys() - {*FIELDS, EMBEDDING}
    if unknown:
        raise MemoryContractError(f"unknown key {', '.join(map(_shown, sorted(unknown)))}")
    missing = [name for name in _NEEDED if name not in given]
    if missing:
        raise MemoryContractError(f"no {', no '.join(missing)}")
    embedding = given.pop(EMBEDDING, None)
    if embedding is not None and not vectors:
        raise MemoryContractError("an embedding needs the name of its model: --model")
    record = record_of(given)
    try:
        checked_batch([record], None, None, languages=LANGUAGES)
    except MemoryContractError as error:
        raise MemoryContractError(reason_of(error, [record])[1]) from None
    return Line(number, record, None if embedding is None else vector(embedding))


def record_of(given: Mapping[str, Any]) -> MemoryRecord:
    """The record of a JSON object that holds fields of MemoryRecord alone; null is the same as absent."""
    values = {name: value for name, value in given.items() if value is not None or name in _NEEDED}
    for name in _TIMES:
        if name in values:
            values[name] = _time(values[name], name)
    return MemoryRecord(**values)


def reason_of(error: MemoryContractError, records: Sequence[MemoryRecord]) -> tuple[int | None, str]:
    """Which record of a batch a store refused, None where it refused them all, and why."""
    position = error.position
    if position is None:
        return None, str(error)
    return position, str(error).removeprefix(f"record {position} ({records[position].record_id!r}): ")


def _object(content: bytes) -> dict[str, Any]:
    try:
        # Editors on Windows put a byte order mark before the first line.
        found = json.loads(content.decode("utf-8-sig"), object_pairs_hook=_once, parse_constant=_no_number)
    except UnicodeDecodeError as error:
        raise MemoryContractError(f"not UTF-8 at byte {error.start}") from None
    except json.JSONDecodeError as error:
        raise MemoryContractError(f"not JSON: {error.msg} at character {error.colno}") from None
    except (ValueError, RecursionError) as error:
        if isinstance(error, MemoryContractError):
            raise
        raise MemoryContractError("not JSON that can be read: too deep, or a number too long") from None
    if not isinstance(found, dict):
        raise MemoryContractError("not a JSON object")
    return found


def _once(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    found = dict(pairs)
    if len(found) != len(pairs):
        names = [name for name, _ in pairs]
        twice = next(name for name in names if names.count(name) > 1)
        raise MemoryContractError(f"key {_shown(twice)} twice in one object")
    return found


def _no_number(name: str) -> NoReturn:
    raise MemoryContractError(f"{name} is no JSON number")


def _time(value: object, name: str) -> datetime:
    try:
        return datetime.fromisoformat(value)  # type: ignore[arg-type]
    except (TypeError, ValueError):
        raise MemoryContractError(f"{name} must be a time, as 2026-09-15T09:00:00+02:00") from None


def _shown(name: str) -> str:
    return repr(name if len(name) <= 40 else f"{name[:40]}…")
