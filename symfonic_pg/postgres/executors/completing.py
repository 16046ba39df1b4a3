"""Coroutines that never wait, run to their end without an event loop."""

from __future__ import annotations

from collections.abc import Coroutine
from typing import Any, TypeVar

from symfonic_pg.memory.errors import SymfonicError

ResultT = TypeVar("ResultT")


def complete(coroutine: Coroutine[Any, Any, ResultT]) -> ResultT:
    """The result of a coroutine none of whose awaits has to wait, in this thread and without a loop.

    So the code above a blocking executor runs where the caller's connection may be used, also in a thread in
    which a loop runs, and nothing else gets between. SymfonicError for a coroutine that would wait.
    """
    try:
        awaited = coroutine.send(None)
    except StopIteration as finished:
        result: ResultT = finished.value
        return result
    coroutine.close()
    raise SymfonicError(f"this cannot be done without an event loop: it waits for {type(awaited).__name__}")
