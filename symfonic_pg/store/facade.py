"""MemoryStore: the one object that most people use."""

from __future__ import annotations

import asyncio
import os
import time
from collections.abc import AsyncIterable, AsyncIterator, Iterable, Mapping, Sequence
from contextlib import asynccontextmanager
from functools import partial
from typing import Any, Self, Unpack

from symfonic_pg.memory import (
    MemoryContractError,
    MemoryLayer,
    MemoryQuery,
    MemoryRecord,
    RememberReport,
    RetrievalPolicy,
    RetrievalResult,
)
from symfonic_pg.memory.batches import checked_batch
from symfonic_pg.memory.checks import instance
from symfonic_pg.memory.layers import RETRIEVABLE_LAYERS, layers_of
from symfonic_pg.memory.observations import Observations
from symfonic_pg.memory.recall import (
    Association,
    ConversationTurn,
    HydratedRecall,
    Hydrator,
    SpreadingActivation,
    WorkingWindow,
    memory_capabilities,
)
from symfonic_pg.memory.requests import LoadItem, PageEnd, batches, load_pair
from symfonic_pg.postgres.connecting import connected
from symfonic_pg.postgres.dsn import normalise
from symfonic_pg.postgres.embedded import EmbeddedServer
from symfonic_pg.postgres.executors import executor_for
from symfonic_pg.postgres.health import check_writes
from symfonic_pg.postgres.migrations import migrate
from symfonic_pg.postgres.replicas import FallbackExecutor
from symfonic_pg.postgres.repository import MemoryRepository
from symfonic_pg.postgres.sources import PostgresCandidateSource
from symfonic_pg.store.arguments import Scope, asked_by, edges_of, scope_named
from symfonic_pg.store.embedding_verbs import EmbeddingVerbs
from symfonic_pg.store.explaining import MemoryExplanation, explained
from symfonic_pg.store.logs import log_slow
from symfonic_pg.store.settings import StoreOptions, StoreSettings
from symfonic_pg.store.vectors import needed_vectors
from symfonic_pg.terms import LANGUAGES


class MemoryStore(EmbeddingVerbs):
    """Memories in PostgreSQL, written and recalled.

    Open one with `connect`, `embedded` or `on`, each an async context manager or, for `on`, a plain call.
    Every verb sees what lies at its scope and above, and writes at exactly its scope. Safe for any number of
    tasks at once. Raises MemoryContractError for what the caller got wrong, MemoryUnavailable when the
    database cannot be asked. Recalls and reads go to `reading`, the repository itself unless there is a
    replica.
    """

    def __init__(
        self,
        repository: MemoryRepository,
        settings: StoreSettings,
        *,
        dsn: str | None = None,
        reading: MemoryRepository | None = None,
    ) -> None:
        self.repository = repository
        self.settings = settings
        self._dsn = dsn
        self._reading = reading or repository
        self._source = PostgresCandidateSource(
            self._reading,
            embedder=settings.embedder,
            fanout=settings.fanout,
            half_life=settings.half_life,
            cosine_share=settings.cosine_share,
            embed_timeout=settings.timeout,
        )
        # Made here, so that settings that make no sense are refused before the first recall.
        self._activation = SpreadingActivation(
            self._source, settings.max_hops, settings.decay, settings.max_nodes
        )
        self._window = WorkingWindow(self._source, settings.recent_turns, settings.exclude_speakers)

    @classmethod
    @asynccontextmanager
    async def connect(
        cls,
        dsn: str,
        *,
        pool_min: int = 0,
        pool_max: int = 10,
        driver: str | None = None,
        prepared_statements: bool | None = None,
        read_dsn: str | None = None,
        read_fallback: bool = False,
        **options: Unpack[StoreOptions],
    ) -> AsyncIterator[Self]:
        """A store on a pool of its own, for as long as the block lasts; see StoreSettings for the options.

        `dsn` is `postgresql://…`, also in SQLAlchemy's forms with `+asyncpg` or `+psycopg`, which then
        choose the `driver` unless it is given; by default asyncpg where it is installed.
        Statements are prepared unless a pooler stands before the database; prepared_statements=True is for
        one that carries them along. The first call connects.

        `read_dsn` names a replica: recalls and reads go there, on a second pool of the same size, and `fresh`
        is the same store without it. A replica that cannot be asked is MemoryUnavailable; with
        read_fallback=True the primary answers in its place.
        """
        settings = StoreSettings(**options)
        pool = partial(
            connected,
            driver=driver,
            timeout=settings.timeout,
            pool_min=pool_min,
            pool_max=pool_max,
            prepared_statements=prepared_statements,
        )
        executor = pool(dsn)
        reader = None if read_dsn is None else pool(read_dsn)
        if reader is not None and read_fallback:
            reader = FallbackExecutor(reader, executor, timeout=settings.timeout)
        try:
            repository = MemoryRepository(executor, schema=settings.schema, language=settings.language)
            reading = None if reader is None else repository.on(reader)
            yield cls(repository, settings, dsn=normalise(dsn), reading=reading)
        finally:
            await executor.close()
            if reader is not None:
                await reader.close()

    @classmethod
    @asynccontextmanager
    async def embedded(
        cls, path: str | os.PathLike[str], *, driver: str | None = None, **options: Unpack[StoreOptions]
    ) -> AsyncIterator[Self]:
        """A store on a private PostgreSQL under `path`, started and migrated when it has to be.

        Data survives a restart, and two processes can share one path. Needs the extra `embedded`.
        """
        settings = StoreSettings(**options)
        async with EmbeddedServer(path) as server:
            await asyncio.to_thread(migrate, server.dsn, schema=settings.schema)
            async with cls.connect(server.dsn, driver=driver, **options) as store:
                yield store

    @classmethod
    def on(cls, owner: object, **options: Unpack[StoreOptions]) -> Self:
        """A store on the host's AsyncEngine, or pool of asyncpg or psycopg, which is never closed."""
        settings = StoreSettings(**options)
        executor = executor_for(owner, timeout=settings.timeout)
        return cls(MemoryRepository(executor, schema=settings.schema, language=settings.language), settings)

    def using(self, connection: object) -> Self:
        """The same store in the transaction of a caller's AsyncSession, AsyncConnection or driver connection.

        Commit and rollback stay the caller's, and so does the connection.
        """
        executor = executor_for(connection, timeout=self.settings.timeout)
        return type(self)(self.repository.on(executor), self.settings, dsn=self._dsn)

    @property
    def fresh(self) -> Self:
        """The same store with its reads on the primary, where every write that has returned is seen."""
        return type(self)(self.repository, self.settings, dsn=self._dsn)

    async def check(self) -> None:
        """Raise MemoryUnavailable, with the reason, where a write or a recall would fail; writes nothing."""
        await check_writes(self.repository)
        if self._reading is not self.repository:
            await self._reading.models()

    @property
    def dsn(self) -> str:
        """The address of the database, a `postgresql://` URI; MemoryContractError for a store on a host's
        pool.
        """
        if self._dsn is None:
            raise MemoryContractError(
                "a store on a host's pool or connection does not know its address", field="dsn"
            )
        return self._dsn

    async def recall(
        self,
        /,
        query: MemoryQuery | Scope,
        cue: str | RetrievalPolicy | None = None,
        *,
        policy: RetrievalPolicy | None = None,
        **fields: Any,
    ) -> HydratedRecall:
        """Memories in order, the conversation window, and the ledger of both.

        Takes a MemoryQuery and a policy, or a scope, a cue and the query's other fields by name.
        """
        asked, policy = asked_by(query, cue, policy, fields)
        started = time.perf_counter()
        recalled = await self._hydrator(policy).hydrate(asked)
        log_slow(time.perf_counter() - started, self.settings.slow_recall, recalled.retrieval.result)
        return recalled

    async def retrieve(
        self,
        /,
        query: MemoryQuery | Scope,
        cue: str | RetrievalPolicy | None = None,
        *,
        policy: RetrievalPolicy | None = None,
        **fields: Any,
    ) -> RetrievalResult:
        """Memories in order without the window; takes what recall takes."""
        asked, policy = asked_by(query, cue, policy, fields)
        started = time.perf_counter()
        result = await self._hydrator(policy).coordinator.retrieve(asked)
        log_slow(time.perf_counter() - started, self.settings.slow_recall, result)
        return result

    async def search(
        self,
        query: MemoryQuery,
        layers: Iterable[MemoryLayer] = RETRIEVABLE_LAYERS,
        *,
        model: str | None = None,
    ) -> Observations:
        """What each route finds, and what was observed about it, before anybody judges it.

        `model` names the vectors that the query's embedding is compared with; the cue is not embedded.
        """
        return await self._reading.search(query, layers_of(layers), model=model, fanout=self.settings.fanout)

    async def explain(
        self, query: MemoryQuery, record_id: str, policy: RetrievalPolicy | None = None
    ) -> MemoryExplanation | None:
        """Why a memory is in the query's answer or out of it, with the numbers; asks again and looks once
        more.

        None where the record is not visible at the query's scope, which is the same as that it does not
        exist.
        """
        instance(query, MemoryQuery, "query")
        recalled = await self.recall(query, policy=policy)
        candidates = await self._source.observe(query, [record_id])
        if not candidates:
            return None
        return await explained(candidates[0], query, policy or self.settings.policy, recalled.report)

    async def remember(
        self,
        records: MemoryRecord | Iterable[MemoryRecord],
        embeddings: Iterable[Sequence[float] | None] | None = None,
        *,
        model: str | None = None,
    ) -> RememberReport:
        """Insert or update one record or a batch; embedded first where the store has an embedder.

        If the embedder fails, the records are written all the same and stand as pending: `without_embedding`
        counts them, and they are recalled by the other routes. `embeddings` take its place; they are of
        `model`, by default the embedder's.
        """
        given = [records] if isinstance(records, MemoryRecord) else records
        if embeddings is None and self.settings.embedder is None:
            return await self.repository.remember(given, model=model)
        if embeddings is not None:
            if model is not None or self.settings.embedder is None:
                return await self.repository.remember(given, embeddings, model=model)
            own, version = await self._model(), self.settings.embed_text.version
            return await self.repository.remember(given, embeddings, model=own.name, text_version=version)
        # A bad batch is refused before it costs an embedding.
        batch = list(given)
        checked_batch(batch, None, None, languages=LANGUAGES)
        return await self._embed_and_remember(batch)

    async def load(
        self,
        items: Iterable[LoadItem] | AsyncIterable[LoadItem],
        *,
        model: str | None = None,
        batch_size: int = 5000,
    ) -> RememberReport:
        """Remember many records, or pairs of a record and its vector of `model`, by binary COPY, batch by
        batch.

        Records without a vector are embedded where the store has an embedder and no model is named.
        """
        if model is not None or self.settings.embedder is None:
            return await self.repository.load(items, model=model, batch_size=batch_size)
        report = RememberReport()
        known = await self._model()
        async for start, batch in batches(items, batch_size):
            pairs = [load_pair(item, place) for place, item in enumerate(batch, start)]
            vectors = await needed_vectors(
                [record for record, vector in pairs if vector is None], self.repository, self.settings
            )
            fresh = iter(vectors)
            filled = [(record, next(fresh) if vector is None else vector) for record, vector in pairs]
            report += await self.repository.load(
                filled, model=known.name, text_version=self.settings.embed_text.version, batch_size=batch_size
            )
        return report

    async def get(self, scope: Scope, record_ids: Iterable[str]) -> list[MemoryRecord]:
        """The visible ones of these records, in the order asked, each once."""
        return await self._reading.get(scope_named(scope), record_ids)

    async def count(self, scope: Scope) -> int:
        """How many memories are visible, of every layer, valid or not."""
        return await self._reading.count(scope_named(scope))

    async def list(
        self,
        scope: Scope,
        *,
        layers: Iterable[MemoryLayer] = RETRIEVABLE_LAYERS,
        kind: str | None = None,
        where: Mapping[str, Any] | None = None,
        exactly: bool = False,
        limit: int = 100,
        after: PageEnd | None = None,
    ) -> list[MemoryRecord]:
        """One page of what is visible, newest first; `after` is the last record of the page before."""
        return await self._reading.list(
            scope_named(scope),
            layers=layers,
            kind=kind,
            where=where,
            exactly=exactly,
            limit=limit,
            after=after,
        )

    async def reinforce(self, scope: Scope, record_ids: Iterable[str]) -> int:
        """Count one use, at the scope, of each of these records that is visible there."""
        return await self.repository.reinforce(scope_named(scope), record_ids)

    async def forget(self, scope: Scope, record_ids: Iterable[str]) -> int:
        """Delete those of these records that lie exactly at the scope."""
        return await self.repository.forget(scope_named(scope), record_ids)

    async def move(self, scope: Scope, record_ids: Iterable[str], to: Scope) -> int:
        """Take those of these records that lie exactly at the scope to another one of the same tenant."""
        return await self.repository.move(scope_named(scope), record_ids, scope_named(to))

    async def erase(self, scope: Scope) -> int:
        """Delete all that lies at the scope and below it, and count the memories among it."""
        return await self.repository.erase(scope_named(scope))

    async def associate(self, scope: Scope, edges: Association | Iterable[Association]) -> int:
        """Write edges at a scope between memories that are visible there."""
        return await self.repository.associate(scope_named(scope), edges_of(edges))

    async def dissociate(self, scope: Scope, edges: Association | Iterable[Association]) -> int:
        """Delete edges that lie exactly at a scope."""
        return await self.repository.dissociate(scope_named(scope), edges_of(edges))

    async def neighbours(self, scope: Scope, record_ids: Iterable[str]) -> Sequence[Association]:
        """The visible edges out of these records, strongest first."""
        return await self._reading.neighbours(scope_named(scope), record_ids)

    async def append_turns(self, scope: Scope, turns: Iterable[ConversationTurn]) -> int:
        """Add turns to the conversation at exactly a scope, and count the new ones."""
        return await self.repository.append_turns(scope_named(scope), turns)

    async def append_turn(self, scope: Scope, turn: ConversationTurn) -> int:
        """Add one turn; 0 where its turn_id is there already."""
        return await self.append_turns(scope, [turn])

    async def recent(self, scope: Scope, limit: int) -> Sequence[ConversationTurn]:
        """The last turns at exactly a scope, oldest first."""
        return await self._reading.recent(scope_named(scope), limit)

    def _hydrator(self, policy: RetrievalPolicy | None) -> Hydrator:
        return memory_capabilities(
            self._source,
            policy=policy or self.settings.policy,
            activation=self._activation if self.settings.max_hops else None,
            window=self._window,
        )

    async def _embed_and_remember(self, batch: Sequence[MemoryRecord]) -> RememberReport:
        model = await self._model()
        vectors = await needed_vectors(batch, self.repository, self.settings)
        return await self.repository.remember(
            batch, vectors, model=model.name, text_version=self.settings.embed_text.version
        )
