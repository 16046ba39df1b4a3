"""From what the repository saw to what a coordinator judges: signals, tallies, and one search's own."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from datetime import timedelta
from math import log

from symfonic_pg.memory.activation import Association
from symfonic_pg.memory.layers import RETRIEVABLE_LAYERS, MemoryLayer
from symfonic_pg.memory.observing import ObservingSource
from symfonic_pg.memory.records import MemoryQuery
from symfonic_pg.memory.relevance import RelevanceSignals
from symfonic_pg.memory.retrieval import RetrievalCoordinator
from symfonic_pg.testing.contract.base import (
    DAY,
    NOW,
    ContractRepository,
    ask,
    behaviour,
    fresh,
    near,
    note,
    refused,
    search,
    tenant,
)


class Embedder:
    """An embedder that answers every text with one vector, or fails."""

    def __init__(self, model: str, answer: Sequence[float] | Exception) -> None:
        self.model = model
        self.answer = answer

    async def embed(self, texts: Sequence[str]) -> list[Sequence[float]]:
        if isinstance(self.answer, Exception):
            raise self.answer
        return [self.answer for _ in texts]


async def signals(source: ObservingSource, query: MemoryQuery) -> dict[str, RelevanceSignals]:
    """The signals of each candidate."""
    return {found.record.record_id: found.signals for found in await source.search(query, RETRIEVABLE_LAYERS)}


@behaviour
async def a_query_that_asks_nothing_gives_every_candidate_a_full_cue(repository: ContractRepository) -> None:
    org = tenant()
    await repository.remember([note(org, "a"), note(org, "b", salience=0.5)])
    for cue in ("", "  ", "?! 😀"):
        assert {one.cue for one in (await signals(ObservingSource(repository), ask(org, cue))).values()} == {
            1.0
        }
    nothing_left = await signals(ObservingSource(repository), ask(org, "of the"))
    assert {one.cue for one in nothing_left.values()} == {None}


@behaviour
async def the_cue_is_the_share_of_cosine_and_lex(repository: ContractRepository) -> None:
    org = tenant()
    model = fresh("mini")
    await repository.register_model(model, 2, baseline=0.5)
    await repository.remember(
        [note(org, "both", "a giraffe"), note(org, "lex", "a giraffe and a zoo"), note(org, "low", "tea")],
        [[0.8, 0.6], None, [0.0, 1.0]],
        model=model,
    )
    query = ask(org, "giraffe", embedding=[1.0, 0.0])
    lexes = {
        name: (await search(repository, query, model=model))[name].lex or 0.0
        for name in ("both", "lex", "low")
    }
    assert lexes["low"] == 0.0 < lexes["lex"] < lexes["both"] < 1.0
    for share in (0.0, 0.25, 1.0):
        found = await signals(ObservingSource(repository, model=model, cosine_share=share), query)
        # (0.8 - 0.5) / (1 - 0.5): the baseline is where unrelated texts begin.
        assert near(found["both"].cue, share * 0.6 + (1 - share) * lexes["both"], within=2e-3)
        assert near(found["lex"].cue, lexes["lex"])
        assert near(found["low"].cue, 0.0)
    by_vector = await signals(ObservingSource(repository, model=model), ask(org, embedding=[1.0, 0.0]))
    assert near(by_vector["both"].cue, 0.6, within=2e-3)
    assert by_vector["lex"].cue is None
    without_model = ObservingSource(repository)
    assert near((await signals(without_model, query))["both"].cue, lexes["both"])
    assert without_model.drain_sources()[1] == ("vector",)


@behaviour
async def recency_frequency_and_proximity_follow_their_formulas(repository: ContractRepository) -> None:
    org = tenant()
    user = org.child("user", "u")
    week = timedelta(days=7)
    await repository.remember(
        [
            note(org, "fresh", updated_at=NOW),
            note(org, "week", updated_at=NOW - week, access_count=9),
            note(org, "future", updated_at=NOW + week, access_count=1000),
            note(org, "old", updated_at=NOW - 3 * week, layer=MemoryLayer.EPISODIC, salience=0.5),
        ]
    )
    await repository.reinforce(user, ["week"])
    await repository.associate(
        org, [Association("week", note(org, "fresh")), Association("week", note(org, "old"))]
    )
    found = await signals(ObservingSource(repository), ask(user, context_ids=["fresh"]))
    recency = {name: one.recency for name, one in found.items()}
    assert all(near(recency[name], value) for name, value in
               {"fresh": 1.0, "week": 0.5, "future": 1.0, "old": 0.125}.items()), recency  # fmt: skip
    assert near(found["week"].frequency, log(11) / log(101))
    assert (found["fresh"].frequency, found["future"].frequency) == (0.0, 1.0)
    proximity = {name: one.proximity for name, one in found.items()}
    assert all(near(proximity[name], value) for name, value in
               {"fresh": 1.0, "week": 0.5, "old": 1 / 3, "future": 0.0}.items()), proximity  # fmt: skip
    assert {one.salience for one in found.values()} == {None}
    slow = ObservingSource(repository, half_life={MemoryLayer.EPISODIC: 3 * week})
    by_layer = await signals(slow, ask(user))
    assert near(by_layer["old"].recency, 0.5)
    assert near(by_layer["week"].recency, 0.5)
    assert {one.proximity for one in by_layer.values()} == {None}


@behaviour
async def a_cue_is_embedded_where_there_is_an_embedder(repository: ContractRepository) -> None:
    org = tenant()
    model = fresh("mini")
    await repository.register_model(model, 2)
    await repository.remember([note(org, "m", "tea")], [[1.0, 0.0]], model=model)
    source = ObservingSource(repository, embedder=Embedder(model, [1.0, 1.0]), cosine_share=1.0)
    assert near((await signals(source, ask(org, "giraffe")))["m"].cue, 0.5**0.5, within=1e-3)
    assert source.drain_sources() == (
        {"vector": 1, "lexical": 0, "recent": 1, "salient": 0, "profile": 0},
        (),
    )
    assert near((await signals(source, ask(org, "giraffe", embedding=[1.0, 0.0])))["m"].cue, 1.0)
    assert (await signals(source, ask(org)))["m"].cue == 1.0
    tallies, unavailable = source.drain_sources()
    assert "vector" not in tallies
    assert unavailable == ()


@behaviour
async def a_failing_embedder_costs_the_vector_route_alone(repository: ContractRepository) -> None:
    org = tenant()
    model = fresh("mini")
    await repository.register_model(model, 2)
    await repository.remember([note(org, "m", "a giraffe")], [[1.0, 0.0]], model=model)
    answers: list[Sequence[float] | Exception] = [
        RuntimeError("down"), [0.0, 0.0], [float("nan"), 1.0], [float("inf"), 1.0], [1.0, 2.0, 3.0],
    ]  # fmt: skip
    embedders = [Embedder(model, answer) for answer in answers] + [
        Embedder(fresh("unregistered"), [1.0, 0.0])
    ]
    for embedder in embedders:
        source = ObservingSource(repository, embedder=embedder)
        found = await signals(source, ask(org, "giraffe"))
        assert (found["m"].cue or 0.0) > 0.0
        tallies, unavailable = source.drain_sources()
        assert unavailable == ("vector",)
        assert dict(tallies) == {"lexical": 1, "recent": 1, "salient": 0, "profile": 0}
        assert set(source.drain_completeness()) == set(tallies)


@behaviour
async def a_source_refuses_settings_that_make_no_sense(repository: ContractRepository) -> None:
    with refused("model"):
        ObservingSource(repository, embedder=Embedder("one", [1.0]), model="two")
    with refused("fanout"):
        ObservingSource(repository, fanout=0)
    with refused("cosine_share"):
        ObservingSource(repository, cosine_share=1.5)


@behaviour
async def what_is_drained_belongs_to_the_last_search_alone(repository: ContractRepository) -> None:
    org = tenant()
    await repository.remember([note(org, "m", "giraffe")])
    source = ObservingSource(repository)
    await source.search(ask(org, "giraffe"), RETRIEVABLE_LAYERS)
    assert list(source.drain_dropped()) == []
    assert source.drain_sources()[0]["lexical"] == 1
    assert source.drain_completeness()["lexical"] == "exact"
    assert source.drain_sources() == ({}, ())
    assert source.drain_completeness() == {}
    await source.search(ask(org, "giraffe"), RETRIEVABLE_LAYERS)
    with refused():
        await source.search(ask(org, embedding=[1.0]), "semantic")  # type: ignore[arg-type]
    assert source.drain_sources() == ({}, ())
    assert source.drain_completeness() == {}


@behaviour
async def concurrent_recalls_on_one_source_never_mix(repository: ContractRepository) -> None:
    org = tenant()
    users = [org.child("user", f"u{number}") for number in range(10)]
    await repository.remember(
        note(user, f"{place}-{number}", f"giraffe{place}", expires_at=None if number % 2 else NOW + DAY)
        for place, user in enumerate(users)
        for number in range(place + 1)
    )
    coordinator = RetrievalCoordinator(source=ObservingSource(repository))

    async def recall(place: int) -> None:
        result = await coordinator.retrieve(ask(users[place], f"giraffe{place}", limit=5))
        found = place + 1
        assert dict(result.sources) == {"lexical": found, "recent": found, "salient": 0, "profile": 0}
        names = [memory.record.record_id for memory in result.memories] + [name for name, _ in result.dropped]
        assert len(names) == found
        assert all(name.startswith(f"{place}-") for name in names)

    await asyncio.gather(*(recall(turn % 10) for turn in range(50)))


@behaviour
async def a_coordinator_ranks_what_the_repository_saw(repository: ContractRepository) -> None:
    org = tenant()
    user = org.child("user", "u")
    await repository.remember(
        [
            note(org, "best", "giraffe giraffe", salience=0.9),
            note(user, "good", "a giraffe in a zoo", salience=0.2),
            note(user, "other", "tea time"),
            note(org, "me", "likes tea", kind="profile"),
        ]
    )
    result = await RetrievalCoordinator(source=ObservingSource(repository)).retrieve(ask(user, "giraffe"))
    assert [memory.record.record_id for memory in result.memories][:3] == ["me", "best", "good"]
    assert [memory.distance for memory in result.memories][:3] == [1, 1, 0]
    assert dict(result.completeness) == dict.fromkeys(result.sources, "exact")


@behaviour
async def a_source_answers_for_the_graph_and_the_conversation_too(repository: ContractRepository) -> None:
    org = tenant()
    await repository.remember([note(org, "a"), note(org, "b")])
    await repository.associate(org, [Association("a", note(org, "b"))])
    source = ObservingSource(repository)
    assert [edge.target.record_id for edge in await source.neighbours(org, ["a"])] == ["b"]
    assert dict(await source.hops(org, "b", ["a"], 2)) == {"a": 1}
    assert list(await source.recent(org, 9)) == []
    (looked,) = await source.observe(ask(org, "note"), ["b", "nowhere"])
    (found,) = [
        one
        for one in await source.search(ask(org, "note"), RETRIEVABLE_LAYERS)
        if one.record.record_id == "b"
    ]
    assert looked == found
