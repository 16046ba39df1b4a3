"""Memories that need a vector of a model: claimed, stored, given back, counted; each verb one statement."""

from __future__ import annotations

import secrets
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import Literal

from symfonic_pg.memory.batches import checked_vector
from symfonic_pg.memory.observing import EmbeddingModel
from symfonic_pg.memory.records import MemoryRecord
from symfonic_pg.memory.scope import MemoryScope
from symfonic_pg.memory.vectors import half_text
from symfonic_pg.postgres.executors.base import Executor, Rows
from symfonic_pg.postgres.rows import Row, record_from_row, scope_parameters
from symfonic_pg.postgres.statements import load_statement

# A memory's place in the order in which the store is swept: its tenant and its number. No tenant is empty.
Key = tuple[str, int]
START: Key = ("", 0)

# Longer errors are cut: one row of a table should not hold a page.
_LONGEST_ERROR = 500


@dataclass(frozen=True, slots=True)
class PendingMemory:
    """A memory that is ours to embed; its key, the hash of its text, and which attempt this is, from 1."""

    key: Key
    content_hash: str
    attempt: int
    record: MemoryRecord


@dataclass(frozen=True, slots=True)
class Claim:
    """What a claim got, and the key after which the sweep goes on, None at its end."""

    memories: tuple[PendingMemory, ...]
    reached: Key | None


@dataclass(frozen=True, slots=True)
class PendingCounts:
    """How many memories have no current vector of a model.

    `waiting` will be embedded, now or when a lease has run out. Set aside until their text changes or they
    are asked for again are those that `failed` too often and the `empty` ones, for which the model has no
    vector.
    """

    waiting: int = 0
    failed: int = 0
    empty: int = 0

    def __add__(self, other: PendingCounts) -> PendingCounts:
        return PendingCounts(
            self.waiting + other.waiting, self.failed + other.failed, self.empty + other.empty
        )


@dataclass(frozen=True, slots=True)
class FailedEmbedding:
    """A memory that was set aside: why, after how many attempts, and when the last of them began.

    `error` is what the embedder said; None where `reason` is empty: the model has no vector for the text.
    """

    scope: MemoryScope
    record_id: str
    reason: Literal["failed", "empty"]
    attempts: int
    error: str | None
    tried_at: datetime
    key: Key


class PendingVectors:
    """The memories without a current vector of one model, everywhere or at one scope and below it.

    A vector is current if it was made of the memory's text by the hook of this version. A claim lasts for its
    lease, by the database's clock; no lock outlives a call.
    """

    def __init__(
        self,
        executor: Executor,
        model: EmbeddingModel,
        text_version: str,
        *,
        schema: str,
        scope: MemoryScope | None = None,
    ) -> None:
        self._executor = executor
        self._schema = schema
        self._model = model
        self._version = text_version
        self._scope = (None, [], []) if scope is None else scope_parameters(scope)
        self._holder = secrets.token_hex(8)

    async def claim(self, after: Key, *, batch: int, lease: timedelta, attempts: int) -> Claim:
        """Take at most `batch` of the next memories; one that was tried before comes alone.

        May come back empty before the end: a call looks only so far. What was tried `attempts` times
        without an answer, as by workers that were killed over it, is set aside.
        """
        rows = await self._rows(
            "claim_pending",
            *self._scope,
            self._model.number,
            self._version,
            *after,
            batch,
            self._holder,
            lease.total_seconds(),
            attempts,
        )
        return Claim(tuple(map(_pending_from_row, rows[1:])), _key(rows[0]))

    async def store(
        self, memories: Sequence[PendingMemory], vectors: Sequence[Sequence[float] | None]
    ) -> tuple[int, int, int]:
        """Write a vector, or that there is none, for each memory whose text is still the same.

        The numbers of those written, of those without one, and of those that changed or went meanwhile.
        """
        rows = await self._rows(
            "store_vectors",
            self._model.number,
            self._version,
            self._holder,
            *_keys(memories),
            [memory.content_hash for memory in memories],
            [
                None if vector is None else half_text(checked_vector(vector, self._model))
                for vector in vectors
            ],
        )
        stored, empty, changed = rows[0]
        return stored, empty, changed

    async def fail(
        self, memories: Sequence[PendingMemory], error: str, *, attempts: int, at_once: bool
    ) -> int:
        """Note why memories could not be embedded, and count those set aside after `attempts` attempts.

        The others may be claimed again when their lease has run out; with `at_once` all of them, immediately.
        """
        return await self._number(
            "fail_pending",
            self._model.number,
            self._holder,
            *_keys(memories),
            _storable(error),
            attempts,
            at_once,
        )

    async def release(self, memories: Sequence[PendingMemory]) -> int:
        """Give memories back as if they had never been claimed; passes over those that are no longer ours."""
        return await self._number("release_pending", self._model.number, self._holder, *_keys(memories))

    async def count(self) -> PendingCounts:
        """How many there are; one more sweep over the keys, 50,000 a statement."""
        counts = PendingCounts()
        after: Key | None = START
        while after is not None:
            rows = await self._rows("count_pending", *self._scope, self._model.number, self._version, *after)
            counts += PendingCounts(*rows[0][2:])
            after = _key(rows[0])
        return counts

    async def failed(self, *, empty: bool, limit: int, after: Key = START) -> list[FailedEmbedding]:
        """Those that were set aside, in key order; with `empty` also those without a vector for good."""
        rows = await self._rows(
            "list_failed", *self._scope, self._model.number, self._version, *after, empty, limit
        )
        return [_failed_from_row(row) for row in rows]

    async def retry(self, record_ids: Sequence[str] | None = None) -> int:
        """Make those that were set aside pending again, all or the named ones, and count them."""
        return await self._number(
            "retry_failed",
            *self._scope,
            self._model.number,
            None if record_ids is None else list(record_ids),
        )

    async def _rows(self, name: str, *parameters: object) -> Rows:
        return await self._executor.fetch(load_statement(name, schema=self._schema).bind(*parameters))

    async def _number(self, name: str, *parameters: object) -> int:
        return int((await self._rows(name, *parameters))[0][0])


def _key(row: Row) -> Key | None:
    return None if row[0] is None else (row[0], row[1])


def _keys(memories: Sequence[PendingMemory]) -> tuple[list[str], list[str]]:
    """The keys as two parallel lists; numbers in lists travel as text."""
    return [memory.key[0] for memory in memories], [str(memory.key[1]) for memory in memories]


def _pending_from_row(row: Row) -> PendingMemory:
    tenant, number, content_hash, attempt, kinds, level_ids = row[:6]
    scope = _scope(kinds, level_ids)
    return PendingMemory((tenant, number), content_hash, attempt, record_from_row((0, *row[6:]), (scope,)))


def _failed_from_row(row: Row) -> FailedEmbedding:
    tenant, number, kinds, level_ids, record_id, reason, attempts, error, tried_at = row
    scope, tried_at = _scope(kinds, level_ids), tried_at.astimezone(UTC)
    return FailedEmbedding(scope, record_id, reason, attempts, error, tried_at, (tenant, number))


def _scope(kinds: Sequence[str], level_ids: Sequence[str]) -> MemoryScope:
    return MemoryScope.of(*zip(kinds, level_ids, strict=True))


def _storable(error: str) -> str:
    """What PostgreSQL takes as text: no NUL, no lone surrogate."""
    return error.replace("\x00", "").encode(errors="replace").decode()[:_LONGEST_ERROR]
