"""Every way to the schema ends in the same catalogue, and every way back ends in an empty one."""

from __future__ import annotations

import asyncio
import subprocess
import sys
from pathlib import Path

import psycopg
import pytest
from alembic.config import Config
from alembic.script import ScriptDirectory

from symfonic_pg.assets import asset_dir
from symfonic_pg.memory.errors import MemoryContractError, MemoryUnavailable
from symfonic_pg.postgres.embedded import embedded_binaries
from symfonic_pg.postgres.migrations import (
    MigrationError,
    current_revision,
    downgrade,
    head_revision,
    migrate,
    migration_sql,
)
from tests.conftest import with_database
from tests.migration.catalogue import catalogue

ROOT = Path(__file__).parents[2]
EXTENSIONS = "SELECT count(*) FROM pg_extension WHERE extname = 'vector'"
DRIVERS = ["psycopg", "asyncpg"]


def by(driver: str, dsn: str) -> str:
    return dsn.replace("postgresql://", f"postgresql+{driver}://")


def run(dsn: str, *statements: str) -> None:
    with psycopg.connect(dsn, autocommit=True) as connection:
        for statement in statements:
            connection.execute(statement)


def one(dsn: str, query: str) -> object:
    with psycopg.connect(dsn) as connection:
        row = connection.execute(query).fetchone()
        return row[0] if row else None


def alembic(dsn: str, *arguments: str) -> str:
    finished = subprocess.run(
        [sys.executable, "-m", "alembic", *arguments],
        cwd=ROOT, env={"SYMFONIC_PG_DSN": dsn, "PATH": ""}, capture_output=True, text=True, check=False,
    )  # fmt: skip
    assert finished.returncode == 0, finished.stdout + finished.stderr
    return finished.stdout


def todays_schema(schema: str = "symfonic", vectors: str = "public") -> str:
    """schema.sql, then the functions and the views, the way a reader of sql/ puts them together."""
    sql = asset_dir("sql")
    files = [sql / "schema.sql", *sorted(sql.glob("functions/*.sql")), *sorted(sql.glob("views/*.sql"))]
    text = "\n".join(file.read_text(encoding="utf-8") for file in files)
    # A function may call one that stands further down.
    return "SET check_function_bodies = off;\n" + text.replace("{schema}", f'"{schema}"').replace(
        "{vectors}", f'"{vectors}"'
    )


@pytest.fixture
def expected(database: str) -> list[str]:
    return catalogue(database)


@pytest.mark.parametrize("driver", DRIVERS)
def test_either_driver_builds_the_same_schema(empty_database: str, expected: list[str], driver: str) -> None:
    migrate(by(driver, empty_database))
    assert catalogue(empty_database) == expected
    assert expected
    assert current_revision(by(driver, empty_database)) == head_revision()


def test_plain_alembic_builds_the_same_schema(empty_database: str, expected: list[str]) -> None:
    alembic(empty_database, "upgrade", "head")
    assert catalogue(empty_database) == expected
    assert head_revision() in alembic(empty_database, "current")


def test_the_schema_files_are_what_the_migrations_build(empty_database: str, expected: list[str]) -> None:
    run(empty_database, "CREATE EXTENSION vector", "CREATE SCHEMA symfonic", todays_schema())
    assert catalogue(empty_database) == expected


def test_up_down_and_up_again(empty_database: str, expected: list[str]) -> None:
    migrate(empty_database)
    downgrade(empty_database)
    assert catalogue(empty_database) == []
    assert one(empty_database, "SELECT count(*) FROM symfonic.symfonic_pg_version") == 0
    assert current_revision(empty_database) is None
    migrate(empty_database)
    assert catalogue(empty_database) == expected


def test_a_downgrade_leaves_other_peoples_objects_in_the_schema(database: str) -> None:
    run(database, "CREATE TABLE symfonic.theirs (n integer)", "INSERT INTO symfonic.theirs VALUES (1)")
    downgrade(database)
    assert one(database, "SELECT n FROM symfonic.theirs") == 1


def test_migrating_twice_changes_nothing(database: str, expected: list[str]) -> None:
    migrate(database)
    assert catalogue(database) == expected


@pytest.mark.parametrize("source", ["function", "command"])
def test_the_printed_script_builds_the_same_schema(
    empty_database: str, expected: list[str], tmp_path: Path, source: str
) -> None:
    script = tmp_path / "migrate.sql"
    printed = migration_sql() if source == "function" else alembic("", "upgrade", "head", "--sql")
    script.write_text(printed)
    subprocess.run(
        [embedded_binaries() / "psql", "-Xq", "-v", "ON_ERROR_STOP=1", "-d", empty_database, "-f", script],
        check=True, capture_output=True,
    )  # fmt: skip
    assert catalogue(empty_database) == expected
    assert current_revision(empty_database) == head_revision()


def test_the_printed_script_creates_the_schema_before_the_version_table() -> None:
    script = migration_sql(schema="brain")
    assert script.index('CREATE SCHEMA "brain"') < script.index("CREATE TABLE brain.symfonic_pg_version")


@pytest.mark.parametrize("driver", DRIVERS)
def test_another_schema_and_the_extension_elsewhere(
    empty_database: str, expected: list[str], driver: str
) -> None:
    run(
        empty_database,
        "CREATE SCHEMA extensions",
        "CREATE EXTENSION vector WITH SCHEMA extensions",
        "DROP SCHEMA public",
    )
    migrate(by(driver, empty_database), schema="Brain")
    assert current_revision(empty_database, schema="Brain") == head_revision()
    assert current_revision(empty_database) is None
    assert len(catalogue(empty_database, "Brain")) == len(expected)
    downgrade(by(driver, empty_database), schema="Brain")
    assert catalogue(empty_database, "Brain") == []


def test_two_schemas_in_one_database(database: str, expected: list[str]) -> None:
    migrate(database, schema="second")
    assert len(catalogue(database, "second")) == len(expected)
    downgrade(database, schema="second")
    assert catalogue(database) == expected


def test_the_extension_goes_where_it_is_told(empty_database: str) -> None:
    run(empty_database, "CREATE SCHEMA extensions")
    migrate(empty_database, vectors="extensions")
    home = "SELECT extnamespace::regnamespace::text FROM pg_extension WHERE extname = 'vector'"
    assert one(empty_database, home) == "extensions"
    downgrade(empty_database)
    assert one(empty_database, EXTENSIONS) == 1


@pytest.mark.parametrize("driver", DRIVERS)
def test_a_migration_that_fails_leaves_nothing(empty_database: str, driver: str) -> None:
    run(empty_database, "CREATE SCHEMA symfonic", "CREATE TABLE symfonic.memories (mine integer)")
    with pytest.raises(MigrationError, match="memories"):
        migrate(by(driver, empty_database))
    relations = "SELECT count(*) FROM pg_class WHERE relnamespace = 'symfonic'::regnamespace"
    assert one(empty_database, relations) == 1
    assert one(empty_database, EXTENSIONS) == 0


def test_migrators_that_race_both_succeed(empty_database: str, expected: list[str]) -> None:
    code = "import sys; from symfonic_pg.postgres.migrations import migrate; migrate(sys.argv[1])"
    racers = [
        subprocess.Popen([sys.executable, "-c", code, by(driver, empty_database)], cwd=ROOT)
        for driver in DRIVERS
    ]
    assert [racer.wait(60) for racer in racers] == [0, 0]
    assert catalogue(empty_database) == expected


@pytest.mark.parametrize("driver", DRIVERS)
async def test_it_may_be_called_where_an_event_loop_runs(empty_database: str, driver: str) -> None:
    migrate(by(driver, empty_database))
    assert await asyncio.to_thread(current_revision, by(driver, empty_database)) == head_revision()


@pytest.mark.parametrize("driver", DRIVERS)
def test_a_server_out_of_reach_is_unavailable(driver: str, tmp_path: Path) -> None:
    for host in ("127.0.0.1:1/postgres", f"/postgres?host={tmp_path}"):
        with pytest.raises(MemoryUnavailable):
            migrate(f"postgresql+{driver}://nobody@{host}")


@pytest.mark.parametrize("driver", DRIVERS)
def test_a_database_that_does_not_exist_is_unavailable(server: str, driver: str) -> None:
    with pytest.raises(MemoryUnavailable, match="no_such_database"):
        migrate(by(driver, with_database(server, "no_such_database")))


@pytest.mark.parametrize("dsn", ["", "host=/tmp", "mysql://u@h/d", "postgresql+psycopg2://u@h/d"])
def test_what_is_no_dsn_is_refused(dsn: str) -> None:
    with pytest.raises(MemoryContractError, match="postgresql://"):
        migrate(dsn)


def test_an_unknown_revision_is_refused(database: str) -> None:
    with pytest.raises(MigrationError, match="9999"):
        migrate(database, revision="9999")


def test_the_head_read_from_file_names_is_alembics() -> None:
    config = Config()
    config.set_main_option("script_location", str(asset_dir("alembic")))
    scripts = ScriptDirectory.from_config(config)
    assert scripts.get_heads() == [head_revision()]
    for script in scripts.walk_revisions():
        assert (asset_dir("sql") / "migrations" / f"{Path(script.path).stem}.sql").is_file()
