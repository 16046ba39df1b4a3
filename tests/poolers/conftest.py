"""A PgBouncer in transaction mode for the run."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from tests.conftest import create_database, database_name, drop_database, temporary_home, with_database
from tests.poolers.pgbouncer import pooled, spread


@pytest.fixture(scope="session")
def pooler(server: str) -> Iterator[str]:
    """The DSN of the run's server through PgBouncer, which is told nothing about prepared statements."""
    with temporary_home() as home, pooled(server, home) as dsn:
        yield dsn


@pytest.fixture
def pooled_database(pooler: str, database: str) -> str:
    """A migrated database of the test's own, through PgBouncer."""
    return spread(with_database(pooler, database_name(database)))


@pytest.fixture(scope="module")
def shared_database(server: str, template_database: str, pooler: str) -> Iterator[str]:
    """One database for the module, through PgBouncer."""
    dsn = create_database(server, template_database)
    yield spread(with_database(pooler, database_name(dsn)))
    drop_database(server, dsn)
