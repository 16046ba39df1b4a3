"""What a service answers when its memory cannot: status, headers and body, for any web framework."""

from __future__ import annotations

import json
import logging
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from symfonic_pg.memory import MemoryContractError, MemoryUnavailable, SymfonicError
from symfonic_pg.store import MemoryStore

logger = logging.getLogger("symfonic_pg.contrib")

RETRY_AFTER = 5


@dataclass(frozen=True, slots=True)
class Answer:
    """A JSON answer: `content` is its body as an object, `headers` what it needs beside the content type.

    It holds no text, id, scope or address: of an error only the field, the rule and the place in a batch.
    """

    status: int
    content: Mapping[str, Any]
    headers: Mapping[str, str]

    @property
    def body(self) -> bytes:
        """The content as JSON."""
        return json.dumps(self.content).encode()


def answer_to(error: SymfonicError, *, retry_after: int = RETRY_AFTER) -> Answer:
    """503 for a MemoryUnavailable, 422 for a MemoryContractError; any other error is raised again.

    `retry_after` is in seconds. The reason of a 503 goes to the log, not to the client.
    """
    if isinstance(error, MemoryUnavailable):
        logger.warning("answered 503: %s", error)
        return Answer(503, {"detail": "the memory is unavailable"}, {"Retry-After": str(retry_after)})
    if isinstance(error, MemoryContractError):
        place = [part for part in (error.field, error.position) if part is not None]
        rule = "breaks a rule of the memory" if error.rule is None else f"must be {error.rule}"
        return Answer(422, {"detail": [{"type": "memory_contract", "loc": place, "msg": rule}]}, {})
    raise error


async def health(store: MemoryStore, *, retry_after: int = RETRY_AFTER) -> Answer:
    """200 where memories can be written and recalled now, else 503; finds out without writing anything."""
    try:
        await store.check()
    except MemoryUnavailable as exc:
        logger.warning("not healthy: %s", exc)
        return Answer(503, {"status": "unavailable"}, {"Retry-After": str(retry_after)})
    return Answer(200, {"status": "ok"}, {})
