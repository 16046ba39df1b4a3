"""Signals, weights, scope blending and words."""

from __future__ import annotations

import math
import pickle
import unicodedata
from itertools import groupby

import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from symfonic_pg.memory.errors import MemoryContractError
from symfonic_pg.memory.relevance import (
    DEFAULT_WEIGHTS,
    SIGNAL_NAMES,
    RelevanceSignals,
    RelevanceWeights,
    ScopeBlend,
    ScopeBlendMode,
    cue_overlap,
    words,
)
from symfonic_pg.memory.tokens import has_word

quick = settings(deadline=None, max_examples=200)

shares = st.floats(0, 1)
signals = st.builds(RelevanceSignals, *[st.none() | shares] * 5)
weights = st.lists(st.just(0.0) | st.floats(1e-3, 1e6), min_size=5, max_size=5).filter(any)
blends = st.builds(
    ScopeBlend, st.sampled_from(ScopeBlendMode), st.floats(0, 1e6, exclude_min=True), st.floats(0, 1)
)


def test_the_default_weights():
    assert RelevanceWeights(1.0, 0.5, 0.3, 0.2, 0.2) == DEFAULT_WEIGHTS
    assert SIGNAL_NAMES == ("cue", "salience", "recency", "frequency", "proximity")


@pytest.mark.parametrize(
    ("given_signals", "score"),
    [
        ({"cue": 0.8, "salience": 0.5}, 0.7),
        ({"salience": 0.4}, 0.4),
        ({"cue": 0.0, "recency": 1.0}, 0.3 / 1.3),
        ({}, 0.0),
        ({"cue": 0.0}, 0.0),
        ({"cue": 1.0, "salience": 1.0, "recency": 1.0, "frequency": 1.0, "proximity": 1.0}, 1.0),
    ],
)
def test_a_score_is_the_weighted_mean_of_what_is_present(given_signals, score):
    assert DEFAULT_WEIGHTS.compose(RelevanceSignals(**given_signals)) == pytest.approx(score, abs=1e-15)


def test_a_score_is_zero_where_the_present_weights_are():
    assert RelevanceWeights(0, 1, 0, 0, 0).compose(RelevanceSignals(cue=1.0)) == 0.0


def test_absent_and_zero_are_not_the_same():
    with_zero = DEFAULT_WEIGHTS.compose(RelevanceSignals(cue=0.8, proximity=0.0))
    assert with_zero < DEFAULT_WEIGHTS.compose(RelevanceSignals(cue=0.8)) == 0.8


@quick
@given(weights, signals)
def test_a_score_lies_between_its_signals(given_weights, given_signals):
    composed = RelevanceWeights(*given_weights)
    counted = [value for name, value in given_signals.present().items() if getattr(composed, name) > 0]
    score = composed.compose(given_signals)
    if not counted:
        assert score == 0.0
    else:
        assert min(counted) - 1e-12 <= score <= max(counted) + 1e-12
        assert 0.0 <= score <= 1.0


@quick
@given(weights, signals, st.floats(1e-6, 1.0))
def test_scaling_all_weights_changes_nothing(given_weights, given_signals, factor):
    scaled = RelevanceWeights(*(weight * factor for weight in given_weights))
    score = RelevanceWeights(*given_weights).compose(given_signals)
    assert scaled.compose(given_signals) == pytest.approx(score, abs=1e-9)


@quick
@given(weights, signals, st.sampled_from(SIGNAL_NAMES))
def test_an_absent_signal_weighs_nothing(given_weights, given_signals, name):
    assume(getattr(given_signals, name) is None)
    other = {**dict(zip(SIGNAL_NAMES, given_weights, strict=True)), name: 7.0}
    assert RelevanceWeights(**other).compose(given_signals) == pytest.approx(
        RelevanceWeights(*given_weights).compose(given_signals), abs=1e-12
    )


def test_the_smallest_weights_still_make_a_mean():
    assert RelevanceWeights(5e-324, 5e-324, 0, 0, 0).compose(RelevanceSignals(0.5, 0.25)) == 0.375


def test_present_signals_come_in_order_and_without_the_absent():
    present = RelevanceSignals(proximity=0.1, cue=0.0, recency=1).present()
    assert list(present.items()) == [("cue", 0.0), ("recency", 1.0), ("proximity", 0.1)]
    assert RelevanceSignals().present() == {}


@pytest.mark.parametrize("name", SIGNAL_NAMES)
@pytest.mark.parametrize("value", [1.0000001, -1e-9, math.nan, math.inf, True, "0.5"])
def test_signals_lie_between_zero_and_one(name, value):
    with pytest.raises(MemoryContractError) as caught:
        RelevanceSignals(**{name: value})
    assert caught.value.field == name


@pytest.mark.parametrize("value", [-1e-9, 1e6 + 1, math.nan, math.inf, False, None, "1"])
def test_weights_lie_between_zero_and_a_million(value):
    with pytest.raises(MemoryContractError) as caught:
        RelevanceWeights(recency=value)
    assert caught.value.field == "recency"


def test_weights_are_not_all_zero():
    with pytest.raises(MemoryContractError):
        RelevanceWeights(0, 0, 0, 0, 0)


def test_values_are_plain_floats_and_pickle():
    made = RelevanceSignals(cue=1, salience=0)
    assert type(made.cue) is type(made.salience) is float
    for value in (made, RelevanceWeights(1, 2, 3, 4, 5), ScopeBlend("blend", 2)):
        assert pickle.loads(pickle.dumps(value)) == value
        assert hash(pickle.loads(pickle.dumps(value))) == hash(value)
        assert not hasattr(value, "__dict__")


@pytest.mark.parametrize(
    ("blend", "distance", "gate"),
    [
        (ScopeBlend(ScopeBlendMode.BLEND), 0, 1.0),
        (ScopeBlend(ScopeBlendMode.BLEND), 1, 0.5),
        (ScopeBlend(ScopeBlendMode.BLEND), 2, 0.25),
        (ScopeBlend(ScopeBlendMode.BLEND), 3, 0.125),
        (ScopeBlend(ScopeBlendMode.BLEND, 2.0, 0.2), 2, 0.6),
        (ScopeBlend(ScopeBlendMode.BACKFILL, 2.0, 0.2), 2, 0.6),
        (ScopeBlend(ScopeBlendMode.OFF, 2.0, 0.2), 2, 1.0),
        (ScopeBlend(ScopeBlendMode.BLEND, 5e-324), 1, 0.0),
        (ScopeBlend(ScopeBlendMode.BLEND, 1e308), 15, 1.0),
        (ScopeBlend(ScopeBlendMode.BLEND, 1.0, 0.1), 10**400, 0.1),
    ],
)
def test_the_gate(blend, distance, gate):
    assert blend.gate(distance) == pytest.approx(gate)


@pytest.mark.parametrize("mode", ScopeBlendMode)
@pytest.mark.parametrize("distance", [-1, -7, True, 1.0, None, "1"])
def test_no_gate_opens_for_what_is_not_visible(mode, distance):
    blend = ScopeBlend(mode)
    with pytest.raises(MemoryContractError):
        blend.gate(distance)
    with pytest.raises(MemoryContractError) as caught:
        blend.rank_score(math.nan, distance)
    assert caught.value.field == "distance"


@pytest.mark.parametrize(
    ("mode", "score", "distance", "rank_score"),
    [
        ("off", 0.9, 1, 0.9),
        ("blend", 0.9, 1, 0.45),
        ("backfill", 0.9, 1, 0.225),
        ("backfill", 0.1, 0, 0.55),
        ("backfill", 0.0, 0, 0.5),
        ("backfill", 1.0, 0, 1.0),
    ],
)
def test_rank_scores(mode, score, distance, rank_score):
    assert ScopeBlend(mode).rank_score(score, distance) == pytest.approx(rank_score, abs=1e-15)


def test_a_perfect_ancestor_stays_strictly_below_the_worst_memory_written_here():
    blend = ScopeBlend(ScopeBlendMode.BACKFILL, floor=1.0)
    assert blend.rank_score(1.0, 1) < 0.5 == blend.rank_score(0.0, 0)


@quick
@given(blends, shares, shares, st.integers(0, 16), st.integers(0, 16))
def test_blending_keeps_bands_order_and_bounds(blend, left, right, near, far):
    here, there = blend.rank_score(left, near), blend.rank_score(right, far)
    assert 0.0 <= here <= 1.0
    if blend.mode is ScopeBlendMode.BACKFILL:
        assert (here >= 0.5) == (near == 0)
    if near == far and left < right:
        assert here <= there
    if near <= far and left >= right:
        assert here >= there


@pytest.mark.parametrize("score", [1.1, -0.1, math.nan, True, None])
def test_only_a_score_can_be_ranked(score):
    with pytest.raises(MemoryContractError):
        ScopeBlend().rank_score(score, 0)


@pytest.mark.parametrize(
    ("field", "value"),
    [
        ("mode", "on"),
        ("mode", None),
        ("half_life_levels", 0),
        ("half_life_levels", -1),
        ("half_life_levels", math.inf),
        ("half_life_levels", math.nan),
        ("half_life_levels", True),
        ("floor", 1.1),
        ("floor", -0.1),
        ("floor", math.nan),
    ],
)
def test_a_blend_keeps_its_rules(field, value):
    with pytest.raises(MemoryContractError) as caught:
        ScopeBlend(**{field: value})
    assert caught.value.field == field


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("", []),
        (" \n…!?", []),
        ("Refund policy, EU!", ["refund", "policy", "eu"]),
        ("snake_case x2 3.14", ["snake_case", "x2", "3", "14"]),
        ("a-b a'b", ["a", "b", "a", "b"]),
        ("STRASSE Straße", ["strasse", "strasse"]),
        ("ﬁn ２０２４ ①", ["fin", "2024", "1"]),
        ("cafe\u0301 café", ["café", "café"]),
        ("हिन्दी भाषा", ["हिन्दी", "भाषा"]),
        ("العَرَبِيَّة", ["العَرَبِيَّة"]),
        ("Ελλάς ΕΛΛΆΣ", ["ελλάσ", "ελλάσ"]),
        ("東京タワー", ["東京", "京タ", "タワ", "ワー"]),
        ("水", ["水"]),
        ("二〇二四年", ["二〇", "〇二", "二四", "四年"]),
        ("iPhoneを買う", ["iphone", "を買", "買う"]),
        ("ｶﾞｽ", ["ガス"]),
        ("กาแฟ", ["กา", "าแ", "แฟ"]),
        ("ລາວ", ["ລາ", "າວ"]),
        ("ខ្មែរ", ["ខ្", "្ម", "មែ", "ែរ"]),
        ("한국어 텍스트", ["한국어", "텍스트"]),
        ("\U0001f600 ok \U0001f44d\U0001f3fd", ["ok"]),
        ("a\u200bb", ["a", "b"]),
        ("\ud800a", ["a"]),
        ("𠮷野家", ["𠮷野", "野家"]),
    ],
)
def test_words(text, expected):
    assert words(text) == expected
    assert has_word(text) == bool(expected)


def _is_word_character(letter):
    return (
        unicodedata.category(letter) in ("Lu", "Ll", "Lt", "Lm", "Lo", "Mn", "Mc", "Me", "Nd")
        or letter in "_〇"
    )


@quick
@given(
    st.text(st.characters(codec="utf-8") | st.characters(codec="utf-8", max_codepoint=0x24FF), max_size=40)
)
def test_words_are_the_runs_of_word_characters(text):
    folded = unicodedata.normalize("NFKC", text).casefold()
    runs = ["".join(run) for inside, run in groupby(folded, _is_word_character) if inside]
    spaced = [word for word in words(text) if len(word) > 2]
    assert set(spaced) <= {part for run in runs for part in _parts(run)}
    assert {letter for word in words(text) for letter in word} == {letter for run in runs for letter in run}
    assert has_word(text) == bool(runs)


def _parts(run):
    return {run[start:end] for start in range(len(run)) for end in range(start + 1, len(run) + 1)}


@quick
@given(st.text("aZ_0 é.-", max_size=30))
def test_words_of_spaced_scripts_are_whole_runs(text):
    folded = unicodedata.normalize("NFKC", text).casefold()
    assert words(text) == ["".join(run) for inside, run in groupby(folded, _is_word_character) if inside]


@pytest.mark.parametrize(
    ("cue", "text", "overlap"),
    [
        ("refund policy EU", "EU customers get a refund", 2 / 3),
        ("refund", "refund " + "and much more " * 100, 1.0),
        ("refund refund", "no", 0.0),
        ("", "anything", 1.0),
        ("?!", "anything", 1.0),
        ("REFUND", "refund", 1.0),
        ("refund refund policy", "refund", 0.5),
    ],
)
def test_cue_overlap(cue, text, overlap):
    assert cue_overlap(cue, text) == pytest.approx(overlap)


@quick
@given(st.text("ab c", max_size=20), st.text("ab c", max_size=20), st.text("xyz ", max_size=200))
def test_cue_overlap_never_falls_with_the_length_of_the_memory(cue, text, more):
    assert 0.0 <= cue_overlap(cue, text) <= cue_overlap(cue, f"{text} {more}") <= 1.0


@pytest.mark.parametrize(("cue", "text"), [(None, "a"), ("a", None), ("a\x00", "a")])
def test_cue_overlap_takes_texts_alone(cue, text):
    with pytest.raises(MemoryContractError):
        cue_overlap(cue, text)
