"""The formulas from observations to signals."""

from __future__ import annotations

import math
from datetime import UTC, datetime, timedelta

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from symfonic_pg.memory.layers import MemoryLayer
from symfonic_pg.memory.observations import Observation
from symfonic_pg.memory.records import MemoryQuery, MemoryRecord
from symfonic_pg.memory.relevance import RelevanceSignals
from symfonic_pg.memory.signals import (
    cue_signal,
    frequency,
    inverse_document_frequency,
    lex,
    observed_signals,
    proximity,
    recency,
    rescaled_cosine,
)

quick = settings(deadline=None, max_examples=200)
WEEK = timedelta(days=7)
NOON = datetime(2024, 6, 1, 12, tzinfo=UTC)


@pytest.mark.parametrize(
    ("age", "value"),
    [
        (timedelta(0), 1.0),
        (timedelta(days=7), 0.5),
        (timedelta(days=14), 0.25),
        (timedelta(days=-1), 1.0),
        (timedelta.max, 0.0),
    ],
)
def test_recency_halves_every_half_life(age, value):
    assert recency(age, WEEK) == pytest.approx(value)


@pytest.mark.parametrize(
    ("count", "value"), [(0, 0.0), (1, math.log(2) / math.log(101)), (100, 1.0), (10**9, 1.0)]
)
def test_frequency_is_logarithmic_and_full_at_a_hundred(count, value):
    assert frequency(count) == pytest.approx(value)


@pytest.mark.parametrize(("hops", "value"), [(0, 1.0), (1, 0.5), (3, 0.25), (None, 0.0)])
def test_proximity(hops, value):
    assert proximity(hops) == value


@pytest.mark.parametrize(
    ("cosine", "baseline", "value"),
    [
        (0.85, 0.7, 0.5),
        (0.6, 0.7, 0.0),
        (-1.0, 0.0, 0.0),
        (1.0, 0.7, 1.0),
        (1.0000001, 0.0, 1.0),
        (0.4, 0.0, 0.4),
    ],
)
def test_a_cosine_is_measured_from_the_models_baseline(cosine, baseline, value):
    assert rescaled_cosine(cosine, baseline) == pytest.approx(value)


@pytest.mark.parametrize(
    ("cosine", "lexical", "share", "value"),
    [
        (0.8, 0.4, 0.5, 0.6),
        (0.8, 0.4, 0.25, 0.5),
        (0.8, None, 0.0, 0.8),
        (None, 0.4, 1.0, 0.4),
        (None, None, 0.5, None),
        (0.0, 0.0, 0.5, 0.0),
    ],
)
def test_the_cue_mixes_what_there_is(cosine, lexical, share, value):
    assert cue_signal(cosine, lexical, share) == (None if value is None else pytest.approx(value))


@pytest.mark.parametrize(
    ("total", "holding", "value"),
    [
        (1, 1, math.log(4 / 3)),
        (10, 0, math.log(22)),
        (1000, 1, math.log(1 + 999.5 / 1.5)),
        (5, 9, math.log(1 + 0.5 / 9.5)),
    ],
)
def test_inverse_document_frequency(total, holding, value):
    assert inverse_document_frequency(total, holding) == pytest.approx(value)


def test_lex_by_hand():
    idf = {"refund": 2.0, "eu": 1.0, "unknown": 3.0}
    # L = L_avg, so each count f gives f / (f + 0.6).
    assert lex({"refund", "eu", "unknown"}, {"refund": 1, "eu": 3}, 4, 4.0, idf) == pytest.approx(
        (2.0 * 1 / 1.6 + 1.0 * 3 / 3.6) / 6.0
    )
    assert lex({"refund"}, {"refund": 1}, 8, 4.0, idf) == pytest.approx(1 / (1 + 0.6 * (0.25 + 0.75 * 2)))


def test_lex_is_absent_without_a_term_and_in_an_empty_lineage_and_zero_without_a_match():
    assert lex(set(), {"a": 1}, 1, 1.0, {}) is None
    assert lex({"a"}, {}, 0, None, {"a": 1.0}) is None
    assert lex({"a"}, {}, 0, 0.0, {"a": 1.0}) == 0.0
    assert lex({"a"}, {"b": 1}, 1, 1.0, {"a": 1.0}) == 0.0


counts = st.dictionaries(st.sampled_from("abcd"), st.integers(1, 50))


@quick
@given(st.sets(st.sampled_from("abcde"), min_size=1), counts, st.integers(1, 100))
def test_lex_lies_below_one_and_grows_with_every_match(terms, held, mean):
    idf = {term: inverse_document_frequency(100, place * 20) for place, term in enumerate("abcde")}
    total = sum(held.values())
    value = lex(terms, held, total, mean, idf)
    assert 0.0 <= value < 1.0
    for term in terms & held.keys():
        more = lex(terms, {**held, term: held[term] + 1}, total, mean, idf)
        assert more > value


def _record(**changes):
    fields = {
        "record_id": "m1",
        "scope": "org:acme",
        "layer": "semantic",
        "text": "a fact",
        "updated_at": NOON,
    }
    return MemoryRecord(**{**fields, **changes})


def test_all_signals_of_an_observation():
    query = MemoryQuery("org:acme", "refund", context_ids=["m2"])
    seen = Observation(_record(access_count=100, salience=0.9), 0, frozenset({"vector"}), 0.85, 0.3, 1)
    signals = observed_signals(seen, query, moment=NOON + WEEK, baseline=0.7, cosine_share=0.25)
    assert signals.cue == pytest.approx(0.25 * 0.5 + 0.75 * 0.3)
    assert signals == RelevanceSignals(
        cue=signals.cue, salience=None, recency=0.5, frequency=1.0, proximity=0.5
    )


def test_a_query_that_asks_nothing_gives_every_cue_full_marks():
    seen = Observation(_record(), 0, lex=0.3)
    assert observed_signals(seen, MemoryQuery("org:acme", "…"), moment=NOON).cue == 1.0
    assert observed_signals(seen, MemoryQuery("org:acme", "x"), moment=NOON).cue == 0.3


def test_what_was_asked_and_cannot_be_answered_is_absent():
    signals = observed_signals(Observation(_record(), 0), MemoryQuery("org:acme", "the"), moment=NOON)
    assert signals.cue is None
    assert signals.proximity is None
    assert signals.salience is None


def test_no_path_from_the_context_is_zero():
    query = MemoryQuery("org:acme", "x", context_ids=["m2"])
    assert observed_signals(Observation(_record(), 0), query, moment=NOON).proximity == 0.0


def test_a_half_life_for_each_layer():
    half_lives = {MemoryLayer.EPISODIC: timedelta(days=1)}
    query = MemoryQuery("org:acme")
    for layer, expected in (("episodic", 2.0**-7), ("semantic", 0.5)):
        seen = Observation(_record(layer=layer), 0)
        assert observed_signals(
            seen, query, moment=NOON + WEEK, half_life=half_lives
        ).recency == pytest.approx(expected)


@quick
@given(
    st.none() | st.floats(-1.001, 1.001),
    st.none() | st.floats(0, 1, exclude_max=True),
    st.floats(0, 0.9),
    st.floats(0, 1),
    st.integers(0, 10**12),
    st.timedeltas(timedelta(days=-4000), timedelta(days=4000)),
)
def test_signals_are_always_in_range(cosine, lexical, baseline, share, count, age):
    seen = Observation(_record(access_count=count), 0, cosine=cosine, lex=lexical)
    signals = observed_signals(
        seen, MemoryQuery("org:acme", "x"), moment=NOON + age, baseline=baseline, cosine_share=share
    )
    # The checked constructor takes each of them.
    assert RelevanceSignals(**signals.present()) == signals
