"""The executor on a pool: a connection for each call, a transaction where one is asked for."""

from __future__ import annotations

import asyncio
import random
from collections.abc import AsyncIterator, Awaitable, Callable, Iterable
from contextlib import asynccontextmanager
from copy import copy
from typing import Generic, Self, TypeVar

from symfonic_pg.memory.errors import SchemaMismatch
from symfonic_pg.postgres.executors.base import Connections, ConnectionT, CopyTarget, Driver, Executor, Rows
from symfonic_pg.postgres.executors.blocks import bounded
from symfonic_pg.postgres.executors.borrowed import InTransaction
from symfonic_pg.postgres.executors.deadlines import checked_timeout, within
from symfonic_pg.postgres.executors.failures import COLLISIONS, STALE_PLAN, schema_mismatch, translated
from symfonic_pg.postgres.statements import Statement, load_statement

ResultT = TypeVar("ResultT")

# A statement that lost against another writer is run again this often, each time after a random pause of up
# to so many seconds times the number of the attempt.
RETRIES = 3
_PAUSE = 0.01


class PooledExecutor(Generic[ConnectionT]):
    """Runs each call on a connection of its own, which goes back clean or is closed.

    `timeout`, in seconds, covers a whole call: waiting for a connection, opening one, the statement and its
    repetitions. When it is over, or the call is cancelled, the server is asked to stop.
    """

    borrowed = False
    # Whether a fetched statement is a transaction by itself, as some maintenance has to be.
    runs_alone = True

    def __init__(
        self, driver: Driver[ConnectionT], pool: Connections[ConnectionT], *, timeout: float
    ) -> None:
        self._driver = driver
        self._pool = pool
        self._timeout = checked_timeout(timeout)

    def patient(self, timeout: float) -> Self:
        """An executor on the same pool that gives each call `timeout` seconds."""
        other = copy(self)
        other._timeout = checked_timeout(timeout)
        return other

    async def fetch(self, statement: Statement) -> Rows:
        """Run one statement in a transaction of its own; one that lost against another writer runs again.

        So does one whose prepared plan a migration has outdated.
        """
        try:
            with translated(self._driver, self._timeout):
                return await within(self._timeout, self._repeated(statement))
        except SchemaMismatch as exc:
            found = await self._revision(statement.schema)
            if found is None:
                raise
            raise schema_mismatch(found, reason=self._reason(exc.__cause__)) from exc.__cause__

    async def copy(self, target: CopyTarget, chunks: Iterable[bytes]) -> None:
        """Run one COPY in a transaction of its own."""
        with translated(self._driver, self._timeout):
            await within(self._timeout, self._lent(lambda held: self._driver.copy(held, target, chunks)))

    @asynccontextmanager
    async def transaction(self) -> AsyncIterator[Executor]:
        """One connection from BEGIN to COMMIT; any exception that leaves the block rolls back."""
        with translated(self._driver, self._timeout):
            connection = await within(self._timeout, self._pool.acquire())
        try:
            async with bounded(self._driver.begin(connection), self._driver, self._timeout):
                yield InTransaction(self._driver, connection, timeout=self._timeout)
        except BaseException as error:
            await self._pool.release(connection, after=error)
            raise
        await self._pool.release(connection, after=None)

    async def close(self) -> None:
        """Close the connections that this executor opened; those of a given pool are the host's."""
        await self._pool.close()

    async def _repeated(self, statement: Statement) -> Rows:
        for attempt in range(1, RETRIES + 1):
            try:
                return await self._fetch(statement)
            except Exception as exc:
                failure = self._driver.failure(exc)
                if failure is None or failure.sqlstate not in {*COLLISIONS, STALE_PLAN}:
                    raise
            await asyncio.sleep(random.uniform(0, _PAUSE * attempt))
        return await self._fetch(statement)

    async def _fetch(self, statement: Statement) -> Rows:
        return await self._lent(lambda connection: self._driver.fetch(connection, statement))

    async def _lent(self, use: Callable[[ConnectionT], Awaitable[ResultT]]) -> ResultT:
        connection = await self._pool.acquire()
        try:
            result = await use(connection)
        except BaseException as error:
            await self._pool.release(connection, after=error)
            raise
        await self._pool.release(connection, after=None)
        return result

    def _reason(self, cause: BaseException | None) -> str:
        failure = self._driver.failure(cause) if isinstance(cause, Exception) else None
        return failure.message if failure else str(cause)

    async def _revision(self, schema: str) -> str | None:
        """The revision of the database's schema, None where there is none or it cannot be read."""
        try:
            for question in ("migrate_versioned", "migrate_revision"):
                rows = await within(self._timeout, self._fetch(load_statement(question, schema=schema)))
                if not rows or not rows[0][0]:
                    return None
        except Exception:
            return None
        return str(rows[0][0])
