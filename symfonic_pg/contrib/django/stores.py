"""The project's stores: one on Django's connections, one on a pool of its own for async code."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator
from contextlib import AbstractAsyncContextManager
from functools import cache
from typing import Unpack

from django.core.exceptions import ImproperlyConfigured

from symfonic_pg.contrib.django.bridging import one_loop_a_call
from symfonic_pg.contrib.django.configuration import Configuration, configured
from symfonic_pg.contrib.django.databases import address_of, obstacle, prepares
from symfonic_pg.memory.errors import MemoryContractError
from symfonic_pg.postgres.connecting import connected
from symfonic_pg.postgres.dsn import normalise
from symfonic_pg.postgres.executors.completing import complete
from symfonic_pg.postgres.repository import MemoryRepository as AsyncMemoryRepository
from symfonic_pg.store import MemoryStore, StoreOptions, StoreSettings
from symfonic_pg.sync import MemoryRepository
from symfonic_pg.sync.stepping import SteppedStore
from symfonic_pg.sync.verbs import StoreVerbs
from symfonic_pg.sync.ways import Stepped


class DjangoMemoryStore(StoreVerbs):
    """The verbs of MemoryStore for synchronous code, on Django's connection.

    Inside `transaction.atomic()` whatever it writes is committed or rolled back with the block. Each verb is
    the async store's own, run to its end. Safe for any number of threads: each has its own connection, from
    Django.
    """

    def __init__(self, alias: str, **options: Unpack[StoreOptions]) -> None:
        from symfonic_pg.contrib.django.executor import DjangoExecutor

        settings = self.settings = StoreSettings(**options)
        self.alias = alias
        executor = DjangoExecutor(alias, timeout=settings.timeout)
        repository = AsyncMemoryRepository(executor, schema=settings.schema, language=settings.language)
        run = one_loop_a_call(settings.embedder)
        self._way = Stepped(SteppedStore.with_loop(repository, settings, run))

    @property
    def repository(self) -> MemoryRepository:
        """The repository behind the store, on the same connection."""
        return MemoryRepository.over(self._way.to(lambda store: store.repository))

    def __repr__(self) -> str:
        return f"DjangoMemoryStore({self.alias!r}, schema={self.settings.schema!r})"


def memory_store(using: str | None = None) -> DjangoMemoryStore:
    """The store on Django's connection for an alias, by default that of SYMFONIC_PG_DATABASE.

    It may be kept, also by a module, and shared by threads. In async code use `async_memory_store`.
    """
    configuration = configured()
    return _store_on(using or configuration.database, configuration)


def async_memory_store(using: str | None = None) -> MemoryStore:
    """The store for async views: a MemoryStore on a pool of its own, outside Django's transactions.

    Each event loop has one for an alias; call this where you use it, and keep nothing. It is closed when its
    loop ends, and at an ASGI server's shutdown by `MemoryLifespan`.
    """
    try:
        loop = asyncio.get_running_loop()
    except RuntimeError:
        raise MemoryContractError(
            "there is no running event loop: use memory_store() in synchronous code"
        ) from None
    configuration = configured()
    key = loop, using or configuration.database, configuration
    if key not in _open:
        _close_of_ended_loops()
        life = _life(*key)
        # A loop that ends closes every generator that began in it, and this one closes the pool.
        _open[key] = life, complete(anext(life))
    return _open[key][1]


async def close_async_stores() -> None:
    """Close the stores of the running loop; the next `async_memory_store` opens another."""
    loop = asyncio.get_running_loop()
    for key, (life, _) in list(_open.items()):
        if key[0] is loop:
            await life.aclose()


def connected_store(alias: str, configuration: Configuration) -> AbstractAsyncContextManager[MemoryStore]:
    """A store on a pool of its own, to the database that an alias names."""
    _check(alias)
    return MemoryStore.connect(
        address_of(alias),
        pool_max=configuration.pool_max,
        prepared_statements=prepares(alias),
        **configuration.options,
    )


_Key = tuple[asyncio.AbstractEventLoop, str, Configuration]
_open: dict[_Key, tuple[AsyncGenerator[MemoryStore, None], MemoryStore]] = {}


async def _life(
    loop: asyncio.AbstractEventLoop, alias: str, configuration: Configuration
) -> AsyncGenerator[MemoryStore, None]:
    # Not within MemoryStore.connect: that is such a generator too, and the loop would close both at once.
    _check(alias)
    address, settings = address_of(alias), configuration.store
    executor = connected(
        address,
        timeout=settings.timeout,
        pool_max=configuration.pool_max,
        prepared_statements=prepares(alias),
    )
    repository = AsyncMemoryRepository(executor, schema=settings.schema, language=settings.language)
    try:
        yield MemoryStore(repository, settings, dsn=normalise(address))
    finally:
        _open.pop((loop, alias, configuration), None)
        await executor.close()


def _close_of_ended_loops() -> None:
    """Close what a loop left open that was closed without ending its generators."""
    for key in list(_open):
        # Taken out first: two threads may come by here at once.
        if key[0].is_closed() and (left := _open.pop(key, None)) is not None:
            complete(left[0].aclose())


@cache
def _store_on(alias: str, configuration: Configuration) -> DjangoMemoryStore:
    _check(alias)
    return DjangoMemoryStore(alias, **configuration.options)


def _check(alias: str) -> None:
    reason = obstacle(alias)
    if reason is not None:
        raise ImproperlyConfigured(reason)
