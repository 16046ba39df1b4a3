"""A thread for models that compute in this process."""

from __future__ import annotations

import asyncio
import os
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import TypeVar

T = TypeVar("T")


class Worker:
    """One thread, so that what runs in it never runs twice at once and never blocks the event loop.

    It starts on first use, and anew in a child process: a fork copies the object but not its thread.
    A call whose caller has gone is skipped if it has not begun, and finishes unheard if it has.
    """

    def __init__(self, name: str) -> None:
        self._name = name
        self._process: int | None = None
        self._executor: ThreadPoolExecutor | None = None

    async def run(self, function: Callable[[], T]) -> T:
        """The function's result, computed in the thread."""
        return await asyncio.get_running_loop().run_in_executor(self._thread(), function)

    def _thread(self) -> ThreadPoolExecutor:
        if self._executor is None or self._process != os.getpid():
            self._executor = ThreadPoolExecutor(max_workers=1, thread_name_prefix=self._name)
            self._process = os.getpid()
        return self._executor
