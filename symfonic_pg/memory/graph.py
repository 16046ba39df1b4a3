"""The association graph as a source: what it must answer, its in-memory form, and hops between memories."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Protocol, runtime_checkable

from symfonic_pg.memory.activation import Association
from symfonic_pg.memory.records import MemoryRecord
from symfonic_pg.memory.scope import MemoryScope


class AssociationSource(Protocol):
    """Something that knows which memories are associated.

    A source on a connection that it does not own says so with `borrowed = True`: nothing else is then asked
    beside it, and its failures are raised instead of degraded, since the caller's transaction is lost.
    """

    async def neighbours(self, scope: MemoryScope, record_ids: Sequence[str], /) -> Sequence[Association]:
        """Every edge out of these memories that `scope` can see, in one round trip.

        Raises MemoryUnavailable when the graph cannot be reached.
        """
        ...


@runtime_checkable
class HopSource(Protocol):
    """An association source that also counts hops by itself, a whole batch in one round trip."""

    async def hops(
        self, scope: MemoryScope, record_id: str, record_ids: Sequence[str], max_hops: int, /
    ) -> Mapping[str, int]:
        """The fewest edges, walked in either direction, from `record_id` to each of `record_ids`.

        Only paths whose every memory `scope` can see; ids without one of at most `max_hops` are left out.
        """
        ...


class InMemoryAssociationSource:
    """Associations held in this process, an edge replacing an earlier one of the same ends and relationship.

    Targets bring their records along. `records` are those of memories that no edge leads to: a source whose
    record is unknown may start a path, but none is led through it, as nothing says who may see it.
    """

    def __init__(
        self, associations: Iterable[Association] = (), *, records: Iterable[MemoryRecord] = ()
    ) -> None:
        self._records: dict[str, MemoryRecord] = {record.record_id: record for record in records}
        self._edges: dict[str, dict[tuple[str, str], Association]] = {}
        for edge in associations:
            self.add(edge)

    def add(self, association: Association) -> None:
        """Keep one more edge."""
        target = association.target
        self._records[target.record_id] = target
        edges = self._edges.setdefault(association.source_id, {})
        edges[target.record_id, association.relationship] = association

    async def neighbours(self, scope: MemoryScope, record_ids: Sequence[str]) -> Sequence[Association]:
        """The edges out of these memories that `scope` can see both ends of, in the order they were added."""
        return [
            edge
            for record_id in dict.fromkeys(record_ids)
            if not self._hidden(scope, record_id)
            for edge in self._edges.get(record_id, {}).values()
            if scope.distance(edge.target.scope) >= 0
        ]

    async def hops(
        self, scope: MemoryScope, record_id: str, record_ids: Sequence[str], max_hops: int
    ) -> Mapping[str, int]:
        """The fewest edges, in either direction, from one memory to each of the others."""
        wanted = [other for other in dict.fromkeys(record_ids) if not self._hidden(scope, other)]
        if self._hidden(scope, record_id):
            return {}
        steps = undirected(await self.neighbours(scope, list(self._edges)))
        found = distances(steps, record_id, max_hops, through=frozenset(self._records))
        return {other: found[other] for other in wanted if other in found}

    def _hidden(self, scope: MemoryScope, record_id: str) -> bool:
        record = self._records.get(record_id)
        return record is not None and scope.distance(record.scope) < 0


def undirected(edges: Iterable[Association]) -> dict[str, set[str]]:
    """The neighbours of each memory once directions are forgotten."""
    steps: dict[str, set[str]] = {}
    for edge in edges:
        steps.setdefault(edge.source_id, set()).add(edge.target.record_id)
        steps.setdefault(edge.target.record_id, set()).add(edge.source_id)
    return steps


def distances(
    steps: Mapping[str, set[str]], start: str, max_hops: int, *, through: frozenset[str] | None = None
) -> dict[str, int]:
    """Breadth-first hops from `start` to all within `max_hops`, passing only `through` these where given."""
    found = {start: 0}
    frontier = [start]
    for hop in range(1, max_hops + 1):
        reached = {node for previous in frontier for node in steps.get(previous, ())} - found.keys()
        found.update(dict.fromkeys(reached, hop))
        frontier = [node for node in reached if through is None or node in through]
        if not frontier:
            break
    return found


async def explored_hops(
    source: AssociationSource, scope: MemoryScope, start: str, ends: Sequence[str], max_hops: int
) -> dict[str, int]:
    """The hops from `start` to each of `ends`, as far as asking for edges *out of* memories can tell.

    A path counts where each of its edges starts downstream of one of its two ends. One call a level for all.
    """
    known = await _explored(source, scope, [start, *ends], max_hops)
    onward = {record_id: {edge.target.record_id for edge in edges} for record_id, edges in known.items()}
    from_start = distances(onward, start, max_hops - 1).keys()
    found = {}
    for end in ends:
        # Only what these two lead to, so that a batch answers like its members one by one.
        sources = from_start | distances(onward, end, max_hops - 1).keys()
        steps = undirected(edge for record_id in sources for edge in known.get(record_id, ()))
        hops = distances(steps, start, max_hops).get(end)
        if hops is not None:
            found[end] = hops
    return found


async def _explored(
    source: AssociationSource, scope: MemoryScope, starts: Iterable[str], levels: int
) -> dict[str, list[Association]]:
    """The visible edges out of `starts` and of all less than `levels` steps downstream, by their source."""
    known: dict[str, list[Association]] = {}
    frontier = list(dict.fromkeys(starts))
    for _ in range(levels):
        if not frontier:
            break
        known.update((record_id, []) for record_id in frontier)
        asked = frozenset(frontier)
        for edge in await source.neighbours(scope, frontier):
            if edge.source_id in asked and scope.distance(edge.target.scope) >= 0:
                known[edge.source_id].append(edge)
        reached = (edge.target.record_id for record_id in frontier for edge in known[record_id])
        frontier = [record_id for record_id in dict.fromkeys(reached) if record_id not in known]
    return known
