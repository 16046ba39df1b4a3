"""Why one memory is in an answer or out of it, also where no route had fetched it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from symfonic_pg.memory import (
    Candidate,
    MemoryLayer,
    MemoryQuery,
    RelevanceSignals,
    RetrievalCoordinator,
    RetrievalPolicy,
)
from symfonic_pg.memory.recall import RecallReport
from symfonic_pg.memory.report import RecordFate


@dataclass(frozen=True, slots=True)
class MemoryExplanation:
    """What one query makes of one visible memory.

    `fate` says where it ended; `fetched` whether the recall itself had come across it. `signals`, `score`,
    `rank_score` and `distance` are its own, None where a gate dropped it before a score was given;
    `last_score` and `last_rank_score` are those of the last memory that was returned, None for an empty
    answer.
    """

    record_id: str
    fate: RecordFate
    fetched: bool
    distance: int
    signals: RelevanceSignals
    score: float | None = None
    rank_score: float | None = None
    last_score: float | None = None
    last_rank_score: float | None = None

    def __str__(self) -> str:
        lines = [str(self.fate)] if self.fetched else self._unfetched()
        if self.fetched and not self.fate.returned:
            lines += self._own()
        if not self.fate.returned or not self.fetched:
            lines.append(f"  {self._last_returned()}")
        return "\n".join(lines)

    def _last_returned(self) -> str:
        if self.last_score is None or self.last_rank_score is None:
            return "nothing was returned"
        ranked = f"score {self.last_score:.4f} and ranks at {self.last_rank_score:.4f}"
        return f"the last one returned has {ranked}"

    def _own(self) -> list[str]:
        signals = ", ".join(f"{name} {value:.4f}" for name, value in self.signals.present().items())
        lines = [f"  its signals at distance {self.distance}: {signals or 'none'}"]
        if self.score is not None:
            rank = "" if self.rank_score is None else f" and would rank at {self.rank_score:.4f}"
            lines.append(f"  it has score {self.score:.4f}{rank}")
        return lines

    def _unfetched(self) -> list[str]:
        if self.fate.memory is None:
            return [
                f"{self.record_id!r} was fetched by no route; "
                f"by itself it would be left out: {self.fate.reason}"
            ]
        head = f"{self.record_id!r} was fetched by no route; by itself it would rank at {self.rank_score:.4f}"
        return [head, *self.fate.memory.explain().lines()[1:]]


class _OneCandidate:
    """A source that knows a single memory."""

    def __init__(self, candidate: Candidate) -> None:
        self._candidate = candidate

    async def search(self, query: MemoryQuery, layers: frozenset[MemoryLayer]) -> Sequence[Candidate]:
        return [self._candidate]


async def explained(
    candidate: Candidate, query: MemoryQuery, policy: RetrievalPolicy | None, report: RecallReport
) -> MemoryExplanation:
    """The explanation of a candidate beside the report of the recall that it is compared with."""
    record = candidate.record
    alone = await RetrievalCoordinator(source=_OneCandidate(candidate), policy=policy).coordinate(query)
    judged = RecallReport.of(alone).explain(record.record_id)
    met = report.explain(record.record_id)
    # Where no layer is searched at all, the reason for that is this memory's too.
    unasked = RecordFate(record.record_id, "gate", reason=report.note, rule="layer", fetched=False)
    fate = met or judged or unasked
    memory = fate.memory or (judged.memory if judged else None)
    returned = [one.memory for one in report.fates if one.memory is not None]
    return MemoryExplanation(
        record.record_id,
        fate,
        met is not None,
        query.scope.distance(record.scope),
        memory.signals if memory else candidate.signals,
        memory.score if memory else fate.value if fate.rule == "relevance" else None,
        memory.rank_score if memory else None,
        returned[-1].score if returned else None,
        returned[-1].rank_score if returned else None,
    )
