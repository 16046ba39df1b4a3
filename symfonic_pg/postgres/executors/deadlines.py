"""Deadlines that hold even where a driver, once cancelled, waits for a server that does not answer."""

from __future__ import annotations

import asyncio
import math
from collections.abc import Awaitable, Coroutine, Generator
from typing import Any, Generic, TypeVar

from symfonic_pg.memory.errors import MemoryContractError

ResultT = TypeVar("ResultT")

# How long, in seconds, an interrupted operation may take to leave its connection clean.
GRACE = 0.5


def checked_timeout(seconds: float) -> float:
    """The same number, which has to be positive and finite; MemoryContractError otherwise."""
    if isinstance(seconds, bool) or not isinstance(seconds, (int, float)) or not 0 < seconds < math.inf:
        rule = "a positive, finite number of seconds"
        raise MemoryContractError(
            f"timeout must be {rule}, got {seconds!r}", field="timeout", rule=rule, got=seconds
        )
    return seconds


async def within(seconds: float, operation: Coroutine[Any, Any, ResultT], *, grace: float = GRACE) -> ResultT:
    """The result of `operation`, which is cancelled after `seconds`, and again `grace` seconds after that.

    TimeoutError if it did not make it. A cancellation from outside starts the same grace.
    """
    async with asyncio.timeout(seconds):
        return await _Impatient(operation, grace)


class _Impatient(Awaitable[ResultT], Generic[ResultT]):
    """Awaits a coroutine; `grace` seconds after its first cancellation it is cancelled once more.

    A cancelled driver asks the server to stop and waits for the reply, which is right, and which against a
    server that hangs would never end. This sits between the task and the coroutine, sees the cancellation
    pass, and costs nothing until then: a supervising task would cost each statement two turns of the event
    loop.
    """

    def __init__(self, operation: Coroutine[Any, Any, ResultT], grace: float) -> None:
        self._operation = operation
        self._grace = grace

    def __await__(self) -> Generator[Any, Any, ResultT]:
        step, value = self._operation.send, None
        second: _SecondCancellation | None = None
        try:
            while True:
                try:
                    awaited = step(value)
                except StopIteration as finished:
                    return finished.value  # type: ignore[no-any-return]
                except Exception as error:
                    if second is None:
                        raise
                    # A failure to clean up must not hide that the operation was cancelled.
                    raise asyncio.CancelledError from error
                try:
                    step, value = self._operation.send, (yield awaited)
                except GeneratorExit:
                    self._operation.close()
                    raise
                except BaseException as error:
                    if second is None and isinstance(error, asyncio.CancelledError):
                        second = _SecondCancellation(self._grace)
                    step, value = self._operation.throw, error
        finally:
            if second is not None:
                second.disarm()


class _SecondCancellation:
    """A timer that cancels the current task, and takes that back from its count when it is disarmed."""

    def __init__(self, grace: float) -> None:
        task = asyncio.current_task()
        assert task is not None
        self._task = task
        self._fired = False
        self._timer = asyncio.get_running_loop().call_later(grace, self._fire)

    def _fire(self) -> None:
        self._fired = True
        self._task.cancel()

    def disarm(self) -> None:
        self._timer.cancel()
        if self._fired:
            self._task.uncancel()
