"""The gate: which candidates may be returned at all, and what each of them is worth."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import Any

from symfonic_pg.memory import reasons
from symfonic_pg.memory.explanation import Judgement
from symfonic_pg.memory.layers import MemoryLayer
from symfonic_pg.memory.policy import RetrievalPolicy
from symfonic_pg.memory.reasons import Reason
from symfonic_pg.memory.records import PROFILE, MemoryQuery, MemoryRecord
from symfonic_pg.memory.relevance import RelevanceSignals
from symfonic_pg.memory.results import RetrievedMemory, trusted_memory
from symfonic_pg.memory.scope import MemoryScope
from symfonic_pg.memory.sources import Candidate

_END_OF_TIME = datetime.max.replace(tzinfo=UTC)


@dataclass(slots=True)
class Entry:
    """A memory on its way through the coordinator; `place` is its position in what the source returned."""

    record: MemoryRecord
    score: float
    rank_score: float
    distance: int
    signals: RelevanceSignals
    judgement: Judgement
    place: int = -1
    via: tuple[str, ...] = ()

    def order(self) -> tuple[Any, ...]:
        """The key by which entries are returned: best rank score, then nearest, newest, and by id.

        Among equal rank scores those that the source ranked come first and keep its order: any other mixture
        of two orders could contradict itself.
        """
        if self.judgement.by == "source":
            return -self.rank_score, 0, self.place
        return -self.rank_score, 1, self.distance, self._age(), self.record.record_id

    def profile_order(self) -> tuple[Any, ...]:
        """The key by which profile memories fill their slots."""
        salience = self.signals.salience
        return (
            self.distance,
            salience is None,
            -(salience or 0.0),
            self._age(),
            self.record.record_id,
        )

    def memory(self) -> RetrievedMemory:
        """The entry as it is returned."""
        return trusted_memory(
            self.record, self.score, self.rank_score, self.distance, self.signals, self.via, self.judgement
        )

    def _age(self) -> timedelta:
        return _END_OF_TIME - self.record.updated_at


@dataclass(frozen=True, slots=True)
class Admission:
    """What every memory has to pass, however it was found."""

    scope: MemoryScope
    layers: frozenset[MemoryLayer]
    moment: datetime
    min_salience: float

    def refusal(self, record: MemoryRecord, distance: int, salience: float | None) -> Reason | None:
        """The first rule that the record fails, None for one that passes."""
        if record.layer not in self.layers:
            return reasons.outside_layers(record.layer, self.layers)
        if distance < 0:
            return reasons.not_visible(distance)
        if record.expires_at is not None and record.expires_at <= self.moment:
            return reasons.expired(record.expires_at, self.moment)
        if record.valid_from is not None and self.moment < record.valid_from:
            return reasons.not_yet_valid(record.valid_from, self.moment)
        if record.valid_until is not None and record.valid_until <= self.moment:
            return reasons.no_longer_valid(record.valid_until, self.moment)
        if salience is not None and salience < self.min_salience:
            return reasons.under_salience(salience, self.min_salience)
        return None


class Gate:
    """One query's gate, and what it let through.

    After `judge`, `profile` and `passed` hold the entries to return, `refused` the ids that failed another
    rule than the relevance floor, and `dropped()` every reason in the order of the candidates.
    """

    def __init__(self, query: MemoryQuery, layers: frozenset[MemoryLayer], policy: RetrievalPolicy) -> None:
        assert query.as_of is not None
        self.admission = Admission(query.scope, layers, query.as_of, policy.min_salience)
        self.policy = policy
        self.profile: list[Entry] = []
        self.passed: list[Entry] = []
        self.refused: set[str] = set()
        self._factors: dict[int, float] = {}
        self._floored: dict[str, Entry] = {}
        self._dropped: dict[int, tuple[str, Reason]] = {}
        self._judgements: Mapping[str, Judgement] = {
            by: Judgement(by, policy.weights, policy.blend) for by in ("signals", "source", "activation")
        }

    def judge(self, candidates: Iterable[Candidate]) -> None:
        """Take every candidate to `profile`, `passed` or dropped."""
        best: dict[str, Entry] = {}
        for place, candidate in enumerate(candidates):
            entry = self._admitted(place, candidate)
            if entry is None:
                continue
            rival = best.setdefault(entry.record.record_id, entry)
            if rival is entry:
                continue
            loser, winner = (rival, entry) if entry.score > rival.score else (entry, rival)
            best[winner.record.record_id] = winner
            self._drop(loser, reasons.duplicate(loser.score, winner.score))
        self._fill_profile(best)
        self._apply_floor(best.values())

    def lit(self, memory: RetrievedMemory) -> Entry | Reason | None:
        """What becomes of a memory that activation lit up: an entry, the reason against it, or nothing.

        Nothing is said of what is not visible, nor of what already has its reason. A memory that only the
        relevance floor had dropped is taken back from the dropped.
        """
        record = memory.record
        distance = self.admission.scope.distance(record.scope)
        if distance < 0 or record.record_id in self.refused:
            return None
        floored = self._floored.get(record.record_id)
        reason = self.admission.refusal(record, distance, record.salience)
        if reason is not None:
            return None if floored else reason
        if floored:
            del self._dropped[floored.place], self._floored[record.record_id]
        rank_score = self._rank_score(memory.score, distance)
        signals = RelevanceSignals(salience=record.salience)
        judgement = self._judgements["activation"]
        return Entry(record, memory.score, rank_score, distance, signals, judgement, via=memory.via)

    def dropped(self) -> list[tuple[str, str]]:
        """Every (record_id, reason) of the gate, in the order of the candidates."""
        return [self._dropped[place] for place in sorted(self._dropped)]

    def _admitted(self, place: int, candidate: Candidate) -> Entry | None:
        record = candidate.record
        signals = candidate.signals.with_salience(record.salience)
        distance = self.admission.scope.distance(record.scope)
        reason = self.admission.refusal(record, distance, signals.salience)
        if reason is not None:
            self.refused.add(record.record_id)
            self._dropped[place] = record.record_id, reason
            return None
        if candidate.pre_ranked:
            score = 1.0 if signals.cue is None else signals.cue
        else:
            score = self.policy.weights.compose(signals)
        rank_score = self._rank_score(score, distance)
        judgement = self._judgements["source" if candidate.pre_ranked else "signals"]
        return Entry(record, score, rank_score, distance, signals, judgement, place)

    def _rank_score(self, score: float, distance: int) -> float:
        """policy.blend.rank_score, with the few gates of a query computed once."""
        factor = self._factors.get(distance)
        if factor is None:
            factor = self._factors[distance] = self.policy.blend.gate(distance)
        return self.policy.blend.band(score * factor, distance)

    def _fill_profile(self, best: dict[str, Entry]) -> None:
        profiles = sorted(
            (entry for entry in best.values() if entry.record.kind == PROFILE), key=Entry.profile_order
        )
        self.profile = profiles[: self.policy.profile_slots]
        for entry in self.profile:
            del best[entry.record.record_id]

    def _apply_floor(self, entries: Iterable[Entry]) -> None:
        floor = self.policy.min_relevance
        for entry in entries:
            if entry.score < floor and entry.judgement.by != "source":
                self._floored[entry.record.record_id] = entry
                self._drop(entry, reasons.under_relevance(entry.score, floor))
            else:
                self.passed.append(entry)
        self.passed.sort(key=Entry.order)

    def _drop(self, entry: Entry, reason: Reason) -> None:
        self._dropped[entry.place] = entry.record.record_id, reason
