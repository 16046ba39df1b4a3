"""SQLAlchemy's asyncio: on an engine's pool, or inside the transaction of a connection or session."""

from __future__ import annotations

from collections.abc import AsyncIterator, Awaitable, Callable, Iterable
from contextlib import AbstractAsyncContextManager, asynccontextmanager, suppress
from typing import TYPE_CHECKING, Any, TypeAlias, TypeVar

from sqlalchemy import exc
from sqlalchemy.ext.asyncio import AsyncConnection, AsyncEngine, AsyncSession, async_scoped_session

from symfonic_pg.memory.errors import MemoryContractError
from symfonic_pg.postgres.executors.base import CopyTarget, Executor, Failure, Rows
from symfonic_pg.postgres.executors.borrowed import BorrowedExecutor
from symfonic_pg.postgres.executors.deadlines import GRACE, within
from symfonic_pg.postgres.executors.failures import STALE_PLAN, reaching
from symfonic_pg.postgres.executors.pooled import PooledExecutor
from symfonic_pg.postgres.statements import Statement

if TYPE_CHECKING:
    from symfonic_pg.postgres.executors.asyncpg import AsyncpgDriver
    from symfonic_pg.postgres.executors.psycopg import PsycopgDriver

Owner: TypeAlias = "AsyncConnection | AsyncSession"
ResultT = TypeVar("ResultT")


class SqlAlchemyExecutor(PooledExecutor[Owner]):
    """Runs on the host's engine, of asyncpg's dialect or psycopg's, in a transaction a call.

    The engine is never disposed of. What the host hooked to its transactions (events, row security settings)
    applies here as well.
    """

    runs_alone = False

    def __init__(self, engine: AsyncEngine, *, timeout: float = 10.0) -> None:
        _native(engine.dialect.driver)
        super().__init__(SqlAlchemyDriver(), _EnginePool(engine), timeout=timeout)

    async def _lent(self, use: Callable[[Owner], Awaitable[ResultT]]) -> ResultT:
        async def in_transaction(connection: Owner) -> ResultT:
            async with connection.begin():
                return await use(connection)

        return await super()._lent(in_transaction)


def executor_on(owner: object, *, timeout: float) -> Executor | None:
    """The executor for an asynchronous engine, connection or session; None for anything else."""
    if isinstance(owner, async_scoped_session):
        owner = owner()
    if isinstance(owner, AsyncEngine):
        return SqlAlchemyExecutor(owner, timeout=timeout)
    if isinstance(owner, AsyncConnection):
        _native(owner.dialect.driver)
        return BorrowedExecutor(SqlAlchemyDriver(), owner, timeout=timeout)
    if isinstance(owner, AsyncSession):
        return BorrowedExecutor(SqlAlchemyDriver(), owner, timeout=timeout)
    return None


class SqlAlchemyDriver:
    """Goes through SQLAlchemy as far as its transaction is concerned, and to the driver for the rest.

    Two things begin late and must not be overtaken: SQLAlchemy's own record of a transaction, without which
    the owner's commit() and rollback() do nothing, and on asyncpg the BEGIN that its first statement sends.
    """

    async def fetch(self, owner: Owner, statement: Statement) -> Rows:
        connection = await _connection(owner)
        if connection.dialect.driver == "asyncpg":
            result = await connection.exec_driver_sql(statement.text, statement.parameters)
            return result.all() if result.returns_rows else []
        if not connection.in_transaction():
            await connection.begin()
        # SQLAlchemy's cursor reads %s on psycopg: the driver's own takes $1.
        held = await _driver_connection(connection)
        try:
            return await _native(connection.dialect.driver).fetch(held, statement)
        except BaseException:
            if held.closed:
                # What SQLAlchemy does when it meets the loss itself: the owner's rollback() then works.
                await connection.invalidate()
            raise

    async def copy(self, owner: Owner, target: CopyTarget, chunks: Iterable[bytes]) -> None:
        # The savepoint is what makes both have begun.
        async with self.savepoint(owner):
            connection = await _connection(owner)
            driver = _native(connection.dialect.driver)
            await driver.copy(await _driver_connection(connection), target, chunks)

    @asynccontextmanager
    async def begin(self, owner: Owner) -> AsyncIterator[object]:
        connection = await _connection(owner)
        async with await _autocommit_block(connection) or connection.begin():
            yield connection

    @asynccontextmanager
    async def savepoint(self, owner: Owner) -> AsyncIterator[object]:
        connection = await _connection(owner)
        async with await _autocommit_block(connection) or connection.begin_nested():
            yield connection

    def failure(self, error: Exception) -> Failure | None:
        if isinstance(error, exc.DBAPIError):
            # The parameters are memories: they do not belong into a log.
            error.hide_parameters = True
            return _native_failure(error.orig) or (_lost(error) if error.connection_invalidated else None)
        if isinstance(error, (exc.TimeoutError, exc.PendingRollbackError, exc.ResourceClosedError)):
            return _lost(error)
        return _native_failure(error)


class _EnginePool:
    """The engine's pool; its own rules say how a connection is made, checked and reset."""

    def __init__(self, engine: AsyncEngine) -> None:
        self._engine = engine
        self._native = _native(engine.dialect.driver)

    async def acquire(self) -> Owner:
        with reaching():
            connection = await self._engine.connect()
            try:
                while not self._native.is_open(await _driver_connection(connection)):
                    await connection.invalidate()
            except BaseException:
                await connection.close()
                raise
        return connection

    async def release(self, connection: Owner, *, after: BaseException | None) -> None:
        assert isinstance(connection, AsyncConnection)
        try:
            if after is not None:
                await self._settle(connection, after)
        finally:
            await connection.close()

    async def _settle(self, connection: AsyncConnection, after: BaseException) -> None:
        failure = _native_failure(after)
        try:
            await within(GRACE, connection.rollback(), grace=0, after=after)
        except Exception:
            clean = False
        else:
            # psycopg would use an outdated plan again.
            clean = failure is None or failure.sqlstate != STALE_PLAN
        if not clean:
            with suppress(Exception):
                await within(GRACE, connection.invalidate(), grace=0, after=after)

    async def close(self) -> None:
        """Nothing: the engine is the host's."""


async def _connection(owner: Owner) -> AsyncConnection:
    return await owner.connection() if isinstance(owner, AsyncSession) else owner


async def _driver_connection(connection: AsyncConnection) -> Any:
    return (await connection.get_raw_connection()).driver_connection


async def _autocommit_block(connection: AsyncConnection) -> AbstractAsyncContextManager[object] | None:
    """The driver's own transaction where SQLAlchemy opens none (AUTOCOMMIT), else None."""
    pooled = await connection.get_raw_connection()
    adapted: Any = pooled.dbapi_connection
    held: Any = pooled.driver_connection
    return _native(connection.dialect.driver).begin(held) if adapted.autocommit else None


def _lost(error: Exception) -> Failure:
    return Failure(None, str(error))


def _native(driver: str) -> AsyncpgDriver | PsycopgDriver:
    """What speaks to the driver under a dialect; imported here, since an engine needs only one of the two."""
    if driver == "asyncpg":
        from symfonic_pg.postgres.executors.asyncpg import AsyncpgDriver

        return AsyncpgDriver()
    if driver == "psycopg":
        from symfonic_pg.postgres.executors.psycopg import PsycopgDriver

        return PsycopgDriver()
    rule = "postgresql+asyncpg or postgresql+psycopg"
    raise MemoryContractError(
        f"the engine's dialect must be {rule}, got {driver!r}", field="engine", rule=rule, got=driver
    )


def _native_failure(error: BaseException | None) -> Failure | None:
    """What the driver's exception says, under what SQLAlchemy's asyncpg dialect wrapped around it."""
    for candidate in (error, error.__cause__ if error else None):
        family = type(candidate).__module__.partition(".")[0]
        if isinstance(candidate, Exception) and family in ("asyncpg", "psycopg"):
            return _native(family).failure(candidate)
    return Failure(None, str(error)) if isinstance(error, ConnectionError) else None
