"""MemoryRepository for callers that wait."""

from __future__ import annotations

from typing import Self

from symfonic_pg.postgres import repository
from symfonic_pg.postgres.executors import blocking_executor_for
from symfonic_pg.postgres.executors.base import Executor
from symfonic_pg.postgres.executors.threaded import ThreadedExecutor
from symfonic_pg.sync.bridge import Bridge
from symfonic_pg.sync.verbs import RepositoryVerbs
from symfonic_pg.sync.ways import Bridged, Stepped, Way


class MemoryRepository(RepositoryVerbs):
    """The repository's verbs on what a synchronous host has.

    On a Session, a Connection or psycopg's connection every statement runs in the calling thread and in the
    caller's transaction, which is never committed and whose connection is never closed. On an Engine or a
    ConnectionPool each call is a transaction of its own.
    """

    def __init__(
        self, owner: object, *, schema: str = "symfonic", language: str = "english", timeout: float = 10.0
    ) -> None:
        executor = blocking_executor_for(owner, timeout=timeout)
        behind = repository.MemoryRepository(under_way(executor), schema=schema, language=language)
        self._way = Stepped(behind) if executor.borrowed else Bridged(Bridge(), lambda: behind)

    @classmethod
    def over(cls, way: Way[repository.MemoryRepository]) -> Self:
        """The repository at the end of a way."""
        made = cls.__new__(cls)
        made._way = way
        return made


def under_way(executor: Executor) -> Executor:
    """A blocking executor as its way needs it: on a pool under a loop, and so in threads."""
    return executor if executor.borrowed else ThreadedExecutor(executor)
