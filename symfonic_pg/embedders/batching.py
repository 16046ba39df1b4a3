"""Batches, bounded concurrency, timeouts and retries: one mechanism for every embedder."""

from __future__ import annotations

import asyncio
import random
from collections.abc import Awaitable, Callable, Coroutine, Iterator, Sequence
from dataclasses import dataclass
from typing import Any, TypeAlias

from symfonic_pg.embedders.errors import EmbedderUnavailable
from symfonic_pg.embedders.loops import PerLoop
from symfonic_pg.embedders.protocol import Vector, check_count, check_dimension
from symfonic_pg.memory.checks import number, whole

Send: TypeAlias = Callable[[Sequence[str]], Awaitable[Sequence[Vector]]]

_LONG = 86_400.0  # seconds: nobody means to wait longer than a day


@dataclass(frozen=True, slots=True)
class Retry:
    """How often and after which pauses a passing failure is tried again.

    The pause before attempt n + 1 is between a half and the whole of min(longest, first * 2^(n - 1))
    seconds (exponential backoff with equal jitter: Brooker, "Exponential Backoff and Jitter", 2015).
    """

    attempts: int = 5
    first: float = 0.5
    longest: float = 30.0

    def __post_init__(self) -> None:
        whole(self.attempts, "attempts", 1)
        number(self.first, "first", 0.0, _LONG)
        number(self.longest, "longest", self.first, _LONG)

    def pause(self, failed: int, retry_after: float | None = None, chance: float = 1.0) -> float | None:
        """Seconds to wait after `failed` attempts, or None to give up; chance in [0, 1] is the jitter.

        What the endpoint asks for by Retry-After is never undercut: more than `longest` is giving up.
        """
        if failed >= self.attempts or (retry_after is not None and retry_after > self.longest):
            return None
        # Beyond 2^64 the product would overflow long before it mattered.
        backoff = min(self.longest, self.first * 2.0 ** min(failed - 1, 64)) * (0.5 + 0.5 * chance)
        return max(backoff, retry_after or 0.0)


class Batching:
    """Sends texts of one model in batches and puts the vectors back in order.

    A batch has at most `size` texts and `characters` characters; a text is cut after `longest`
    characters; a blank one is not sent and gets a zero vector. At most `concurrency` batches are on
    their way at once, over all calls on one event loop. `timeout` seconds bound each attempt of a batch;
    for a query, which somebody waits for, they bound all attempts together. The first batch that fails
    for good fails the call and cancels the rest.
    """

    def __init__(
        self,
        model: str,
        dimension: int,
        *,
        size: int = 64,
        characters: int = 100_000,
        longest: int = 8_000,
        concurrency: int = 4,
        timeout: float | None = 30.0,
        retry: Retry | None = None,
    ) -> None:
        self.model = model
        self.dimension = whole(dimension, "dimension", 1)
        self.size = whole(size, "size", 1)
        self.characters = whole(characters, "characters", 1)
        self.longest = whole(longest, "longest", 1)
        self.concurrency = whole(concurrency, "concurrency", 1)
        self.timeout = None if timeout is None else number(timeout, "timeout", 0.0, _LONG)
        self.retry = Retry() if retry is None else retry
        self._slots = PerLoop(lambda: asyncio.Semaphore(concurrency))

    async def embed(self, texts: Sequence[str], send: Send) -> list[Vector]:
        """One vector per text, in their order; `send` answers one batch."""
        vectors: list[Vector] = [self._nothing()] * len(texts)
        batches = self._batches(texts)

        async def work() -> None:
            for positions, batch in batches:
                answered = await self._attempts(batch, send)
                for position, vector in zip(positions, answered, strict=True):
                    vectors[position] = vector

        # A call never holds more than `concurrency` places in the queue, so that a query is not kept
        # waiting behind a whole load.
        await _together([work] * max(1, min(self.concurrency, len(texts))))
        return vectors

    async def embed_one(self, text: str, send: Send) -> Vector:
        """The vector of one query."""
        text = text[: self.longest]
        if not text.strip():
            return self._nothing()
        loop = asyncio.get_running_loop()
        until = None if self.timeout is None else loop.time() + self.timeout
        return (await self._attempts([text], send, until))[0]

    def _nothing(self) -> Vector:
        return (0.0,) * self.dimension

    def _batches(self, texts: Sequence[str]) -> Iterator[tuple[list[int], list[str]]]:
        positions: list[int] = []
        batch: list[str] = []
        characters = 0
        for position, text in enumerate(texts):
            text = text[: self.longest]
            if not text.strip():
                continue
            if batch and (len(batch) == self.size or characters + len(text) > self.characters):
                yield positions, batch
                positions, batch, characters = [], [], 0
            positions.append(position)
            batch.append(text)
            characters += len(text)
        if batch:
            yield positions, batch

    async def _attempts(
        self, batch: Sequence[str], send: Send, until: float | None = None
    ) -> Sequence[Vector]:
        """The answer to one batch, tried until it comes, `until` (loop time) or the retries run out."""
        failed = 0
        while True:
            try:
                return await self._attempt(batch, send, until)
            except EmbedderUnavailable as exc:
                failed += 1
                pause = self.retry.pause(failed, exc.retry_after, random.random())
                now = asyncio.get_running_loop().time()
                if pause is None or (until is not None and now + pause >= until):
                    raise
            await asyncio.sleep(pause)

    async def _attempt(self, batch: Sequence[str], send: Send, until: float | None) -> Sequence[Vector]:
        try:
            async with asyncio.timeout_at(until), self._slots.get(), asyncio.timeout(self.timeout):
                vectors = await send(batch)
        except TimeoutError as exc:
            limit = "in time" if self.timeout is None else f"within {self.timeout:g} seconds"
            raise EmbedderUnavailable(
                f"the embedder {self.model} gave no answer {limit}", model=self.model
            ) from exc
        check_count(vectors, len(batch), self.model)
        for vector in vectors:
            check_dimension(vector, self.dimension, self.model)
        return vectors


async def _together(workers: Sequence[Callable[[], Coroutine[Any, Any, None]]]) -> None:
    """Runs them at once; the first failure cancels the others and is raised as it is, not in a group."""
    if len(workers) == 1:
        return await workers[0]()
    failure: BaseException | None = None
    try:
        async with asyncio.TaskGroup() as group:
            for worker in workers:
                group.create_task(worker())
    except BaseExceptionGroup as failures:
        failure = failures.exceptions[0]
    if failure is not None:
        raise failure
