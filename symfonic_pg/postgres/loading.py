"""Bulk loading: a batch's new records go in by binary COPY, known ones through remember."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from symfonic_pg.memory.batches import BatchItem
from symfonic_pg.memory.observing import EmbeddingModel
from symfonic_pg.postgres import copying
from symfonic_pg.postgres.executors.base import CopyTarget, Executor
from symfonic_pg.postgres.rows import ScopePaths, json_text
from symfonic_pg.postgres.statements import load_statement
from symfonic_pg.terms import term_counts

_MEMORIES = (
    "tenant_id", "memory_id", "scope_id", "layer", "record_id", "text", "salience", "kind", "created_at",
    "updated_at", "access_count", "last_accessed_at", "valid_from", "valid_until", "expires_at", "language",
    "metadata", "content_hash", "terms", "term_counts", "term_total",
)  # fmt: skip
_EMBEDDINGS = (
    "tenant_id", "memory_id", "model_id", "scope_id", "layer", "embedding", "content_hash", "text_version",
)  # fmt: skip


class PlacedItem:
    """A batch's item with the keys that its row will have."""

    __slots__ = ("item", "memory_id", "scope_id")

    def __init__(self, item: BatchItem, scope_id: int, memory_id: int) -> None:
        self.item = item
        self.scope_id = scope_id
        self.memory_id = memory_id


async def copy_new(
    executor: Executor,
    items: Sequence[BatchItem],
    model: EmbeddingModel | None,
    *,
    schema: str,
    language: str,
    text_version: str,
) -> list[BatchItem]:
    """Copy the items whose record_id is new to their tenant, and return the others.

    Runs on the executor of a transaction: keys, memories and vectors come in together or not at all.
    """
    paths = ScopePaths(item.record.scope for item in items)
    keys = await executor.fetch(
        load_statement("prepare_load", schema=schema).bind(
            paths.json(),
            [str(paths.ordinal(item.record.scope)) for item in items],
            [item.record.record_id for item in items],
        )
    )
    placed = [
        PlacedItem(items[place - 1], scope_id, memory_id)
        for place, scope_id, memory_id in keys
        if memory_id is not None
    ]
    if placed:
        await executor.copy(
            CopyTarget(schema, "memories", _MEMORIES),
            copying.rows(_memory_row(one, language) for one in placed),
        )
    embedded = [one for one in placed if one.item.embedding is not None]
    if embedded and model is not None:
        await executor.copy(
            CopyTarget(schema, "embeddings", _EMBEDDINGS),
            copying.rows(_embedding_rows(embedded, model, text_version)),
        )
    return [items[place - 1] for place, _, memory_id in keys if memory_id is None]


def _memory_row(one: PlacedItem, language: str) -> tuple[bytes, ...]:
    record = one.item.record
    counts = term_counts(record.text, record.language or language)
    return (
        copying.text(record.scope.tenant),
        copying.bigint(one.memory_id),
        copying.bigint(one.scope_id),
        copying.text(record.layer.value),
        copying.text(record.record_id),
        copying.text(record.text),
        copying.double(record.salience),
        copying.text(record.kind),
        copying.timestamptz(record.created_at),
        copying.timestamptz(record.updated_at),
        copying.bigint(record.access_count),
        copying.timestamptz(record.last_accessed_at),
        copying.timestamptz(record.valid_from),
        copying.timestamptz(record.valid_until),
        copying.timestamptz(record.expires_at),
        copying.text(record.language),
        copying.json(json_text(record.metadata)),
        copying.raw(bytes.fromhex(record.content_hash)),
        copying.text_array(list(counts)),
        copying.integer_array(list(counts.values())),
        copying.integer(sum(counts.values())),
    )


def _embedding_rows(
    embedded: Sequence[PlacedItem], model: EmbeddingModel, text_version: str
) -> Iterator[tuple[bytes, ...]]:
    number, version = copying.smallint(model.number), copying.text(text_version)
    for one in embedded:
        record, embedding = one.item.record, one.item.embedding
        assert embedding is not None
        yield (
            copying.text(record.scope.tenant),
            copying.bigint(one.memory_id),
            number,
            copying.bigint(one.scope_id),
            copying.text(record.layer.value),
            copying.halfvec(embedding),
            copying.raw(bytes.fromhex(record.content_hash)),
            version,
        )
