"""Things that belong to one event loop, for objects that may be used from several."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Generic, TypeVar
from weakref import WeakKeyDictionary

T = TypeVar("T")


class PerLoop(Generic[T]):
    """Makes one T for each running event loop, on first use.

    Semaphores and HTTP connections are bound to the loop that first used them, and a sync host (Django,
    a script with several asyncio.run) brings a new loop with every call.
    """

    def __init__(self, make: Callable[[], T]) -> None:
        self._make = make
        self._made: WeakKeyDictionary[asyncio.AbstractEventLoop, T] = WeakKeyDictionary()

    def get(self) -> T:
        """The running loop's own."""
        loop = asyncio.get_running_loop()
        made = self._made.get(loop)
        if made is None:
            made = self._made[loop] = self._make()
        return made

    def take(self) -> T | None:
        """The running loop's own, which is forgotten here; None where there is none."""
        return self._made.pop(asyncio.get_running_loop(), None)
