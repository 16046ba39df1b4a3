"""The executor inside somebody else's transaction."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Iterable
from contextlib import asynccontextmanager
from typing import Generic
from weakref import WeakKeyDictionary

from symfonic_pg.postgres.executors.base import ConnectionT, CopyTarget, Driver, Executor, Rows
from symfonic_pg.postgres.executors.blocks import bounded
from symfonic_pg.postgres.executors.deadlines import checked_timeout, within
from symfonic_pg.postgres.executors.failures import translated
from symfonic_pg.postgres.statements import Statement

# One connection carries one statement at a time, whichever of its executors sends it.
_turns: WeakKeyDictionary[object, asyncio.Lock] = WeakKeyDictionary()


class BorrowedExecutor(Generic[ConnectionT]):
    """Runs statements on one connection, which stays its owner's.

    It never commits, never closes it, sets nothing and registers no codec. Statements wait for one another,
    and the wait counts towards `timeout` (in seconds, a call). Nothing is repeated: after a database error
    the transaction is lost, and the owner has to roll it back; after a timeout or a cancellation as well.
    """

    borrowed = True

    def __init__(self, driver: Driver[ConnectionT], connection: ConnectionT, *, timeout: float) -> None:
        self._driver = driver
        self._connection = connection
        self._timeout = checked_timeout(timeout)
        self._turn = _turn_of(connection)

    async def fetch(self, statement: Statement) -> Rows:
        """Run one statement in the owner's transaction."""
        with translated(self._driver, self._timeout):
            return await within(self._timeout, self._fetch(statement))

    async def copy(self, target: CopyTarget, chunks: Iterable[bytes]) -> None:
        """Run one COPY in the owner's transaction."""
        with translated(self._driver, self._timeout):
            await within(self._timeout, self._copy(target, chunks))

    @asynccontextmanager
    async def transaction(self) -> AsyncIterator[Executor]:
        """A savepoint: an exception in the block undoes the block, and the owner's transaction goes on.

        Nobody else's statement gets between: other calls on this connection wait for the end of the block.
        """
        with translated(self._driver, self._timeout):
            await within(self._timeout, self._turn.acquire())
        try:
            async with bounded(self._driver.savepoint(self._connection), self._driver, self._timeout):
                yield InTransaction(self._driver, self._connection, timeout=self._timeout)
        finally:
            self._turn.release()

    async def close(self) -> None:
        """Nothing: the connection is its owner's."""

    async def _fetch(self, statement: Statement) -> Rows:
        async with self._turn:
            return await self._driver.fetch(self._connection, statement)

    async def _copy(self, target: CopyTarget, chunks: Iterable[bytes]) -> None:
        async with self._turn:
            await self._driver.copy(self._connection, target, chunks)


class InTransaction(BorrowedExecutor[ConnectionT]):
    """What a transaction yields: the same connection, while the block has it to itself."""

    def __init__(self, driver: Driver[ConnectionT], connection: ConnectionT, *, timeout: float) -> None:
        super().__init__(driver, connection, timeout=timeout)
        self._turn = asyncio.Lock()


def _turn_of(connection: object) -> asyncio.Lock:
    # What an asyncpg pool lends is a proxy, which takes no weak reference; the connection behind it does.
    return _turns.setdefault(getattr(connection, "_con", connection), asyncio.Lock())
