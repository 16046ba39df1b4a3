"""Executors: the thin part that differs from driver to driver."""

from __future__ import annotations

from importlib import import_module

from symfonic_pg.memory.errors import MemoryContractError, SymfonicError
from symfonic_pg.postgres.executors.base import CopyTarget, Executor, Rows

__all__ = ["CopyTarget", "Executor", "Rows", "blocking_executor_for", "executor_for"]

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
_BLOCKING_RULE = (
    "a psycopg Connection or ConnectionPool, or a SQLAlchemy Session, Connection or Engine of the dialect"
    " postgresql+psycopg"
)


def executor_for(owner: object, *, timeout: float = 10.0) -> Executor:
    """The executor on what a host has: its pool or engine, or one connection or session and its transaction.

    An executor is passed on as it is. Imports only the driver that `owner` comes from. MemoryContractError
    for anything else, a synchronous engine, pool or connection included.
    """
    if isinstance(owner, Executor):
        return owner
    family = _family_of(owner)
    if family is not None:
        module = import_module(f"{__name__}.{_FAMILIES[family]}")
        executor: Executor | None = module.executor_on(owner, timeout=timeout)
        if executor is not None:
            return executor
    raise _refusal(owner, "a store", _RULE, "; a synchronous one goes to symfonic_pg.sync" if family else "")


def blocking_executor_for(owner: object, *, timeout: float = 10.0) -> Executor:
    """The executor on what a synchronous host has: its pool or engine, or one connection or session.

    An executor is passed on as it is. MemoryContractError for anything else, an asynchronous one included;
    SymfonicError where psycopg 3 is not installed.
    """
    if isinstance(owner, Executor):
        return owner
    family = _family_of(owner)
    if family is not None and family != "asyncpg":
        try:
            module = import_module(f"{__name__}.blocking_{_FAMILIES[family]}")
        except ImportError as exc:
            hint = "pip install 'symfonic-pg[psycopg]'"
            raise SymfonicError(f"symfonic_pg.sync needs psycopg 3: {hint}") from exc
        executor: Executor | None = module.executor_on(owner, timeout=timeout)
        if executor is not None:
            return executor
    hint = "; an asynchronous one goes to symfonic_pg.MemoryStore" if family else ""
    raise _refusal(owner, "a store of symfonic_pg.sync", _BLOCKING_RULE, hint)


def _family_of(owner: object) -> str | None:
    """The package that the object's class, or one that it derives from, belongs to."""
    packages = (kind.__module__.partition(".")[0] for kind in type(owner).__mro__)
    return next((package for package in packages if package in _FAMILIES), None)


def _refusal(owner: object, who: str, rule: str, hint: str) -> MemoryContractError:
    kind = type(owner)
    message = f"{who} runs on {rule}, got {kind.__module__}.{kind.__qualname__}{hint}"
    return MemoryContractError(message, field="owner", rule=rule, got=kind)
