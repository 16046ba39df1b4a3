"""Reading from a replica that may be away."""

from __future__ import annotations

import asyncio
import logging
import time
from collections.abc import Iterable
from contextlib import AbstractAsyncContextManager

from symfonic_pg.memory.errors import MemoryUnavailable
from symfonic_pg.postgres.executors.base import CopyTarget, Executor, Rows
from symfonic_pg.postgres.statements import Statement

logger = logging.getLogger("symfonic_pg.postgres")

# How long, in seconds, a replica that could not be asked is left alone before one call tries it again.
PAUSE = 5.0


class FallbackExecutor:
    """Runs statements that read on a replica, and on the primary while the replica cannot be asked.

    `timeout`, in seconds, covers both; the replica gets half of it. Which of the two answered does not show:
    a caller that must see the newest asks the primary itself. It takes the replica over, and closes it.
    """

    borrowed = False

    def __init__(self, replica: Executor, primary: Executor, *, timeout: float) -> None:
        self._replica = replica
        self._primary = primary
        self._timeout = timeout
        # The moment of the next try; None while the replica answers.
        self._again: float | None = None

    async def fetch(self, statement: Statement) -> Rows:
        """Run one statement on whichever answers."""
        try:
            async with asyncio.timeout(self._timeout):
                return await self._answered(statement)
        except TimeoutError as exc:
            raise MemoryUnavailable(f"the database gave no answer within {self._timeout:g} s") from exc

    def transaction(self) -> AbstractAsyncContextManager[Executor]:
        """A transaction on the primary, the one that can write."""
        return self._primary.transaction()

    async def copy(self, target: CopyTarget, chunks: Iterable[bytes]) -> None:
        """Load rows on the primary."""
        await self._primary.copy(target, chunks)

    async def close(self) -> None:
        """Close the replica's connections."""
        await self._replica.close()

    async def _answered(self, statement: Statement) -> Rows:
        if self._is_due():
            try:
                async with asyncio.timeout(self._timeout / 2):
                    rows = await self._replica.fetch(statement)
            except (MemoryUnavailable, TimeoutError) as exc:
                self._again = time.monotonic() + PAUSE
                logger.warning("the primary reads for the replica: %s", exc or "no answer in time")
            else:
                self._again = None
                return rows
        return await self._primary.fetch(statement)

    def _is_due(self) -> bool:
        """Whether this call asks the replica; after a failure one at a time does, all others go on."""
        now = time.monotonic()
        if self._again is not None and now < self._again:
            return False
        if self._again is not None:
            self._again = now + PAUSE
        return True
