"""A role without rights gets the very statement that somebody with rights has to run, and then succeeds."""

from __future__ import annotations

from collections.abc import Iterator
from urllib.parse import urlsplit, urlunsplit

import psycopg
import pytest

from symfonic_pg.postgres.migrations import MigrationError, current_revision, head_revision, migrate
from tests.conftest import database_name
from tests.migration.test_migrations import DRIVERS, by, one, run

ROLE = "symfonic_pg_test_migrator"


@pytest.fixture
def limited(empty_database: str) -> Iterator[str]:
    """The empty database as a role that may only connect."""
    run(empty_database, f"DROP ROLE IF EXISTS {ROLE}", f"CREATE ROLE {ROLE} LOGIN PASSWORD 'test'")
    parts = urlsplit(empty_database)
    host = parts.netloc.rpartition("@")[2]
    yield urlunsplit(parts._replace(netloc=f"{ROLE}:test@{host}"))
    run(empty_database, f"DROP OWNED BY {ROLE}", f"DROP ROLE {ROLE}")


def advice(error: pytest.ExceptionInfo[MigrationError]) -> str:
    return str(error.value).partition("what helps: ")[2]


@pytest.mark.parametrize("driver", DRIVERS)
def test_following_the_advice_step_by_step_ends_in_a_migrated_schema(
    empty_database: str, limited: str, driver: str
) -> None:
    followed = []
    for _ in range(4):
        try:
            migrate(by(driver, limited))
            break
        except MigrationError as exc:
            statement = str(exc).partition("what helps: ")[2]
            followed.append(statement)
            run(empty_database, statement)
    assert followed == [
        f'CREATE SCHEMA "symfonic" AUTHORIZATION {ROLE};',
        'CREATE EXTENSION vector WITH SCHEMA "public";',
    ]
    assert current_revision(limited) == head_revision()


def test_a_role_that_may_create_schemas_needs_only_the_extension(empty_database: str, limited: str) -> None:
    name = database_name(empty_database)
    run(empty_database, "CREATE EXTENSION vector", f"GRANT CREATE ON DATABASE {name} TO {ROLE}")
    migrate(limited)
    owner = "SELECT nspowner::regrole::text FROM pg_namespace WHERE nspname = 'symfonic'"
    assert one(empty_database, owner) == ROLE


def test_a_schema_of_somebody_elses_needs_a_grant(empty_database: str, limited: str) -> None:
    run(empty_database, "CREATE EXTENSION vector", "CREATE SCHEMA symfonic")
    with pytest.raises(MigrationError) as error:
        migrate(limited)
    assert advice(error) == f'GRANT USAGE, CREATE ON SCHEMA "symfonic" TO {ROLE};'
    run(empty_database, advice(error))
    migrate(limited)


def test_the_extensions_schema_must_be_usable(empty_database: str, limited: str) -> None:
    run(
        empty_database,
        "CREATE SCHEMA extensions",
        "CREATE EXTENSION vector WITH SCHEMA extensions",
        f"CREATE SCHEMA symfonic AUTHORIZATION {ROLE}",
    )
    with pytest.raises(MigrationError) as error:
        migrate(limited)
    assert advice(error) == f'GRANT USAGE ON SCHEMA "extensions" TO {ROLE};'
    run(empty_database, advice(error))
    migrate(limited)


def test_a_script_made_for_another_schema_of_pgvector_stops(empty_database: str) -> None:
    from symfonic_pg.postgres.migrations import migration_sql

    run(empty_database, "CREATE SCHEMA extensions", "CREATE EXTENSION vector WITH SCHEMA extensions")
    with pytest.raises(psycopg.errors.InvalidSchemaName, match="extensions"):
        run(empty_database, migration_sql())
    run(empty_database, migration_sql(vectors="extensions"))
    assert current_revision(empty_database) == head_revision()
