"""What a query gets back: memories in order, and why everything else was left out."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any

from symfonic_pg.memory.checks import broken, instance, members, record_ids, share, whole
from symfonic_pg.memory.documents import EMPTY, FrozenObject
from symfonic_pg.memory.explanation import Explanation, Judgement, explain
from symfonic_pg.memory.records import MemoryRecord
from symfonic_pg.memory.relevance import NO_SIGNALS, RelevanceSignals

# The id under which `dropped` tells about a query for which nothing was asked of the source.
NO_RECORD = ""

_put = object.__setattr__


@dataclass(frozen=True, slots=True)
class RetrievedMemory:
    """One memory of the answer.

    `score` in [0, 1] is what it is worth by itself, `rank_score` (by default the score) what it was ordered
    by; `distance` in levels above the query; `via` the path of record ids that lit it up, itself last, empty
    for what the source found.
    """

    record: MemoryRecord
    score: float
    rank_score: float = None  # type: ignore[assignment]
    distance: int = 0
    signals: RelevanceSignals = NO_SIGNALS
    via: tuple[str, ...] = ()
    # How the coordinator judged, for explain(); None where somebody else made this.
    _judgement: Judgement | None = field(default=None, kw_only=True, compare=False, repr=False)

    def __post_init__(self) -> None:
        instance(self.record, MemoryRecord, "record")
        _put(self, "score", share(self.score, "score"))
        rank_score = self.score if self.rank_score is None else share(self.rank_score, "rank_score")
        _put(self, "rank_score", rank_score)
        _put(self, "distance", whole(self.distance, "distance", 0))
        instance(self.signals, RelevanceSignals, "signals")
        _put(self, "via", record_ids(self.via, "via"))

    @property
    def record_id(self) -> str:
        """The id of the record."""
        return self.record.record_id

    def explain(self) -> Explanation:
        """Each signal's value, weight and contribution, the gate, and the final number.

        A memory found by activation, or ranked by its source, has that one contribution. One that no
        coordinator made is explained by the default weights where they give its score.
        """
        judgement = self._judgement or Judgement("activation" if self.via else "signals")
        return explain(
            self.record.record_id, self.score, self.rank_score, self.distance, self.signals, judgement
        )


def trusted_memory(
    record: MemoryRecord,
    score: float,
    rank_score: float,
    distance: int,
    signals: RelevanceSignals,
    via: tuple[str, ...],
    judgement: Judgement,
) -> RetrievedMemory:
    """A memory whose numbers the coordinator computed: every candidate may become a seed."""
    memory = object.__new__(RetrievedMemory)
    _put(memory, "record", record)
    _put(memory, "score", score)
    _put(memory, "rank_score", rank_score)
    _put(memory, "distance", distance)
    _put(memory, "signals", signals)
    _put(memory, "via", via)
    _put(memory, "_judgement", judgement)
    return memory


@dataclass(frozen=True, slots=True)
class RetrievalResult:
    """The answer to one query.

    `memories` are in order. `dropped` pairs a record id with the reason why it was left out: first what the
    source refused itself, then the gate's, then the selection's. `sources` counts what each route found,
    `unavailable` names the routes that could not run, `completeness` says of a route whether it was exact.
    """

    memories: tuple[RetrievedMemory, ...] = ()
    dropped: tuple[tuple[str, str], ...] = ()
    sources: Mapping[str, int] = field(default=EMPTY)
    unavailable: tuple[str, ...] = ()
    completeness: Mapping[str, str] = field(default=EMPTY)

    def __post_init__(self) -> None:
        _put(self, "memories", members(self.memories, RetrievedMemory, "memories"))
        _put(self, "dropped", pairs(self.dropped, "dropped"))
        _put(self, "sources", _counts(self.sources, "sources"))
        _put(self, "unavailable", members(self.unavailable, str, "unavailable"))
        _put(self, "completeness", _names(self.completeness, "completeness"))


def pairs(value: object, field: str) -> tuple[tuple[str, str], ...]:
    """An iterable of pairs of record id and reason."""
    if isinstance(value, str | bytes) or not isinstance(value, Iterable):
        raise broken(field, "an iterable of pairs of record id and reason", value)
    return tuple(_pair(item, field) for item in value)


def _pair(item: object, field: str) -> tuple[str, str]:
    if isinstance(item, tuple | list) and len(item) == 2:
        record_id, reason = item
        if isinstance(record_id, str) and isinstance(reason, str):
            return record_id, reason
    raise broken(field, "pairs of record id and reason", item)


def _counts(value: object, field: str) -> Mapping[str, int]:
    return FrozenObject({key: whole(count, field, 0) for key, count in _named(value, field).items()})


def _names(value: object, field: str) -> Mapping[str, str]:
    for item in _named(value, field).values():
        instance(item, str, field)
    return FrozenObject(_named(value, field))


def _named(value: object, field: str) -> Mapping[str, Any]:
    if not isinstance(value, Mapping):
        raise broken(field, "a mapping by route", value)
    for key in value:
        instance(key, str, field)
    return value
