"""For tests without a server, and of new repositories: the in-memory twin, the contract, strategies.

`InMemoryRepository` and `InMemoryCandidateSource` stand in for those on PostgreSQL. `CONTRACT` is every
behaviour that a repository must show, for any test runner; `symfonic_pg.testing.plugin` runs it with pytest.
`symfonic_pg.testing.strategies` makes scopes, records and queries for Hypothesis.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from symfonic_pg.testing.contract import CONTRACT as CONTRACT
    from symfonic_pg.testing.contract import Behaviour as Behaviour
    from symfonic_pg.testing.contract import ContractRepository as ContractRepository
    from symfonic_pg.testing.sources import InMemoryCandidateSource as InMemoryCandidateSource
    from symfonic_pg.testing.twin import InMemoryRepository as InMemoryRepository

# Loaded on first use: pytest rewrites the contract's assertions only if nobody imported it before the plugin.
_HOMES = {
    "CONTRACT": "symfonic_pg.testing.contract",
    "Behaviour": "symfonic_pg.testing.contract",
    "ContractRepository": "symfonic_pg.testing.contract",
    "InMemoryCandidateSource": "symfonic_pg.testing.sources",
    "InMemoryRepository": "symfonic_pg.testing.twin",
}

__all__ = [
    "CONTRACT",
    "Behaviour",
    "ContractRepository",
    "InMemoryCandidateSource",
    "InMemoryRepository",
]


def __getattr__(name: str) -> Any:
    home = _HOMES.get(name)
    if home is None:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(import_module(home), name)


def __dir__() -> list[str]:
    return sorted({*globals(), *_HOMES})
