"""The executor on Django's own connection, inside whatever transaction it is in."""

from __future__ import annotations

import random
import time
from collections.abc import AsyncIterator, Iterable, Iterator
from contextlib import asynccontextmanager, contextmanager, nullcontext
from typing import Any

import psycopg
from django.db import Error, connections, transaction
from django.db.backends.utils import CursorDebugWrapper, CursorWrapper
from psycopg.pq import ExecStatus, Format
from psycopg.rows import TupleRow, tuple_row

from symfonic_pg.memory.errors import MemoryUnavailable, SchemaMismatch, SymfonicError
from symfonic_pg.postgres.executors.base import CopyTarget, Executor, Failure, Rows
from symfonic_pg.postgres.executors.deadlines import checked_timeout
from symfonic_pg.postgres.executors.failures import COLLISIONS, as_error, schema_mismatch
from symfonic_pg.postgres.executors.interrupting import Interruption, interrupted
from symfonic_pg.postgres.executors.pooled import RETRIES
from symfonic_pg.postgres.executors.psycopg import PsycopgDriver, read_instants_in_utc
from symfonic_pg.postgres.statements import Statement, load_statement

# Seconds, times the number of the attempt: the longest pause before a statement is run again.
_PAUSE = 0.01


class DjangoExecutor:
    """Runs statements on the connection that this thread has for an alias, which stays Django's.

    Inside `transaction.atomic()` they are part of the block, and an error marks it for rollback, as one of
    the ORM's does. Outside, each statement is a transaction of its own and is run again where it lost
    against another writer. Nothing here waits for an event loop: a coroutine ends in the step in which it
    begins. `timeout`, in seconds, bounds a statement; how long connecting may take is the host's own
    `connect_timeout`.
    """

    # Outside a block too: there is one connection, which takes one statement at a time.
    borrowed = True

    def __init__(self, alias: str, *, timeout: float = 10.0) -> None:
        self.alias = alias
        self._timeout = checked_timeout(timeout)

    async def fetch(self, statement: Statement) -> Rows:
        """Run one statement; Django's execute wrappers see it, and its query log, but no values."""
        try:
            return self._repeated(statement)
        except SchemaMismatch as mismatch:
            raise self._explained(mismatch, statement.schema) from mismatch.__cause__

    async def copy(self, target: CopyTarget, chunks: Iterable[bytes]) -> None:
        """Run one COPY, in the caller's atomic block or as a transaction of its own."""
        with self._reached() as (connection, held):
            connection.validate_no_broken_transaction()
            command = target.statement().text
            with connection.wrap_database_errors, _cursor(held) as cursor, cursor.copy(command) as copy:
                for chunk in chunks:
                    copy.write(chunk)

    @asynccontextmanager
    async def transaction(self) -> AsyncIterator[Executor]:
        """An atomic block: a savepoint inside the caller's, else a transaction."""
        with self._translated(), transaction.atomic(using=self.alias):
            yield self

    async def close(self) -> None:
        """Nothing: the connection is Django's."""

    def _repeated(self, statement: Statement) -> Rows:
        for attempt in range(1, RETRIES + 1):
            try:
                return self._fetch(statement)
            except MemoryUnavailable as error:
                if connections[self.alias].in_atomic_block or _sqlstate(error) not in COLLISIONS:
                    raise
            time.sleep(random.uniform(0, _PAUSE * attempt))
        return self._fetch(statement)

    def _fetch(self, statement: Statement) -> Rows:
        with self._reached() as (connection, held), _cursor(held) as cursor:
            with _logged(connection, cursor, statement):
                CursorWrapper(cursor, connection).execute(statement.text, statement.parameters)
            if cursor.pgresult is None or cursor.pgresult.status != ExecStatus.TUPLES_OK:
                return []
            return cursor.fetchall()

    @contextmanager
    def _reached(self) -> Iterator[tuple[Any, psycopg.Connection[Any]]]:
        """Django's connection and psycopg's under it, for a statement that has to end in time."""
        with self._translated() as translation:
            connection = connections[self.alias]
            _leave_if_lost(connection)
            with connection.cursor() as opened:
                held: psycopg.Connection[Any] = opened.connection
            marked = transaction.mark_for_rollback_on_error(using=self.alias)
            with interrupted(held, self._timeout) as translation.interruption, marked:
                yield connection, held

    @contextmanager
    def _translated(self) -> Iterator[_Translation]:
        translation = _Translation(self._timeout)
        try:
            yield translation
        except (Error, psycopg.Error) as exc:
            error = translation.of(exc)
            if error is None:
                raise
            raise error from exc

    def _explained(self, mismatch: SchemaMismatch, schema: str) -> SchemaMismatch:
        """The same with the database's revision, where it can still be asked, and Django's own command."""
        error = schema_mismatch(self._revision(schema), reason=str(mismatch.__cause__).partition("\n")[0])
        return SchemaMismatch(
            f"{error} or `manage.py migrate symfonic_pg`", expected=error.expected, found=error.found
        )

    def _revision(self, schema: str) -> str | None:
        if connections[self.alias].in_atomic_block:
            return None
        try:
            for question in ("migrate_versioned", "migrate_revision"):
                rows = self._fetch(load_statement(question, schema=schema))
                if not rows or not rows[0][0]:
                    return None
        except SymfonicError:
            return None
        return str(rows[0][0])


class _Translation:
    """From what Django or psycopg raise to the errors of this package."""

    def __init__(self, timeout: float) -> None:
        self._timeout = timeout
        self.interruption: Interruption | None = None

    def of(self, exc: Exception) -> SymfonicError | None:
        """The error to raise; None for one that is a bug."""
        if self.interruption is not None and self.interruption.began:
            return MemoryUnavailable(f"the database gave no answer within {self._timeout:g} s")
        cause = exc if isinstance(exc, psycopg.Error) else exc.__cause__
        if not isinstance(cause, psycopg.Error):
            # Django itself refuses: the atomic block is broken, or there is no connection to be had.
            return as_error(Failure(None, str(exc)))
        failure = PsycopgDriver().failure(cause)
        return as_error(failure) if failure else None


def _cursor(held: psycopg.Connection[Any]) -> psycopg.RawCursor[TupleRow]:
    cursor = psycopg.RawCursor(held, row_factory=tuple_row)
    cursor.format = Format.BINARY
    read_instants_in_utc(cursor)
    return cursor


def _logged(connection: Any, cursor: Any, statement: Statement) -> Any:
    """What Django does around a statement in debug mode; the values are memories and stay out of the log."""
    if not connection.queries_logged:
        return nullcontext()
    return CursorDebugWrapper(cursor, connection).debug_sql(statement.text)


def _leave_if_lost(connection: Any) -> None:
    """Outside a block let Django connect anew where psycopg knows that the connection is gone."""
    held = connection.connection
    if held is not None and held.closed and not connection.in_atomic_block:
        connection.close()


def _sqlstate(error: BaseException) -> str | None:
    cause: BaseException | None = error
    while cause is not None and not isinstance(cause, psycopg.Error):
        cause = cause.__cause__
    return None if cause is None else cause.sqlstate
