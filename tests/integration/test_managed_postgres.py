"""The roles of docs/managed-postgres.md: its statements are run as they stand, and are enough."""

from __future__ import annotations

import re
from collections.abc import AsyncIterator, Iterator
from pathlib import Path
from urllib.parse import urlsplit, urlunsplit

import psycopg
import pytest

from symfonic_pg.memory import MemoryRecord, MemoryScope, MemoryUnavailable
from symfonic_pg.postgres.connecting import connected
from symfonic_pg.postgres.doctor import examine
from symfonic_pg.postgres.migrations import migrate
from symfonic_pg.postgres.repository import MemoryRepository
from symfonic_pg.store import MemoryStore
from symfonic_pg.testing import CONTRACT, Behaviour
from tests.conftest import create_database, database_name, drop_database

PAGE = (Path(__file__).parents[2] / "docs" / "managed-postgres.md").read_text(encoding="utf-8")
CREATE, GRANT, ELSEWHERE = re.findall(r"^```sql\n(.*?)^```$", PAGE, re.MULTILINE | re.DOTALL)
ROLES = ("memory_reader", "memory_writer", "memory_owner")
USER = MemoryScope.parse("org:acme/user:u1")


def run(dsn: str, *scripts: str) -> None:
    with psycopg.connect(dsn, autocommit=True) as connection:
        for script in scripts:
            connection.execute(script)


def as_role(dsn: str, role: str) -> str:
    parts = urlsplit(dsn)
    return urlunsplit(parts._replace(netloc=f"{role}:test@{parts.netloc.rpartition('@')[2]}"))


@pytest.fixture(scope="module")
def managed(server: str) -> Iterator[str]:
    """A database set up as the page says, pgvector outside of public, search paths that lead nowhere."""
    dsn = create_database(server, "template0")
    drop = f"DROP OWNED BY {', '.join(ROLES)}", f"DROP ROLE {', '.join(ROLES)}"
    try:
        run(
            dsn,
            *re.findall(r"^CREATE ROLE .*?;", CREATE, re.MULTILINE),
            ELSEWHERE,
            "CREATE EXTENSION vector WITH SCHEMA extensions",
            re.sub(r"^CREATE ROLE .*?;\n", "", CREATE, flags=re.MULTILINE),
            f"REVOKE ALL ON DATABASE {database_name(dsn)} FROM PUBLIC",
            "REVOKE ALL ON SCHEMA public FROM PUBLIC",
        )
        for role in ROLES:
            run(
                dsn,
                f"ALTER ROLE {role} PASSWORD 'test'",
                f"ALTER ROLE {role} SET search_path = pg_catalog",
                f"GRANT CONNECT ON DATABASE {database_name(dsn)} TO {role}",
            )
        migrate(as_role(dsn, "memory_owner"))
        run(as_role(dsn, "memory_owner"), GRANT)
        yield dsn
        run(dsn, *drop)
    finally:
        drop_database(server, dsn)


async def test_the_doctor_has_nothing_to_say(managed: str) -> None:
    found = await examine(managed, role="memory_writer")
    assert {finding.status for finding in found} == {"ok"}, found
    for role, lacking in (("memory_writer", False), ("memory_reader", True)):
        found = await examine(as_role(managed, role))
        assert any("INSERT" in finding.detail for finding in found) == lacking
        assert "failure" not in {finding.status for finding in found}, found


@pytest.fixture(params=["asyncpg", "psycopg"])
async def repository(request: pytest.FixtureRequest, managed: str) -> AsyncIterator[MemoryRepository]:
    executor = connected(as_role(managed, "memory_writer"), driver=request.param)
    yield MemoryRepository(executor)
    await executor.close()


@pytest.mark.parametrize("behaviour", CONTRACT, ids=str)
async def test_a_writer_keeps_the_whole_contract(behaviour: Behaviour, repository: MemoryRepository) -> None:
    await behaviour(repository)


async def test_a_reader_reads_and_does_not_write(managed: str) -> None:
    run(managed, "ALTER ROLE memory_reader SET default_transaction_read_only = on")
    async with MemoryStore.connect(as_role(managed, "memory_writer")) as store:
        await store.check()
        await store.remember(MemoryRecord("lamp", USER, "semantic", "a lamp"))
    async with MemoryStore.connect(as_role(managed, "memory_reader")) as store:
        recalled = await store.recall(USER, "lamp")
        assert [memory.record_id for memory in recalled.memories] == ["lamp"]
        for call in (store.remember(MemoryRecord("x", USER, "semantic", "x")), store.check()):
            with pytest.raises(MemoryUnavailable):
                await call


async def test_neither_of_them_can_create_anything(managed: str) -> None:
    for role in ("memory_writer", "memory_reader"):
        for statement in ("CREATE TABLE symfonic.mine ()", "CREATE SCHEMA mine", "CREATE TEMP TABLE mine ()"):
            with pytest.raises((psycopg.errors.InsufficientPrivilege, psycopg.errors.ReadOnlySqlTransaction)):
                run(as_role(managed, role), statement)


async def test_what_a_later_migration_adds_is_granted_too(managed: str) -> None:
    owner = as_role(managed, "memory_owner")
    run(
        owner,
        "CREATE TABLE symfonic.later (number bigint GENERATED ALWAYS AS IDENTITY)",
        "CREATE FUNCTION symfonic.later() RETURNS integer LANGUAGE sql AS 'SELECT 1'",
        "REVOKE EXECUTE ON FUNCTION symfonic.later FROM PUBLIC",
    )
    try:
        run(as_role(managed, "memory_writer"), "INSERT INTO symfonic.later DEFAULT VALUES")
        for role in ("memory_writer", "memory_reader"):
            run(as_role(managed, role), "SELECT symfonic.later() FROM symfonic.later")
    finally:
        run(owner, "DROP TABLE symfonic.later", "DROP FUNCTION symfonic.later")
