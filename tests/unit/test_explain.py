"""Explanations: every number on the way from signals to rank adds up."""

from __future__ import annotations

import asyncio
import pickle
from dataclasses import replace
from datetime import UTC, datetime

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from symfonic_pg.memory.activation import ActivationLog
from symfonic_pg.memory.coordinator import RetrievalCoordinator
from symfonic_pg.memory.policy import RetrievalPolicy
from symfonic_pg.memory.records import MemoryQuery, MemoryRecord
from symfonic_pg.memory.relevance import RelevanceSignals, RelevanceWeights, ScopeBlend, ScopeBlendMode
from symfonic_pg.memory.results import RetrievedMemory
from symfonic_pg.memory.sources import Candidate

quick = settings(deadline=None, max_examples=150)

NOON = datetime(2024, 6, 1, 12, tzinfo=UTC)
HERE, ABOVE = "org:acme/user:u1", "org:acme"


def record(record_id="m1", scope=HERE, salience=None):
    return MemoryRecord(record_id, scope, "semantic", "a fact", salience, created_at=NOON)


class Source:
    def __init__(self, *candidates):
        self.candidates = candidates

    async def search(self, query, layers):
        return self.candidates


class Expansion:
    def __init__(self, *found):
        self.found = found

    async def expand(self, scope, seeds):
        return self.found, ActivationLog()


def memories(*candidates, activation=None, **policy):
    coordinator = RetrievalCoordinator(
        source=Source(*candidates), policy=RetrievalPolicy(**policy), activation=activation
    )
    return asyncio.run(coordinator.retrieve(MemoryQuery(HERE))).memories


def test_each_signal_is_told_with_its_value_weight_and_contribution():
    (memory,) = memories(
        Candidate(record(scope=ABOVE, salience=0.5), RelevanceSignals(cue=0.8)), blend=ScopeBlend("backfill")
    )
    explained = memory.explain()
    assert [(part.name, part.value, part.weight) for part in explained.contributions] == [
        ("cue", 0.8, 1.0),
        ("salience", 0.5, 0.5),
    ]
    assert [part.contribution for part in explained.contributions] == pytest.approx([0.8 / 1.5, 0.25 / 1.5])
    assert explained.absent == ("recency", "frequency", "proximity")
    assert explained.score == memory.score == pytest.approx(0.7)
    assert (explained.gate, explained.distance) == (0.5, 1)
    assert explained.gated == pytest.approx(0.35)
    assert explained.rank_score == memory.rank_score == pytest.approx(0.175)
    assert str(explained) == "\n".join(explained.lines())
    assert explained.lines() == (
        "'m1' ranks at 0.1750",
        "  cue        0.8000 at weight 1 gives 0.5333",
        "  salience   0.5000 at weight 0.5 gives 0.1667",
        "  without    recency, frequency, proximity",
        "  score 0.7000 x gate 0.5000 at distance 1 = 0.3500",
        "  half of it (backfill, above) = 0.1750",
    )


def test_a_pre_ranked_memory_has_the_one_contribution_of_its_source():
    (memory,) = memories(Candidate(record(), RelevanceSignals(cue=0.3, recency=1.0), pre_ranked=True))
    (part,) = memory.explain().contributions
    assert (part.name, part.value, part.weight, part.contribution) == ("source", 0.3, 1.0, 0.3)


def test_an_activated_memory_has_the_one_contribution_of_activation():
    lit = RetrievedMemory(record("m2", salience=0.9), 0.25, via=("m1", "m2"))
    _, memory = memories(Candidate(record(), RelevanceSignals(cue=1.0)), activation=Expansion(lit))
    for explained in (memory.explain(), lit.explain()):
        (part,) = explained.contributions
        assert (part.name, part.contribution) == ("activation", 0.25)
        assert explained.rank_score == 0.25


def test_a_memory_that_no_coordinator_made_is_explained_as_far_as_it_goes():
    signals = RelevanceSignals(cue=0.8, salience=0.5)
    assert len(RetrievedMemory(record(), 0.7, signals=signals).explain().contributions) == 2
    set_by_hand = RetrievedMemory(record(), 0.6, rank_score=0.9, signals=signals).explain()
    assert [part.name for part in set_by_hand.contributions] == ["source"]
    assert (set_by_hand.score, set_by_hand.gated, set_by_hand.rank_score) == (0.6, 0.6, 0.9)
    assert set_by_hand.band == "rank score as given"


def test_a_changed_score_is_not_explained_by_the_old_signals():
    (memory,) = memories(Candidate(record(), RelevanceSignals(cue=0.8, recency=0.1)))
    changed = replace(memory, score=0.1, rank_score=0.1).explain()
    assert sum(part.contribution for part in changed.contributions) == 0.1


def test_the_way_a_memory_was_judged_travels_with_it_and_is_no_part_of_its_value():
    weights = RelevanceWeights(0, 1, 0, 0, 0)
    (memory,) = memories(Candidate(record(salience=0.2), RelevanceSignals(cue=0.8)), weights=weights)
    assert pickle.loads(pickle.dumps(memory)).explain() == memory.explain()
    by_hand = RetrievedMemory(memory.record, memory.score, memory.rank_score, memory.distance, memory.signals)
    assert by_hand == memory
    assert hash(by_hand) == hash(memory)
    assert "judgement" not in repr(memory)


shares = st.floats(0, 1)


@quick
@given(
    st.builds(RelevanceSignals, *[st.none() | shares] * 5),
    st.lists(st.just(0.0) | st.floats(1e-3, 1e6), min_size=5, max_size=5).filter(any),
    st.builds(ScopeBlend, st.sampled_from(ScopeBlendMode), st.floats(0.1, 10), shares),
    st.booleans(),
    st.sampled_from([HERE, ABOVE]),
    st.none() | shares,
)
def test_the_numbers_of_every_explanation_add_up(signals, weights, blend, pre_ranked, scope, salience):
    (memory,) = memories(
        Candidate(record(scope=scope, salience=salience), signals, pre_ranked),
        weights=RelevanceWeights(*weights),
        blend=blend,
    )
    explained = memory.explain()
    assert sum(part.contribution for part in explained.contributions) == pytest.approx(
        explained.score, abs=1e-12
    )
    assert explained.score == memory.score
    assert explained.gate == blend.gate(memory.distance)
    assert explained.gated == explained.score * explained.gate
    assert explained.rank_score == memory.rank_score == blend.band(explained.gated, memory.distance)
    assert "as given" not in explained.band
