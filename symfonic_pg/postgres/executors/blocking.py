"""Executors on synchronous connections: their coroutines never wait, each ends where it begins.

A connection that is not asynchronous belongs to the thread that called, and so does the transaction on it.
So the code of the async store runs right there, and its statements block, as the caller's own do.
"""

from __future__ import annotations

import random
import time
from collections.abc import AsyncIterator, Callable, Iterable, Iterator
from contextlib import AbstractContextManager, asynccontextmanager, contextmanager, suppress
from typing import Any, Generic, Protocol, TypeVar

import psycopg
from psycopg.pq import ExecStatus
from psycopg.rows import TupleRow, tuple_row

from symfonic_pg.memory.errors import SchemaMismatch
from symfonic_pg.postgres.executors.base import ConnectionT, CopyTarget, Executor, HeldT, Rows, Translator
from symfonic_pg.postgres.executors.deadlines import GRACE, checked_timeout
from symfonic_pg.postgres.executors.failures import COLLISIONS, STALE_PLAN, schema_mismatch, translated
from symfonic_pg.postgres.executors.interrupting import interrupted
from symfonic_pg.postgres.executors.pooled import RETRIES
from symfonic_pg.postgres.executors.psycopg import read_instants_in_utc
from symfonic_pg.postgres.statements import Statement, load_statement

LentT = TypeVar("LentT", covariant=True)

_PAUSE = 0.01


class BlockingDriver(Translator, Protocol[HeldT]):
    """How psycopg's connection is found under what a host has, and how its transactions are opened."""

    def native(self, owner: HeldT) -> psycopg.Connection[Any]:
        """psycopg's connection, in the owner's transaction or about to begin it."""
        ...

    def begin(self, owner: HeldT) -> AbstractContextManager[object]:
        """A transaction on a connection that is in none."""
        ...

    def savepoint(self, owner: HeldT) -> AbstractContextManager[object]:
        """A savepoint in whatever transaction the owner has, or will find, open."""
        ...

    def lost(self, owner: HeldT) -> None:
        """psycopg's connection was closed under the owner's feet: what the owner itself would do then."""
        ...


class BlockingPool(Protocol[LentT]):
    """The host's pool or engine."""

    def lend(self, timeout: float) -> AbstractContextManager[LentT]:
        """A connection that is open and in no transaction, for as long as the block lasts."""
        ...


class BlockingExecutor(Generic[ConnectionT]):
    """Runs statements on one synchronous connection, which stays its owner's.

    It never commits, never closes it, sets nothing and registers no codec. A statement that takes longer than
    `timeout` seconds is cancelled; the owner then has to roll back, as after any error of the database. To be
    used in the thread that uses the connection.
    """

    borrowed = True

    def __init__(
        self, driver: BlockingDriver[ConnectionT], connection: ConnectionT, *, timeout: float
    ) -> None:
        self._driver = driver
        self._connection = connection
        self._timeout = checked_timeout(timeout)

    async def fetch(self, statement: Statement) -> Rows:
        """Run one statement in the owner's transaction."""
        with self._native() as native:
            return fetch(native, statement)

    async def copy(self, target: CopyTarget, chunks: Iterable[bytes]) -> None:
        """Run one COPY in the owner's transaction."""
        with self._native() as native:
            copy(native, target, chunks)

    @asynccontextmanager
    async def transaction(self) -> AsyncIterator[Executor]:
        """A savepoint: an exception in the block undoes the block, and the owner's transaction goes on."""
        with _entered(self._driver.savepoint(self._connection), self._native):
            yield self

    async def close(self) -> None:
        """Nothing: the connection is its owner's."""

    @contextmanager
    def _native(self, timeout: float | None = None) -> Iterator[psycopg.Connection[Any]]:
        with translated(self._driver, self._timeout):
            native = self._driver.native(self._connection)
            try:
                with in_time(native, timeout or self._timeout):
                    yield native
            except BaseException:
                if native.closed:
                    self._driver.lost(self._connection)
                raise


class BlockingPoolExecutor(Generic[ConnectionT]):
    """Runs each call on a connection of the host's pool or engine, in a transaction of its own.

    `timeout`, in seconds, bounds a statement; how long connecting may take is up to the pool.
    """

    borrowed = False

    def __init__(
        self, driver: BlockingDriver[ConnectionT], pool: BlockingPool[ConnectionT], *, timeout: float
    ) -> None:
        self._driver = driver
        self._pool = pool
        self._timeout = checked_timeout(timeout)

    async def fetch(self, statement: Statement) -> Rows:
        """Run one statement; one that lost against another writer, or whose plan is outdated, runs again."""
        try:
            return await self._repeated(statement)
        except SchemaMismatch as exc:
            raise schema_mismatch(
                await self._revision(statement.schema), reason=str(exc.__cause__)
            ) from exc.__cause__

    async def copy(self, target: CopyTarget, chunks: Iterable[bytes]) -> None:
        """Run one COPY."""
        async with self.transaction() as executor:
            await executor.copy(target, chunks)

    @asynccontextmanager
    async def transaction(self) -> AsyncIterator[Executor]:
        """One connection from BEGIN to COMMIT; any exception that leaves the block rolls back."""
        with self._lent() as executor, _entered(self._driver.begin(executor._connection), executor._native):
            yield executor

    async def close(self) -> None:
        """Nothing: the pool is the host's."""

    @contextmanager
    def _lent(self) -> Iterator[BlockingExecutor[ConnectionT]]:
        with translated(self._driver, self._timeout), self._pool.lend(self._timeout) as connection:
            yield BlockingExecutor(self._driver, connection, timeout=self._timeout)

    async def _repeated(self, statement: Statement) -> Rows:
        for attempt in range(1, RETRIES + 1):
            try:
                return await self._fetch(statement)
            except Exception as exc:
                cause = exc.__cause__
                failure = self._driver.failure(cause) if isinstance(cause, Exception) else None
                if failure is None or failure.sqlstate not in {*COLLISIONS, STALE_PLAN}:
                    raise
            time.sleep(random.uniform(0, _PAUSE * attempt))  # noqa: ASYNC251 - there is no loop to keep waiting
        return await self._fetch(statement)

    async def _fetch(self, statement: Statement) -> Rows:
        async with self.transaction() as executor:
            return await executor.fetch(statement)

    async def _revision(self, schema: str) -> str | None:
        """The revision of the database's schema, None where there is none or it cannot be read."""
        rows: Rows = ()
        with suppress(Exception):
            for question in ("migrate_versioned", "migrate_revision"):
                rows = await self._fetch(load_statement(question, schema=schema))
                if not rows or not rows[0][0]:
                    return None
        return str(rows[0][0]) if rows else None


@contextmanager
def _entered(
    block: AbstractContextManager[object], in_time: Callable[..., AbstractContextManager[object]]
) -> Iterator[None]:
    """The block, entered and left within the deadline; a rollback that fails is not reported."""
    with in_time():
        block.__enter__()
    try:
        yield
    except BaseException as error:
        with suppress(Exception), in_time(GRACE):
            block.__exit__(type(error), error, error.__traceback__)
        raise
    else:
        with in_time():
            block.__exit__(None, None, None)


def fetch(connection: psycopg.Connection[Any], statement: Statement) -> Rows:
    """Run one statement, its results in the binary format: they don't depend on DateStyle or bytea_output."""
    with _cursor(connection) as cursor:
        cursor.execute(statement.text, statement.parameters, prepare=False, binary=True)
        if cursor.pgresult is None or cursor.pgresult.status != ExecStatus.TUPLES_OK:
            return []
        return cursor.fetchall()


def copy(connection: psycopg.Connection[Any], target: CopyTarget, chunks: Iterable[bytes]) -> None:
    """Run one COPY."""
    with _cursor(connection) as cursor, cursor.copy(target.statement().text) as copying:
        for chunk in chunks:
            copying.write(chunk)


@contextmanager
def in_time(connection: psycopg.Connection[Any], timeout: float) -> Iterator[None]:
    """Around what runs on the connection: TimeoutError where it had to be stopped."""
    with interrupted(connection, timeout) as interruption:
        try:
            yield
        except Exception as exc:
            if interruption.began:
                raise TimeoutError from exc
            raise


def _cursor(connection: psycopg.Connection[Any]) -> psycopg.RawCursor[TupleRow]:
    cursor = psycopg.RawCursor(connection, row_factory=tuple_row)
    read_instants_in_utc(cursor)
    return cursor
