"""A synchronous pool under an event loop: each call runs in a thread beside it."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Coroutine, Iterable
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from typing import Any, Generic, TypeVar

from symfonic_pg.postgres.executors.base import CopyTarget, Executor, Rows
from symfonic_pg.postgres.executors.completing import complete
from symfonic_pg.postgres.executors.interrupting import Interruptions
from symfonic_pg.postgres.statements import Statement

ResultT = TypeVar("ResultT")


class ThreadedExecutor:
    """What a blocking executor on a pool does, in threads beside the loop.

    A cancelled call interrupts its statement and waits until the connection is back.
    """

    def __init__(self, blocking: Executor) -> None:
        self._blocking = blocking

    @property
    def borrowed(self) -> bool:
        """As the blocking executor says."""
        return self._blocking.borrowed

    async def fetch(self, statement: Statement) -> Rows:
        """Run one statement."""
        return await _Beside(self._blocking.fetch(statement)).result()

    async def copy(self, target: CopyTarget, chunks: Iterable[bytes]) -> None:
        """Run one COPY."""
        await _Beside(self._blocking.copy(target, chunks)).result()

    @asynccontextmanager
    async def transaction(self) -> AsyncIterator[Executor]:
        """One connection from BEGIN to COMMIT."""
        block = _InThreads(self._blocking.transaction())
        async with block as executor:
            yield ThreadedExecutor(executor)

    async def close(self) -> None:
        """Nothing: the pool is the host's."""


class _InThreads(AbstractAsyncContextManager[Executor]):
    """A block of a blocking executor, entered and left beside the loop."""

    def __init__(self, block: AbstractAsyncContextManager[Executor]) -> None:
        self._block = block

    async def __aenter__(self) -> Executor:
        entering = _Beside(self._block.__aenter__())
        try:
            return await entering.result()
        except asyncio.CancelledError:
            if entering.succeeded:
                await _Beside(self._block.__aexit__(asyncio.CancelledError, None, None)).result()
            raise

    async def __aexit__(self, *error: Any) -> bool | None:
        return await _Beside(self._block.__aexit__(*error)).result()


class _Beside(Generic[ResultT]):
    """A coroutine that never waits for a loop, run by a thread of the loop's."""

    def __init__(self, coroutine: Coroutine[Any, Any, ResultT]) -> None:
        self._statements = Interruptions()
        self._work = asyncio.get_running_loop().run_in_executor(
            None, self._statements.watching, complete, coroutine
        )

    @property
    def succeeded(self) -> bool:
        """Whether it has ended, and well."""
        return self._work.done() and not self._work.cancelled() and self._work.exception() is None

    async def result(self) -> ResultT:
        """What it gives; a cancellation stops its statement and waits until that has ended."""
        try:
            return await asyncio.shield(self._work)
        except asyncio.CancelledError:
            self._statements.stop()
            await asyncio.wait([self._work])
            if not self._work.cancelled():
                # Seen, so that nobody complains about it.
                self._work.exception()
            raise
