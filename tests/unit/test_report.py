"""The ledger of a recall: every candidate has one end, and the numbers add up."""

from __future__ import annotations

import pickle
from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import replace
from datetime import UTC, datetime

import pytest
from hypothesis import given
from hypothesis import strategies as st

from symfonic_pg.memory.activation import ActivatedNode, ActivationLog, Association
from symfonic_pg.memory.coordinator import CoordinatedRetrieval, RetrievalCoordinator
from symfonic_pg.memory.errors import MemoryUnavailable, SymfonicError
from symfonic_pg.memory.graph import InMemoryAssociationSource
from symfonic_pg.memory.layers import MemoryLayer
from symfonic_pg.memory.policy import RetrievalPolicy
from symfonic_pg.memory.reasons import duplicate
from symfonic_pg.memory.records import MemoryQuery, MemoryRecord
from symfonic_pg.memory.relevance import RelevanceSignals
from symfonic_pg.memory.report import RecallReport
from symfonic_pg.memory.results import RetrievalResult, RetrievedMemory
from symfonic_pg.memory.scope import MemoryScope
from symfonic_pg.memory.sources import Candidate
from symfonic_pg.memory.spreading import SpreadingActivation

USER = MemoryScope.parse("org:acme/user:u1")
SIBLING = MemoryScope.parse("org:acme/user:u2")
NOW = datetime(2026, 3, 1, tzinfo=UTC)
PAST = datetime(2026, 1, 1, tzinfo=UTC)


class Store:
    """A source that returns what it is given, with tallies that add up."""

    def __init__(self, *candidates: Candidate, refused: Iterable[tuple[str, str]] = ()) -> None:
        self.candidates, self.refused = candidates, tuple(refused)

    async def search(self, query: MemoryQuery, layers: frozenset[MemoryLayer]) -> tuple[Candidate, ...]:
        return self.candidates

    def drain_dropped(self) -> Iterable[tuple[str, str]]:
        return self.refused

    def drain_sources(self) -> tuple[Mapping[str, int], tuple[str, ...]]:
        return {"vector": len(self.candidates), "lexical": 0}, ("graph",)

    def drain_completeness(self) -> Mapping[str, str]:
        return {"vector": "exact"}


def record(record_id: str, scope: MemoryScope = USER, **fields: object) -> MemoryRecord:
    return MemoryRecord(record_id, scope, fields.pop("layer", "semantic"), "text", updated_at=PAST, **fields)


def candidate(record_id: str, cue: float = 0.5, **fields: object) -> Candidate:
    return Candidate(record(record_id, **fields), RelevanceSignals(cue=cue))


async def report(
    store: Store,
    *edges: Association,
    limit: int = 10,
    max_chars: int | None = None,
    hops: int = 1,
    max_nodes: int = 10,
    **policy: object,
) -> RecallReport:
    coordinator = RetrievalCoordinator(
        source=store,
        policy=RetrievalPolicy(**policy),
        activation=SpreadingActivation(InMemoryAssociationSource(edges), hops, max_nodes=max_nodes),
        clock=lambda: NOW,
    )
    query = MemoryQuery(USER, "cue", limit=limit, max_chars=max_chars)
    made = RecallReport.of(await coordinator.coordinate(query))
    made.reconcile()
    return made


async def test_a_returned_record_tells_its_rank_and_how_it_came_there() -> None:
    made = await report(Store(candidate("low", 0.2), candidate("high", 0.8)))
    fate = made.explain("low")
    assert (fate.stage, fate.rank, fate.returned, fate.fetched) == ("returned", 2, True, True)
    assert (fate.value, fate.threshold, fate.reason) == (0.2, None, "")
    text = str(fate).splitlines()
    assert text[0] == "'low' returned at rank 2"
    assert any("cue" in line and "0.2" in line for line in text[1:])


async def test_a_drop_tells_stage_reason_threshold_and_own_value() -> None:
    made = await report(Store(candidate("weak", 0.31)), min_relevance=0.4)
    fate = made.explain("weak")
    assert (fate.stage, fate.rule, fate.value, fate.threshold) == ("gate", "min_relevance", 0.31, 0.4)
    assert str(fate) == "'weak' dropped at stage gate: score 0.31 under min_relevance 0.40"
    assert fate.rank is None
    assert not fate.returned


async def test_the_gate_the_selection_and_the_source_are_told_apart() -> None:
    store = Store(
        candidate("a", 0.9),
        candidate("b", 0.8),
        candidate("c", 0.7),
        candidate("old", expires_at=PAST),
        candidate("dull", salience=0.1),
        refused=[("no", "too\nold")],
    )
    made = await report(store, limit=2, max_chars=5, min_salience=0.2)
    ends = {fate.record_id: (fate.stage, fate.rule) for fate in made.fates}
    assert ends == {
        "a": ("returned", ""),
        "b": ("selection", "max_chars"),
        "c": ("selection", "limit"),
        "old": ("gate", "expired"),
        "dull": ("gate", "min_salience"),
        "no": ("source", "source"),
    }
    assert (made.explain("b").value, made.explain("b").threshold) == (4, 1)
    assert (made.explain("c").value, made.explain("c").threshold) == (3, 2)
    assert str(made.explain("no")) == "'no' dropped at stage source: too old"
    assert made.explain("old").threshold is None


async def test_a_duplicate_names_the_record_that_stayed() -> None:
    made = await report(Store(candidate("twin", 0.3), candidate("twin", 0.6)))
    fate = made.explain("twin")
    assert (fate.rank, fate.value) == (1, 0.6)
    [copy] = fate.copies
    assert (copy.stage, copy.duplicate_of, copy.value, copy.threshold) == ("gate", "twin", 0.3, 0.6)
    assert "  also 'twin' dropped at stage gate as a duplicate of 'twin'" in str(fate)


async def test_what_only_the_graph_found_says_by_which_path() -> None:
    made = await report(Store(candidate("a", 0.8)), Association("a", record("lit")))
    fate = made.explain("lit")
    assert (fate.rank, fate.only_by_graph, fate.via) == (2, True, ("a", "lit"))
    assert made.found == ("lit",)
    assert "  found only by the graph: 'a' -> 'lit'" in str(fate).splitlines()


async def test_what_the_graph_saved_from_the_floor_was_fetched_all_the_same() -> None:
    store = Store(candidate("a", 0.8), candidate("weak", 0.1))
    made = await report(store, Association("a", record("weak")), min_relevance=0.5)
    fate = made.explain("weak")
    assert (fate.rank, fate.only_by_graph, fate.via) == (2, False, ("a", "weak"))
    assert "  lit up by the graph: 'a' -> 'weak'" in str(fate).splitlines()
    assert made.found == ()


async def test_what_lit_up_and_may_not_be_returned_has_its_reason() -> None:
    edges = [Association("a", record("old", expires_at=PAST)), Association("a", record("lost"), weight=0.1)]
    made = await report(Store(candidate("a", 0.8)), *edges, limit=1)
    old, lost = made.explain("old"), made.explain("lost")
    assert (old.stage, old.rule, old.only_by_graph, old.via) == ("gate", "expired", True, ("a", "old"))
    assert (lost.stage, lost.rule, lost.only_by_graph) == ("selection", "limit", True)


async def test_what_the_graph_did_not_admit_is_told_only_where_nothing_else_is() -> None:
    edges = [Association("a", record(name), weight=w) for name, w in (("b", 0.9), ("c", 0.5), ("weak", 0.4))]
    store = Store(candidate("a", 0.8), candidate("weak", 0.1))
    made = await report(store, *edges, max_nodes=1, min_relevance=0.5)
    c, weak = made.explain("c"), made.explain("weak")
    assert (c.stage, c.rule, c.threshold, c.only_by_graph) == ("activation", "max_nodes", 1, True)
    assert c.value == pytest.approx(0.2)
    assert (weak.stage, weak.rule) == ("gate", "min_relevance")
    assert [copy.stage for copy in weak.copies] == ["activation"]


async def test_a_record_that_nobody_came_across_has_no_explanation() -> None:
    edges = [Association("a", record("secret", SIBLING))]
    made = await report(Store(candidate("a")), *edges)
    assert made.explain("secret") is None
    assert made.explain("") is None
    assert "secret" not in repr(made)


async def test_a_report_tells_what_each_route_fetched() -> None:
    made = await report(Store(candidate("a"), candidate("b")), Association("a", record("c")), limit=1)
    assert str(made).splitlines() == [
        "route vector found 2 (exact)",
        "route lexical found 0 (completeness unknown)",
        "route graph could not run",
        "2 fetched, 0 refused by the source, 1 found only by the graph",
        "1 returned, 2 dropped at stage selection",
    ]


async def test_a_query_without_a_layer_says_why_nothing_was_asked() -> None:
    made = await report(Store(candidate("a")), enabled_layers=[])
    assert (made.fetched, made.fates) == ((), ())
    assert str(made).startswith("nothing was asked: no layer")


async def test_a_degraded_expansion_shows() -> None:
    class Dead:
        async def neighbours(self, scope: MemoryScope, record_ids: object) -> list[Association]:
            raise MemoryUnavailable("gone")

    coordinator = RetrievalCoordinator(source=Store(candidate("a")), activation=SpreadingActivation(Dead()))
    made = RecallReport.of(await coordinator.coordinate(MemoryQuery(USER, "cue")))
    made.reconcile()
    assert made.degraded
    assert "the graph could not be asked to the end" in str(made)


async def test_a_report_pickles_with_its_numbers() -> None:
    made = await report(Store(candidate("weak", 0.31), candidate("a")), min_relevance=0.4)
    again = pickle.loads(pickle.dumps(made))
    assert again == made
    assert again.explain("weak").threshold == 0.4


async def test_a_record_id_or_reason_cannot_break_the_lines() -> None:
    made = await report(Store(candidate("a\nb", 0.1), refused=[("x\u2028y", "one\rtwo")]), min_relevance=0.5)
    assert len(str(made.explain("a\nb")).splitlines()) == 1
    assert len(str(made.explain("x\u2028y")).splitlines()) == 1


names = st.sampled_from("abcdefghij")
candidates = st.lists(
    st.builds(
        lambda record_id, cue, scope, layer, salience, expires_at, kind, pre_ranked: Candidate(
            record(
                record_id, scope, layer=layer, salience=salience, expires_at=expires_at, kind=kind
            ),
            RelevanceSignals(cue=cue),
            pre_ranked,
        ),
        names,
        st.none() | st.floats(0, 1),
        st.sampled_from([USER, USER, USER.parent, SIBLING]),
        st.sampled_from(["semantic", "episodic", "working"]),
        st.none() | st.floats(0, 1),
        st.none() | st.just(PAST),
        st.sampled_from(["", "profile"]),
        st.booleans(),
    ),
    max_size=14,
)
edges = st.lists(
    st.builds(
        lambda source, target, scope, layer, weight: Association(
            source, record(target, scope, layer=layer), weight=weight
        ),
        names,
        st.sampled_from("abcdefghijklmnop"),
        st.sampled_from([USER, USER.parent, SIBLING]),
        st.sampled_from(["semantic", "working"]),
        st.floats(0, 2),
    ),
    max_size=14,
)


@given(
    candidates,
    st.lists(st.tuples(names, st.text(max_size=5)), max_size=3),
    edges,
    st.integers(0, 3),
    st.integers(1, 4),
    st.floats(0, 1),
    st.floats(0, 1),
    st.integers(0, 2),
    st.integers(1, 6),
    st.none() | st.integers(0, 30),
)
async def test_the_books_balance_whatever_comes_in(
    given_candidates: list[Candidate],
    refused: list[tuple[str, str]],
    graph: list[Association],
    hops: int,
    max_nodes: int,
    min_relevance: float,
    min_salience: float,
    profile_slots: int,
    limit: int,
    max_chars: int | None,
) -> None:
    made = await report(
        Store(*given_candidates, refused=refused),
        *graph,
        limit=limit,
        max_chars=max_chars,
        hops=hops,
        max_nodes=max_nodes,
        min_relevance=min_relevance,
        min_salience=min_salience,
        profile_slots=profile_slots,
    )
    entered = Counter(c.record.record_id for c in given_candidates) + Counter(key for key, _ in refused)
    entered += Counter(made.found)
    assert entered == Counter(fate.record_id for fate in made.fates if fate.stage != "activation")
    for record_id in entered:
        fate = made.explain(record_id)
        assert fate.record_id == record_id
        assert fate.returned == any(f.returned for f in made.fates if f.record_id == record_id)
        assert fate.only_by_graph == (record_id in made.found)
        assert len(fate.copies) == sum(f.record_id == record_id for f in made.fates) - 1
        assert str(fate)


@pytest.mark.parametrize(
    ("fetched", "fault"),
    [
        (("a", "b", "c"), "'c' came in 1 times and ended 0 times"),
        (("a",), "'b' came in 0 times and ended 1 times"),
        (("a", "b", "b"), "'b' came in 2 times and ended 1 times"),
        (("a", "b", "b"), "3 came in and all routes found 2"),
        (("a",), "route vector found 2 where 1 came in"),
    ],
)
async def test_a_lost_or_doubled_candidate_raises(fetched: tuple[str, ...], fault: str) -> None:
    made = await report(Store(candidate("a"), candidate("b", 0.1)), min_relevance=0.5)
    with pytest.raises(SymfonicError, match=fault):
        RecallReport(replace(made.retrieval, fetched=fetched)).reconcile()


async def test_a_node_of_the_graph_without_an_end_raises() -> None:
    made = await report(Store(candidate("a")))
    log = ActivationLog((ActivatedNode("z", 0.5, 1),), {"z": ("a", "z")})
    with pytest.raises(SymfonicError, match="'z' came in 1 times and ended 0 times"):
        RecallReport(replace(made.retrieval, activation=log)).reconcile()


def test_a_duplicate_of_nothing_raises() -> None:
    result = RetrievalResult(dropped=(("a", duplicate(0.1, 0.2)),))
    with pytest.raises(SymfonicError, match="'a' is a duplicate of nothing"):
        RecallReport(CoordinatedRetrieval(result, fetched=("a",))).reconcile()


def test_a_bare_result_makes_a_report_too() -> None:
    result = RetrievalResult((RetrievedMemory(record("a"), 0.5),), (("b", "plain"),), {"vector": 2})
    made = RecallReport.of(result)
    assert made == RecallReport.of(CoordinatedRetrieval(result))
    assert made.explain("a").rank == 1
    assert (made.explain("b").stage, made.explain("b").reason) == ("source", "plain")
