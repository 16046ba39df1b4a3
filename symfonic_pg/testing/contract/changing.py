"""reinforce, forget, move and erase: what changes, what hangs on it, and what stays."""

from __future__ import annotations

import asyncio
from datetime import UTC, datetime, timedelta

from symfonic_pg.memory.activation import Association
from symfonic_pg.memory.layers import MemoryLayer
from symfonic_pg.memory.records import RememberReport
from symfonic_pg.memory.window import ConversationTurn
from symfonic_pg.testing.contract.base import (
    DAY,
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
async def a_use_is_counted_at_its_scope_and_seen_from_there_down(repository: ContractRepository) -> None:
    org = tenant()
    u1, u2 = org.child("user", "u1"), org.child("user", "u2")
    s1 = u1.child("session", "s1")
    await repository.remember([note(org, "m", access_count=5, last_accessed_at=NOW - DAY)])
    before = datetime.now(UTC)
    for scope, times in ((org, 1), (u1, 2), (s1, 3), (u2, 10)):
        for _ in range(times):
            assert await repository.reinforce(scope, ["m"]) == 1
    for scope, count in ((org, 6), (u1, 8), (s1, 11), (u2, 16), (u2.child("session", "s"), 16)):
        (record,) = await repository.get(scope, ["m"])
        assert record.access_count == count, (scope, record.access_count)
        assert record.last_accessed_at is not None
        assert abs(record.last_accessed_at - before) < timedelta(minutes=5)
        (listed,) = await repository.list(scope)
        found = (await search(repository, ask(scope)))["m"].record
        (observed,) = await repository.observe(ask(scope), ["m"])
        assert listed == found == observed.record == record


@behaviour
async def a_use_changes_nothing_else(repository: ContractRepository) -> None:
    org = tenant()
    await repository.remember([note(org, "m", last_accessed_at=datetime.now(UTC) + 900 * DAY)])
    (before,) = await repository.get(org, ["m"])
    await repository.reinforce(org, ["m"])
    (after,) = await repository.get(org, ["m"])
    assert after.updated_at == before.updated_at
    assert (after.access_count, after.last_accessed_at) == (1, before.last_accessed_at)
    assert (await repository.remember([note(org, "m")])).unchanged == 1


@behaviour
async def reinforce_counts_visible_records_once(repository: ContractRepository) -> None:
    org = tenant()
    user = org.child("user", "u")
    await repository.remember([note(org, "a"), note(user, "b"), note(org.child("user", "v"), "c")])
    assert await repository.reinforce(user, ["a", "b", "a", "c", "nowhere"]) == 2
    assert await repository.reinforce(org, ["b", "c"]) == 0
    assert await repository.reinforce(org, []) == 0
    counts = {record.record_id: record.access_count for record in await repository.list(user)}
    assert counts == {"a": 1, "b": 1}


@behaviour
async def concurrent_uses_are_all_counted(repository: ContractRepository) -> None:
    org = tenant()
    user = org.child("user", "u")
    await repository.remember([note(org, "a"), note(org, "b")])
    orders = (["a", "b"], ["b", "a"])
    counted = await asyncio.gather(*(repository.reinforce(user, orders[n % 2]) for n in range(20)))
    assert set(counted) == {2}
    assert {record.access_count for record in await repository.get(user, ["a", "b"])} == {20}


@behaviour
async def forget_deletes_exactly_at_the_scope(repository: ContractRepository) -> None:
    org = tenant()
    user = org.child("user", "u")
    session = user.child("session", "s")
    await repository.remember([note(org, "a"), note(user, "b"), note(session, "c")])
    assert await repository.forget(user, ["a", "c", "nowhere"]) == 0
    assert await repository.forget(user, ["b", "b"]) == 1
    assert await repository.forget(user, ["b"]) == 0
    assert await ids_at(repository, session) == {"a", "c"}


@behaviour
async def what_hung_on_a_forgotten_record_is_gone_with_it(repository: ContractRepository) -> None:
    org = tenant()
    model = fresh("mini")
    await repository.register_model(model, 2)
    old, other = note(org, "m", created_at=NOW - 5 * DAY), note(org, "other")
    await repository.remember([old, other], [[1.0, 0.0], [0.0, 1.0]], model=model)
    await repository.associate(org, [Association("m", other), Association("other", old)])
    await repository.reinforce(org, ["m"])
    assert await repository.forget(org, ["m"]) == 1
    assert list(await repository.neighbours(org, ["m", "other"])) == []
    assert await repository.remember([note(org, "m")]) == RememberReport(inserted=1, without_embedding=1)
    assert list(await repository.neighbours(org, ["m", "other"])) == []
    (again,) = await repository.get(org, ["m"])
    assert (again.created_at, again.access_count, again.last_accessed_at) == (NOW, 0, None)
    seen = await search(repository, ask(org, embedding=[1.0, 0.0]), model=model)
    assert seen.by("vector") == {"other"}


@behaviour
async def move_takes_a_record_with_all_that_hangs_on_it(repository: ContractRepository) -> None:
    org = tenant()
    user, session = org.child("user", "u"), org.child("user", "u").child("session", "s")
    model = fresh("mini")
    await repository.register_model(model, 2)
    moved, other = note(session, "m", "a stray giraffe"), note(org, "other")
    await repository.remember([moved, other], [[1.0, 0.0], None], model=model)
    await repository.associate(session, [Association("m", other)])
    await repository.reinforce(session, ["m"])
    assert await repository.move(session, ["m", "nowhere"], user) == 1
    (record,) = await repository.get(user, ["m"])
    assert (record.scope, record.text, record.updated_at) == (user, moved.text, moved.updated_at)
    assert record.access_count == 0, "the use at the session is not seen from above it"
    assert (await repository.get(session, ["m"]))[0].access_count == 1
    seen = await search(repository, ask(user, "giraffe", embedding=[1.0, 0.0]), model=model)
    assert seen["m"].routes >= {"vector", "lexical", "recent"}
    assert seen["m"].distance == 0
    assert (await search(repository, ask(session, "giraffe", embedding=[1.0, 0.0]), model=model))[
        "m"
    ].distance == 1
    assert list(await repository.neighbours(user, ["m"])) == []
    assert len(await repository.neighbours(session, ["m"])) == 1
    assert (await repository.remember([note(user, "m", "a stray giraffe")])).unchanged == 1


@behaviour
async def move_is_exact_and_stays_within_one_tenant(repository: ContractRepository) -> None:
    org = tenant()
    user = org.child("user", "u")
    await repository.remember([note(org, "a"), note(user, "b")])
    assert await repository.move(user, ["a"], user.child("session", "s")) == 0
    assert await repository.move(org, ["b"], org.child("user", "v")) == 0
    assert await repository.move(org, ["a"], org.child("team", "t").child("user", "new")) == 1
    assert await repository.count(org) == 0
    assert await repository.count(org.child("team", "t")) == 0
    with refused():
        await repository.move(user, ["b"], tenant("elsewhere"))
    assert await ids_at(repository, user) == {"b"}
    with refused("'a'"):
        await repository.remember([note(org, "a")])


@behaviour
async def erase_reaches_down_and_nowhere_else(repository: ContractRepository) -> None:
    org = tenant()
    user, sibling = org.child("user", "u"), org.child("user", "u2")
    session = user.child("session", "s")
    await repository.remember(
        [note(org, "a"), note(user, "b"), note(session, "c"), note(session, "d"), note(sibling, "e")]
    )
    for scope in (org, user, session, sibling):
        await repository.append_turns(scope, [ConversationTurn("t", text="hello")])
        await repository.reinforce(scope, ["a"])
    await repository.associate(session, [Association("a", note(org, "a"))])
    await repository.associate(org, [Association("a", note(org, "a"))])
    assert await repository.erase(user) == 3
    assert await ids_at(repository, session) == {"a"}
    assert await ids_at(repository, sibling) == {"a", "e"}
    assert [len(await repository.recent(scope, 9)) for scope in (org, user, session, sibling)] == [1, 0, 0, 1]
    assert (await repository.get(session, ["a"]))[0].access_count == 1
    assert (await repository.get(sibling, ["a"]))[0].access_count == 2
    assert len(await repository.neighbours(session, ["a"])) == 1
    assert await repository.erase(user) == 0
    assert await repository.erase(org) == 2
    assert await repository.count(sibling) == 0
    assert list(await repository.recent(org, 9)) == []


@behaviour
async def an_erased_scope_can_be_written_again(repository: ContractRepository) -> None:
    org = tenant()
    session = org.child("user", "u").child("session", "s")
    await repository.remember([note(session, "m", "an old giraffe", created_at=NOW - DAY)])
    await repository.append_turns(session, [ConversationTurn("t", text="old")])
    assert await repository.erase(org.child("user", "u")) == 1
    assert (await repository.remember([note(session, "m", "a new zebra")])).inserted == 1
    assert await repository.append_turns(session, [ConversationTurn("t", text="new")]) == 1
    assert [turn.text for turn in await repository.recent(session, 9)] == ["new"]
    assert (await search(repository, ask(session, "giraffe"))).by("lexical") == set()
    assert (await search(repository, ask(session, "zebra"))).by("lexical") == {"m"}


@behaviour
async def erase_takes_edges_of_erased_ends_and_of_erased_heights(repository: ContractRepository) -> None:
    org = tenant()
    user = org.child("user", "u")
    top, low = note(org, "top"), note(user, "low")
    await repository.remember([top, low])
    await repository.associate(
        user, [Association("top", low), Association("low", top), Association("top", top)]
    )
    assert len(await repository.neighbours(user, ["top", "low"])) == 3
    await repository.erase(user)
    await repository.remember([low])
    assert list(await repository.neighbours(user, ["top", "low"])) == []


@behaviour
async def an_update_changes_what_the_routes_find(repository: ContractRepository) -> None:
    org = tenant()
    model, wide = fresh("mini"), fresh("wide")
    await repository.register_model(model, 2)
    await repository.register_model(wide, 3)
    await repository.remember([note(org, "m", "a giraffe")], [[1.0, 0.0]], model=model)
    await repository.remember([note(org, "m", "a giraffe")], [[1.0, 0.0, 0.0]], model=wide)
    query = ask(org, "giraffe zebra", embedding=[1.0, 0.0])
    await repository.remember([note(org, "m", "a giraffe", layer=MemoryLayer.EPISODIC, salience=0.5)])
    seen = await search(repository, query, [MemoryLayer.EPISODIC], model=model)
    assert seen["m"].routes == {"vector", "lexical", "recent", "salient"}
    assert (await search(repository, query, [MemoryLayer.SEMANTIC], model=model)).ids == set()
    report = await repository.remember([note(org, "m", "a zebra", kind="profile")])
    assert report == RememberReport(updated=1, without_embedding=1)
    for name, embedding in ((model, [1.0, 0.0]), (wide, [1.0, 0.0, 0.0])):
        seen = await search(repository, ask(org, "zebra", embedding=embedding), model=name)
        assert seen["m"].cosine is None
        assert seen["m"].routes == {"lexical", "recent", "profile"}
    assert (await search(repository, ask(org, "giraffe"))).by("lexical") == set()
    report = await repository.remember([note(org, "m", "a zebra", kind="profile")], [[0.0, 1.0]], model=model)
    assert report == RememberReport(unchanged=1)
    assert (await search(repository, query, model=model))["m"].cosine == 0.0
    assert ids(await repository.list(org)) == ["m"]
