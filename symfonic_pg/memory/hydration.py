"""One answer for a prompt: the memories of a search and the conversation window, asked at the same time."""

from __future__ import annotations

import asyncio
from dataclasses import dataclass
from typing import Any

from symfonic_pg.memory.checks import broken, instance
from symfonic_pg.memory.coordinator import CoordinatedRetrieval, RetrievalCoordinator
from symfonic_pg.memory.policy import RetrievalPolicy
from symfonic_pg.memory.ports import ActivationPort
from symfonic_pg.memory.records import MemoryQuery
from symfonic_pg.memory.report import RecallReport
from symfonic_pg.memory.results import RetrievalResult, RetrievedMemory
from symfonic_pg.memory.sources import CandidateSource
from symfonic_pg.memory.window import WorkingContext, WorkingWindow, layer_line

_put = object.__setattr__

_NO_TURNS = WorkingContext()


@dataclass(frozen=True, slots=True)
class HydratedRecall:
    """What one recall brought: the retrieval, the conversation window, and the ledger of the retrieval.

    A bare RetrievalResult is taken as a retrieval without activation; the report is made from it by default.
    """

    retrieval: CoordinatedRetrieval
    working: WorkingContext = _NO_TURNS
    report: RecallReport = None  # type: ignore[assignment]

    def __post_init__(self) -> None:
        if isinstance(self.retrieval, RetrievalResult):
            _put(self, "retrieval", CoordinatedRetrieval(self.retrieval))
        instance(self.retrieval, CoordinatedRetrieval, "retrieval")
        instance(self.working, WorkingContext, "working")
        if self.report is None:
            _put(self, "report", RecallReport.of(self.retrieval))
        instance(self.report, RecallReport, "report")

    @property
    def memories(self) -> tuple[RetrievedMemory, ...]:
        """The memories in order."""
        return self.retrieval.result.memories

    @property
    def degraded(self) -> bool:
        """Whether the graph or the conversation could not be asked to the end."""
        return self.retrieval.activation.degraded or self.working.degraded

    def render(self) -> str:
        """The text for a prompt: the window's lines and one `[layer] text` line for each memory.

        Whatever a stored text holds, it stays within its line.
        """
        lines = [turn.line() for turn in self.working.turns]
        lines += [layer_line(memory.record.layer, memory.record.text) for memory in self.memories]
        return "\n".join(lines)


class Hydrator:
    """Asks the coordinator and the window for one query at the same time.

    They take turns where a source works on a connection that it does not own (its `borrowed` is true).
    """

    def __init__(self, coordinator: RetrievalCoordinator, window: WorkingWindow | None = None) -> None:
        if not callable(getattr(coordinator, "coordinate", None)):
            raise broken("coordinator", "a RetrievalCoordinator with coordinate(query)", coordinator)
        if window is not None and not callable(getattr(window, "read", None)):
            raise broken("window", "a WorkingWindow with read(scope)", window)
        self.coordinator = coordinator
        self.window = window

    async def hydrate(self, query: MemoryQuery) -> HydratedRecall:
        """The answer to one query.

        Raises MemoryUnavailable when the candidates could not be asked for. A graph or a conversation out of
        reach degrades it instead, but for that on a borrowed connection. No task is left behind.
        """
        instance(query, MemoryQuery, "query")
        if self.window is None or self.window.recent_turns == 0:
            retrieval, working = await self.coordinator.coordinate(query), _NO_TURNS
        elif self._in_turn(self.window):
            retrieval = await self.coordinator.coordinate(query)
            working = await self.window.read(query.scope)
        else:
            retrieval, working = await self._at_once(query, self.window)
        return HydratedRecall(retrieval, working, RecallReport.of(retrieval))

    async def _at_once(
        self, query: MemoryQuery, window: WorkingWindow
    ) -> tuple[CoordinatedRetrieval, WorkingContext]:
        # The window gets the task and not the search: what a source gives to be drained belongs to the task
        # that awaited the search.
        reading = asyncio.create_task(window.read(query.scope), name="symfonic_pg window")
        try:
            retrieval = await self.coordinator.coordinate(query)
        except BaseException:
            await _abandon(reading)
            raise
        return retrieval, await reading

    def _in_turn(self, window: WorkingWindow) -> bool:
        asked: tuple[Any, ...] = (self.coordinator.source, self.coordinator.activation, window.source)
        return any(getattr(source, "borrowed", False) for source in asked)


def memory_capabilities(
    source: CandidateSource,
    *,
    policy: RetrievalPolicy | None = None,
    activation: ActivationPort | None = None,
    window: WorkingWindow | None = None,
) -> Hydrator:
    """What an agent needs to remember: a source, a policy, an expansion of what it found, and a window."""
    return Hydrator(RetrievalCoordinator(source=source, policy=policy, activation=activation), window)


async def _abandon(task: asyncio.Task[Any]) -> None:
    """Cancel a task and see it ended, also when cancelled meanwhile; what it ends with is nobody's news."""
    task.cancel()
    cancelled: asyncio.CancelledError | None = None
    while not task.done():
        try:
            await asyncio.wait([task])
        except asyncio.CancelledError as again:
            cancelled = again
    if not task.cancelled():
        task.exception()
    if cancelled is not None:
        raise cancelled
