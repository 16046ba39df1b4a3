"""SQLAlchemy without asyncio, on the dialect of psycopg 3."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import AbstractContextManager, contextmanager
from typing import Any, TypeAlias

import psycopg
from sqlalchemy import Connection, Engine, exc
from sqlalchemy.orm import Session, scoped_session

from symfonic_pg.memory.errors import MemoryContractError
from symfonic_pg.postgres.executors.base import Executor, Failure
from symfonic_pg.postgres.executors.blocking import BlockingExecutor, BlockingPoolExecutor
from symfonic_pg.postgres.executors.blocking_psycopg import stands
from symfonic_pg.postgres.executors.psycopg import PsycopgDriver

Owner: TypeAlias = Connection | Session


def executor_on(owner: object, *, timeout: float) -> Executor | None:
    """The executor for an engine, connection or session without asyncio; None for anything else."""
    if isinstance(owner, scoped_session):
        owner = owner()
    if isinstance(owner, Engine):
        _checked(owner)
        return BlockingPoolExecutor(BlockingSqlAlchemy(), _EnginePool(owner), timeout=timeout)
    if isinstance(owner, Connection):
        _checked(owner)
    if isinstance(owner, (Connection, Session)):
        return BlockingExecutor(BlockingSqlAlchemy(), owner, timeout=timeout)
    return None


class BlockingSqlAlchemy:
    """Goes through SQLAlchemy as far as its transaction is concerned, and to psycopg for the rest.

    SQLAlchemy's own record of a transaction begins late: without it the owner's commit() and rollback() would
    do nothing.
    """

    def native(self, owner: Owner) -> psycopg.Connection[Any]:
        connection = _connection(owner)
        if not connection.in_transaction():
            connection.begin()
        native: psycopg.Connection[Any] = connection.connection.driver_connection  # type: ignore[assignment]
        return native

    def begin(self, owner: Owner) -> AbstractContextManager[object]:
        connection = _connection(owner)
        return _autocommit_block(connection) or connection.begin()

    @contextmanager
    def savepoint(self, owner: Owner) -> Iterator[object]:
        connection = _connection(owner)
        with _autocommit_block(connection) or connection.begin_nested():
            yield connection

    def lost(self, owner: Owner) -> None:
        # What SQLAlchemy does when it meets the loss itself: the owner's rollback() then works.
        _connection(owner).invalidate()

    def failure(self, error: Exception) -> Failure | None:
        if isinstance(error, exc.DBAPIError):
            # The parameters are memories: they do not belong into a log.
            error.hide_parameters = True
            if isinstance(error.orig, psycopg.Error):
                return PsycopgDriver().failure(error.orig)
            return Failure(None, str(error)) if error.connection_invalidated else None
        if isinstance(error, (exc.TimeoutError, exc.PendingRollbackError, exc.ResourceClosedError)):
            return Failure(None, str(error))
        return PsycopgDriver().failure(error)


class _EnginePool:
    """The engine's pool; its own rules say how a connection is made, checked and reset."""

    def __init__(self, engine: Engine) -> None:
        self._engine = engine

    @contextmanager
    def lend(self, timeout: float) -> Iterator[Owner]:
        with self._engine.connect() as connection:
            while not stands(_native(connection)):
                connection.invalidate()
            try:
                yield connection
            except BaseException as error:
                # The plan of a prepared statement is out of date, and psycopg would use it again.
                if isinstance(error.__cause__, psycopg.errors.FeatureNotSupported):
                    connection.invalidate()
                raise


def _connection(owner: Owner) -> Connection:
    connection = owner.connection() if isinstance(owner, Session) else owner
    _checked(connection)
    return connection


def _native(connection: Connection) -> psycopg.Connection[Any]:
    native: psycopg.Connection[Any] = connection.connection.driver_connection  # type: ignore[assignment]
    return native


def _autocommit_block(connection: Connection) -> AbstractContextManager[object] | None:
    """psycopg's own transaction where SQLAlchemy opens none (AUTOCOMMIT), else None."""
    native = _native(connection)
    return native.transaction() if native.autocommit else None


def _checked(bound: Connection | Engine) -> None:
    dialect = bound.dialect
    if dialect.driver != "psycopg" or dialect.is_async:
        rule = "postgresql+psycopg, without asyncio"
        got = f"{dialect.name}+{dialect.driver}{' under asyncio' if dialect.is_async else ''}"
        message = f"the dialect must be {rule}, got {got}"
        raise MemoryContractError(message, field="engine", rule=rule, got=got)
