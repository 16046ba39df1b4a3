"""PostgresCandidateSource: what PostgreSQL observed, as candidates with signals."""

from __future__ import annotations

from symfonic_pg.memory.observing import ObservingSource


class PostgresCandidateSource(ObservingSource):
    """The candidates, associations and conversations of a MemoryRepository.

    One search is one statement (a second one where a lineage speaks a language that this process has not
    met). Everything else is that of every store: see ObservingSource for the parameters,
    symfonic_pg.memory.signals for the formulas.
    """
