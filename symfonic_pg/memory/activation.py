"""What an expansion over the association graph is made of: edges, the nodes it lit up, and its log."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from math import inf

from symfonic_pg.memory import checks
from symfonic_pg.memory.documents import EMPTY, FrozenObject
from symfonic_pg.memory.records import MemoryRecord

_put = object.__setattr__


@dataclass(frozen=True, slots=True)
class Association:
    """A directed, weighted, named edge from one memory to another, whose record it carries.

    `relationship` is 1 to 255 UTF-8 bytes; `weight` is finite and at least 0, and a store that keeps edges
    narrows it to (0, 1]. Raises MemoryContractError.
    """

    source_id: str
    target: MemoryRecord
    relationship: str = "associated"
    weight: float = 1.0

    def __post_init__(self) -> None:
        _put(self, "source_id", checks.record_id(self.source_id, "source_id"))
        checks.instance(self.target, MemoryRecord, "target")
        _put(self, "relationship", checks.name(self.relationship, "relationship", checks.MAX_ID_BYTES))
        _put(self, "weight", checks.number(self.weight, "weight", 0.0, inf))


@dataclass(frozen=True, slots=True)
class ActivatedNode:
    """One lit-up memory: its activation in [0, 1] and the hop that first reached it (0: it is a seed)."""

    record_id: str
    score: float
    hop: int = 0

    def __post_init__(self) -> None:
        _put(self, "record_id", checks.record_id(self.record_id))
        _put(self, "score", checks.share(self.score, "score"))
        _put(self, "hop", checks.whole(self.hop, "hop", 0))

    @classmethod
    def of(cls, record: MemoryRecord, score: float, hop: int = 0) -> ActivatedNode:
        """The node of a record, whose id is known to be well-formed: every seed becomes one."""
        checks.instance(record, MemoryRecord, "record")
        node = object.__new__(cls)
        _put(node, "record_id", record.record_id)
        _put(node, "score", checks.share(score, "score"))
        _put(node, "hop", checks.whole(hop, "hop", 0))
        return node


@dataclass(frozen=True, slots=True)
class ActivationLog:
    """How one expansion went.

    `nodes` holds the seeds in the order given and then what was found, hop by hop and strongest first;
    `trails` has the path of each, as record ids from the seed to itself. `dropped` holds (record_id, reason)
    of what was reached but not admitted. `degraded`: the graph could not be asked to the end.
    """

    nodes: tuple[ActivatedNode, ...] = ()
    trails: Mapping[str, tuple[str, ...]] = EMPTY
    dropped: tuple[tuple[str, str], ...] = ()
    degraded: bool = False

    def __post_init__(self) -> None:
        _put(self, "nodes", checks.members(self.nodes, ActivatedNode, "nodes"))
        checks.instance(self.trails, Mapping, "trails")
        trails = {record_id: tuple(trail) for record_id, trail in self.trails.items()}
        _put(self, "trails", FrozenObject(trails))
        _put(self, "dropped", tuple((record_id, reason) for record_id, reason in self.dropped))
        _put(self, "degraded", checks.flag(self.degraded, "degraded"))
