"""A small pool of connections, the same for every driver."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from contextlib import suppress
from typing import Generic, Protocol

from symfonic_pg.memory.errors import MemoryContractError, MemoryUnavailable
from symfonic_pg.postgres.executors.base import ConnectionT, HeldT
from symfonic_pg.postgres.executors.deadlines import GRACE, within

# Seconds after which an unused connection is closed, and after which one is asked whether it is still there.
IDLE_SECONDS = 300.0
PING_AFTER = 0.1
PING_SECONDS = 1.0


class Keeper(Protocol[HeldT]):
    """How one driver looks at, cleans and drops connections."""

    def is_open(self, connection: HeldT) -> bool:
        """Whether the connection, as far as can be told without asking the server, still stands."""
        ...

    async def ping(self, connection: HeldT) -> None:
        """Ask the server for a sign of life; raises without one."""
        ...

    async def settle(self, connection: HeldT, after: BaseException) -> None:
        """After a failure: wait for what was interrupted, and roll back. Raises where that fails."""
        ...

    def drop(self, connection: HeldT) -> None:
        """Close at once, without waiting for anybody."""
        ...


class ConnectionPool(Generic[ConnectionT]):
    """Connections opened when they are needed, at most `maximum`, and closed after five idle minutes.

    `minimum` is how many idle ones stay open longer. Nothing is connected before the first call, nothing runs
    in the background, and a refused connection fails the call that wanted it, at once and with its cause: so
    the pool works again in the moment in which the server does. The last one back is the first one out. No
    session state is reset between calls, since no call leaves any.
    """

    def __init__(
        self,
        connect: Callable[[], Awaitable[ConnectionT]],
        keeper: Keeper[ConnectionT],
        *,
        minimum: int,
        maximum: int,
    ) -> None:
        if not 0 <= minimum <= maximum or maximum < 1:
            rule = "0 <= pool_min <= pool_max, and pool_max at least 1"
            got = f"pool_min {minimum}, pool_max {maximum}"
            raise MemoryContractError(
                f"pool sizes must be {rule}, got {got}", field="pool_max", rule=rule, got=got
            )
        self._connect = connect
        self._keeper = keeper
        self._minimum = minimum
        self._maximum = maximum
        self._places = asyncio.Semaphore(maximum)
        self._idle: list[tuple[float, ConnectionT]] = []
        self._loop: asyncio.AbstractEventLoop | None = None
        self._reaper: asyncio.TimerHandle | None = None
        self._closed = False

    async def acquire(self) -> ConnectionT:
        """An idle connection that still stands, else a new one; waits while `maximum` are in use."""
        self._check_loop()
        try:
            await self._places.acquire()
        except asyncio.CancelledError as error:
            error.add_note(f"all {self._maximum} connections of the pool were in use")
            raise
        try:
            if self._closed:
                raise MemoryUnavailable("the pool is closed")
            return await self._standing() or await self._connect()
        except BaseException:
            self._places.release()
            raise

    async def release(self, connection: ConnectionT, *, after: BaseException | None) -> None:
        """Take a connection back; it is dropped where it does not settle or the pool was closed meanwhile."""
        clean = False
        try:
            with suppress(Exception):
                if after is not None:
                    await within(GRACE, self._keeper.settle(connection, after), grace=0, after=after)
                clean = True
        finally:
            if clean and not self._closed and self._keeper.is_open(connection):
                self._idle.append((self._now(), connection))
                self._schedule_reaper()
            else:
                self._keeper.drop(connection)
            self._places.release()

    async def close(self) -> None:
        """Close what is idle now, and what is in use when it comes back."""
        self._closed = True
        if self._reaper is not None:
            self._reaper.cancel()
        while self._idle:
            self._keeper.drop(self._idle.pop()[1])

    async def _standing(self) -> ConnectionT | None:
        while self._idle:
            since, connection = self._idle.pop()
            if await self._stands(connection, self._now() - since):
                return connection
        return None

    async def _stands(self, connection: ConnectionT, idle: float) -> bool:
        """Whether it can be used; one that cannot is dropped.

        A restart shows on the socket, but a firewall that forgot the connection, or an event loop that was
        blocked meanwhile, only when it is asked: where it was not in use just now, one round trip more.
        """
        stands = False
        try:
            if self._keeper.is_open(connection):
                if idle > PING_AFTER:
                    await within(PING_SECONDS, self._keeper.ping(connection), grace=0)
                stands = True
        except Exception:
            return False
        finally:
            if not stands:
                self._keeper.drop(connection)
        return stands

    def _schedule_reaper(self) -> None:
        if self._reaper is None and self._loop is not None and len(self._idle) > self._minimum:
            self._reaper = self._loop.call_later(IDLE_SECONDS, self._reap)

    def _reap(self) -> None:
        self._reaper = None
        oldest = self._now() - IDLE_SECONDS
        while len(self._idle) > self._minimum and self._idle[0][0] <= oldest:
            self._keeper.drop(self._idle.pop(0)[1])
        self._schedule_reaper()

    def _now(self) -> float:
        assert self._loop is not None
        return self._loop.time()

    def _check_loop(self) -> None:
        loop = asyncio.get_running_loop()
        if self._loop is None:
            self._loop = loop
        elif self._loop is not loop:
            rule = "used in the event loop in which it was first used"
            raise MemoryContractError(f"an executor must be {rule}", field="executor", rule=rule)
