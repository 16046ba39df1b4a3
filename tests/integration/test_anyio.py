"""Under anyio, whose cancellation comes again at every await: what a framework on it does to a store."""

from __future__ import annotations

import asyncio
import time

import anyio
import psycopg
import pytest

from symfonic_pg.memory import MemoryRecord, MemoryScope
from symfonic_pg.postgres.statements import Statement
from symfonic_pg.store import MemoryStore
from tests.integration.executor_kinds import POOLED, Pooled

USER = MemoryScope.parse("org:acme/user:u1")
SLEEP = Statement("sleep", "SELECT pg_sleep(30)::text")
ONE = Statement("one", "SELECT 1")
BUSY = """
    SELECT state, query FROM pg_stat_activity
     WHERE datname = current_database() AND pid <> pg_backend_pid() AND state <> 'idle'
"""


async def left_busy(dsn: str) -> list[object]:
    """What the server still does, or holds open, for the test's database; it may take a moment to notice."""
    async with await psycopg.AsyncConnection.connect(dsn, autocommit=True) as connection:
        busy: list[object] = []
        for _ in range(40):
            busy = [*await (await connection.execute(BUSY)).fetchall()]
            if not busy:
                break
            await asyncio.sleep(0.05)
        return busy


@pytest.mark.parametrize("kind", POOLED, ids=str)
async def test_a_scope_that_gives_up_leaves_the_pool_clean(database: str, kind: Pooled) -> None:
    async with kind.open(database, size=1) as executor:
        for _ in range(3):
            started = time.monotonic()
            with anyio.move_on_after(0.1) as scope:
                await executor.fetch(SLEEP)
            assert scope.cancelled_caught
            assert time.monotonic() - started < 2
            assert (await executor.fetch(ONE))[0][0] == 1
        assert await left_busy(database) == []


@pytest.mark.parametrize("kind", POOLED, ids=str)
async def test_a_transaction_that_is_given_up_is_rolled_back(database: str, kind: Pooled) -> None:
    write = Statement("write", "CREATE TABLE half_done ()")
    async with kind.open(database, size=1) as executor:
        with anyio.move_on_after(0.3) as scope:
            async with executor.transaction() as inside:
                await inside.fetch(write)
                await inside.fetch(SLEEP)
        assert scope.cancelled_caught
        there = Statement("there", "SELECT to_regclass('half_done') IS NULL")
        assert (await executor.fetch(there))[0][0]
        assert await left_busy(database) == []


async def test_a_task_that_fails_takes_its_siblings_along_and_not_the_store(database: str) -> None:
    async with MemoryStore.connect(database, pool_max=3) as store:
        await store.remember(MemoryRecord("lamp", USER, "semantic", "a lamp"))

        async def recall_for_ever() -> None:
            while True:
                await store.recall(USER, "lamp")

        async def fail() -> None:
            await anyio.sleep(0.2)
            raise ZeroDivisionError

        async def side_by_side() -> None:
            async with anyio.create_task_group() as group:
                for _ in range(6):
                    group.start_soon(recall_for_ever)
                group.start_soon(fail)

        with pytest.raises(ExceptionGroup) as error:
            await side_by_side()
        assert error.group_contains(ZeroDivisionError)
        assert len(error.value.exceptions) == 1
        assert await left_busy(database) == []
        assert (await store.recall(USER, "lamp")).memories


def test_anyio_runs_a_store_by_itself(database: str) -> None:
    async def main() -> int:
        async with MemoryStore.connect(database) as store:
            return await store.count(USER)

    assert anyio.run(main) == 0
