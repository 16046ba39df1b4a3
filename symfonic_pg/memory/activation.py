"""What an expansion over the association graph is made of: edges, the nodes it lit up, and its log."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, field

from symfonic_pg.memory.errors import MemoryContractError
from symfonic_pg.memory.records import MemoryRecord


@dataclass(frozen=True, slots=True)
class Association:
    """A directed, weighted, named edge from one memory to another, whose record it carries.

    `weight` is finite and >= 0; a store that keeps edges narrows it to (0, 1].
    """

    source_id: str
    target: MemoryRecord
    relationship: str = "associated"
    weight: float = 1.0


@dataclass(frozen=True, slots=True)
class ActivatedNode:
    """One lit-up memory: its activation in [0, 1] and the hop that first reached it (0 is a seed)."""

    record_id: str
    score: float
    hop: int = 0

    @classmethod
    def of(cls, record: MemoryRecord, score: float, hop: int = 0) -> ActivatedNode:
        """The node of a record."""
        return cls(record.record_id, score, hop)


@dataclass(frozen=True, slots=True)
class ActivationLog:
    """How one expansion went.

    `nodes` holds the seeds in the order given and then every found memory, hop by hop and strongest first;
    `trails` maps each of them to its path of record ids, the seed first and itself last. `dropped` holds
    (record_id, reason) of what was reached but not admitted. `degraded`: the graph could not be asked to the end.
    """

    nodes: tuple[ActivatedNode, ...] = ()
    trails: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    dropped: tuple[tuple[str, str], ...] = ()
    degraded: bool = False
