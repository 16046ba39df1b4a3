"""Executors: the thin part that differs from driver to driver."""

from __future__ import annotations

from importlib import import_module

from symfonic_pg.memory.errors import MemoryContractError
from symfonic_pg.postgres.executors.base import CopyTarget, Executor, Rows

__all__ = ["CopyTarget", "Executor", "Rows", "executor_for"]

# The package that an object's class comes from, and the module that knows what to do with it.
_FAMILIES = {
    "sqlalchemy": "sqlalchemy",
    "asyncpg": "asyncpg",
    "psycopg": "psycopg",
    "psycopg_pool": "psycopg",
}

_RULE = (
    "an asyncpg Pool or Connection, a psycopg AsyncConnectionPool or AsyncConnection,"
    " or a SQLAlchemy AsyncEngine, AsyncConnection or AsyncSession"
)


def executor_for(owner: object, *, timeout: float = 10.0) -> Executor:
    """The executor on what a host has: its pool or engine, or one connection or session and its transaction.

    Imports only the driver that `owner` comes from. MemoryContractError for anything else, a synchronous
    engine, pool or connection included.
    """
    for kind in type(owner).__mro__:
        module = _FAMILIES.get(kind.__module__.partition(".")[0])
        if module is not None:
            executor: Executor | None = import_module(f"{__name__}.{module}").executor_on(
                owner, timeout=timeout
            )
            if executor is not None:
                return executor
            break
    kind = type(owner)
    raise MemoryContractError(
        f"a store runs on {_RULE}, got {kind.__module__}.{kind.__qualname__}",
        field="owner",
        rule=_RULE,
        got=kind,
    )
