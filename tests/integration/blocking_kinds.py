"""Every way to a repository for callers that wait, opened alike, and asked as an asynchronous one."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass
from typing import Any

import psycopg
from psycopg_pool import ConnectionPool
from sqlalchemy import Engine, create_engine
from sqlalchemy.orm import Session

from symfonic_pg.sync import MemoryRepository, MemoryStore


@dataclass(frozen=True)
class Blocking:
    """`open(dsn)` gives a repository for a block; `borrowed` where the transaction is a caller's."""

    name: str
    open: Callable[[str], AbstractContextManager[MemoryRepository]]
    borrowed: bool

    def __str__(self) -> str:
        return self.name


class Awaited:
    """The verbs of a repository that waits, as coroutines: what the contract calls."""

    borrowed = False

    def __init__(self, repository: MemoryRepository) -> None:
        self.repository = repository

    def __getattr__(self, name: str) -> Any:
        verb = getattr(self.repository, name)
        assert inspect.ismethod(verb), name

        async def awaited(*args: Any, **kwargs: Any) -> Any:
            return verb(*args, **kwargs)

        return awaited


def blocking_engine(dsn: str, **options: Any) -> Engine:
    """An engine without asyncio."""
    return create_engine(dsn.replace("postgresql://", "postgresql+psycopg://"), **options)


@contextmanager
def session(dsn: str) -> Iterator[MemoryRepository]:
    engine = blocking_engine(dsn)
    with Session(engine) as opened:
        yield MemoryRepository(opened)
    engine.dispose()


@contextmanager
def connection(dsn: str) -> Iterator[MemoryRepository]:
    engine = blocking_engine(dsn)
    with engine.connect() as opened:
        yield MemoryRepository(opened)
    engine.dispose()


@contextmanager
def engine(dsn: str) -> Iterator[MemoryRepository]:
    made = blocking_engine(dsn)
    yield MemoryRepository(made)
    made.dispose()


@contextmanager
def autocommit_engine(dsn: str) -> Iterator[MemoryRepository]:
    made = blocking_engine(dsn, isolation_level="AUTOCOMMIT")
    yield MemoryRepository(made)
    made.dispose()


@contextmanager
def psycopg_connection(dsn: str) -> Iterator[MemoryRepository]:
    opened = psycopg.connect(dsn)
    try:
        yield MemoryRepository(opened)
    finally:
        opened.close()


@contextmanager
def psycopg_pool(dsn: str) -> Iterator[MemoryRepository]:
    with ConnectionPool(dsn, min_size=0, max_size=4, open=True) as pool:
        yield MemoryRepository(pool)


def connected(driver: str) -> Callable[[str], AbstractContextManager[MemoryRepository]]:
    @contextmanager
    def opened(dsn: str) -> Iterator[MemoryRepository]:
        with MemoryStore.connect(dsn, driver=driver) as store:
            yield store.repository

    return opened


BLOCKING = [
    Blocking("sync-session", session, borrowed=True),
    Blocking("sync-connection", connection, borrowed=True),
    Blocking("sync-psycopg-connection", psycopg_connection, borrowed=True),
    Blocking("sync-engine", engine, borrowed=False),
    Blocking("sync-engine-autocommit", autocommit_engine, borrowed=False),
    Blocking("sync-psycopg-pool", psycopg_pool, borrowed=False),
    Blocking("sync-asyncpg", connected("asyncpg"), borrowed=False),
    Blocking("sync-psycopg", connected("psycopg"), borrowed=False),
]
