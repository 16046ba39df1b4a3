"""README and docs/: every block of Python runs, every link leads somewhere, every command exists."""

from __future__ import annotations

import re
import tomllib
from pathlib import Path

import pytest

from symfonic_pg.cli.app import app

ROOT = Path(__file__).parents[2]
DOCUMENTS = [ROOT / "README.md", ROOT / "CHANGELOG.md", *sorted((ROOT / "docs").glob("**/*.md"))]
BLOCK = re.compile(r"^```(?P<language>\w*)\n(?P<code>.*?)^```$", re.MULTILINE | re.DOTALL)
LINK = re.compile(r"\]\((?!https?:|#)(?P<target>[^)#]+)")


def name_of(document: Path) -> str:
    return document.relative_to(ROOT).as_posix()


def blocks(document: Path, language: str) -> list[tuple[int, str]]:
    """The blocks of a language, each with the number of its first line."""
    text = document.read_text(encoding="utf-8")
    return [
        (text.count("\n", 0, found.start("code")) + 1, found["code"])
        for found in BLOCK.finditer(text)
        if found["language"] == language
    ]


with_python = [document for document in DOCUMENTS if blocks(document, "python")]


@pytest.mark.parametrize("document", with_python, ids=name_of)
def test_every_block_of_python_runs(
    document: Path, database: str, server_home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The blocks of a document share a namespace, in order; paths are relative, servers are real."""
    monkeypatch.chdir(server_home)
    monkeypatch.setenv("SYMFONIC_PG_DSN", database)
    namespace: dict[str, object] = {"__name__": name_of(document)}
    for line, code in blocks(document, "python"):
        # Padded, so that a traceback names the line of the document.
        exec(compile("\n" * (line - 1) + code, str(document), "exec", dont_inherit=True), namespace)


def test_the_readme_runs_with_a_server_and_without() -> None:
    code = [block for _, block in blocks(ROOT / "README.md", "python")]
    assert any("MemoryStore.embedded" in block for block in code)
    assert any("LexicalCandidateSource" in block for block in code)


@pytest.mark.parametrize("document", DOCUMENTS, ids=name_of)
def test_every_link_leads_to_a_file(document: Path) -> None:
    for found in LINK.finditer(document.read_text(encoding="utf-8")):
        assert (document.parent / found["target"]).exists(), found["target"]


@pytest.mark.parametrize("document", DOCUMENTS, ids=name_of)
def test_every_command_that_is_shown_exists(document: Path) -> None:
    known = {command.name for command in app.registered_commands}
    shown = re.findall(r"symfonic-pg ([a-z]+)\b", document.read_text(encoding="utf-8"))
    assert set(shown) <= known


def test_the_readme_names_every_command_and_extra() -> None:
    readme = (ROOT / "README.md").read_text(encoding="utf-8")
    for command in app.registered_commands:
        assert f"`{command.name}`" in readme or f"symfonic-pg {command.name}" in readme
    settings = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))
    for extra in settings["project"]["optional-dependencies"]:
        assert f"`{extra}`" in readme
