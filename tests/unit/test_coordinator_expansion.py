"""Expansion: what lights up, and on which terms it is returned."""

from __future__ import annotations

import pytest

from symfonic_pg.memory.activation import ActivatedNode, ActivationLog
from symfonic_pg.memory.coordinator import RetrievalCoordinator
from symfonic_pg.memory.errors import MemoryUnavailable
from symfonic_pg.memory.records import MemoryQuery
from symfonic_pg.memory.relevance import RelevanceSignals, ScopeBlend
from tests.unit.coordination import (
    HOUR,
    NOON,
    ORG,
    SESSION,
    Expansion,
    TalkativeSource,
    candidate,
    coordinate,
    ids,
    lit,
    reasons,
)


async def test_all_that_passed_the_gate_are_seeds_in_rank_order():
    activation = Expansion()
    answer = await coordinate(
        candidate("low", 0.3),
        candidate("high", 0.9),
        candidate("me", 0.1, kind="profile"),
        candidate("floored", 0.05),
        candidate("hidden", scope="org:other"),
        query=MemoryQuery(SESSION, limit=1),
        activation=activation,
        min_relevance=0.2,
    )
    ((scope, seeds),) = activation.asked
    assert scope == MemoryQuery(SESSION).scope
    assert [(seed.record.record_id, seed.score) for seed in seeds] == [
        ("me", 0.1),
        ("high", 0.9),
        ("low", 0.3),
    ]
    assert answer.activation is activation.log


async def test_what_lights_up_is_ranked_like_any_other():
    answer = await coordinate(
        candidate("m1", 0.5),
        activation=Expansion(lit("near", 0.6, salience=0.2), lit("above", 0.6, scope=ORG)),
        blend=ScopeBlend("blend"),
    )
    near, m1, above = answer.result.memories
    assert (near.record.record_id, near.score, near.rank_score, near.distance) == ("near", 0.6, 0.6, 0)
    assert near.signals == RelevanceSignals(salience=0.2)
    assert near.via == ("seed", "near")
    assert m1.via == ()
    assert (above.distance, above.rank_score) == (2, 0.15)


async def test_what_lights_up_passes_layer_validity_and_salience_and_not_the_relevance_floor():
    answer = await coordinate(
        activation=Expansion(
            lit("faint", 0.01),
            lit("turn", layer="working"),
            lit("expired", expires_at=NOON),
            lit("early", valid_from=NOON + HOUR),
            lit("dull", salience=0.1),
        ),
        min_relevance=0.4,
        min_salience=0.2,
    )
    assert ids(answer.result) == ["faint"]
    assert [record_id for record_id, _ in answer.result.dropped] == ["turn", "expired", "early", "dull"]


async def test_an_invisible_memory_leaves_no_trace(caplog):
    log = ActivationLog(
        nodes=(ActivatedNode("m1", 0.5), ActivatedNode("hidden", 0.4, 1), ActivatedNode("ok", 0.2, 2)),
        trails={
            "m1": ("m1",),
            "hidden": ("m1", "hidden"),
            "ok": ("m1", "ok"),
            "via": ("m1", "hidden", "via"),
        },
        dropped=(("hidden", "too many"), ("other", "too many")),
    )
    found = lit("hidden", scope="org:acme/user:u2"), lit("ok")
    answer = await coordinate(candidate("m1"), activation=Expansion(*found, log=log))
    assert ids(answer.result) == ["m1", "ok"]
    assert "hidden" not in repr(answer)
    assert answer.activation.nodes == (log.nodes[0], log.nodes[2])
    assert answer.activation.dropped == (("other", "too many"),)
    assert "1 memories that are not visible" in caplog.text
    assert "hidden" not in caplog.text


async def test_a_record_that_only_the_relevance_floor_dropped_comes_back_when_it_lights_up():
    answer = await coordinate(
        candidate("m1", 0.9),
        candidate("floored", 0.1),
        candidate("other", 0.1),
        activation=Expansion(lit("floored", 0.3)),
        min_relevance=0.2,
    )
    assert ids(answer.result) == ["m1", "floored"]
    assert answer.result.memories[1].score == 0.3
    assert list(reasons(answer.result)) == ["other"]


async def test_a_record_under_the_floor_that_lights_up_outdated_keeps_its_one_reason():
    answer = await coordinate(
        candidate("floored", 0.1), activation=Expansion(lit("floored", expires_at=NOON)), min_relevance=0.2
    )
    assert answer.result.memories == ()
    assert answer.result.dropped == (("floored", "score 0.10 under min_relevance 0.20"),)


async def test_a_record_that_another_rule_dropped_stays_dropped():
    answer = await coordinate(
        candidate("m1", 0.9),
        candidate("dull", signals=RelevanceSignals(cue=0.5, salience=0.1)),
        activation=Expansion(lit("dull", 0.3), lit("m1", 0.3)),
        min_salience=0.2,
    )
    assert ids(answer.result) == ["m1"]
    assert answer.result.memories[0].score == 0.9
    assert list(reasons(answer.result)) == ["dull"]


async def test_a_record_that_the_source_refused_stays_refused():
    source = TalkativeSource(candidate("m1"), dropped=[("refused", "no text")])
    coordinator = RetrievalCoordinator(source=source, activation=Expansion(lit("refused")))
    result = await coordinator.retrieve(MemoryQuery(SESSION))
    assert ids(result) == ["m1"]
    assert result.dropped == (("refused", "no text"),)


async def test_what_an_activation_raises_passes_through():
    class Broken:
        async def expand(self, scope, seeds):
            raise MemoryUnavailable("the transaction is lost")

    with pytest.raises(MemoryUnavailable):
        await coordinate(candidate("m1"), activation=Broken())
