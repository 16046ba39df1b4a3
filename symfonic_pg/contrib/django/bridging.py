"""An event loop for an embedder, in the middle of code that must have none."""

from __future__ import annotations

from collections.abc import Callable, Coroutine
from typing import Any, TypeVar

from asgiref.sync import async_to_sync

from symfonic_pg.embedders import Embedder
from symfonic_pg.sync.stepping import Runner

Result = TypeVar("Result")


def one_loop_a_call(embedder: Embedder | None) -> Runner:
    """Runs what the embedder does, each call in a loop of its own that ends with it.

    A thread with a running loop may not use Django's connection, so the loop lasts no longer than it has
    to. An embedder with `aclose()` closes what it opened on that loop.
    """

    def run(make: Callable[[], Coroutine[Any, Any, Result]]) -> Result:
        async def call() -> Result:
            try:
                return await make()
            finally:
                if embedder is not None and hasattr(embedder, "aclose"):
                    await embedder.aclose()

        result: Result = async_to_sync(call, force_new_loop=True)()
        return result

    return run
