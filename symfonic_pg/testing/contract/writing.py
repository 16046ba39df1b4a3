"""remember and load: inserted, updated or unchanged, all of a batch or nothing."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from datetime import timedelta
from typing import Any

from symfonic_pg.memory.layers import MemoryLayer
from symfonic_pg.memory.records import MemoryRecord, RememberReport
from symfonic_pg.memory.requests import LoadItem
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

FULL: dict[str, Any] = {
    "layer": MemoryLayer.PROCEDURAL,
    "salience": 0.123456789012345,
    "kind": "profile",
    "created_at": NOW - 9 * DAY,
    "updated_at": NOW - timedelta(microseconds=1),
    "access_count": 7,
    "last_accessed_at": NOW - 2 * DAY,
    "valid_from": NOW - 3 * DAY,
    "valid_until": NOW + 3 * DAY,
    "expires_at": NOW + 4 * DAY,
    "language": "german",
    "metadata": {"a": [1, 2.5, None, True, {"ü": "ß"}], "b": {}, "c": []},
}


@behaviour
async def remember_reports_what_it_inserted_updated_and_left_alone(repository: ContractRepository) -> None:
    org = tenant()
    first = await repository.remember([note(org, "a"), note(org, "b")])
    assert first == RememberReport(inserted=2, without_embedding=2)
    second = await repository.remember([note(org, "a"), note(org, "b", "another text"), note(org, "c")])
    assert (second.inserted, second.updated, second.unchanged) == (1, 1, 1)
    assert await repository.count(org) == 3


@behaviour
async def remember_takes_any_iterable_and_an_empty_one(repository: ContractRepository) -> None:
    org = tenant()
    assert await repository.remember([]) == RememberReport()
    assert await repository.remember(iter(())) == RememberReport()
    assert (await repository.remember(note(org, name) for name in "ab")).inserted == 2


@behaviour
async def every_field_of_a_record_comes_back(repository: ContractRepository) -> None:
    org = tenant()
    full, bare = note(org, "full", "ein Text", **FULL), MemoryRecord("bare", org, MemoryLayer.EPISODIC, "x")
    await repository.remember([full, bare])
    got = await repository.get(org, ["full", "bare"])
    assert list(got) == [full, bare], got
    assert got[0].content_hash == full.content_hash
    assert got[0].metadata["a"][3] is True
    assert all(moment.utcoffset() == timedelta(0) for moment in (got[0].created_at, got[1].updated_at))


@behaviour
async def each_field_alone_makes_an_update(repository: ContractRepository) -> None:
    org = tenant()
    changes: list[dict[str, Any]] = [
        {"text": "another text"},
        {"layer": MemoryLayer.EPISODIC},
        {"salience": 0.5},
        {"salience": None},
        {"kind": "fact"},
        {"created_at": NOW - DAY},
        {"valid_from": NOW},
        {"valid_until": NOW + DAY},
        {"expires_at": NOW + DAY},
        {"language": "simple"},
        {"language": None},
        {"metadata": {"a": 2}},
    ]
    fields: dict[str, Any] = {"salience": 0.25, "metadata": {"a": 1}, "language": "english"}
    await repository.remember([note(org, "m", **fields)])
    for change in changes:
        fields |= change
        changed = note(org, "m", **fields)
        assert (await repository.remember([changed])).updated == 1, change
        assert list(await repository.get(org, ["m"])) == [changed], change
        assert (await repository.remember([changed])).unchanged == 1, change


@behaviour
async def a_record_that_says_the_same_is_not_written(repository: ContractRepository) -> None:
    org = tenant()
    await repository.remember([note(org, "m", metadata={"n": 1, "on": True, "z": [1, {"x": 2}]})])
    same = note(
        org,
        "m",
        updated_at=NOW + DAY,
        access_count=9,
        last_accessed_at=NOW,
        metadata={"z": [1.0, {"x": 2}], "on": True, "n": 1.0},
    )
    assert (await repository.remember([same])).unchanged == 1
    (stored,) = await repository.get(org, ["m"])
    assert (stored.updated_at, stored.access_count, stored.last_accessed_at) == (NOW, 0, None)


@behaviour
async def metadata_that_only_python_calls_equal_is_an_update(repository: ContractRepository) -> None:
    org = tenant()
    documents: list[dict[str, Any]] = [
        *({"n": 1}, {"n": True}, {"n": "1"}, {"n": None}, {}),
        *({"n": []}, {"n": {}}, {"n": [1, 2]}, {"n": [2, 1]}),
    ]
    for metadata in documents:
        assert (await repository.remember([note(org, "m", metadata=metadata)])).unchanged == 0, metadata
        assert (await repository.remember([note(org, "m", metadata=metadata)])).unchanged == 1, metadata


@behaviour
async def created_at_stays_unless_an_update_gives_one(repository: ContractRepository) -> None:
    org = tenant()
    await repository.remember([note(org, "m", created_at=NOW - 5 * DAY)])
    plain = MemoryRecord("m", org, MemoryLayer.SEMANTIC, "a plain note")
    assert (await repository.remember([plain])).unchanged == 1
    updated = MemoryRecord("m", org, MemoryLayer.SEMANTIC, "another text", updated_at=NOW + DAY)
    assert (await repository.remember([updated])).updated == 1
    (stored,) = await repository.get(org, ["m"])
    assert (stored.created_at, stored.updated_at) == (NOW - 5 * DAY, NOW + DAY)
    await repository.remember([note(org, "m", created_at=NOW - 6 * DAY)])
    assert (await repository.get(org, ["m"]))[0].created_at == NOW - 6 * DAY


@behaviour
async def an_update_takes_the_new_updated_at_and_never_touches_usage(repository: ContractRepository) -> None:
    org = tenant()
    await repository.remember([note(org, "m", access_count=3, last_accessed_at=NOW - DAY)])
    await repository.reinforce(org, ["m"])
    (before,) = await repository.get(org, ["m"])
    newer = note(org, "m", "another text", updated_at=NOW - DAY, access_count=50, last_accessed_at=NOW + DAY)
    await repository.remember([newer])
    (after,) = await repository.get(org, ["m"])
    assert after.updated_at == NOW - DAY
    assert (after.access_count, after.last_accessed_at) == (4, before.last_accessed_at)


@behaviour
async def the_last_of_two_records_with_one_id_wins(repository: ContractRepository) -> None:
    org = tenant()
    batch = [note(org, "m", "first"), note(org, "n"), note(org, "m", "second", salience=0.5)]
    assert await repository.remember(batch) == RememberReport(inserted=2, without_embedding=2)
    assert (await repository.get(org, ["m"]))[0].text == "second"
    model = fresh("mini")
    await repository.register_model(model, 2)
    report = await repository.remember(
        [note(org, "v", "first"), note(org, "v", "second")], [[1.0, 0.0], None], model=model
    )
    assert (report.inserted, report.without_embedding) == (1, 1)
    seen = await search(repository, ask(org, embedding=[1.0, 0.0]), model=model)
    assert seen["v"].cosine is None


@behaviour
async def one_id_at_two_scopes_of_a_batch_is_refused(repository: ContractRepository) -> None:
    org = tenant()
    with refused("'m'", "1", without=["secret-user"]):
        await repository.remember([note(org.child("user", "secret-user"), "m"), note(org, "m")])
    assert await repository.count(org.child("user", "secret-user")) == 0


@behaviour
async def an_id_of_another_scope_is_refused_without_naming_the_scope(repository: ContractRepository) -> None:
    org = tenant()
    hidden = org.child("user", "secret-user")
    await repository.remember([note(hidden, "m", "hidden")])
    for scope in (org, org.child("user", "other"), hidden.child("session", "s")):
        with refused("'m'", "1", without=["secret-user"]):
            await repository.remember([note(scope, "new"), note(scope, "m", "stolen")])
        assert await repository.count(scope) == (1 if scope.depth == 3 else 0)
    assert [record.text for record in await repository.get(hidden, ["m"])] == ["hidden"]


@behaviour
async def one_bad_record_leaves_the_whole_batch_unwritten(repository: ContractRepository) -> None:
    org = tenant()
    model = fresh("mini")
    await repository.register_model(model, 2)
    good = [note(org, "good-1"), note(org, "good-2")]
    with refused("'bad'", "2", "append_turns"):
        await repository.remember([*good, note(org, "bad", layer=MemoryLayer.WORKING)])
    with refused("'bad'", "2", "klingon"):
        await repository.remember([*good, note(org, "bad", language="klingon")])
    with refused("'bad'", "2", model, "2 dimensions", "3"):
        await repository.remember([*good, note(org, "bad")], [None, [1, 2], [1, 2, 3]], model=model)
    for hollow in ([0.0, 0.0], [1.0, float("nan")], [float("inf"), 1.0]):
        with refused("'bad'", "2", model):
            await repository.remember([*good, note(org, "bad")], [None, None, hollow], model=model)
    with refused("2"):
        await repository.remember([*good, "not a record"])  # type: ignore[list-item]
    assert await repository.count(org) == 0


@behaviour
async def embeddings_must_match_the_records_and_name_a_known_model(repository: ContractRepository) -> None:
    org = tenant()
    model = fresh("mini")
    await repository.register_model(model, 2)
    with refused():
        await repository.remember([note(org, "m")], [[1, 2], [3, 4]], model=model)
    with refused():
        await repository.remember([note(org, "m")], [[1, 2]])
    with refused("unheard-of"):
        await repository.remember([note(org, "m")], [[1, 2]], model="unheard-of")
    assert await repository.count(org) == 0
    assert (await repository.remember([note(org, "m")], [None], model=model)).without_embedding == 1


@behaviour
async def an_error_about_a_record_never_quotes_its_text(repository: ContractRepository) -> None:
    org = tenant()
    with refused("'m'", without=["top secret", "4711"]):
        await repository.remember([note(org, "m", "top secret", layer="working", metadata={"pin": "4711"})])


@behaviour
async def records_of_several_scopes_and_tenants_fit_one_batch(repository: ContractRepository) -> None:
    acme, other = tenant(), tenant("other")
    scopes = [acme, acme.child("user", "u"), acme.child("user", "u").child("session", "s"), other]
    report = await repository.remember([note(scope, f"m{place % 3}") for place, scope in enumerate(scopes)])
    assert report.inserted == 4
    assert await repository.count(scopes[2]) == 3
    assert await ids_at(repository, other) == {"m0"}


@behaviour
async def a_batch_of_a_thousand_is_written_whole(repository: ContractRepository) -> None:
    org = tenant()
    batch = [note(org, f"m{number:04}", f"note {number}") for number in range(1000)]
    assert (await repository.remember(batch)).inserted == 1000
    assert (await repository.remember(reversed(batch))).unchanged == 1000
    assert await repository.count(org) == 1000


@behaviour
async def concurrent_writers_of_one_record_leave_one(repository: ContractRepository) -> None:
    org = tenant()
    user = org.child("user", "u")
    reports = await asyncio.gather(*(repository.remember([note(user, "m")]) for _ in range(8)))
    assert sum(report.inserted for report in reports) == 1, reports
    assert all(report.total == 1 for report in reports)
    assert await repository.count(user) == 1


@behaviour
async def concurrent_batches_in_opposite_order_both_succeed(repository: ContractRepository) -> None:
    org = tenant()
    names = [f"m{number}" for number in range(40)]
    for text in ("one", "two", "three"):
        await asyncio.gather(
            repository.remember([note(org, name, text) for name in names]),
            repository.remember([note(org, name, text + "!") for name in reversed(names)]),
        )
    assert await repository.count(org) == 40


@behaviour
async def load_takes_records_and_pairs_from_both_kinds_of_iterable(repository: ContractRepository) -> None:
    org = tenant()
    model = fresh("mini")
    await repository.register_model(model, 2)

    async def stream() -> AsyncIterator[LoadItem]:
        for number in range(7):
            yield note(org, f"s{number}"), [1.0, float(number)]

    plain: list[LoadItem] = [note(org, "a"), (note(org, "b"), None), (note(org, "c"), [0.0, 1.0])]
    assert await repository.load(plain, model=model) == RememberReport(inserted=3, without_embedding=2)
    assert await repository.load(stream(), model=model, batch_size=3) == RememberReport(inserted=7)
    assert await repository.load([]) == RememberReport()
    seen = await search(repository, ask(org, "note", embedding=[0.0, 1.0]), model=model)
    assert seen.by("vector") == {"c", *(f"s{number}" for number in range(7))}
    assert len(seen.by("lexical")) == 10


@behaviour
async def load_updates_what_is_there_like_remember(repository: ContractRepository) -> None:
    org = tenant()
    await repository.remember([note(org, "a"), note(org, "b")])
    report = await repository.load(
        [note(org, "a"), note(org, "b", "new"), note(org, "c"), note(org, "c", "c")]
    )
    assert (report.inserted, report.updated, report.unchanged) == (1, 1, 1)
    texts = {record.record_id: record.text for record in await repository.list(org)}
    assert texts == {"a": "a plain note", "b": "new", "c": "c"}


@behaviour
async def load_refuses_a_bad_batch_whole_and_names_the_place(repository: ContractRepository) -> None:
    org = tenant()
    await repository.remember([note(org.child("user", "secret-user"), "taken")])
    with refused("'bad'", "1"):
        await repository.load([note(org, "good"), note(org, "bad", layer=MemoryLayer.WORKING)])
    with refused("'taken'", "1", without=["secret-user"]):
        await repository.load([note(org, "good"), note(org, "taken")])
    assert await repository.count(org) == 0
    with refused("'bad'", "4"):
        await repository.load(
            [*(note(org, f"m{number}") for number in range(4)), note(org, "bad", language="klingon")],
            batch_size=2,
        )


@behaviour
async def a_model_is_registered_once_and_keeps_its_dimension(repository: ContractRepository) -> None:
    name = fresh("mini")
    first = await repository.register_model(name, 3, 0.25)
    assert (first.name, first.dimension, first.baseline) == (name, 3, 0.25)
    assert await repository.register_model(name, 3, 0.25) == first
    with refused(name, "3"):
        await repository.register_model(name, 4)
    other = await repository.register_model(fresh("mini"), 4)
    assert other.number != first.number
    assert {first, other} <= set(await repository.models())
    assert await repository.model(name) == first
    assert await repository.model(fresh("unheard-of")) is None


@behaviour
async def another_repository_sees_what_one_wrote(repository: ContractRepository, another: Any) -> None:
    org = tenant()
    model = fresh("mini")
    other = await another()
    await repository.register_model(model, 2)
    await repository.remember([note(org, "m")], [[1.0, 0.0]], model=model)
    assert ids(await other.get(org, ["m"])) == ["m"]
    seen = await search(other, ask(org, "note", embedding=[1.0, 0.0]), model=model)
    assert seen.by("vector") == seen.by("lexical") == {"m"}
    await other.forget(org, ["m"])
    assert await repository.count(org) == 0
