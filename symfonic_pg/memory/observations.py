"""What a store saw about memories, before anybody judges it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from symfonic_pg.memory.records import MemoryRecord

# The ways in which a store finds candidates.
ROUTES = ("vector", "lexical", "recent", "salient", "profile", "graph")
# The most that one route may take from one level.
MAX_FANOUT = 10_000


@dataclass(frozen=True, slots=True)
class Observation:
    """One memory that a store found, or was asked about.

    `distance` in levels above the query; `routes` that found it; `cosine` of the embeddings in [-1, 1], None
    where one side has none; `lex` in [0, 1), None where no term was asked; `hops` from the nearest context
    record, None without a path.
    """

    record: MemoryRecord
    distance: int
    routes: frozenset[str] = frozenset()
    cosine: float | None = None
    lex: float | None = None
    hops: int | None = None


@dataclass(frozen=True, slots=True)
class Observations:
    """The answer of one search.

    `routes` counts the finds of each route that ran, 0 included; `unavailable` names those that could not;
    `completeness` says for each that ran whether it is exact, approximate or truncated.
    """

    found: tuple[Observation, ...] = ()
    routes: Mapping[str, int] = field(default_factory=dict)
    unavailable: tuple[str, ...] = ()
    completeness: Mapping[str, str] = field(default_factory=dict)
