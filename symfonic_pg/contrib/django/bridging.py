"""The one bridge from the async code to synchronous callers: it runs to its end where nothing has to wait."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Coroutine, Sequence
from functools import wraps
from typing import Any, Concatenate, ParamSpec, TypeVar

from asgiref.sync import async_to_sync

from symfonic_pg.embedders import Embedder, QueryEmbedder, Vector, baseline_of
from symfonic_pg.memory.errors import SymfonicError

Self = TypeVar("Self")
Target = TypeVar("Target")
Result = TypeVar("Result")
P = ParamSpec("P")


def complete(coroutine: Coroutine[Any, Any, Result]) -> Result:
    """The result of a coroutine none of whose awaits has to wait, in this thread and without an event loop.

    A thread with a running loop may not use Django's connection, and another thread has another connection:
    so nothing may come between the caller and its transaction. SymfonicError for a coroutine that would wait.
    """
    try:
        awaited = coroutine.send(None)
    except StopIteration as finished:
        result: Result = finished.value
        return result
    coroutine.close()
    raise SymfonicError(
        f"this needs an event loop, use async_memory_store(): waits for {type(awaited).__name__}"
    )


def completed(
    method: Callable[Concatenate[Target, P], Coroutine[Any, Any, Result]], target: Callable[[Self], Target]
) -> Callable[Concatenate[Self, P], Result]:
    """The synchronous twin of an async method; `target` finds what the method belongs to."""

    @wraps(method)
    def call(self: Self, /, *args: P.args, **kwargs: P.kwargs) -> Result:
        return complete(method(target(self), *args, **kwargs))

    return call


class LoopedEmbedder:
    """An embedder for coroutines that run without a loop: each call gets one of its own and ends with it.

    `timeout`, in seconds, bounds the embedding of a cue, for which somebody waits. An embedder with
    `aclose()` closes what it opened on that loop.
    """

    def __init__(self, embedder: Embedder, timeout: float | None) -> None:
        self._embedder = embedder
        self._timeout = timeout
        self.model = embedder.model
        self.dimension = embedder.dimension
        self.baseline = baseline_of(embedder)

    async def embed(self, texts: Sequence[str]) -> Sequence[Vector]:
        """One vector per text."""
        return self._in_a_loop(lambda: self._embedder.embed(texts), None)

    async def embed_query(self, text: str) -> Vector:
        """The vector of one cue."""
        return self._in_a_loop(lambda: self._query(text), self._timeout)

    async def _query(self, text: str) -> Vector:
        if isinstance(self._embedder, QueryEmbedder):
            return await self._embedder.embed_query(text)
        return (await self._embedder.embed([text]))[0]

    def _in_a_loop(self, ask: Callable[[], Awaitable[Result]], timeout: float | None) -> Result:
        async def call() -> Result:
            try:
                async with asyncio.timeout(timeout):
                    return await ask()
            finally:
                if hasattr(self._embedder, "aclose"):
                    await self._embedder.aclose()

        result: Result = async_to_sync(call, force_new_loop=True)()
        return result
