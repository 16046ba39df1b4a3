"""The asynchronous store: a pool for each event loop, gone with it."""

from __future__ import annotations

import asyncio
import gc
import time
from collections.abc import Iterator
from typing import Any

import pytest
from asgiref.sync import sync_to_async
from django.core.asgi import get_asgi_application
from django.db import connections, transaction
from django.test import AsyncClient, Client
from django.test.utils import override_settings

from symfonic_pg import MemoryContractError, MemoryRecord, MemoryStore
from symfonic_pg.contrib.django import DjangoMemoryStore, async_memory_store, memory_store
from symfonic_pg.contrib.django.asgi import MemoryLifespan
from symfonic_pg.contrib.django.databases import address_of

ANNA = "org:acme/user:anna"


def note(record_id: str) -> MemoryRecord:
    return MemoryRecord(record_id, ANNA, "semantic", "Anna wants refunds by bank transfer")


def sessions() -> int:
    """How many sessions the stores' own pools have, once those that were closed have ended."""
    deadline = time.monotonic() + 5
    while (count := threads_sessions()) and time.monotonic() < deadline:
        time.sleep(0.02)
    return count


def _sessions() -> int:
    with connections["memories"].cursor() as cursor:
        cursor.execute(
            "SELECT count(*) FROM pg_stat_activity WHERE application_name = 'pool' AND datname = %s",
            [connections["default"].settings_dict["NAME"]],
        )
        return int(cursor.fetchone()[0])


def threads_sessions() -> int:
    """The same while pools are open; leaves no connection to this thread."""
    try:
        return _sessions()
    finally:
        connections["memories"].close()


@pytest.fixture(autouse=True)
def _named(monkeypatch: pytest.MonkeyPatch, store: DjangoMemoryStore) -> Iterator[None]:
    """The sessions of the pools under a name of their own, and one memory to be found."""
    store.remember(note("m1"))
    original = address_of
    monkeypatch.setattr(
        "symfonic_pg.contrib.django.stores.address_of",
        lambda alias: f"{original(alias)}&application_name=pool",
    )
    return


async def ids(**options: Any) -> list[str]:
    return [one.record.record_id for one in (await async_memory_store().recall(ANNA, "refund")).memories]


def test_it_recalls_and_is_closed_with_its_loop() -> None:
    async def main() -> None:
        assert await ids() == ["m1"]
        assert async_memory_store() is async_memory_store("default")
        assert isinstance(async_memory_store(), MemoryStore)
        assert await asyncio.to_thread(threads_sessions) == 1

    asyncio.run(main())
    assert sessions() == 0


def test_each_loop_has_its_own_and_none_is_left() -> None:
    for _ in range(5):
        assert asyncio.run(ids()) == ["m1"]
        assert sessions() == 0


def test_a_pool_serves_many_tasks_with_few_sessions() -> None:
    async def main() -> int:
        await asyncio.gather(*(ids() for _ in range(60)))
        return await asyncio.to_thread(threads_sessions)

    with override_settings(SYMFONIC_PG_POOL_MAX=4):
        assert 1 <= asyncio.run(main()) <= 4
    assert sessions() == 0


def test_a_loop_that_ends_without_manners_is_tidied_up_after() -> None:
    loop = asyncio.new_event_loop()
    loop.run_until_complete(ids())
    # run_until_complete, unlike asyncio.run, does not end the loop's generators.
    loop.close()
    assert _sessions() == 1
    asyncio.run(ids())
    gc.collect()
    assert sessions() == 0


def test_a_server_that_shuts_down_closes_it() -> None:
    async def main() -> None:
        received = iter(["lifespan.startup", "lifespan.shutdown"])
        sent: list[str] = []

        async def receive() -> dict[str, Any]:
            return {"type": next(received)}

        async def send(message: Any) -> None:
            sent.append(message["type"])

        await ids()
        await MemoryLifespan(get_asgi_application())({"type": "lifespan"}, receive, send)
        assert sent == ["lifespan.startup.complete", "lifespan.shutdown.complete"]
        assert await asyncio.to_thread(sessions) == 0

    asyncio.run(main())


def test_it_is_outside_djangos_transactions() -> None:
    with transaction.atomic():
        memory_store().remember(note("m2"))
        assert asyncio.run(ids()) == ["m1"]
        transaction.set_rollback(True)


def test_changed_settings_make_another_store() -> None:
    async def main() -> None:
        first = async_memory_store()
        with override_settings(SYMFONIC_PG_TIMEOUT=1.5):
            assert async_memory_store().settings.timeout == 1.5
        assert async_memory_store() is not first

    asyncio.run(main())
    assert sessions() == 0


def test_without_a_loop_it_says_which_one_to_take() -> None:
    with pytest.raises(MemoryContractError, match="memory_store"):
        async_memory_store()


def test_async_views_under_wsgi_leave_nothing_behind() -> None:
    # Django gives each such request a loop of its own.
    client = Client()
    for _ in range(10):
        assert client.get("/recall-async", {"cue": "refund"}).json() == {"texts": [note("m1").text]}
        assert sessions() == 0


async def test_async_views_share_the_loops_pool() -> None:
    client = AsyncClient()
    for _ in range(10):
        assert (await client.get("/recall-async", {"cue": "refund"})).json() == {"texts": [note("m1").text]}
    assert await asyncio.to_thread(threads_sessions) == 1


async def test_sync_views_run_in_djangos_thread() -> None:
    for _ in range(3):
        answer = await AsyncClient().get("/recall", {"cue": "refund"})
        assert answer.json() == {"texts": [note("m1").text]}
    # The test client leaves them open.
    await sync_to_async(connections.close_all)()


def test_an_order_and_its_memory_are_one_transaction() -> None:
    client = Client(raise_request_exception=False)
    assert client.get("/order", {"item": "lamp", "fail": "1"}).status_code == 500
    made = client.get("/order", {"item": "lamp"}).json()["order"]
    assert {one.record_id for one in memory_store().list(ANNA)} == {"m1", f"order-{made}"}
