"""What the in-memory repository sees at a scope: the routes of a search and the observations of its finds."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from datetime import UTC, datetime
from functools import cached_property

from symfonic_pg.memory.documents import contains
from symfonic_pg.memory.graph import distances
from symfonic_pg.memory.layers import MemoryLayer
from symfonic_pg.memory.observations import ROUTES, Observation, Observations
from symfonic_pg.memory.records import PROFILE, MemoryQuery, MemoryRecord
from symfonic_pg.memory.signals import inverse_document_frequency, lex
from symfonic_pg.memory.vectors import cosine
from symfonic_pg.terms import terms
from symfonic_pg.testing.storage import StoredMemory, Tenant

MAX_HOPS = 3

# Subtracting from it turns newest first into ascending, without rounding.
_LATEST = datetime.max.replace(tzinfo=UTC)

_SortKey = Callable[[StoredMemory], tuple[object, ...]]


class Lookout:
    """One look at a tenant's memories from a query's scope, at one moment.

    `model` names the vectors that `numbers`, the query's at unit length in half precision, is compared with;
    both are None where there is nothing to compare. `language` is that of records which name none.
    """

    def __init__(
        self,
        tenant: Tenant,
        query: MemoryQuery,
        moment: datetime,
        *,
        language: str,
        model: str | None = None,
        numbers: tuple[float, ...] | None = None,
    ) -> None:
        self.query = query
        self.moment = moment
        self.language = language
        self.model = model
        self.numbers = numbers
        self.lineage = tenant.visible(query.scope)
        self.edges = tenant.visible_edges(query.scope)
        self._cosines: dict[str, float | None] = {}
        self._lexes: dict[str, float | None] = {}

    def search(self, layers: frozenset[MemoryLayer], fanout: int) -> Observations:
        """What the routes find, each filled from every level, at most `fanout` a level."""
        live = [memory for memory in self.lineage.values() if self._is_eligible(memory, layers)]
        found = {route: self._filled(route, live, fanout) for route in ROUTES if self._runs(route)}
        routes_of: dict[str, set[str]] = {}
        for route, record_ids in found.items():
            for record_id in record_ids:
                routes_of.setdefault(record_id, set()).add(route)
        return Observations(
            found=tuple(
                self.observe(record_id, frozenset(routes)) for record_id, routes in routes_of.items()
            ),
            routes={route: len(record_ids) for route, record_ids in found.items()},
            unavailable=("vector",) if self.query.embedding is not None and self.numbers is None else (),
            completeness={route: self._completeness(route) for route in found},
        )

    def observe(self, record_id: str, routes: frozenset[str] = frozenset()) -> Observation:
        """The observation of one visible memory."""
        memory = self.lineage[record_id]
        return Observation(
            record=memory.seen_from(self.query.scope),
            distance=self.query.scope.distance(memory.record.scope),
            routes=routes,
            cosine=self._cosine(memory),
            lex=self._lex(memory),
            hops=self.hops.get(record_id),
        )

    def _is_eligible(self, memory: StoredMemory, layers: frozenset[MemoryLayer]) -> bool:
        record = memory.record
        return (
            record.layer in layers
            and is_live(record, self.moment)
            and (self.query.where is None or contains(record.metadata, self.query.where))
        )

    def _runs(self, route: str) -> bool:
        if route == "vector":
            return self.numbers is not None
        if route == "lexical":
            return any(self.asked.values())
        return route != "graph" or bool(self.query.context_ids)

    def _filled(self, route: str, live: Iterable[StoredMemory], fanout: int) -> list[str]:
        holds, order = self._rules(route)
        levels: dict[int, list[StoredMemory]] = {}
        for memory in live:
            if holds(memory):
                levels.setdefault(memory.record.scope.depth, []).append(memory)
        return [
            memory.record.record_id
            for _, level in sorted(levels.items(), reverse=True)
            for memory in sorted(level, key=order)[:fanout]
        ]

    def _rules(self, route: str) -> tuple[Callable[[StoredMemory], bool], _SortKey]:
        """Whom a route finds and whom it prefers."""
        rules: Mapping[str, tuple[Callable[[StoredMemory], bool], _SortKey]] = {
            "vector": (
                lambda memory: self._cosine(memory) is not None,
                lambda memory: (-(self._cosine(memory) or 0.0), memory.record.record_id),
            ),
            "lexical": (
                lambda memory: bool(self._lex(memory)),
                lambda memory: (-(self._lex(memory) or 0.0), memory.record.record_id),
            ),
            "recent": (lambda memory: True, lambda memory: newest_first(memory.record)),
            "salient": (
                lambda memory: memory.record.salience is not None,
                lambda memory: most_salient_first(memory.record),
            ),
            "profile": (
                lambda memory: memory.record.kind == PROFILE,
                lambda memory: most_salient_first(memory.record),
            ),
            "graph": (
                lambda memory: self.hops.get(memory.record.record_id, 0) > 0,
                lambda memory: (self.hops[memory.record.record_id], memory.record.record_id),
            ),
        }
        return rules[route]

    def _completeness(self, route: str) -> str:
        # Who lies a hop further is not known.
        return "truncated" if route == "graph" and MAX_HOPS in self.hops.values() else "exact"

    def _cosine(self, memory: StoredMemory) -> float | None:
        record_id = memory.record.record_id
        if record_id not in self._cosines:
            mine = None if self.model is None else memory.vectors.get(self.model)
            self._cosines[record_id] = (
                None if mine is None or self.numbers is None else cosine(mine.numbers, self.numbers)
            )
        return self._cosines[record_id]

    def _lex(self, memory: StoredMemory) -> float | None:
        record_id = memory.record.record_id
        if record_id not in self._lexes:
            self._lexes[record_id] = lex(
                self.asked[memory.language], memory.term_counts, memory.term_total, self.mean_total, self.idf
            )
        return self._lexes[record_id]

    @cached_property
    def asked(self) -> dict[str, frozenset[str]]:
        """The cue's terms in each language that occurs in the lineage, and in the store's own."""
        spoken = {memory.language for memory in self.lineage.values()} | {self.language}
        return {language: frozenset(terms(self.query.cue, language)) for language in sorted(spoken)}

    @cached_property
    def mean_total(self) -> float | None:
        """The mean length, in terms, of the lineage's texts; None in an empty lineage."""
        totals = [memory.term_total for memory in self.lineage.values()]
        return sum(totals) / len(totals) if totals else None

    @cached_property
    def idf(self) -> dict[str, float]:
        """How rare each of the cue's terms is among the lineage's memories, every layer, valid or not."""
        return {
            term: inverse_document_frequency(
                len(self.lineage), sum(term in memory.term_counts for memory in self.lineage.values())
            )
            for term in frozenset().union(*self.asked.values())
        }

    @cached_property
    def hops(self) -> dict[str, int]:
        """The fewest edges, in either direction, from the nearest context record to each in reach."""
        return nearest_hops(self.edges, [id for id in self.query.context_ids if id in self.lineage], MAX_HOPS)


def nearest_hops(
    edges: Iterable[tuple[str, str, str]], starts: Iterable[str], max_hops: int
) -> dict[str, int]:
    """Breadth-first hops from the nearest of `starts` along (source, target, relationship), either way."""
    steps: dict[str, set[str]] = {}
    for source, target, _ in edges:
        steps.setdefault(source, set()).add(target)
        steps.setdefault(target, set()).add(source)
    nearest: dict[str, int] = {}
    for start in starts:
        for record_id, hops in distances(steps, start, max_hops).items():
            nearest[record_id] = min(hops, nearest.get(record_id, hops))
    return nearest


def is_live(record: MemoryRecord, moment: datetime) -> bool:
    """Whether a record is valid and not expired at a moment: valid_from <= moment < valid_until."""
    return (
        (record.valid_from is None or record.valid_from <= moment)
        and (record.valid_until is None or moment < record.valid_until)
        and (record.expires_at is None or moment < record.expires_at)
    )


def page_key(updated_at: datetime, record_id: str) -> tuple[object, ...]:
    """What orders newest first and then by record_id."""
    return (_LATEST - updated_at, record_id)


def newest_first(record: MemoryRecord) -> tuple[object, ...]:
    """The order of pages and of the route `recent`."""
    return page_key(record.updated_at, record.record_id)


def most_salient_first(record: MemoryRecord) -> tuple[object, ...]:
    """Higher salience first, those without one last; then the newest."""
    return (record.salience is None, -(record.salience or 0.0), *newest_first(record))
