"""The candidate source over the in-memory repository."""

from __future__ import annotations

from symfonic_pg.memory.observing import ObservingSource


class InMemoryCandidateSource(ObservingSource):
    """What the source on PostgreSQL is, over an InMemoryRepository: the same signals by the same formulas."""
