"""Ends a statement of a synchronous driver that takes too long, from beside the thread that waits for it.

Such a driver waits in the very thread that would have to stop it, and a timeout of the server's would be a
setting of the session, which is not ours to change.
"""

from __future__ import annotations

import heapq
import os
import socket
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from contextvars import ContextVar, copy_context
from itertools import count
from typing import TYPE_CHECKING, Any, ParamSpec, TypeVar

from symfonic_pg.postgres.executors.deadlines import GRACE

if TYPE_CHECKING:
    import psycopg

P = ParamSpec("P")
ResultT = TypeVar("ResultT")

_observer: ContextVar[Interruptions | None] = ContextVar("symfonic_pg statements", default=None)


@contextmanager
def interrupted(connection: psycopg.Connection[Any], seconds: float) -> Iterator[Interruption]:
    """The block's statement is cancelled after `seconds`, its connection cut `GRACE` seconds later."""
    interruption = Interruption(connection)
    observer = _observer.get()
    if observer is not None:
        observer.meets(interruption)
    alarm = _watch.after(seconds, interruption.cancel)
    try:
        yield interruption
    finally:
        alarm.call_off()
        interruption.end()


class Interruption:
    """What is done about one block until it ends; `began` says whether anything was."""

    def __init__(self, connection: psycopg.Connection[Any]) -> None:
        self.began = False
        self._connection = connection
        self._cut: _Alarm | None = None
        # Who holds it may be sure that the block has not ended: a late cancellation would hit the host's next
        # statement.
        self._lasting = threading.Lock()
        self._ended = False

    def cancel(self) -> None:
        """Ask the server to stop, as politely as it takes requests."""
        with self._lasting:
            if self._ended:
                return
            self.began = True
            self._cut = _watch.after(GRACE, self.cut)
            with suppress(Exception):
                self._connection.cancel_safe(timeout=GRACE)

    def cut(self) -> None:
        """Shut the socket: whoever reads from a server that does not answer sees its end."""
        if not self._ended:
            with suppress(Exception), _socket_of(self._connection) as duplicate:
                duplicate.shutdown(socket.SHUT_RDWR)

    def end(self) -> None:
        """Nothing more happens to the connection."""
        with self._lasting:
            self._ended = True
        if self._cut is not None:
            self._cut.call_off()


def _socket_of(connection: psycopg.Connection[Any]) -> socket.socket:
    return socket.socket(fileno=os.dup(connection.pgconn.socket))


class Interruptions:
    """The statements of a piece of work that runs in another thread, to be stopped from here."""

    def __init__(self) -> None:
        self._latest: Interruption | None = None
        self._stopped = False

    def watching(self, work: Callable[P, ResultT], *args: P.args, **kwargs: P.kwargs) -> ResultT:
        """Do the work, and know its statements."""
        context = copy_context()
        context.run(_observer.set, self)
        return context.run(work, *args, **kwargs)

    def meets(self, interruption: Interruption) -> None:
        """The next statement begins; none does any more once the work was stopped."""
        self._latest = interruption
        if self._stopped:
            raise TimeoutError

    def stop(self) -> None:
        """Cancel the statement that runs, and let no other begin."""
        self._stopped = True
        if self._latest is not None:
            threading.Thread(target=self._latest.cancel, name="symfonic-pg-interrupt", daemon=True).start()


class _Alarm:
    """Something to be done later, unless it is called off."""

    def __init__(self, act: Callable[[], None]) -> None:
        self.act: Callable[[], None] | None = act

    def call_off(self) -> None:
        """Forget what was to be done."""
        self.act = None


class _Watch:
    """One thread for the alarms of a process: one for each statement would cost more than the statement.

    It starts with the first alarm and ends when none is left for a minute. What an alarm does may take a
    while, and gets a thread of its own.
    """

    def __init__(self) -> None:
        self._changed = threading.Condition()
        self._alarms: list[tuple[float, int, _Alarm]] = []
        self._numbers = count()
        self._running = False

    def after(self, seconds: float, act: Callable[[], None]) -> _Alarm:
        """Do something when so many seconds have passed."""
        alarm = _Alarm(act)
        entry = (time.monotonic() + seconds, next(self._numbers), alarm)
        with self._changed:
            heapq.heappush(self._alarms, entry)
            if not self._running:
                threading.Thread(target=self._run, name="symfonic-pg-watch", daemon=True).start()
                self._running = True
            elif self._alarms[0] is entry:
                self._changed.notify()
        return alarm

    def _run(self) -> None:
        while True:
            with self._changed:
                if not self._alarms and not self._changed.wait(60) and not self._alarms:
                    self._running = False
                    return
                if not self._alarms:
                    continue
                due, _, alarm = self._alarms[0]
                if (remaining := due - time.monotonic()) > 0:
                    self._changed.wait(remaining)
                    continue
                heapq.heappop(self._alarms)
            act = alarm.act
            if act is not None:
                threading.Thread(target=act, name="symfonic-pg-interrupt", daemon=True).start()


_watch = _Watch()


def _start_over() -> None:
    # A forked child has no thread but the one that forked.
    global _watch
    _watch = _Watch()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_start_over)
