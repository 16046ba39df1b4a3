"""Words in memories, found as the store finds them."""

from __future__ import annotations

from symfonic_pg.contrib.django.stores import memory_store
from symfonic_pg.memory.layers import RETRIEVABLE_LAYERS
from symfonic_pg.memory.records import MemoryQuery
from symfonic_pg.memory.scope import MemoryScope

# So many memories of a level at most.
FOUND = 200


def matching_ids(scope: MemoryScope, words: str) -> list[str]:
    """The ids of the memories exactly at a scope that hold any of the words, each in its own language."""
    query = MemoryQuery(scope, words, limit=FOUND)
    seen = memory_store().repository.search(query, RETRIEVABLE_LAYERS)
    return [one.record.record_id for one in seen.found if "lexical" in one.routes and one.distance == 0]
