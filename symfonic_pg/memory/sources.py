"""Where candidates come from: the protocol of a source, and the one that needs nothing but this process."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any, Protocol, runtime_checkable

from symfonic_pg.memory.checks import flag, instance, members
from symfonic_pg.memory.documents import contains
from symfonic_pg.memory.layers import MemoryLayer
from symfonic_pg.memory.records import MemoryQuery, MemoryRecord
from symfonic_pg.memory.relevance import NO_SIGNALS, RelevanceSignals
from symfonic_pg.memory.tokens import word_set, words

__all__ = ["Candidate", "CandidateSource", "LexicalCandidateSource"]


@dataclass(frozen=True, slots=True)
class Candidate:
    """A memory that a source found, with what it observed about it.

    `pre_ranked`: the source judged already. Its cue signal, or 1.0 without one, is the score, no relevance
    floor applies, and among equals the source's order stands.
    """

    record: MemoryRecord
    signals: RelevanceSignals = NO_SIGNALS
    pre_ranked: bool = False

    def __post_init__(self) -> None:
        instance(self.record, MemoryRecord, "record")
        instance(self.signals, RelevanceSignals, "signals")
        flag(self.pre_ranked, "pre_ranked")


class _Draft:
    """A candidate in the making: its slots, filled by assignment."""

    __slots__ = Candidate.__slots__


def trusted_candidate(record: MemoryRecord, signals: RelevanceSignals) -> Candidate:
    """A candidate of parts whose types are known: hundreds are made for every query."""
    draft: Any = _Draft()
    draft.record = record
    draft.signals = signals
    draft.pre_ranked = False
    draft.__class__ = Candidate
    candidate: Candidate = draft
    return candidate


@runtime_checkable
class CandidateSource(Protocol):
    """Something that finds memories and reports what it observed; it never ranks, limits or caps.

    A source may also offer, without await and called in this order right after `search` returned:
    `drain_dropped()` -> pairs of (record_id, reason) that it refused itself; `drain_sources()` -> (mapping of
    route to count, routes that were unavailable); `drain_completeness()` -> mapping of route to a word. What
    is drained belongs to that search alone, so a source publishes it in the step in which it returns, and a
    search that raises leaves nothing behind.
    """

    async def search(self, query: MemoryQuery, layers: frozenset[MemoryLayer], /) -> Sequence[Candidate]:
        """Everything plausible for the query; `layers` is the effective set, so that the store skips work.

        Raises MemoryUnavailable when the store cannot be asked: an empty answer would look like a scope that
        remembers nothing.
        """
        ...


class LexicalCandidateSource:
    """Records of this process as candidates, by the words they share with the cue.

    Every record that is visible at the scope, in the layers and contains the query's `where` is a candidate.
    Its cue is cue_overlap, 1.0 where the query asks nothing, and None where it asks by an embedding alone,
    which no word can answer. Assigning `records` replaces them.
    """

    def __init__(self, records: Iterable[MemoryRecord] = ()) -> None:
        self.records = records

    @property
    def records(self) -> tuple[MemoryRecord, ...]:
        """What this source remembers."""
        return self._records

    @records.setter
    def records(self, records: Iterable[MemoryRecord]) -> None:
        self._records: tuple[MemoryRecord, ...] = members(records, MemoryRecord, "records")
        self._words: dict[int, frozenset[str]] = {}

    async def search(self, query: MemoryQuery, layers: frozenset[MemoryLayer]) -> list[Candidate]:
        """A candidate for each record that may be seen, in the order of `records`."""
        scopes = {record.scope for record in self._records}
        visible = {scope for scope in scopes if query.scope.distance(scope) >= 0}
        return [
            Candidate(record, RelevanceSignals(cue=self._cue(query, place)))
            for place, record in enumerate(self._records)
            if record.scope in visible
            and record.layer in layers
            and (query.where is None or contains(record.metadata, query.where))
        ]

    def _cue(self, query: MemoryQuery, place: int) -> float | None:
        asked = word_set(query.cue)
        if not asked:
            return 1.0 if query.asks_nothing else None
        held = self._words.get(place)
        if held is None:
            held = self._words[place] = frozenset(words(self._records[place].text))
        return len(asked & held) / len(asked)
