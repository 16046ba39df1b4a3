"""The legacy scorer: one weighted sum of four signals a node, kept for callers that rank nodes themselves."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from math import inf
from typing import Any

from symfonic_pg.memory import checks
from symfonic_pg.memory.errors import MemoryContractError
from symfonic_pg.memory.graph import AssociationSource, HopSource, explored_hops
from symfonic_pg.memory.records import MemoryRecord
from symfonic_pg.memory.scope import MemoryScope, scope_of
from symfonic_pg.memory.signals import frequency, proximity
from symfonic_pg.memory.vectors import cosine, vector

__all__ = [
    "GraphTraversal",
    "MemoryNode",
    "NodeId",
    "RetrievalScorer",
    "ScoringWeights",
    "scope_specificity_score",
]

NodeId = str

_put = object.__setattr__
_SHARES = ("semantic_similarity", "recency", "frequency", "graph_proximity")
_TOLERANCE = 1e-6


@dataclass(frozen=True, slots=True)
class ScoringWeights:
    """The shares of the four signals, which sum to 1 within 1e-6, and how distance in scope attenuates."""

    semantic_similarity: float = 0.4
    recency: float = 0.2
    frequency: float = 0.2
    graph_proximity: float = 0.2
    scope_half_life_levels: float = 1.0
    scope_specificity_floor: float = 0.0

    def __post_init__(self) -> None:
        for name in _SHARES:
            _put(self, name, checks.share(getattr(self, name), name))
        total = sum(getattr(self, name) for name in _SHARES)
        if abs(total - 1.0) > _TOLERANCE:
            raise checks.broken("weights", "shares that sum to 1", total)
        half_life = _half_life(self.scope_half_life_levels, "scope_half_life_levels")
        _put(self, "scope_half_life_levels", half_life)
        floor = checks.share(self.scope_specificity_floor, "scope_specificity_floor")
        _put(self, "scope_specificity_floor", floor)


@dataclass(frozen=True, slots=True)
class MemoryNode:
    """What the scorer knows of one memory; `embedding` may be zero or of any length, which scores 0."""

    id: NodeId
    scope: MemoryScope
    updated_at: datetime
    access_count: int = 0
    embedding: tuple[float, ...] | None = None

    def __post_init__(self) -> None:
        _put(self, "id", checks.record_id(self.id, "id"))
        _put(self, "scope", scope_of(self.scope))
        _put(self, "updated_at", checks.moment(self.updated_at, "updated_at"))
        _put(self, "access_count", checks.whole(self.access_count, "access_count", 0, checks.MAX_COUNT))
        if self.embedding is not None:
            _put(self, "embedding", _vector(self.embedding))

    @classmethod
    def of(cls, record: MemoryRecord, embedding: Sequence[float] | None = None) -> MemoryNode:
        """The node of a record."""
        vector = None if embedding is None else tuple(embedding)
        return cls(record.record_id, record.scope, record.updated_at, record.access_count, vector)


def scope_specificity_score(distance: int, half_life_levels: float = 1.0, floor: float = 0.0) -> float:
    """1.0 at distance <= 0, else floor + (1 - floor) * 2^(-distance / half_life_levels)."""
    halving = _half_life(half_life_levels, "half_life_levels")
    least = checks.share(floor, "floor")
    return 1.0 if distance <= 0 else least + (1.0 - least) * pow(2.0, -distance / halving)


class GraphTraversal:
    """Hops between memories over any association source, the direction of edges ignored, up to `max_hops`.

    A source that offers `hops` answers a whole batch in one round trip. Any other can only be asked for
    edges *out of* memories, so a path is seen where each of its edges starts downstream of one of its two
    ends (one call a level); one through a memory that merely points at both ends is not.
    """

    def __init__(self, source: AssociationSource, max_hops: int = 6) -> None:
        self._source = source
        self._max_hops = checks.whole(max_hops, "max_hops", 0)

    async def graph_proximity(self, scope: MemoryScope, a: NodeId, b: NodeId) -> float:
        """1 / (1 + hops) between two memories, 0.0 without a path that `scope` sees the whole of."""
        return (await self.proximities(scope, a, [b]))[b]

    async def proximities(
        self, scope: MemoryScope, a: NodeId, others: Sequence[NodeId]
    ) -> dict[NodeId, float]:
        """The proximity of each of these memories to `a`."""
        hops = await self.hops(scope, a, others)
        return {other: proximity(hops.get(other)) for other in others}

    async def hops(self, scope: MemoryScope, a: NodeId, others: Sequence[NodeId]) -> dict[NodeId, int]:
        """The hops from `a` to each of these memories; those without a path are left out."""
        scope = scope_of(scope)
        wanted = [other for other in dict.fromkeys(others) if other != a]
        found = {a: 0} if a in others else {}
        if not wanted or self._max_hops == 0:
            return found
        if isinstance(self._source, HopSource):
            counted = await self._source.hops(scope, a, wanted, self._max_hops)
            return found | {other: counted[other] for other in wanted if other in counted}
        return found | await explored_hops(self._source, scope, a, wanted, self._max_hops)


class RetrievalScorer:
    """Scores nodes by similarity, recency, frequency and graph proximity.

    `half_life_days` > 0 is the age at which recency is 0.5. With `scope_blend` a score is multiplied by
    scope_specificity_score of the node's distance, and a node not visible at the scope is a contract error.
    `clock` tells the time that ages are counted from.
    """

    def __init__(
        self,
        weights: ScoringWeights,
        half_life_days: float = 7.0,
        *,
        scope_blend: bool = False,
        clock: Callable[[], datetime] = lambda: datetime.now(UTC),
    ) -> None:
        checks.instance(weights, ScoringWeights, "weights")
        self._weights = weights
        self._half_life_days = _half_life(half_life_days, "half_life_days")
        self._scope_blend = checks.flag(scope_blend, "scope_blend")
        self._clock = clock

    async def score(
        self,
        node: MemoryNode,
        query_embedding: Sequence[float] | None,
        query_context_node: NodeId | None,
        traversal: GraphTraversal,
        scope: MemoryScope,
        vector_similarity_score: float | None = None,
    ) -> float:
        """The weighted sum of the node's four signals.

        Similarity is `vector_similarity_score` where given, else the cosine of the two embeddings, else 0.
        Proximity is that to `query_context_node`, 0 without one. Raises MemoryUnavailable when the graph
        cannot be reached.
        """
        [(_, score)] = await self.score_batch(
            [node], query_embedding, query_context_node, traversal, scope, [vector_similarity_score]
        )
        return score

    async def score_batch(
        self,
        nodes: Sequence[MemoryNode],
        query_embedding: Sequence[float] | None,
        query_context_node: NodeId | None,
        traversal: GraphTraversal,
        scope: MemoryScope,
        precomputed_similarities: Sequence[float | None] | None = None,
    ) -> list[tuple[MemoryNode, float]]:
        """(node, score) by descending score, equal ones in the order given.

        The graph is asked once for all nodes. `precomputed_similarities` goes along with `nodes`; another
        length is a ValueError.
        """
        similarities = [None] * len(nodes) if precomputed_similarities is None else precomputed_similarities
        if len(similarities) != len(nodes):
            raise MemoryContractError(
                f"{len(similarities)} precomputed_similarities do not go along with {len(nodes)} nodes",
                field="precomputed_similarities",
            )
        scope = scope_of(scope)
        gates = [self._gate(node, scope) for node in nodes]
        query = None if query_embedding is None else _vector(query_embedding)
        proximities = await self._proximities(nodes, query_context_node, traversal, scope)
        moment = self._clock()
        scored = [
            (node, gate * self._sum(node, _similarity(node, query, given), near, moment))
            for node, gate, given, near in zip(nodes, gates, similarities, proximities, strict=True)
        ]
        return sorted(scored, key=lambda pair: pair[1], reverse=True)

    def _gate(self, node: MemoryNode, scope: MemoryScope) -> float:
        if not self._scope_blend:
            return 1.0
        distance = scope.distance(node.scope)
        if distance < 0:
            raise checks.broken("node", "visible at the scope", node.id)
        weights = self._weights
        return scope_specificity_score(
            distance, weights.scope_half_life_levels, weights.scope_specificity_floor
        )

    async def _proximities(
        self, nodes: Sequence[MemoryNode], context: NodeId | None, traversal: Any, scope: MemoryScope
    ) -> list[float]:
        """The proximity of each node, 0.0 for those not visible."""
        visible = [scope.distance(node.scope) >= 0 for node in nodes]
        asked = list(dict.fromkeys(node.id for node, seen in zip(nodes, visible, strict=True) if seen))
        if context is None or not asked or self._weights.graph_proximity == 0.0:
            return [0.0] * len(nodes)
        if hasattr(traversal, "proximities"):
            found = await traversal.proximities(scope, context, asked)
        else:
            found = {node_id: await traversal.graph_proximity(scope, context, node_id) for node_id in asked}
        return [found[node.id] if seen else 0.0 for node, seen in zip(nodes, visible, strict=True)]

    def _sum(self, node: MemoryNode, similarity: float, proximity: float, moment: datetime) -> float:
        weights = self._weights
        return (
            weights.semantic_similarity * similarity
            + weights.recency * self._recency(moment - node.updated_at)
            + weights.frequency * frequency(node.access_count)
            + weights.graph_proximity * proximity
        )

    def _recency(self, age: timedelta) -> float:
        days = age / timedelta(days=1)
        return pow(2.0, -days / self._half_life_days) if days > 0.0 else 1.0


def _similarity(node: MemoryNode, query: tuple[float, ...] | None, given: float | None) -> float:
    if given is not None:
        return checks.number(given, "vector_similarity_score", -inf, inf)
    if node.embedding is None or query is None:
        return 0.0
    return cosine(node.embedding, query)


def _half_life(value: float, field: str) -> float:
    half_life = checks.number(value, field, 0.0, inf)
    if half_life == 0.0:
        raise checks.broken(field, "above 0", half_life)
    return half_life


def _vector(value: Any) -> tuple[float, ...]:
    """Finite numbers, also none at all or all zero, which have no direction and so no similarity."""
    try:
        return vector(value)
    except MemoryContractError as error:
        if error.rule != "not all zero":
            raise
        return (0.0,) * len(value)
