"""MemoryStore, the facade, and what its methods return."""

from symfonic_pg.postgres.pending import FailedEmbedding, PendingCounts
from symfonic_pg.store.embedding import EmbedReport
from symfonic_pg.store.explaining import MemoryExplanation
from symfonic_pg.store.facade import MemoryStore
from symfonic_pg.store.settings import StoreOptions, StoreSettings

__all__ = [
    "EmbedReport",
    "FailedEmbedding",
    "MemoryExplanation",
    "MemoryStore",
    "PendingCounts",
    "StoreOptions",
    "StoreSettings",
]
