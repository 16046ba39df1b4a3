"""The command that builds the vector indexes of embedding models: index."""

from __future__ import annotations

import time
from typing import Annotated

import typer

from symfonic_pg.cli.console import answers, note
from symfonic_pg.cli.failures import FAILED
from symfonic_pg.cli.place import Place
from symfonic_pg.postgres.doctor import examine


async def index(
    place: Place,
    models: Annotated[
        list[str] | None,
        typer.Argument(metavar="[MODEL…]", help="The models' names; all of them where none is named."),
    ] = None,
) -> int | None:
    """Build what is missing of the vector indexes, while the store is read and written.

    Worth it after a first bulk load: until then every search by meaning compares with all vectors of a level.
    Needs the role that owns the tables. Exit code 1 where an index is there but cannot be used.
    """
    async with place.store() as store:
        names = models or [model.name for model in await store.repository.models()]
        for name in names:
            note(f"{name}: building what is missing; minutes where there are many vectors")
            started = time.monotonic()
            await store.repository.index_model(name)
            answers().print(f"{name}: done in {time.monotonic() - started:.1f} s", soft_wrap=True)
        if not names:
            answers().print("no embedding model is registered yet")
        # A build that was interrupted leaves an index of the right name that no search can use.
        findings = await examine(store.dsn, schema=place.schema, timeout=place.timeout)
    unusable = [one for one in findings if one.name == "indexes" and one.status != "ok"]
    for finding in unusable:
        note(f"{finding.detail}: {finding.fix}")
    return FAILED if unusable else None
