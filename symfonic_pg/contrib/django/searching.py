"""Words in memories, found as the store finds them."""

from __future__ import annotations

from symfonic_pg.contrib.django.configuration import configured
from symfonic_pg.contrib.django.executor import DjangoExecutor
from symfonic_pg.memory.layers import RETRIEVABLE_LAYERS
from symfonic_pg.memory.records import MemoryQuery
from symfonic_pg.memory.scope import MemoryScope
from symfonic_pg.postgres.executors.completing import complete
from symfonic_pg.postgres.repository import MemoryRepository

# So many memories of a level at most.
FOUND = 200


def matching_ids(scope: MemoryScope, words: str) -> list[str]:
    """The ids of the memories exactly at a scope that hold any of the words, each in its own language."""
    configuration = configured()
    executor = DjangoExecutor(configuration.database, timeout=configuration.store.timeout)
    repository = MemoryRepository(
        executor, schema=configuration.schema, language=configuration.store.language
    )
    seen = complete(repository.search(MemoryQuery(scope, words, limit=FOUND), RETRIEVABLE_LAYERS))
    return [one.record.record_id for one in seen.found if "lexical" in one.routes and one.distance == 0]
