"""The pool lends what stands, replaces what does not, and never loses a place."""

from __future__ import annotations

import asyncio
from itertools import count

import pytest

from symfonic_pg.memory.errors import MemoryUnavailable
from symfonic_pg.postgres.executors import pooling
from symfonic_pg.postgres.executors.pooling import ConnectionPool


class Connection:
    def __init__(self, number: int) -> None:
        self.number = number
        self.open = True
        self.answers = True
        self.settles = True
        self.pings = 0


class Driver:
    """A driver of connections that are no more than their state."""

    def __init__(self) -> None:
        self.numbers = count(1)
        self.made: list[Connection] = []
        self.refuse: Exception | None = None

    async def connect(self) -> Connection:
        await asyncio.sleep(0)
        if self.refuse is not None:
            raise self.refuse
        self.made.append(Connection(next(self.numbers)))
        return self.made[-1]

    def is_open(self, connection: Connection) -> bool:
        return connection.open

    async def ping(self, connection: Connection) -> None:
        connection.pings += 1
        if not connection.answers:
            await asyncio.sleep(60)

    async def settle(self, connection: Connection, after: BaseException) -> None:
        if not connection.settles:
            await asyncio.sleep(60)

    def drop(self, connection: Connection) -> None:
        connection.open = False


@pytest.fixture
def driver() -> Driver:
    return Driver()


@pytest.fixture
def pool(driver: Driver) -> ConnectionPool[Connection]:
    return ConnectionPool(driver.connect, driver, minimum=0, maximum=2)


async def test_the_last_one_back_is_the_first_one_out(
    pool: ConnectionPool[Connection], driver: Driver
) -> None:
    one, two = await pool.acquire(), await pool.acquire()
    await pool.release(one, after=None)
    await pool.release(two, after=None)
    assert await pool.acquire() is two
    assert await pool.acquire() is one
    assert [connection.pings for connection in driver.made] == [0, 0]


async def test_one_that_is_gone_is_replaced(pool: ConnectionPool[Connection]) -> None:
    one = await pool.acquire()
    await pool.release(one, after=None)
    one.open = False
    two = await pool.acquire()
    assert two.number == 2
    two.open = False
    await pool.release(two, after=None)
    assert (await pool.acquire()).number == 3


async def test_one_that_was_idle_is_asked_for_a_sign_of_life(
    pool: ConnectionPool[Connection], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(pooling, "PING_AFTER", 0.0)
    monkeypatch.setattr(pooling, "PING_SECONDS", 0.05)
    one = await pool.acquire()
    await pool.release(one, after=None)
    await asyncio.sleep(0.01)
    assert await pool.acquire() is one
    assert one.pings == 1
    await pool.release(one, after=None)
    one.answers = False
    await asyncio.sleep(0.01)
    assert (await pool.acquire()).number == 2
    assert not one.open


async def test_after_a_failure_it_settles_or_goes(
    pool: ConnectionPool[Connection], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(pooling, "GRACE", 0.05)
    one = await pool.acquire()
    await pool.release(one, after=LookupError())
    assert await pool.acquire() is one
    one.settles = False
    await pool.release(one, after=LookupError())
    assert not one.open
    assert (await pool.acquire()).number == 2


async def test_a_release_that_is_cancelled_gives_the_place_back(pool: ConnectionPool[Connection]) -> None:
    one, two = await pool.acquire(), await pool.acquire()
    one.settles = False
    release = asyncio.create_task(pool.release(one, after=LookupError()))
    await asyncio.sleep(0.01)
    release.cancel()
    with pytest.raises(asyncio.CancelledError):
        await release
    assert not one.open
    assert two.open
    assert (await pool.acquire()).number == 3


async def test_a_refused_connection_gives_the_place_back(
    pool: ConnectionPool[Connection], driver: Driver
) -> None:
    driver.refuse = ConnectionRefusedError("nobody there")
    for _ in range(5):
        with pytest.raises(ConnectionRefusedError, match="nobody there"):
            await pool.acquire()
    driver.refuse = None
    assert (await pool.acquire()).number == 1


async def test_who_waits_is_told_that_all_were_in_use(pool: ConnectionPool[Connection]) -> None:
    one, _ = await pool.acquire(), await pool.acquire()
    waiting = asyncio.create_task(pool.acquire())
    await asyncio.sleep(0.01)
    waiting.cancel()
    with pytest.raises(asyncio.CancelledError) as cancelled:
        await waiting
    assert cancelled.value.__notes__ == ["all 2 connections of the pool were in use"]
    await pool.release(one, after=None)
    assert await pool.acquire() is one


async def test_idle_ones_go_after_a_while_but_for_the_minimum(
    driver: Driver, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(pooling, "IDLE_SECONDS", 0.05)
    pool = ConnectionPool(driver.connect, driver, minimum=1, maximum=3)
    lent = [await pool.acquire() for _ in range(3)]
    for connection in lent:
        await pool.release(connection, after=None)
    await asyncio.sleep(0.15)
    assert [connection.open for connection in lent] == [False, False, True]
    assert await pool.acquire() is lent[2]


async def test_closing_drops_the_idle_now_and_the_lent_when_they_come_back(
    pool: ConnectionPool[Connection],
) -> None:
    one, two = await pool.acquire(), await pool.acquire()
    await pool.release(one, after=None)
    await pool.close()
    assert [one.open, two.open] == [False, True]
    await pool.release(two, after=None)
    assert not two.open
    with pytest.raises(MemoryUnavailable, match="closed"):
        await pool.acquire()


async def test_many_tasks_share_few_places(pool: ConnectionPool[Connection], driver: Driver) -> None:
    most = in_use = 0

    async def call(number: int) -> None:
        nonlocal most, in_use
        connection = await pool.acquire()
        in_use += 1
        most = max(most, in_use)
        await asyncio.sleep(0.001)
        in_use -= 1
        await pool.release(connection, after=LookupError() if number % 3 == 0 else None)

    await asyncio.gather(*map(call, range(50)))
    assert most == 2
    assert len(driver.made) == 2
