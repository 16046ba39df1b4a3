"""The ledger of a recall: what each route and the graph fetched, and where every candidate ended."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace

from symfonic_pg.memory.checks import instance
from symfonic_pg.memory.coordinator import CoordinatedRetrieval
from symfonic_pg.memory.errors import SymfonicError
from symfonic_pg.memory.reasons import Reason
from symfonic_pg.memory.results import NO_RECORD, RetrievalResult, RetrievedMemory
from symfonic_pg.memory.window import flattened

RETURNED = "returned"
ACTIVATION = "activation"
SOURCE = "source"


@dataclass(frozen=True, slots=True)
class RecordFate:
    """Where one candidate ended, and why.

    `stage` is "returned", or the one that dropped it: "source", "gate", "selection", or "activation" for a
    memory that the graph reached when enough were found. `rank` counts from 1. `rule` names what dropped it,
    `value` and `threshold` the numbers that it compared, None where it compared none. `fetched`: the search
    itself returned it, not the graph alone. `via` is the path that lit it up. `memory` is what was returned.
    `copies` are the ends of the same record's other candidates.
    """

    record_id: str
    stage: str
    rank: int | None = None
    reason: str = ""
    rule: str = ""
    value: float | None = None
    threshold: float | None = None
    fetched: bool = True
    via: tuple[str, ...] = ()
    memory: RetrievedMemory | None = None
    copies: tuple[RecordFate, ...] = ()

    @property
    def returned(self) -> bool:
        """Whether it is among the memories."""
        return self.stage == RETURNED

    @property
    def duplicate_of(self) -> str | None:
        """The record whose other candidate was kept instead, None where this is no duplicate."""
        return self.record_id if self.rule == "duplicate" else None

    @property
    def only_by_graph(self) -> bool:
        """Whether no route found it and the graph did."""
        return not self.fetched

    def __str__(self) -> str:
        ending = f"returned at rank {self.rank}" if self.returned else f"dropped at stage {self.stage}"
        if self.duplicate_of is not None:
            ending += f" as a duplicate of {self.duplicate_of!r}"
        lines = [f"{self.record_id!r} {ending}" + (f": {flattened(self.reason)}" if self.reason else "")]
        if self.via:
            how = "found only by the graph" if self.only_by_graph else "lit up by the graph"
            lines.append(f"  {how}: {' -> '.join(map(repr, self.via))}")
        if self.memory is not None:
            lines += self.memory.explain().lines()[1:]
        lines += [f"  also {line}" for copy in self.copies for line in str(copy).splitlines()[:1]]
        return "\n".join(lines)


@dataclass(frozen=True, slots=True)
class RecallReport:
    """What became of everything that one recall came across.

    It is worked out from the retrieval when it is read, so that a recall whose report nobody reads pays
    nothing for it.
    """

    retrieval: CoordinatedRetrieval

    def __post_init__(self) -> None:
        instance(self.retrieval, CoordinatedRetrieval, "retrieval")

    @classmethod
    def of(cls, retrieval: CoordinatedRetrieval | RetrievalResult) -> RecallReport:
        """The ledger of a retrieval; a bare result is taken as one without activation."""
        if isinstance(retrieval, RetrievalResult):
            retrieval = CoordinatedRetrieval(retrieval)
        return cls(retrieval)

    @property
    def routes(self) -> Mapping[str, int]:
        """How many each route found; a candidate counts in each that found it."""
        return self.retrieval.result.sources

    @property
    def unavailable(self) -> tuple[str, ...]:
        """The routes that could not run."""
        return self.retrieval.result.unavailable

    @property
    def completeness(self) -> Mapping[str, str]:
        """How sure each route is: exact, approximate or truncated."""
        return self.retrieval.result.completeness

    @property
    def degraded(self) -> bool:
        """Whether the graph could not be asked to the end."""
        return self.retrieval.activation.degraded

    @property
    def note(self) -> str:
        """Why nothing was asked at all, empty where something was."""
        return "; ".join(reason for record_id, reason in self.retrieval.dropped if record_id == NO_RECORD)

    @property
    def fetched(self) -> tuple[str, ...]:
        """The record ids of the candidates that the search returned, with repeats."""
        return self.retrieval.fetched

    @property
    def refused(self) -> tuple[str, ...]:
        """The record ids that the source itself kept back with a reason."""
        return tuple(
            record_id
            for record_id, reason in self.retrieval.dropped
            if record_id != NO_RECORD and _reason(reason).stage == "source"
        )

    @property
    def found(self) -> tuple[str, ...]:
        """The record ids that the graph alone lit up."""
        return tuple(sorted(self._lit() - {*self.fetched, *self.refused}))

    @property
    def fates(self) -> tuple[RecordFate, ...]:
        """The end of everything fetched, refused or found: exactly one for each.

        The returned ones by rank, then the dropped ones in the order of RetrievalResult.dropped, and last,
        beyond the count, what the graph reached when it had found enough.
        """
        result, log = self.retrieval.result, self.retrieval.activation
        lit = self._lit()
        ends = _Ends(frozenset(self.fetched), {key: log.trails[key] for key in lit & log.trails.keys()})
        return (
            *(ends.returned(memory, rank) for rank, memory in enumerate(result.memories, 1)),
            *(ends.dropped(key, _reason(reason)) for key, reason in result.dropped if key != NO_RECORD),
            *(ends.dropped(key, _reason(reason, ACTIVATION)) for key, reason in log.dropped),
        )

    def _lit(self) -> set[str]:
        lit = {node.record_id for node in self.retrieval.activation.nodes if node.hop > 0}
        return lit.union(memory.record.record_id for memory in self.retrieval.memories if memory.via)

    def explain(self, record_id: str) -> RecordFate | None:
        """Where this record ended and why, None where neither the search nor the graph came across it.

        Asks nobody; `str()` of the answer is for people.
        """
        fates = [fate for fate in self.fates if fate.record_id == record_id]
        if not fates:
            return None
        # The kept candidate speaks for the record; what the graph left out only where nothing else does.
        main = min(fates, key=_weight)
        return replace(main, copies=tuple(fate for fate in fates if fate is not main))

    def reconcile(self) -> None:
        """Raise SymfonicError, naming what is wrong, unless the numbers add up.

        Everything that came in has exactly one end, a duplicate leaves one behind, no route counts more than
        came in, and all of them together count no less.
        """
        fates = self.fates
        entered = Counter((*self.fetched, *self.refused, *self.found))
        ended = Counter(fate.record_id for fate in fates if fate.stage != ACTIVATION)
        faults = [
            f"{record_id!r} came in {entered[record_id]} times and ended {ended[record_id]} times"
            for record_id in sorted(entered.keys() | ended.keys())
            if entered[record_id] != ended[record_id]
        ]
        faults += [
            f"{fate.record_id!r} is a duplicate of nothing"
            for fate in fates
            if fate.duplicate_of is not None and ended[fate.record_id] < 2
        ]
        faults += self._route_faults()
        if faults:
            raise SymfonicError(f"the ledger does not balance: {'; '.join(faults)}")

    def _route_faults(self) -> Iterable[str]:
        most = len(self.fetched) + len(self.refused)
        for route, count in self.routes.items():
            if count > most:
                yield f"route {route} found {count} where {most} came in"
        if self.routes and sum(self.routes.values()) < len(self.fetched):
            yield f"{len(self.fetched)} came in and all routes found {sum(self.routes.values())}"

    def __str__(self) -> str:
        lines = [f"nothing was asked: {flattened(self.note)}"] if self.note else []
        lines += [
            f"route {route} found {count} ({self.completeness.get(route, 'completeness unknown')})"
            for route, count in self.routes.items()
        ]
        lines += [f"route {route} could not run" for route in self.unavailable]
        if self.degraded:
            lines.append("the graph could not be asked to the end")
        stages = Counter(fate.stage for fate in self.fates)
        came = f"{len(self.fetched)} fetched, {len(self.refused)} refused by the source"
        lines.append(f"{came}, {len(self.found)} found only by the graph")
        lines.append(", ".join([f"{stages.pop(RETURNED, 0)} returned", *_counted(stages)]))
        return "\n".join(lines)


@dataclass(frozen=True, slots=True)
class _Ends:
    """What the fates of one recall are made from."""

    fetched: frozenset[str]
    trails: Mapping[str, tuple[str, ...]] = field(default_factory=dict)

    def returned(self, memory: RetrievedMemory, rank: int) -> RecordFate:
        record_id = memory.record.record_id
        fetched = record_id in self.fetched or not memory.via
        return RecordFate(
            record_id,
            RETURNED,
            rank,
            value=memory.score,
            fetched=fetched,
            via=memory.via,
            memory=memory,
        )

    def dropped(self, record_id: str, reason: Reason) -> RecordFate:
        trail = self.trails.get(record_id, ())
        return RecordFate(
            record_id,
            reason.stage,
            reason=str(reason),
            rule=reason.rule,
            value=reason.value,
            threshold=reason.bound,
            fetched=record_id in self.fetched
            or reason.stage == SOURCE
            or (not trail and reason.stage != ACTIVATION),
            via=trail,
        )


def _weight(fate: RecordFate) -> tuple[bool, bool, bool]:
    return not fate.returned, fate.stage == ACTIVATION, fate.duplicate_of is not None


def _reason(reason: str, stage: str = SOURCE) -> Reason:
    return reason if isinstance(reason, Reason) else Reason(reason, stage)


def _counted(stages: Counter[str]) -> Iterable[str]:
    return (f"{count} dropped at stage {stage}" for stage, count in stages.items())
