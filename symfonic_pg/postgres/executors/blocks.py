"""A driver's transaction block, entered and left within a deadline and with its errors translated."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import AbstractAsyncContextManager, asynccontextmanager, suppress
from typing import Any

from symfonic_pg.postgres.executors.base import Driver
from symfonic_pg.postgres.executors.deadlines import GRACE, within
from symfonic_pg.postgres.executors.failures import translated


@asynccontextmanager
async def bounded(
    block: AbstractAsyncContextManager[object], driver: Driver[Any], timeout: float
) -> AsyncIterator[None]:
    """Begin and commit take at most `timeout` seconds each, a rollback at most the grace period.

    A rollback that fails is not reported: what made it necessary is what the caller has to see.
    """
    with translated(driver, timeout):
        await within(timeout, _enter(block))
    try:
        yield
    except BaseException as error:
        with suppress(Exception):
            await within(GRACE, _leave(block, error), grace=0, after=error)
        raise
    else:
        with translated(driver, timeout):
            await within(timeout, _leave(block, None))


async def _enter(block: AbstractAsyncContextManager[object]) -> None:
    await block.__aenter__()


async def _leave(block: AbstractAsyncContextManager[object], error: BaseException | None) -> None:
    if error is None:
        await block.__aexit__(None, None, None)
    else:
        await block.__aexit__(type(error), error, error.__traceback__)
