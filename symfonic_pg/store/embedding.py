"""Embedding what stands as pending: batches taken by lease, written if their text is still the same."""

from __future__ import annotations

import asyncio
import logging
import random
import time
from collections.abc import AsyncGenerator, Sequence
from contextlib import aclosing, suppress
from dataclasses import dataclass
from datetime import timedelta

from symfonic_pg.embedders import (
    Embedder,
    EmbedderError,
    EmbedderUnavailable,
    EmbedText,
    Retry,
    embed_texts,
)
from symfonic_pg.memory import MemoryUnavailable, SchemaMismatch, checks
from symfonic_pg.memory.window import flattened
from symfonic_pg.postgres.pending import START, Key, PendingMemory, PendingVectors

logger = logging.getLogger("symfonic_pg.store")

# A text that no model can object to: it tells an embedder that is out of order from a text that it cannot
# take.
_HARMLESS = "memory"

# How long a watcher leaves an embedder or a database alone that does not answer.
_BACKOFF = Retry(attempts=1 << 30, first=1.0, longest=300.0)

# Looking for work takes at most this share of an idle watcher's time, unless that made it wait too long.
_IDLE_SHARE = 0.05
_LONGEST_PAUSE = 60.0

_DAY = 86_400.0


@dataclass(frozen=True, slots=True)
class EmbedReport:
    """What embedding pending memories came to; every memory that was tried is in one of the first four.

    `embedded` have their vector now, `without_embedding` are those that the model has none for, `changed`
    those whose text was changed or deleted while it was embedded. `failed` were refused by the embedder,
    each by itself; `set_aside` of them too often to be tried again. `remaining` stand as pending
    afterwards, those that others are embedding included; None where nobody counted. `unavailable` says why
    embedding stopped early.
    """

    embedded: int = 0
    without_embedding: int = 0
    changed: int = 0
    failed: int = 0
    set_aside: int = 0
    remaining: int | None = None
    unavailable: str | None = None

    @property
    def tried(self) -> int:
        """How many memories the model was asked about."""
        return self.embedded + self.without_embedding + self.changed + self.failed

    def __add__(self, other: EmbedReport) -> EmbedReport:
        """Both together; what is left, and why it stopped, are the later one's."""
        if not isinstance(other, EmbedReport):
            return NotImplemented
        return EmbedReport(
            self.embedded + other.embedded,
            self.without_embedding + other.without_embedding,
            self.changed + other.changed,
            self.failed + other.failed,
            self.set_aside + other.set_aside,
            other.remaining,
            other.unavailable,
        )


@dataclass(frozen=True, slots=True)
class Pace:
    """How pending memories are taken: at most `limit`, `batch_size` at a time, each for as long as `lease`.

    A text that is refused is tried `attempts` times in all, the last time by itself.
    """

    limit: int | None = None
    batch_size: int = 64
    lease: timedelta = timedelta(minutes=5)
    attempts: int = 3

    def __post_init__(self) -> None:
        if self.limit is not None:
            checks.whole(self.limit, "limit", 0)
        checks.whole(self.batch_size, "batch_size", 1, 1000)
        checks.instance(self.lease, timedelta, "lease")
        checks.number(self.lease.total_seconds(), "lease", 0.001, _DAY)
        checks.whole(self.attempts, "attempts", 2, 100)


class EmbeddingWorker:
    """Embeds the pending memories of one model, in one task; any number of workers may run at once.

    A worker that is cancelled gives back what it has; one that is killed keeps it until the lease runs out.
    """

    def __init__(
        self, pending: PendingVectors, embedder: Embedder, embed_text: EmbedText, pace: Pace
    ) -> None:
        self._pending = pending
        self._embedder = embedder
        self._embed_text = embed_text
        self._pace = pace

    async def sweep(self) -> AsyncGenerator[EmbedReport, None]:
        """Go once over all memories; a report a batch.

        EmbedderUnavailable where the embedder does not answer, MemoryUnavailable where the database does not;
        what was not finished then is pending as before.
        """
        position: Key | None = START
        left = self._pace.limit
        while position is not None and left != 0:
            batch = self._pace.batch_size if left is None else min(left, self._pace.batch_size)
            claim = await self._pending.claim(
                position, batch=batch, lease=self._pace.lease, attempts=self._pace.attempts
            )
            if claim.memories:
                report, again = await self._settled(claim.memories)
                if left is not None:
                    left -= report.tried
                if report.tried:
                    yield report
                if again:
                    # Refused as a whole: the same memories come again from here, each by itself.
                    continue
            position = claim.reached

    async def watch(self, pause: timedelta) -> AsyncGenerator[EmbedReport, None]:
        """Sweep again and again: a report a batch, and one whenever it has caught up or has to wait.

        Waits for `pause` after a sweep, longer where sweeping takes long. While the embedder or the
        database is out of reach it waits longer and longer, up to five minutes.
        """
        failures, caught_up = 0, False
        while True:
            started, wait = time.monotonic(), pause.total_seconds()
            try:
                async with aclosing(self.sweep()) as reports:
                    async for report in reports:
                        failures, caught_up = 0, False
                        yield report
                spent = time.monotonic() - started
                failures = 0
                if not caught_up:
                    caught_up = True
                    yield EmbedReport(remaining=(await self._pending.count()).waiting)
                else:
                    wait = max(wait, min(spent / _IDLE_SHARE, _LONGEST_PAUSE))
            except SchemaMismatch:
                raise
            except (EmbedderUnavailable, MemoryUnavailable) as exc:
                failures, caught_up = failures + 1, False
                wait = backoff(failures, exc)
                yield EmbedReport(unavailable=str(exc))
            await asyncio.sleep(wait)

    async def _settled(self, memories: Sequence[PendingMemory]) -> tuple[EmbedReport, bool]:
        """What became of them, and whether those not in the report are to be tried one by one."""
        texts: list[str] = []
        kept: list[PendingMemory] = []
        report = EmbedReport()
        for memory in memories:
            try:
                texts.append(self._text(memory))
                kept.append(memory)
            except EmbedderError as exc:
                report += await self._failed(memory, exc)
        if not kept:
            return report, False
        try:
            settled = await self._embedded(kept, texts)
        except BaseException:
            # Cancelled, or out of reach: nobody should have to wait until the lease runs out.
            with suppress(MemoryUnavailable):
                await self._pending.release(kept)
            raise
        return report + (settled or EmbedReport()), settled is None

    async def _embedded(self, memories: Sequence[PendingMemory], texts: Sequence[str]) -> EmbedReport | None:
        try:
            vectors = await self._asked(texts)
        except EmbedderUnavailable:
            raise
        except EmbedderError as exc:
            await self._probe()
            if len(memories) == 1:
                return await self._failed(memories[0], exc)
            await self._pending.fail(memories, str(exc), attempts=self._pace.attempts, at_once=True)
            return None
        return EmbedReport(*await self._pending.store(memories, vectors))

    async def _failed(self, memory: PendingMemory, error: EmbedderError) -> EmbedReport:
        """The report of a memory that was refused by itself; it keeps its lease, so that it rests a while."""
        logger.warning("attempt %d to embed a memory failed: %s", memory.attempt, flattened(str(error)))
        set_aside = await self._pending.fail(
            [memory], str(error), attempts=self._pace.attempts, at_once=False
        )
        return EmbedReport(failed=1, set_aside=set_aside)

    def _text(self, memory: PendingMemory) -> str:
        try:
            text = self._embed_text(memory.record)
        except Exception as exc:  # the host's code: one record that it cannot take must not stop the others
            raise EmbedderError(f"embed_text failed: {type(exc).__name__}") from exc
        if not isinstance(text, str):
            raise EmbedderError(f"embed_text returned no str: {type(text).__name__}")
        return text

    async def _asked(self, texts: Sequence[str]) -> Sequence[tuple[float, ...] | None]:
        """The vectors, within the lease: later, others would be at the same texts."""
        seconds = self._pace.lease.total_seconds()
        try:
            async with asyncio.timeout(seconds):
                return await embed_texts(self._embedder, texts)
        except TimeoutError as exc:
            raise EmbedderUnavailable(
                f"the embedder {self._embedder.model} gave no answer within the lease of {seconds:g} seconds",
                model=self._embedder.model,
            ) from exc

    async def _probe(self) -> None:
        """EmbedderUnavailable unless the embedder takes a harmless text: then the fault is not the texts'."""
        try:
            await self._asked([_HARMLESS])
        except EmbedderUnavailable:
            raise
        except EmbedderError as exc:
            raise EmbedderUnavailable(str(exc), model=exc.model) from exc


def backoff(failures: int, error: Exception) -> float:
    """Seconds to leave alone what did not answer, never less than it asked for."""
    asked: float | None = getattr(error, "retry_after", None)
    return _BACKOFF.pause(failures, asked, random.random()) or asked or _BACKOFF.longest
