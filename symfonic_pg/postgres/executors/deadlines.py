"""Deadlines that hold even where a driver, once cancelled, waits for a server that does not answer."""

from __future__ import annotations

import asyncio
import math
from collections.abc import Awaitable, Coroutine, Generator
from functools import partial
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


async def within(
    seconds: float,
    operation: Coroutine[Any, Any, ResultT],
    *,
    grace: float = GRACE,
    after: BaseException | None = None,
) -> ResultT:
    """The result of `operation`, which is cancelled after `seconds`, and again `grace` seconds after that.

    TimeoutError if it did not make it. A cancellation from outside starts the same grace. An operation that
    cleans up `after` a cancellation is not disturbed by that same one, which anyio delivers at every await.
    """
    async with asyncio.timeout(seconds):
        return await _Impatient(operation, grace, after)


class _Impatient(Awaitable[ResultT], Generic[ResultT]):
    """Awaits a coroutine; `grace` seconds after its first cancellation it is cancelled once more.

    A cancelled driver asks the server to stop and waits for the reply, which is right, and which against a
    server that hangs would never end. This sits between the task and the coroutine, sees the cancellation
    pass, and costs nothing until then: a supervising task would cost each statement two turns of the event
    loop. anyio delivers one cancellation again at every await: it counts once.
    """

    def __init__(
        self, operation: Coroutine[Any, Any, ResultT], grace: float, after: BaseException | None
    ) -> None:
        self._operation = operation
        self._grace = grace
        self._reason = after.args if isinstance(after, asyncio.CancelledError) else ()

    def __await__(self) -> Generator[Any, Any, ResultT]:
        step, value = self._operation.send, None
        second: _SecondCancellation | None = None
        reason = self._reason
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
                    if reason:
                        yield from _undisturbed(awaited, reason)
                        step, value = self._operation.send, None
                    else:
                        step, value = self._operation.send, (yield awaited)
                except GeneratorExit:
                    self._operation.close()
                    raise
                except BaseException as error:
                    if second is None and isinstance(error, asyncio.CancelledError):
                        second, reason = _SecondCancellation(self._grace), error.args
                    step, value = self._operation.throw, error
        finally:
            if second is not None:
                second.disarm()


def _undisturbed(awaited: asyncio.Future[Any] | None, reason: tuple[Any, ...]) -> Generator[Any, Any, None]:
    """Wait for what an operation awaits, however often the cancellation of this reason comes again.

    The reasons of anyio name the scope that was cancelled. A cancellation of asyncio's own has none, and
    reaches the operation like any other.
    """
    while awaited is not None and not awaited.done():
        done = asyncio.get_running_loop().create_future()
        awaited.add_done_callback(partial(_wake, done))
        try:
            yield from done
        except asyncio.CancelledError as error:
            if error.args != reason:
                awaited.cancel()
                awaited._asyncio_future_blocking = True  # what await does to a future before it yields it
                yield awaited
                return
    if awaited is None:
        try:
            yield None
        except asyncio.CancelledError as error:
            if error.args != reason:
                raise


def _wake(waiting: asyncio.Future[None], _: asyncio.Future[Any]) -> None:
    if not waiting.done():
        waiting.set_result(None)


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
