"""The single best statement for the nearest vectors, as an expert would write it for one scope."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from benchmarks.data import DIMENSION
from benchmarks.database import SCHEMA, Connection, levels, settle
from benchmarks.exact import Exact, recall, vector_text
from benchmarks.statements import bare
from benchmarks.timing import Times, interleaved
from symfonic_pg.memory import MemoryQuery

# What a session sets so that the planner does what is meant: walk HNSW to the limit, or stay off it.
_SESSIONS: Mapping[str, Mapping[str, str]] = {
    "hnsw": {
        "hnsw.iterative_scan": "relaxed_order",
        "hnsw.ef_search": "200",
        "enable_sort": "off",
        "plan_cache_mode": "force_custom_plan",
    },
    "exact": {"enable_sort": "on", "plan_cache_mode": "force_custom_plan"},
}
# What a statement has to find to be called the best.
_LEAST_RECALL = 0.97


@dataclass(frozen=True, slots=True)
class Nearest:
    """A bare statement, the settings it needs, and how it did."""

    kind: str
    statement: str
    times: Times
    recall: float

    async def settle(self, connection: Connection) -> None:
        """Set what the statement needs."""
        await settle(connection, **_SESSIONS[self.kind])

    async def fetch(self, connection: Connection, question: MemoryQuery) -> Sequence[Any]:
        """The rows for one question."""
        rows: Sequence[Any] = await connection.fetch(self.statement, vector_text(question), question.as_of)
        return rows


async def best_nearest(connection: Connection, questions: Sequence[MemoryQuery], exact: Exact) -> Nearest:
    """The fastest of those that find enough; resets the session."""
    tried = [await _tried(connection, kind, questions, exact) for kind in _SESSIONS]
    await connection.reset()
    good = [one for one in tried if one.recall >= _LEAST_RECALL] or tried
    return min(good, key=lambda one: one.times.p50)


async def _tried(
    connection: Connection, kind: str, questions: Sequence[MemoryQuery], exact: Exact
) -> Nearest:
    statement = bare(
        f"nearest_{kind}",
        schema=SCHEMA,
        tenant=questions[0].scope.tenant,
        scopes="{" + ",".join(map(str, await levels(connection, questions[0].scope))) + "}",
        model=1,
        dimension=DIMENSION,
        limit=questions[0].limit,
    )
    plain = Nearest(kind, statement, Times(), 0.0)
    await plain.settle(connection)
    [times] = await interleaved(questions, [lambda one: plain.fetch(connection, one)])
    shares = [
        recall([row[0] for row in await plain.fetch(connection, one)], await exact.nearest(one), one.limit)
        for one in questions
    ]
    return Nearest(kind, statement, times, sum(shares) / len(shares))
