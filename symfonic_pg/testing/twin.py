"""The in-memory twin of the repository: the same verbs, rules and numbers, without a server."""

from __future__ import annotations

from collections.abc import AsyncIterable, Callable, Iterable, Mapping, Sequence
from dataclasses import replace
from datetime import UTC, datetime
from typing import Any

from symfonic_pg.memory import checks
from symfonic_pg.memory.activation import Association
from symfonic_pg.memory.batches import BatchItem, checked_batch, checked_vector, elsewhere
from symfonic_pg.memory.documents import contains, document
from symfonic_pg.memory.layers import RETRIEVABLE_LAYERS, MemoryLayer, layers_of
from symfonic_pg.memory.observations import MAX_FANOUT, Observation, Observations
from symfonic_pg.memory.observing import EmbeddingModel
from symfonic_pg.memory.records import MemoryQuery, MemoryRecord, RememberReport
from symfonic_pg.memory.requests import LoadItem, PageEnd, batches, distinct_ids, load_pair, page_end
from symfonic_pg.memory.scope import MemoryScope, scope_of
from symfonic_pg.memory.window import ConversationTurn
from symfonic_pg.terms import LANGUAGES, check_language, term_counts
from symfonic_pg.testing.looking import Lookout, nearest_hops, newest_first, page_key
from symfonic_pg.testing.storage import (
    StoredMemory,
    StoredVector,
    Tenant,
    Usage,
    same_memory,
    with_fields,
)


class InMemoryRepository:
    """Memories held in this process, with the semantics of the repository on PostgreSQL.

    Slow and obvious on purpose: it is what the real one is compared with. `language` is that of records which
    name none; `clock` gives the moment of a query without as_of and of a use. No verb gives way to another
    task while it works, so each is atomic.
    """

    borrowed = False

    def __init__(
        self, *, language: str = "english", clock: Callable[[], datetime] = lambda: datetime.now(UTC)
    ) -> None:
        self.language = check_language(language)
        self._clock = clock
        self._tenants: dict[str, Tenant] = {}
        self._models: dict[str, EmbeddingModel] = {}

    async def search(
        self,
        query: MemoryQuery,
        layers: frozenset[MemoryLayer],
        *,
        model: str | None = None,
        fanout: int = 50,
    ) -> Observations:
        """What each route finds at every level of the query's scope, and what was observed about it."""
        checks.instance(query, MemoryQuery, "query")
        at_most = max(checks.whole(fanout, "fanout", 1, MAX_FANOUT), query.limit)
        return self._lookout(query, model).search(layers_of(layers) & RETRIEVABLE_LAYERS, at_most)

    async def observe(
        self, query: MemoryQuery, record_ids: Iterable[str], *, model: str | None = None
    ) -> list[Observation]:
        """The same observations about named records, whatever their layer and validity, if visible."""
        lookout = self._lookout(query, model)
        return [lookout.observe(id) for id in distinct_ids(record_ids) if id in lookout.lineage]

    async def get(self, scope: MemoryScope, record_ids: Iterable[str]) -> list[MemoryRecord]:
        """The visible ones of these records, in the order asked, each once."""
        scope = scope_of(scope)
        seen = self._tenant(scope).visible(scope)
        return [seen[id].seen_from(scope) for id in distinct_ids(record_ids) if id in seen]

    async def count(self, scope: MemoryScope) -> int:
        """How many memories are visible, of every layer, valid or not."""
        scope = scope_of(scope)
        return len(self._tenant(scope).visible(scope))

    async def list(
        self,
        scope: MemoryScope,
        *,
        layers: Iterable[MemoryLayer] = RETRIEVABLE_LAYERS,
        kind: str | None = None,
        where: Mapping[str, Any] | None = None,
        exactly: bool = False,
        limit: int = 100,
        after: PageEnd | None = None,
    ) -> list[MemoryRecord]:
        """One page of what is visible, newest first and then by record_id, valid or not.

        `exactly` leaves out the levels above; `after` is the last record of the previous page or its
        (updated_at, record_id).
        """
        scope, wanted = scope_of(scope), layers_of(layers)
        filter = None if where is None else document(where, "where")
        checks.whole(limit, "limit", 1)
        if kind is not None:
            checks.name(kind, "kind", checks.MAX_KIND_BYTES, least=0, blank=True)
        end = page_end(after)
        page = [
            memory
            for memory in self._tenant(scope).visible(scope).values()
            if memory.record.layer in wanted
            and (kind is None or memory.record.kind == kind)
            and (filter is None or contains(memory.record.metadata, filter))
            and (memory.record.scope == scope or not exactly)
            and (end is None or newest_first(memory.record) > page_key(*end))
        ]
        page.sort(key=lambda memory: newest_first(memory.record))
        return [memory.seen_from(scope) for memory in page[:limit]]

    async def remember(
        self,
        records: Iterable[MemoryRecord],
        embeddings: Iterable[Sequence[float] | None] | None = None,
        *,
        model: str | None = None,
        text_version: str = "",
    ) -> RememberReport:
        """Insert or update a batch by record_id: all of it, or nothing where one record is bad."""
        return self._remember(records, embeddings, model, text_version, start=0)

    async def load(
        self,
        items: Iterable[LoadItem] | AsyncIterable[LoadItem],
        *,
        model: str | None = None,
        text_version: str = "",
        batch_size: int = 1000,
    ) -> RememberReport:
        """Remember records, or pairs of a record and its vector or None, batch by batch."""
        checks.whole(batch_size, "batch_size", 1)
        report = RememberReport()
        async for start, batch in batches(items, batch_size):
            pairs = [load_pair(item, place) for place, item in enumerate(batch, start)]
            records, vectors = [record for record, _ in pairs], [vector for _, vector in pairs]
            report += self._remember(records, vectors, model, text_version, start)
        return report

    async def register_model(self, name: str, dimension: int, baseline: float = 0.0) -> EmbeddingModel:
        """The model of this name, new or as it was registered first; its dimension never changes."""
        checks.name(name, "model", checks.MAX_ID_BYTES)
        checks.whole(dimension, "dimension", 1, 4000)
        checks.number(baseline, "baseline", -1.0, 1.0)
        if baseline == 1.0:
            raise checks.broken("baseline", "below 1", baseline)
        number = len(self._models) + 1
        known = self._models.setdefault(name, EmbeddingModel(number, name, dimension, float(baseline)))
        if known.dimension != dimension:
            raise checks.broken(
                "dimension", f"{known.dimension}, as model {name!r} was registered", dimension
            )
        return known

    async def models(self) -> Sequence[EmbeddingModel]:
        """The registered models, in the order of registration."""
        return list(self._models.values())

    async def model(self, name: str) -> EmbeddingModel | None:
        """The registered model of this name, None where there is none."""
        return self._models.get(name)

    async def associate(self, scope: MemoryScope, edges: Iterable[Association]) -> int:
        """Write edges at a scope, weighing (0, 1]; passes over those with an end that is not visible."""
        scope = scope_of(scope)
        given = checks.members(edges, Association, "edges")
        for position, edge in enumerate(given):
            if not 0.0 < edge.weight <= 1.0:
                raise checks.broken(f"edges[{position}].weight", "above 0 and at most 1", edge.weight)
        tenant = self._tenant(scope)
        seen = tenant.visible(scope)
        written = {
            (scope, edge.source_id, edge.target.record_id, edge.relationship): edge.weight
            for edge in given
            if edge.source_id in seen
            and edge.target.record_id in seen
            and edge.target.scope.tenant == scope.tenant
        }
        tenant.edges.update(written)
        return len(written)

    async def dissociate(self, scope: MemoryScope, edges: Iterable[Association]) -> int:
        """Delete edges that lie exactly at a scope, whatever their weight."""
        scope = scope_of(scope)
        tenant = self._tenant(scope)
        doomed = {
            (scope, edge.source_id, edge.target.record_id, edge.relationship)
            for edge in checks.members(edges, Association, "edges")
        } & tenant.edges.keys()
        for key in doomed:
            del tenant.edges[key]
        return len(doomed)

    async def neighbours(self, scope: MemoryScope, record_ids: Iterable[str]) -> Sequence[Association]:
        """The visible edges out of these records between visible ends, strongest first."""
        scope, asked = scope_of(scope), frozenset(distinct_ids(record_ids))
        tenant = self._tenant(scope)
        found = [
            Association(source, tenant.memories[target].seen_from(scope), relationship, weight)
            for (source, target, relationship), weight in tenant.visible_edges(scope).items()
            if source in asked
        ]
        found.sort(key=lambda edge: (-edge.weight, edge.source_id, edge.target.record_id, edge.relationship))
        return found

    async def hops(
        self, scope: MemoryScope, record_id: str, record_ids: Iterable[str], max_hops: int
    ) -> dict[str, int]:
        """The fewest visible edges, in either direction, from one record to each of the others in reach."""
        scope, start = scope_of(scope), checks.record_id(record_id)
        checks.whole(max_hops, "max_hops", 0)
        tenant = self._tenant(scope)
        seen = tenant.visible(scope)
        reached = nearest_hops(tenant.visible_edges(scope), [start] if start in seen else [], max_hops)
        return {id: reached[id] for id in distinct_ids(record_ids) if id in reached}

    async def append_turns(self, scope: MemoryScope, turns: Iterable[ConversationTurn]) -> int:
        """Add turns at exactly a scope and count the new ones; a turn_id that is there stays as it is."""
        scope = scope_of(scope)
        given = checks.members(turns, ConversationTurn, "turns")
        kept = self._tenant(scope).turns.setdefault(scope, {})
        before = len(kept)
        for turn in given:
            kept.setdefault(turn.turn_id, turn)
        return len(kept) - before

    async def recent(self, scope: MemoryScope, limit: int) -> Sequence[ConversationTurn]:
        """The last turns at exactly a scope, by turn and then by arrival, oldest first."""
        scope = scope_of(scope)
        checks.whole(limit, "limit", 0)
        turns = sorted(self._tenant(scope).turns.get(scope, {}).values(), key=lambda turn: turn.turn)
        return turns[-limit:] if limit else []

    async def reinforce(self, scope: MemoryScope, record_ids: Iterable[str]) -> int:
        """Count one use, at the scope, of each of these records that is visible there."""
        scope = scope_of(scope)
        seen, moment = self._tenant(scope).visible(scope), self._clock()
        used = [seen[id] for id in distinct_ids(record_ids) if id in seen]
        for memory in used:
            usage = memory.uses.setdefault(scope, Usage(0, moment))
            usage.count, usage.last = usage.count + 1, max(usage.last, moment)
        return len(used)

    async def forget(self, scope: MemoryScope, record_ids: Iterable[str]) -> int:
        """Delete those of these records that lie exactly at the scope, with their edges, vectors and uses."""
        scope = scope_of(scope)
        return self._tenant(scope).remove(self._at(scope, record_ids))

    async def move(self, scope: MemoryScope, record_ids: Iterable[str], to: MemoryScope) -> int:
        """Take those of these records that lie exactly at the scope to another one of the same tenant."""
        scope, to = scope_of(scope), scope_of(to, "to")
        if to.tenant != scope.tenant:
            raise checks.broken("to", "a scope of the same tenant", str(to))
        moving = self._at(scope, record_ids)
        for record_id in moving:
            memory = self._tenant(scope).memories[record_id]
            memory.record = with_fields(memory.record, scope=to)
        return len(moving)

    async def erase(self, scope: MemoryScope) -> int:
        """Delete all that lies at the scope and below it, and count the memories among it."""
        scope = scope_of(scope)
        return self._tenant(scope).erase(scope)

    def _tenant(self, scope: MemoryScope) -> Tenant:
        return self._tenants.setdefault(scope.tenant, Tenant())

    def _at(self, scope: MemoryScope, record_ids: Iterable[str]) -> Sequence[str]:
        """The ids that lie exactly at the scope."""
        memories = self._tenant(scope).memories
        return [
            id for id in distinct_ids(record_ids) if id in memories and memories[id].record.scope == scope
        ]

    def _lookout(self, query: MemoryQuery, model: str | None) -> Lookout:
        checks.instance(query, MemoryQuery, "query")
        known = None if query.embedding is None or model is None else self._models.get(model)
        return Lookout(
            self._tenant(query.scope),
            query,
            query.as_of or self._clock(),
            language=self.language,
            model=None if known is None else known.name,
            numbers=None if known is None else checked_vector(query.embedding, known),
        )

    def _remember(
        self,
        records: Iterable[MemoryRecord],
        embeddings: Iterable[Sequence[float] | None] | None,
        model: str | None,
        text_version: str,
        start: int,
    ) -> RememberReport:
        known = self._known(model)
        items = checked_batch(records, embeddings, known, languages=LANGUAGES, start=start)
        for item in items:
            stored = self._stored(item.record)
            if stored is not None and stored.record.scope != item.record.scope:
                raise elsewhere(item.position, item.record.record_id)
        report = RememberReport()
        for item in items:
            report += self._write(item, known, text_version)
        return report

    def _known(self, model: str | None) -> EmbeddingModel | None:
        if model is not None and model not in self._models:
            raise checks.broken("model", f"one of those registered ({', '.join(self._models)})", model)
        return None if model is None else self._models[model]

    def _stored(self, record: MemoryRecord) -> StoredMemory | None:
        return self._tenant(record.scope).memories.get(record.record_id)

    def _write(self, item: BatchItem, model: EmbeddingModel | None, text_version: str) -> RememberReport:
        memory = self._stored(item.record)
        if memory is None:
            memory, report = self._insert(item.record), RememberReport(inserted=1)
        elif same_memory(memory.record, item.record):
            report = RememberReport(unchanged=1)
        else:
            self._update(memory, item.record)
            report = RememberReport(updated=1)
        content_hash = memory.record.content_hash
        if model is not None and item.embedding is not None:
            memory.vectors[model.name] = StoredVector(item.embedding, content_hash, text_version)
        embedded = any(
            model is None or (name == model.name and vector.text_version == text_version)
            for name, vector in memory.vectors.items()
        )
        return report if embedded else replace(report, without_embedding=1)

    def _insert(self, record: MemoryRecord) -> StoredMemory:
        language = record.language or self.language
        memory = StoredMemory(with_fields(record), language, term_counts(record.text, language))
        self._tenant(record.scope).memories[record.record_id] = memory
        return memory

    def _update(self, memory: StoredMemory, record: MemoryRecord) -> None:
        stored = memory.record
        if stored.text != record.text:
            memory.vectors.clear()
        memory.language = record.language or self.language
        memory.term_counts = term_counts(record.text, memory.language)
        memory.record = with_fields(
            record,
            created_at=record.created_at if record.created_at_given else stored.created_at,
            access_count=stored.access_count,
            last_accessed_at=stored.last_accessed_at,
        )
