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
    async with asyncio.timeout(seconds) as deadline:
        return await _Impatient(operation, grace, after, deadline)


class _Impatient(Awaitable[ResultT], Generic[ResultT]):
    """Awaits a coroutine; `grace` seconds after its first cancellation it is cancelled once more.

    A cancelled driver asks the server to stop and waits for the reply, which is right, and which against a
    server that hangs would never end. This sits between the task and the coroutine, sees the cancellation
    pass, and costs nothing until then: a supervising task would cost each statement two turns of the event
    loop. anyio delivers one cancellation again at every await: it counts once.
    """

    def __init__(
        self,
        operation: Coroutine[Any, Any, ResultT],
        grace: float,
        after: BaseException | None,
        deadline: asyncio.Timeout,
    ) -> None:
        self._operation = operation
        self._grace = grace
        self._deadline = deadline
        self._second: _SecondCancellation | None = None
        # Why the operation was cancelled; anyio names the scope, asyncio gives no reason.
        self._reason = after.args if isinstance(after, asyncio.CancelledError) else ()

    def __await__(self) -> Generator[Any, Any, ResultT]:
        step, value = self._operation.send, None
        try:
            while True:
                try:
                    awaited = step(value)
                except StopIteration as finished:
                    return finished.value  # type: ignore[no-any-return]
                except Exception as error:
                    if self._second is None:
                        raise
                    # A failure to clean up must not hide that the operation was cancelled.
                    raise asyncio.CancelledError from error
                try:
                    if self._reason:
                        step, value = self._operation.send, (yield from self._undisturbed(awaited))
                    else:
                        step, value = self._operation.send, (yield awaited)
                except GeneratorExit:
                    self._operation.close()
                    raise
                except BaseException as error:
                    if self._second is None and isinstance(error, asyncio.CancelledError):
                        self._second, self._reason = _SecondCancellation(self._grace), error.args
                    step, value = self._operation.throw, error
        finally:
            if self._second is not None:
                self._second.disarm()

    def _undisturbed(self, awaited: asyncio.Future[Any] | None) -> Generator[Any, Any, Any]:
        """Wait for what the operation awaits, however often a cancellation comes that was there before."""
        while awaited is not None and not awaited.done():
            # Cancelling a task cancels what it waits for: this stands in for it.
            done = asyncio.get_running_loop().create_future()
            wake = partial(_wake, done)
            awaited.add_done_callback(wake)
            try:
                yield from done
            except asyncio.CancelledError as error:
                awaited.remove_done_callback(wake)
                if self._counts(error):
                    awaited.cancel()
                    awaited._asyncio_future_blocking = True  # as await leaves a future that it yields
                    return (yield awaited)
        if awaited is None:
            try:
                yield None
            except asyncio.CancelledError as error:
                if self._counts(error):
                    raise
        return None

    def _counts(self, error: asyncio.CancelledError) -> bool:
        """Whether it is another cancellation than the one before.

        That of one of our timers may come under the other's reason, if both meet between two steps of a task.
        """
        fired = self._second is not None and self._second.fired
        return fired or self._deadline.expired() or error.args != self._reason


def _wake(waiting: asyncio.Future[None], _: asyncio.Future[Any]) -> None:
    if not waiting.done():
        waiting.set_result(None)


class _SecondCancellation:
    """A timer that cancels the current task, and takes that back from its count when it is disarmed."""

    def __init__(self, grace: float) -> None:
        task = asyncio.current_task()
        assert task is not None
        self._task = task
        self.fired = False
        self._timer = asyncio.get_running_loop().call_later(grace, self._fire)

    def _fire(self) -> None:
        self.fired = True
        self._task.cancel()

    def disarm(self) -> None:
        self._timer.cancel()
        if self.fired:
            self._task.uncancel()
