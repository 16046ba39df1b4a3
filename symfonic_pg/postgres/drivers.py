"""Which driver speaks to a database: the one that is named, else one that is installed."""

from __future__ import annotations

from importlib.util import find_spec

from symfonic_pg.memory.errors import MemoryContractError, SymfonicError
from symfonic_pg.postgres.dsn import driver_of

DRIVERS = ("asyncpg", "psycopg")


def choose_driver(dsn: str, *, driver: str | None = None, preferred: tuple[str, ...] = DRIVERS) -> str:
    """'asyncpg' or 'psycopg': `driver`, else the DSN's own (postgresql+psycopg://), else the first installed.

    MemoryContractError for another name or a DSN of another form; SymfonicError, naming the extra to install,
    where the one chosen is not there.
    """
    named = driver_of(dsn)
    if driver is not None and driver not in DRIVERS:
        rule = "'asyncpg', 'psycopg' or None"
        message = f"driver must be {rule}, got {driver!r}"
        raise MemoryContractError(message, field="driver", rule=rule, got=driver)
    installed = [name for name in preferred if find_spec(name) is not None]
    chosen = driver or named or next(iter(installed), None)
    if chosen is None:
        raise SymfonicError("no driver is installed: pip install 'symfonic-pg[asyncpg]', or [psycopg]")
    if chosen not in installed:
        raise SymfonicError(f"the driver {chosen} is not installed: pip install 'symfonic-pg[{chosen}]'")
    return chosen
