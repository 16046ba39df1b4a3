"""Times and how they are told."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass, field
from statistics import quantiles
from typing import TypeVar

ItemT = TypeVar("ItemT")


@dataclass(slots=True)
class Times:
    """Seconds that one thing took, again and again."""

    seconds: list[float] = field(default_factory=list)

    @property
    def p50(self) -> float:
        """The median in milliseconds."""
        return self._percentile(50)

    @property
    def p95(self) -> float:
        """What 95 of 100 stayed under, in milliseconds."""
        return self._percentile(95)

    def _percentile(self, percent: int) -> float:
        if len(self.seconds) < 2:
            return 1000 * sum(self.seconds)
        return 1000 * quantiles(self.seconds, n=100, method="inclusive")[percent - 1]

    def __str__(self) -> str:
        return f"{self.p50:8.2f} {self.p95:8.2f}"


async def interleaved(
    items: Sequence[ItemT], contenders: Sequence[Callable[[ItemT], Awaitable[object]]], *, warm_up: int = 3
) -> list[Times]:
    """The times of each contender over the items, in turns: a busy moment of the machine hits all alike."""
    times = [Times() for _ in contenders]
    for item in items[:warm_up]:
        for contender in contenders:
            await contender(item)
    for place, item in enumerate(items):
        for turn in range(len(contenders)):
            which = (place + turn) % len(contenders)
            started = time.perf_counter()
            await contenders[which](item)
            times[which].seconds.append(time.perf_counter() - started)
    return times


async def throughput(
    items: Sequence[ItemT], work: Callable[[ItemT], Awaitable[object]], *, tasks: int, seconds: float
) -> float:
    """Items a second that `tasks` tasks finish together within some seconds."""
    done = 0

    async def worker(first: int) -> None:
        nonlocal done
        place = first
        while time.perf_counter() < end:
            await work(items[place % len(items)])
            place += tasks
            done += 1

    started = time.perf_counter()
    end = started + seconds
    await asyncio.gather(*(worker(first) for first in range(tasks)))
    return done / (time.perf_counter() - started)
