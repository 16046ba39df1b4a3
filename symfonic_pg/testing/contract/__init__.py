"""The contract of a repository: every behaviour that each of them shows, in memory or on a server.

    for behaviour in CONTRACT:
        await behaviour(repository)

A behaviour raises AssertionError where the repository does something else. It makes up its own tenant and
model names, so any number of them may share one store, whose language is `english`. A second argument, a
function that makes one more repository on the same storage, is used by the few with `needs_another`.
"""

from symfonic_pg.testing.contract import (
    changing,
    conversation,
    graph,
    isolation,
    limits,
    matching,
    reading,
    searching,
    signals,
    writing,
)
from symfonic_pg.testing.contract.base import BEHAVIOURS, Behaviour, ContractRepository

CONTRACT: tuple[Behaviour, ...] = tuple(BEHAVIOURS)

__all__ = [
    "CONTRACT",
    "Behaviour",
    "ContractRepository",
    "changing",
    "conversation",
    "graph",
    "isolation",
    "limits",
    "matching",
    "reading",
    "searching",
    "signals",
    "writing",
]
