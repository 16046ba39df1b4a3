"""asyncpg: on a pool of ours or the host's, or on one connection."""

from __future__ import annotations

from collections.abc import AsyncIterator, Iterable
from contextlib import asynccontextmanager, suppress
from typing import Any, TypeAlias

import asyncpg
from asyncpg.pool import PoolConnectionProxy

from symfonic_pg.memory.errors import MemoryContractError
from symfonic_pg.postgres.dsn import for_asyncpg, redacted
from symfonic_pg.postgres.executors.base import CopyTarget, Executor, Failure, Rows
from symfonic_pg.postgres.executors.borrowed import BorrowedExecutor
from symfonic_pg.postgres.executors.deadlines import GRACE
from symfonic_pg.postgres.executors.failures import reaching
from symfonic_pg.postgres.executors.pooled import PooledExecutor
from symfonic_pg.postgres.executors.pooling import ConnectionPool
from symfonic_pg.postgres.executors.preparing import Preparing
from symfonic_pg.postgres.statements import Statement

Connection: TypeAlias = "asyncpg.Connection[asyncpg.Record] | PoolConnectionProxy[asyncpg.Record]"


class AsyncpgExecutor(PooledExecutor[Connection]):
    """Runs on a pool: one of its own, made by `connect`, or the host's, which it never closes."""

    def __init__(self, pool: asyncpg.Pool[asyncpg.Record], *, timeout: float = 10.0) -> None:
        super().__init__(AsyncpgDriver(), _HostPool(pool), timeout=timeout)

    @classmethod
    def connect(
        cls,
        dsn: str,
        *,
        timeout: float = 10.0,
        pool_min: int = 0,
        pool_max: int = 10,
        prepared_statements: bool | None = None,
    ) -> PooledExecutor[Connection]:
        """An executor on a pool of its own; the first call connects.

        Statements are prepared unless a pooler stands before the database; prepared_statements=True is for
        one that carries them from session to session, such as PgBouncer from 1.21 on.
        """
        address, driver = for_asyncpg(dsn), AsyncpgDriver()
        preparing: Preparing[Connection] = Preparing(prepared_statements, _number, _finds)
        pool = ConnectionPool(lambda: _opened(address, preparing), driver, minimum=pool_min, maximum=pool_max)
        return PooledExecutor(driver, pool, timeout=timeout)


def executor_on(owner: object, *, timeout: float) -> Executor | None:
    """The executor for a pool or connection of asyncpg's; None for anything else."""
    if isinstance(owner, asyncpg.Pool):
        return AsyncpgExecutor(owner, timeout=timeout)
    if isinstance(owner, (asyncpg.Connection, PoolConnectionProxy)):
        return BorrowedExecutor(AsyncpgDriver(), owner, timeout=timeout)
    return None


class AsyncpgDriver:
    """asyncpg's calls; every type that statements use is built in, so that it never has to ask for one."""

    async def fetch(self, connection: Connection, statement: Statement) -> Rows:
        rows: Rows = await connection.fetch(statement.text, *statement.parameters)
        return rows

    async def copy(self, connection: Connection, target: CopyTarget, chunks: Iterable[bytes]) -> None:
        target.statement()  # checks the names, which asyncpg itself puts into the COPY
        await connection.copy_to_table(
            target.table,
            schema_name=target.schema,
            columns=list(target.columns),
            source=_one_by_one(chunks),
            format="binary",
        )

    @asynccontextmanager
    async def begin(self, connection: Connection) -> AsyncIterator[object]:
        async with connection.transaction():
            yield connection

    # asyncpg makes a savepoint of a transaction inside another.
    savepoint = begin

    def failure(self, error: Exception) -> Failure | None:
        if isinstance(error, asyncpg.PostgresError):
            return Failure(error.sqlstate, error.message or str(error))
        if isinstance(error, (asyncpg.DataError, asyncpg.ClientConfigurationError)):
            return None
        if isinstance(error, (asyncpg.InterfaceError, asyncpg.InternalClientError, ConnectionError)):
            return Failure(None, str(error))
        return None

    def is_open(self, connection: Connection) -> bool:
        return not connection.is_closed()

    async def ping(self, connection: Connection) -> None:
        await connection.execute("")

    async def settle(self, connection: Connection, after: BaseException) -> None:
        # Waits for a cancelled statement before it does anything.
        await self.ping(connection)
        if connection.is_in_transaction():
            raise asyncpg.InterfaceError("the transaction could not be rolled back")

    def drop(self, connection: Connection) -> None:
        connection.terminate()


async def _opened(address: str, preparing: Preparing[Connection]) -> Connection:
    caching = preparing.known is not False
    connection = await _connect(address, caching=caching)
    try:
        allowed = await preparing.allowed(connection)
    except BaseException:
        connection.terminate()
        raise
    if caching and not allowed:
        # Whether a connection caches statements is settled when it is made.
        connection.terminate()
        return await _connect(address, caching=False)
    return connection


def _number(connection: Connection) -> int:
    return int(connection.get_server_pid())


async def _finds(connection: Connection, statement: Statement) -> bool:
    # Without parameters it goes by the simple protocol, and only its tag with the number of rows comes back.
    return bool((await connection.execute(statement.text)).endswith(" 1"))


async def _connect(address: str, *, caching: bool) -> Connection:
    options: dict[str, Any] = {} if caching else {"statement_cache_size": 0}
    try:
        with reaching():
            return await asyncpg.connect(address, timeout=None, **options)
    except (ValueError, TypeError):
        # What the driver says may quote the address, and with it the password.
        rule = "an address that asyncpg understands"
        raise MemoryContractError(
            f"dsn must be {rule}: {redacted(address)}", field="dsn", rule=rule
        ) from None


class _HostPool:
    """The host's pool; its own rules say how a connection is made, checked and reset."""

    def __init__(self, pool: asyncpg.Pool[asyncpg.Record]) -> None:
        self._pool = pool

    async def acquire(self) -> Connection:
        with reaching():
            return await self._pool.acquire()

    async def release(self, connection: Connection, *, after: BaseException | None) -> None:
        if after is None:
            await self._pool.release(connection)
            return
        # Waits for a cancelled statement; one that goes on beyond the grace period costs the connection. What
        # went wrong before is what the caller has to see.
        with suppress(Exception):
            await self._pool.release(connection, timeout=GRACE)

    async def close(self) -> None:
        """Nothing: the pool is the host's."""


async def _one_by_one(chunks: Iterable[bytes]) -> AsyncIterator[bytes]:
    for chunk in chunks:
        yield chunk
