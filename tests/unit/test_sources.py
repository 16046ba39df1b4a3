"""Candidates, and the source that needs nothing but this process."""

from __future__ import annotations

import pytest

from symfonic_pg.memory.errors import MemoryContractError
from symfonic_pg.memory.layers import RETRIEVABLE_LAYERS, MemoryLayer
from symfonic_pg.memory.records import MemoryQuery, MemoryRecord
from symfonic_pg.memory.relevance import RelevanceSignals
from symfonic_pg.memory.sources import Candidate, CandidateSource, LexicalCandidateSource


def record(record_id, scope="org:acme", layer="semantic", text="a fact", **more):
    return MemoryRecord(record_id, scope, layer, text, **more)


async def found(source, query, layers=RETRIEVABLE_LAYERS):
    return {candidate.record.record_id: candidate.signals for candidate in await source.search(query, layers)}


def test_a_candidate_has_no_signals_and_no_rank_unless_given():
    made = record("m1")
    assert Candidate(made) == Candidate(made, RelevanceSignals(), pre_ranked=False)


@pytest.mark.parametrize("arguments", [(None,), ("m1",), (record("m1"), None), (record("m1"), {"cue": 1})])
def test_a_candidate_keeps_its_types(arguments):
    with pytest.raises(MemoryContractError):
        Candidate(*arguments)
    with pytest.raises(MemoryContractError):
        Candidate(record("m1"), pre_ranked=1)


def test_the_lexical_source_is_a_source():
    assert isinstance(LexicalCandidateSource(), CandidateSource)
    assert not isinstance(object(), CandidateSource)


async def test_every_visible_record_of_the_layers_is_a_candidate():
    source = LexicalCandidateSource(
        [
            record("here", "org:acme/user:u1"),
            record("above", "org:acme"),
            record("below", "org:acme/user:u1/session:s"),
            record("sibling", "org:acme/user:u2"),
            record("elsewhere", "org:acme-corp"),
            record("event", "org:acme", "episodic"),
            record("turn", "org:acme", "working"),
        ]
    )
    query = MemoryQuery("org:acme/user:u1", "fact")
    assert list(await found(source, query)) == ["here", "above", "event"]
    assert list(await found(source, query, frozenset({MemoryLayer.EPISODIC}))) == ["event"]


async def test_the_cue_is_the_overlap_of_words_and_nothing_else_is_claimed():
    source = LexicalCandidateSource([record("m1", text="EU customers get a refund", salience=0.9)])
    signals = (await found(source, MemoryQuery("org:acme", "refund policy EU")))["m1"]
    assert signals == RelevanceSignals(cue=2 / 3)


async def test_a_query_that_asks_nothing_matches_everything_and_an_embedding_alone_cannot_be_answered():
    source = LexicalCandidateSource([record("m1")])
    assert (await found(source, MemoryQuery("org:acme")))["m1"].cue == 1.0
    assert (await found(source, MemoryQuery("org:acme", embedding=[1.0])))["m1"].cue is None
    assert (await found(source, MemoryQuery("org:acme", "other", embedding=[1.0])))["m1"].cue == 0.0


async def test_where_narrows_by_containment():
    source = LexicalCandidateSource(
        [
            record("one", metadata={"n": 1, "tags": ["a", "b"]}),
            record("true", metadata={"n": True}),
            record("none"),
        ]
    )
    assert list(await found(source, MemoryQuery("org:acme", where={"n": 1.0}))) == ["one"]
    assert list(await found(source, MemoryQuery("org:acme", where={"n": True}))) == ["true"]
    assert list(await found(source, MemoryQuery("org:acme", where={"tags": ["b"]}))) == ["one"]
    assert list(await found(source, MemoryQuery("org:acme", where={}))) == ["one", "true", "none"]


async def test_records_can_be_replaced():
    source = LexicalCandidateSource([record("m1", text="old")])
    assert (await found(source, MemoryQuery("org:acme", "old")))["m1"].cue == 1.0
    source.records = [record("m1", text="new")]
    assert [kept.text for kept in source.records] == ["new"]
    assert (await found(source, MemoryQuery("org:acme", "old")))["m1"].cue == 0.0
    with pytest.raises(MemoryContractError):
        source.records = ["m1"]


@pytest.mark.parametrize("records", ["m1", [None], 5, [record("m1"), "m2"]])
def test_the_lexical_source_takes_records_alone(records):
    with pytest.raises(MemoryContractError):
        LexicalCandidateSource(records)
