"""Batches of records on their way in: by one statement, or the new ones of a bulk load by binary COPY."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

from symfonic_pg.memory.batches import BatchItem, elsewhere
from symfonic_pg.memory.checks import broken
from symfonic_pg.memory.errors import MemoryContractError
from symfonic_pg.memory.observing import EmbeddingModel
from symfonic_pg.memory.records import RememberReport
from symfonic_pg.memory.vectors import half_text
from symfonic_pg.postgres import copying
from symfonic_pg.postgres.executors.base import CopyTarget, Executor
from symfonic_pg.postgres.executors.failures import Collision
from symfonic_pg.postgres.rows import ScopePaths, json_text, record_document
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


@dataclass(frozen=True, slots=True)
class PlacedItem:
    """A batch's item with the keys that its row will have."""

    item: BatchItem
    scope_id: int
    memory_id: int


@dataclass(frozen=True, slots=True)
class Writing:
    """How batches are written.

    `language` cuts the texts of records that name none; their vectors are of `model`, made from texts that a
    hook of version `text_version` shaped.
    """

    schema: str
    language: str
    model: EmbeddingModel | None
    text_version: str

    async def remember(self, executor: Executor, items: Sequence[BatchItem]) -> RememberReport:
        """Insert or update all items by one statement, or none of them."""
        if not items:
            return RememberReport()
        paths = ScopePaths(item.record.scope for item in items)
        documents = [
            record_document(item.record, place, paths.ordinal(item.record.scope), self.language)
            for place, item in enumerate(items, start=1)
        ]
        rows = await executor.fetch(
            load_statement("remember", schema=self.schema).bind(
                paths.json(),
                json_text(documents),
                [None if item.embedding is None else half_text(item.embedding) for item in items],
                None if self.model is None else self.model.name,
                self.text_version,
            )
        )
        report = RememberReport()
        for place, outcome, has_vector in rows:
            if outcome == "model" and self.model is not None:
                raise unregistered(self.model.name)
            if outcome == "elsewhere":
                raise elsewhere(items[place - 1].position, items[place - 1].record.record_id)
            report += replace(RememberReport(without_embedding=not has_vector), **{outcome: 1})
        return report

    async def load(self, executor: Executor, items: Sequence[BatchItem]) -> RememberReport:
        """Copy what is new to its tenant and remember the rest, in one transaction."""
        try:
            async with executor.transaction() as inside:
                known = await self._copy_new(inside, items)
                rest = {item.position for item in known}
                bare = sum(item.embedding is None for item in items if item.position not in rest)
                copied = RememberReport(inserted=len(items) - len(known), without_embedding=bare)
                return copied + await self.remember(inside, known)
        except Collision:
            # COPY cannot update what another writer has just inserted; remember can.
            return await self.remember(executor, items)

    async def _copy_new(self, executor: Executor, items: Sequence[BatchItem]) -> list[BatchItem]:
        """Copy the items whose record_id is new, and return the others."""
        paths = ScopePaths(item.record.scope for item in items)
        keys = await executor.fetch(
            load_statement("prepare_load", schema=self.schema).bind(
                paths.json(),
                [str(paths.ordinal(item.record.scope)) for item in items],
                [item.record.record_id for item in items],
                None if self.model is None else self.model.name,
            )
        )
        placed = [
            PlacedItem(items[place - 1], scope_id, memory_id)
            for place, scope_id, memory_id, _ in keys
            if memory_id is not None
        ]
        if placed:
            await executor.copy(
                CopyTarget(self.schema, "memories", _MEMORIES),
                copying.rows(_memory_row(one, self.language) for one in placed),
            )
        embedded = [one for one in placed if one.item.embedding is not None]
        if embedded and self.model is not None:
            number = keys[0][3]
            if number is None:
                raise unregistered(self.model.name)
            await executor.copy(
                CopyTarget(self.schema, "embeddings", _EMBEDDINGS),
                copying.rows(_embedding_rows(embedded, number, self.text_version)),
            )
        return [items[place - 1] for place, _, memory_id, _ in keys if memory_id is None]


def unregistered(model: str) -> MemoryContractError:
    """The error for vectors of a model that the store does not know."""
    return broken("model", "a registered one (register_model)", model)


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
    embedded: Sequence[PlacedItem], model_number: int, text_version: str
) -> Iterator[tuple[bytes, ...]]:
    number, version = copying.smallint(model_number), copying.text(text_version)
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
