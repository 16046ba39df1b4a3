"""The coordinator: what it asks of a source, what it takes from it, and the values it gives."""

from __future__ import annotations

import asyncio
import random
from dataclasses import replace

import pytest

from symfonic_pg.memory.activation import ActivationLog
from symfonic_pg.memory.coordinator import CoordinatedRetrieval, RetrievalCoordinator
from symfonic_pg.memory.errors import MemoryContractError, MemoryUnavailable
from symfonic_pg.memory.layers import RETRIEVABLE_LAYERS, MemoryLayer
from symfonic_pg.memory.policy import RetrievalPolicy
from symfonic_pg.memory.ports import MemoryRetrievalPort
from symfonic_pg.memory.records import MemoryQuery
from symfonic_pg.memory.relevance import RelevanceSignals
from symfonic_pg.memory.results import NO_RECORD, RetrievalResult, RetrievedMemory
from symfonic_pg.memory.sources import Candidate, LexicalCandidateSource
from tests.unit.coordination import (
    HOUR,
    NOON,
    ORG,
    SESSION,
    USER,
    Source,
    TalkativeSource,
    candidate,
    ids,
    record,
    retrieve,
)


async def test_without_an_effective_layer_nothing_is_asked_and_the_result_says_so():
    source = Source(candidate("m1"))
    coordinator = RetrievalCoordinator(source=source, policy=RetrievalPolicy(enabled_layers=["semantic"]))
    answer = await coordinator.coordinate(MemoryQuery(SESSION, layers=["working", "episodic"]))
    assert source.asked == []
    assert answer.layers == frozenset()
    assert answer.result.memories == ()
    ((record_id, reason),) = answer.result.dropped
    assert record_id == NO_RECORD == ""
    assert reason == "no layer to search: asked for episodic, working; enabled semantic"


async def test_the_source_is_asked_for_the_effective_layers_at_one_settled_moment():
    source = Source()
    ticks = iter([NOON, NOON + HOUR])
    coordinator = RetrievalCoordinator(
        source=source,
        policy=RetrievalPolicy(enabled_layers=["semantic", "episodic"]),
        clock=lambda: next(ticks),
    )
    query = MemoryQuery(SESSION, layers=["working", "episodic", "procedural"])
    answer = await coordinator.coordinate(query)
    assert source.asked == [(replace(query, as_of=NOON), {MemoryLayer.EPISODIC})]
    assert answer.layers == {MemoryLayer.EPISODIC}
    early = NOON - HOUR
    await coordinator.retrieve(replace(query, as_of=early))
    assert source.asked[-1][0].as_of == early


def test_the_working_layer_cannot_be_enabled():
    with pytest.raises(MemoryContractError, match="WorkingWindow"):
        RetrievalPolicy(enabled_layers=["semantic", "working"])


def test_effective_layers_are_enabled_and_asked_for():
    policy = RetrievalPolicy(enabled_layers=["semantic", "episodic"])
    assert policy.effective_layers(MemoryQuery(ORG, layers=MemoryLayer)) == {"semantic", "episodic"}
    assert RetrievalPolicy().effective_layers(MemoryQuery(ORG)) == RETRIEVABLE_LAYERS


@pytest.mark.parametrize(
    ("field", "value"),
    [
        ("enabled_layers", "semantic"),
        ("enabled_layers", ["facts"]),
        ("weights", None),
        ("weights", {"cue": 1}),
        ("blend", "blend"),
        ("min_relevance", 1.1),
        ("min_relevance", float("nan")),
        ("min_salience", -0.1),
        ("min_salience", True),
        ("profile_slots", -1),
        ("profile_slots", 1.0),
    ],
)
def test_a_policy_keeps_its_rules(field, value):
    with pytest.raises(MemoryContractError) as caught:
        RetrievalPolicy(**{field: value})
    assert caught.value.field == field


@pytest.mark.parametrize(
    ("field", "options"),
    [
        ("source", {"source": object()}),
        ("source", {"source": None}),
        ("policy", {"source": Source(), "policy": {}}),
        ("activation", {"source": Source(), "activation": object()}),
    ],
)
def test_a_coordinator_keeps_its_types(field, options):
    with pytest.raises(MemoryContractError) as caught:
        RetrievalCoordinator(**options)
    assert caught.value.field == field


async def test_only_a_query_can_be_coordinated_and_only_candidates_be_found():
    with pytest.raises(MemoryContractError):
        await RetrievalCoordinator(source=Source()).retrieve("refund")
    for wrong in (record("m1"), None, ("m1", 0.5)):
        with pytest.raises(MemoryContractError):
            await retrieve(wrong)
    source = Source()
    source.candidates = None
    with pytest.raises(MemoryContractError):
        await RetrievalCoordinator(source=source).retrieve(MemoryQuery(ORG))


def test_the_coordinator_is_a_retrieval_port():
    assert isinstance(RetrievalCoordinator(source=Source()), MemoryRetrievalPort)


async def test_the_hooks_are_drained_in_order_and_their_news_is_in_the_result():
    source = TalkativeSource(
        candidate("m1"),
        candidate("m2", scope="org:other"),
        dropped=iter([["s1", "no text"]]),
        sources=({"vector": 2, "lexical": 0}, ("graph",)),
        completeness={"vector": "exact"},
    )
    result = await RetrievalCoordinator(source=source).retrieve(MemoryQuery(SESSION, limit=1))
    assert source.calls == ["search", "dropped", "sources", "completeness"]
    assert [record_id for record_id, _ in result.dropped] == ["s1", "m2"]
    assert result.dropped[0] == ("s1", "no text")
    assert result.sources == {"vector": 2, "lexical": 0}
    assert result.unavailable == ("graph",)
    assert result.completeness == {"vector": "exact"}


async def test_a_source_without_hooks_leaves_them_empty():
    result = await retrieve(candidate("m1"))
    assert (result.sources, result.unavailable, result.completeness) == ({}, (), {})


@pytest.mark.parametrize(
    "told",
    [{"dropped": ["m1"]}, {"dropped": [("m1", 1)]}, {"sources": ({"vector": -1}, ())}, {"sources": ([], ())}],
)
async def test_what_a_hook_tells_is_checked(told):
    with pytest.raises(MemoryContractError):
        await RetrievalCoordinator(source=TalkativeSource(**told)).retrieve(MemoryQuery(SESSION))


async def test_a_store_out_of_reach_is_no_empty_answer():
    class Down:
        async def search(self, query, layers):
            raise MemoryUnavailable("refused")

        def drain_dropped(self):
            raise AssertionError("nothing is drained after a failure")

    with pytest.raises(MemoryUnavailable, match="refused"):
        await RetrievalCoordinator(source=Down()).retrieve(MemoryQuery(SESSION))


async def test_concurrent_queries_never_mix_what_is_drained():
    class Shared:
        """Publishes in the step in which it returns, like every store."""

        async def search(self, query, layers):
            for _ in range(random.randrange(5)):
                await asyncio.sleep(0)
            self.mine = query.cue
            return [Candidate(record(query.cue))]

        def drain_dropped(self):
            return [(f"dropped {self.mine}", "because")]

        def drain_sources(self):
            return {self.mine: 1}, (self.mine,)

        def drain_completeness(self):
            return {self.mine: "exact"}

    coordinator = RetrievalCoordinator(source=Shared())
    cues = [f"q{number}" for number in range(50)]
    results = await asyncio.gather(*(coordinator.retrieve(MemoryQuery(SESSION, cue)) for cue in cues))
    for cue, result in zip(cues, results, strict=True):
        assert ids(result) == [cue]
        assert result.dropped == ((f"dropped {cue}", "because"),)
        assert (result.sources, result.unavailable, result.completeness) == ({cue: 1}, (cue,), {cue: "exact"})


async def test_a_real_source_end_to_end():
    source = LexicalCandidateSource(
        [
            record("m1", ORG, text="EU customers get a refund within 14 days"),
            record("m2", USER, text="prefers email"),
            record("m3", "org:acme-corp", text="refund policy EU: none"),
        ]
    )
    result = await RetrievalCoordinator(source=source).retrieve(MemoryQuery(SESSION, "refund policy EU"))
    assert [(memory.record.record_id, memory.distance) for memory in result.memories] == [
        ("m1", 2),
        ("m2", 1),
    ]
    assert result.memories[0].score == pytest.approx(2 / 3)
    assert result.dropped == ()


def test_results_are_values():
    memory = RetrievedMemory(record("m1"), 0.5)
    assert (memory.rank_score, memory.distance, memory.signals, memory.via) == (
        0.5,
        0,
        RelevanceSignals(),
        (),
    )
    result = RetrievalResult()
    assert (result.memories, result.dropped, result.sources) == ((), (), {})
    assert (result.unavailable, result.completeness) == ((), {})
    answer = CoordinatedRetrieval(result)
    assert (answer.activation, answer.layers) == (ActivationLog(), frozenset())
    hash(RetrievalResult((memory,), (("m2", "why"),), {"vector": 1}, ("graph",), {"vector": "exact"}))


def test_a_result_copies_what_it_is_given():
    counts = {"vector": 1}
    result = RetrievalResult(dropped=[("m1", "why")], sources=counts)
    counts["vector"] = 2
    assert result.sources == {"vector": 1}
    assert result.dropped == (("m1", "why"),)


@pytest.mark.parametrize(
    ("field", "value"),
    [
        ("record", None),
        ("score", 1.1),
        ("score", float("nan")),
        ("score", None),
        ("rank_score", -0.1),
        ("distance", -1),
        ("distance", True),
        ("signals", None),
        ("via", "m1"),
        ("via", [1]),
    ],
)
def test_a_retrieved_memory_keeps_its_rules(field, value):
    with pytest.raises(MemoryContractError) as caught:
        RetrievedMemory(**{"record": record("m1"), "score": 0.5, field: value})
    assert caught.value.field == field


@pytest.mark.parametrize(
    ("field", "value"),
    [
        ("memories", [record("m1")]),
        ("dropped", ["m1"]),
        ("dropped", [("m1",)]),
        ("sources", {"vector": 0.5}),
        ("sources", ["vector"]),
        ("unavailable", "vector"),
        ("completeness", {"vector": 1}),
    ],
)
def test_a_result_keeps_its_rules(field, value):
    with pytest.raises(MemoryContractError) as caught:
        RetrievalResult(**{field: value})
    assert caught.value.field == field
