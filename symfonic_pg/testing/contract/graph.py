"""associate, dissociate, neighbours and hops: edges between visible ends, and the distances along them."""

from __future__ import annotations

import asyncio

from symfonic_pg.memory.activation import Association
from symfonic_pg.memory.records import MemoryRecord
from symfonic_pg.memory.scope import MemoryScope
from symfonic_pg.testing.contract.base import (
    DAY,
    NOW,
    ContractRepository,
    ask,
    behaviour,
    note,
    refused,
    search,
    tenant,
)


async def written(repository: ContractRepository, scope: MemoryScope, names: str) -> dict[str, MemoryRecord]:
    """A record at the scope for each letter."""
    records = {name: note(scope, name, f"note {name}") for name in names}
    await repository.remember(records.values())
    return records


async def edges(
    repository: ContractRepository, scope: MemoryScope, *record_ids: str
) -> set[tuple[str, str, str, float]]:
    """The neighbours of some records, in short."""
    return {
        (edge.source_id, edge.target.record_id, edge.relationship, edge.weight)
        for edge in await repository.neighbours(scope, record_ids)
    }


@behaviour
async def neighbours_are_all_edges_out_of_a_frontier(repository: ContractRepository) -> None:
    org = tenant()
    records = await written(repository, org, "abcd")
    given = [
        Association("a", records["b"], "next", 0.25),
        Association("a", records["b"], "cites"),
        Association("a", records["c"], weight=0.1 + 0.2),
        Association("b", records["a"], "next", 1e-12),
        Association("d", records["d"], "is", 0.5),
    ]
    assert await repository.associate(org, given) == 5
    assert await edges(repository, org, "a", "a", "nowhere") == {
        ("a", "b", "next", 0.25),
        ("a", "b", "cites", 1.0),
        ("a", "c", "associated", 0.1 + 0.2),
    }
    assert len(await edges(repository, org, "a", "b", "c", "d")) == 5
    assert await edges(repository, org, "c") == set()
    assert list(await repository.neighbours(org, [])) == []
    (edge,) = await repository.neighbours(org, ["d"])
    assert edge.target == records["d"]


@behaviour
async def the_same_edge_again_takes_the_new_weight(repository: ContractRepository) -> None:
    org = tenant()
    records = await written(repository, org, "ab")
    await repository.associate(org, [Association("a", records["b"], weight=0.5)])
    again = [Association("a", records["b"], weight=0.7), Association("a", records["b"], weight=0.9)]
    assert await repository.associate(org, again) == 1
    assert await edges(repository, org, "a") == {("a", "b", "associated", 0.9)}
    assert await repository.associate(org, []) == 0


@behaviour
async def only_weights_above_zero_up_to_one_are_stored(repository: ContractRepository) -> None:
    org = tenant()
    records = await written(repository, org, "ab")
    for weight in (0.0, 1.0000001, 7.0):
        with refused("weight"):
            await repository.associate(
                org, [Association("a", records["b"]), Association("b", records["a"], weight=weight)]
            )
    assert await edges(repository, org, "a", "b") == set()


@behaviour
async def an_edge_needs_two_ends_that_are_visible_where_it_lies(repository: ContractRepository) -> None:
    org = tenant()
    user, other = org.child("user", "u"), org.child("user", "v")
    top = (await written(repository, org, "a"))["a"]
    mine, theirs = note(user, "mine"), note(other, "theirs")
    await repository.remember([mine, theirs])
    given = [
        Association("a", mine),
        Association("mine", top),
        Association("a", theirs),
        Association("theirs", top),
        Association("a", note(org, "nowhere")),
        Association("nowhere", top),
    ]
    assert await repository.associate(org, given) == 0
    assert await repository.associate(user, given) == 2
    assert await edges(repository, user, "a", "mine") == {
        ("a", "mine", "associated", 1.0),
        ("mine", "a", "associated", 1.0),
    }
    assert await edges(repository, org, "a", "mine") == set()
    assert await edges(repository, other, "a", "mine", "theirs") == set()


@behaviour
async def an_edge_is_seen_from_its_scope_and_below(repository: ContractRepository) -> None:
    org = tenant()
    user = org.child("user", "u")
    records = await written(repository, org, "ab")
    assert await repository.associate(user, [Association("a", records["b"], weight=0.5)]) == 1
    for scope, seen in ((org, 0), (user, 1), (user.child("session", "s"), 1), (org.child("user", "v"), 0)):
        assert len(await edges(repository, scope, "a")) == seen


@behaviour
async def of_one_edge_at_several_heights_the_nearest_counts(repository: ContractRepository) -> None:
    org = tenant()
    user = org.child("user", "u")
    session = user.child("session", "s")
    records = await written(repository, org, "ab")
    for scope, weight in ((org, 0.2), (session, 0.6), (user, 0.4)):
        await repository.associate(scope, [Association("a", records["b"], weight=weight)])
    for scope, weight in ((org, 0.2), (user, 0.4), (session, 0.6), (org.child("user", "v"), 0.2)):
        assert await edges(repository, scope, "a") == {("a", "b", "associated", weight)}
    await repository.associate(session, [Association("a", records["b"], "cites", 0.1)])
    assert len(await edges(repository, session, "a")) == 2


@behaviour
async def dissociate_deletes_exactly_at_the_scope(repository: ContractRepository) -> None:
    org = tenant()
    user = org.child("user", "u")
    records = await written(repository, org, "ab")
    edge = Association("a", records["b"], weight=0.5)
    await repository.associate(org, [edge, Association("a", records["b"], "cites")])
    await repository.associate(user, [edge])
    assert await repository.dissociate(user.child("session", "s"), [edge]) == 0
    assert await repository.dissociate(user, [Association("a", records["b"], "unknown")]) == 0
    assert await repository.dissociate(user, [Association("a", records["b"], weight=0.9), edge]) == 1
    assert await repository.dissociate(user, [edge]) == 0
    assert len(await edges(repository, user, "a")) == 2
    assert await repository.dissociate(org, [edge]) == 1
    assert await edges(repository, user, "a") == {("a", "b", "cites", 1.0)}
    assert await repository.dissociate(org, []) == 0


@behaviour
async def a_neighbour_looks_as_it_does_from_the_scope(repository: ContractRepository) -> None:
    org = tenant()
    user = org.child("user", "u")
    records = await written(repository, org, "ab")
    await repository.associate(org, [Association("a", records["b"])])
    await repository.reinforce(user, ["b"])
    await repository.remember([note(org, "b", "changed since", expires_at=NOW - 99 * DAY)])
    (edge,) = await repository.neighbours(user, ["a"])
    assert (edge.target.text, edge.target.access_count) == ("changed since", 1)
    assert (await repository.neighbours(org, ["a"]))[0].target.access_count == 0


@behaviour
async def concurrent_edges_and_their_reverse_are_written_once(repository: ContractRepository) -> None:
    org = tenant()
    records = await written(repository, org, "abcdef")
    ring = [Association(a, records[b]) for a in records for b in records]
    counts = await asyncio.gather(
        *(repository.associate(org, ring if turn % 2 else ring[::-1]) for turn in range(6))
    )
    assert set(counts) == {36}
    assert len(await edges(repository, org, *records)) == 36


@behaviour
async def hops_are_the_fewest_edges_in_either_direction(repository: ContractRepository) -> None:
    org = tenant()
    records = await written(repository, org, "abcdefgh")
    chain = [("a", "b"), ("c", "b"), ("c", "d"), ("d", "e"), ("a", "a"), ("e", "f"), ("f", "a"), ("b", "a")]
    await repository.associate(org, [Association(source, records[target]) for source, target in chain])
    everyone = list(records)
    reached = {"a": 0, "b": 1, "f": 1, "c": 2, "e": 2, "d": 3}
    assert dict(await repository.hops(org, "a", everyone, 6)) == reached
    assert dict(await repository.hops(org, "a", ["c", "g", "c"], 6)) == {"c": 2}
    assert dict(await repository.hops(org, "a", everyone, 1)) == {"a": 0, "b": 1, "f": 1}
    assert dict(await repository.hops(org, "a", everyone, 0)) == {"a": 0}
    assert dict(await repository.hops(org, "nowhere", everyone, 6)) == {}


@behaviour
async def no_path_leads_through_what_is_not_visible(repository: ContractRepository) -> None:
    org = tenant()
    user, other = org.child("user", "u"), org.child("user", "v")
    records = await written(repository, org, "ab")
    bridge = note(other, "bridge")
    await repository.remember([bridge])
    await repository.associate(other, [Association("a", bridge), Association("bridge", records["b"])])
    assert dict(await repository.hops(other, "a", ["b"], 6)) == {"b": 2}
    assert dict(await repository.hops(user, "a", ["b", "bridge"], 6)) == {}
    seen = await search(repository, ask(user, context_ids=["a"]))
    assert seen["b"].hops is None
    # The edges are visible at the user's, the bridge is not: after the move no path is left.
    here = note(user, "here")
    await repository.remember([here])
    await repository.associate(user, [Association("a", here), Association("here", records["b"])])
    assert (await search(repository, ask(user, context_ids=["a"])))["b"].hops == 2
    await repository.move(user, ["here"], user.child("session", "s"))
    assert (await search(repository, ask(user, context_ids=["a"])))["b"].hops is None
    assert await edges(repository, user, "a", "here") == set()


@behaviour
async def the_graph_route_finds_what_lies_within_three_hops(repository: ContractRepository) -> None:
    org = tenant()
    user = org.child("user", "u")
    records = await written(repository, org, "abcdefg")
    await repository.remember([note(user, "z")])
    chain = [Association(source, records[target]) for source, target in ("ab", "cb", "cd", "de", "fe")]
    await repository.associate(user, [*chain, Association("z", records["a"])])
    seen = await search(repository, ask(user, context_ids=["a", "nowhere", "a"]))
    hops = {one.record.record_id: one.hops for one in seen.observations.found}
    assert hops == {"a": 0, "b": 1, "c": 2, "d": 3, "e": None, "f": None, "g": None, "z": 1}
    assert seen.by("graph") == {"b", "c", "d", "z"}
    seen = await search(repository, ask(user, context_ids=["a", "f"]))
    hops = {one.record.record_id: one.hops for one in seen.observations.found}
    assert hops == {"a": 0, "b": 1, "c": 2, "d": 2, "e": 1, "f": 0, "g": None, "z": 1}
    assert "a" not in seen.by("graph")
    assert all(one.hops is None for one in (await search(repository, ask(user))).observations.found)


@behaviour
async def the_graph_route_keeps_to_fanout_layers_and_validity(repository: ContractRepository) -> None:
    org = tenant()
    user = org.child("user", "u")
    centre = note(org, "centre")
    far = [note(org, f"far{number}") for number in range(3)]
    close = [note(org, f"near{number}") for number in range(3)]
    mine = [note(user, f"mine{number}") for number in range(3)]
    out = [note(org, "out", expires_at=NOW), note(org, "layer", layer="episodic"), note(org, "where")]
    await repository.remember(
        note(
            record.scope,
            record.record_id,
            metadata={"n": 1},
            layer=record.layer,
            expires_at=record.expires_at,
        )
        for record in (centre, *far, *close, *mine, *out[:2])
    )
    await repository.remember(out[2:])
    await repository.associate(user, [Association("centre", other) for other in (*close, *mine, *out)])
    await repository.associate(user, [Association("out", other) for other in far])
    query = ask(user, context_ids=["centre"], where={"n": 1}, limit=1)
    seen = await search(repository, query, [centre.layer], fanout=4)
    assert seen.by("graph") == {"near0", "near1", "near2", "far0", "mine0", "mine1", "mine2"}
    seen = await search(repository, query, [centre.layer], fanout=2)
    assert seen.by("graph") == {"near0", "near1", "mine0", "mine1"}
