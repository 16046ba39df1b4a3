"""The bridge from threads without an event loop to one that runs in a thread of its own."""

from __future__ import annotations

import asyncio
import os
import sys
import threading
from collections.abc import AsyncIterator, Callable, Coroutine, Iterable
from contextlib import suppress
from contextvars import copy_context
from itertools import islice
from queue import SimpleQueue
from typing import Any, TypeVar
from weakref import WeakSet, finalize

from symfonic_pg.memory.errors import MemoryContractError, MemoryUnavailable

T = TypeVar("T")

# How many items of an iterable cross the bridge at once, and how many seconds an ended loop may clean up.
_CHUNK = 500
_JOIN = 5.0


class Bridge:
    """An event loop in a thread of its own, started by the first call and shared by any number of threads.

    A forked child gets a new one with its first call: what the old one held is its parent's. The thread ends
    with `close`, with the bridge's last reference, or with the interpreter.
    """

    lock: threading.RLock
    _loop: asyncio.AbstractEventLoop | None
    _thread: threading.Thread | None
    _ending: finalize[Any, Any] | None
    _calls: set[Call]

    def __init__(self) -> None:
        self._closed = False
        self._start_over()
        _bridges.add(self)

    def run(self, begin: Callable[[Call], Coroutine[Any, Any, T]]) -> T:
        """The result of a coroutine, run in the loop; `begin` makes it, in the calling thread.

        It runs in a copy of the caller's context. KeyboardInterrupt cancels it and goes on from here once it
        has cleaned up; a second one does not wait.
        """
        loop = self.loop
        if threading.current_thread() is self._thread:
            rule = "called from another thread than the bridge's own"
            raise MemoryContractError(f"a store of symfonic_pg.sync must be {rule}", field="store", rule=rule)
        call = Call(loop)
        operation = begin(call)
        self._calls.add(call)
        try:
            call.start(operation)
            result: T = call.outcome()
        except asyncio.CancelledError:
            raise MemoryUnavailable("the store was closed meanwhile") from None
        finally:
            self._calls.discard(call)
            if not call.begun:
                operation.close()
        return result

    @property
    def loop(self) -> asyncio.AbstractEventLoop:
        """The loop, started if need be; another one in a forked child."""
        with self.lock:
            if self._closed:
                raise MemoryUnavailable("the store is closed")
            if self._loop is None:
                self._start()
            assert self._loop is not None
            return self._loop

    def runs(self, loop: asyncio.AbstractEventLoop) -> bool:
        """Whether this is the loop that it runs now."""
        return loop is self._loop and not self._closed

    def close(self) -> None:
        """End the loop and its thread; what still runs in it is cancelled."""
        with self.lock:
            self._closed = True
        if self._ending is not None:
            self._ending()

    def _start(self) -> None:
        # On Windows psycopg cannot work with the default loop.
        loop = asyncio.SelectorEventLoop() if sys.platform == "win32" else asyncio.new_event_loop()
        self._thread = threading.Thread(
            target=_serve, args=(loop, self._calls), name="symfonic-pg-bridge", daemon=True
        )
        self._thread.start()
        self._loop = loop
        self._ending = finalize(self, _end, loop, self._thread, os.getpid())

    def _start_over(self) -> None:
        """Begin without loop and thread, as after a fork, which copies the one and not the other."""
        self.lock = threading.RLock()
        self._loop = self._thread = self._ending = None
        self._calls = set()


class Call:
    """One call across the bridge: a task in the loop, and the thread that waits and can be asked back."""

    def __init__(self, loop: asyncio.AbstractEventLoop) -> None:
        self._loop = loop
        self._task: asyncio.Task[Any] | None = None
        # What is to be done in the caller's thread; None when the task has ended.
        self._inbox: SimpleQueue[Callable[[], None] | None] = SimpleQueue()

    @property
    def begun(self) -> bool:
        """Whether the loop has taken the operation over."""
        return self._task is not None

    def start(self, operation: Coroutine[Any, Any, Any]) -> None:
        """Begin the operation in the loop; CancelledError where that has ended."""
        context = copy_context()

        def begin() -> None:
            self._task = self._loop.create_task(operation, context=context)
            self._task.add_done_callback(lambda _: self.end())

        try:
            self._loop.call_soon_threadsafe(begin)
        except RuntimeError:
            raise asyncio.CancelledError from None

    def end(self) -> None:
        """Nothing more is asked for: the operation has ended, or will not be run any more."""
        self._inbox.put(None)

    def outcome(self) -> Any:
        """Wait for the operation's end, in the caller's thread, and do there what it asks for."""
        interruption: BaseException | None = None
        while True:
            try:
                asked = self._inbox.get()
                if asked is None:
                    break
                asked()
            except BaseException as error:
                if interruption is not None:
                    raise
                interruption = error
                with suppress(RuntimeError):
                    self._loop.call_soon_threadsafe(self._cancel)
        if interruption is not None:
            raise interruption
        if self._task is None or not self._task.done():
            raise asyncio.CancelledError
        return self._task.result()

    async def items(self, iterable: Iterable[T]) -> AsyncIterator[T]:
        """The items of what the caller gave, taken in the caller's thread, to which they may belong."""
        iterator = iter(iterable)
        while chunk := await self._ask(lambda: list(islice(iterator, _CHUNK))):
            for item in chunk:
                yield item

    async def _ask(self, work: Callable[[], T]) -> T:
        answer: asyncio.Future[T] = self._loop.create_future()

        def do() -> None:
            try:
                value = work()
            except Exception as error:
                self._loop.call_soon_threadsafe(_settle, answer, None, error)
            else:
                self._loop.call_soon_threadsafe(_settle, answer, value, None)

        self._inbox.put(do)
        return await answer

    def _cancel(self) -> None:
        if self._task is not None:
            self._task.cancel()


def _settle(answer: asyncio.Future[Any], value: Any, error: Exception | None) -> None:
    if answer.done():
        return
    if error is None:
        answer.set_result(value)
    else:
        answer.set_exception(error)


def _serve(loop: asyncio.AbstractEventLoop, calls: set[Call]) -> None:
    asyncio.set_event_loop(loop)
    try:
        loop.run_forever()
        tasks = asyncio.all_tasks(loop)
        for task in tasks:
            task.cancel()
        loop.run_until_complete(asyncio.gather(*tasks, return_exceptions=True))
        loop.run_until_complete(loop.shutdown_asyncgens())
        loop.run_until_complete(loop.shutdown_default_executor())
    finally:
        loop.close()
        # Those that came too late to be begun, or to be ended, wait for a loop that is gone.
        for call in list(calls):
            call.end()


def _end(loop: asyncio.AbstractEventLoop, thread: threading.Thread, process: int) -> None:
    if process != os.getpid():
        return
    with suppress(RuntimeError):
        loop.call_soon_threadsafe(loop.stop)
    if thread is not threading.current_thread():
        thread.join(_JOIN)


_bridges: WeakSet[Bridge] = WeakSet()
# What a forked child has from its parent.
_inherited: list[object] = []


def inherit(thing: object) -> None:
    """Keep something of the parent's as it is: collected, it would close the parent's sockets."""
    if thing is not None:
        _inherited.append(thing)


def _forget_threads() -> None:
    for bridge in list(_bridges):
        inherit(bridge._loop)
        inherit(bridge._thread)
        if bridge._ending is not None:
            bridge._ending.detach()
        bridge._start_over()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_forget_threads)
