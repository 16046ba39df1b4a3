"""MemoryStore for callers that wait."""

from __future__ import annotations

from collections.abc import Callable
from functools import wraps
from inspect import signature
from types import TracebackType
from typing import ParamSpec, Self, Unpack

from symfonic_pg.postgres.executors import blocking_executor_for
from symfonic_pg.postgres.repository import MemoryRepository as AsyncMemoryRepository
from symfonic_pg.store import MemoryStore as AsyncMemoryStore
from symfonic_pg.store import StoreOptions, StoreSettings
from symfonic_pg.sync.bridge import Bridge
from symfonic_pg.sync.opening import Life, Opening
from symfonic_pg.sync.repository import MemoryRepository, under_way
from symfonic_pg.sync.stepping import SteppedStore
from symfonic_pg.sync.verbs import StoreVerbs
from symfonic_pg.sync.ways import Bridged, Stepped, Way

P = ParamSpec("P")


def _opens(enter: Callable[P, Life]) -> Callable[P, MemoryStore]:
    """The twin of a way to open an async store: same parameters, and the store is open when it returns."""

    @wraps(enter)
    def open_store(*args: P.args, **kwargs: P.kwargs) -> MemoryStore:
        bridge = Bridge()
        opening = Opening(bridge, lambda: enter(*args, **kwargs))
        try:
            settings = opening.store().settings
        except BaseException:
            opening.close()
            raise
        return MemoryStore(Bridged(bridge, opening.store), settings, bridge, opening)

    given = signature(enter).replace(return_annotation="MemoryStore")
    open_store.__signature__ = given  # type: ignore[attr-defined]
    return open_store


class MemoryStore(StoreVerbs):
    """Memories in PostgreSQL for scripts, workers and hosts without asyncio.

    Open one with `connect` or `embedded`, each a context manager and closed by `close` as well, or with `on`.
    Every verb is the asynchronous store's, for a caller that waits: those of a store on a pool run in an
    event loop in a thread beside, those of `using` in the caller's thread and transaction. Safe for any
    number of threads at once, and in a forked child, which gets connections of its own.
    """

    def __init__(
        self,
        way: Way[AsyncMemoryStore],
        settings: StoreSettings,
        bridge: Bridge,
        opening: Opening | None = None,
    ) -> None:
        self._way = way
        self.settings = settings
        self._bridge = bridge
        self._opening = opening

    connect = staticmethod(_opens(AsyncMemoryStore.connect))
    embedded = staticmethod(_opens(AsyncMemoryStore.embedded))

    @classmethod
    def on(cls, owner: object, **options: Unpack[StoreOptions]) -> Self:
        """A store on the host's Engine (postgresql+psycopg) or ConnectionPool, which is never closed."""
        return cls._on(owner, StoreSettings(**options), Bridge(), None)

    def using(self, connection: object) -> Self:
        """The same store in the transaction of a caller's Session, Connection or psycopg connection.

        Every statement runs in the calling thread. Commit and rollback stay the caller's, and so does the
        connection.
        """
        return self._on(connection, self.settings, self._bridge, self._way.behind)

    @classmethod
    def _on(
        cls, owner: object, settings: StoreSettings, bridge: Bridge, same: AsyncMemoryStore | None
    ) -> Self:
        executor = under_way(blocking_executor_for(owner, timeout=settings.timeout))
        repository = (
            AsyncMemoryRepository(executor, schema=settings.schema, language=settings.language)
            if same is None
            else same.repository.on(executor)
        )
        if executor.borrowed:
            stepped = SteppedStore.with_loop(repository, settings, lambda make: bridge.run(lambda _: make()))
            return cls(Stepped(stepped), settings, bridge)
        store = AsyncMemoryStore(repository, settings)
        return cls(Bridged(bridge, lambda: store), settings, bridge)

    @property
    def dsn(self) -> str:
        """The address of the database; MemoryContractError for a store on what a host owns."""
        return self._way.behind.dsn

    @property
    def fresh(self) -> Self:
        """The same store with its reads on the primary, where every write that has returned is seen."""
        return type(self)(self._way.to(lambda store: store.fresh), self.settings, self._bridge)

    @property
    def repository(self) -> MemoryRepository:
        """The repository behind the store, for callers that wait as well."""
        return MemoryRepository.over(self._way.to(lambda store: store.repository))

    def close(self) -> None:
        """Close what `connect` or `embedded` opened; a store on what the host owns has nothing to close."""
        if self._opening is not None:
            self._opening.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()
