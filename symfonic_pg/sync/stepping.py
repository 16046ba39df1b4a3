"""The async store above a blocking executor: its coroutines never wait, and so need no loop."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine, Sequence
from dataclasses import replace
from typing import Any, Protocol, Self, TypeVar

from symfonic_pg.embedders import Embedder, QueryEmbedder, Vector, baseline_of
from symfonic_pg.postgres.repository import MemoryRepository
from symfonic_pg.store import MemoryStore, StoreSettings

T = TypeVar("T")


class Runner(Protocol):
    """Runs what does need a loop, and waits for it: an embedder."""

    def __call__(self, make: Callable[[], Coroutine[Any, Any, T]], /) -> T: ...


class SteppedStore(MemoryStore):
    """A store that `complete` can drive: its executor is a blocking one, its embedder brings a loop."""

    def __init__(self, repository: MemoryRepository, settings: StoreSettings, **fields: Any) -> None:
        # The deadlines are the embedder's own: without a loop there are none to be had.
        super().__init__(repository, replace(settings, embed_timeout=None), **fields)
        self._source.embed_timeout = None

    @classmethod
    def with_loop(
        cls, repository: MemoryRepository, settings: StoreSettings, run: Runner, **fields: Any
    ) -> Self:
        """The store, its embedder run by `run`."""
        embedder = settings.embedder
        if embedder is not None:
            settings = replace(settings, embedder=LoopedEmbedder(embedder, run, settings.timeout))
        return cls(repository, settings, **fields)


class LoopedEmbedder:
    """An embedder for coroutines without a loop. `timeout`, in seconds, bounds the embedding of a cue."""

    def __init__(self, embedder: Embedder, run: Runner, timeout: float) -> None:
        self._embedder = embedder
        self._run = run
        self._timeout = timeout
        self.model = embedder.model
        self.dimension = embedder.dimension
        self.baseline = baseline_of(embedder)

    async def embed(self, texts: Sequence[str]) -> Sequence[Vector]:
        """One vector per text."""
        return self._run(lambda: self._texts(texts))

    async def embed_query(self, text: str) -> Vector:
        """The vector of one cue."""
        return self._run(lambda: self._query(text))

    async def _texts(self, texts: Sequence[str]) -> Sequence[Vector]:
        return await self._embedder.embed(texts)

    async def _query(self, text: str) -> Vector:
        async with asyncio.timeout(self._timeout):
            if isinstance(self._embedder, QueryEmbedder):
                return await self._embedder.embed_query(text)
            return (await self._embedder.embed([text]))[0]
