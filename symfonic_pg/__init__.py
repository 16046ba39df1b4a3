"""Scoped memory for agents on PostgreSQL: remember at a height, recall in order, say why."""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from symfonic_pg.memory.errors import (
        MemoryContractError,
        MemoryUnavailable,
        SchemaMismatch,
        SymfonicError,
    )
    from symfonic_pg.memory.layers import MemoryLayer
    from symfonic_pg.memory.records import MemoryQuery, MemoryRecord
    from symfonic_pg.memory.scope import MemoryScope
    from symfonic_pg.store import MemoryStore

__version__ = "0.1.0"

__all__ = [
    "MemoryContractError",
    "MemoryLayer",
    "MemoryQuery",
    "MemoryRecord",
    "MemoryScope",
    "MemoryStore",
    "MemoryUnavailable",
    "SchemaMismatch",
    "SymfonicError",
    "__version__",
]


def __getattr__(name: str) -> Any:
    # Loaded on first use: `import symfonic_pg` alone costs nothing, and needs no driver.
    if name not in __all__:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    home = "symfonic_pg.store" if name == "MemoryStore" else "symfonic_pg.memory"
    return getattr(import_module(home), name)


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
