"""The store for code without asyncio: scripts, workers, and hosts on synchronous SQLAlchemy or psycopg.

    with MemoryStore.connect("postgresql://…") as store:
        store.remember(MemoryRecord(…))
        store.using(session).recall("org:acme/user:u1", "refund")

Every verb is the asynchronous store's own: this package only finds a thread or a loop to run it in.
"""

from symfonic_pg.sync.repository import MemoryRepository
from symfonic_pg.sync.store import MemoryStore

__all__ = ["MemoryRepository", "MemoryStore"]
