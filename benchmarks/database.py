"""The database of a benchmark: where it runs, and what lies between the package and the bare statements."""

from __future__ import annotations

import tempfile
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import asyncpg

from benchmarks.statements import bare
from symfonic_pg.memory import MemoryScope
from symfonic_pg.postgres.dsn import for_asyncpg
from symfonic_pg.postgres.embedded import EmbeddedServer
from symfonic_pg.postgres.executors.asyncpg import AsyncpgDriver
from symfonic_pg.postgres.executors.base import Rows
from symfonic_pg.postgres.executors.pooled import PooledExecutor
from symfonic_pg.postgres.rows import scope_parameters
from symfonic_pg.postgres.statements import Statement

SCHEMA = "symfonic_benchmark"
BARE_SCHEMA = "symfonic_benchmark_bare"
# As an operator would set them for a database of this size; everything else is as PostgreSQL ships it.
SETTINGS = {"shared_buffers": "1GB", "maintenance_work_mem": "1GB", "max_wal_size": "4GB"}

Connection = Any


@contextmanager
def running(dsn: str | None, data: Path | None) -> Iterator[str]:
    """The DSN given, or that of an embedded server, under `data` or a folder that goes away with it."""
    if dsn:
        yield dsn
        return
    with tempfile.TemporaryDirectory(
        prefix="symfonic-pg-benchmark-", ignore_cleanup_errors=True
    ) as temporary:
        Path(temporary).chmod(0o711)
        with EmbeddedServer(data or Path(temporary) / "server", settings=SETTINGS) as server:
            yield server.dsn


async def connected(dsn: str) -> Connection:
    """A connection of asyncpg's."""
    return await asyncpg.connect(for_asyncpg(dsn))


class Recorder(PooledExecutor[Connection]):
    """The package's own executor, on one connection that is used beside it; remembers the last statement."""

    def __init__(self, connection: Connection) -> None:
        super().__init__(AsyncpgDriver(), _OneConnection(connection), timeout=600)
        self.statement = Statement("", "")

    async def fetch(self, statement: Statement) -> Rows:
        self.statement = statement
        return await super().fetch(statement)


class _OneConnection:
    def __init__(self, connection: Connection) -> None:
        self._connection = connection

    async def acquire(self) -> Connection:
        return self._connection

    async def release(self, connection: Connection, *, after: BaseException | None) -> None:
        """Nothing: it is used beside the executor as well."""

    async def close(self) -> None:
        """Nothing: whoever opened it closes it."""


async def levels(connection: Connection, scope: MemoryScope) -> list[int]:
    """The numbers of the levels that a scope sees."""
    found = await connection.fetchval(bare("lineage", schema=SCHEMA), *scope_parameters(scope))
    return list(found)


async def settle(connection: Connection, **settings: str) -> None:
    """Set what a session can set."""
    await connection.execute(bare("settings", schema=SCHEMA), list(settings), list(settings.values()))


async def run_each(connection: Connection, names: Sequence[str], schema: str) -> None:
    """Run bare statements one after another."""
    for name in names:
        await connection.execute(bare(name, schema=schema))
