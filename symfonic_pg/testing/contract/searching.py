"""search: which routes run, whom they find at every level, and who is valid at the moment."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

from symfonic_pg.memory.layers import MemoryLayer
from symfonic_pg.memory.scope import MemoryScope
from symfonic_pg.testing.contract.base import (
    DAY,
    NOW,
    ContractRepository,
    ask,
    behaviour,
    fresh,
    note,
    refused,
    search,
    tenant,
)

ALWAYS = {"recent", "salient", "profile"}


@behaviour
async def a_scope_that_remembers_nothing_answers_with_nothing(repository: ContractRepository) -> None:
    seen = await search(repository, ask(tenant().child("user", "u"), "refund", context_ids=["nowhere"]))
    assert seen.observations.found == ()
    assert dict(seen.observations.routes) == dict.fromkeys([*ALWAYS, "lexical", "graph"], 0)
    assert seen.observations.unavailable == ()


@behaviour
async def a_route_runs_when_the_query_gives_it_something(repository: ContractRepository) -> None:
    org = tenant()
    model = fresh("mini")
    await repository.register_model(model, 2)
    await repository.remember([note(org, "m")], [[1.0, 0.0]], model=model)
    cases: tuple[tuple[dict[str, Any], set[str]], ...] = (
        ({}, set()),
        ({"cue": "note"}, {"lexical"}),
        ({"cue": "zebra"}, {"lexical"}),
        ({"cue": "!?… \U0001f600"}, set()),
        ({"embedding": [1.0, 0.0]}, {"vector"}),
        ({"context_ids": ["m"]}, {"graph"}),
        ({"context_ids": ["nowhere"]}, {"graph"}),
        ({"cue": "note", "embedding": [0.0, 1.0], "context_ids": ["m"]}, {"lexical", "vector", "graph"}),
    )
    for fields, routes in cases:
        seen = await search(repository, ask(org, **fields), model=model)
        assert set(seen.observations.routes) == ALWAYS | routes, fields
        assert seen.observations.unavailable == (), fields
        assert set(seen.observations.completeness.values()) == {"exact"}, fields


@behaviour
async def an_embedding_without_a_known_model_is_unavailable(repository: ContractRepository) -> None:
    org = tenant()
    await repository.remember([note(org, "m")])
    for model in (None, fresh("unheard-of")):
        seen = await search(repository, ask(org, "note", embedding=[1.0, 0.0]), model=model)
        assert seen.observations.unavailable == ("vector",)
        assert seen["m"].routes == {"lexical", "recent"}
        assert seen["m"].cosine is None


@behaviour
async def a_query_vector_of_another_dimension_is_refused(repository: ContractRepository) -> None:
    org = tenant()
    model = fresh("mini")
    await repository.register_model(model, 3)
    for embedding in ([1.0, 2.0], [1.0, 2.0, 3.0, 4.0]):
        with refused(model, "3", str(len(embedding))):
            await repository.search(ask(org, embedding=embedding), frozenset(MemoryLayer), model=model)
        with refused(model):
            await repository.observe(ask(org, embedding=embedding), ["m"], model=model)


@behaviour
async def each_route_finds_its_own(repository: ContractRepository) -> None:
    org = tenant()
    model = fresh("mini")
    await repository.register_model(model, 2)
    records = [
        note(org, "recent"),
        note(org, "salient", salience=0.0),
        note(org, "profile", kind="profile"),
        note(org, "lexical", "a giraffe"),
        note(org, "vector"),
    ]
    await repository.remember(records, [None] * 4 + [[0.0, -1.0]], model=model)
    seen = await search(repository, ask(org, "giraffe", embedding=[0.0, 1.0]), model=model)
    assert seen.by("recent") == {record.record_id for record in records}
    for route in ("salient", "profile", "lexical", "vector"):
        assert seen.by(route) == {route}
    assert dict(seen.observations.routes) == {
        "recent": 5,
        "salient": 1,
        "profile": 1,
        "lexical": 1,
        "vector": 1,
    }


@behaviour
async def a_route_takes_its_best_from_every_level(repository: ContractRepository) -> None:
    org = tenant()
    user = org.child("user", "u")
    model = fresh("mini")
    await repository.register_model(model, 2)
    for scope, prefix in ((org, "o"), (user, "u")):
        await repository.remember(
            [
                note(
                    scope,
                    f"{prefix}{number}",
                    "giraffe " * (number + 1) + "and more " * (20 - number),
                    kind="profile",
                    salience=number / 10,
                    updated_at=NOW - number * DAY,
                )
                for number in range(10)
            ],
            [[1.0, (number - 3) ** 2 / 10] for number in range(10)],
            model=model,
        )
    query = ask(user.child("session", "s"), "giraffe", embedding=[1.0, 0.0], limit=1)
    seen = await search(repository, query, model=model, fanout=3)

    def best(*numbers: int) -> set[str]:
        return {f"{prefix}{number}" for prefix in "ou" for number in numbers}

    assert seen.by("recent") == best(0, 1, 2)
    assert seen.by("salient") == seen.by("profile") == best(9, 8, 7)
    assert seen.by("lexical") == best(9, 8, 7)
    assert seen.by("vector") == best(2, 3, 4)
    assert {one.distance for one in seen.observations.found} == {1, 2}
    assert dict(seen.observations.routes) == dict.fromkeys([*ALWAYS, "lexical", "vector"], 6)


@behaviour
async def a_crowded_level_never_crowds_out_another(repository: ContractRepository) -> None:
    org = tenant()
    session = org.child("user", "u").child("session", "s")
    crowd = [note(org, f"m{number}", "refund refund", salience=1.0, updated_at=NOW) for number in range(60)]
    here = note(session, "here", "one refund among many other words", salience=0.1, updated_at=NOW - 99 * DAY)
    await repository.remember([*crowd, here])
    seen = await search(repository, ask(session, "refund", limit=1), fanout=5)
    assert seen["here"].routes == {"recent", "salient", "lexical"}
    assert len(seen.by("recent")) == len(seen.by("salient")) == len(seen.by("lexical")) == 6


@behaviour
async def the_fanout_is_never_under_the_limit(repository: ContractRepository) -> None:
    org = tenant()
    await repository.remember(note(org, f"m{number:02}") for number in range(30))
    assert len((await search(repository, ask(org, limit=20), fanout=5)).by("recent")) == 20
    assert len((await search(repository, ask(org, limit=5), fanout=20)).by("recent")) == 20
    assert len((await search(repository, ask(org, limit=1000), fanout=1)).by("recent")) == 30


@behaviour
async def equals_are_taken_by_update_and_then_by_id(repository: ContractRepository) -> None:
    org = tenant()
    await repository.remember(
        [
            *(note(org, name, salience=0.5, kind="profile") for name in ("d", "B", "é", "c", "a")),
            note(org, "z", salience=0.5, kind="profile", updated_at=NOW + timedelta(microseconds=1)),
        ]
    )
    seen = await search(repository, ask(org, limit=1), fanout=4)
    for route in ALWAYS:
        assert seen.by(route) == {"z", "B", "a", "c"}, route


@behaviour
async def a_profile_without_salience_comes_last_but_is_found(repository: ContractRepository) -> None:
    org = tenant()
    await repository.remember(
        [
            note(org, "none", kind="profile", updated_at=NOW + DAY),
            note(org, "zero", kind="profile", salience=0.0),
            note(org, "one", kind="profile", salience=1.0, updated_at=NOW - DAY),
            note(org, "other", kind="profiles", salience=1.0),
        ]
    )
    assert (await search(repository, ask(org))).by("profile") == {"none", "zero", "one"}
    assert (await search(repository, ask(org, limit=1), fanout=2)).by("profile") == {"zero", "one"}


@behaviour
async def routes_keep_to_the_layers(repository: ContractRepository) -> None:
    org = tenant()
    layers = [layer for layer in MemoryLayer if layer is not MemoryLayer.WORKING]
    await repository.remember(
        note(org, layer.value, layer=layer, salience=0.5, kind="profile") for layer in layers
    )
    for wanted in ([layers[0]], layers[1:3], layers, list(MemoryLayer), [MemoryLayer.WORKING], []):
        seen = await search(repository, ask(org, "note"), wanted)
        names = {layer.value for layer in wanted} - {"working"}
        for route in (*ALWAYS, "lexical"):
            assert seen.by(route) == names, (route, wanted)


@behaviour
async def a_memory_is_valid_from_then_until_just_before(repository: ContractRepository) -> None:
    org = tenant()
    tick = timedelta(microseconds=1)
    await repository.remember(
        [
            note(org, "from-now", valid_from=NOW),
            note(org, "from-later", valid_from=NOW + tick),
            note(org, "until-now", valid_until=NOW),
            note(org, "until-later", valid_until=NOW + tick),
            note(org, "expires-now", expires_at=NOW),
            note(org, "expires-later", expires_at=NOW + tick),
            note(org, "never", valid_from=NOW, valid_until=NOW),
            note(org, "from-the-future", created_at=NOW + 9 * DAY, updated_at=NOW + 9 * DAY),
        ]
    )
    assert (await search(repository, ask(org))).ids == {
        "from-now", "until-later", "expires-later", "from-the-future",
    }  # fmt: skip
    assert (await search(repository, ask(org, as_of=NOW + tick))).ids == {
        "from-now", "from-later", "from-the-future",
    }  # fmt: skip
    assert (await search(repository, ask(org, as_of=NOW - tick))).ids == {
        "until-now", "until-later", "expires-now", "expires-later", "from-the-future",
    }  # fmt: skip


@behaviour
async def without_a_moment_it_is_now(repository: ContractRepository) -> None:
    org = tenant()
    await repository.remember(
        [note(org, "over", expires_at=NOW - 9000 * DAY), note(org, "valid", valid_until=NOW + 90_000 * DAY)]
    )
    assert (await search(repository, ask(org, as_of=None))).ids == {"valid"}


@behaviour
async def what_is_not_valid_takes_no_place_in_a_route(repository: ContractRepository) -> None:
    org = tenant()
    model = fresh("mini")
    await repository.register_model(model, 2)
    dead = [
        note(
            org, f"dead{number}", "refund", expires_at=NOW, salience=1.0, kind="profile", updated_at=NOW + DAY
        )
        for number in range(30)
    ]
    await repository.remember(
        [*dead, note(org, "alive", "refund and more", salience=0.1, kind="profile")],
        [[1.0, 0.0]] * 30 + [[0.0, 1.0]],
        model=model,
    )
    seen = await search(repository, ask(org, "refund", embedding=[1.0, 0.0], limit=1), model=model, fanout=2)
    assert seen.ids == {"alive"}
    assert dict(seen.observations.routes) == dict.fromkeys([*ALWAYS, "lexical", "vector"], 1)


@behaviour
async def what_where_refuses_takes_no_place_in_a_route(repository: ContractRepository) -> None:
    org = tenant()
    model = fresh("mini")
    await repository.register_model(model, 2)
    other = [
        note(org, f"m{number}", "refund", salience=1.0, kind="profile", metadata={"of": "b"})
        for number in range(30)
    ]
    mine = note(org, "mine", "refund and more", salience=0.1, kind="profile", metadata={"of": "a", "x": [1]})
    await repository.remember([*other, mine], [[1.0, 0.0]] * 30 + [[0.0, 1.0]], model=model)
    query = ask(org, "refund", embedding=[1.0, 0.0], limit=1, where={"of": "a"})
    seen = await search(repository, query, model=model, fanout=2)
    assert seen["mine"].routes == {*ALWAYS, "lexical", "vector"}
    assert seen.ids == {"mine"}


@behaviour
async def sixteen_levels_deep_the_distances_are_right(repository: ContractRepository) -> None:
    scope = tenant()
    scopes = [scope]
    for depth in range(1, 16):
        scopes.append(scopes[-1].child(f"kind{depth % 3}", "same"))
    await repository.remember(note(scope, f"m{scope.depth}", "giraffe") for scope in scopes)
    for place in (0, 7, 15):
        seen = await search(repository, ask(scopes[place], "giraffe"))
        distances = {one.record.record_id: one.distance for one in seen.observations.found}
        assert distances == {f"m{depth}": place + 1 - depth for depth in range(1, place + 2)}
        assert seen.by("lexical") == seen.ids


@behaviour
async def a_level_never_written_to_still_counts_in_the_distance(repository: ContractRepository) -> None:
    org = tenant()
    user = org.child("team", "unwritten").child("user", "u")
    session = user.child("session", "new")
    await repository.remember([note(org, "org"), note(user, "user")])
    seen = await search(repository, ask(session))
    assert {one.record.record_id: one.distance for one in seen.observations.found} == {"org": 3, "user": 1}
    unwritten = MemoryScope.of(*org.levels, ("team", "unwritten"), ("user", "v"), ("session", "s"))
    assert (await search(repository, ask(unwritten)))["org"].distance == 3


@behaviour
async def observe_names_the_same_numbers_without_a_route(repository: ContractRepository) -> None:
    org = tenant()
    user = org.child("user", "u")
    model = fresh("mini")
    await repository.register_model(model, 2)
    await repository.remember(
        [
            note(org, "a", "a giraffe", salience=0.5),
            note(user, "b", "a zebra", kind="profile"),
            note(org, "expired", "a giraffe", expires_at=NOW),
            note(user, "other-layer", "a giraffe", layer=MemoryLayer.EPISODIC),
            note(user, "filtered", "a giraffe", metadata={"n": 1}),
            note(org.child("user", "v"), "hidden", "a giraffe"),
        ],
        [[1.0, 1.0], None, [1.0, 0.0], None, None, None],
        model=model,
    )
    query = ask(user, "giraffe", embedding=[1.0, 0.0], context_ids=["a"], where={"n": 2})
    asked = ["b", "hidden", "expired", "a", "nowhere", "other-layer", "filtered", "b"]
    observed = await repository.observe(query, asked, model=model)
    assert [one.record.record_id for one in observed] == ["b", "expired", "a", "other-layer", "filtered"]
    assert all(one.routes == frozenset() for one in observed)
    found = await search(
        repository, ask(user, "giraffe", embedding=[1.0, 0.0], context_ids=["a"]), model=model
    )
    for one in observed:
        if one.record.record_id in found.ids:
            same = found[one.record.record_id]
            assert (one.record, one.distance, one.hops) == (same.record, same.distance, same.hops)
            assert (one.cosine, one.lex) == (same.cosine, same.lex)
    assert observed[1].cosine is not None
    assert observed[1].lex is not None
    assert list(await repository.observe(query, [], model=model)) == []
