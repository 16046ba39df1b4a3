"""The verbs of MemoryStore that keep vectors up with their memories."""

from __future__ import annotations

from collections.abc import AsyncGenerator, Callable, Iterable
from contextlib import aclosing
from dataclasses import replace
from datetime import timedelta

from symfonic_pg.embedders import Embedder, EmbedderUnavailable, baseline_of
from symfonic_pg.memory import MemoryContractError, MemoryScope, checks
from symfonic_pg.memory.observing import EmbeddingModel
from symfonic_pg.memory.requests import distinct_ids
from symfonic_pg.memory.scope import scope_of
from symfonic_pg.postgres.pending import START, FailedEmbedding, PendingCounts, PendingVectors
from symfonic_pg.postgres.repository import MemoryRepository
from symfonic_pg.store.embedding import EmbeddingWorker, EmbedReport, Pace
from symfonic_pg.store.settings import StoreSettings

LEASE = timedelta(minutes=5)


class EmbeddingVerbs:
    """What can be done about memories without a current vector of the store's embedder.

    A vector is current if it was made of the memory's text, by this version of `embed_text`: whatever writes,
    whether it embeds or not, the tables say what is to be done, and a rolled back transaction leaves nothing.
    Upkeep, not reading: it goes over all tenants, or over one scope and all below it.
    """

    repository: MemoryRepository
    settings: StoreSettings

    async def embed_pending(
        self,
        *,
        scope: MemoryScope | str | None = None,
        limit: int | None = None,
        batch_size: int = 64,
        lease: timedelta = LEASE,
        attempts: int = 3,
        on_batch: Callable[[EmbedReport], object] | None = None,
    ) -> EmbedReport:
        """Embed what has no current vector, once over everything, and say what it came to.

        Takes `batch_size` memories (1 to 1000) at a time, at most `limit` in all, each for as long as
        `lease`; any number of callers, in any number of processes, share the work. A text that the embedder
        refuses `attempts` times (2 to 100) is set aside; one that it has no vector for at once. An embedder
        that does not answer ends the call with `unavailable`; its texts stay pending. `on_batch` is told of
        each batch.
        """
        worker, pending = await self._work(scope, Pace(limit, batch_size, lease, attempts))
        report = EmbedReport()
        stopped: str | None = None
        try:
            async with aclosing(worker.sweep()) as reports:
                async for batch in reports:
                    report += batch
                    if on_batch is not None:
                        on_batch(batch)
        except EmbedderUnavailable as exc:
            stopped = str(exc)
        return replace(report, remaining=(await pending.count()).waiting, unavailable=stopped)

    async def watch_pending(
        self,
        *,
        scope: MemoryScope | str | None = None,
        batch_size: int = 64,
        lease: timedelta = LEASE,
        attempts: int = 3,
        pause: timedelta = timedelta(seconds=2),
    ) -> AsyncGenerator[EmbedReport, None]:
        """Embed what has no current vector, now and as it comes, until the caller stops asking.

        Gives a report a batch, one with `remaining` whenever it has caught up, and one with `unavailable`
        when embedder or database do not answer: then it waits, longer each time. Looks for work every
        `pause`, less often where looking takes long. SchemaMismatch ends it.
        """
        checks.instance(pause, timedelta, "pause")
        checks.number(pause.total_seconds(), "pause", 0.0, 86_400.0)
        worker, _ = await self._work(scope, Pace(None, batch_size, lease, attempts))
        async with aclosing(worker.watch(pause)) as reports:
            async for report in reports:
                yield report

    async def count_pending(self, scope: MemoryScope | str | None = None) -> PendingCounts:
        """How many memories have no current vector: waiting, failed, or without one for good."""
        return await (await self._seen(scope)).count()

    async def failed_embeddings(
        self,
        scope: MemoryScope | str | None = None,
        *,
        without_embedding: bool = False,
        limit: int = 100,
        after: FailedEmbedding | None = None,
    ) -> list[FailedEmbedding]:
        """One page of the memories that were set aside, each with its error.

        `after` is the last one of the page before; `without_embedding` adds those that the model has no
        vector for.
        """
        checks.whole(limit, "limit", 1, checks.MAX_COUNT >> 32)
        pending = await self._seen(scope)
        start = START if after is None else after.key
        return await pending.failed(empty=bool(without_embedding), limit=limit, after=start)

    async def retry_embeddings(
        self, scope: MemoryScope | str | None = None, record_ids: Iterable[str] | None = None
    ) -> int:
        """Make memories that were set aside pending again, all or the named ones, and count them."""
        wanted = None if record_ids is None else distinct_ids(record_ids)
        return await (await self._seen(scope)).retry(wanted)

    async def _work(
        self, scope: MemoryScope | str | None, pace: Pace
    ) -> tuple[EmbeddingWorker, PendingVectors]:
        embedder = self._embedder()
        if self.repository.borrowed:
            raise MemoryContractError(
                "pending memories are embedded by the store itself, not in a caller's transaction: its locks"
                " would be held while the model runs",
                field="store",
            )
        pending = self._pending(await self._model(), scope)
        return EmbeddingWorker(pending, embedder, self.settings.embed_text, pace), pending

    async def _seen(self, scope: MemoryScope | str | None) -> PendingVectors:
        """What is pending; of a model that nobody has registered yet there is no vector at all."""
        embedder = self._embedder()
        known = await self.repository.model(embedder.model)
        return self._pending(known or EmbeddingModel(0, embedder.model, embedder.dimension), scope)

    def _pending(self, model: EmbeddingModel, scope: MemoryScope | str | None) -> PendingVectors:
        return PendingVectors(
            self.repository.executor,
            model,
            self.settings.embed_text.version,
            schema=self.repository.schema,
            scope=None if scope is None else scope_of(scope),
        )

    def _embedder(self) -> Embedder:
        if self.settings.embedder is None:
            raise MemoryContractError("this store has no embedder", field="embedder")
        return self.settings.embedder

    async def _model(self) -> EmbeddingModel:
        """The model of the store's embedder, registered where it was not."""
        embedder = self._embedder()
        known = await self.repository.model(embedder.model)
        if known is not None and known.dimension == embedder.dimension:
            return known
        return await self.repository.register_model(embedder.model, embedder.dimension, baseline_of(embedder))
