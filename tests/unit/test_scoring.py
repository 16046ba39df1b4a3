"""The legacy scorer: each signal by its formula, the blend, and the bad input."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from datetime import UTC, datetime, timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st

from symfonic_pg.memory.activation import Association
from symfonic_pg.memory.errors import MemoryContractError, MemoryUnavailable
from symfonic_pg.memory.graph import InMemoryAssociationSource
from symfonic_pg.memory.records import MemoryRecord
from symfonic_pg.memory.scope import MemoryScope
from symfonic_pg.memory.scoring import (
    GraphTraversal,
    MemoryNode,
    RetrievalScorer,
    ScoringWeights,
    scope_specificity_score,
)

NOW = datetime(2026, 3, 1, tzinfo=UTC)
USER = MemoryScope.parse("org:acme/user:u1")
ORG = USER.parent
SIBLING = MemoryScope.parse("org:acme/user:u2")
ALONE = GraphTraversal(InMemoryAssociationSource())

SIMILARITY = ScoringWeights(1.0, 0.0, 0.0, 0.0)
RECENCY = ScoringWeights(0.0, 1.0, 0.0, 0.0)
FREQUENCY = ScoringWeights(0.0, 0.0, 1.0, 0.0)
PROXIMITY = ScoringWeights(0.0, 0.0, 0.0, 1.0)


def scorer(
    weights: ScoringWeights, half_life_days: float = 7.0, *, scope_blend: bool = False
) -> RetrievalScorer:
    return RetrievalScorer(weights, half_life_days, scope_blend=scope_blend, clock=lambda: NOW)


def node(node_id: str = "n", scope: MemoryScope = USER, **fields: object) -> MemoryNode:
    return MemoryNode(node_id, scope, fields.pop("updated_at", NOW), **fields)


@pytest.mark.parametrize(
    ("embedding", "query", "expected"),
    [
        ((1.0, 0.0), (1.0, 0.0), 1.0),
        ((1.0, 1.0), (1.0, 0.0), math.sqrt(0.5)),
        ((1.0, 0.0), (-2.0, 0.0), -1.0),
        ((1.0, 0.0), (1.0, 0.0, 0.0), 0.0),
        ((0.0, 0.0), (1.0, 0.0), 0.0),
        ((1.0, 0.0), (0.0, 0.0), 0.0),
        ((), (), 0.0),
        (None, (1.0, 0.0), 0.0),
        ((1.0, 0.0), None, 0.0),
    ],
)
async def test_similarity_is_the_cosine_or_nothing(
    embedding: tuple[float, ...] | None, query: tuple[float, ...] | None, expected: float
) -> None:
    got = await scorer(SIMILARITY).score(node(embedding=embedding), query, None, ALONE, USER)
    assert got == pytest.approx(expected)


async def test_a_given_similarity_goes_before_the_cosine() -> None:
    assert await scorer(SIMILARITY).score(node(embedding=(1.0,)), (1.0,), None, ALONE, USER, 0.25) == 0.25
    assert await scorer(SIMILARITY).score(node(embedding=(1.0,)), (1.0,), None, ALONE, USER, 0.0) == 0.0


@pytest.mark.parametrize(
    ("age_days", "half_life", "expected"),
    [(0, 7, 1.0), (7, 7, 0.5), (14, 7, 0.25), (-3, 7, 1.0), (1, 2, math.sqrt(0.5)), (1, 5e-324, 0.0)],
)
async def test_recency_halves_every_half_life(age_days: float, half_life: float, expected: float) -> None:
    aged = node(updated_at=NOW - timedelta(days=age_days))
    got = await scorer(RECENCY, half_life).score(aged, None, None, ALONE, USER)
    assert got == pytest.approx(expected)


@pytest.mark.parametrize(
    ("uses", "expected"), [(0, 0.0), (1, math.log(2) / math.log(101)), (100, 1.0), (10**9, 1.0)]
)
async def test_frequency_is_logarithmic_and_full_at_100(uses: int, expected: float) -> None:
    got = await scorer(FREQUENCY).score(node(access_count=uses), None, None, ALONE, USER)
    assert got == pytest.approx(expected)


async def test_the_default_score_is_the_weighted_sum_of_all_four() -> None:
    traversal = GraphTraversal(InMemoryAssociationSource([Association("c", record("n"))]))
    aged = node(updated_at=NOW - timedelta(days=7), access_count=100, embedding=(1.0, 0.0))
    got = await scorer(ScoringWeights()).score(aged, (1.0, 0.0), "c", traversal, USER)
    assert got == pytest.approx(0.4 * 1.0 + 0.2 * 0.5 + 0.2 * 1.0 + 0.2 * 0.5)


async def test_without_a_context_the_graph_is_not_asked() -> None:
    assert await scorer(PROXIMITY).score(node(), None, None, GraphTraversal(Dead()), USER) == 0.0


async def test_a_graph_out_of_reach_is_no_zero() -> None:
    with pytest.raises(MemoryUnavailable):
        await scorer(PROXIMITY).score(node(), None, "c", GraphTraversal(Dead()), USER)


def record(record_id: str, scope: MemoryScope = USER) -> MemoryRecord:
    return MemoryRecord(record_id, scope, "semantic", "text")


class Dead:
    async def neighbours(self, scope: MemoryScope, record_ids: Sequence[str]) -> list[Association]:
        raise MemoryUnavailable("gone")


class Counting(InMemoryAssociationSource):
    calls = 0

    async def hops(
        self, scope: MemoryScope, record_id: str, record_ids: Sequence[str], max_hops: int
    ) -> Mapping[str, int]:
        self.calls += 1
        return await super().hops(scope, record_id, record_ids, max_hops)


async def test_a_batch_asks_the_graph_once_and_sorts_stably() -> None:
    source = Counting([Association("c", record("near")), Association("near", record("far"))])
    nodes = [node(name) for name in ("lost", "far", "c", "lost2", "near")]
    ranked = await scorer(PROXIMITY).score_batch(nodes, None, "c", GraphTraversal(source), USER)
    assert [(n.id, score) for n, score in ranked] == [
        ("c", 1.0),
        ("near", 0.5),
        ("far", pytest.approx(1 / 3)),
        ("lost", 0.0),
        ("lost2", 0.0),
    ]
    assert source.calls == 1


async def test_a_batch_scores_like_its_members_one_by_one() -> None:
    edges = [Association("a", record("b")), Association("x", record("a")), Association("x", record("c"))]
    nodes = [node(name, access_count=place, embedding=(1.0, place)) for place, name in enumerate("abcx")]
    for source in (InMemoryAssociationSource(edges), OutEdges(edges)):
        traversal, one = GraphTraversal(source), scorer(ScoringWeights())
        ranked = await one.score_batch(nodes, (1.0, 0.0), "a", traversal, USER, [None, 0.5, None, None])
        for member, score in ranked:
            given = 0.5 if member.id == "b" else None
            assert score == await one.score(member, (1.0, 0.0), "a", traversal, USER, given)
        assert [score for _, score in ranked] == sorted((score for _, score in ranked), reverse=True)


async def test_an_empty_batch_is_empty() -> None:
    assert await scorer(ScoringWeights()).score_batch([], (1.0,), "c", GraphTraversal(Dead()), USER) == []


async def test_a_length_mismatch_gives_both_lengths() -> None:
    with pytest.raises(ValueError, match=r"3 .* 2 "):
        await scorer(ScoringWeights()).score_batch([node(), node()], None, None, ALONE, USER, [0.1, 0.2, 0.3])


async def test_a_traversal_that_only_compares_two_is_asked_for_each() -> None:
    class Simple:
        async def graph_proximity(self, scope: MemoryScope, a: str, b: str) -> float:
            return {"p": 0.5, "q": 0.25}[b]

    ranked = await scorer(PROXIMITY).score_batch([node("q"), node("p")], None, "c", Simple(), USER)
    assert [(n.id, score) for n, score in ranked] == [("p", 0.5), ("q", 0.25)]


@pytest.mark.parametrize(
    ("distance", "half_life", "floor", "expected"),
    [(0, 1, 0, 1.0), (-1, 1, 0, 1.0), (1, 1, 0, 0.5), (3, 1, 0, 0.125), (2, 2, 0.2, 0.6), (9, 1, 1.0, 1.0)],
)
def test_specificity(distance: int, half_life: float, floor: float, expected: float) -> None:
    assert scope_specificity_score(distance, half_life, floor) == pytest.approx(expected)


@pytest.mark.parametrize(("half_life", "floor"), [(0, 0), (-1, 0), (float("inf"), 0), (1, 1.1), (1, None)])
def test_a_malformed_attenuation_is_a_contract_error(half_life: float, floor: float) -> None:
    with pytest.raises(MemoryContractError):
        scope_specificity_score(1, half_life, floor)


async def test_scope_blend_attenuates_what_lies_above() -> None:
    weights = ScoringWeights(0.0, 1.0, 0.0, 0.0, scope_half_life_levels=1.0, scope_specificity_floor=0.2)
    blended = scorer(weights, scope_blend=True)
    assert await blended.score(node(scope=USER), None, None, ALONE, USER) == 1.0
    assert await blended.score(node(scope=ORG), None, None, ALONE, USER) == pytest.approx(0.6)
    assert await scorer(weights).score(node(scope=ORG), None, None, ALONE, USER) == 1.0


async def test_scope_blend_refuses_a_node_that_is_not_visible() -> None:
    blended, unseen = scorer(RECENCY, scope_blend=True), node(scope=SIBLING)
    with pytest.raises(MemoryContractError, match="visible"):
        await blended.score(unseen, None, "c", GraphTraversal(Dead()), USER)
    with pytest.raises(MemoryContractError, match="visible"):
        await blended.score_batch([node(), unseen], None, None, ALONE, USER)


async def test_a_node_that_is_not_visible_is_near_nothing() -> None:
    edges = [Association("c", record("n")), Association("c", record("s", SIBLING))]
    traversal = GraphTraversal(InMemoryAssociationSource(edges))
    nodes = [node("n"), node("s", SIBLING), node("n", SIBLING)]
    ranked = await scorer(PROXIMITY).score_batch(nodes, None, "c", traversal, USER)
    assert [(n.id, n.scope, score) for n, score in ranked] == [
        ("n", USER, 0.5),
        ("s", SIBLING, 0.0),
        ("n", SIBLING, 0.0),
    ]


@pytest.mark.parametrize(
    "wrong",
    [
        {"recency": 0.3},
        {"semantic_similarity": 1.4, "recency": -0.8},
        {"recency": float("nan")},
        {"scope_half_life_levels": 0.0},
        {"scope_specificity_floor": -0.1},
    ],
)
def test_malformed_weights_are_a_contract_error(wrong: dict[str, float]) -> None:
    with pytest.raises(MemoryContractError):
        ScoringWeights(**wrong)


def test_weights_may_miss_one_by_a_millionth() -> None:
    assert ScoringWeights(recency=0.2 + 9e-7).recency == 0.2 + 9e-7
    with pytest.raises(MemoryContractError):
        ScoringWeights(recency=0.2 + 2e-6)


@pytest.mark.parametrize("half_life", [0, -1, float("inf"), float("nan"), "7"])
def test_a_malformed_half_life_is_a_contract_error(half_life: float) -> None:
    with pytest.raises(MemoryContractError, match="half_life_days"):
        RetrievalScorer(ScoringWeights(), half_life)


@pytest.mark.parametrize(
    ("wrong", "field"),
    [
        ({"id": ""}, "id"),
        ({"scope": 7}, "scope"),
        ({"updated_at": datetime(2026, 1, 1)}, "updated_at"),
        ({"access_count": -1}, "access_count"),
        ({"embedding": (1.0, float("nan"))}, "embedding"),
        ({"embedding": "12"}, "embedding"),
    ],
)
def test_a_malformed_node_names_the_field(wrong: dict[str, object], field: str) -> None:
    with pytest.raises(MemoryContractError, match=field):
        MemoryNode(**{"id": "n", "scope": USER, "updated_at": NOW, **wrong})


def test_a_node_is_made_of_a_record() -> None:
    made = MemoryRecord("m", "org:acme", "semantic", "text", updated_at=NOW, access_count=3)
    assert MemoryNode.of(made) == MemoryNode("m", ORG, NOW, 3)
    assert MemoryNode.of(made, [1, 2]).embedding == (1.0, 2.0)


class OutEdges:
    """A source that gives edges out of memories and nothing else, hides nothing, and counts its calls."""

    def __init__(self, edges: Sequence[Association]) -> None:
        self.edges, self.calls = edges, 0

    async def neighbours(self, scope: MemoryScope, record_ids: Sequence[str]) -> list[Association]:
        self.calls += 1
        return [edge for edge in self.edges if edge.source_id in record_ids]


names = st.sampled_from("abcdefg")
graphs = st.lists(st.tuples(names, names), max_size=14)


def shortest(pairs: list[tuple[str, str]], start: str, end: str, hidden: set[str], most: int) -> int | None:
    """Breadth-first over a dictionary of both directions."""
    steps: dict[str, list[str]] = {}
    for a, b in pairs:
        if not {a, b} & hidden:
            steps.setdefault(a, []).append(b)
            steps.setdefault(b, []).append(a)
    queue, seen = [(start, 0)], {start}
    while queue:
        here, hops = queue.pop(0)
        if here == end:
            return hops if hops <= most else None
        for there in steps.get(here, []):
            if there not in seen:
                seen.add(there)
                queue.append((there, hops + 1))
    return None


@given(graphs, names, st.lists(names, min_size=1, max_size=4), st.sets(names, max_size=2), st.integers(0, 5))
async def test_hops_in_memory_equal_a_breadth_first_search_without_directions(
    pairs: list[tuple[str, str]], start: str, ends: list[str], hidden: set[str], most: int
) -> None:
    records = [record(name, SIBLING if name in hidden else USER) for name in "abcdefg"]
    by_id = {made.record_id: made for made in records}
    source = InMemoryAssociationSource([Association(a, by_id[b]) for a, b in pairs], records=records)
    traversal = GraphTraversal(source, most)
    got = await traversal.hops(USER, start, ends)
    for end in ends:
        expected = 0 if end == start else shortest(pairs, start, end, hidden, most)
        if end != start and hidden & {start, end}:
            expected = None
        assert got.get(end) == expected
        assert await traversal.graph_proximity(USER, start, end) == (
            0.0 if expected is None else 1 / (1 + expected)
        )


@given(graphs, names, names, st.sets(names, max_size=2), st.integers(1, 5))
async def test_hops_over_out_edges_alone_follow_what_the_ends_lead_to(
    pairs: list[tuple[str, str]], start: str, end: str, hidden: set[str], most: int
) -> None:
    hidden -= {start, end}
    edges = [Association(a, record(b, SIBLING if b in hidden else USER)) for a, b in pairs]
    source = OutEdges(edges)
    traversal = GraphTraversal(source, most)
    known = {
        (a, b)
        for a, b in pairs
        if b not in hidden and any(within(pairs, one, a, hidden, most - 1) for one in (start, end))
    }
    expected = shortest(sorted(known), start, end, set(), most)
    assert (await traversal.hops(USER, start, [end])).get(end) == expected
    assert source.calls <= most
    in_batch = await traversal.hops(USER, start, [*"abcdefg"])
    if not hidden:
        assert in_batch.get(end) == expected


def within(pairs: list[tuple[str, str]], start: str, end: str, hidden: set[str], most: int) -> bool:
    reached = {start}
    for _ in range(most):
        reached |= {b for a, b in pairs if a in reached and b not in hidden}
    return end in reached


async def test_no_path_leads_through_a_memory_whose_scope_is_unknown() -> None:
    source = InMemoryAssociationSource([Association("hub", record("a")), Association("hub", record("b"))])
    traversal = GraphTraversal(source)
    assert await traversal.graph_proximity(USER, "a", "b") == 0.0
    assert await traversal.graph_proximity(USER, "hub", "b") == 0.5
    known = InMemoryAssociationSource(
        [Association("hub", record("a")), Association("hub", record("b"))], records=[record("hub")]
    )
    assert await GraphTraversal(known).graph_proximity(USER, "a", "b") == pytest.approx(1 / 3)


async def test_a_memory_is_nearest_to_itself_without_asking() -> None:
    assert await GraphTraversal(Dead()).graph_proximity(USER, "a", "a") == 1.0
    assert await GraphTraversal(Dead(), max_hops=0).graph_proximity(USER, "a", "b") == 0.0


@pytest.mark.parametrize("wrong", [-1, 1.5, None])
def test_a_malformed_traversal_is_a_contract_error(wrong: object) -> None:
    with pytest.raises(MemoryContractError, match="max_hops"):
        GraphTraversal(InMemoryAssociationSource(), wrong)  # type: ignore[arg-type]
