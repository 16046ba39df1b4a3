"""What may be wrong with a database, each finding with what mends it."""

from __future__ import annotations

import re
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from functools import cache
from typing import Literal

from symfonic_pg.assets import asset_dir
from symfonic_pg.memory.errors import MemoryUnavailable
from symfonic_pg.postgres.connecting import connected
from symfonic_pg.postgres.executors.base import Executor
from symfonic_pg.postgres.indexing import index_kinds
from symfonic_pg.postgres.migrations import head_revision
from symfonic_pg.postgres.statements import load_statement, quoted_schema

_COUNT_LIMIT = 20_000
# A level of so many vectors is compared one by one; no level can hold more than all of them.
_FEW_VECTORS = 15_000
_INDEX = re.compile(r"CREATE (?:UNIQUE )?INDEX (?P<name>\w+)[^;]*;")

Status = Literal["ok", "warning", "failure"]


@dataclass(frozen=True, slots=True)
class Finding:
    """One thing looked at; `fix` is a statement or command that mends it, empty where all is well."""

    name: str
    status: Status
    detail: str
    fix: str = ""


async def examine(
    dsn: str, *, schema: str = "symfonic", role: str | None = None, timeout: float = 10.0
) -> list[Finding]:
    """Look at server, pgvector, revision, indexes, embedding models and rights; changes nothing.

    `role` asks whether that role could run the store, instead of the one that the DSN names. A database that
    does not answer is a finding too, not an error. `timeout` is in seconds for each question.
    """
    executor = connected(dsn, timeout=timeout, pool_max=1)
    try:
        return await _Examination(executor, schema, role).findings()
    finally:
        await executor.close()


class _Examination:
    def __init__(self, executor: Executor, schema: str, role: str | None) -> None:
        self._executor = executor
        self._schema = schema
        self._role = role

    async def findings(self) -> list[Finding]:
        server = await self._checked("server", lambda: self._judged("server"))
        if server[0].status == "failure":
            return server
        found = list(server)
        found += await self._checked("encoding", lambda: self._judged("encoding"))
        found += await self._checked("extension", lambda: self._judged("extension"))
        found += await self._checked("revision", self._revision)
        if found[-1].status == "ok":
            found += await self._checked("search_path", lambda: self._judged("search_path"))
            found += await self._checked("indexes", self._indexes)
            found += await self._checked("models", self._models)
        found += await self._checked("role", lambda: self._judged("role", self._role))
        found += await self._checked("rights", self._rights)
        return found

    async def _checked(self, name: str, check: Callable[[], Awaitable[list[Finding]]]) -> list[Finding]:
        try:
            return await check()
        except MemoryUnavailable as exc:
            return [Finding(name, "failure", str(exc), _UNANSWERED.get(name, ""))]

    async def _ask(self, name: str, *parameters: object) -> list[tuple[object, ...]]:
        statement = load_statement(name, schema=self._schema).bind(*parameters)
        return [tuple(row) for row in await self._executor.fetch(statement)]

    async def _judged(self, name: str, *parameters: object) -> list[Finding]:
        """The findings of a statement that gives status, detail and fix itself."""
        rows = await self._ask(f"doctor_{name}", *parameters)
        return [Finding(name, status, detail, fix) for status, detail, fix in rows]  # type: ignore[arg-type]

    async def _revision(self) -> list[Finding]:
        found = None
        if (await self._ask("migrate_versioned"))[0][0]:
            rows = await self._ask("migrate_revision")
            found = str(rows[0][0]) if rows else None
        return [judge_revision(found, head_revision(), self._schema)]

    async def _indexes(self) -> list[Finding]:
        expected = expected_indexes(self._schema)
        findings = [
            Finding("indexes", "failure", f"the index {name} is {state}", str(fix) or expected[str(name)])
            for name, state, fix in await self._ask("doctor_indexes", list(expected))
        ]
        return findings or [
            Finding("indexes", "ok", f"all {len(expected)} of the schema are there and valid")
        ]

    async def _models(self) -> list[Finding]:
        rows = await self._ask("doctor_models")
        if not rows:
            return [Finding("models", "ok", "no embedding model is registered yet")]
        vectors = (await self._ask("migrate_vectors"))[0][0]
        return [judge_model(*row, schema=self._schema, vectors=str(vectors)) for row in rows]  # type: ignore[arg-type]

    async def _rights(self) -> list[Finding]:
        lacking = await self._judged("rights", self._role)
        return lacking or [Finding("rights", "ok", "may read and write everything that the store needs")]


_UNANSWERED = {"server": "check the DSN, and that the server runs and lets this role in"}


def judge_revision(found: str | None, expected: str, schema: str) -> Finding:
    """The finding for a schema that stands at `found`, None for one that was never migrated."""
    command = "symfonic-pg migrate" + ("" if schema == "symfonic" else f" --schema {schema}")
    if found is None:
        return Finding(
            "revision", "failure", f"the schema {schema} is not there or was never migrated", command
        )
    detail = f"the schema {schema} stands at revision {found}"
    if found == expected:
        return Finding("revision", "ok", detail)
    detail += f", this code expects {expected}"
    fix = "install the symfonic-pg that made it" if found > expected else command
    return Finding("revision", "failure", detail, fix)


def judge_model(
    name: str, number: int, dimension: int, count: int, indexes: list[str], *, schema: str, vectors: str
) -> Finding:
    """The finding for one embedding model, from the names of its usable indexes."""
    missing = [kind for kind in index_kinds(dimension) if f"embeddings_{kind}_{number}" not in indexes]
    many = f"more than {_COUNT_LIMIT:,}" if count > _COUNT_LIMIT else f"{count:,}"
    detail = f"{name}: number {number}, {dimension} dimensions, {many} vectors"
    if not missing:
        return Finding("models", "ok", detail)
    if count <= _FEW_VECTORS:
        return Finding("models", "ok", f"{detail}; too few to need an index yet")
    names = {"schema": schema, "vectors": vectors, "dimension": dimension, "model": number}
    statements = [load_statement(f"index_model_{kind}", **names) for kind in missing]
    detail += "; without the index " + " and ".join(missing)
    return Finding("models", "warning", detail, " ".join(_one_line(one.text) for one in statements))


@cache
def expected_indexes(schema: str) -> dict[str, str]:
    """The indexes of schema.sql by name, each with the statement that makes it."""
    text = re.sub(r"--[^\n]*", "", (asset_dir("sql") / "schema.sql").read_text(encoding="utf-8"))
    filled = text.replace("{schema}", quoted_schema(schema))
    return {found["name"]: _one_line(found[0]) for found in _INDEX.finditer(filled)}


def _one_line(statement: str) -> str:
    return " ".join(statement.split()).removesuffix(";") + ";"
