"""Queries: defaults, conveniences, and every rule that construction checks."""

from __future__ import annotations

import pickle
from array import array
from dataclasses import replace
from datetime import UTC, datetime, timedelta

import numpy
import pytest
from hypothesis import settings

from symfonic_pg.memory.errors import MemoryContractError
from symfonic_pg.memory.layers import RETRIEVABLE_LAYERS, MemoryLayer
from symfonic_pg.memory.records import MemoryQuery, MemoryRecord
from symfonic_pg.memory.scope import MemoryScope

quick = settings(deadline=None, max_examples=200)

ACME = MemoryScope.parse("org:acme")
NOON = datetime(2024, 6, 1, 12, tzinfo=UTC)


def record(**changes):
    fields = {"record_id": "m1", "scope": ACME, "layer": MemoryLayer.SEMANTIC, "text": "a fact"}
    return MemoryRecord(**{**fields, **changes})


def test_the_defaults_of_a_query():
    query = MemoryQuery(ACME)
    assert (query.cue, query.limit, query.max_chars, query.embedding) == ("", 10, None, None)
    assert query.layers == RETRIEVABLE_LAYERS == frozenset(MemoryLayer) - {MemoryLayer.WORKING}
    assert (query.context_ids, query.as_of, query.where) == ((), None, None)


@pytest.mark.parametrize(
    "embedding",
    [[1, 0.5], (1.0, 0.5), array("d", [1.0, 0.5]), numpy.array([1.0, 0.5], dtype=numpy.float32), range(1, 3)],
)
def test_an_embedding_is_any_sequence_of_numbers(embedding):
    query = MemoryQuery(ACME, embedding=embedding)
    assert query.embedding == tuple(float(number) for number in embedding)
    assert all(type(number) is float for number in query.embedding)
    assert hash(query) == hash(MemoryQuery(ACME, embedding=list(embedding)))


def test_layers_are_any_iterable():
    assert MemoryQuery(ACME, layers=iter(["semantic"])).layers == {MemoryLayer.SEMANTIC}
    assert MemoryQuery(ACME, layers=[MemoryLayer.WORKING, "working"]).layers == {MemoryLayer.WORKING}
    assert MemoryQuery(ACME, layers=()).layers == frozenset()


@pytest.mark.parametrize(
    ("field", "value"),
    [
        ("scope", 1),
        ("cue", None),
        ("cue", "a\x00"),
        ("cue", "\ud800"),
        ("layers", "semantic"),
        ("layers", None),
        ("layers", ["facts"]),
        ("layers", [[]]),
        ("limit", 0),
        ("limit", 1001),
        ("limit", True),
        ("limit", 1.0),
        ("limit", None),
        pytest.param("limit", 10**10_000, id="limit-huge"),
        ("max_chars", -1),
        ("max_chars", True),
        ("max_chars", "10"),
        ("embedding", []),
        ("embedding", [0.0, 0.0]),
        ("embedding", [1.0, float("nan")]),
        ("embedding", [1.0, float("-inf")]),
        ("embedding", [True, 1.0]),
        ("embedding", ["1.0"]),
        ("embedding", [10**400]),
        ("embedding", "1.0"),
        ("embedding", b"\x01"),
        ("embedding", {1.0}),
        ("embedding", {0: 1.0}),
        ("embedding", 1.0),
        ("embedding", numpy.array([[1.0, 2.0]])),
        ("context_ids", "m1"),
        ("context_ids", [""]),
        ("context_ids", [1]),
        ("context_ids", None),
        ("as_of", datetime(2024, 1, 1)),
        ("as_of", "now"),
        ("where", []),
        ("where", {"a": float("nan")}),
        ("where", {1: 1}),
    ],
)
def test_a_query_keeps_its_rules(field, value):
    with pytest.raises(MemoryContractError) as caught:
        MemoryQuery(**{"scope": ACME, field: value})
    assert caught.value.field == field


@pytest.mark.parametrize("cue", ["\"'%:&|!<->*", "\U0001f600" * 30, "x" * 100_000, "' OR 1=1; --", "\\"])
def test_any_clean_text_is_a_cue(cue):
    assert MemoryQuery(ACME, cue).cue == cue


def test_a_query_without_word_and_embedding_asks_nothing():
    assert MemoryQuery(ACME).asks_nothing
    assert MemoryQuery(ACME, " …?! \U0001f600").asks_nothing
    assert not MemoryQuery(ACME, "é?").asks_nothing
    assert not MemoryQuery(ACME, "_").asks_nothing
    assert not MemoryQuery(ACME, embedding=[1.0]).asks_nothing
    assert pickle.loads(pickle.dumps(MemoryQuery(ACME))).asks_nothing


def test_the_moment_of_a_query_is_settled_once():
    query = MemoryQuery(ACME, "refund", where={"a": 1}, embedding=[1, 2])
    settled = query.at(NOON)
    assert settled == replace(query, as_of=NOON)
    assert settled.at(NOON + timedelta(days=1)) is settled
    assert not settled.asks_nothing
    with pytest.raises(MemoryContractError):
        query.at(datetime(2024, 1, 1))
