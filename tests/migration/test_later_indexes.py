"""A made-up later revision that indexes a table which may be large, outside of any transaction."""

from __future__ import annotations

import shutil
import subprocess
import sys
import textwrap
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import psycopg
import pytest

from symfonic_pg import assets
from symfonic_pg.assets import asset_dir
from symfonic_pg.memory import SymfonicError
from symfonic_pg.postgres.embedded import embedded_binaries
from symfonic_pg.postgres.migration_guest import upgrade_on
from symfonic_pg.postgres.migration_indexes import SMALL, index_builds
from symfonic_pg.postgres.migrations import (
    MigrationError,
    current_revision,
    head_revision,
    migrate,
    migration_sql,
)
from tests.integration.blocking_kinds import blocking_engine
from tests.migration.catalogue import catalogue
from tests.migration.test_migrations import DRIVERS, ROOT, by, one, run

LATER = "9999"
INDEXES = """\
-- Kinds and texts, for somebody who asks for them; a semicolon; in a comment ends nothing.
CREATE INDEX CONCURRENTLY IF NOT EXISTS scopes_later ON {schema}.scopes (kind, depth);
CREATE UNIQUE INDEX CONCURRENTLY IF NOT EXISTS models_later
    ON {schema}.models (dimension) WHERE dimension > 4;
"""
REVISION = """\
from symfonic_pg.postgres.migration_environment import run_file
from symfonic_pg.postgres.migration_indexes import build_indexes

revision = "9999"
down_revision = "{before}"
branch_labels = None
depends_on = None


def upgrade() -> None:
    {upgrade}


def downgrade() -> None:
    pass
"""
FILL = f"""
    INSERT INTO symfonic.scopes (tenant_id, kind, level_id, depth)
    SELECT 'org:' || n, 'org', n::text, 1 FROM generate_series(1, {SMALL + 1}) AS n
"""
BUILT = "SELECT count(*) FROM pg_index WHERE indisvalid AND indexrelid::regclass::text LIKE '%\\_later'"


@pytest.fixture
def later(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Callable[..., Path]]:
    """A function that makes the package one revision longer; it gives the package's folder."""
    before = head_revision()

    def lengthen(file: str = INDEXES, upgrade: str = 'build_indexes("9999_later.sql")') -> Path:
        package = tmp_path / "package"
        for name in ("sql", "alembic"):
            shutil.copytree(
                asset_dir(name), package / f"_{name}", ignore=shutil.ignore_patterns("__pycache__")
            )
        (package / "_sql" / "migrations" / "9999_later.sql").write_text(file)
        (package / "_alembic" / "versions" / "9999_later.py").write_text(
            REVISION.replace("{before}", before).replace("{upgrade}", upgrade)
        )
        monkeypatch.setattr(assets, "_PACKAGE", package)
        asset_dir.cache_clear()
        head_revision.cache_clear()
        return package

    yield lengthen
    monkeypatch.undo()
    asset_dir.cache_clear()
    head_revision.cache_clear()


def is_free(dsn: str) -> object:
    """Whether nobody holds the turn to migrate."""
    return one(dsn, "SELECT pg_try_advisory_lock(hashtextextended('symfonic_pg migrate', 0))")


@pytest.mark.parametrize("driver", DRIVERS)
def test_a_small_table_is_indexed_in_the_migrations_transaction(
    empty_database: str, later: Callable[..., Path], driver: str
) -> None:
    later()
    migrate(by(driver, empty_database))
    assert current_revision(empty_database) == LATER
    assert one(empty_database, BUILT) == 2


def test_a_revision_that_fails_beside_small_tables_leaves_nothing(
    empty_database: str, later: Callable[..., Path]
) -> None:
    later(upgrade='build_indexes("9999_later.sql"); run_file("missing.sql")')
    with pytest.raises(Exception, match="missing"):
        migrate(empty_database)
    assert one(empty_database, "SELECT to_regnamespace('symfonic') IS NULL")


@pytest.mark.parametrize("driver", DRIVERS)
def test_a_large_table_is_indexed_while_it_is_written(
    database: str, later: Callable[..., Path], driver: str
) -> None:
    run(database, FILL)
    later()
    builder = threading.Thread(target=migrate, args=(by(driver, database),))
    with psycopg.connect(database) as old:
        # The build waits for this transaction; a plain one would as well, and all writers would wait for it.
        old.execute("INSERT INTO symfonic.models (name, dimension) VALUES ('old', 3)")
        old.execute("UPDATE symfonic.scopes SET depth = 1 WHERE tenant_id = 'org:1'")
        builder.start()
        _until(lambda: one(database, "SELECT count(*) FROM pg_index WHERE NOT indisvalid") == 1)
        with psycopg.connect(database) as writer:
            writer.execute("SET lock_timeout = '1s'")
            writer.execute(
                "INSERT INTO symfonic.scopes (tenant_id, kind, level_id, depth) VALUES ('a:b', 'a', 'b', 1)"
            )
        assert builder.is_alive()
        assert not is_free(database)
    builder.join(60)
    assert current_revision(database) == LATER
    assert one(database, BUILT) == 2
    assert is_free(database)


def test_a_build_that_failed_is_done_anew_by_the_next_attempt(
    database: str, later: Callable[..., Path]
) -> None:
    run(database, FILL)
    run(database, "INSERT INTO symfonic.models (name, dimension) VALUES ('one', 5), ('two', 5)")
    before = head_revision()
    later()
    with pytest.raises(MigrationError, match="models_later"):
        migrate(database)
    assert current_revision(database) == before
    assert one(database, "SELECT count(*) FROM pg_index WHERE NOT indisvalid") == 1
    assert is_free(database)
    run(database, "DELETE FROM symfonic.models WHERE name = 'two'")
    migrate(database)
    assert current_revision(database) == LATER
    assert one(database, BUILT) == 2
    migrate(database)


def test_a_second_migrator_waits_for_the_first_and_has_nothing_left_to_do(
    database: str, later: Callable[..., Path]
) -> None:
    run(database, FILL)
    package = later()
    script = textwrap.dedent(f"""
        import pathlib, sys
        from symfonic_pg import assets
        assets._PACKAGE = pathlib.Path({str(package)!r})
        from symfonic_pg.postgres.migrations import migrate
        migrate(sys.argv[1])
    """)
    clients = (
        "SELECT count(*) FROM pg_stat_activity"
        " WHERE datname = current_database() AND backend_type = 'client backend'"
    )
    racers: list[subprocess.Popen[bytes]] = []
    try:
        with psycopg.connect(database) as old:
            old.execute("UPDATE symfonic.scopes SET depth = 1 WHERE tenant_id = 'org:1'")
            for driver in DRIVERS:
                racers.append(
                    subprocess.Popen([sys.executable, "-c", script, by(driver, database)], cwd=ROOT)
                )
            _until(lambda: one(database, "SELECT count(*) FROM pg_index WHERE NOT indisvalid") == 1)
            # The old one, who asks here, the builder, and the other migrator.
            _until(lambda: int(str(one(database, clients))) >= 4)
            time.sleep(0.5)
        assert [racer.wait(60) for racer in racers] == [0, 0]
    finally:
        for racer in racers:
            racer.kill()
            racer.wait()
    assert one(database, BUILT) == 2


def test_a_hosts_transaction_cannot_hold_a_concurrent_build(
    database: str, later: Callable[..., Path]
) -> None:
    run(database, FILL)
    before = head_revision()
    later()
    engine = blocking_engine(database)
    with engine.connect() as connection:
        with connection.begin(), pytest.raises(MigrationError, match=r"scopes.*symfonic-pg migrate"):
            upgrade_on(connection)
        assert current_revision(database) == before
        upgrade_on(connection)
        assert current_revision(database) == LATER
        assert connection.exec_driver_sql("SHOW lock_timeout").scalar() == "0"
        assert connection.exec_driver_sql("SHOW statement_timeout").scalar() == "0"
    engine.dispose()
    assert is_free(database)


def test_a_hosts_timeouts_do_not_end_a_build_and_are_back_afterwards(
    database: str, later: Callable[..., Path]
) -> None:
    run(database, FILL)
    later()
    engine = blocking_engine(database)
    with engine.connect() as connection:
        connection.exec_driver_sql("SET lock_timeout = '40ms'")
        connection.exec_driver_sql("SET statement_timeout = '60s'")
        connection.commit()
        with psycopg.connect(database) as old:
            old.execute("UPDATE symfonic.scopes SET depth = 1 WHERE tenant_id = 'org:1'")
            release = threading.Timer(0.5, old.rollback)
            release.start()
            upgrade_on(connection)
            release.join()
        assert connection.exec_driver_sql("SHOW lock_timeout").scalar() == "40ms"
        assert connection.exec_driver_sql("SHOW statement_timeout").scalar() == "1min"
    engine.dispose()
    assert one(database, BUILT) == 2


def test_the_printed_script_leaves_its_transaction_for_the_build(
    empty_database: str, later: Callable[..., Path], tmp_path: Path
) -> None:
    later()
    script = migration_sql()
    build = script.index("CREATE INDEX CONCURRENTLY")
    assert script.rindex("COMMIT;", 0, build) > script.rindex("BEGIN;", 0, build)
    assert "BEGIN;" in script[build:]
    (tmp_path / "migrate.sql").write_text(script)
    subprocess.run(
        [embedded_binaries() / "psql", "-Xq", "-v", "ON_ERROR_STOP=1", "-d", empty_database,
         "-f", tmp_path / "migrate.sql"],
        check=True, capture_output=True,
    )  # fmt: skip
    assert current_revision(empty_database) == LATER
    assert one(empty_database, BUILT) == 2


def test_both_ways_to_build_end_in_the_same_catalogue(
    database: str, empty_database: str, later: Callable[..., Path]
) -> None:
    run(database, FILL)
    later()
    migrate(database)
    migrate(empty_database)
    assert catalogue(database) == catalogue(empty_database)


def test_a_revision_never_waits_long_for_a_table_in_use(database: str, later: Callable[..., Path]) -> None:
    later(
        file="CREATE TABLE {schema}.seen AS SELECT current_setting('lock_timeout') AS lock_timeout;",
        upgrade='run_file("9999_later.sql")',
    )
    migrate(database)
    assert one(database, "SELECT lock_timeout FROM symfonic.seen") == "10s"


def test_after_a_build_the_next_revision_is_as_impatient_and_as_alone(
    database: str, later: Callable[..., Path]
) -> None:
    run(database, FILL)
    package = later(upgrade='build_indexes("9999_later.sql"); run_file("after.sql")')
    (package / "_sql" / "migrations" / "after.sql").write_text(
        "CREATE TABLE {schema}.seen AS"
        " SELECT current_setting('lock_timeout') AS lock_timeout, count(*) AS held FROM pg_locks"
        " WHERE locktype = 'advisory' AND pid = pg_backend_pid();"
    )
    migrate(database)
    assert one(database, "SELECT (lock_timeout, held) = ('10s', 1) FROM symfonic.seen")


@pytest.mark.parametrize(
    "file",
    [
        "CREATE INDEX later ON {schema}.scopes (kind);",
        "CREATE INDEX CONCURRENTLY later ON {schema}.scopes (kind);",
        "CREATE INDEX CONCURRENTLY IF NOT EXISTS later ON other.scopes (kind);",
        "CREATE INDEX CONCURRENTLY IF NOT EXISTS a ON {schema}.scopes (kind); DROP TABLE {schema}.scopes;",
    ],
)
def test_a_file_of_indexes_holds_nothing_else(later: Callable[..., Path], file: str) -> None:
    later(file=file)
    with pytest.raises(SymfonicError, match=r"9999_later\.sql"):
        index_builds("9999_later.sql", "symfonic", "public")


def test_what_is_built_is_told_apart(later: Callable[..., Path]) -> None:
    later()
    first, second = index_builds("9999_later.sql", "brain", "public")
    assert (first.name, first.table) == ("scopes_later", "scopes")
    assert first.at_once == 'CREATE INDEX IF NOT EXISTS scopes_later ON "brain".scopes (kind, depth)'
    assert second.statement.startswith("CREATE UNIQUE INDEX CONCURRENTLY IF NOT EXISTS models_later")


def _until(condition: Callable[[], bool], seconds: float = 60.0) -> None:
    deadline = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < deadline
        time.sleep(0.05)
