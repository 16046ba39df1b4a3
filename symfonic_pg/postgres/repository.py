"""MemoryRepository: the verbs of the store on PostgreSQL, each one statement."""

from __future__ import annotations

import json
from collections.abc import AsyncIterable, Iterable, Mapping, Sequence
from datetime import UTC, datetime
from typing import Any

from symfonic_pg.memory import checks
from symfonic_pg.memory.activation import Association
from symfonic_pg.memory.batches import checked_batch, checked_vector
from symfonic_pg.memory.documents import document
from symfonic_pg.memory.layers import RETRIEVABLE_LAYERS, MemoryLayer, layers_of
from symfonic_pg.memory.observations import MAX_FANOUT, ROUTES, Observation, Observations
from symfonic_pg.memory.observing import EmbeddingModel
from symfonic_pg.memory.records import MemoryQuery, MemoryRecord, RememberReport
from symfonic_pg.memory.requests import LoadItem, PageEnd, batches, distinct_ids, load_pair, page_end
from symfonic_pg.memory.scope import MemoryScope, scope_of
from symfonic_pg.memory.vectors import half_text
from symfonic_pg.memory.window import ConversationTurn
from symfonic_pg.postgres.executors import executor_for
from symfonic_pg.postgres.executors.base import Executor, Rows
from symfonic_pg.postgres.indexing import build_indexes
from symfonic_pg.postgres.rows import (
    association_from_row,
    columns,
    json_text,
    lineage_of,
    observations_from_rows,
    record_from_row,
    scope_parameters,
    turn_from_row,
)
from symfonic_pg.postgres.searching import SpokenLanguages, search_parameters
from symfonic_pg.postgres.statements import load_statement
from symfonic_pg.postgres.writing import Writing, unregistered
from symfonic_pg.terms import LANGUAGES, check_language

# At most so many edges of one memory at one level are followed, strongest first, and so many nodes in all.
EDGE_LIMIT = 1000
NODE_LIMIT = 5000

_COMPLETENESS = ("exact", "approximate", "truncated")


class MemoryRepository:
    """Memories in PostgreSQL.

    Reads see what lies at a scope or above it, writes touch exactly the scope given; ids that are not
    visible are neither counted nor an error. `language` is the text search configuration of records that
    name none. It runs on an executor or on whatever `executor_for` makes one of, within `timeout` seconds a
    call: on a pool or engine each call is a transaction of its own, on a session or connection all belong to
    the caller's. Raises MemoryContractError before any statement, MemoryUnavailable when the database cannot
    be asked.
    """

    def __init__(
        self, owner: object, *, schema: str = "symfonic", language: str = "english", timeout: float = 10.0
    ) -> None:
        self.executor = executor_for(owner, timeout=timeout)
        self.schema = schema
        self.language = check_language(language)
        # What never changes once it is known: a model's number and dimension.
        self._models: dict[str, EmbeddingModel] = {}
        self._spoken = SpokenLanguages(language)

    @property
    def borrowed(self) -> bool:
        """Whether it runs on a connection that somebody else owns."""
        return self.executor.borrowed

    def on(self, executor: Executor) -> MemoryRepository:
        """The same repository on another executor, such as a caller's transaction."""
        other = MemoryRepository(executor, schema=self.schema, language=self.language)
        other._models, other._spoken = self._models, self._spoken
        return other

    async def search(
        self,
        query: MemoryQuery,
        layers: frozenset[MemoryLayer],
        *,
        model: str | None = None,
        fanout: int = 50,
    ) -> Observations:
        """What each route finds at every level of the query's scope, and what was observed about it.

        `model` names the vectors that the query's embedding is compared with. No route takes more than
        `fanout` memories from a level, never less than the query's limit.
        """
        checks.instance(query, MemoryQuery, "query")
        at_most = max(checks.whole(fanout, "fanout", 1, MAX_FANOUT), query.limit)
        summary, found = await self._looked(
            query, layers_of(layers) & RETRIEVABLE_LAYERS, model, at_most, None
        )
        bounds = summary["bounds"]
        routes = {route: sum(route in one.routes for one in found) for route in ROUTES if route in bounds}
        return Observations(
            found,
            routes,
            ("vector",) if query.embedding is not None and "vector" not in bounds else (),
            {route: _COMPLETENESS[bounds[route]] for route in routes},
        )

    async def observe(
        self, query: MemoryQuery, record_ids: Iterable[str], *, model: str | None = None
    ) -> list[Observation]:
        """The same observations about named records, whatever their layer and validity, if visible."""
        checks.instance(query, MemoryQuery, "query")
        asked = distinct_ids(record_ids)
        _, found = await self._looked(query, RETRIEVABLE_LAYERS, model, 1, asked)
        return _in_order(asked, {one.record.record_id: one for one in found})

    async def get(self, scope: MemoryScope, record_ids: Iterable[str]) -> list[MemoryRecord]:
        """The visible ones of these records, in the order asked, each once."""
        scope, asked = scope_of(scope), distinct_ids(record_ids)
        rows = await self._rows("get_records", *scope_parameters(scope), asked)
        lineage = lineage_of(scope)
        return _in_order(asked, {row[1]: record_from_row(row, lineage) for row in rows})

    async def count(self, scope: MemoryScope) -> int:
        """How many memories are visible, of every layer, valid or not."""
        return await self._number("count_records", *scope_parameters(scope_of(scope)))

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
        scope, wanted = scope_of(scope), layers_of(layers) & RETRIEVABLE_LAYERS
        if kind is not None:
            checks.name(kind, "kind", checks.MAX_KIND_BYTES, least=0, blank=True)
        rows = await self._rows(
            "list_records",
            *scope_parameters(scope),
            sorted(wanted),
            kind,
            None if where is None else json_text(document(where, "where")),
            bool(exactly),
            checks.whole(limit, "limit", 1, checks.MAX_COUNT >> 32),
            *(page_end(after) or (None, None)),
        )
        lineage = lineage_of(scope)
        return [record_from_row(row, lineage) for row in rows]

    async def remember(
        self,
        records: Iterable[MemoryRecord],
        embeddings: Iterable[Sequence[float] | None] | None = None,
        *,
        model: str | None = None,
        text_version: str = "",
    ) -> RememberReport:
        """Insert or update a batch by record_id: all of it, or nothing where one record is bad.

        `embeddings` has one vector of `model` or None for each record; `text_version` is that of the hook
        that shaped what was embedded.
        """
        known = await self._registered(model)
        items = checked_batch(records, embeddings, known, languages=LANGUAGES)
        return await self._writing(known, text_version).remember(self.executor, items)

    async def load(
        self,
        items: Iterable[LoadItem] | AsyncIterable[LoadItem],
        *,
        model: str | None = None,
        text_version: str = "",
        batch_size: int = 5000,
    ) -> RememberReport:
        """Remember many records, or pairs of a record and its vector or None, by binary COPY.

        Each batch is a transaction: an error leaves the batches before it.
        """
        checks.whole(batch_size, "batch_size", 1)
        writing = self._writing(await self._registered(model), text_version)
        report = RememberReport()
        async for start, batch in batches(items, batch_size):
            pairs = [load_pair(item, place) for place, item in enumerate(batch, start)]
            checked = checked_batch(
                [record for record, _ in pairs],
                [vector for _, vector in pairs],
                writing.model,
                languages=LANGUAGES,
                start=start,
            )
            report += await writing.load(self.executor, checked)
        return report

    async def register_model(self, name: str, dimension: int, baseline: float = 0.0) -> EmbeddingModel:
        """The model of this name, new or as it was registered first; its dimension never changes.

        `dimension` is 1 to 4000, `baseline` the cosine of unrelated texts in [-1, 1).
        """
        checks.name(name, "model", checks.MAX_ID_BYTES)
        checks.whole(dimension, "dimension", 1, 4000)
        checks.number(baseline, "baseline", -1.0, 1.0)
        if baseline == 1.0:
            raise checks.broken("baseline", "below 1", baseline)
        rows: Rows = ()
        while not rows:
            rows = await self._rows("register_model", name, dimension, float(baseline))
        known = EmbeddingModel(*rows[0])
        if known.dimension != dimension:
            raise checks.broken(
                "dimension", f"{known.dimension}, as model {name!r} was registered", dimension
            )
        if not self.borrowed:
            self._models[name] = known
        return known

    async def models(self) -> Sequence[EmbeddingModel]:
        """The registered models, in the order of registration."""
        return [EmbeddingModel(*row) for row in await self._rows("list_models")]

    async def model(self, name: str) -> EmbeddingModel | None:
        """The registered model of this name, looked up once; None where there is none."""
        if name not in self._models:
            models = {model.name: model for model in await self.models()}
            if self.borrowed:
                # The caller may yet roll back the registration.
                return models.get(name)
            self._models.update(models)
        return self._models.get(name)

    async def index_model(self, name: str) -> None:
        """Build the vector indexes of a registered model that are missing, without blocking anybody.

        Worth it after the first bulk load: until then every search of its vectors is an exact scan. Takes
        minutes where there are many; for a pool of asyncpg or psycopg whose role owns the table.
        """
        known = await self._registered(name)
        assert known is not None
        await build_indexes(self.executor, known, schema=self.schema)

    async def find_embedded(self, records: Sequence[MemoryRecord], model: str, text_version: str) -> set[int]:
        """The places of the records whose vector of this model is still the one of their text."""
        texts = [(record.scope.tenant, record.record_id, record.content_hash) for record in records]
        rows = await self._rows("find_embedded", *columns(texts, 3), model, text_version)
        return {row[0] - 1 for row in rows}

    async def associate(self, scope: MemoryScope, edges: Iterable[Association]) -> int:
        """Write edges at a scope, weighing (0, 1]; passes over those with an end that is not visible."""
        scope = scope_of(scope)
        given = checks.members(edges, Association, "edges")
        for position, edge in enumerate(given):
            if not 0.0 < edge.weight <= 1.0:
                raise checks.broken(f"edges[{position}].weight", "above 0 and at most 1", edge.weight)
        weights = {key: edge.weight for key, edge in zip(_edge_keys(given, scope), given, strict=True) if key}
        values = list(map(str, weights.values()))
        return await self._number("associate", *scope_parameters(scope), *columns(list(weights), 3), values)

    async def dissociate(self, scope: MemoryScope, edges: Iterable[Association]) -> int:
        """Delete edges that lie exactly at a scope, whatever their weight."""
        scope = scope_of(scope)
        keys = dict.fromkeys(filter(None, _edge_keys(checks.members(edges, Association, "edges"), scope)))
        return await self._number("dissociate", *scope_parameters(scope), *columns(list(keys), 3))

    async def neighbours(self, scope: MemoryScope, record_ids: Iterable[str]) -> Sequence[Association]:
        """The visible edges out of these records between visible ends, strongest first, in one statement."""
        scope = scope_of(scope)
        rows = await self._rows("neighbours", *scope_parameters(scope), distinct_ids(record_ids), EDGE_LIMIT)
        lineage = lineage_of(scope)
        return [association_from_row(row, lineage) for row in rows]

    async def hops(
        self, scope: MemoryScope, record_id: str, record_ids: Iterable[str], max_hops: int
    ) -> dict[str, int]:
        """The fewest visible edges, in either direction, from one record to each of the others in reach."""
        scope, start = scope_of(scope), checks.record_id(record_id)
        checks.whole(max_hops, "max_hops", 0, 100)
        rows = await self._rows(
            "count_hops",
            *scope_parameters(scope),
            [start],
            distinct_ids(record_ids),
            max_hops,
            EDGE_LIMIT,
            NODE_LIMIT,
        )
        return {row[0]: row[1] for row in rows}

    async def append_turns(self, scope: MemoryScope, turns: Iterable[ConversationTurn]) -> int:
        """Add turns at exactly a scope and count the new ones; a turn_id that is there stays as it is."""
        scope = scope_of(scope)
        given = checks.members(turns, ConversationTurn, "turns")
        said = [(one.turn_id, str(one.turn), one.speaker, one.text) for one in given]
        return await self._number("append_turns", *scope_parameters(scope), *columns(said, 4))

    async def recent(self, scope: MemoryScope, limit: int) -> Sequence[ConversationTurn]:
        """The last turns at exactly a scope, by turn and then by arrival, oldest first."""
        checks.whole(limit, "limit", 0, checks.MAX_COUNT >> 32)
        rows = await self._rows("recent_turns", *scope_parameters(scope_of(scope)), limit)
        return [turn_from_row(row) for row in rows]

    async def reinforce(self, scope: MemoryScope, record_ids: Iterable[str]) -> int:
        """Count one use, at the scope, of each of these records that is visible there."""
        return await self._number(
            "reinforce", *scope_parameters(scope_of(scope)), distinct_ids(record_ids), datetime.now(UTC)
        )

    async def forget(self, scope: MemoryScope, record_ids: Iterable[str]) -> int:
        """Delete those of these records that lie exactly at the scope, with their edges, vectors and uses."""
        return await self._number(
            "forget_records", *scope_parameters(scope_of(scope)), distinct_ids(record_ids)
        )

    async def move(self, scope: MemoryScope, record_ids: Iterable[str], to: MemoryScope) -> int:
        """Take those of these records that lie exactly at the scope to another one of the same tenant."""
        scope, to = scope_of(scope), scope_of(to, "to")
        if to.tenant != scope.tenant:
            raise checks.broken("to", "a scope of the same tenant", str(to))
        return await self._number(
            "move_records", *scope_parameters(scope), distinct_ids(record_ids), *scope_parameters(to)[1:]
        )

    async def erase(self, scope: MemoryScope) -> int:
        """Delete all that lies at the scope and below it, and count the memories among it."""
        return await self._number("erase_scope", *scope_parameters(scope_of(scope)))

    async def _rows(self, name: str, *parameters: object) -> Rows:
        return await self.executor.fetch(load_statement(name, schema=self.schema).bind(*parameters))

    async def _number(self, name: str, *parameters: object) -> int:
        rows = await self._rows(name, *parameters)
        return int(rows[0][0])

    async def _looked(
        self,
        query: MemoryQuery,
        layers: frozenset[MemoryLayer],
        model: str | None,
        fanout: int,
        only: Sequence[str] | None,
    ) -> tuple[dict[str, Any], tuple[Observation, ...]]:
        """The summary and the finds of search.sql; asked again where the lineage speaks a new language."""
        vector = await self._vector(query, model)
        for _ in range(2):
            parameters = search_parameters(
                query,
                layers,
                fanout=fanout,
                model=model,
                vector=vector,
                language=self.language,
                spoken=self._spoken.of(query.scope.tenant),
                only=only,
            )
            rows = await self._rows("search", *parameters)
            summary: dict[str, Any] = json.loads(rows[0][0])
            if not self._spoken.meet(query.scope.tenant, summary["languages"]) or not query.cue:
                break
        return summary, observations_from_rows(rows[1:], query.scope)

    async def _vector(self, query: MemoryQuery, model: str | None) -> str | None:
        """The query's embedding as text, where its model is known."""
        if query.embedding is None or model is None:
            return None
        known = await self.model(model)
        return None if known is None else half_text(checked_vector(query.embedding, known))

    def _writing(self, model: EmbeddingModel | None, text_version: str) -> Writing:
        return Writing(self.schema, self.language, model, text_version)

    async def _registered(self, model: str | None) -> EmbeddingModel | None:
        if model is None:
            return None
        known = await self.model(model)
        if known is None:
            raise unregistered(model)
        return known


def _in_order(asked: Sequence[str], found: Mapping[str, Any]) -> list[Any]:
    return [found[record_id] for record_id in asked if record_id in found]


def _edge_keys(edges: Sequence[Association], scope: MemoryScope) -> list[tuple[str, str, str] | None]:
    """What tells edges at one scope apart; None for one whose target is another tenant's."""
    return [
        (edge.source_id, edge.target.record_id, edge.relationship)
        if edge.target.scope.tenant == scope.tenant
        else None
        for edge in edges
    ]
