"""The coordinator: decides what a store's observations are worth, in which order, and within which bounds."""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from typing import Any

from symfonic_pg.memory import reasons
from symfonic_pg.memory.activation import ActivationLog
from symfonic_pg.memory.checks import broken, instance
from symfonic_pg.memory.gate import Entry, Gate
from symfonic_pg.memory.layers import MemoryLayer, layers_of
from symfonic_pg.memory.policy import RetrievalPolicy
from symfonic_pg.memory.ports import ActivationPort
from symfonic_pg.memory.reasons import Reason
from symfonic_pg.memory.records import MemoryQuery
from symfonic_pg.memory.results import NO_RECORD, RetrievalResult, RetrievedMemory, pairs
from symfonic_pg.memory.sources import Candidate, CandidateSource

logger = logging.getLogger("symfonic_pg.memory")

_put = object.__setattr__

_NO_ACTIVATION = ActivationLog()


@dataclass(frozen=True, slots=True)
class CoordinatedRetrieval:
    """A result with how it came about: the log of the expansion, and the layers that were searched.

    `fetched` holds the record ids of what the search returned, in its order and with repeats. The parts of
    the result can be read here too.
    """

    result: RetrievalResult
    activation: ActivationLog = _NO_ACTIVATION
    layers: frozenset[MemoryLayer] = frozenset()
    fetched: tuple[str, ...] = field(default=(), kw_only=True, compare=False, repr=False)

    def __post_init__(self) -> None:
        instance(self.result, RetrievalResult, "result")
        _put(self, "layers", layers_of(self.layers))
        _put(self, "fetched", tuple(self.fetched))

    @property
    def memories(self) -> tuple[RetrievedMemory, ...]:
        """The memories in order."""
        return self.result.memories

    @property
    def dropped(self) -> tuple[tuple[str, str], ...]:
        """(record_id, reason) of everything left out."""
        return self.result.dropped

    @property
    def sources(self) -> Mapping[str, int]:
        """How many each route found."""
        return self.result.sources

    @property
    def unavailable(self) -> tuple[str, ...]:
        """The routes that could not run."""
        return self.result.unavailable

    @property
    def completeness(self) -> Mapping[str, str]:
        """How sure each route is."""
        return self.result.completeness


@dataclass(frozen=True, slots=True)
class _Drained:
    """What a source had to tell about one search."""

    dropped: tuple[tuple[str, str], ...] = ()
    sources: Mapping[str, int] = field(default_factory=dict)
    unavailable: tuple[str, ...] = ()
    completeness: Mapping[str, str] = field(default_factory=dict)

    @classmethod
    def of(cls, source: object) -> _Drained:
        """Call those hooks that the source has, in their order and without an await between."""
        dropped = _hook(source, "drain_dropped", ())
        sources, unavailable = _hook(source, "drain_sources", ({}, ()))
        completeness = _hook(source, "drain_completeness", {})
        told = tuple((record_id, Reason(reason)) for record_id, reason in pairs(dropped, "drain_dropped"))
        return cls(told, sources, tuple(unavailable), completeness)


class RetrievalCoordinator:
    """Answers queries from one source under one policy; keeps no state of any, so that they may run at once.

    `activation` is any object with `await expand(scope, seeds) -> (found, log)`. `clock` returns the aware
    moment of a query that names none.
    """

    def __init__(
        self,
        *,
        source: CandidateSource,
        policy: RetrievalPolicy | None = None,
        activation: ActivationPort | None = None,
        clock: Callable[[], datetime] | None = None,
    ) -> None:
        if not callable(getattr(source, "search", None)):
            raise broken("source", "a CandidateSource with search(query, layers)", source)
        if activation is not None and not callable(getattr(activation, "expand", None)):
            raise broken("activation", "an object with expand(scope, seeds)", activation)
        self.source = source
        self.policy = RetrievalPolicy() if policy is None else policy
        instance(self.policy, RetrievalPolicy, "policy")
        self.activation = activation
        self._clock = clock or _now

    async def retrieve(self, query: MemoryQuery) -> RetrievalResult:
        """The memories worth putting into the prompt, in order, and why all others were left out.

        Raises MemoryUnavailable when the source could not be asked.
        """
        return (await self.coordinate(query)).result

    async def coordinate(self, query: MemoryQuery) -> CoordinatedRetrieval:
        """The same with the log of the expansion and the layers that were searched."""
        instance(query, MemoryQuery, "query")
        query = query.at(self._clock())
        layers = self.policy.effective_layers(query)
        if not layers:
            return CoordinatedRetrieval(RetrievalResult(dropped=((NO_RECORD, self._no_layer(query)),)))
        # Awaited here and not in a task: what the hooks give belongs to the step in which search returned.
        found = await self.source.search(query, layers)
        drained = _Drained.of(self.source)
        gate = Gate(query, layers, self.policy)
        gate.refused.update(record_id for record_id, _ in drained.dropped)
        candidates = _candidates(found, self.source)
        gate.judge(candidates)
        lit, refused, log = await self._expand(query, gate)
        ordered = [*gate.profile, *sorted([*gate.passed, *lit], key=Entry.order)]
        memories, left_out = select(ordered, query.limit, query.max_chars)
        result = RetrievalResult(
            memories=memories,
            dropped=(*drained.dropped, *gate.dropped(), *refused, *left_out),
            sources=drained.sources,
            unavailable=drained.unavailable,
            completeness=drained.completeness,
        )
        fetched = tuple(candidate.record.record_id for candidate in candidates)
        return CoordinatedRetrieval(result, log, layers, fetched=fetched)

    def _no_layer(self, query: MemoryQuery) -> Reason:
        asked = ", ".join(sorted(query.layers)) or "none"
        enabled = ", ".join(sorted(self.policy.enabled_layers)) or "none"
        return Reason(f"no layer to search: asked for {asked}; enabled {enabled}", "gate", "layer")

    async def _expand(
        self, query: MemoryQuery, gate: Gate
    ) -> tuple[list[Entry], list[tuple[str, str]], ActivationLog]:
        """What lit up and may be returned, what lit up and may not, and the log."""
        if self.activation is None:
            return [], [], _NO_ACTIVATION
        seeds = [entry.memory() for entry in (*gate.profile, *gate.passed)]
        found, log = await self.activation.expand(query.scope, seeds)
        seen = {seed.record.record_id for seed in seeds}
        lit: list[Entry] = []
        refused: list[tuple[str, str]] = []
        hidden: set[str] = set()
        for memory in found:
            instance(memory, RetrievedMemory, "found")
            record = memory.record
            if query.scope.distance(record.scope) < 0:
                hidden.add(record.record_id)
            if record.record_id in seen:
                continue
            seen.add(record.record_id)
            verdict = gate.lit(memory)
            if isinstance(verdict, Entry):
                lit.append(verdict)
            elif verdict is not None:
                refused.append((record.record_id, verdict))
        return lit, refused, _without(log, hidden)


def select(
    ordered: Sequence[Entry], limit: int, max_chars: int | None
) -> tuple[tuple[RetrievedMemory, ...], list[tuple[str, str]]]:
    """The first `limit` entries whose texts fit into `max_chars` together, and the reasons for the others.

    An entry that does not fit leaves room for later ones, and its place is not refilled.
    """
    dropped: list[tuple[str, str]] = [
        (entry.record.record_id, reasons.over_limit(limit + place, limit))
        for place, entry in enumerate(ordered[limit:], 1)
    ]
    if max_chars is None:
        return tuple(entry.memory() for entry in ordered[:limit]), dropped
    memories: list[RetrievedMemory] = []
    left = max_chars
    for entry in ordered[:limit]:
        length = len(entry.record.text)
        if length > left:
            reason = reasons.over_characters(length, left, max_chars)
            dropped.append((entry.record.record_id, reason))
        else:
            left -= length
            memories.append(entry.memory())
    return tuple(memories), dropped


def _now() -> datetime:
    return datetime.now(UTC)


def _hook(source: object, name: str, without: Any) -> Any:
    hook = getattr(source, name, None)
    return hook() if callable(hook) else without


def _candidates(found: object, source: object) -> list[Candidate]:
    if isinstance(found, str | bytes | Mapping) or not isinstance(found, Iterable):
        raise broken(f"search of {type(source).__name__}", "a sequence of Candidate", found)
    candidates = list(found)
    for candidate in candidates:
        instance(candidate, Candidate, f"search of {type(source).__name__}")
    return candidates


def _without(log: ActivationLog, hidden: set[str]) -> ActivationLog:
    """The log without memories that the query may not see: only a faulty activation names any."""
    if not hidden:
        return log
    logger.warning("an activation returned %d memories that are not visible at the scope", len(hidden))
    return replace(
        log,
        nodes=tuple(node for node in log.nodes if node.record_id not in hidden),
        trails={key: trail for key, trail in log.trails.items() if not hidden.intersection(trail)},
        dropped=tuple(pair for pair in log.dropped if pair[0] not in hidden),
    )
