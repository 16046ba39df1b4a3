"""The SQL files of the migrations, run on a connection of SQLAlchemy's as they are."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from typing import TYPE_CHECKING, Any

from symfonic_pg.assets import asset_dir
from symfonic_pg.memory.errors import MemoryUnavailable, SymfonicError
from symfonic_pg.postgres.statements import load_statement, quoted_schema

if TYPE_CHECKING:
    from sqlalchemy import Connection

# Not Alembic's default name: a host whose search_path holds this schema would take the table for its own.
VERSION_TABLE = "symfonic_pg_version"
# How long a migrator waits for another one, and how often it looks, in seconds.
PATIENCE = 600.0
LOOK = 0.2


class MigrationError(SymfonicError):
    """The database refused a migration; the message ends with the statement that helps, where one does."""


def filled_script(name: str, schema: str, vectors: str) -> str:
    """The text of a file of sql/migrations for these schemas."""
    text = (asset_dir("sql") / "migrations" / name).read_text(encoding="utf-8")
    return text.replace("{schema}", quoted_schema(schema)).replace("{vectors}", quoted_schema(vectors))


def run_script(connection: Connection, script: str) -> None:
    """Run a text of any number of statements."""
    # SQLAlchemy prepares statements on asyncpg and hands an empty parameter list to psycopg: both refuse a
    # file of several statements, and psycopg then reads a percent sign as a placeholder.
    if connection.dialect.driver == "asyncpg":
        adapted: Any = connection.connection.dbapi_connection
        adapted.run_async(lambda driver_connection: driver_connection.execute(script))
    else:
        connection.exec_driver_sql(script, execution_options={"no_parameters": True})


def first_value(connection: Connection, statement: str, schema: str = "symfonic", **names: str) -> Any:
    """The first column of the first row of a statement without parameters, None without a row."""
    return connection.exec_driver_sql(load_statement(statement, schema=schema, **names).text).scalar()


@contextmanager
def in_turn(
    begin: Callable[[], AbstractContextManager[Any]], connection: Connection, patience: float = PATIENCE
) -> Iterator[None]:
    """Enter the transaction that `begin` begins, and go on in it when no other migrator is at work.

    Until then it is left and begun again: one that waits may hold a snapshot, and an index that the other
    migrator builds concurrently would wait for its end. MemoryUnavailable after `patience` seconds.
    """
    deadline = time.monotonic() + patience
    while True:
        with begin():
            # It goes through SQLAlchemy: with asyncpg this first statement is what begins the transaction.
            if first_value(connection, "migrate_try_lock"):
                yield
                return
        if time.monotonic() > deadline:
            raise MemoryUnavailable(f"another migration of this database has been at work for {patience:g} s")
        time.sleep(LOOK)


def prepare(connection: Connection, schema: str, vectors: str | None) -> str:
    """Make schema and extension, and give the schema that pgvector lives in.

    `vectors` is where it goes in a database that has none.
    """
    home = first_value(connection, "migrate_vectors") or vectors or "public"
    run_script(connection, filled_script("prepare.sql", schema, home))
    return str(home)
