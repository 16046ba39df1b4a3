"""Commands that look after the database: migrate and doctor."""

from __future__ import annotations

import asyncio
import re
import sys
from collections.abc import Sequence
from typing import Annotated

import typer
from rich.text import Text

from symfonic_pg.cli.console import answers, note, print_json
from symfonic_pg.cli.failures import FAILED
from symfonic_pg.cli.place import Place
from symfonic_pg.cli.shapes import findings_shape
from symfonic_pg.cli.writing import JsonOption
from symfonic_pg.postgres.doctor import Finding, examine
from symfonic_pg.postgres.migrations import current_revision, migration_sql
from symfonic_pg.postgres.migrations import migrate as upgrade

_STYLES = {"ok": "green", "warning": "yellow", "failure": "bold red"}


async def migrate(
    place: Place,
    sql: Annotated[
        bool, typer.Option("--sql", help="Print the script for an empty database; touch no server.")
    ] = False,
    vectors: Annotated[
        str | None,
        typer.Option(metavar="SCHEMA", help="Where pgvector goes, or with --sql lives; else public."),
    ] = None,
) -> None:
    """Bring the database to the schema that this version expects."""
    if sql:
        sys.stdout.write(migration_sql(schema=place.schema, vectors=vectors or "public"))
        return
    async with place.address() as dsn:
        before = await asyncio.to_thread(current_revision, dsn, schema=place.schema)
        await asyncio.to_thread(upgrade, dsn, schema=place.schema, vectors=vectors)
        after = await asyncio.to_thread(current_revision, dsn, schema=place.schema)
    how = "already at" if before == after else f"migrated from {before or 'nothing'} to"
    note(f"the schema {place.schema} is {how} revision {after}")


async def doctor(
    place: Place,
    role: Annotated[
        str | None, typer.Option(metavar="NAME", help="Ask whether this role could run the store.")
    ] = None,
    as_json: JsonOption = False,
) -> int | None:
    """Look at server, pgvector, schema, indexes, embedding models and rights; change nothing.

    Exit code 1 on a failure, 0 on warnings.
    """
    async with place.address() as dsn:
        findings = await examine(dsn, schema=place.schema, role=role, timeout=place.timeout)
    if as_json:
        print_json(findings_shape(findings))
    else:
        _print(findings)
    return FAILED if any(finding.status == "failure" for finding in findings) else None


def _print(findings: Sequence[Finding]) -> None:
    console = answers()
    for finding in findings:
        status = Text(f"{finding.status:<8}", style=_STYLES[finding.status])
        # Not wrapped: what mends it is there to be copied.
        console.print(status, f"{finding.name:<12}", finding.detail, soft_wrap=True)
        for line in re.split(r"(?<=;) ", finding.fix):
            if line:
                console.print(Text(f"{'':<22}{line}", style="cyan"), soft_wrap=True)
