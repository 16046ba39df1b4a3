"""Statements: SQL read from sql/queries, one a file, apart from whoever runs it."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import cache

from symfonic_pg.assets import asset_dir
from symfonic_pg.memory.errors import MemoryContractError, SymfonicError

Placeholder = str | int | tuple[str, ...]

_IDENTIFIER = re.compile(r"[A-Za-z_][A-Za-z0-9_]{0,62}")
_NUMBERED = re.compile(r"\$([1-9][0-9]*)")


@dataclass(frozen=True, slots=True)
class Statement:
    """One SQL text with `$1 … $n` and the values for them; `schema` is the one whose objects it names.

    Values are str, int, float, bool, bytes, aware datetime, None, and lists of these; the SQL casts every
    parameter, so that each driver sends it as the same type. asyncpg has to ask the server, on each
    connection, about any array that is not text[], and makes infinity of Python's very first and last
    instants: numbers in lists and instants of any age travel as text.
    """

    name: str
    text: str
    parameters: tuple[object, ...] = ()
    schema: str = "symfonic"

    def bind(self, *parameters: object) -> Statement:
        """The same statement with these values."""
        return Statement(self.name, self.text, parameters, self.schema)


@cache
def load_statement(name: str, *, schema: str = "symfonic", **placeholders: Placeholder) -> Statement:
    """Read sql/queries/<name>.sql and put names into it.

    Placeholders are a closed set: {schema}, {vectors}, {table} and {index} take a name, {columns} a tuple of
    names, {dimension}, {model} and {backend} a positive number. Names are checked and quoted. The file starts
    with a comment `-- <name>: what it does`, and a line `-- params:` that lists $1 … $n, or `none`.
    SymfonicError where the file is missing, its header is wrong or a placeholder has no value.
    """
    path = asset_dir("sql") / "queries" / f"{name}.sql"
    try:
        source = path.read_text(encoding="utf-8")
    except FileNotFoundError as exc:
        raise SymfonicError(f"there is no statement {name!r}") from exc
    body = _body(name, source)
    return Statement(name, _filled(name, body, {"schema": schema, **placeholders}), schema=schema)


def quoted_schema(schema: str) -> str:
    """The schema's name in double quotes; MemoryContractError unless it is a plain identifier."""
    return _quoted("schema", schema)


def _body(name: str, source: str) -> str:
    """The SQL below the header; numbers of parameters that differ from the header's are a bug of the file."""
    lines = source.splitlines()
    end = next((place for place, line in enumerate(lines) if not line.startswith("--")), len(lines))
    header, body = "\n".join(lines[:end]), "\n".join(lines[end:]).strip().removesuffix(";")
    description, separator, declared = header.partition("\n-- params:")
    if not separator or not description.startswith(f"-- {name}: "):
        raise SymfonicError(f"{name}.sql has to start with '-- {name}: …' and a line '-- params: …'")
    promised, used = _numbers(declared), _numbers(re.sub(r"--[^\n]*", "", body))
    if used != promised or used != set(range(1, len(used) + 1)):
        raise SymfonicError(f"{name}.sql declares {sorted(promised)} and uses {sorted(used)} as parameters")
    return body


def _numbers(text: str) -> set[int]:
    return {int(number) for number in _NUMBERED.findall(text)}


def _filled(name: str, body: str, placeholders: Mapping[str, Placeholder]) -> str:
    unknown = placeholders.keys() - _PLACEHOLDERS.keys()
    if unknown:
        raise SymfonicError(f"{name}.sql: no placeholder is called {', '.join(sorted(unknown))}")
    # Plain replacement, not str.format: SQL holds braces of its own (JSON, arrays).
    for placeholder, rendered in _PLACEHOLDERS.items():
        mark = f"{{{placeholder}}}"
        if placeholder in placeholders:
            body = body.replace(mark, rendered(placeholder, placeholders[placeholder]))
        elif mark in body:
            raise SymfonicError(f"{name}.sql needs a value for {mark}")
    return body


def _quoted(field: str, name: Placeholder) -> str:
    if not isinstance(name, str) or not _IDENTIFIER.fullmatch(name):
        raise _refusal(
            field, "a letter or underscore, then letters, digits and underscores, 63 at most", name
        )
    return f'"{name}"'


def _listed(field: str, names: Placeholder) -> str:
    if not isinstance(names, tuple) or not names:
        raise _refusal(field, "a tuple of names", names)
    return ", ".join(_quoted(field, name) for name in names)


def _counted(field: str, number: Placeholder) -> str:
    if not isinstance(number, int) or isinstance(number, bool) or number < 1:
        raise _refusal(field, "a positive integer", number)
    return str(number)


def _refusal(field: str, rule: str, got: object) -> MemoryContractError:
    return MemoryContractError(f"{field} must be {rule}, got {got!r}", field=field, rule=rule, got=got)


_PLACEHOLDERS: Mapping[str, Callable[[str, Placeholder], str]] = {
    "schema": _quoted,
    "vectors": _quoted,
    "table": _quoted,
    "index": _quoted,
    "columns": _listed,
    "dimension": _counted,
    "model": _counted,
    "backend": _counted,
}
