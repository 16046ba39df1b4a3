"""Nobody sees, changes or counts what does not lie on the path from the root to here, whatever the door."""

from __future__ import annotations

from dataclasses import replace

from symfonic_pg.memory.activation import Association
from symfonic_pg.memory.observations import Observation, Observations
from symfonic_pg.memory.scope import MemoryScope
from symfonic_pg.memory.window import ConversationTurn
from symfonic_pg.testing.contract.base import (
    NOW,
    ContractRepository,
    ask,
    behaviour,
    fresh,
    ids,
    ids_at,
    note,
    refused,
    search,
    tenant,
)


@behaviour
async def a_scope_sees_itself_and_its_ancestors_alone(repository: ContractRepository) -> None:
    org = tenant()
    team = org.child("team", "t")
    user = team.child("user", "u")
    scopes = [org, team, user, user.child("session", "s"), team.child("user", "v"), org.child("user", "u")]
    await repository.remember(note(scope, f"m{place}") for place, scope in enumerate(scopes))
    expected = {0: {0}, 1: {0, 1}, 2: {0, 1, 2}, 3: {0, 1, 2, 3}, 4: {0, 1, 4}, 5: {0, 5}}
    for place, visible in expected.items():
        names = {f"m{number}" for number in visible}
        scope = scopes[place]
        assert await ids_at(repository, scope) == names
        assert await repository.count(scope) == len(names)
        assert set(ids(await repository.get(scope, [f"m{number}" for number in range(6)]))) == names
        seen = await search(repository, ask(scope))
        assert seen.ids == names
        assert all(one.distance == scope.distance(one.record.scope) for one in seen.observations.found)


@behaviour
async def two_tenants_may_use_the_same_ids(repository: ContractRepository) -> None:
    ours, theirs = tenant("ours"), tenant("theirs")
    await repository.remember([note(ours, "m", "our giraffe"), note(theirs, "m", "their zebra")])
    assert [record.text for record in await repository.get(ours, ["m"])] == ["our giraffe"]
    assert await repository.reinforce(ours, ["m"]) == 1
    assert await repository.forget(theirs, ["m"]) == 1
    (left,) = await repository.list(ours)
    assert (left.text, left.access_count) == ("our giraffe", 1)
    assert await repository.count(theirs) == 0


@behaviour
async def forged_ids_of_another_tenant_open_no_door(repository: ContractRepository) -> None:
    ours, theirs = tenant("ours"), tenant("theirs")
    model = fresh("mini")
    await repository.register_model(model, 2)
    prey, mine = note(theirs, "prey", "a secret giraffe", kind="profile", salience=1.0), note(ours, "mine")
    await repository.remember([prey, mine], [[1.0, 0.0], None], model=model)
    await repository.associate(theirs, [Association("prey", prey)])
    await repository.append_turns(theirs, [ConversationTurn("t", text="secret")])
    for scope in (ours, ours.child("user", "u"), MemoryScope.of(("team", theirs.id)), tenant("third")):
        assert list(await repository.get(scope, ["prey"])) == []
        assert await repository.reinforce(scope, ["prey"]) == 0
        assert await repository.forget(scope, ["prey"]) == 0
        assert await repository.move(scope, ["prey"], scope.child("user", "thief")) == 0
        assert list(await repository.neighbours(scope, ["prey"])) == []
        assert await repository.hops(scope, "prey", ["prey", "mine"], 6) == {}
        assert list(await repository.recent(scope, 9)) == []
        assert list(await repository.observe(ask(scope), ["prey"])) == []
        query = ask(scope, "secret giraffe", embedding=[1.0, 0.0], context_ids=["prey"], limit=1000)
        assert "prey" not in (await search(repository, query, model=model)).ids
    assert await repository.associate(ours, [Association("mine", prey), Association("prey", mine)]) == 0
    assert await repository.dissociate(ours, [Association("prey", prey)]) == 0
    with refused():
        await repository.move(ours, ["mine"], theirs)
    (untouched,) = await repository.list(theirs)
    assert untouched == prey
    assert len(await repository.neighbours(theirs, ["prey"])) == 1


@behaviour
async def an_edge_to_a_namesake_in_another_tenant_is_not_written(repository: ContractRepository) -> None:
    ours, theirs = tenant("ours"), tenant("theirs")
    await repository.remember([note(ours, "a"), note(ours, "b"), note(theirs, "b")])
    assert await repository.associate(ours, [Association("a", note(theirs, "b"))]) == 0
    assert list(await repository.neighbours(ours, ["a"])) == []


@behaviour
async def the_name_of_a_scope_is_never_a_pattern_or_a_prefix(repository: ContractRepository) -> None:
    mark = fresh("x")
    names = (
        "a",
        "ab",
        "a%",
        "a_",
        "a-b",
        "%",
        "_",
        "a*",
        "A",
        "a ",
        " a",
        "a\\",
        "a'",
        'a"',
        "a;--",
        "á",
        "a\u0301",
    )
    roots = [MemoryScope.of(("org", mark + name)) for name in names]
    await repository.remember(note(root, "m", f"of {place}") for place, root in enumerate(roots))
    await repository.remember(note(root.child("user", "u"), "n") for root in roots)
    for place, root in enumerate(roots):
        assert [record.text for record in await repository.list(root)] == [f"of {place}"]
        assert await repository.count(root.child("user", "u")) == 2
        assert await repository.count(root.child("user", "%")) == 1
    assert await repository.erase(roots[2]) == 2
    assert [await repository.count(root) for root in roots] == [1, 1, 0, *[1] * (len(roots) - 3)]


@behaviour
async def separators_inside_names_forge_no_level(repository: ContractRepository) -> None:
    mark = fresh("x")
    scopes = [
        MemoryScope.of(("org", mark), ("user", "u")),
        MemoryScope.of(("org", f"{mark}/user:u")),
        MemoryScope.of(("org", f"{mark}/user"), ("u", "u")),
        MemoryScope.of(("org", f"{mark}%2Fuser%3Au")),
        MemoryScope.of((f"org:{mark}", "user:u")),
        MemoryScope.of(("org", mark), ("user:u", "x")),
        MemoryScope.of(("org", mark), ("user", "u/session:s")),
        MemoryScope.of(("org", mark), ("user", "u\n")),
    ]
    await repository.remember(note(scope, f"m{place}") for place, scope in enumerate(scopes))
    for place, scope in enumerate(scopes):
        assert await ids_at(repository, scope) == {f"m{place}"}
        (record,) = await repository.list(scope)
        assert record.scope == scope
    assert await ids_at(repository, scopes[0].child("session", "s")) == {"m0"}
    assert await repository.count(MemoryScope.of(("org", mark))) == 0


@behaviour
async def the_kind_of_a_level_is_part_of_its_name(repository: ContractRepository) -> None:
    mark = fresh("x")
    org, brand = MemoryScope.of(("org", mark)), MemoryScope.of(("brand", mark))
    await repository.remember([note(org, "a"), note(brand, "a"), note(org.child("user", "u"), "b")])
    assert await ids_at(repository, org.child("team", "u")) == {"a"}
    assert await repository.erase(brand) == 1
    assert await repository.count(org.child("user", "u")) == 2


@behaviour
async def what_siblings_store_moves_no_number(repository: ContractRepository) -> None:
    org = tenant()
    user, sibling = org.child("user", "u"), org.child("user", "sibling")
    model = fresh("mini")
    await repository.register_model(model, 2)
    await repository.remember(
        [
            note(org, "a", "the refund policy"),
            note(user, "b", "a refund was asked for"),
            note(user, "c", "tea"),
        ],
        [[1.0, 0.5], [0.5, 1.0], None],
        model=model,
    )
    await repository.associate(org, [Association("a", note(org, "a"))])
    query = ask(user, "refund policy tea", embedding=[1.0, 0.0], context_ids=["a"])
    before = (await search(repository, query, model=model)).observations
    count = await repository.count(user)
    noise = [
        note(sibling, f"n{number}", "refund policy tea", kind="profile", salience=1.0)
        for number in range(300)
    ]
    await repository.remember(noise, [[1.0, 0.0]] * 300, model=model)
    await repository.remember([note(org.child("user", "deep").child("session", "s"), "n")])
    await repository.reinforce(sibling, ["a", "n1"])
    await repository.associate(sibling, [Association("a", noise[0]), Association("n0", note(org, "a"))])
    await repository.append_turns(sibling, [ConversationTurn("t", text="refund")])
    after = (await search(repository, query, model=model)).observations
    assert _rounded(after) == _rounded(before)
    assert (after.routes, after.unavailable) == (before.routes, before.unavailable)
    assert await repository.count(user) == count
    assert list(await repository.neighbours(user, ["a"])) == list(await repository.neighbours(org, ["a"]))


@behaviour
async def what_lies_above_is_read_and_never_written_from_below(repository: ContractRepository) -> None:
    org = tenant()
    user = org.child("user", "u")
    await repository.remember([note(org, "m", updated_at=NOW)])
    with refused("'m'"):
        await repository.remember([note(user, "m", "mine now")])
    assert await repository.forget(user, ["m"]) == 0
    assert await repository.move(user, ["m"], user) == 0
    assert await repository.erase(user) == 0
    assert list(await repository.list(user)) == [note(org, "m", updated_at=NOW)]


@behaviour
async def turns_are_read_at_exactly_their_scope(repository: ContractRepository) -> None:
    org = tenant()
    user = org.child("user", "u")
    session = user.child("session", "s")
    for scope in (org, user, session):
        await repository.append_turns(scope, [ConversationTurn("t", text=str(scope))])
    for scope in (org, user, session):
        assert [turn.text for turn in await repository.recent(scope, 9)] == [str(scope)]
    assert list(await repository.recent(session.child("turn", "x"), 9)) == []
    assert list(await repository.recent(org.child("user", "other"), 9)) == []


def _rounded(observations: Observations) -> dict[str, Observation]:
    """The observations without the last digits, which the order of a sum decides."""
    return {
        one.record.record_id: replace(
            one,
            cosine=None if one.cosine is None else round(one.cosine, 9),
            lex=None if one.lex is None else round(one.lex, 9),
        )
        for one in observations.found
    }
