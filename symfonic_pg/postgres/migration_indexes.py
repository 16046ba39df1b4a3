"""Indexes of a later revision, built while their tables are read and written."""

from __future__ import annotations

import re
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from symfonic_pg.assets import asset_dir
from symfonic_pg.memory.errors import SymfonicError
from symfonic_pg.postgres.migration_scripts import (
    MigrationError,
    filled_script,
    first_value,
    prepare,
    run_script,
)
from symfonic_pg.postgres.statements import load_statement, quoted_schema

if TYPE_CHECKING:
    from alembic.runtime.migration import MigrationContext
    from sqlalchemy import Connection

# Up to so many rows a table is indexed in the migration's transaction: that is over in a moment.
SMALL = 10_000
# A concurrent build waits for whatever transaction was there before it, and blocks nobody meanwhile.
PATIENT = {"lock_timeout": "1h", "statement_timeout": "0"}

_CONCURRENTLY = " CONCURRENTLY"
_BUILD = re.compile(
    r"CREATE (?:UNIQUE )?INDEX CONCURRENTLY IF NOT EXISTS (?P<name>\w+)"
    r"\s+ON \{schema\}\.(?P<table>\w+)\b[^;]+"
)


@dataclass(frozen=True, slots=True)
class IndexBuild:
    """One index: its name, its table, and the statement that builds it concurrently."""

    name: str
    table: str
    statement: str

    @property
    def at_once(self) -> str:
        """The statement that builds it inside a transaction, while writers wait."""
        return self.statement.replace(_CONCURRENTLY, "", 1)


def index_builds(name: str, schema: str, vectors: str) -> list[IndexBuild]:
    """What a file of sql/migrations builds that holds nothing but CREATE INDEX CONCURRENTLY IF NOT EXISTS.

    SymfonicError for a file that holds anything else.
    """
    text = (asset_dir("sql") / "migrations" / name).read_text(encoding="utf-8")
    builds = []
    for part in re.sub(r"--[^\n]*", "", text).split(";"):
        if not part.strip():
            continue
        build = _BUILD.fullmatch(part.strip())
        if build is None:
            raise SymfonicError(f"{name} may hold nothing but concurrent builds of named indexes")
        filled = part.strip().replace("{schema}", quoted_schema(schema))
        builds.append(
            IndexBuild(build["name"], build["table"], filled.replace("{vectors}", quoted_schema(vectors)))
        )
    return builds


def build_indexes(name: str) -> None:
    """Build the indexes of a file inside a revision of Alembic's, which should do nothing else.

    Small tables are indexed in the migration's transaction. Otherwise that is committed first, the indexes
    are built outside of any, and a new one goes on; what a failure leaves behind is built anew by the next
    attempt. MigrationError where the transaction is somebody else's.
    """
    from alembic import op

    migration = op.get_context()
    schema, vectors = migration.opts["version_table_schema"], migration.opts["vectors_schema"]
    builds = index_builds(name, schema, vectors)
    if migration.as_sql:
        _print(migration, builds, filled_script("prepare.sql", schema, vectors))
        return
    connection = op.get_bind()
    large = sorted({build.table for build in builds if _is_large(connection, schema, build.table)})
    if not large:
        for build in builds:
            run_script(connection, build.at_once)
    elif not migration.opts["own_transaction"]:
        raise MigrationError(
            f"{name} builds indexes on {', '.join(large)} concurrently, which no transaction can hold:"
            " run `symfonic-pg migrate` first"
        )
    else:
        with _outside(migration, schema, vectors) as autocommitting:
            _build(autocommitting, schema, builds)


def _print(migration: MigrationContext, builds: list[IndexBuild], preparation: str) -> None:
    with migration.autocommit_block():
        for build in builds:
            migration.impl.static_output(f"{build.statement};")
    migration.impl.static_output(preparation)


def _is_large(connection: Connection, schema: str, table: str) -> bool:
    rows: int = first_value(connection, "migrate_count", schema, table=table)
    return rows > SMALL


@contextmanager
def _outside(migration: MigrationContext, schema: str, vectors: str) -> Iterator[Connection]:
    """Leave the transaction for a block; the turn to migrate is kept throughout."""
    held: Any = migration.connection
    first_value(held, "migrate_keep_lock")
    try:
        with migration.autocommit_block():
            connection: Any = migration.connection
            with _patient(connection):
                yield connection
        prepare(held, schema, vectors)
    finally:
        first_value(held, "migrate_drop_lock")


@contextmanager
def _patient(connection: Connection) -> Iterator[None]:
    """No timeout of the host's ends a build that has to take long."""
    from sqlalchemy import func, select

    before: dict[str, Any] = {name: connection.scalar(select(func.current_setting(name))) for name in PATIENT}
    for name, value in PATIENT.items():
        connection.execute(select(func.set_config(name, value, False)))
    try:
        yield
    finally:
        for name, value in before.items():
            connection.execute(select(func.set_config(name, value, False)))


def _build(connection: Connection, schema: str, builds: list[IndexBuild]) -> None:
    unfinished = connection.exec_driver_sql(
        load_statement("migrate_invalid_indexes", schema=schema).text
    ).scalars()
    broken = set(unfinished)
    for build in builds:
        if build.name in broken:
            run_script(connection, load_statement("migrate_drop_index", schema=schema, index=build.name).text)
        run_script(connection, build.statement)
