"""Prepared statements behind PgBouncer: not by default, carried along from 1.21 on, a danger before that."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Iterator

import psycopg
import pytest

from symfonic_pg.memory import MemoryRecord, MemoryUnavailable
from symfonic_pg.postgres.executors import Executor
from symfonic_pg.postgres.repository import MemoryRepository
from symfonic_pg.postgres.statements import Statement
from symfonic_pg.store import MemoryStore
from symfonic_pg.testing import CONTRACT, Behaviour
from tests.conftest import database_name, temporary_home, with_database
from tests.integration.executor_kinds import Pooled, engine, psycopg_pool
from tests.poolers.kinds import INSISTING, OWN
from tests.poolers.pgbouncer import CARRIES_STATEMENTS, pgbouncer_version, pooled, spread

DRIVERS = ("asyncpg", "psycopg")
PREPARED = Statement(
    "prepared", "SELECT count(*) FROM pg_prepared_statements WHERE statement LIKE '%lineage%'"
)
KINDS = {kind.name: kind for kind in INSISTING}


@pytest.fixture(scope="module")
def carrying(server: str) -> Iterator[str]:
    """A PgBouncer that carries prepared statements along."""
    version = pgbouncer_version()
    if version < CARRIES_STATEMENTS:
        installed = ".".join(map(str, version))
        pytest.skip(f"prepared statements in transaction mode need PgBouncer 1.21, this is {installed}")
    with temporary_home() as home, pooled(server, home, max_prepared_statements=200) as dsn:
        yield dsn


@pytest.fixture(params=KINDS)
async def repository(
    request: pytest.FixtureRequest, carrying: str, shared_database: str
) -> AsyncIterator[MemoryRepository]:
    dsn = spread(with_database(carrying, database_name(shared_database)))
    async with KINDS[request.param].open(dsn) as executor:
        yield MemoryRepository(executor)


@pytest.mark.parametrize("behaviour", CONTRACT, ids=str)
async def test_a_newer_pgbouncer_carries_them(behaviour: Behaviour, repository: MemoryRepository) -> None:
    await behaviour(repository)


async def count_often(store: MemoryStore) -> None:
    for _ in range(40):
        assert await store.count("org:acme") == 0


@pytest.mark.parametrize("driver", DRIVERS)
async def test_insisting_on_them_with_an_older_one_ends_in_an_error_that_names_the_switch(
    pooled_database: str, driver: str
) -> None:
    if pgbouncer_version() >= CARRIES_STATEMENTS:
        pytest.skip("this PgBouncer carries prepared statements")
    async with MemoryStore.connect(
        pooled_database, driver=driver, pool_max=1, prepared_statements=True
    ) as store:
        with pytest.raises(MemoryUnavailable, match="prepared_statements=False"):
            await count_often(store)
    async with MemoryStore.connect(pooled_database, driver=driver, pool_max=1) as store:
        await count_often(store)


async def prepared(executor: Executor) -> int:
    """How many of our statements are prepared in the session, after they ran often."""
    repository = MemoryRepository(executor)
    for _ in range(10):
        await repository.count(MemoryRecord("x", "org:acme", "semantic", "x").scope)
    return int((await executor.fetch(PREPARED))[0][0])


@pytest.mark.parametrize("kind", OWN, ids=str)
async def test_they_are_used_exactly_where_no_pooler_is(
    database: str, pooled_database: str, kind: Pooled
) -> None:
    async with kind.open(database, size=1) as executor:
        assert await prepared(executor) > 0
    async with kind.open(pooled_database, size=1) as executor:
        assert await prepared(executor) == 0


@pytest.mark.parametrize("opened", [psycopg_pool(autocommit=True), engine("psycopg")], ids=["pool", "engine"])
async def test_none_is_left_in_a_host_s_session(database: str, opened: object) -> None:
    async with opened(database, size=1) as executor:  # type: ignore[operator]
        assert await prepared(executor) == 0


@pytest.mark.parametrize("driver", DRIVERS)
async def test_no_statement_ever_runs_in_the_place_of_another_clients(
    pooled_database: str, driver: str
) -> None:
    # Both statements take the same parameters: prepared under one name, the wrong one deletes what is read.
    ids = [f"memory-{number}" for number in range(20)]
    spread(pooled_database, 4)
    async with (
        MemoryStore.connect(pooled_database, driver=driver) as one,
        MemoryStore.connect(pooled_database, driver=driver) as two,
    ):
        await one.remember(MemoryRecord(name, "org:acme", "semantic", name) for name in ids)

        async def read() -> None:
            for _ in range(60):
                assert len(await one.get("org:acme", ids)) == len(ids)

        async def forget() -> None:
            for _ in range(60):
                assert await two.forget("org:acme", ["nothing"]) == 0

        await asyncio.gather(read(), forget(), read(), forget())
        assert await one.count("org:acme") == len(ids)


def test_a_pooler_shows_by_the_number_of_the_session(pooled_database: str, database: str) -> None:
    numbers = []
    for dsn in (pooled_database, database):
        with psycopg.connect(dsn, prepare_threshold=None) as connection:
            row = connection.execute("SELECT pg_backend_pid()").fetchone()
            assert row is not None
            numbers.append(row[0] == connection.info.backend_pid)
    assert numbers == [False, True]
