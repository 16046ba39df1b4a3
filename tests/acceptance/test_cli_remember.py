"""symfonic-pg remember: JSON lines in, a whole batch or none of it, and bad lines by name."""

from __future__ import annotations

import json
import signal
import time
from typing import Any

import psycopg
import pytest

from .conftest import NOWHERE, Command, Memories, memory, process

SHOWN = "2026-09-15T09:00:00+02:00"


def counted(run: Command, scope: str = "org:acme") -> int:
    return int(run("count", "--scope", scope).stdout)


def test_a_file_is_remembered_and_counted(symfonic: Command, memories: Memories) -> None:
    file = memories(memory("a"), memory("b", text="B"), memory("c", scope="org:acme/user:u1"))
    result = symfonic("remember", str(file), "--no-embed")
    assert result.exit_code == 0
    assert result.stdout == "3 inserted, 0 updated, 0 unchanged; 3 of them without an embedding\n"
    assert counted(symfonic) == 2
    assert counted(symfonic, "org:acme/user:u1") == 3


def test_the_same_file_again_changes_nothing_and_json_says_so(symfonic: Command, memories: Memories) -> None:
    symfonic("remember", str(memories(memory("a"), memory("b"))), "--no-embed")
    file = memories(memory("a"), memory("b", text="Another text."))
    result = symfonic("remember", str(file), "--no-embed", "--json")
    assert json.loads(result.stdout) == {
        "inserted": 0, "updated": 1, "unchanged": 1, "without_embedding": 2, "refused": 0,
    }  # fmt: skip


def test_stdin_is_read_for_a_dash(symfonic: Command) -> None:
    lines = json.dumps(memory("a")) + "\n\n" + json.dumps(memory("b")) + "\n" + '{"record_id": 1'
    result = symfonic("remember", "-", "--no-embed", stdin=lines)
    assert result.exit_code == 2
    assert "-:4: not JSON" in result.stderr
    result = symfonic("remember", "-", "--no-embed", stdin=lines.rsplit("\n", 1)[0])
    assert result.exit_code == 0
    assert counted(symfonic) == 2


def test_every_field_arrives(symfonic: Command, memories: Memories) -> None:
    given = memory(
        "a", scope="org:acme/user:a%2Fb", layer="prospective", salience=0.25, kind="promise",
        language="german",
        created_at="2026-01-01T00:00:00+00:00", updated_at="2026-02-01T00:00:00+00:00", access_count=3,
        last_accessed_at="2026-03-01T00:00:00+00:00", valid_from="2026-01-02T00:00:00+00:00",
        valid_until="2027-01-01T00:00:00+00:00", expires_at="2028-01-01T00:00:00+00:00",
        metadata={"case": 7, "tags": ["x", None]},
    )  # fmt: skip
    symfonic("remember", str(memories(given)), "--no-embed")
    listed = symfonic("list", "--scope", "org:acme/user:a%2Fb", "--json")
    assert json.loads(listed.stdout) == {"memories": [given]}


def test_a_bad_line_keeps_its_batch_out_and_no_other(symfonic: Command, memories: Memories) -> None:
    lines: list[dict[str, Any]] = [memory(f"r{number:04}") for number in range(2100)]
    lines[1499]["salience"] = 1.5
    del lines[1501]["text"]
    file = memories(*lines)
    result = symfonic("remember", str(file), "--no-embed", "--json")
    assert result.exit_code == 2
    assert f"{file}:1500: salience must be" in result.stderr
    assert f"{file}:1502: no text" in result.stderr
    report = json.loads(result.stdout)
    assert (report["inserted"], report["refused"]) == (1100, 1000)
    assert counted(symfonic) == 1100
    left_out = json.loads(symfonic("list", "--scope", "org:acme", "--limit", "2100", "--json").stdout)
    assert {one["record_id"] for one in left_out["memories"]} == {
        f"r{number:04}" for number in (*range(1000), *range(2000, 2100))
    }


@pytest.mark.parametrize(
    ("line", "reason"),
    [
        (memory(colour="red"), "unknown key 'colour'"),
        (memory(created_at_given=True), "unknown key 'created_at_given'"),
        ({"record_id": "a", "scope": "org:acme"}, "no layer, no text"),
        ("[1, 2]", "not a JSON object"),
        ("{'record_id': 'a'}", "not JSON: "),
        (b'{"record_id": "\xff"}', "not UTF-8 at byte 15"),
        ("[" * 100_000, "not JSON"),
        ('{"record_id": "a", "record_id": "b"}', "key 'record_id' twice in one object"),
        ('{"record_id": "a", "salience": NaN}', "NaN is no JSON number"),
        (memory(text=None), "text must be"),
        (memory(text="a\0b"), "text must be"),
        (memory(text="\ud800"), "text must be"),
        (memory(salience="high"), "salience must be"),
        (memory(scope="acme"), "scope must be"),
        (memory(scope=["org", "acme"]), "scope must be"),
        (memory(layer="working"), "layer must be one of those searched"),
        (memory(language="klingon"), "language must be a known text search configuration"),
        (memory(created_at="2026-09-15"), "created_at must be an aware datetime"),
        (memory(expires_at="soon"), f"expires_at must be a time, as {SHOWN}"),
        (memory(expires_at=5), f"expires_at must be a time, as {SHOWN}"),
        (memory(metadata=[1]), "metadata must be a JSON object"),
        (memory(embedding=[1.0, 0.0]), "an embedding needs the name of its model: --model"),
    ],
)
def test_a_bad_line_is_named_with_its_reason(
    command: Command, memories: Memories, line: dict[str, Any] | str | bytes, reason: str
) -> None:
    file = memories(memory("good"), line)
    # Nothing of the batch is written, so that nobody notices that this server is not there.
    result = command("remember", str(file), "--no-embed", "--dsn", NOWHERE)
    assert result.exit_code == 2
    assert f"{file}:2: {reason}" in result.stderr
    good = memories(memory("good"), name="good.jsonl")
    assert command("remember", str(good), "--no-embed", "--dsn", NOWHERE).exit_code == 3


def test_a_reason_never_repeats_the_text(command: Command, memories: Memories) -> None:
    file = memories(memory(text="a secret\0"), memory(metadata={"pin": "4711\0"}))
    result = command("remember", str(file), "--no-embed", "--dsn", NOWHERE)
    assert result.stderr.count(str(file)) == 2
    assert "secret" not in result.output
    assert "4711" not in result.output


def test_a_record_of_another_scope_is_named_by_its_line_and_the_scope_is_not(
    symfonic: Command, memories: Memories
) -> None:
    symfonic("remember", str(memories(memory("a", scope="org:acme/user:hidden"))), "--no-embed")
    file = memories(memory("b"), memory("a", scope="org:acme/user:u2"))
    result = symfonic("remember", str(file), "--no-embed")
    assert result.exit_code == 2
    assert f"{file}:2: record_id must be new or written at its own scope" in result.stderr
    assert "hidden" not in result.output
    assert counted(symfonic) == 0


def test_embeddings_of_a_named_model_are_kept(symfonic: Command, memories: Memories, database: str) -> None:
    file = memories(memory("a", embedding=[3.0, 4.0]), memory("b", embedding=None), memory("c"))
    result = symfonic("remember", str(file), "--no-embed", "--model", "mine", "--json")
    assert result.exit_code == 0, result.output
    assert json.loads(result.stdout)["without_embedding"] == 2
    with psycopg.connect(database) as connection:
        kept = connection.execute("SELECT embedding::text FROM symfonic.embeddings").fetchall()
    [(vector,)] = kept
    assert json.loads(vector) == pytest.approx([0.6, 0.8], abs=1e-3)


@pytest.mark.parametrize(
    ("embedding", "reason"),
    [
        ([1.0, 2.0, 3.0], "model 'mine' has 2 dimensions, this one has 3"),
        ([0.0, 0.0], "embedding must be"),
        ([1.0, "x"], "embedding must be"),
        ("no list", "embedding must be"),
        ([1e400, 1.0], "embedding must be"),
    ],
)
def test_a_bad_embedding_is_named_with_its_line(
    symfonic: Command, memories: Memories, embedding: object, reason: str
) -> None:
    symfonic("remember", str(memories(memory("a", embedding=[3.0, 4.0]))), "--no-embed", "--model", "mine")
    line = json.dumps(memory("c", embedding=embedding)).replace("Infinity", "1e400")
    file = memories(memory("b"), line)
    result = symfonic("remember", str(file), "--no-embed", "--model", "mine")
    assert result.exit_code == 2
    assert f"{file}:2: " in result.stderr
    assert reason in result.stderr
    assert counted(symfonic) == 1


def test_blank_lines_and_a_byte_order_mark_are_passed_over(command: Command, memories: Memories) -> None:
    file = memories(b"\xef\xbb\xbf" + json.dumps(memory("a")).encode(), "", "   ", "{}")
    result = command("remember", str(file), "--no-embed", "--dsn", NOWHERE)
    assert f"{file}:4: no record_id, no scope, no layer, no text" in result.stderr
    assert result.stderr.count(str(file)) == 1


def test_an_empty_file_is_no_error(symfonic: Command, memories: Memories) -> None:
    assert symfonic("remember", str(memories()), "--no-embed").exit_code == 0


def test_a_file_of_nothing_but_faults_does_not_flood_the_terminal(
    command: Command, memories: Memories
) -> None:
    file = memories(*["nonsense"] * 250)
    result = command("remember", str(file), "--no-embed", "--dsn", NOWHERE)
    assert result.stderr.count(f"{file}:") == 100
    assert "and 150 more bad lines" in result.stderr


def test_a_missing_file_is_a_line_and_not_a_traceback(command: Command) -> None:
    result = command("remember", "nowhere.jsonl", "--no-embed", "--dsn", NOWHERE)
    assert result.exit_code == 1
    assert "nowhere.jsonl" in result.stderr


def test_forget_deletes_at_exactly_the_scope(remembered: Command) -> None:
    result = remembered("forget", "--scope", "org:acme/user:mara", "rule", "mara", "nothing", "--json")
    assert json.loads(result.stdout) == {"forgotten": 1}
    assert counted(remembered, "org:acme/user:mara") == 2


@pytest.mark.slow
def test_ctrl_c_ends_a_wait_for_input_at_once_and_what_was_written_stays(database: str) -> None:
    running = process(["remember", "-", "--no-embed", "--dsn", database])
    with running:
        assert running.stdin is not None
        running.stdin.writelines(json.dumps(memory(f"r{number}")) + "\n" for number in range(1000))
        running.stdin.flush()
        with psycopg.connect(database, autocommit=True) as connection:
            give_up = time.monotonic() + 60
            while connection.execute("SELECT count(*) FROM symfonic.memories").fetchone() != (1000,):
                assert time.monotonic() < give_up
                time.sleep(0.05)
        running.send_signal(signal.SIGINT)
        assert running.wait(timeout=20) == 130
        assert running.stderr is not None
        assert running.stderr.read() == "interrupted\n"
