"""Django's migrations and `symfonic-pg migrate` are two doors to one schema."""

from __future__ import annotations

import asyncio
import subprocess
import sys
from collections.abc import Callable
from importlib import import_module
from pathlib import Path

import psycopg
import pytest

from symfonic_pg.assets import asset_dir
from symfonic_pg.postgres.doctor import examine
from symfonic_pg.postgres.embedded import embedded_binaries
from symfonic_pg.postgres.migration_scripts import VERSION_TABLE
from symfonic_pg.postgres.migrations import current_revision, downgrade, head_revision, migrate
from tests.conftest import create_database, database_name, drop_database
from tests.django.conftest import ROOT, Project
from tests.migration.catalogue import catalogue

Make = Callable[..., Project]
RECORDED = "SELECT count(*) FROM django_migrations WHERE app = 'symfonic_pg'"
VERSION_COLUMNS = f"""
    SELECT attname, format_type(atttypid, atttypmod), attnotnull FROM pg_attribute
    WHERE attrelid = 'symfonic.{VERSION_TABLE}'::regclass AND attnum > 0
    UNION ALL
    SELECT conname, pg_get_constraintdef(oid), true FROM pg_constraint
    WHERE conrelid = 'symfonic.{VERSION_TABLE}'::regclass AND contype = 'p'
"""


def run(dsn: str, *statements: str) -> None:
    with psycopg.connect(dsn, autocommit=True) as connection:
        for statement in statements:
            connection.execute(statement)


def rows(dsn: str, query: str) -> list[tuple[object, ...]]:
    with psycopg.connect(dsn) as connection:
        return connection.execute(query).fetchall()


@pytest.fixture
def expected(database: str) -> list[str]:
    return catalogue(database)


def test_both_doors_lead_to_the_same_catalogue(
    project: Make, empty_database: str, expected: list[str]
) -> None:
    project(empty_database).manage("migrate")
    assert catalogue(empty_database) == expected
    assert expected
    assert current_revision(empty_database) == head_revision()
    assert "failure" not in {finding.status for finding in asyncio.run(examine(empty_database))}


def test_the_version_table_is_alembics(project: Make, empty_database: str, database: str) -> None:
    project(empty_database).manage("migrate", "symfonic_pg")
    assert rows(empty_database, VERSION_COLUMNS) == rows(database, VERSION_COLUMNS)
    assert rows(empty_database, f"TABLE symfonic.{VERSION_TABLE}") == [(head_revision(),)]


def test_every_revision_is_a_migration_of_django_too() -> None:
    ours = {script.stem for script in (asset_dir("alembic") / "versions").glob("[0-9]*.py")}
    folder = Path(import_module("symfonic_pg.contrib.django").__path__[0]) / "migrations"
    assert {script.stem for script in folder.glob("[0-9]*.py")} == ours


def test_django_goes_on_where_alembic_stopped(project: Make, database: str, expected: list[str]) -> None:
    printed = project(database).manage("migrate", "symfonic_pg")
    assert "OK" in printed
    assert catalogue(database) == expected
    assert rows(database, RECORDED) == [(1,)]


def test_alembic_goes_on_where_django_stopped(
    project: Make, empty_database: str, expected: list[str]
) -> None:
    host = project(empty_database)
    host.manage("migrate", "symfonic_pg")
    migrate(empty_database)
    assert catalogue(empty_database) == expected
    downgrade(empty_database)
    assert catalogue(empty_database) == []
    # What is gone already is not taken back again.
    host.manage("migrate", "symfonic_pg", "zero")
    host.manage("migrate", "symfonic_pg")
    assert catalogue(empty_database) == expected


def test_back_to_nothing(project: Make, empty_database: str, expected: list[str]) -> None:
    host = project(empty_database)
    host.manage("migrate", "symfonic_pg")
    host.manage("migrate", "symfonic_pg", "zero")
    assert catalogue(empty_database) == []
    assert current_revision(empty_database) is None
    migrate(empty_database)
    assert catalogue(empty_database) == expected


def test_a_schema_of_a_later_revision_is_neither_touched_nor_taken_back(project: Make, database: str) -> None:
    run(database, f"UPDATE symfonic.{VERSION_TABLE} SET version_num = '9999'")
    host = project(database)
    host.manage("migrate", "symfonic_pg")
    printed = host.manage("migrate", "symfonic_pg", "zero", fails=True)
    assert "stands at 9999" in printed
    assert rows(database, f"TABLE symfonic.{VERSION_TABLE}") == [("9999",)]


def test_another_schema_and_the_extension_elsewhere(
    project: Make, empty_database: str, expected: list[str]
) -> None:
    run(empty_database, "CREATE SCHEMA extensions", "CREATE EXTENSION vector WITH SCHEMA extensions")
    host = project(empty_database, SYMFONIC_PG_SCHEMA="Brain")
    host.manage("migrate", "symfonic_pg")
    assert current_revision(empty_database, schema="Brain") == head_revision()
    assert len(catalogue(empty_database, "Brain")) == len(expected)
    host.manage("makemigrations", "--check")


def test_the_extension_goes_where_the_settings_say(project: Make, empty_database: str) -> None:
    run(empty_database, "CREATE SCHEMA extensions")
    project(empty_database, SYMFONIC_PG_VECTORS="extensions").manage("migrate", "symfonic_pg")
    home = "SELECT extnamespace::regnamespace::text FROM pg_extension WHERE extname = 'vector'"
    assert rows(empty_database, home) == [("extensions",)]


@pytest.fixture
def ordinary_role(server: str, empty_database: str) -> str:
    """The empty database as a role that may create schemas and tables, and no extension."""
    run(server, "DROP ROLE IF EXISTS django_ordinary", "CREATE ROLE django_ordinary LOGIN")
    name = database_name(empty_database)
    run(
        empty_database,
        f"GRANT CREATE ON DATABASE {name} TO django_ordinary",
        "GRANT CREATE ON SCHEMA public TO django_ordinary",
    )
    return empty_database.replace("postgres@", "django_ordinary@", 1)


def test_an_ordinary_role_needs_the_extension_and_is_told_so(
    project: Make, ordinary_role: str, empty_database: str
) -> None:
    host = project(ordinary_role)
    printed = host.manage("migrate", "symfonic_pg", fails=True)
    assert "CREATE EXTENSION vector" in printed
    # In one transaction: the schema that it had begun with is gone again.
    assert rows(empty_database, "SELECT to_regnamespace('symfonic')") == [(None,)]
    assert rows(empty_database, RECORDED) == [(0,)]
    run(empty_database, "CREATE EXTENSION vector")
    host.manage("migrate", "symfonic_pg")
    assert current_revision(empty_database) == head_revision()


def test_the_printed_script_builds_the_same_schema(
    project: Make, empty_database: str, expected: list[str], tmp_path: Path
) -> None:
    script = tmp_path / "migrate.sql"
    host = project(empty_database)
    script.write_text(host.manage("sqlmigrate", "symfonic_pg", "0001"))
    assert rows(empty_database, "SELECT to_regnamespace('symfonic')") == [(None,)]
    subprocess.run(
        [embedded_binaries() / "psql", "-Xq", "-v", "ON_ERROR_STOP=1", "-d", empty_database, "-f", script],
        check=True, capture_output=True,
    )  # fmt: skip
    assert catalogue(empty_database) == expected
    assert current_revision(empty_database) == head_revision()


def test_migrators_that_race_both_succeed(project: Make, empty_database: str, expected: list[str]) -> None:
    host = project(empty_database)
    # Django's own table has no such lock.
    host.manage("migrate", "contenttypes")
    command = [sys.executable, "-m", "django", "migrate", "symfonic_pg"]
    racers = [
        subprocess.Popen(command, cwd=ROOT, env=host.environment, stdout=subprocess.DEVNULL) for _ in "12"
    ]
    assert [racer.wait(60) for racer in racers] == [0, 0]
    assert catalogue(empty_database) == expected


@pytest.mark.parametrize(
    "settings",
    [
        {},
        {"SYMFONIC_PG_SCHEMA": "brain"},
        {"DEFAULT_AUTO_FIELD": "django.db.models.AutoField", "USE_TZ": False, "LANGUAGE_CODE": "de"},
    ],
)
def test_the_host_has_nothing_to_migrate(
    project: Make, empty_database: str, settings: dict[str, object]
) -> None:
    printed = project(empty_database, **settings).manage("makemigrations", "--check", "--dry-run")
    assert "No changes detected" in printed


def test_only_the_database_that_the_settings_name_is_touched(
    project: Make, server: str, empty_database: str, expected: list[str]
) -> None:
    elsewhere = create_database(server, "template0")
    try:
        host = project(
            empty_database,
            also={"memories": elsewhere, "scratch": "sqlite"},
            SYMFONIC_PG_DATABASE="memories",
            DATABASE_ROUTERS=["tests.django.host.routers.ShopOnDefault"],
        )
        for alias in ("default", "memories", "scratch"):
            host.manage("migrate", "--database", alias)
        assert catalogue(elsewhere) == expected
        assert rows(elsewhere, "SELECT to_regclass('shop_order')") == [(None,)]
        assert rows(
            empty_database, "SELECT to_regnamespace('symfonic'), to_regclass('shop_order')::text"
        ) == [(None, "shop_order")]
        host.manage("makemigrations", "--check")
    finally:
        drop_database(server, elsewhere)
