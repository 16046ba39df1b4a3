"""The gate: which candidates pass, what they are worth, and why the others are dropped."""

from __future__ import annotations

import pytest

from symfonic_pg.memory.records import MemoryQuery
from symfonic_pg.memory.relevance import RelevanceSignals, ScopeBlend
from tests.unit.coordination import HOUR, NOON, ORG, SESSION, USER, candidate, ids, reasons, retrieve


async def test_scores_are_composed_with_the_records_own_salience():
    result = await retrieve(
        candidate("filled", 0.8, salience=0.5),
        candidate("given", signals=RelevanceSignals(cue=0.8, salience=1.0), salience=0.5),
        candidate("unknown", 0.8),
    )
    by_id = {memory.record.record_id: memory for memory in result.memories}
    assert by_id["filled"].score == pytest.approx(0.7)
    assert by_id["filled"].signals == RelevanceSignals(cue=0.8, salience=0.5)
    assert by_id["given"].score == pytest.approx((0.8 + 0.5) / 1.5)
    assert by_id["unknown"].score == 0.8
    assert by_id["unknown"].signals.salience is None


@pytest.mark.parametrize(
    ("changes", "reason"),
    [
        ({"layer": "working"}, "layer working outside episodic, procedural, prospective, semantic"),
        ({"scope": "org:acme/user:u2"}, "scope not visible from the query (distance -1)"),
        ({"scope": f"{SESSION}/turn:1"}, "scope not visible from the query (distance -1)"),
        ({"scope": "org:acme-corp"}, "scope not visible from the query (distance -1)"),
        ({"expires_at": NOON}, "expired at 2024-06-01T12:00:00+00:00, asked at 2024-06-01T12:00:00+00:00"),
        (
            {"valid_from": NOON + HOUR},
            "not valid before 2024-06-01T13:00:00+00:00, asked at 2024-06-01T12:00:00+00:00",
        ),
        ({"valid_until": NOON}, "valid until 2024-06-01T12:00:00+00:00, asked at 2024-06-01T12:00:00+00:00"),
        ({"salience": 0.1}, "salience 0.10 under min_salience 0.20"),
        ({"salience": 0.1999}, "salience 0.1999 under min_salience 0.2000"),
        ({"cue": 0.31}, "score 0.31 under min_relevance 0.40"),
        ({"cue": 0.39999}, "score 0.39999 under min_relevance 0.40000"),
    ],
)
async def test_a_dropped_candidate_has_its_reason_with_the_number_that_decided(changes, reason):
    result = await retrieve(candidate("m1", **changes), min_relevance=0.4, min_salience=0.2)
    assert result.memories == ()
    assert reasons(result) == {"m1": reason}


@pytest.mark.parametrize(
    "changes",
    [
        {"salience": 0.2, "cue": 0.9},
        {"salience": None},
        {"cue": 0.4},
        {"expires_at": NOON + HOUR},
        {"valid_from": NOON},
        {"valid_until": NOON + HOUR},
        {"created_at": NOON + HOUR},
        {"scope": ORG},
    ],
)
async def test_what_lies_on_a_bound_passes(changes):
    result = await retrieve(candidate("m1", **changes), min_relevance=0.4, min_salience=0.2)
    assert ids(result) == ["m1"]
    assert result.dropped == ()


async def test_the_first_rule_that_applies_is_the_reason():
    bad = {
        "layer": "working",
        "scope": "org:other",
        "expires_at": NOON,
        "salience": 0.0,
        "cue": 0.0,
    }
    good = {"layer": "semantic", "scope": SESSION, "expires_at": None, "salience": 0.9, "cue": 0.9}
    for fixed, start in enumerate(["layer", "scope", "expired", "salience", "score"]):
        changes = {**bad, **dict(list(good.items())[:fixed])}
        result = await retrieve(candidate("m1", **changes), min_relevance=0.8, min_salience=0.2)
        assert reasons(result)["m1"].startswith(start)


async def test_of_a_record_found_twice_the_higher_score_stays_and_then_the_earlier():
    first, second = candidate("m1", 0.5), candidate("m1", 0.7)
    result = await retrieve(first, second)
    assert [memory.score for memory in result.memories] == [0.7]
    assert result.dropped == (("m1", "duplicate: score 0.50 under 0.70 of the same record kept"),)
    result = await retrieve(candidate("m1", text="early"), candidate("m1", text="late"))
    assert [memory.record.text for memory in result.memories] == ["early"]
    assert result.dropped == (("m1", "duplicate: score 0.50 equals that of the same record kept"),)


async def test_a_duplicate_of_a_record_under_the_floor_is_told_as_such():
    result = await retrieve(candidate("m1", 0.1), candidate("m1", 0.2), min_relevance=0.4)
    assert [reason.split()[0] for _, reason in result.dropped] == ["duplicate:", "score"]


async def test_a_candidate_that_fails_the_gate_is_no_rival_of_its_duplicate():
    expired = candidate("m1", 0.9, expires_at=NOON)
    result = await retrieve(expired, candidate("m1", 0.1))
    assert [memory.score for memory in result.memories] == [0.1]
    assert [record_id for record_id, _ in result.dropped] == ["m1"]


async def test_pre_ranked_candidates_keep_the_sources_judgement():
    result = await retrieve(
        candidate("b", pre_ranked=True, signals=RelevanceSignals(recency=0.0)),
        candidate("a", pre_ranked=True, signals=RelevanceSignals(recency=1.0)),
        candidate("low", 0.1, pre_ranked=True, signals=RelevanceSignals(cue=0.1, recency=1.0)),
        candidate("ordinary", 0.3),
        min_relevance=0.4,
    )
    assert [(memory.record.record_id, memory.score) for memory in result.memories] == [
        ("b", 1.0),
        ("a", 1.0),
        ("low", 0.1),
    ]
    assert list(reasons(result)) == ["ordinary"]


async def test_among_equals_what_the_source_ranked_comes_first_and_in_its_order():
    result = await retrieve(
        candidate("a", 0.5),
        candidate("c", 0.5, pre_ranked=True, scope=ORG),
        candidate("b", 0.5, pre_ranked=True),
    )
    assert ids(result) == ["c", "b", "a"]


async def test_every_other_gate_and_the_blend_apply_to_pre_ranked_candidates():
    result = await retrieve(
        candidate("above", pre_ranked=True, signals=RelevanceSignals(), scope=ORG),
        candidate("here", 0.3, pre_ranked=True),
        candidate("hidden", pre_ranked=True, scope="org:other"),
        candidate("dull", pre_ranked=True, salience=0.1),
        min_salience=0.2,
        blend=ScopeBlend("backfill"),
    )
    assert ids(result) == ["here", "above"]
    assert result.memories[1].rank_score == 0.125
    assert set(reasons(result)) == {"hidden", "dull"}


async def test_the_best_profile_memories_skip_the_floor_and_come_first():
    result = await retrieve(
        candidate("fact", 0.9),
        candidate("far", 0.9, kind="profile", scope=ORG, salience=1.0),
        candidate("unknown", 0.0, kind="profile", scope=USER),
        candidate("dull", 0.0, kind="profile", scope=USER, salience=0.1),
        candidate("vivid", 0.0, kind="profile", scope=USER, salience=0.9),
        profile_slots=2,
        min_relevance=0.4,
    )
    assert ids(result)[:2] == ["vivid", "dull"]
    assert set(ids(result)[2:]) == {"fact", "far"}
    assert reasons(result) == {"unknown": "score 0.00 under min_relevance 0.40"}


async def test_a_profile_of_unknown_salience_comes_after_one_that_matters_least():
    result = await retrieve(
        candidate("a unknown", kind="profile"),
        candidate("b least", kind="profile", salience=0.0),
        profile_slots=2,
    )
    assert ids(result) == ["b least", "a unknown"]


async def test_equal_profile_memories_are_ordered_by_update_and_then_id():
    result = await retrieve(
        candidate("b", kind="profile"),
        candidate("a", kind="profile"),
        candidate("new", kind="profile", updated_at=NOON + HOUR),
        profile_slots=3,
    )
    assert ids(result) == ["new", "a", "b"]


async def test_profile_memories_count_against_limit_and_characters_and_pass_the_other_gates():
    profile = {"kind": "profile", "text": "x" * 90}
    result = await retrieve(
        candidate("me", 0.0, **profile),
        candidate("m1", text="y" * 20),
        query=MemoryQuery(SESSION, max_chars=100),
    )
    assert ids(result) == ["me"]
    assert reasons(result) == {"m1": "20 characters over the 10 left of max_chars 100"}
    result = await retrieve(candidate("me", **profile), candidate("m1"), query=MemoryQuery(SESSION, limit=1))
    assert ids(result) == ["me"]
    result = await retrieve(candidate("me", salience=0.1, **profile), min_salience=0.5)
    assert ids(result) == []


async def test_no_profile_slot_makes_profiles_ordinary():
    result = await retrieve(candidate("me", 0.1, kind="profile"), candidate("m1", 0.9), profile_slots=0)
    assert ids(result) == ["m1", "me"]
