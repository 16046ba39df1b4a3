"""MemoryStore, the facade, and what its methods return."""

from symfonic_pg.store.explaining import MemoryExplanation
from symfonic_pg.store.facade import MemoryStore
from symfonic_pg.store.settings import StoreOptions, StoreSettings

__all__ = ["MemoryExplanation", "MemoryStore", "StoreOptions", "StoreSettings"]
