"""The contract of a repository on Django's connection, inside a block and outside."""

from __future__ import annotations

import asyncio
import inspect
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from threading import Barrier
from typing import Any

import pytest
from django.db import connections, transaction

from symfonic_pg.contrib.django.executor import DjangoExecutor
from symfonic_pg.postgres.executors.completing import complete
from symfonic_pg.postgres.repository import MemoryRepository
from symfonic_pg.testing import CONTRACT, Behaviour


class InThreads:
    """A repository for the contract's event loop: each verb in a thread, as Django has it, to its end."""

    def __init__(self, threads: ThreadPoolExecutor) -> None:
        self._threads = threads
        self._repository = MemoryRepository(DjangoExecutor("default"))

    @property
    def borrowed(self) -> bool:
        return self._repository.borrowed

    def __getattr__(self, name: str) -> Any:
        verb = getattr(self._repository, name)
        if not inspect.iscoroutinefunction(verb):
            return verb

        async def in_thread(*arguments: Any, **options: Any) -> Any:
            loop = asyncio.get_running_loop()
            return await loop.run_in_executor(self._threads, lambda: complete(verb(*arguments, **options)))

        return in_thread


@pytest.fixture(scope="module")
def one_thread() -> Iterator[ThreadPoolExecutor]:
    with ThreadPoolExecutor(1) as threads:
        yield threads
        threads.submit(connections.close_all).result()


@pytest.fixture(scope="module")
def four_threads() -> Iterator[ThreadPoolExecutor]:
    with ThreadPoolExecutor(4) as threads:
        yield threads
        # One for each thread: none ends before all have begun.
        together = Barrier(4)
        for closed in [threads.submit(_close, together) for _ in range(4)]:
            closed.result()


@pytest.fixture(params=["block", "autocommit"])
def make(
    request: pytest.FixtureRequest, one_thread: ThreadPoolExecutor, four_threads: ThreadPoolExecutor
) -> Iterator[Callable[[], InThreads]]:
    """Repositories in one thread inside one atomic block, or in several threads without one."""
    if request.param == "autocommit":
        yield lambda: InThreads(four_threads)
        return
    block = transaction.atomic()
    one_thread.submit(block.__enter__).result()
    yield lambda: InThreads(one_thread)
    one_thread.submit(_roll_back, block).result()


@pytest.mark.parametrize("behaviour", CONTRACT, ids=lambda behaviour: behaviour.name)
async def test_the_contract_is_kept(behaviour: Behaviour, make: Callable[[], InThreads]) -> None:
    async def another() -> Any:
        return make()

    await behaviour(make(), another)


def _roll_back(block: Any) -> None:
    transaction.set_rollback(True)
    block.__exit__(None, None, None)


def _close(together: Barrier) -> None:
    together.wait(10)
    connections.close_all()
