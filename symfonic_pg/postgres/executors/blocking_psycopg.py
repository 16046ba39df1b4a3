"""psycopg's synchronous connections and pools."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import AbstractContextManager, contextmanager, suppress
from typing import TYPE_CHECKING, Any, TypeAlias, cast

import psycopg
from psycopg.pq import TransactionStatus

from symfonic_pg.postgres.executors.base import Executor, Failure
from symfonic_pg.postgres.executors.blocking import BlockingExecutor, BlockingPoolExecutor
from symfonic_pg.postgres.executors.psycopg import PsycopgDriver

if TYPE_CHECKING:
    from psycopg_pool import ConnectionPool

Connection: TypeAlias = psycopg.Connection[Any]


def executor_on(owner: object, *, timeout: float) -> Executor | None:
    """The executor for a synchronous pool or connection of psycopg's; None for anything else."""
    if isinstance(owner, psycopg.Connection):
        return BlockingExecutor(BlockingPsycopg(), owner, timeout=timeout)
    if any(kind.__module__.startswith("psycopg_pool.") for kind in type(owner).__mro__):
        from psycopg_pool import ConnectionPool

        if isinstance(owner, ConnectionPool):
            return BlockingPoolExecutor(BlockingPsycopg(), _HostPool(owner), timeout=timeout)
    return None


class BlockingPsycopg:
    """Without anything between: the owner is psycopg's connection."""

    def native(self, owner: Connection) -> Connection:
        return owner

    def begin(self, owner: Connection) -> AbstractContextManager[object]:
        return owner.transaction()

    @contextmanager
    def savepoint(self, owner: Connection) -> Iterator[object]:
        if not owner.autocommit and owner.pgconn.transaction_status == TransactionStatus.IDLE:
            # Makes psycopg begin the owner's transaction: transaction() would begin one that ends in a
            # COMMIT.
            owner.execute("")
        with owner.transaction():
            yield owner

    def lost(self, owner: Connection) -> None:
        """Nothing: psycopg knows."""

    def failure(self, error: Exception) -> Failure | None:
        return PsycopgDriver().failure(error)


class _HostPool:
    """The host's pool; its own rules say how a connection is made and reset."""

    def __init__(self, pool: ConnectionPool[Any]) -> None:
        self._pool = pool

    @contextmanager
    def lend(self, timeout: float) -> Iterator[Connection]:
        connection: Connection = self._pool.getconn(timeout=timeout)
        while not stands(connection):
            connection.pgconn.finish()
            self._pool.putconn(connection)
            connection = self._pool.getconn(timeout=timeout)
        try:
            yield connection
        except BaseException as error:
            if isinstance(error.__cause__, psycopg.errors.FeatureNotSupported):
                # The plan of a prepared statement is out of date, and psycopg would use it again.
                connection.pgconn.finish()
            raise
        finally:
            with suppress(psycopg.Error):
                self._pool.putconn(connection)


def stands(connection: Connection) -> bool:
    """Whether it is open and in no transaction, as far as can be told without asking the server."""
    return PsycopgDriver().is_open(cast("psycopg.AsyncConnection[Any]", connection))
