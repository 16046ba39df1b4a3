"""How fast memories come in: `load` against a bare binary COPY of the same rows into the same tables."""

from __future__ import annotations

import asyncio
import time
from dataclasses import dataclass
from io import BytesIO

from benchmarks.data import DIMENSION, Dataset
from benchmarks.database import BARE_SCHEMA, SCHEMA, Connection, run_each
from benchmarks.statements import bare
from symfonic_pg.postgres.executors.asyncpg import AsyncpgExecutor
from symfonic_pg.postgres.migrations import migrate
from symfonic_pg.postgres.repository import MemoryRepository

MODEL = "synthetic"


@dataclass(frozen=True, slots=True)
class LoadSpeed:
    """Rows a second, and the seconds that indexing the vectors took."""

    load: float
    copy: float
    copy_without_triggers: float
    index_seconds: float

    @property
    def ratio(self) -> float:
        """How many times longer `load` took than the bare COPY."""
        return self.copy / self.load

    @property
    def trigger_share(self) -> float:
        """The part of the bare COPY that goes into what follows a memory, the postings above all."""
        return 1 - self.copy / self.copy_without_triggers


async def measure(dsn: str, connection: Connection, dataset: Dataset) -> LoadSpeed:
    """Load the dataset, copy the same rows by hand, and leave the loaded schema indexed and vacuumed."""
    await _fresh(dsn, connection, SCHEMA)
    items = list(zip(dataset.records(), dataset.vectors, strict=True))
    executor = AsyncpgExecutor.connect(dsn, timeout=600)
    repository = MemoryRepository(executor, schema=SCHEMA)
    try:
        await repository.register_model(MODEL, DIMENSION)
        started = time.perf_counter()
        await repository.load(items, model=MODEL)
        load = len(items) / (time.perf_counter() - started)
        await vacuum(connection, SCHEMA)
        copies = await _copied(dsn, connection, len(items))
        await run_each(connection, ["drop"], BARE_SCHEMA)
        started = time.perf_counter()
        await repository.index_model(MODEL)
        indexed = time.perf_counter() - started
        await vacuum(connection, SCHEMA)
    finally:
        await executor.close()
    return LoadSpeed(load, *copies, indexed)


async def vacuum(connection: Connection, schema: str) -> None:
    """Visibility map and statistics as autovacuum leaves them."""
    for table in ("scopes", "memories", "postings", "embeddings"):
        await connection.execute(bare("vacuum", schema=schema, table=f'"{schema}"."{table}"'))


async def _fresh(dsn: str, connection: Connection, schema: str) -> None:
    await run_each(connection, ["drop"], schema)
    await asyncio.to_thread(migrate, dsn, schema=schema)


async def _copied(dsn: str, connection: Connection, rows: int) -> tuple[float, float]:
    """Rows a second of one COPY a table, with and without the triggers."""
    streams = {table: await _binary(connection, table) for table in ("scopes", "memories", "embeddings")}
    speeds = []
    for before in ([], ["untrigger"]):
        # New tables each time: an analyze of emptied ones, while the next rows are not committed yet, leaves
        # statistics under which the foreign keys are checked by scans.
        await _fresh(dsn, connection, BARE_SCHEMA)
        await run_each(connection, before, BARE_SCHEMA)
        await _copy(connection, "scopes", streams["scopes"])
        started = time.perf_counter()
        for table in ("memories", "embeddings"):
            await _copy(connection, table, streams[table])
        speeds.append(rows / (time.perf_counter() - started))
    return speeds[0], speeds[1]


async def _binary(connection: Connection, table: str) -> bytes:
    stream = BytesIO()
    await connection.copy_from_table(table, schema_name=SCHEMA, output=stream, format="binary")
    return stream.getvalue()


async def _copy(connection: Connection, table: str, stream: bytes) -> None:
    await connection.copy_to_table(table, schema_name=BARE_SCHEMA, source=BytesIO(stream), format="binary")
