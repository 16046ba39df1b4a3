"""From an address to an executor on a pool of its own, with whichever driver is there."""

from __future__ import annotations

from importlib import import_module

from symfonic_pg.memory.checks import whole
from symfonic_pg.postgres.drivers import choose_driver
from symfonic_pg.postgres.executors.base import Executor

_CLASSES = {"asyncpg": "AsyncpgExecutor", "psycopg": "PsycopgExecutor"}


def connected(
    dsn: str,
    *,
    driver: str | None = None,
    timeout: float = 10.0,
    pool_min: int = 0,
    pool_max: int = 10,
    prepared_statements: bool | None = None,
) -> Executor:
    """An executor that connects when it is first used.

    `driver` is asyncpg or psycopg; None takes the one that the DSN names, else the first that is installed.
    Statements are prepared unless a pooler stands in between; True and False decide it without looking.
    """
    whole(pool_max, "pool_max", 1, 10_000)
    whole(pool_min, "pool_min", 0, pool_max)
    name = choose_driver(dsn, driver=driver)
    module = import_module(f"symfonic_pg.postgres.executors.{name}")
    executor: Executor = getattr(module, _CLASSES[name]).connect(
        dsn, timeout=timeout, pool_min=pool_min, pool_max=pool_max, prepared_statements=prepared_statements
    )
    return executor
