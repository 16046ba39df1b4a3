"""The PostgreSQL store: statements, executors, repository and candidate source."""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from symfonic_pg.postgres.executors import executor_for as executor_for
    from symfonic_pg.postgres.repository import MemoryRepository as MemoryRepository
    from symfonic_pg.postgres.sources import PostgresCandidateSource as PostgresCandidateSource

# Loaded on first use: whoever migrates or embeds needs no repository.
_HOMES = {
    "MemoryRepository": "symfonic_pg.postgres.repository",
    "PostgresCandidateSource": "symfonic_pg.postgres.sources",
    "executor_for": "symfonic_pg.postgres.executors",
}

__all__ = ["MemoryRepository", "PostgresCandidateSource", "executor_for"]


def __getattr__(name: str) -> Any:
    home = _HOMES.get(name)
    if home is None:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(import_module(home), name)
