"""get, count and list: what is visible at a scope, in order and page by page."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

from symfonic_pg.memory.layers import MemoryLayer
from symfonic_pg.memory.records import MemoryRecord
from symfonic_pg.testing.contract.base import (
    DAY,
    NOW,
    ContractRepository,
    ask,
    behaviour,
    ids,
    note,
    refused,
    search,
    tenant,
)

# Metadata, a filter, and whether the metadata contains it, as jsonb @> decides.
CONTAINMENT: tuple[tuple[dict[str, Any], dict[str, Any], bool], ...] = (
    ({"a": 1, "b": 2}, {"a": 1}, True),
    ({"a": 1}, {"a": 1, "b": 2}, False),
    ({"a": 1}, {}, True),
    ({}, {"a": None}, False),
    ({"a": None}, {"a": None}, True),
    ({"a": 1}, {"a": 1.0}, True),
    ({"a": 100}, {"a": 1e2}, True),
    ({"a": 1}, {"a": True}, False),
    ({"a": True}, {"a": True}, True),
    ({"a": False}, {"a": 0}, False),
    ({"a": "1"}, {"a": 1}, False),
    ({"a": "x"}, {"a": "X"}, False),
    ({"a": {"b": 1, "c": 2}}, {"a": {"c": 2}}, True),
    ({"a": {"b": {"c": 1}}}, {"a": {"c": 1}}, False),
    ({"a": {"b": 1}}, {"a": {}}, True),
    ({"a": [1]}, {"a": {}}, False),
    ({"a": [1]}, {"a": []}, True),
    ({"a": [3, 1, 2]}, {"a": [1, 3]}, True),
    ({"a": [1, 2]}, {"a": [2, 2, 1, 1]}, True),
    ({"a": [1, 2]}, {"a": [3]}, False),
    ({"a": [1, 2]}, {"a": 1}, False),
    ({"a": [[1, 2], 3]}, {"a": [[1]]}, True),
    ({"a": [[1, 2]]}, {"a": [1]}, False),
    ({"a": [{"b": 1, "c": 2}]}, {"a": [{"b": 1}]}, True),
    ({"a": [{"b": 1}, {"c": 2}]}, {"a": [{"b": 1, "c": 2}]}, False),
    ({"a": [True]}, {"a": [1]}, False),
    ({"ключ": "значение 😀"}, {"ключ": "значение 😀"}, True),
    ({"a'b\"c": "%_\\"}, {"a'b\"c": "%_\\"}, True),
    ({"é": 1}, {"e\u0301": 1}, False),
)


@behaviour
async def get_gives_the_visible_ones_in_the_order_asked_and_each_once(repository: ContractRepository) -> None:
    org = tenant()
    user = org.child("user", "u")
    await repository.remember([note(org, "a"), note(user, "b"), note(user.child("session", "s"), "c")])
    assert ids(await repository.get(user, ["b", "c", "nowhere", "a", "b"])) == ["b", "a"]
    assert ids(await repository.get(org, ["a", "b", "c"])) == ["a"]
    assert ids(await repository.get(user.child("session", "unwritten"), ["c", "b", "a"])) == ["b", "a"]
    assert list(await repository.get(org, [])) == []


@behaviour
async def get_and_count_know_no_layer_and_no_validity(repository: ContractRepository) -> None:
    org = tenant()
    batch = [note(org, layer.value, layer=layer) for layer in MemoryLayer if layer != MemoryLayer.WORKING]
    batch += [note(org, "over", valid_until=NOW - 900 * DAY), note(org, "gone", expires_at=NOW - 900 * DAY)]
    await repository.remember(batch)
    assert await repository.count(org) == 6
    assert len(await repository.get(org, ids(batch))) == 6
    assert len(await repository.list(org)) == 6


@behaviour
async def list_is_newest_first_and_then_by_id(repository: ContractRepository) -> None:
    org = tenant()
    moments = {
        "b": NOW,
        "a": NOW,
        "Z": NOW,
        "é": NOW,
        "old": NOW - DAY,
        "new": NOW + timedelta(microseconds=1),
    }
    await repository.remember([note(org, name, updated_at=moment) for name, moment in moments.items()])
    assert ids(await repository.list(org)) == ["new", "Z", "a", "b", "é", "old"]


@behaviour
async def pages_of_a_list_join_without_gap_or_repeat(repository: ContractRepository) -> None:
    org = tenant()
    scopes = [org, org.child("user", "u"), org.child("user", "u").child("session", "s")]
    await repository.remember(
        note(scopes[number % 3], f"m{number:02}", updated_at=NOW - (number // 4) * DAY)
        for number in range(25)
    )
    whole = ids(await repository.list(scopes[2]))
    assert len(whole) == 25
    pages: list[MemoryRecord] = []
    while page := await repository.list(scopes[2], limit=7, after=pages[-1] if pages else None):
        assert len(page) == 7 or len(pages) == 21
        pages += page
        # What is written meanwhile, and newer, disturbs no later page.
        await repository.remember([note(org, f"late{len(pages)}", updated_at=NOW + DAY)])
    assert ids(pages) == whole


@behaviour
async def a_page_starts_after_a_key_even_when_its_record_is_gone(repository: ContractRepository) -> None:
    org = tenant()
    await repository.remember(note(org, name, updated_at=NOW) for name in "abcd")
    first = await repository.list(org, limit=2)
    await repository.forget(org, ["b"])
    assert ids(await repository.list(org, after=first[-1])) == ["c", "d"]
    assert ids(await repository.list(org, after=(NOW, "c"))) == ["d"]
    assert ids(await repository.list(org, after=(NOW + DAY, "z"))) == ["a", "c", "d"]
    assert list(await repository.list(org, after=(NOW, "d"))) == []


@behaviour
async def list_narrows_by_layer_kind_and_height(repository: ContractRepository) -> None:
    org = tenant()
    user = org.child("user", "u")
    await repository.remember(
        [
            note(org, "a", kind="profile"),
            note(user, "b", kind="fact", layer=MemoryLayer.EPISODIC),
            note(user, "c"),
        ]
    )
    assert ids(await repository.list(user, layers=[MemoryLayer.EPISODIC])) == ["b"]
    assert list(await repository.list(user, layers=[])) == []
    assert list(await repository.list(user, layers=[MemoryLayer.WORKING])) == []
    assert ids(await repository.list(user, kind="profile")) == ["a"]
    assert ids(await repository.list(user, kind="")) == ["c"]
    assert ids(await repository.list(user, exactly=True)) == ["b", "c"]
    assert list(await repository.list(user.child("session", "s"), exactly=True)) == []
    assert ids(await repository.list(user, exactly=True, kind="fact", limit=1)) == ["b"]


@behaviour
async def where_contains_as_jsonb_does(repository: ContractRepository) -> None:
    for metadata, where, expected in CONTAINMENT:
        org = tenant()
        await repository.remember([note(org, "m", metadata=metadata)])
        listed = ids(await repository.list(org, where=where))
        assert listed == (["m"] if expected else []), (metadata, where)
        found = (await search(repository, ask(org, where=where))).ids
        assert found == ({"m"} if expected else set()), (metadata, where)


@behaviour
async def a_scope_may_be_given_in_its_text_form(repository: ContractRepository) -> None:
    org = tenant()
    user: Any = str(org.child("user", "a/b:c%"))
    await repository.remember([note(user, "m")])
    assert await repository.count(user) == 1
    assert ids(await repository.get(user, ["m"])) == ["m"]
    assert await repository.reinforce(user, ["m"]) == 1
    assert await repository.forget(user, ["m"]) == 1


@behaviour
async def wrong_arguments_are_contract_errors(repository: ContractRepository) -> None:
    org: Any = tenant()
    wrong: Any
    for wrong in (None, 3, "no scope", [org]):
        with refused():
            await repository.count(wrong)
        with refused():
            await repository.get(wrong, ["m"])
    for wrong in ("m", b"m", None, [None], [3], ["nul\x00"], ["lone \ud800"], [""]):
        for verb in (repository.get, repository.reinforce, repository.forget, repository.neighbours):
            with refused():
                await verb(org, wrong)
        with refused():
            await repository.move(org, wrong, org)
        with refused():
            await repository.observe(ask(org), wrong)
    for wrong in (0, -1, 1.5, True):
        with refused():
            await repository.list(org, limit=wrong)
        with refused():
            await repository.search(ask(org), frozenset(MemoryLayer), fanout=wrong)
    options: list[dict[str, Any]] = [
        {"where": []},
        {"where": {"a": float("nan")}},
        {"where": {"a": "\x00"}},
        {"kind": "\x00"},
        {"kind": 3},
        {"after": "m"},
        {"after": (NOW.replace(tzinfo=None), "m")},
        {"after": (NOW,)},
    ]
    for option in options:
        with refused():
            await repository.list(org, **option)
    with refused():
        await repository.list(org, layers="semantic")  # type: ignore[arg-type]
    with refused():
        await repository.search("cue", frozenset(MemoryLayer))  # type: ignore[arg-type]
