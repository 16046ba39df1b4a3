"""What a repository runs its statements on, and what each driver has to provide for that."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from contextlib import AbstractAsyncContextManager
from dataclasses import dataclass
from typing import Any, Protocol, TypeVar, runtime_checkable

from symfonic_pg.postgres.statements import Statement, load_statement

ConnectionT = TypeVar("ConnectionT")
HeldT = TypeVar("HeldT", contravariant=True)

Rows = Sequence[Sequence[Any]]


@runtime_checkable
class Executor(Protocol):
    """Runs statements: on a pool, or on one connection that somebody else owns.

    Whatever the driver, a call ends within the executor's timeout (and half a second for cleaning up), and
    what goes wrong is a MemoryUnavailable, a SchemaMismatch or a MemoryContractError. Any other exception is
    a bug and passes unchanged.
    """

    @property
    def borrowed(self) -> bool:
        """True on one connection of somebody else's: statements queue there, and commit is not ours."""
        ...

    async def fetch(self, statement: Statement) -> Rows:
        """Run one statement; rows by position, of plain values. Instants are aware, in any time zone."""
        ...

    def transaction(self) -> AbstractAsyncContextManager[Executor]:
        """What runs on the yielded executor happens as a whole: a transaction, or a savepoint if borrowed.

        Inside the block use the yielded executor alone.
        """
        ...

    async def copy(self, target: CopyTarget, chunks: Iterable[bytes]) -> None:
        """Load rows that are in the binary COPY format already; all of them, or none."""
        ...

    async def close(self) -> None:
        """Close what this executor opened, and only that."""
        ...


@dataclass(frozen=True, slots=True)
class CopyTarget:
    """Where COPY writes: a table, and its columns in the order in which the rows hold them."""

    schema: str
    table: str
    columns: tuple[str, ...]

    def statement(self) -> Statement:
        """The COPY, with every name checked and quoted."""
        return load_statement("copy_into", schema=self.schema, table=self.table, columns=self.columns)


@dataclass(frozen=True, slots=True)
class Failure:
    """What a driver reports, in words that all of them share.

    `sqlstate` is None where not a statement failed but the connection. `message` holds no values of a
    statement.
    """

    sqlstate: str | None
    message: str


class Translator(Protocol):
    """Who knows what a driver's exceptions mean."""

    def failure(self, error: Exception) -> Failure | None:
        """What the driver's exception says; None for one that is not the database's."""
        ...


class Driver(Translator, Protocol[HeldT]):
    """One driver's way to do each thing; holds no state."""

    async def fetch(self, connection: HeldT, statement: Statement) -> Rows:
        """Run one statement on this connection."""
        ...

    async def copy(self, connection: HeldT, target: CopyTarget, chunks: Iterable[bytes]) -> None:
        """Run one COPY on this connection."""
        ...

    def begin(self, connection: HeldT) -> AbstractAsyncContextManager[object]:
        """A transaction on a connection that is in none."""
        ...

    def savepoint(self, connection: HeldT) -> AbstractAsyncContextManager[object]:
        """A savepoint in whatever transaction the connection's owner has, or will find, open."""
        ...


class Connections(Protocol[ConnectionT]):
    """A pool, ours or the host's."""

    async def acquire(self) -> ConnectionT:
        """A connection that is open and in no transaction."""
        ...

    async def release(self, connection: ConnectionT, *, after: BaseException | None) -> None:
        """Take it back; after a failure it is rolled back first, or closed if that takes too long."""
        ...

    async def close(self) -> None:
        """Close the connections that we opened."""
        ...
