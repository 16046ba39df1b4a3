"""index_model builds what the doctor would miss, where a statement can run by itself."""

from __future__ import annotations

import psycopg
import pytest

from symfonic_pg.memory import MemoryContractError, MemoryRecord, MemoryUnavailable
from symfonic_pg.postgres.doctor import examine
from symfonic_pg.postgres.indexing import build_indexes
from symfonic_pg.postgres.repository import MemoryRepository
from tests.integration.executor_kinds import BORROWED, POOLED, Borrowed, Pooled, running


def model_indexes(dsn: str) -> set[str]:
    """The indexes of models that are there and valid."""
    with psycopg.connect(dsn) as connection:
        rows = connection.execute(
            "SELECT c.relname FROM pg_index AS i JOIN pg_class AS c ON c.oid = i.indexrelid"
            " WHERE i.indisvalid AND c.relname ~ '^embeddings_(hnsw|level)_[0-9]+$'"
        )
        return {row[0] for row in rows}


def by_themselves(kind: Pooled) -> bool:
    return not kind.name.startswith("engine")


@pytest.mark.parametrize("kind", list(filter(by_themselves, POOLED)), ids=str)
async def test_builds_what_is_missing_once(database: str, kind: Pooled) -> None:
    async with running(kind, database) as executor:
        repository = MemoryRepository(executor)
        model = await repository.register_model("small", 4)
        await repository.remember(
            [MemoryRecord("one", "org:a", "semantic", "text")], [[1.0, 2.0, 3.0, 4.0]], model="small"
        )
        for _ in range(2):
            await repository.index_model("small")
            built = {f"embeddings_hnsw_{model.number}", f"embeddings_level_{model.number}"}
            assert model_indexes(database) == built
    found = {finding.name: finding.status for finding in await examine(database)}
    assert found["models"] == "ok"


async def test_vectors_too_wide_for_a_b_tree_have_hnsw_alone(database: str) -> None:
    async with running(POOLED[0], database) as executor:
        repository = MemoryRepository(executor)
        model = await repository.register_model("wide", 1536)
        await repository.index_model("wide")
    assert model_indexes(database) == {f"embeddings_hnsw_{model.number}"}


async def test_an_unknown_model_is_refused(database: str) -> None:
    async with running(POOLED[0], database) as executor:
        with pytest.raises(MemoryContractError, match="register_model"):
            await MemoryRepository(executor).index_model("nobody")


@pytest.mark.parametrize("kind", [*BORROWED, *(kind for kind in POOLED if not by_themselves(kind))], ids=str)
async def test_what_is_always_in_a_transaction_is_refused(database: str, kind: Pooled | Borrowed) -> None:
    async with running(kind, database) as executor:
        repository = MemoryRepository(executor)
        await repository.register_model("small", 4)
        with pytest.raises(MemoryContractError, match="outside any transaction"):
            await repository.index_model("small")


async def test_a_build_may_take_longer_than_a_search_and_not_forever(database: str) -> None:
    async with running(POOLED[0], database, timeout=5.0) as executor:
        repository = MemoryRepository(executor)
        model = await repository.register_model("small", 4)
        with psycopg.connect(database) as writer:
            # CONCURRENTLY waits for whoever writes to the table.
            writer.execute("LOCK TABLE symfonic.embeddings IN ROW EXCLUSIVE MODE")
            with pytest.raises(MemoryUnavailable, match=r"within 0\.5 s"):
                await build_indexes(executor, model, schema="symfonic", timeout=0.5)
