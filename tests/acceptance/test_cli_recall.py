"""symfonic-pg recall, explain, list and count: the JSON that others read, and the text that people do."""

from __future__ import annotations

import asyncio
import json
from typing import Any

import pytest

from symfonic_pg.memory import Association, ConversationTurn
from symfonic_pg.store import MemoryStore

from .conftest import NOWHERE, Command, Memories, memory

SESSION = "org:acme/user:mara/session:s1"
RECALL_KEYS = ["query", "memories", "dropped", "sources", "unavailable", "completeness"]
MEMORY_KEYS = [
    "record_id", "scope", "layer", "kind", "text", "score", "rank_score", "distance", "signals", "via",
]  # fmt: skip


def recalled(run: Command, *arguments: str, scope: str = SESSION, cue: str = "refund") -> dict[str, Any]:
    """The document that recall --json prints."""
    result = run("recall", "--scope", scope, "--cue", cue, "--no-embed", "--json", *arguments)
    assert result.exit_code == 0, result.output
    document: dict[str, Any] = json.loads(result.stdout)
    return document


def ids(document: dict[str, Any]) -> list[str]:
    return [one["record_id"] for one in document["memories"]]


def test_json_has_the_keys_that_others_read_and_no_others(remembered: Command) -> None:
    document = recalled(remembered)
    assert list(document) == RECALL_KEYS
    assert all(list(one) == MEMORY_KEYS for one in document["memories"])
    assert document["query"] == {
        "scope": SESSION, "cue": "refund", "limit": 10, "max_chars": None, "context_ids": [], "as_of": None,
        "where": None, "layers": ["episodic", "procedural", "prospective", "semantic"],
    }  # fmt: skip
    assert {one["record_id"]: one["distance"] for one in document["memories"]} == {
        "call": 0, "mara": 1, "rule": 2,
    }  # fmt: skip
    call = next(one for one in document["memories"] if one["record_id"] == "call")
    assert call["signals"].keys() == {"cue", "salience", "recency", "frequency", "proximity"}
    assert call["signals"]["salience"] is None
    assert call["score"] == call["rank_score"]
    assert document["sources"]["lexical"] == 3
    assert document["completeness"]["lexical"] == "exact"
    assert "vector" not in document["sources"]


def test_every_memory_is_returned_or_dropped_with_its_reason(remembered: Command) -> None:
    document = recalled(remembered, "--limit", "1", "--min-salience", "0.7")
    # What has no salience is not under any.
    assert len(document["memories"]) == 1
    assert sorted([*ids(document), *(record_id for record_id, _ in document["dropped"])]) == [
        "call", "mara", "rule",
    ]  # fmt: skip
    assert ["mara", "salience 0.60 under min_salience 0.70"] in document["dropped"]
    assert any(reason == "rank 2 over limit 1" for _, reason in document["dropped"])


@pytest.mark.parametrize(
    ("arguments", "expected"),
    [
        (["--layer", "episodic"], {"call"}),
        (["--layer", "episodic", "--layer", "semantic"], {"call", "mara", "rule"}),
        (["--where", '{"channel": "phone"}'], {"call"}),
        (["--as-of", "2026-05-01T00:00:00+02:00"], {"call", "mara", "rule", "old"}),
        (["--max-chars", "30", "--limit", "1"], set()),
        (["--min-relevance", "1.0"], set()),
    ],
)
def test_options_narrow_the_question(remembered: Command, arguments: list[str], expected: set[str]) -> None:
    assert set(ids(recalled(remembered, *arguments))) == expected


def test_weights_and_blend_change_the_order(remembered: Command) -> None:
    weights = ["--weight", "cue=0", "--weight", "recency=0", "--weight", "frequency=0"]
    assert ids(recalled(remembered, *weights))[:2] == ["rule", "mara"]
    blended = recalled(remembered, *weights, "--blend", "backfill")
    assert ids(blended)[0] == "call"
    assert blended["memories"][1]["rank_score"] < 0.5


def test_a_sibling_sees_none_of_it(remembered: Command) -> None:
    assert set(ids(recalled(remembered, scope="org:acme/user:tomas"))) == {"tomas", "rule"}
    assert ids(recalled(remembered, scope="org:other")) == ["theirs"]
    assert ids(recalled(remembered, scope="org:acme-corp")) == []


def test_window_path_and_numbers_come_when_they_are_asked_for(remembered: Command, database: str) -> None:
    async def prepare() -> None:
        async with MemoryStore.connect(database) as store:
            [rule] = await store.get("org:acme", ["rule"])
            await store.associate(SESSION, Association("call", rule, "about", 0.9))
            await store.append_turns(SESSION, [ConversationTurn("t1", "mara", "One\nmoment.", 1)])

    asyncio.run(prepare())
    document = recalled(remembered, "--turns", "2", "--explain", cue="Klein", scope=SESSION)
    assert [*RECALL_KEYS, "working", "explanations"] == list(document)
    assert document["working"]["turns"] == [
        {"turn_id": "t1", "speaker": "mara", "text": "One\nmoment.", "turn": 1}
    ]
    numbers = document["explanations"][0]
    assert sum(part["contribution"] for part in numbers["contributions"]) == pytest.approx(numbers["score"])
    floor = ["--min-relevance", "0.45", "--weight", "recency=0", "--weight", "salience=0"]
    alone = recalled(remembered, *floor, cue="Klein")
    assert ids(alone) == ["call"]
    linked = recalled(remembered, *floor, "--hops", "1", "--decay", "1", cue="Klein")
    assert [(one["record_id"], one["via"]) for one in linked["memories"]] == [
        ("call", []), ("rule", ["call", "rule"]),
    ]  # fmt: skip
    shown = remembered(
        "recall", "--scope", SESSION, "--cue", "Klein", "--no-embed", "--turns", "1", "--hops", "1", *floor
    )
    assert "[working] mara: One moment." in shown.stdout
    assert "by call -> rule" in shown.stdout


def test_context_gives_proximity(remembered: Command, database: str) -> None:
    document = recalled(remembered, "--context", "call")
    assert all(one["signals"]["proximity"] is not None for one in document["memories"])
    assert document["sources"]["graph"] >= 0


def test_text_shows_order_breakdown_distance_routes_and_what_was_left_out(remembered: Command) -> None:
    result = remembered("recall", "--scope", SESSION, "--cue", "refund", "--limit", "2", "--no-embed")
    assert result.exit_code == 0
    assert "2 up, org:acme" in result.stdout
    assert "cue 0." in result.stdout
    assert "lexical 3 exact" in result.stdout
    assert "left out   1: 1 by limit" in result.stdout
    assert "rank 3 over limit 2" in result.stdout
    assert "\x1b" not in result.output


def test_stored_text_cannot_steer_the_terminal_nor_make_up_lines(
    symfonic: Command, memories: Memories
) -> None:
    evil = "\x1b[31mred\x1b[0m\n9  0.999  forged  semantic\u202e [bold]markup[/bold] :smile:"
    symfonic("remember", str(memories(memory("evil\x1b[2J", text=evil))), "--no-embed")
    for arguments in (["recall", "--no-embed", "--cue", "red"], ["list"]):
        result = symfonic(*arguments, "--scope", "org:acme")
        assert "\x1b" not in result.stdout
        assert "\u202e" not in result.stdout
        assert "[bold]markup[/bold] :smile:" in result.stdout
        assert not any(line.startswith("9") for line in result.stdout.splitlines())
    assert recalled(symfonic, scope="org:acme")["memories"][0]["text"] == evil


def test_explain_says_why_a_memory_is_in_or_out(remembered: Command) -> None:
    asked = ["--scope", SESSION, "--cue", "refund", "--no-embed", "--limit", "1"]
    [best] = ids(recalled(remembered, "--limit", "1"))
    returned = remembered("explain", *asked, best)
    assert returned.exit_code == 0
    assert returned.stdout.startswith(f"'{best}' returned at rank 1\n  cue ")
    second = remembered("explain", *asked, ({"call", "rule"} - {best}).pop())
    assert "dropped at stage selection: rank 2 over limit 1" in second.stdout
    assert "  it has score 0." in second.stdout
    assert "  the last one returned has score 0." in second.stdout
    expired = json.loads(remembered("explain", *asked, "old", "--json").stdout)
    assert (expired["stage"], expired["rank"], expired["visible"]) == ("gate", None, True)
    assert expired["reason"].startswith("valid until 2026-05-31T22:00:00+00:00, asked at ")
    assert expired["last_score"] > 0.0


def test_explain_makes_no_difference_between_hidden_and_missing(remembered: Command) -> None:
    asked = ["--scope", SESSION, "--cue", "refund", "--no-embed"]
    hidden, missing = (remembered("explain", *asked, name) for name in ("tomas", "nobody"))
    assert hidden.exit_code == missing.exit_code == 1
    assert hidden.stdout == missing.stdout == ""
    assert hidden.stderr.replace("tomas", "nobody") == missing.stderr
    document = json.loads(remembered("explain", *asked, "tomas", "--json").stdout)
    assert document == {"record_id": "tomas", "visible": False}


def test_list_pages_newest_first(remembered: Command) -> None:
    def page(*arguments: str) -> list[str]:
        result = remembered("list", "--scope", "org:acme/user:mara", "--limit", "2", "--json", *arguments)
        return ids(json.loads(result.stdout))

    first = page()
    assert len(first) == 2
    assert set(first + page("--after", first[-1])) == {"mara", "rule", "old"}
    assert page("--exactly") == ["mara"]
    assert page("--kind", "rule") == ["rule"]
    nothing = remembered("list", "--scope", "org:acme", "--after", "tomas")
    assert nothing.exit_code == 2


def test_count_counts_what_is_visible(remembered: Command) -> None:
    assert remembered("count", "--scope", SESSION).stdout == "4\n"
    document = json.loads(remembered("count", "--scope", "org:other", "--json").stdout)
    assert document == {"scope": "org:other", "count": 1}


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["--scope", "acme"], "scope must be"),
        (["--scope", "org:a", "--limit", "0"], "limit must be"),
        (["--scope", "org:a", "--layer", "foo"], "layers must be"),
        (["--scope", "org:a", "--as-of", "2026-01-01"], "--as-of must be a time with its zone"),
        (["--scope", "org:a", "--as-of", "soon"], "--as-of must be a time with its zone"),
        (["--scope", "org:a", "--where", "{"], "--where must be JSON"),
        (["--scope", "org:a", "--where", "[]"], "--where must be a JSON object"),
        (["--scope", "org:a", "--weight", "colour=1"], "--weight must be SIGNAL=WEIGHT"),
        (["--scope", "org:a", "--weight", "cue=x"], "--weight must be SIGNAL=WEIGHT"),
        (["--scope", "org:a", "--weight", "cue=-1"], "cue must be"),
        (["--scope", "org:a", "--hops", "1", "--decay", "0"], "decay must be"),
        (["--scope", "org:a", "--dsn", "mysql://x"], "dsn must be"),
        (["--scope", "org:a", "--data", "here"], "give one"),
        (["--scope", "org:a", "--colour"], "No such option"),
        ([], "--scope"),
    ],
)
def test_what_was_given_wrongly_ends_with_code_2(
    command: Command, arguments: list[str], message: str
) -> None:
    where = [] if "--dsn" in arguments else ["--dsn", NOWHERE]
    result = command("recall", "--no-embed", *where, *arguments)
    assert result.exit_code == 2
    assert message in result.stderr
    assert result.stdout == ""


def test_a_server_out_of_reach_ends_with_code_3_and_no_answer(command: Command) -> None:
    result = command("recall", "--scope", "org:a", "--no-embed", "--json", "--dsn", NOWHERE)
    assert result.exit_code == 3
    assert result.stderr.startswith("unavailable: ")
    assert "secret" not in result.stderr
    assert result.stdout == ""


def test_a_database_that_was_never_migrated_names_the_command(command: Command, empty_database: str) -> None:
    result = command("recall", "--scope", "org:a", "--cue", "x", "--no-embed", "--dsn", empty_database)
    assert result.exit_code == 3
    assert "symfonic-pg migrate" in result.stderr
