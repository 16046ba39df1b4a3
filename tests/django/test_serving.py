"""A real ASGI server in front of the host project: no request leaves a connection behind."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable
from pathlib import Path

import httpx
import psycopg
import pytest

from symfonic_pg import MemoryRecord, MemoryStore
from tests.conftest import database_name
from tests.django.conftest import ROOT, Project
from tests.django.serving import served

REQUESTS = 200
AT_ONCE = 20
POOL_MAX = 4
EMBEDDER = "symfonic_pg.embedders.HashingEmbedder"
TEXT = "Anna wants refunds by bank transfer"


def sessions(server: str, database: str) -> int:
    """How many sessions the database has."""
    with psycopg.connect(server) as connection:
        row = connection.execute(
            "SELECT count(*) FROM pg_stat_activity WHERE datname = %s AND backend_type = 'client backend'",
            [database_name(database)],
        ).fetchone()
    assert row is not None
    return int(row[0])


def settled(server: str, database: str, at_most: int) -> int:
    """The same, once sessions that were closed have ended."""
    deadline = time.monotonic() + 10
    while (count := sessions(server, database)) > at_most and time.monotonic() < deadline:
        time.sleep(0.05)
    return count


async def ask(at: Path, address: str, requests: int = REQUESTS) -> list[list[str]]:
    """The answers to so many requests, AT_ONCE of them at a time."""
    limit = asyncio.Semaphore(AT_ONCE)
    transport = httpx.AsyncHTTPTransport(uds=str(at))
    async with httpx.AsyncClient(transport=transport, base_url="http://host", timeout=60) as client:

        async def one() -> list[str]:
            async with limit:
                answer = await client.get(address, params={"cue": "refund"})
            assert answer.status_code == 200, answer.text
            texts: list[str] = answer.json()["texts"]
            return texts

        return await asyncio.gather(*(one() for _ in range(requests)))


async def test_two_hundred_requests_leave_no_connection_behind(
    project: Callable[..., Project], server: str, database: str
) -> None:
    async with MemoryStore.connect(database) as store:
        await store.remember(MemoryRecord("m1", "org:acme/user:anna", "semantic", TEXT))
    host = project(database, SYMFONIC_PG_POOL_MAX=POOL_MAX, SYMFONIC_PG_EMBEDDER=EMBEDDER)
    with served("tests.django.host.asgi:application", ROOT, host.environment) as at:
        # Views on Django's connections: one a request, closed with it.
        assert await ask(at, "/recall") == [[TEXT]] * REQUESTS
        assert await asyncio.to_thread(settled, server, database, 0) == 0
        # Views on the asynchronous store: its pool, and no more.
        assert await ask(at, "/recall-async") == [[TEXT]] * REQUESTS
        assert 1 <= await asyncio.to_thread(sessions, server, database) <= POOL_MAX
        # Both again: the pool is still the same.
        await asyncio.gather(ask(at, "/recall", 40), ask(at, "/recall-async", 40))
        assert await asyncio.to_thread(settled, server, database, POOL_MAX) <= POOL_MAX
    assert await asyncio.to_thread(settled, server, database, 0) == 0


async def test_an_abandoned_request_leaves_none_either(
    project: Callable[..., Project], server: str, database: str
) -> None:
    host = project(database, SYMFONIC_PG_POOL_MAX=POOL_MAX)
    with served("tests.django.host.asgi:application", ROOT, host.environment) as at:
        transport = httpx.AsyncHTTPTransport(uds=str(at))
        async with httpx.AsyncClient(transport=transport, base_url="http://host") as client:
            for _ in range(20):
                with pytest.raises(httpx.TimeoutException):
                    await client.get("/recall-async", params={"cue": "refund"}, timeout=0.001)
        assert await asyncio.to_thread(settled, server, database, POOL_MAX) <= POOL_MAX
    assert await asyncio.to_thread(settled, server, database, 0) == 0
