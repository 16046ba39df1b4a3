"""Selection: order, limit and ceiling, and books that balance."""

from __future__ import annotations

import asyncio
import pickle
from collections import Counter
from dataclasses import replace
from datetime import timedelta
from itertools import pairwise

from hypothesis import given, settings
from hypothesis import strategies as st

from symfonic_pg.memory.coordinator import RetrievalCoordinator
from symfonic_pg.memory.layers import RETRIEVABLE_LAYERS, MemoryLayer
from symfonic_pg.memory.policy import RetrievalPolicy
from symfonic_pg.memory.records import MemoryQuery
from symfonic_pg.memory.relevance import RelevanceSignals, RelevanceWeights, ScopeBlend, ScopeBlendMode
from symfonic_pg.memory.results import NO_RECORD, RetrievedMemory
from symfonic_pg.memory.sources import Candidate
from tests.unit.coordination import (
    HOUR,
    NOON,
    ORG,
    SESSION,
    USER,
    Expansion,
    Source,
    candidate,
    ids,
    reasons,
    record,
    retrieve,
)

quick = settings(deadline=None, max_examples=150)


async def test_ties_go_to_the_nearer_then_the_newer_then_the_smaller_id():
    result = await retrieve(
        candidate("b", 0.5),
        candidate("a", 0.5),
        candidate("new", 0.5, updated_at=NOON + timedelta(microseconds=1)),
        candidate("above", 0.5, scope=ORG, updated_at=NOON + HOUR),
        candidate("best", 0.6, scope=ORG),
    )
    assert ids(result) == ["best", "new", "a", "b", "above"]


async def test_first_the_limit_then_the_characters_and_no_freed_place_is_refilled():
    result = await retrieve(
        candidate("big", 0.9, text="x" * 60),
        candidate("too big", 0.8, text="x" * 50),
        candidate("fits", 0.7, text="\U0001f600" * 40),
        candidate("out", 0.6, text="x"),
        query=MemoryQuery(SESSION, limit=3, max_chars=100),
    )
    assert ids(result) == ["big", "fits"]
    assert result.dropped == (
        ("out", "rank 4 over limit 3"),
        ("too big", "50 characters over the 40 left of max_chars 100"),
    )


async def test_no_characters_leave_no_room():
    result = await retrieve(candidate("m1"), query=MemoryQuery(SESSION, max_chars=0))
    assert ids(result) == []
    assert list(reasons(result)) == ["m1"]


async def test_reasons_have_their_facts_beside_them():
    result = await retrieve(
        candidate("m1", 0.9),
        candidate("m2", 0.8),
        candidate("m3", 0.1),
        query=MemoryQuery(SESSION, limit=1),
        min_relevance=0.4,
    )
    assert pickle.loads(pickle.dumps(result)) == result
    result = pickle.loads(pickle.dumps(result))
    facts = [(reason.stage, reason.rule, reason.value, reason.bound) for _, reason in result.dropped]
    assert facts == [("gate", "min_relevance", 0.1, 0.4), ("selection", "limit", 2, 1)]


async def test_every_memory_written_here_outranks_every_ancestor_under_backfill():
    result = await retrieve(
        candidate("above", 1.0, scope=ORG), candidate("here", 0.0), blend=ScopeBlend("backfill", floor=1.0)
    )
    assert ids(result) == ["here", "above"]


SCOPES = [SESSION, USER, ORG, "org:acme/user:u2", "org:other"]
moments = st.none() | st.sampled_from([NOON - HOUR, NOON, NOON + HOUR])
shares = st.sampled_from([0.0, 0.1, 0.2, 0.5, 0.9, 1.0])
records = st.builds(
    lambda record_id, scope, layer, salience, kind, updated, until, expires, text: record(
        record_id,
        scope,
        layer=layer,
        salience=salience,
        kind=kind,
        updated_at=updated,
        valid_until=until,
        expires_at=expires,
        text=text,
    ),
    st.sampled_from("abcdefgh"),
    st.sampled_from(SCOPES),
    st.sampled_from(MemoryLayer),
    st.none() | shares,
    st.sampled_from(["", "", "profile"]),
    moments,
    moments,
    moments,
    st.sampled_from(["x", "x" * 10, "x" * 30]),
)
candidates = st.builds(
    Candidate,
    records,
    st.builds(RelevanceSignals, *[st.none() | shares] * 5),
    st.sampled_from([False, False, True]),
)
policies = st.builds(
    RetrievalPolicy,
    enabled_layers=st.sampled_from([RETRIEVABLE_LAYERS, frozenset({MemoryLayer.SEMANTIC}), frozenset()]),
    weights=st.sampled_from([RelevanceWeights(), RelevanceWeights(0, 0, 1, 0, 0)]),
    blend=st.builds(ScopeBlend, st.sampled_from(ScopeBlendMode), st.sampled_from([0.5, 1.0]), shares),
    min_relevance=shares,
    min_salience=shares,
    profile_slots=st.integers(0, 3),
)
queries = st.builds(
    MemoryQuery,
    st.sampled_from([SESSION, USER]),
    limit=st.integers(1, 6),
    max_chars=st.none() | st.integers(0, 60),
)


def run(found, policy, query, activation=None):
    coordinator = RetrievalCoordinator(
        source=Source(*found), policy=policy, activation=activation, clock=lambda: NOON
    )
    return asyncio.run(coordinator.coordinate(query)).result


@quick
@given(st.lists(candidates, max_size=20), policies, queries)
def test_every_candidate_ends_in_exactly_one_place(found, policy, query):
    result = run(found, policy, query)
    if not policy.effective_layers(query):
        assert [record_id for record_id, _ in result.dropped] == [NO_RECORD]
        return
    ended = Counter(ids(result)) + Counter(record_id for record_id, _ in result.dropped)
    assert ended == Counter(one.record.record_id for one in found)
    assert len(set(ids(result))) == len(ids(result))
    assert all(reason for _, reason in result.dropped)
    stages = [reason.stage for _, reason in result.dropped]
    assert stages == sorted(stages)
    assert len(result.memories) <= query.limit
    if query.max_chars is not None:
        assert sum(len(memory.record.text) for memory in result.memories) <= query.max_chars


lit_memories = st.builds(
    lambda kept, score: RetrievedMemory(kept, score, via=("s", kept.record_id)), records, shares
)


@quick
@given(st.lists(candidates, max_size=12), st.lists(lit_memories, max_size=6), policies, queries)
def test_books_balance_with_an_activation_too(found, lit_up, policy, query):
    result = run(found, policy, query, Expansion(*lit_up))
    if not policy.effective_layers(query):
        return
    entered = Counter(one.record.record_id for one in found)
    ended = Counter(ids(result)) + Counter(record_id for record_id, _ in result.dropped)
    # Each candidate once; each id that only activation brought at most once.
    for record_id, count in ended.items():
        assert count == entered[record_id] or (count == 1 and entered[record_id] == 0)
    assert all(ended[record_id] == count for record_id, count in entered.items())
    assert len(set(ids(result))) == len(ids(result))
    for memory in result.memories:
        assert memory.distance == query.scope.distance(memory.record.scope) >= 0
        assert memory.rank_score == policy.blend.rank_score(memory.score, memory.distance)
        assert memory.record.layer in policy.effective_layers(query)
        assert memory.record.expires_at is None or memory.record.expires_at > NOON
        assert memory.signals.salience is None or memory.signals.salience >= policy.min_salience


def unique(found):
    return list({one.record.record_id: one for one in found}.values())


@quick
@given(st.lists(candidates, max_size=12).map(unique), policies, queries, st.randoms(use_true_random=False))
def test_the_order_of_what_was_found_does_not_matter(found, policy, query, chance):
    found = [replace(one, pre_ranked=False) for one in found]
    result = run(found, policy, query)
    shuffled = found[:]
    chance.shuffle(shuffled)
    again = run(shuffled, policy, query)
    assert again.memories == result.memories
    assert sorted(again.dropped) == sorted(result.dropped)


@quick
@given(st.lists(candidates, max_size=12).map(unique), policies, queries)
def test_the_order_is_that_of_the_rules_applied_one_by_one(found, policy, query):
    query = replace(query, limit=1000, max_chars=None)
    result = run(found, policy, query)
    memories = list(result.memories)
    profiles = [memory for memory in memories if memory.record.kind == "profile"][: policy.profile_slots]
    assert memories[: len(profiles)] == profiles
    rest = memories[len(profiles) :]
    place = {one.record.record_id: number for number, one in enumerate(found)}
    pre_ranked = {one.record.record_id for one in found if one.pre_ranked}
    for left, right in pairwise(rest):
        assert left.rank_score >= right.rank_score
        if left.rank_score > right.rank_score:
            continue
        both = {left.record.record_id, right.record.record_id}
        if both <= pre_ranked:
            assert place[left.record.record_id] < place[right.record.record_id]
        elif not both & pre_ranked:
            newer = (right.record.updated_at, left.record.record_id)
            older = (left.record.updated_at, right.record.record_id)
            assert left.distance < right.distance or (
                left.distance == right.distance
                and (newer[0] < older[0] or (newer[0] == older[0] and newer[1] < older[1]))
            )
