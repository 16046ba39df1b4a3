"""The indexes of one embedding model, built while its vectors are read and written."""

from __future__ import annotations

from symfonic_pg.memory.checks import broken
from symfonic_pg.memory.errors import MemoryUnavailable
from symfonic_pg.memory.observing import EmbeddingModel
from symfonic_pg.postgres.executors.base import Executor
from symfonic_pg.postgres.executors.pooled import PooledExecutor
from symfonic_pg.postgres.statements import load_statement

# The widest vectors that fit the B-tree row of a model's covering index.
LEVEL_INDEX_DIMENSIONS = 800
# Seconds that one build may take.
BUILD_TIMEOUT = 4 * 3600.0


def index_kinds(dimension: int) -> tuple[str, ...]:
    """Which indexes the vectors of a dimension have: HNSW, and one that covers the exact scan of a level."""
    return ("hnsw", "level") if dimension <= LEVEL_INDEX_DIMENSIONS else ("hnsw",)


async def build_indexes(
    executor: Executor, model: EmbeddingModel, *, schema: str, timeout: float = BUILD_TIMEOUT
) -> None:
    """Build those of the model's indexes that are missing; each takes at most `timeout` seconds.

    CREATE INDEX CONCURRENTLY runs in no transaction and as the table's owner. How fast HNSW is built is a
    matter of the server's maintenance_work_mem: the vectors should fit into it. A build that is interrupted
    leaves an invalid index behind, which `symfonic-pg doctor` finds and tells how to rebuild.
    """
    if not isinstance(executor, PooledExecutor) or not executor.runs_alone:
        rule = "on a pool of asyncpg or psycopg: an index is built outside any transaction"
        raise broken("executor", rule, type(executor).__name__)
    found = await executor.fetch(load_statement("migrate_vectors", schema=schema))
    if not found:
        raise MemoryUnavailable("the database has no extension vector: run `symfonic-pg migrate`")
    for kind in index_kinds(model.dimension):
        await executor.patient(timeout).fetch(
            load_statement(
                f"index_model_{kind}",
                schema=schema,
                vectors=str(found[0][0]),
                dimension=model.dimension,
                model=model.number,
            )
        )
