"""Spreading activation against a slow, obvious reference, and its bad days."""

from __future__ import annotations

import logging
from collections.abc import Sequence

import pytest
from hypothesis import given
from hypothesis import strategies as st

from symfonic_pg.memory.activation import ActivatedNode, ActivationLog, Association
from symfonic_pg.memory.errors import MemoryContractError, MemoryUnavailable
from symfonic_pg.memory.graph import InMemoryAssociationSource
from symfonic_pg.memory.records import MemoryRecord
from symfonic_pg.memory.relevance import RelevanceSignals
from symfonic_pg.memory.results import RetrievedMemory
from symfonic_pg.memory.scope import MemoryScope
from symfonic_pg.memory.spreading import SpreadingActivation

USER = MemoryScope.parse("org:acme/user:u1")
ORG = USER.parent
SIBLING = MemoryScope.parse("org:acme/user:u2")
BELOW = USER.child("session", "s1")
OTHER = MemoryScope.parse("org:acme-corp")


def record(record_id: str, scope: MemoryScope = USER, **fields: object) -> MemoryRecord:
    return MemoryRecord(record_id, scope, "semantic", f"text of {record_id}", **fields)


def seed(record_id: str, score: float, scope: MemoryScope = USER) -> RetrievedMemory:
    return RetrievedMemory(record(record_id, scope), score, distance=max(0, USER.distance(scope)))


class Graph:
    """A source of edges that hides nothing, notes what it is asked, and may fail at a call."""

    def __init__(self, *edges: Association, fail_at: int | None = None) -> None:
        self.edges, self.fail_at = edges, fail_at
        self.asked: list[list[str]] = []

    async def neighbours(self, scope: MemoryScope, record_ids: Sequence[str]) -> list[Association]:
        self.asked.append(list(record_ids))
        if self.fail_at == len(self.asked):
            raise MemoryUnavailable("the graph is gone")
        return [edge for edge in self.edges if edge.source_id in record_ids]


def edge(
    source: str, target: str, weight: float = 1.0, scope: MemoryScope = USER, how: str = "associated"
) -> Association:
    return Association(source, record(target, scope), how, weight)


def reference(
    edges: list[tuple[str, str, float]],
    seeds: dict[str, float],
    hidden: set[str],
    max_hops: int,
    decay: float,
    max_nodes: int,
) -> tuple[dict[str, tuple[float, int, tuple[str, ...]]], list[str]]:
    """id -> (activation, hop, trail) in order of admission, and the ids that found no room."""
    lit = {key: (score, 0, (key,)) for key, score in seeds.items()}
    left_out: list[str] = []
    frontier = set(seeds)
    for hop in range(1, max_hops + 1):
        best: dict[str, tuple[float, str]] = {}
        for source, target, weight in edges:
            if source not in frontier or target in lit or target in hidden:
                continue
            activation = max(0.0, min(1.0, lit[source][0] * weight * decay))
            known, through = best.get(target, (-1.0, ""))
            if activation > known or (activation == known and source < through):
                best[target] = (activation, source)
        frontier = set()
        if len(lit) - len(seeds) == max_nodes:
            break
        for target in sorted(best, key=lambda key: (-best[key][0], key)):
            if len(lit) - len(seeds) < max_nodes:
                activation, source = best[target]
                lit[target] = (activation, hop, (*lit[source][2], target))
                frontier.add(target)
            else:
                left_out.append(target)
    return lit, left_out


names = st.sampled_from("abcdefgh")
weights = st.sampled_from([0.0, 0.25, 0.5, 0.5, 1.0, 1.0, 3.0]) | st.floats(0, 4)
graphs = st.lists(st.tuples(names, names, weights), max_size=25)


@given(
    graphs,
    st.dictionaries(names, st.sampled_from([0.0, 0.25, 0.5, 1.0]), max_size=4),
    st.sets(names, max_size=3),
    st.integers(0, 5),
    st.sampled_from([0.1, 0.5, 1.0]),
    st.integers(1, 6),
)
async def test_expansion_equals_the_reference_on_any_graph(
    edges: list[tuple[str, str, float]],
    seeds: dict[str, float],
    hidden: set[str],
    max_hops: int,
    decay: float,
    max_nodes: int,
) -> None:
    hidden -= seeds.keys()
    graph = Graph(*(edge(a, b, w, SIBLING if b in hidden else USER) for a, b, w in edges))
    spreading = SpreadingActivation(graph, max_hops, decay, max_nodes)

    found, log = await spreading.expand(USER, [seed(key, score) for key, score in seeds.items()])

    lit, left_out = reference(edges, seeds, hidden, max_hops, decay, max_nodes)
    assert [(n.record_id, n.score, n.hop) for n in log.nodes] == [(k, v[0], v[1]) for k, v in lit.items()]
    assert log.trails == {key: trail for key, (_, _, trail) in lit.items()}
    assert [memory.record_id for memory in found] == list(lit)[len(seeds) :]
    for memory in found:
        activation, _, trail = lit[memory.record_id]
        assert (memory.score, memory.rank_score, memory.via) == (activation, activation, trail)
    assert [record_id for record_id, _ in log.dropped] == left_out
    assert not log.degraded
    assert len(graph.asked) <= max_hops
    assert not hidden & {key for key in f"{log} {found}".replace("'", " ").split() if len(key) == 1}


async def test_activation_is_multiplied_along_the_path_and_clamped() -> None:
    graph = Graph(edge("a", "b", 0.5), edge("b", "c", 0.8), edge("a", "d", 9.0))
    found, log = await SpreadingActivation(graph, 2).expand(USER, [seed("a", 0.8)])
    assert [(m.record_id, pytest.approx(m.score), m.via) for m in found] == [
        ("d", 1.0, ("a", "d")),
        ("b", 0.2, ("a", "b")),
        ("c", 0.08, ("a", "b", "c")),
    ]
    assert log.nodes[0] == ActivatedNode("a", 0.8, 0)
    assert graph.asked == [["a"], ["d", "b"]]


async def test_a_record_is_found_at_the_first_hop_even_if_a_longer_path_is_stronger() -> None:
    graph = Graph(edge("a", "b", 0.1), edge("a", "c", 1.0), edge("c", "b", 1.0))
    found, _ = await SpreadingActivation(graph, 3, 1.0).expand(USER, [seed("a", 1.0)])
    assert {m.record_id: m.score for m in found} == {"c": 1.0, "b": 0.1}


async def test_equal_activations_go_by_the_smaller_source_and_the_smaller_id() -> None:
    graph = Graph(edge("b", "z"), edge("a", "z"), edge("b", "y"), edge("a", "x"))
    found, _ = await SpreadingActivation(graph, max_nodes=2).expand(USER, [seed("b", 0.5), seed("a", 0.5)])
    assert [(m.record_id, m.via) for m in found] == [("x", ("a", "x")), ("y", ("b", "y"))]
    found, _ = await SpreadingActivation(graph).expand(USER, [seed("b", 0.5), seed("a", 0.5)])
    assert found[-1].via == ("a", "z")


async def test_cycles_self_edges_and_parallel_edges_add_nothing() -> None:
    graph = Graph(
        edge("a", "a"), edge("a", "b", 0.5), edge("a", "b", 0.9, how="likes"), edge("b", "a"), edge("b", "b")
    )
    found, log = await SpreadingActivation(graph, 10).expand(USER, [seed("a", 1.0)])
    assert [(m.record_id, m.score) for m in found] == [("b", 0.45)]
    assert len(graph.asked) == 2
    assert log.trails == {"a": ("a",), "b": ("a", "b")}


async def test_a_found_memory_has_its_own_salience_and_distance() -> None:
    target = record("b", ORG, salience=0.3)
    found, _ = await SpreadingActivation(Graph(Association("a", target))).expand(USER, [seed("a", 1.0)])
    assert found == (
        RetrievedMemory(target, 0.5, 0.5, 1, RelevanceSignals(salience=0.3), via=("a", "b")),
    )


async def test_what_finds_no_room_is_dropped_with_its_number_and_leads_nowhere() -> None:
    graph = Graph(edge("a", "b", 0.9), edge("a", "c", 0.4), edge("c", "d"))
    found, log = await SpreadingActivation(graph, 3, max_nodes=1).expand(USER, [seed("a", 1.0)])
    assert [m.record_id for m in found] == ["b"]
    assert log.dropped == (("c", "activation 0.20 came after max_nodes 1 were found"),)
    assert graph.asked == [["a"]]


@pytest.mark.parametrize("hops", [0, 2])
async def test_without_hops_or_seeds_nothing_is_asked(hops: int) -> None:
    graph = Graph(edge("a", "b"))
    seeds = [seed("a", 1.0)] if hops == 0 else []
    found, log = await SpreadingActivation(graph, hops).expand(USER, seeds)
    assert (found, graph.asked) == ((), [])
    nodes = tuple(ActivatedNode.of(seed.record, seed.score) for seed in seeds)
    assert log == ActivationLog(nodes, {node.record_id: (node.record_id,) for node in nodes})


async def test_nodes_can_be_seeds_and_the_best_of_equal_seeds_counts() -> None:
    graph = Graph(edge("a", "b"))
    seeds = [ActivatedNode.of(record("a"), 0.2), ActivatedNode("a", 0.6, hop=3)]
    found, log = await SpreadingActivation(graph).expand(USER, seeds)
    assert found[0].score == 0.3
    assert log.nodes == (ActivatedNode("a", 0.6, 0), ActivatedNode("b", 0.3, 1))


@pytest.mark.parametrize("scope", [SIBLING, BELOW, OTHER])
async def test_an_invisible_target_leaves_no_trace_and_no_path_through_it(
    scope: MemoryScope, caplog: pytest.LogCaptureFixture
) -> None:
    graph = Graph(edge("a", "secret", 1.0, scope), edge("secret", "c"), edge("a", "b", 0.1))
    with caplog.at_level(logging.WARNING, "symfonic_pg.memory"):
        found, log = await SpreadingActivation(graph, 3, max_nodes=1).expand(USER, [seed("a", 1.0)])
    assert [m.record_id for m in found] == ["b"]
    assert "secret" not in f"{found}{log}{graph.asked}{caplog.text}"
    assert log.dropped == ()
    assert "1 edges to memories not visible" in caplog.text


async def test_an_invisible_seed_is_not_spread() -> None:
    graph = Graph(edge("secret", "b"))
    hidden = RetrievedMemory(record("secret", BELOW), 1.0)
    found, log = await SpreadingActivation(graph).expand(USER, [hidden])
    assert (found, log, graph.asked) == ((), ActivationLog(), [])


async def test_edges_that_nobody_asked_about_are_ignored() -> None:
    class Chatty(Graph):
        async def neighbours(self, scope: MemoryScope, record_ids: Sequence[str]) -> list[Association]:
            return list(self.edges)

    graph = Chatty(edge("x", "y"), edge("a", "b"))
    found, _ = await SpreadingActivation(graph).expand(USER, [seed("a", 1.0)])
    assert [m.record_id for m in found] == ["b"]


@pytest.mark.parametrize(("fail_at", "expected"), [(1, []), (2, ["b"]), (3, ["b", "c"])])
async def test_a_graph_that_dies_degrades_to_what_was_found(fail_at: int, expected: list[str]) -> None:
    graph = Graph(edge("a", "b"), edge("b", "c"), edge("c", "d"), fail_at=fail_at)
    found, log = await SpreadingActivation(graph, 5).expand(USER, [seed("a", 1.0)])
    assert [m.record_id for m in found] == expected
    assert log.degraded
    assert [node.record_id for node in log.nodes] == ["a", *expected]


async def test_a_graph_on_a_borrowed_connection_is_never_degraded() -> None:
    graph = Graph(edge("a", "b"), fail_at=1)
    graph.borrowed = True
    with pytest.raises(MemoryUnavailable):
        await SpreadingActivation(graph).expand(USER, [seed("a", 1.0)])


async def test_other_errors_of_the_graph_are_not_hidden() -> None:
    class Broken(Graph):
        async def neighbours(self, scope: MemoryScope, record_ids: Sequence[str]) -> list[Association]:
            raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError):
        await SpreadingActivation(Broken()).expand(USER, [seed("a", 1.0)])


@pytest.mark.parametrize(
    ("field", "value"),
    [
        ("max_hops", -1),
        ("max_hops", 1.0),
        ("decay", 0),
        ("decay", 1.1),
        ("decay", float("nan")),
        ("max_nodes", 0),
        ("max_nodes", True),
        ("source", object()),
    ],
)
def test_a_malformed_expansion_names_the_field(field: str, value: object) -> None:
    with pytest.raises(MemoryContractError, match=field):
        SpreadingActivation(**{"source": Graph(), field: value})


async def test_seeds_of_another_type_are_a_contract_error() -> None:
    with pytest.raises(MemoryContractError, match="seeds"):
        await SpreadingActivation(Graph()).expand(USER, ["a"])  # type: ignore[list-item]


async def test_the_source_in_memory_gives_what_the_scope_can_see_of_both_ends() -> None:
    source = InMemoryAssociationSource(
        [
            edge("a", "b", 0.3),
            edge("a", "b", 0.7),
            edge("a", "b", 0.2, how="likes"),
            edge("a", "c", scope=SIBLING),
        ],
        records=[record("hidden", SIBLING)],
    )
    source.add(edge("hidden", "b"))
    got = await source.neighbours(USER, ["a", "hidden", "a", "unknown"])
    assert [(e.target.record_id, e.relationship, e.weight) for e in got] == [
        ("b", "associated", 0.7),
        ("b", "likes", 0.2),
    ]
    assert len(await source.neighbours(SIBLING, ["hidden"])) == 0
    assert [e.target.record_id for e in await source.neighbours(SIBLING, ["a"])] == ["c"]
