"""Statements come from files whose headers tell the truth, and only checked names enter them."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from symfonic_pg.assets import asset_dir
from symfonic_pg.memory.errors import MemoryContractError, SymfonicError
from symfonic_pg.postgres import statements
from symfonic_pg.postgres.statements import Statement, load_statement, quoted_schema

ANY = {
    "vectors": "public",
    "table": "t",
    "index": "i",
    "columns": ("a",),
    "dimension": 3,
    "model": 1,
    "backend": 1,
}


def every_query() -> list[str]:
    return sorted(path.stem for path in (asset_dir("sql") / "queries").glob("*.sql"))


@pytest.mark.parametrize("name", every_query())
def test_every_shipped_statement_loads_and_its_header_is_true(name: str) -> None:
    statement = load_statement(name, **ANY)  # raises where header and text differ
    assert statement.name == name
    assert statement.text
    assert not statement.text.endswith(";")


@pytest.mark.parametrize("name", every_query())
def test_every_list_is_sent_as_texts(name: str) -> None:
    # About any other array asyncpg asks the server first: three statements more on each connection.
    arrays = re.findall(r"\$\d+::([\w ]+?)\[\]", load_statement(name, **ANY).text)
    assert set(arrays) <= {"text"}


@pytest.fixture
def queries(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder of statements of the test's own."""
    folder = tmp_path / "queries"
    folder.mkdir()
    monkeypatch.setattr(statements, "asset_dir", lambda _: tmp_path)
    load_statement.cache_clear()
    yield folder
    load_statement.cache_clear()


def test_names_are_put_in_quoted_and_other_braces_stay(queries: Path) -> None:
    (queries / "q.sql").write_text(
        "-- q: a test\n-- that goes on.\n-- params: $1 id text,\n--   $2 tags text[]\n"
        "SELECT '{}'::text[], '{\"a\": 1}' FROM {schema}.t -- not $3\n"
        "WHERE a = $1::text AND b = $2::text[];\n"
    )
    statement = load_statement("q", schema="Mine")
    assert statement == Statement(
        "q",
        "SELECT '{}'::text[], '{\"a\": 1}' FROM \"Mine\".t -- not $3\nWHERE a = $1::text AND b = $2::text[]",
        schema="Mine",
    )
    assert statement.bind("x", ["y"]) == Statement("q", statement.text, ("x", ["y"]), "Mine")


def test_a_statement_is_read_once_for_each_set_of_names(queries: Path) -> None:
    (queries / "q.sql").write_text("-- q: a test\n-- params: none\nSELECT {dimension}, {model}")
    first = load_statement("q", dimension=384, model=2)
    assert first.text == "SELECT 384, 2"
    assert load_statement("q", dimension=384, model=2) is first
    assert load_statement("q", dimension=3, model=2).text == "SELECT 3, 2"


@pytest.mark.parametrize(
    ("source", "complaint"),
    [
        ("SELECT 1", "has to start with '-- q: …'"),
        ("-- q: no parameters named\nSELECT 1", "a line '-- params: …'"),
        ("-- other: a test\n-- params: none\nSELECT 1", "has to start with '-- q: …'"),
        ("-- q: a test\n-- params: none\nSELECT $1::text", r"declares \[\] and uses \[1\]"),
        ("-- q: a test\n-- params: $1 a, $2 b\nSELECT $1::text", r"declares \[1, 2\] and uses \[1\]"),
        ("-- q: a test\n-- params: $2 a\nSELECT $2::text", r"declares \[2\] and uses \[2\]"),
        ("-- q: a test\n-- params: none\nSELECT {model}", "needs a value for {model}"),
    ],
)
def test_a_wrong_file_is_refused(queries: Path, source: str, complaint: str) -> None:
    (queries / "q.sql").write_text(source)
    with pytest.raises(SymfonicError, match=complaint):
        load_statement("q")


def test_a_statement_that_is_not_there_is_named() -> None:
    with pytest.raises(SymfonicError, match="no statement 'nowhere'"):
        load_statement("nowhere")


def test_an_unknown_placeholder_is_refused() -> None:
    with pytest.raises(SymfonicError, match="no placeholder is called tenant"):
        load_statement("copy_into", tenant="x")


@pytest.mark.parametrize("schema", ["", "a b", 'a"b', "a;b", "1a", "a-b", "a" * 64, "schöma", "a\n"])
def test_a_schema_that_is_no_plain_name_is_refused(schema: str) -> None:
    with pytest.raises(MemoryContractError, match="schema must be a letter or underscore") as refused:
        quoted_schema(schema)
    assert refused.value.got == schema


@pytest.mark.parametrize("schema", ["a", "_a1", "A" * 63, "pg_temp"])
def test_a_plain_name_is_quoted(schema: str) -> None:
    assert quoted_schema(schema) == f'"{schema}"'


@pytest.mark.parametrize(
    "wrong", [{"columns": ("a", 'b"')}, {"columns": ()}, {"columns": "ab"}, {"table": "t;"}, {"table": 1}]
)
def test_no_other_name_enters_unchecked(wrong: dict[str, object]) -> None:
    with pytest.raises(MemoryContractError):
        load_statement("copy_into", **{"table": "t", "columns": ("a",), **wrong})


@pytest.mark.parametrize("number", [0, -1, True, "1", "1; drop"])
def test_dimension_and_model_are_positive_numbers(queries: Path, number: object) -> None:
    (queries / "q.sql").write_text("-- q: a test\n-- params: none\nSELECT {dimension}")
    with pytest.raises(MemoryContractError, match="dimension must be a positive integer"):
        load_statement("q", dimension=number)
