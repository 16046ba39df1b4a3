"""The truth to compare with: the nearest vectors by a sequential scan of the stored halves."""

from __future__ import annotations

from collections.abc import Iterable

from benchmarks.database import SCHEMA, Connection, levels, settle
from benchmarks.statements import bare
from symfonic_pg.memory import MemoryQuery
from symfonic_pg.memory.vectors import half_text, unit


class Exact:
    """Answers on a connection of its own, on which no index is used; each question is answered once."""

    def __init__(self, connection: Connection) -> None:
        self._connection = connection
        self._known: dict[tuple[object, ...], frozenset[str]] = {}

    async def prepare(self) -> None:
        """Switch the indexes off."""
        await settle(
            self._connection,
            enable_indexscan="off",
            enable_indexonlyscan="off",
            enable_bitmapscan="off",
            plan_cache_mode="force_custom_plan",
        )

    async def nearest(self, question: MemoryQuery) -> frozenset[str]:
        """The record ids of the nearest `limit` live memories, with all that are as near as the last."""
        key = (question.scope, question.embedding, question.limit)
        if key not in self._known:
            rows = await self._connection.fetch(
                bare("exact", schema=SCHEMA, model=1, limit=question.limit),
                await levels(self._connection, question.scope),
                vector_text(question),
                question.as_of,
            )
            self._known[key] = frozenset(row[0] for row in rows)
        return self._known[key]


def vector_text(question: MemoryQuery) -> str:
    """The question's vector as the package sends it: the halves of its unit vector."""
    assert question.embedding is not None
    return half_text(unit(question.embedding))


def recall(found: Iterable[str], nearest: frozenset[str], limit: int) -> float:
    """The share of the nearest that was found; what is as near as the last of them counts as well."""
    hits = len(nearest.intersection(found))
    return min(hits, limit) / min(limit, len(nearest)) if nearest else 1.0
