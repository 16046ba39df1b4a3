"""Whether statements may be prepared: not where a pooler may give the next call another session.

There a name stands for whatever another client prepared under it, so that one call could run as another.
"""

from __future__ import annotations

import logging
from collections.abc import Awaitable, Callable
from typing import Generic

from symfonic_pg.postgres.executors.base import ConnectionT
from symfonic_pg.postgres.statements import Statement, load_statement

logger = logging.getLogger("symfonic_pg.postgres")

# The number that a connection was given for its session, and whether a statement finds a row on it.
Number = Callable[[ConnectionT], int]
Finds = Callable[[ConnectionT, Statement], Awaitable[bool]]


class Preparing(Generic[ConnectionT]):
    """What is known about one address: `known` is what the caller said, None until it has been found out."""

    def __init__(self, known: bool | None, number: Number[ConnectionT], finds: Finds[ConnectionT]) -> None:
        self.known = known
        self._number = number
        self._finds = finds

    async def allowed(self, connection: ConnectionT) -> bool:
        """Whether to prepare on this connection; asks the first one, by a statement that is not prepared."""
        if self.known is None:
            number = self._number(connection)
            # A server process has a positive number; what poolers make up may be anything.
            self.known = number > 0 and await self._finds(
                connection, load_statement("same_session", backend=number)
            )
            if not self.known:
                logger.info("a pooler stands before the database: statements are not prepared")
        return self.known
