"""SQL lives in sql/, where it can be read, explained and diffed; Python only names it."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
# The contract suite knows no database; its hostile inputs look like SQL on purpose.
SOURCES = [
    path
    for folder in ("symfonic_pg", "alembic")
    for path in sorted((ROOT / folder).rglob("*.py"))
    if "testing" not in path.parts
]

STATEMENT = re.compile(
    r"""
      \b(?:SELECT|VALUES)\s*[\w('"*$]  | \bINSERT\s+INTO\b | \bDELETE\s+FROM\b | \bUPDATE\s+\S+\s+SET\b
    | \b(?:CREATE|ALTER|DROP)\s+(?:OR\s+REPLACE\s+|UNIQUE\s+)?
        (?:DATABASE|EXTENSION|FUNCTION|INDEX|POLICY|ROLE|SCHEMA|SEQUENCE|TABLE|TRIGGER|TYPE|VIEW)\b
    | \b(?:GRANT|REVOKE)\s+\w+\s+ON\b | \bSET\s+(?:LOCAL|SESSION|ROLE|TRANSACTION)\b | \bSET\s+\w+\s*=
    | \bWITH\s+RECURSIVE\b | \bCOPY\s+\S+.*\b(?:FROM|TO)\b
    | \b(?:EXPLAIN|TRUNCATE|VACUUM|REINDEX|ANALYZE)\s+\w
    | ^\s*(?:BEGIN|COMMIT|ROLLBACK|SAVEPOINT|RELEASE|SHOW|DISCARD|RESET|LISTEN|NOTIFY|DEALLOCATE)\b
    """,
    re.VERBOSE,
)
# Lower case is prose more often than not: only what starts like a statement.
LOWER_CASE = re.compile(
    r"^\s*(?:select\s+(?:[\d*$'(]|\w+\s*[(,]|.*\bfrom\b)|insert\s+into\s|delete\s+from\s|update\s+\S+\s+set\s|"
    r"(?:create|alter|drop)\s+(?:extension|function|index|schema|table)\s|(?:begin|commit|rollback)\s*;?\s*$)",
    re.DOTALL,
)


def sql_strings(source: str) -> Iterator[tuple[int, str]]:
    """Line and text of every string that reads like SQL, docstrings left out."""
    tree = ast.parse(source)
    docstrings = {
        id(node.body[0].value)
        for node in ast.walk(tree)
        if isinstance(node, (ast.Module, ast.ClassDef, ast.FunctionDef, ast.AsyncFunctionDef))
        and node.body
        and isinstance(node.body[0], ast.Expr)
    }
    for node in ast.walk(tree):
        if isinstance(node, ast.Constant) and isinstance(node.value, str) and id(node) not in docstrings:
            text = node.value
        elif isinstance(node, ast.JoinedStr):
            text = "".join(str(part.value) if isinstance(part, ast.Constant) else "x" for part in node.values)
        else:
            continue
        if STATEMENT.search(text) or LOWER_CASE.search(text):
            yield node.lineno, text


@pytest.mark.parametrize("path", SOURCES, ids=lambda path: str(path.relative_to(ROOT)))
def test_no_sql_string_in_python(path: Path) -> None:
    assert list(sql_strings(path.read_text(encoding="utf-8"))) == []


@pytest.mark.parametrize(
    "statement",
    [
        "SELECT 1",
        "select count(*) from memories",
        "INSERT INTO t VALUES (1)",
        "UPDATE t SET a = 1",
        "CREATE UNIQUE INDEX i ON t (a)",
        "SET LOCAL hnsw.ef_search = 200",
        "SET jit = off",
        "COMMIT",
        "begin",
        "GRANT USAGE ON SCHEMA s TO r",
        "COPY t FROM STDIN",
        "WITH RECURSIVE w AS (",
        "\n    DELETE FROM t",
    ],
)
def test_the_detector_sees_sql(statement: str) -> None:
    assert list(sql_strings(f"run({statement!r})"))
    assert list(sql_strings(f"run(f{statement + '{x}'!r})"))


@pytest.mark.parametrize(
    "prose",
    [
        "select one of the drivers",
        "nothing was committed",
        "update the package, then migrate",
        "Values lie in 0",
    ],
)
def test_the_detector_lets_prose_pass(prose: str) -> None:
    assert not list(sql_strings(f"say({prose!r})"))
    assert not list(sql_strings('"""SELECT in a docstring is fine."""'))
