"""All that the vocabulary allows comes back: odd names, long texts, far moments, big metadata."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta, timezone
from random import Random

from symfonic_pg.memory.activation import Association
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
    search,
    tenant,
)
from symfonic_pg.testing.storage import same_document

ODD = (
    *(
        "a b",
        " a",
        "a ",
        "a/b",
        "a:b",
        "a%2Fb",
        "%",
        "%%",
        "_",
        "'",
        '"',
        "\\",
        "\\x00",
        "-1",
        "0",
        "x" * 255,
    ),
    *("''; DROP TABLE memories; --", "$1", "{}", "{schema}", "NULL", "null", "[1,2]", "(a,b)", "a,b"),
    *("a\nb", "a\tb", "\x01", "\x7f", "\u2028", "\u202eabc", "\ufeff", "\U0010ffff", "\ud7ff"),
    *("😀", "👩‍👧", "é", "e\u0301", "ß", "İ", "名前"),
)
WIDEST = range(0x10000, 0x10FFFF)


def widest(length: int, seed: int) -> str:
    """A name of that many UTF-8 bytes, of four-byte characters that no compression makes shorter."""
    random = Random(seed)
    return "".join(chr(random.choice(WIDEST)) for _ in range(length // 4)) + "x" * (length % 4)


@behaviour
async def any_id_is_an_id_like_another(repository: ContractRepository) -> None:
    org = tenant()
    user = org.child("user", "u")
    names = [name for name in ODD if name.strip()]
    await repository.remember(note(org, name, "giraffe") for name in names)
    assert ids(await repository.get(user, names)) == names
    assert ids(await repository.list(user)) == sorted(names)
    assert (await search(repository, ask(user, "giraffe"))).by("lexical") == set(names)
    ring = [
        Association(source, note(org, target))
        for source, target in zip(names, [*names[1:], names[0]], strict=True)
    ]
    assert await repository.associate(user, ring) == len(names)
    assert {edge.source_id for edge in await repository.neighbours(user, names)} == set(names)
    seen = await search(repository, ask(user, context_ids=names[5:6]))
    assert seen.by("graph") == set(names[2:5] + names[6:9])
    assert await repository.reinforce(user, names) == len(names)
    turns = [ConversationTurn(name, speaker=name, text=name) for name in names]
    assert await repository.append_turns(user, turns) == len(names)
    assert list(await repository.recent(user, 99)) == turns
    assert await repository.forget(org, names) == len(names)


@behaviour
async def any_scope_name_is_a_name_like_another(repository: ContractRepository) -> None:
    org = tenant()
    names = [name for name in ODD if name.strip()]
    users = [org.child("user", name) for name in names]
    kinds = [org.child(name[:60], "k") for name in names]
    await repository.remember(
        [note(scope, f"m{place}", kind="fact") for place, scope in enumerate([*users, *kinds])]
    )
    for place, scope in enumerate([*users, *kinds]):
        (record,) = await repository.list(scope)
        assert (record.record_id, record.scope) == (f"m{place}", scope)
    assert await repository.count(org) == 0


@behaviour
async def the_longest_names_fit_everywhere(repository: ContractRepository) -> None:
    root = MemoryScope.of((widest(63, 1), widest(219, 2) + fresh("")[-36:]))
    scope = root
    for depth in range(15):
        scope = scope.child(widest(63, 100 + depth), widest(255, 200 + depth))
    escaped = MemoryScope.of(("%" * 63, "/" * 200 + fresh("")[-55:]))
    for place in (root, scope, escaped):
        names = [widest(255, 300 + number) for number in range(3)]
        records = [note(place, name, widest(255, 400), kind=widest(63, 500)) for name in names]
        model = widest(200, 600) + fresh("")[-20:]
        await repository.register_model(model, 2)
        await repository.remember(records, [[1.0, 0.0]] * 3, model=model)
        assert list(await repository.get(place, names)) == records
        assert ids(await repository.list(place, kind=widest(63, 500))) == sorted(names)
        edge = Association(names[0], records[1], widest(255, 700))
        assert await repository.associate(place, [edge]) == 1
        assert list(await repository.neighbours(place, names)) == [edge]
        turn = ConversationTurn(widest(255, 800), "speaker", "text")
        assert await repository.append_turns(place, [turn]) == 1
        assert list(await repository.recent(place, 1)) == [turn]
        assert await repository.reinforce(place, names) == 3
        query = ask(place, widest(255, 400), embedding=[1.0, 0.0], context_ids=names[:1])
        seen = await search(repository, query, model=model)
        assert seen.by("vector") == seen.by("recent") == set(names)
        assert seen.by("graph") == {names[1]}
        assert await repository.erase(place) == 3


@behaviour
async def a_text_of_100_000_characters_is_stored_and_found(repository: ContractRepository) -> None:
    org = tenant()
    numbers = " ".join(f"word{number}x" for number in range(12_000))[:99_990].rsplit(" ", 1)[0]
    texts = {
        "many-words": f"{numbers} giraffe",
        "one-word": "x" * 100_000,
        "wide": "😀" * 99_990 + " giraffe",
        "lines": "\n" * 99_990 + " giraffe",
        "han": "返金" * 50_000,
    }
    await repository.remember(note(org, name, text) for name, text in texts.items())
    assert {record.record_id: record.text for record in await repository.list(org)} == texts
    assert (await search(repository, ask(org, "giraffe"))).by("lexical") == {"many-words", "wide", "lines"}
    assert (await search(repository, ask(org, "X" * 100_000))).by("lexical") == {"one-word"}
    assert (await search(repository, ask(org, "word7x"))).by("lexical") == {"many-words"}
    assert (await search(repository, ask(org, "返金"))).by("lexical") == {"han"}


@behaviour
async def any_cue_is_a_cue_like_another(repository: ContractRepository) -> None:
    org = tenant()
    await repository.remember([note(org, "m", "giraffe and zebra"), note(org, "n", "a walrus")])
    cues = [
        *("giraffe & | ! ( ) <-> :* zebra", "'giraffe'", '"giraffe', "giraffe\\", "giraffe:A*", "!giraffe"),
        *("giraffe') OR 1=1; --", "%giraffe%", "$1 giraffe", "{giraffe}", "-giraffe", "😀giraffe"),
        "giraffe\n\t\u2028zebra",
        "giraffe " * 12_500,
        "giraffe" + "!" * 100_000,
        " ".join(f"w{number}" for number in range(14_000)) + " giraffe",
    ]
    for cue in cues:
        seen = await search(repository, ask(org, cue))
        assert seen.by("lexical") == {"m"}, cue[:40]
    for cue in ("😀" * 25_000, "'; --", "&|!", "\u202e", "x" * 100_000):
        assert (await search(repository, ask(org, cue))).by("lexical") == set(), cue[:40]


@behaviour
async def moments_at_the_ends_of_the_calendar_are_kept(repository: ContractRepository) -> None:
    org = tenant()
    first, final = datetime(1, 1, 2, tzinfo=UTC), datetime(9999, 12, 30, 23, 59, 59, 999_999, tzinfo=UTC)
    ancient = note(
        org,
        "ancient",
        created_at=first,
        updated_at=first,
        valid_from=first,
        last_accessed_at=first,
        valid_until=final,
    )
    future = note(org, "future", created_at=final, updated_at=final, last_accessed_at=final, expires_at=final)
    await repository.remember([ancient, future])
    assert list(await repository.list(org)) == [future, ancient]
    assert ids(await repository.list(org, after=(final, "future"))) == ["ancient"]
    assert ids(await repository.list(org, after=(first, "a"))) == ["ancient"]
    assert (await search(repository, ask(org, as_of=first))).ids == {"ancient", "future"}
    assert (await search(repository, ask(org, as_of=final - timedelta(microseconds=1)))).ids == {
        "ancient",
        "future",
    }
    assert (await search(repository, ask(org, as_of=final))).ids == set()
    assert (await repository.remember([ancient, future])).unchanged == 2


@behaviour
async def a_moment_is_the_same_in_every_time_zone(repository: ContractRepository) -> None:
    org = tenant()
    zone = timezone(timedelta(hours=13, minutes=45))
    await repository.remember(
        [note(org, "m", valid_from=NOW.astimezone(zone), updated_at=NOW.astimezone(zone))]
    )
    (record,) = await repository.get(org, ["m"])
    assert (record.updated_at, record.valid_from) == (NOW, NOW)
    assert record.updated_at.utcoffset() == timedelta(0)
    assert (await search(repository, ask(org, as_of=NOW.astimezone(zone)))).ids == {"m"}
    assert (await search(repository, ask(org, as_of=NOW - timedelta(microseconds=1)))).ids == set()


@behaviour
async def big_and_deep_metadata_come_back(repository: ContractRepository) -> None:
    org = tenant()
    deep: dict[str, object] = {}
    for _ in range(48):
        deep = {"d": [deep]}
    documents: dict[str, dict[str, object]] = {
        "deep": deep,
        "wide": {f"key {number} 😀": [number, str(number), None] for number in range(5_000)},
        "long": {"text": "x😀\n\"'\\" * 50_000},
        "numbers": {
            "n": [0.1, 1e300, -1e-300, 5e-324, 2**53 + 1, -(10**400), 1e16, 123456789.123456789, -0.0, 1e23]
        },
        "names": {"": 0, " ": 1, "a.b": 2, "$": 3, "\u2028": 4, "\x1f": 5, "\x7f": 6, "é": 7, "e\u0301": 8},
        "escapes": {"a": "\\u0000 \\ud800 \\x00 \\", "b": "\x01\x02\u0085"},
    }
    records = [note(org, name, metadata=document) for name, document in documents.items()]
    await repository.remember(records)
    for record, got in zip(records, await repository.get(org, list(documents)), strict=True):
        assert same_document(got.metadata, record.metadata), record.record_id
    assert (await repository.remember(records)).unchanged == len(records)
    assert ids(await repository.list(org, where={"key 17 😀": [17]})) == ["wide"]
    assert ids(await repository.list(org, where={"n": [10**300]})) == ["numbers"]


@behaviour
async def a_level_of_a_thousand_names_is_told_apart(repository: ContractRepository) -> None:
    org = tenant()
    users = [org.child("user", f"u{number}") for number in range(1000)]
    await repository.remember(note(user, f"m{place}") for place, user in enumerate(users))
    for place in (0, 1, 10, 100, 999):
        assert await ids_at(repository, users[place]) == {f"m{place}"}
    assert await repository.erase(users[1]) == 1
    assert await repository.count(users[10]) == 1
