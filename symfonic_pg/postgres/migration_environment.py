"""What env.py and the revisions stand on: a connection by either driver, and SQL files run as they are."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Callable, Coroutine, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, TypeVar

from symfonic_pg.memory.errors import MemoryUnavailable, SymfonicError
from symfonic_pg.postgres.drivers import choose_driver
from symfonic_pg.postgres.dsn import for_asyncpg, normalise
from symfonic_pg.postgres.migration_scripts import (
    VERSION_TABLE,
    MigrationError,
    filled_script,
    first_value,
    in_turn,
    prepare,
    run_script,
)

if TYPE_CHECKING:
    from alembic.runtime.environment import EnvironmentContext
    from sqlalchemy import Connection

Result = TypeVar("Result")

CONNECT_TIMEOUT = 10.0
# SQLSTATEs of a server that cannot be asked: connection, resources, shutdown, login, no such database.
_UNAVAILABLE = ("08", "53", "57P", "28", "3D")


@dataclass(frozen=True)
class Target:
    """What to migrate: a database, the schema in it, and where pgvector goes if the database has none."""

    dsn: str
    schema: str = "symfonic"
    vectors: str | None = None


def run_online(context: EnvironmentContext, target: Target) -> None:
    """Run the revisions that Alembic planned, all in one transaction behind one advisory lock."""

    def work(connection: Connection) -> None:
        context.configure(
            connection=connection,
            version_table=VERSION_TABLE,
            version_table_schema=target.schema,
            own_transaction=True,
        )
        with in_turn(context.begin_transaction, connection):
            vectors = prepare(connection, target.schema, target.vectors)
            context.get_context().opts["vectors_schema"] = vectors
            context.run_migrations()

    _on_connection(target, work)


def print_script(context: EnvironmentContext, target: Target) -> None:
    """Print what `run_online` would run on an empty database, the schema before Alembic's version table."""
    vectors = target.vectors or "public"
    context.configure(
        dialect_name="postgresql",
        version_table=VERSION_TABLE,
        version_table_schema=target.schema,
        vectors_schema=vectors,
        literal_binds=True,
    )
    with context.begin_transaction():
        context.get_context().impl.static_output(filled_script("prepare.sql", target.schema, vectors))
        context.run_migrations()


def run_file(name: str) -> None:
    """Run one file of sql/migrations inside a revision, online or as output."""
    from alembic import op

    migration = op.get_context()
    script = filled_script(name, migration.opts["version_table_schema"], migration.opts["vectors_schema"])
    if migration.as_sql:
        # op.execute would read every colon in the file as a bind parameter.
        migration.impl.static_output(script)
    else:
        run_script(op.get_bind(), script)


def read_revision(target: Target) -> str | None:
    """The revision that the version table names, None without the table or with an empty one."""

    def work(connection: Connection) -> str | None:
        if not first_value(connection, "migrate_versioned", target.schema):
            return None
        revision: str | None = first_value(connection, "migrate_revision", target.schema)
        return revision

    return _on_connection(target, work)


def _on_connection(target: Target, work: Callable[[Connection], Result]) -> Result:
    driver = choose_driver(target.dsn, preferred=("psycopg", "asyncpg"))
    run = _on_asyncpg if driver == "asyncpg" else _on_psycopg
    with translated():
        return run(target.dsn, work)


def _on_psycopg(dsn: str, work: Callable[[Connection], Result]) -> Result:
    import psycopg
    from sqlalchemy import NullPool, create_engine

    # The driver reads the DSN itself: libpq's forms (sockets, several hosts) are more than SQLAlchemy's.
    engine = create_engine(
        "postgresql+psycopg://",
        creator=lambda: psycopg.connect(normalise(dsn), connect_timeout=int(CONNECT_TIMEOUT)),
        poolclass=NullPool,
    )
    with engine.connect() as connection:
        return work(connection)


def _on_asyncpg(dsn: str, work: Callable[[Connection], Result]) -> Result:
    import asyncpg
    from sqlalchemy import NullPool
    from sqlalchemy.ext.asyncio import create_async_engine

    async def run() -> Result:
        engine = create_async_engine(
            "postgresql+asyncpg://",
            async_creator=lambda: asyncpg.connect(for_asyncpg(dsn), timeout=CONNECT_TIMEOUT),
            poolclass=NullPool,
        )
        async with engine.connect() as connection:
            return await connection.run_sync(work)

    return _finish(run)


def _finish(run: Callable[[], Coroutine[Any, Any, Result]]) -> Result:
    """Run a coroutine to its end, beside the event loop if this thread already runs one."""
    try:
        asyncio.get_running_loop()
    except RuntimeError:
        return asyncio.run(run())
    outcome: list[Result] = []
    errors: list[BaseException] = []

    def body() -> None:
        try:
            outcome.append(asyncio.run(run()))
        except BaseException as exc:
            errors.append(exc)

    thread = threading.Thread(target=body, name="symfonic-pg-migrate")
    thread.start()
    thread.join()
    if errors:
        raise errors[0]
    return outcome[0]


@contextmanager
def translated() -> Iterator[None]:
    """Raise what the block's database errors mean for a migration, with the hint where there is one."""
    from sqlalchemy.exc import DBAPIError

    try:
        yield
    except SymfonicError:
        raise
    except OSError as exc:
        raise MemoryUnavailable(f"the server cannot be reached: {exc}") from exc
    except Exception as exc:
        database_error = _database_error(exc)
        if database_error is None and not isinstance(exc, DBAPIError):
            raise
        raise _translate(database_error or exc) from exc


def _database_error(exc: BaseException | None) -> Any:
    """The driver's own error, which knows SQLSTATE and hint, under what SQLAlchemy wrapped around it."""
    while exc is not None:
        if getattr(exc, "sqlstate", None) and not hasattr(exc, "pgcode"):
            return exc
        exc = getattr(exc, "orig", None) or exc.__cause__
    return None


def _translate(exc: Any) -> SymfonicError:
    state = getattr(exc, "sqlstate", None)
    if state is None or state.startswith(_UNAVAILABLE):
        return MemoryUnavailable(f"the server cannot be asked: {getattr(exc, 'orig', exc)}")
    diagnosis = getattr(exc, "diag", None)
    message = diagnosis.message_primary if diagnosis else getattr(exc, "message", str(exc))
    hint = diagnosis.message_hint if diagnosis else getattr(exc, "hint", None)
    return MigrationError(f"{message}; what helps: {hint}" if hint else str(message))
