"""Every way to run statements, opened alike: on a pool, and inside a transaction of somebody else's."""

from __future__ import annotations

from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import AbstractAsyncContextManager, asynccontextmanager, suppress
from dataclasses import dataclass

import asyncpg
import psycopg
from psycopg_pool import AsyncConnectionPool
from sqlalchemy.ext.asyncio import AsyncEngine, AsyncSession, create_async_engine

from symfonic_pg.postgres.executors import Executor, executor_for
from symfonic_pg.postgres.executors.asyncpg import AsyncpgExecutor
from symfonic_pg.postgres.executors.psycopg import PsycopgExecutor


@dataclass(frozen=True)
class Pooled:
    """An executor on a pool of `size` connections; `open(dsn, timeout, size)` is a context manager."""

    name: str
    open: Callable[..., AbstractAsyncContextManager[Executor]]
    own: bool = False

    def __str__(self) -> str:
        return self.name


@dataclass(frozen=True)
class Borrowed:
    """An executor on one connection; `open(dsn, timeout)` yields it with its owner's commit and rollback."""

    name: str
    open: Callable[..., AbstractAsyncContextManager[Loan]]

    def __str__(self) -> str:
        return self.name


@dataclass(frozen=True)
class Loan:
    executor: Executor
    commit: Callable[[], Awaitable[None]]
    rollback: Callable[[], Awaitable[None]]
    owner: object


def own(connect: Callable[..., Executor]) -> Callable[..., AbstractAsyncContextManager[Executor]]:
    @asynccontextmanager
    async def opened(dsn: str, timeout: float = 10.0, size: int = 4) -> AsyncIterator[Executor]:
        executor = connect(dsn, timeout=timeout, pool_max=size)
        try:
            yield executor
        finally:
            await executor.close()

    return opened


@asynccontextmanager
async def asyncpg_pool(dsn: str, timeout: float = 10.0, size: int = 4) -> AsyncIterator[Executor]:
    pool = asyncpg.create_pool(dsn, min_size=0, max_size=size)
    await pool
    try:
        yield executor_for(pool, timeout=timeout)
    finally:
        pool.terminate()


def psycopg_pool(autocommit: bool) -> Callable[..., AbstractAsyncContextManager[Executor]]:
    @asynccontextmanager
    async def opened(dsn: str, timeout: float = 10.0, size: int = 4) -> AsyncIterator[Executor]:
        options = {"autocommit": autocommit}
        pool = AsyncConnectionPool(dsn, kwargs=options, min_size=0, max_size=size, open=False)
        await pool.open()
        try:
            yield executor_for(pool, timeout=timeout)
        finally:
            await pool.close(timeout=1)

    return opened


def engine_for(dsn: str, driver: str, **options: object) -> AsyncEngine:
    return create_async_engine(dsn.replace("postgresql://", f"postgresql+{driver}://"), **options)


def engine(driver: str, **options: object) -> Callable[..., AbstractAsyncContextManager[Executor]]:
    @asynccontextmanager
    async def opened(dsn: str, timeout: float = 10.0, size: int = 4) -> AsyncIterator[Executor]:
        made = engine_for(dsn, driver, pool_size=size, max_overflow=0, **options)
        try:
            yield executor_for(made, timeout=timeout)
        finally:
            await made.dispose()

    return opened


@asynccontextmanager
async def asyncpg_connection(dsn: str, timeout: float = 10.0) -> AsyncIterator[Loan]:
    connection = await asyncpg.connect(dsn)
    transaction = connection.transaction()
    await transaction.start()
    try:
        yield Loan(
            executor_for(connection, timeout=timeout), transaction.commit, transaction.rollback, connection
        )
    finally:
        # Waits for a cancelled statement; a server that hangs is left to itself.
        with suppress(TimeoutError):
            await connection.close(timeout=2)


@asynccontextmanager
async def psycopg_connection(dsn: str, timeout: float = 10.0) -> AsyncIterator[Loan]:
    connection = await psycopg.AsyncConnection.connect(dsn)
    try:
        yield Loan(
            executor_for(connection, timeout=timeout), connection.commit, connection.rollback, connection
        )
    finally:
        await connection.close()


def sqlalchemy_connection(driver: str) -> Callable[..., AbstractAsyncContextManager[Loan]]:
    @asynccontextmanager
    async def opened(dsn: str, timeout: float = 10.0) -> AsyncIterator[Loan]:
        made = engine_for(dsn, driver)
        async with made.connect() as connection:
            executor = executor_for(connection, timeout=timeout)
            yield Loan(executor, connection.commit, connection.rollback, connection)
        await made.dispose()

    return opened


def sqlalchemy_session(driver: str) -> Callable[..., AbstractAsyncContextManager[Loan]]:
    @asynccontextmanager
    async def opened(dsn: str, timeout: float = 10.0) -> AsyncIterator[Loan]:
        made = engine_for(dsn, driver)
        async with AsyncSession(made) as session:
            yield Loan(executor_for(session, timeout=timeout), session.commit, session.rollback, session)
        await made.dispose()

    return opened


OWN = [
    Pooled("asyncpg", own(AsyncpgExecutor.connect), own=True),
    Pooled("psycopg", own(PsycopgExecutor.connect), own=True),
]
POOLED = [
    *OWN,
    Pooled("asyncpg-pool", asyncpg_pool),
    Pooled("psycopg-pool", psycopg_pool(autocommit=False)),
    Pooled("engine-asyncpg", engine("asyncpg")),
    Pooled("engine-psycopg", engine("psycopg")),
]
AUTOCOMMIT = [
    Pooled("psycopg-pool-autocommit", psycopg_pool(autocommit=True)),
    Pooled("engine-asyncpg-autocommit", engine("asyncpg", isolation_level="AUTOCOMMIT")),
    Pooled("engine-psycopg-autocommit", engine("psycopg", isolation_level="AUTOCOMMIT")),
]
BORROWED = [
    Borrowed("asyncpg-connection", asyncpg_connection),
    Borrowed("psycopg-connection", psycopg_connection),
    Borrowed("connection-asyncpg", sqlalchemy_connection("asyncpg")),
    Borrowed("connection-psycopg", sqlalchemy_connection("psycopg")),
    Borrowed("session-asyncpg", sqlalchemy_session("asyncpg")),
    Borrowed("session-psycopg", sqlalchemy_session("psycopg")),
]


@asynccontextmanager
async def running(kind: Pooled | Borrowed, dsn: str, **options: float) -> AsyncIterator[Executor]:
    """The executor of either kind, where it makes no difference."""
    async with kind.open(dsn, **options) as opened:
        yield opened.executor if isinstance(kind, Borrowed) else opened
