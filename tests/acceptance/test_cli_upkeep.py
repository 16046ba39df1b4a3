"""symfonic-pg migrate and doctor, and how the command finds its place and ends."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import psycopg
import pytest
from psycopg import sql

import symfonic_pg.cli
from symfonic_pg import __version__
from symfonic_pg.cli import place

from .conftest import NOWHERE, Command, Memories, memory, process


def test_migrate_prepares_an_empty_database_and_finds_nothing_to_do_again(
    command: Command, empty_database: str
) -> None:
    first = command("migrate", "--dsn", empty_database)
    assert first.exit_code == 0
    assert "migrated from nothing to revision 0" in first.stderr
    again = command("migrate", "--dsn", empty_database)
    assert again.exit_code == 0
    assert "is already at revision 0" in again.stderr
    assert first.stdout == again.stdout == ""
    assert command("count", "--scope", "org:a", "--dsn", empty_database).stdout == "0\n"


def test_migrate_takes_another_schema(command: Command, empty_database: str, memories: Memories) -> None:
    elsewhere = ["--dsn", empty_database, "--schema", "Elsewhere"]
    assert command("migrate", *elsewhere).exit_code == 0
    assert command("remember", str(memories(memory())), "--no-embed", *elsewhere).exit_code == 0
    assert command("count", "--scope", "org:acme", *elsewhere).stdout == "1\n"


def test_migrate_prints_a_script_without_a_server(command: Command) -> None:
    result = command("migrate", "--sql", "--schema", "elsewhere", "--vectors", "extensions")
    assert result.exit_code == 0
    assert result.stdout.startswith("BEGIN;")
    assert 'CREATE SCHEMA "elsewhere"' in result.stdout
    assert 'CREATE EXTENSION vector WITH SCHEMA "extensions"' in result.stdout
    assert "COMMIT;" in result.stdout
    assert result.stderr == ""


def test_doctor_ends_well_on_warnings(symfonic: Command) -> None:
    result = symfonic("doctor", "--json")
    assert result.exit_code == 0
    report = json.loads(result.stdout)
    assert report["ok"] is True
    statuses = {finding["name"]: finding["status"] for finding in report["findings"]}
    assert statuses["revision"] == "ok"
    assert "failure" not in statuses.values()
    shown = symfonic("doctor")
    assert "ok       revision" in shown.stdout


def test_doctor_fails_with_what_mends_it(command: Command, empty_database: str) -> None:
    result = command("doctor", "--json", "--dsn", empty_database)
    assert result.exit_code == 1
    report = json.loads(result.stdout)
    assert report["ok"] is False
    [revision] = [finding for finding in report["findings"] if finding["name"] == "revision"]
    assert (revision["status"], revision["fix"]) == ("failure", "symfonic-pg migrate")
    shown = command("doctor", "--dsn", empty_database)
    assert "failure  revision" in shown.stdout
    assert "                      symfonic-pg migrate\n" in shown.stdout


def test_doctor_reports_a_server_out_of_reach(command: Command) -> None:
    result = command("doctor", "--json", "--dsn", NOWHERE)
    assert result.exit_code == 1
    assert json.loads(result.stdout)["findings"][0]["name"] == "server"
    assert "secret" not in result.output


def test_doctor_asks_about_a_role(symfonic: Command, database: str) -> None:
    role = sql.Identifier(f"poor_{os.getpid()}")
    with psycopg.connect(database, autocommit=True) as connection:
        connection.execute(sql.SQL("CREATE ROLE {}").format(role))
        try:
            result = symfonic("doctor", "--role", f"poor_{os.getpid()}", "--json")
        finally:
            connection.execute(sql.SQL("DROP ROLE {}").format(role))
    assert result.exit_code == 1
    findings = json.loads(result.stdout)["findings"]
    assert any(one["name"] == "rights" and one["fix"].startswith("GRANT") for one in findings), findings


def test_the_embedded_server_keeps_what_it_was_given_and_says_where(
    command: Command, memories: Memories, server_home: Path
) -> None:
    data = server_home / "data of mine"
    file = memories(memory("a"))
    result = command("remember", str(file), "--no-embed", "--data", str(data), "--json")
    assert result.exit_code == 0, result.output
    assert json.loads(result.stdout)["inserted"] == 1
    assert result.stderr == f"embedded PostgreSQL under {data}\n"
    found = command("recall", "--scope", "org:acme", "--no-embed", "--data", str(data), "--json")
    assert json.loads(found.stdout)["memories"][0]["record_id"] == "a"


def test_the_embedded_server_is_the_last_resort(
    command: Command, server_home: Path, environment: pytest.MonkeyPatch
) -> None:
    environment.setenv("XDG_DATA_HOME", str(server_home))
    environment.setattr(sys, "platform", "linux")
    result = command("count", "--scope", "org:acme")
    assert result.exit_code == 0, result.output
    assert result.stderr == f"embedded PostgreSQL under {server_home / 'symfonic-pg'}\n"


def test_an_option_stands_above_the_environment(command: Command, environment: pytest.MonkeyPatch) -> None:
    environment.setenv(place.DSN_VARIABLE, NOWHERE)
    assert command("count", "--scope", "org:a").exit_code == 3
    # A file in the way of the folder: proof enough that the environment was not asked.
    result = command("count", "--scope", "org:a", "--data", __file__)
    assert result.exit_code == 1
    assert __file__ in result.stderr


@pytest.mark.parametrize(
    ("platform", "variable", "expected"),
    [
        ("linux", "", "/home/somebody/.local/share/symfonic-pg"),
        ("linux", "not/absolute", "/home/somebody/.local/share/symfonic-pg"),
        ("linux", "/srv/data", "/srv/data/symfonic-pg"),
        ("darwin", "", "/home/somebody/Library/Application Support/symfonic-pg"),
    ],
)
def test_the_default_folder_is_where_the_system_keeps_such_data(
    environment: pytest.MonkeyPatch, platform: str, variable: str, expected: str
) -> None:
    environment.setenv("HOME", "/home/somebody")
    environment.setenv("XDG_DATA_HOME", variable)
    environment.setattr(sys, "platform", platform)
    assert str(place.default_folder()) == expected


def test_without_its_extra_the_command_says_what_to_install(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(symfonic_pg.cli, "find_spec", lambda name: None)
    with pytest.raises(SystemExit, match=r"needs typer and rich: pip install 'symfonic-pg\[cli\]'"):
        symfonic_pg.cli.main()


def test_without_the_local_model_words_alone_answer_and_a_note_says_so(
    remembered: Command, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("symfonic_pg.cli.embedding.default_embedder", lambda: None)
    result = remembered("recall", "--scope", "org:acme", "--cue", "refund", "--json")
    assert result.exit_code == 0
    assert "pip install 'symfonic-pg[local]'" in result.stderr
    assert json.loads(result.stdout)["sources"]["lexical"] == 1


def test_version_and_help(command: Command) -> None:
    assert command("--version").stdout == f"symfonic-pg {__version__}\n"
    shown = command("--help").stdout
    names = ("demo", "migrate", "doctor", "remember", "recall", "explain", "list", "count", "forget")
    assert all(name in shown for name in names)
    for name in names:
        assert command(name, "-h").exit_code == 0


def test_a_reader_that_goes_away_is_no_error(database: str, memories: Memories, command: Command) -> None:
    lines = [memory(f"r{number}", text="A long text. " * 50) for number in range(500)]
    command("remember", str(memories(*lines)), "--no-embed", "--dsn", database)
    with process(["list", "--scope", "org:acme", "--limit", "500", "--dsn", database]) as running:
        assert running.stdout is not None
        assert running.stderr is not None
        running.stdout.readline()
        running.stdout.close()
        assert running.stderr.read() == ""


def test_another_encoding_gets_escapes_instead_of_an_error(
    database: str, memories: Memories, command: Command
) -> None:
    file = memories(memory("a", text="返品 é"))
    command("remember", str(file), "--no-embed", "--dsn", database)
    options = ["--scope", "org:acme", "--dsn", database]
    env = {**os.environ, "PYTHONIOENCODING": "latin-1", "PYTHONUTF8": "0"}
    base = [sys.executable, "-m", "symfonic_pg.cli"]
    as_json = subprocess.run([*base, "list", "--json", *options], env=env, capture_output=True, check=True)
    assert json.loads(as_json.stdout)["memories"][0]["text"] == "返品 é"
    shown = subprocess.run([*base, "list", *options], env=env, capture_output=True, check=False)
    assert shown.returncode == 0, shown.stderr
    assert "?? é" in shown.stdout.decode("latin-1")
