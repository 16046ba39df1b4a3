"""Spreading activation: from the memories a query found along their associations, level by level."""

from __future__ import annotations

import logging
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import NamedTuple

from symfonic_pg.memory import checks
from symfonic_pg.memory.activation import ActivatedNode, ActivationLog, Association
from symfonic_pg.memory.errors import MemoryUnavailable
from symfonic_pg.memory.graph import AssociationSource
from symfonic_pg.memory.reasons import over_nodes
from symfonic_pg.memory.records import MemoryRecord
from symfonic_pg.memory.relevance import RelevanceSignals
from symfonic_pg.memory.results import RetrievedMemory
from symfonic_pg.memory.scope import MemoryScope, scope_of

logger = logging.getLogger("symfonic_pg.memory")

_put = object.__setattr__


@dataclass(frozen=True, slots=True)
class SpreadingActivation:
    """Expansion of seeds along associations, in their direction.

    Each hop multiplies activation by the edge's weight and by `decay` in (0, 1]; there are at most `max_hops`
    >= 0 of them, each one call of the source, and at most `max_nodes` >= 1 memories are found in all. The
    best path counts, not the sum of paths, so that cycles and parallel edges add nothing. (Spreading
    activation: Collins and Loftus 1975.)
    """

    source: AssociationSource
    max_hops: int = 1
    decay: float = 0.5
    max_nodes: int = 10

    def __post_init__(self) -> None:
        if not callable(getattr(self.source, "neighbours", None)):
            rule = "an AssociationSource with neighbours(scope, record_ids)"
            raise checks.broken("source", rule, self.source)
        _put(self, "max_hops", checks.whole(self.max_hops, "max_hops", 0))
        _put(self, "decay", checks.share(self.decay, "decay"))
        if self.decay == 0.0:
            raise checks.broken("decay", "above 0", self.decay)
        _put(self, "max_nodes", checks.whole(self.max_nodes, "max_nodes", 1))

    @property
    def borrowed(self) -> bool:
        """Whether the source runs on a connection that is not its own."""
        return bool(getattr(self.source, "borrowed", False))

    async def expand(
        self, scope: MemoryScope, seeds: Sequence[RetrievedMemory | ActivatedNode]
    ) -> tuple[tuple[RetrievedMemory, ...], ActivationLog]:
        """What lights up from the seeds, strongest first within each hop, and how that went.

        A memory is found at the first hop that reaches it, with that hop's best activation; seeds never are.
        Nothing is asked without seeds or hops, nor once `max_nodes` are found. A graph out of reach degrades
        the answer to what was found before.
        """
        spread = _Spread(scope_of(scope), seeds)
        frontier = [node.record_id for node in spread.nodes]
        degraded = False
        for hop in range(1, self.max_hops + 1):
            room = self.max_nodes - len(spread.found)
            if not frontier or not room:
                break
            try:
                edges = await self.source.neighbours(spread.scope, frontier)
            except MemoryUnavailable as unavailable:
                if self.borrowed:
                    raise
                logger.warning("expansion ended before hop %d: %s", hop, type(unavailable).__name__)
                degraded = True
                break
            reached = spread.reached(frontier, edges, self.decay)
            for reach in reached[:room]:
                spread.admit(reach, hop)
            for reach in reached[room:]:
                spread.dropped.append((reach.record.record_id, over_nodes(reach.score, self.max_nodes)))
            frontier = [reach.record.record_id for reach in reached[:room]]
        return tuple(spread.found), spread.log(degraded)


class _Reach(NamedTuple):
    """The best edge by which one hop reaches a memory."""

    record: MemoryRecord
    score: float
    source_id: str

    def yields(self, score: float, source_id: str) -> bool:
        """Whether another edge is better."""
        return score > self.score or (score == self.score and source_id < self.source_id)


class _Spread:
    """One expansion under way: what is lit up, and the trails that led there."""

    def __init__(self, scope: MemoryScope, seeds: Iterable[RetrievedMemory | ActivatedNode]) -> None:
        self.scope = scope
        best: dict[str, ActivatedNode] = {}
        for seed in seeds:
            node = self._seed(seed)
            if node is not None and (node.record_id not in best or node.score > best[node.record_id].score):
                best[node.record_id] = node
        self.nodes = list(best.values())
        self.scores = {node.record_id: node.score for node in self.nodes}
        self.trails: dict[str, tuple[str, ...]] = {record_id: (record_id,) for record_id in best}
        self.found: list[RetrievedMemory] = []
        self.dropped: list[tuple[str, str]] = []

    def _seed(self, seed: RetrievedMemory | ActivatedNode) -> ActivatedNode | None:
        if isinstance(seed, ActivatedNode):
            return ActivatedNode(seed.record_id, seed.score)
        checks.instance(seed, RetrievedMemory, "seeds")
        visible = self.scope.distance(seed.record.scope) >= 0
        return ActivatedNode.of(seed.record, seed.score) if visible else None

    def reached(self, frontier: Iterable[str], edges: Iterable[Association], decay: float) -> list[_Reach]:
        """The best way to each new visible target of these edges, strongest first."""
        best: dict[str, _Reach] = {}
        asked = frozenset(frontier)
        hidden = 0
        for edge in edges:
            source_id, record = edge.source_id, edge.target
            if source_id not in asked or record.record_id in self.scores:
                continue
            if self.scope.distance(record.scope) < 0:
                hidden += 1
                continue
            score = min(1.0, self.scores[source_id] * edge.weight * decay)
            known = best.get(record.record_id)
            if known is None or known.yields(score, source_id):
                best[record.record_id] = _Reach(record, score, source_id)
        if hidden:
            logger.warning("an association source gave %d edges to memories not visible at the scope", hidden)
        return sorted(best.values(), key=lambda reach: (-reach.score, reach.record.record_id))

    def admit(self, reach: _Reach, hop: int) -> None:
        """Light one memory up."""
        record = reach.record
        trail = (*self.trails[reach.source_id], record.record_id)
        self.nodes.append(ActivatedNode.of(record, reach.score, hop))
        self.scores[record.record_id] = reach.score
        self.trails[record.record_id] = trail
        signals = RelevanceSignals(salience=record.salience)
        distance = self.scope.distance(record.scope)
        self.found.append(
            RetrievedMemory(record, reach.score, distance=distance, signals=signals, via=trail)
        )

    def log(self, degraded: bool) -> ActivationLog:
        """What happened, as a value."""
        return ActivationLog(tuple(self.nodes), self.trails, tuple(self.dropped), degraded)
