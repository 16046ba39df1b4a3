"""Every way to run statements behind a pooler, with the settings that the documentation gives for each."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from functools import partial

import asyncpg
from psycopg_pool import AsyncConnectionPool

from symfonic_pg.postgres.executors import Executor, executor_for
from symfonic_pg.postgres.executors.asyncpg import AsyncpgExecutor
from symfonic_pg.postgres.executors.psycopg import PsycopgExecutor
from tests.integration.executor_kinds import Pooled, engine, own
from tests.integration.executor_kinds import psycopg_pool as any_psycopg_pool

# SQLAlchemy prepares each statement by itself; without a name none is left on a server connection.
ENGINE_OPTIONS = {
    "asyncpg": {
        "connect_args": {
            "statement_cache_size": 0,
            "prepared_statement_cache_size": 0,
            "prepared_statement_name_func": lambda: "",
        }
    },
    "psycopg": {"connect_args": {"prepare_threshold": None}},
}


@asynccontextmanager
async def asyncpg_pool(dsn: str, timeout: float = 10.0, size: int = 4) -> AsyncIterator[Executor]:
    pool = asyncpg.create_pool(dsn, min_size=0, max_size=size, statement_cache_size=0)
    await pool
    try:
        yield executor_for(pool, timeout=timeout)
    finally:
        pool.terminate()


@asynccontextmanager
async def psycopg_pool(dsn: str, timeout: float = 10.0, size: int = 4) -> AsyncIterator[Executor]:
    pool = AsyncConnectionPool(dsn, kwargs={"prepare_threshold": None}, min_size=0, max_size=size, open=False)
    await pool.open()
    try:
        yield executor_for(pool, timeout=timeout)
    finally:
        await pool.close(timeout=1)


# Told nothing: they find out that a pooler is there.
OWN = [
    Pooled("asyncpg", own(AsyncpgExecutor.connect), own=True),
    Pooled("psycopg", own(PsycopgExecutor.connect), own=True),
]
TOLD = [
    Pooled("asyncpg-told", own(partial(AsyncpgExecutor.connect, prepared_statements=False)), own=True),
    Pooled("psycopg-told", own(partial(PsycopgExecutor.connect, prepared_statements=False)), own=True),
]
# What prepares statements although a pooler may be there.
INSISTING = [
    Pooled("asyncpg", own(partial(AsyncpgExecutor.connect, prepared_statements=True)), own=True),
    Pooled("psycopg", own(partial(PsycopgExecutor.connect, prepared_statements=True)), own=True),
]
ENGINES = [Pooled(f"engine-{name}", engine(name, **options)) for name, options in ENGINE_OPTIONS.items()]
# psycopg's may have any settings: on a host's connection nothing is prepared by this package.
POOLS = [
    Pooled("asyncpg-pool", asyncpg_pool),
    Pooled("psycopg-pool", psycopg_pool),
    Pooled("psycopg-pool-by-default", any_psycopg_pool(autocommit=False)),
    Pooled("engine-psycopg-by-default", engine("psycopg")),
]
