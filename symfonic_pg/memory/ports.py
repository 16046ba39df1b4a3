"""What callers may depend on instead of the coordinator, and what the coordinator asks of an activation."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Protocol, runtime_checkable

if TYPE_CHECKING:
    from symfonic_pg.memory.activation import ActivationLog
    from symfonic_pg.memory.records import MemoryQuery
    from symfonic_pg.memory.results import RetrievalResult, RetrievedMemory
    from symfonic_pg.memory.scope import MemoryScope

__all__ = ["MemoryRetrievalPort"]


@runtime_checkable
class MemoryRetrievalPort(Protocol):
    """Something that answers a query with memories in order."""

    async def retrieve(self, query: MemoryQuery, /) -> RetrievalResult:
        """The memories worth putting into the prompt, and why all others were left out."""
        ...


@runtime_checkable
class ActivationPort(Protocol):
    """Something that expands what was found along associations, such as SpreadingActivation."""

    async def expand(
        self, scope: MemoryScope, seeds: Sequence[RetrievedMemory], /
    ) -> tuple[Sequence[RetrievedMemory], ActivationLog]:
        """What lights up from the seeds, each with its activation as score, and how that went."""
        ...
