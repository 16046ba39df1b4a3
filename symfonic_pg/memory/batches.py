"""The rules of a batch that is to be written, checked before any store is asked."""

from __future__ import annotations

from collections.abc import Container, Iterable, Sequence, Sized
from dataclasses import dataclass
from typing import Any

from symfonic_pg.memory.checks import broken, broken_private
from symfonic_pg.memory.errors import MemoryContractError
from symfonic_pg.memory.layers import MemoryLayer
from symfonic_pg.memory.observing import EmbeddingModel
from symfonic_pg.memory.records import MemoryRecord
from symfonic_pg.memory.vectors import half, unit, vector


@dataclass(frozen=True, slots=True)
class BatchItem:
    """One record to write and its vector, scaled to unit length and rounded to half precision.

    `position` is the place that the record had in what the caller gave, counted from 0.
    """

    position: int
    record: MemoryRecord
    embedding: tuple[float, ...] | None = None


def checked_batch(
    records: Iterable[MemoryRecord],
    embeddings: Iterable[Sequence[float] | None] | None,
    model: EmbeddingModel | None,
    *,
    languages: Container[str],
    start: int = 0,
) -> list[BatchItem]:
    """The items of a batch, each record_id of a tenant once: the last one wins.

    Raises MemoryContractError naming position (from `start` on) and record_id of the first bad one: not a
    MemoryRecord, the working layer, a language that no text can be cut in, a vector without a model or of
    another dimension, NaN, infinite or all zero, or a record_id at two scopes of one tenant.
    """
    given = _listed(records)
    vectors = [None] * len(given) if embeddings is None else list(embeddings)
    if len(vectors) != len(given):
        raise broken("embeddings", f"one vector or None for each of {len(given)} records", len(vectors))
    kept: dict[tuple[str, str], BatchItem] = {}
    for position, (record, embedding) in enumerate(zip(given, vectors, strict=True), start):
        item = _checked_item(position, record, embedding, model, languages)
        key = (record.scope.tenant, record.record_id)
        earlier = kept.get(key)
        if earlier is not None and earlier.record.scope != record.scope:
            raise elsewhere(position, record.record_id)
        kept[key] = item
    return list(kept.values())


def checked_vector(value: object, model: EmbeddingModel, field: str = "embedding") -> tuple[float, ...]:
    """The vector at unit length in half precision.

    Raises MemoryContractError naming the model, both dimensions and the first bad index, never a number.
    """
    try:
        numbers = vector(value, field)
        if len(numbers) != model.dimension:
            raise broken_private(field, "of the model's dimension", value, min(len(numbers), model.dimension))
    except MemoryContractError as error:
        length = len(value) if isinstance(value, Sized) else "no"
        raise MemoryContractError(
            f"{error}; model {model.name!r} has {model.dimension} dimensions, this one has {length}",
            field=error.field,
            rule=error.rule,
            got=error.got,
        ) from None
    return half(unit(numbers))


def elsewhere(position: int, record_id: str) -> MemoryContractError:
    """The error for a record_id that the tenant has at another scope, which is never named."""
    return _at(
        position, record_id, "record_id", "new or written at its own scope (move it by move)", record_id
    )


def at_position(position: int, record_id: str, error: MemoryContractError) -> MemoryContractError:
    """The same error, naming the record it is about."""
    return MemoryContractError(
        f"record {position} ({record_id!r}): {error}",
        field=error.field,
        rule=error.rule,
        got=error.got,
        position=position,
    )


def _listed(records: object) -> list[MemoryRecord]:
    if isinstance(records, str | bytes | MemoryRecord) or not isinstance(records, Iterable):
        raise broken("records", "an iterable of MemoryRecord", records)
    return list(records)


def _checked_item(
    position: int,
    record: object,
    embedding: Any,
    model: EmbeddingModel | None,
    languages: Container[str],
) -> BatchItem:
    if not isinstance(record, MemoryRecord):
        raise broken(f"records[{position}]", "a MemoryRecord", record)
    name = record.record_id
    if record.layer is MemoryLayer.WORKING:
        raise _at(
            position, name, "layer", "one of those searched (turns go through append_turns)", record.layer
        )
    if record.language is not None and record.language not in languages:
        raise _at(position, name, "language", "a known text search configuration", record.language)
    if embedding is None:
        return BatchItem(position, record)
    if model is None:
        raise _at(position, name, "model", "named where embeddings are given", None)
    try:
        return BatchItem(position, record, checked_vector(embedding, model))
    except MemoryContractError as error:
        raise at_position(position, name, error) from None


def _at(position: int, record_id: str, field: str, rule: str, value: object) -> MemoryContractError:
    return at_position(position, record_id, broken(field, rule, value))
