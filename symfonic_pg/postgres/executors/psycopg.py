"""psycopg 3: on a pool of ours or the host's, or on one connection."""

from __future__ import annotations

import select
import struct
from collections.abc import AsyncIterator, Iterable
from contextlib import AbstractAsyncContextManager, asynccontextmanager, suppress
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING, Any, TypeAlias
from weakref import WeakSet

import psycopg
from psycopg.abc import Buffer
from psycopg.adapt import Loader
from psycopg.pq import ExecStatus, Format, TransactionStatus
from psycopg.rows import TupleRow, tuple_row

from symfonic_pg.memory.errors import MemoryContractError
from symfonic_pg.postgres.dsn import normalise, redacted
from symfonic_pg.postgres.executors.base import CopyTarget, Executor, Failure, Rows
from symfonic_pg.postgres.executors.borrowed import BorrowedExecutor
from symfonic_pg.postgres.executors.deadlines import GRACE, within
from symfonic_pg.postgres.executors.pooled import PooledExecutor
from symfonic_pg.postgres.executors.pooling import ConnectionPool
from symfonic_pg.postgres.executors.preparing import Preparing
from symfonic_pg.postgres.statements import Statement

if TYPE_CHECKING:
    from psycopg_pool import AsyncConnectionPool

Connection: TypeAlias = psycopg.AsyncConnection[Any]
AnyCursor: TypeAlias = "psycopg.AsyncRawCursor[Any] | psycopg.RawCursor[Any]"

# A statement is prepared when a connection runs it for the sixth time: psycopg's default, kept on purpose.
# From the first time on (0) would cost a round trip more for each of the many that run once; whether a plan
# may then become generic is settled by the SQL functions themselves.
_PREPARE_AFTER = 5

_UTC_ZONES = {b"UTC", b"Etc/UTC", b"GMT"}
_EPOCH = datetime(2000, 1, 1, tzinfo=UTC)
_unpacked = struct.Struct("!q").unpack


class PsycopgExecutor(PooledExecutor[Connection]):
    """Runs on a pool: one of its own, made by `connect`, or the host's, which it never closes.

    The host's AsyncConnectionPool has to be open.
    """

    def __init__(self, pool: AsyncConnectionPool[Any], *, timeout: float = 10.0) -> None:
        super().__init__(PsycopgDriver(), _HostPool(pool), timeout=timeout)

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
        address, driver = normalise(dsn), PsycopgDriver(own=True)
        preparing: Preparing[Connection] = Preparing(prepared_statements, _number, _finds)
        pool = ConnectionPool(lambda: _opened(address, preparing), driver, minimum=pool_min, maximum=pool_max)
        return PooledExecutor(driver, pool, timeout=timeout)


def executor_on(owner: object, *, timeout: float) -> Executor | None:
    """The executor for a pool or connection of psycopg's; None for anything else."""
    if isinstance(owner, psycopg.AsyncConnection):
        return BorrowedExecutor(PsycopgDriver(), owner, timeout=timeout)
    if any(kind.__module__.startswith("psycopg_pool.") for kind in type(owner).__mro__):
        from psycopg_pool import AsyncConnectionPool

        if isinstance(owner, AsyncConnectionPool):
            return PsycopgExecutor(owner, timeout=timeout)
    return None


class PsycopgDriver:
    """psycopg's calls, with results in the binary format: they don't depend on DateStyle or bytea_output.

    On connections that are not our `own` no statement is prepared: nobody knows what stands behind them, and
    it would stay in a session of the host's.
    """

    def __init__(self, *, own: bool = False) -> None:
        self._prepare = None if own else False

    async def fetch(self, connection: Connection, statement: Statement) -> Rows:
        cursor = _cursor(connection)
        await cursor.execute(statement.text, statement.parameters, prepare=self._prepare, binary=True)
        if cursor.pgresult is None or cursor.pgresult.status != ExecStatus.TUPLES_OK:
            return []
        return await cursor.fetchall()

    async def copy(self, connection: Connection, target: CopyTarget, chunks: Iterable[bytes]) -> None:
        async with _cursor(connection).copy(target.statement().text) as copy:
            for chunk in chunks:
                await copy.write(chunk)

    def begin(self, connection: Connection) -> AbstractAsyncContextManager[object]:
        return connection.transaction()

    @asynccontextmanager
    async def savepoint(self, connection: Connection) -> AsyncIterator[object]:
        if not connection.autocommit and connection.pgconn.transaction_status == TransactionStatus.IDLE:
            # Makes psycopg begin the owner's transaction: transaction() would begin one that ends in a
            # COMMIT.
            await connection.execute("")
        async with connection.transaction():
            yield connection

    def failure(self, error: Exception) -> Failure | None:
        if not isinstance(error, psycopg.Error):
            return None
        if error.sqlstate is None and not isinstance(
            error, (psycopg.OperationalError, psycopg.InterfaceError)
        ):
            return None
        return Failure(error.sqlstate, error.diag.message_primary or str(error).strip())

    def is_open(self, connection: Connection) -> bool:
        if connection.closed or connection.pgconn.transaction_status != TransactionStatus.IDLE:
            return False
        if _readable(connection):
            with suppress(psycopg.Error):
                connection.pgconn.consume_input()
            # A notice is read and gone; the end of the stream stays readable.
            return not connection.closed and not _readable(connection)
        return True

    async def ping(self, connection: Connection) -> None:
        await connection.execute("")

    async def settle(self, connection: Connection, after: BaseException) -> None:
        if isinstance(after, psycopg.errors.FeatureNotSupported):
            # The plan of a prepared statement is out of date, and psycopg would use it again.
            raise after
        # psycopg has waited for a cancelled statement already, or given the connection up.
        status = connection.pgconn.transaction_status
        if status in (TransactionStatus.INTRANS, TransactionStatus.INERROR):
            await connection.rollback()
        elif status != TransactionStatus.IDLE:
            raise psycopg.OperationalError("the connection is still busy")

    def drop(self, connection: Connection) -> None:
        connection.pgconn.finish()


class _InstantInUtc(Loader):
    """timestamptz without the session's time zone, in which the first and last years may not exist."""

    format = Format.BINARY

    def load(self, data: Buffer) -> datetime:
        return _EPOCH + timedelta(microseconds=_unpacked(data)[0])


def _cursor(connection: Connection) -> psycopg.AsyncRawCursor[TupleRow]:
    cursor = psycopg.AsyncRawCursor(connection, row_factory=tuple_row)
    read_instants_in_utc(cursor)
    return cursor


def read_instants_in_utc(cursor: AnyCursor) -> None:
    """Make binary instants independent of the session's time zone: on the cursor, never on the connection."""
    # psycopg's own loader is faster, and right where the zone is UTC.
    if cursor.connection.pgconn.parameter_status(b"TimeZone") not in _UTC_ZONES:
        cursor.adapters.register_loader("timestamptz", _InstantInUtc)


async def _opened(address: str, preparing: Preparing[Connection]) -> Connection:
    connection = await _connect(address)
    try:
        if await preparing.allowed(connection):
            connection.prepare_threshold = _PREPARE_AFTER
    except BaseException:
        connection.pgconn.finish()
        raise
    return connection


def _number(connection: Connection) -> int:
    return connection.pgconn.backend_pid


async def _finds(connection: Connection, statement: Statement) -> bool:
    return await (await _cursor(connection).execute(statement.text, prepare=False)).fetchone() is not None


async def _connect(address: str) -> Connection:
    try:
        return await psycopg.AsyncConnection.connect(
            address, autocommit=True, prepare_threshold=None, client_encoding="utf8"
        )
    except psycopg.ProgrammingError:
        # What the driver says may quote the address, and with it the password.
        rule = "an address that libpq understands"
        raise MemoryContractError(
            f"dsn must be {rule}: {redacted(address)}", field="dsn", rule=rule
        ) from None


def _readable(connection: Connection) -> bool:
    socket = connection.pgconn.socket
    if hasattr(select, "poll"):
        # Unlike select(), it takes descriptors above 1023.
        poll = select.poll()
        poll.register(socket, select.POLLIN)
        return bool(poll.poll(0))
    return bool(select.select([socket], [], [], 0)[0])


class _HostPool:
    """The host's pool; a connection that is not in autocommit mode is, for as long as we have it."""

    def __init__(self, pool: AsyncConnectionPool[Any]) -> None:
        self._pool = pool
        self._driver = PsycopgDriver()
        self._switched: WeakSet[Connection] = WeakSet()

    async def acquire(self) -> Connection:
        while True:
            connection: Connection = await self._pool.getconn()
            if self._driver.is_open(connection):
                break
            connection.pgconn.finish()
            await self._pool.putconn(connection)
        if not connection.autocommit:
            self._switched.add(connection)
            await connection.set_autocommit(True)
        return connection

    async def release(self, connection: Connection, *, after: BaseException | None) -> None:
        clean = False
        try:
            with suppress(Exception):
                if after is not None:
                    await within(GRACE, self._driver.settle(connection, after), grace=0, after=after)
                if connection in self._switched:
                    await connection.set_autocommit(False)
                clean = True
        finally:
            self._switched.discard(connection)
            if not clean:
                connection.pgconn.finish()
            await self._pool.putconn(connection)

    async def close(self) -> None:
        """Nothing: the pool is the host's."""
