"""What the in-memory repository keeps: memories with their vectors and uses, edges and turns."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any

from symfonic_pg.memory.checks import MAX_COUNT
from symfonic_pg.memory.documents import contains
from symfonic_pg.memory.records import MemoryRecord
from symfonic_pg.memory.scope import MemoryScope
from symfonic_pg.memory.window import ConversationTurn

# Scope, source, target and relationship: what makes an edge one edge.
EdgeKey = tuple[MemoryScope, str, str, str]


@dataclass(slots=True)
class StoredVector:
    """A vector at unit length in half precision, and what it was made of."""

    numbers: tuple[float, ...]
    content_hash: str
    text_version: str


@dataclass(slots=True)
class Usage:
    """How often a memory was used at one scope, and when last."""

    count: int
    last: datetime


@dataclass(slots=True)
class StoredMemory:
    """One memory: the record as it was written, its terms, its vectors by model, its uses by scope."""

    record: MemoryRecord
    language: str
    term_counts: dict[str, int]
    vectors: dict[str, StoredVector] = field(default_factory=dict)
    uses: dict[MemoryScope, Usage] = field(default_factory=dict)

    @property
    def term_total(self) -> int:
        """The length of the text in terms."""
        return sum(self.term_counts.values())

    def seen_from(self, scope: MemoryScope) -> MemoryRecord:
        """The record as it looks from a scope: with the uses at that scope and above it."""
        uses = [usage for used_at, usage in self.uses.items() if scope.distance(used_at) >= 0]
        if not uses:
            return self.record
        written = self.record.last_accessed_at
        moments = [usage.last for usage in uses] + ([] if written is None else [written])
        return with_fields(
            self.record,
            access_count=min(self.record.access_count + sum(usage.count for usage in uses), MAX_COUNT),
            last_accessed_at=max(moments),
        )


@dataclass(slots=True)
class Tenant:
    """All that one tenant stored; nothing of another is in reach from here."""

    memories: dict[str, StoredMemory] = field(default_factory=dict)
    edges: dict[EdgeKey, float] = field(default_factory=dict)
    turns: dict[MemoryScope, dict[str, ConversationTurn]] = field(default_factory=dict)

    def visible(self, scope: MemoryScope) -> dict[str, StoredMemory]:
        """The memories that lie at the scope or above it, by record_id: the one rule of visibility."""
        return {
            record_id: memory
            for record_id, memory in self.memories.items()
            if scope.distance(memory.record.scope) >= 0
        }

    def visible_edges(self, scope: MemoryScope) -> dict[tuple[str, str, str], float]:
        """The weights of the edges at the scope or above it, both of whose ends are visible.

        Where the same edge lies at several heights, the nearest counts.
        """
        seen = self.visible(scope)
        nearest: dict[tuple[str, str, str], tuple[int, float]] = {}
        for (lies_at, source, target, relationship), weight in self.edges.items():
            distance = scope.distance(lies_at)
            if distance < 0 or source not in seen or target not in seen:
                continue
            key = (source, target, relationship)
            if key not in nearest or distance < nearest[key][0]:
                nearest[key] = (distance, weight)
        return {key: weight for key, (_, weight) in nearest.items()}

    def remove(self, record_ids: Iterable[str]) -> int:
        """Delete memories with all that hangs on them."""
        doomed = set(record_ids)
        for record_id in doomed:
            del self.memories[record_id]
        self.edges = {
            key: weight for key, weight in self.edges.items() if key[1] not in doomed and key[2] not in doomed
        }
        return len(doomed)

    def erase(self, scope: MemoryScope) -> int:
        """Delete all that lies at a scope and below it."""

        def doomed(lies_at: MemoryScope) -> bool:
            return lies_at.distance(scope) >= 0

        self.turns = {lies_at: turns for lies_at, turns in self.turns.items() if not doomed(lies_at)}
        self.edges = {key: weight for key, weight in self.edges.items() if not doomed(key[0])}
        for memory in self.memories.values():
            memory.uses = {used_at: usage for used_at, usage in memory.uses.items() if not doomed(used_at)}
        return self.remove(
            record_id for record_id, memory in self.memories.items() if doomed(memory.record.scope)
        )


def with_fields(record: MemoryRecord, **changed: Any) -> MemoryRecord:
    """The record with other values in some fields, which are known to be right."""
    fields = {name: getattr(record, name) for name in _FIELDS}
    return MemoryRecord.trusted(**{**fields, **changed})


def same_memory(stored: MemoryRecord, given: MemoryRecord) -> bool:
    """Whether an update would change nothing but updated_at and usage.

    A created_at that was not given is no change.
    """
    return (
        all(getattr(stored, name) == getattr(given, name) for name in _COMPARED)
        and (stored.created_at == given.created_at or not given.created_at_given)
        and same_document(stored.metadata, given.metadata)
    )


def same_document(left: Any, right: Any) -> bool:
    """Whether two JSON documents are equal as jsonb: true is not 1, 1 is 1.0, keys have no order."""
    if isinstance(left, Mapping) and isinstance(right, Mapping):
        return left.keys() == right.keys() and all(same_document(left[key], right[key]) for key in left)
    if isinstance(left, list) and isinstance(right, list):
        return len(left) == len(right) and all(map(same_document, left, right))
    if isinstance(left, Mapping | list) or isinstance(right, Mapping | list):
        return False
    return contains(left, right)


_COMPARED = ("layer", "text", "salience", "kind", "valid_from", "valid_until", "expires_at", "language")
_FIELDS = (
    *("record_id", "scope", "created_at", "updated_at", "access_count", "last_accessed_at", "metadata"),
    *_COMPARED,
)
