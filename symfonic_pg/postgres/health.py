"""Whether a write would work now, found out without one."""

from __future__ import annotations

from symfonic_pg.memory.errors import MemoryUnavailable
from symfonic_pg.postgres.executors.failures import schema_mismatch
from symfonic_pg.postgres.migrations import head_revision
from symfonic_pg.postgres.repository import MemoryRepository
from symfonic_pg.postgres.statements import load_statement


async def check_writes(repository: MemoryRepository) -> None:
    """Raise MemoryUnavailable, with the reason, where a write would fail.

    Looks at the connection, recovery and read-only mode, the rights of the connected role and the schema's
    revision, in two statements that read catalogues. A full disk shows where it made the server read-only.
    """
    executor, schema = repository.executor, repository.schema
    rows = await executor.fetch(load_statement("check_writes", schema=schema))
    in_recovery, read_only, lacking = rows[0]
    if in_recovery:
        raise MemoryUnavailable("the server is in recovery: a replica takes no writes")
    if read_only:
        raise MemoryUnavailable("the server or the role is in read-only mode")
    if lacking:
        raise MemoryUnavailable(f"the role lacks rights: {lacking}")
    revisions = await executor.fetch(load_statement("migrate_revision", schema=schema))
    found = str(revisions[0][0]) if revisions else None
    # A newer one is what yesterday's code sees while an upgrade rolls out: no reason to stop serving.
    if found is None or found < head_revision():
        raise schema_mismatch(found, reason="it is older")
