"""The check that fails when writes would, and writes nothing itself."""

from __future__ import annotations

from collections.abc import Iterator
from urllib.parse import urlsplit, urlunsplit

import asyncpg
import psycopg
import pytest

from symfonic_pg.memory import MemoryRecord, MemoryScope, MemoryUnavailable, SchemaMismatch
from symfonic_pg.postgres.migrations import head_revision, migrate
from symfonic_pg.store import MemoryStore

ROLE = "symfonic_pg_test_writer"
LAMP = MemoryRecord("lamp", MemoryScope.parse("org:acme"), "semantic", "a lamp")


def run(dsn: str, *statements: str) -> None:
    with psycopg.connect(dsn, autocommit=True) as connection:
        for statement in statements:
            connection.execute(statement)


@pytest.fixture
def writer(database: str) -> Iterator[str]:
    """The database as a role with all that reading and writing takes, and no more."""
    run(
        database,
        f"DROP ROLE IF EXISTS {ROLE}",
        f"CREATE ROLE {ROLE} LOGIN PASSWORD 'test'",
        f"GRANT USAGE ON SCHEMA symfonic TO {ROLE}",
        f"GRANT SELECT, INSERT, UPDATE, DELETE ON ALL TABLES IN SCHEMA symfonic TO {ROLE}",
        f"REVOKE INSERT, UPDATE, DELETE ON symfonic.symfonic_pg_version FROM {ROLE}",
        f"GRANT USAGE ON ALL SEQUENCES IN SCHEMA symfonic TO {ROLE}",
        f"GRANT EXECUTE ON ALL FUNCTIONS IN SCHEMA symfonic TO {ROLE}",
    )
    parts = urlsplit(database)
    yield urlunsplit(parts._replace(netloc=f"{ROLE}:test@{parts.netloc.rpartition('@')[2]}"))
    run(database, f"DROP OWNED BY {ROLE}", f"DROP ROLE {ROLE}")


@pytest.mark.parametrize("driver", ["asyncpg", "psycopg"])
async def test_a_writer_passes_and_really_writes(writer: str, driver: str) -> None:
    async with MemoryStore.connect(writer, driver=driver) as store:
        await store.check()
        await store.remember(LAMP)
        await store.load([MemoryRecord("loaded", LAMP.scope, "semantic", "another lamp")])


@pytest.mark.parametrize(
    ("change", "reason"),
    [
        ("REVOKE INSERT ON symfonic.memories FROM {role}", "INSERT on memories"),
        ("REVOKE DELETE ON symfonic.usage FROM {role}", "DELETE on usage"),
        ("REVOKE USAGE ON SEQUENCE symfonic.memories_memory_id_seq FROM {role}", "USAGE on memories_memory"),
        ("REVOKE EXECUTE ON FUNCTION symfonic.remember FROM PUBLIC, {role}", "EXECUTE on remember"),
        ("REVOKE USAGE ON SCHEMA symfonic FROM {role}", "USAGE on symfonic"),
        ("ALTER ROLE {role} SET default_transaction_read_only = on", "read-only"),
        ("REVOKE SELECT ON symfonic.symfonic_pg_version FROM {role}", "symfonic_pg_version"),
    ],
)
async def test_what_would_stop_a_write_is_named(database: str, writer: str, change: str, reason: str) -> None:
    run(database, change.format(role=ROLE))
    async with MemoryStore.connect(writer) as store:
        with pytest.raises(MemoryUnavailable, match=reason):
            await store.check()


@pytest.mark.parametrize("driver", ["asyncpg", "psycopg"])
async def test_a_schema_that_is_missing_or_old_is_a_mismatch(empty_database: str, driver: str) -> None:
    async with MemoryStore.connect(empty_database, driver=driver) as store:
        with pytest.raises(SchemaMismatch):
            await store.check()
        migrate(empty_database)
        await store.check()
        run(empty_database, "UPDATE symfonic.symfonic_pg_version SET version_num = '0000'")
        with pytest.raises(SchemaMismatch) as error:
            await store.check()
        assert (error.value.expected, error.value.found) == (head_revision(), "0000")
        run(empty_database, "DELETE FROM symfonic.symfonic_pg_version")
        with pytest.raises(SchemaMismatch):
            await store.check()


async def test_a_newer_schema_does_not_stop_the_code_from_before(database: str) -> None:
    run(database, "UPDATE symfonic.symfonic_pg_version SET version_num = '9999'")
    async with MemoryStore.connect(database) as store:
        await store.check()


async def test_the_schema_that_is_asked_about_is_the_stores(database: str) -> None:
    async with MemoryStore.connect(database, schema="elsewhere") as store:
        with pytest.raises(SchemaMismatch):
            await store.check()
    migrate(database, schema="elsewhere")
    run(database, "DROP SCHEMA symfonic CASCADE")
    async with MemoryStore.connect(database, schema="elsewhere") as store:
        await store.check()


async def test_it_writes_nothing(database: str) -> None:
    connection = await asyncpg.connect(database)
    try:
        async with MemoryStore.connect(database) as store, connection.transaction():
            await store.using(connection).check()
            # PostgreSQL numbers a transaction when it first writes.
            assert await connection.fetchval("SELECT pg_current_xact_id_if_assigned()") is None
    finally:
        await connection.close()
