"""From an address to an executor on a pool of its own, with whichever driver is there."""

from __future__ import annotations

from importlib import import_module
from importlib.util import find_spec

from symfonic_pg.memory.errors import MemoryContractError, SymfonicError
from symfonic_pg.postgres.dsn import driver_of
from symfonic_pg.postgres.executors.base import Executor

# In the order of preference; what each needs to be installed.
_NEEDS = {"asyncpg": ("asyncpg",), "psycopg": ("psycopg", "psycopg_pool")}
_CLASSES = {"asyncpg": "AsyncpgExecutor", "psycopg": "PsycopgExecutor"}


def connected(
    dsn: str,
    *,
    driver: str | None = None,
    timeout: float = 10.0,
    pool_min: int = 0,
    pool_max: int = 10,
    prepared_statements: bool = True,
) -> Executor:
    """An executor that connects when it is first used.

    `driver` is asyncpg or psycopg; None takes the one that the DSN names, else the first that is installed.
    """
    name = driver or driver_of(dsn) or _installed()
    if name not in _NEEDS:
        rule = " or ".join(_NEEDS)
        raise MemoryContractError(f"driver must be {rule}, got {name!r}", field="driver", rule=rule, got=name)
    module = import_module(f"symfonic_pg.postgres.executors.{name}")
    executor: Executor = getattr(module, _CLASSES[name]).connect(
        dsn, timeout=timeout, pool_min=pool_min, pool_max=pool_max, prepared_statements=prepared_statements
    )
    return executor


def _installed() -> str:
    for name, packages in _NEEDS.items():
        if all(find_spec(package) for package in packages):
            return name
    raise SymfonicError("no driver is installed: pip install 'symfonic-pg[asyncpg]' or 'symfonic-pg[psycopg]'")
