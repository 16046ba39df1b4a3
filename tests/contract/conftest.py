"""The repositories that the contract is run on: the twin, and PostgreSQL through every driver."""

from __future__ import annotations

from collections.abc import AsyncIterator, Iterator

import pytest

from symfonic_pg.postgres.repository import MemoryRepository
from symfonic_pg.testing import ContractRepository, InMemoryRepository
from symfonic_pg.testing.contract.base import Another
from tests.conftest import create_database, drop_database
from tests.integration.blocking_kinds import BLOCKING, Awaited
from tests.integration.executor_kinds import BORROWED, POOLED, running

KINDS = {
    kind.name: kind
    for kind in (*POOLED, *BORROWED)
    if kind.name
    in {
        "asyncpg",
        "psycopg",
        "engine-asyncpg",
        "engine-psycopg",
        "session-asyncpg",
        "session-psycopg",
    }
}


BLOCKING_KINDS = {
    kind.name: kind for kind in BLOCKING if kind.name in {"sync-session", "sync-engine", "sync-asyncpg"}
}


@pytest.fixture(scope="module")
def shared_database(server: str, template_database: str) -> Iterator[str]:
    """One database for the module: every behaviour makes up a tenant of its own."""
    dsn = create_database(server, template_database)
    yield dsn
    drop_database(server, dsn)


@pytest.fixture(params=["memory", *KINDS, *BLOCKING_KINDS])
async def repository(request: pytest.FixtureRequest) -> AsyncIterator[ContractRepository]:
    """A repository of each kind; what a borrowed connection wrote is rolled back."""
    if request.param == "memory":
        yield InMemoryRepository()
        return
    if request.param in BLOCKING_KINDS:
        with BLOCKING_KINDS[request.param].open(request.getfixturevalue("shared_database")) as blocking:
            yield Awaited(blocking)
        return
    async with running(KINDS[request.param], request.getfixturevalue("shared_database")) as executor:
        yield MemoryRepository(executor)


@pytest.fixture
def another(repository: ContractRepository) -> Another:
    """A function that makes one more repository on the storage of `repository`."""

    async def make() -> ContractRepository:
        return (
            MemoryRepository(repository.executor) if isinstance(repository, MemoryRepository) else repository
        )

    return make
