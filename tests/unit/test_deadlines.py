"""A deadline holds against an operation that, once cancelled, does not come back."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Awaitable, Callable

import anyio
import pytest

from symfonic_pg.memory.errors import MemoryContractError
from symfonic_pg.postgres.executors.deadlines import checked_timeout, within


async def stubborn(cleaning: Callable[[], Awaitable[object]] = lambda: asyncio.sleep(60)) -> None:
    """Like a driver that waits for the server to acknowledge a cancellation."""
    try:
        await asyncio.sleep(60)
    finally:
        await cleaning()


async def failing(error: Exception) -> None:
    try:
        await asyncio.sleep(60)
    finally:
        raise error


async def test_what_is_in_time_is_unchanged() -> None:
    async def answer() -> int:
        await asyncio.sleep(0)
        return 42

    async def error() -> int:
        await asyncio.sleep(0)
        raise LookupError("as it is")

    assert await within(5, answer()) == 42
    with pytest.raises(LookupError, match="as it is"):
        await within(5, error())


async def test_what_is_late_is_cancelled() -> None:
    start = time.monotonic()
    with pytest.raises(TimeoutError):
        await within(0.05, asyncio.sleep(60))
    assert time.monotonic() - start < 0.5


async def test_what_does_not_come_back_is_cancelled_twice() -> None:
    start = time.monotonic()
    with pytest.raises(TimeoutError):
        await within(0.05, stubborn(), grace=0.1)
    assert 0.14 < time.monotonic() - start < 0.6
    # Nothing of it sticks to the task.
    task = asyncio.current_task()
    assert task is not None
    assert task.cancelling() == 0
    await asyncio.sleep(0.15)


async def test_what_cleans_up_in_time_is_cancelled_once() -> None:
    cleaned = []

    async def clean() -> None:
        await asyncio.sleep(0.02)
        cleaned.append(True)

    with pytest.raises(TimeoutError):
        await within(0.02, stubborn(clean), grace=5)
    assert cleaned == [True]


@pytest.mark.parametrize("operation", [stubborn, lambda: failing(OSError("gone"))])
async def test_a_cancellation_from_outside_stays_one(operation: Callable[[], Awaitable[None]]) -> None:
    async def call() -> None:
        await within(60, operation(), grace=0.05)

    task = asyncio.create_task(call())
    await asyncio.sleep(0.02)
    start = time.monotonic()
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    assert time.monotonic() - start < 0.5
    assert task.cancelling() == 1


async def test_a_failure_to_clean_up_after_the_deadline_is_still_a_timeout() -> None:
    with pytest.raises(TimeoutError):
        await within(0.02, failing(OSError("gone")))


async def test_deadlines_nest() -> None:
    async def inner() -> str:
        try:
            await within(0.02, stubborn(), grace=0.02)
        except TimeoutError:
            return "the inner one"
        return "none"

    assert await within(5, inner()) == "the inner one"
    with pytest.raises(TimeoutError):
        await within(0.02, within(5, stubborn(), grace=0.02), grace=0.02)


async def test_it_works_beside_other_tasks() -> None:
    async def call(number: int) -> object:
        try:
            return await within(0.05, stubborn() if number % 2 else asyncio.sleep(0.01, number), grace=0.02)
        except TimeoutError:
            return "late"

    found = await asyncio.gather(*map(call, range(10)))
    assert found == [number if number % 2 == 0 else "late" for number in range(10)]


async def test_a_cancellation_that_anyio_repeats_counts_once() -> None:
    cleaned = []

    async def clean() -> None:
        for _ in range(3):
            await asyncio.sleep(0)
            await asyncio.sleep(0.01)
            await asyncio.create_task(asyncio.sleep(0.01))
        cleaned.append(True)

    with anyio.move_on_after(0.02) as scope:
        await within(60, stubborn(clean), grace=5)
    assert scope.cancelled_caught
    assert cleaned == [True]
    # Nothing of it sticks to the task.
    task = asyncio.current_task()
    assert task is not None
    assert task.cancelling() == 0


async def test_under_anyio_what_does_not_come_back_is_cancelled_twice() -> None:
    start = time.monotonic()
    with anyio.move_on_after(0.02) as scope:
        await within(60, stubborn(), grace=0.1)
    assert scope.cancelled_caught
    assert 0.11 < time.monotonic() - start < 0.6


async def test_cleaning_up_after_a_cancellation_is_not_disturbed_by_the_same_one() -> None:
    cleaned = []

    async def clean() -> None:
        await asyncio.sleep(0.05)
        cleaned.append(True)

    async def call() -> None:
        try:
            await asyncio.sleep(60)
        except asyncio.CancelledError as error:
            await within(1, clean(), grace=0, after=error)
            raise

    with anyio.move_on_after(0.02):
        await call()
    assert cleaned == [True]


async def test_cleaning_up_after_a_cancellation_keeps_its_own_deadline() -> None:
    async def call() -> None:
        try:
            await asyncio.sleep(60)
        except asyncio.CancelledError as error:
            await within(0.1, asyncio.sleep(60), grace=0, after=error)

    start = time.monotonic()
    with anyio.move_on_after(0.02) as scope:
        await call()
    assert scope.cancelled_caught
    assert 0.11 < time.monotonic() - start < 0.6


@pytest.mark.parametrize("seconds", [0, -1, float("inf"), float("nan"), True, "5", None])
def test_a_timeout_is_a_positive_number(seconds: object) -> None:
    with pytest.raises(MemoryContractError, match="timeout must be a positive") as refused:
        checked_timeout(seconds)
    assert refused.value.field == "timeout"


def test_a_good_timeout_is_kept() -> None:
    assert checked_timeout(0.5) == 0.5
    assert checked_timeout(10) == 10
