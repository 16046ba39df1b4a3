"""Where the memories are: a database that a DSN names, or the embedded server under a folder."""

from __future__ import annotations

import asyncio
import os
import sys
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Unpack

import typer

from symfonic_pg.cli.console import note
from symfonic_pg.memory import MemoryContractError
from symfonic_pg.postgres.embedded import EmbeddedServer
from symfonic_pg.postgres.migrations import migrate
from symfonic_pg.store import MemoryStore, StoreOptions

DSN_VARIABLE = "SYMFONIC_PG_DSN"
_PANEL = "Where"

SchemaOption = Annotated[
    str, typer.Option("--schema", help="The schema in the database.", rich_help_panel=_PANEL)
]


@dataclass(frozen=True, slots=True)
class Place:
    """The options that name a store."""

    dsn: Annotated[
        str | None,
        typer.Option(
            metavar="DSN",
            help=f"The database, postgresql://…; else the environment variable {DSN_VARIABLE}, else --data.",
            rich_help_panel=_PANEL,
        ),
    ] = None
    data: Annotated[
        Path | None,
        typer.Option(
            metavar="DIR",
            help="The folder of an embedded PostgreSQL, made and started as needed.",
            show_default="a folder of this user",
            rich_help_panel=_PANEL,
        ),
    ] = None
    schema: SchemaOption = "symfonic"
    timeout: Annotated[
        float,
        typer.Option(
            metavar="SECONDS", help="How long one call of the database may take.", rich_help_panel=_PANEL
        ),
    ] = 10.0

    @asynccontextmanager
    async def address(self) -> AsyncIterator[str]:
        """The DSN of a running server, whose schema may be of any revision."""
        dsn = self._named()
        if dsn is not None:
            yield dsn
            return
        async with served(self.data or default_folder()) as address:
            yield address

    @asynccontextmanager
    async def store(self, **options: Unpack[StoreOptions]) -> AsyncIterator[MemoryStore]:
        """A store there; that of the embedded server is migrated, any other must have been."""
        async with self.address() as dsn:
            if self._named() is None:
                await asyncio.to_thread(migrate, dsn, schema=self.schema)
            options["schema"], options["timeout"] = self.schema, self.timeout
            async with MemoryStore.connect(dsn, **options) as store:
                yield store

    def _named(self) -> str | None:
        """The DSN that was given, by option or, unless --data stands against it, by environment."""
        if self.dsn is not None and self.data is not None:
            raise MemoryContractError("--dsn and --data name two places; give one")
        if self.dsn is not None or self.data is not None:
            return self.dsn
        return os.environ.get(DSN_VARIABLE) or None


@asynccontextmanager
async def served(folder: Path, settings: Mapping[str, str] | None = None) -> AsyncIterator[str]:
    """The DSN of the embedded server under a folder, for as long as the block lasts."""
    note(f"embedded PostgreSQL under {folder}")
    async with EmbeddedServer(folder, settings=settings) as server:
        yield server.dsn


def default_folder() -> Path:
    """Where this user's programs keep their data, by the custom of the system."""
    if sys.platform == "darwin":
        return Path.home() / "Library" / "Application Support" / "symfonic-pg"
    given = Path(os.environ.get("XDG_DATA_HOME", ""))
    return (given if given.is_absolute() else Path.home() / ".local" / "share") / "symfonic-pg"
