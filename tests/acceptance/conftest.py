"""The command as people run it: in this process for speed, as a process of its own where that matters."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any, Protocol

import pytest
from typer.testing import CliRunner, Result

from symfonic_pg.cli.app import app

# A server that is not there.
NOWHERE = "postgresql://nobody:secret@127.0.0.1:1/none"


class Command(Protocol):
    """Runs `symfonic-pg` with these arguments."""

    def __call__(self, *arguments: str, stdin: str | bytes | None = None) -> Result: ...


class Memories(Protocol):
    """Writes lines to a file and gives its path; those that are not text or bytes are written as JSON."""

    def __call__(self, *lines: Mapping[str, Any] | str | bytes, name: str = "memories.jsonl") -> Path: ...


@pytest.fixture
def environment(monkeypatch: pytest.MonkeyPatch) -> pytest.MonkeyPatch:
    """An environment in which nothing decides how output looks, nor where the memories are."""
    for name in (
        "SYMFONIC_PG_DSN",
        "COLUMNS",
        "FORCE_COLOR",
        "NO_COLOR",
        "TTY_COMPATIBLE",
        "TTY_INTERACTIVE",
    ):
        monkeypatch.delenv(name, raising=False)
    return monkeypatch


@pytest.fixture
def command(environment: pytest.MonkeyPatch) -> Command:
    """The command, told nothing about where memories are."""

    def run(*arguments: str, stdin: str | bytes | None = None) -> Result:
        result = CliRunner().invoke(app, arguments, input=stdin)
        assert result.exception is None or isinstance(result.exception, SystemExit), result.exception
        assert "Traceback" not in result.output
        return result

    return run


@pytest.fixture
def symfonic(command: Command, database: str, environment: pytest.MonkeyPatch) -> Command:
    """The command on a migrated database of the test's own, which the environment names."""
    environment.setenv("SYMFONIC_PG_DSN", database)
    return command


@pytest.fixture
def memories(tmp_path: Path) -> Memories:
    """A file of memories."""

    def write(*lines: Mapping[str, Any] | str | bytes, name: str = "memories.jsonl") -> Path:
        path = tmp_path / name
        path.write_bytes(b"".join(encoded(line) + b"\n" for line in lines))
        return path

    return write


@pytest.fixture
def remembered(symfonic: Command, memories: Memories) -> Command:
    """The command on a database that holds a few memories of two tenants."""
    file = memories(*FEW)
    result = symfonic("remember", str(file), "--no-embed")
    assert result.exit_code == 0, result.output
    return symfonic


def memory(record_id: str = "a", **fields: Any) -> dict[str, Any]:
    """A line that holds the least a memory needs, and these fields."""
    return {"record_id": record_id, "scope": "org:acme", "layer": "semantic", "text": "A refund.", **fields}


def encoded(line: Mapping[str, Any] | str | bytes) -> bytes:
    if isinstance(line, bytes):
        return line
    return (line if isinstance(line, str) else json.dumps(line)).encode()


def process(arguments: Iterable[str]) -> subprocess.Popen[str]:
    """The command as a process of its own, with pipes for all three streams."""
    return subprocess.Popen(
        [sys.executable, "-m", "symfonic_pg.cli", *arguments],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )


FEW = (
    memory("rule", text="Refunds are paid within 14 days.", salience=0.8, kind="rule"),
    memory("mara", scope="org:acme/user:mara", text="Mara may extend the refund to 30 days.", salience=0.6),
    memory("tomas", scope="org:acme/user:tomas", text="Tomas may not extend a refund."),
    memory(
        "call", scope="org:acme/user:mara/session:s1", layer="episodic", text="Mr Klein asks for a refund.",
        metadata={"channel": "phone"},
    ),
    memory("old", text="Refunds are paid within 60 days.", valid_until="2026-06-01T00:00:00+02:00"),
    memory("theirs", scope="org:other", text="Their refund is none of our business."),
)  # fmt: skip
