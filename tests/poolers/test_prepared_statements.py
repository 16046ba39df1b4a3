"""Prepared statements behind PgBouncer: from 1.21 on they work, before that the error says what to do."""

from __future__ import annotations

from collections.abc import AsyncIterator, Iterator

import pytest

from symfonic_pg.memory import MemoryUnavailable
from symfonic_pg.postgres.repository import MemoryRepository
from symfonic_pg.store import MemoryStore
from symfonic_pg.testing import CONTRACT, Behaviour
from tests.conftest import temporary_home, with_database
from tests.integration.executor_kinds import OWN
from tests.poolers.pgbouncer import CARRIES_STATEMENTS, pgbouncer_version, pooled

KINDS = {kind.name: kind for kind in OWN}


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
    dsn = with_database(carrying, shared_database.partition("@/")[2].partition("?")[0])
    async with KINDS[request.param].open(dsn) as executor:
        yield MemoryRepository(executor)


@pytest.mark.parametrize("behaviour", CONTRACT, ids=str)
async def test_a_newer_pgbouncer_carries_them(behaviour: Behaviour, repository: MemoryRepository) -> None:
    await behaviour(repository)


@pytest.mark.parametrize("driver", ["asyncpg", "psycopg"])
async def test_an_older_one_does_not_and_the_error_names_the_switch(
    pooled_database: str, driver: str
) -> None:
    if pgbouncer_version() >= CARRIES_STATEMENTS:
        pytest.skip("this PgBouncer carries prepared statements")
    async with MemoryStore.connect(pooled_database, driver=driver, pool_max=1) as store:
        with pytest.raises(MemoryUnavailable, match="prepared_statements=False"):
            await _count_often(store)
    async with MemoryStore.connect(
        pooled_database, driver=driver, pool_max=1, prepared_statements=False
    ) as store:
        await _count_often(store)


async def _count_often(store: MemoryStore) -> None:
    for _ in range(40):
        assert await store.count("org:acme") == 0
