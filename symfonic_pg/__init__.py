"""Scoped memory for agents on PostgreSQL: remember at a height, recall in order, say why."""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from symfonic_pg.store import MemoryStore as MemoryStore

__version__ = "0.1.0"

# Loaded on first use, so that `import symfonic_pg.memory` needs nothing but the standard library.
_HOMES = {"MemoryStore": "symfonic_pg.store"}

__all__ = ["MemoryStore", "__version__"]


def __getattr__(name: str) -> Any:
    home = _HOMES.get(name)
    if home is None:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(import_module(home), name)


def __dir__() -> list[str]:
    return sorted({*globals(), *_HOMES})
