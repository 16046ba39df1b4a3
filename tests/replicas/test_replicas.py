"""Recalls on a streaming replica, writes on the primary, and either of them away."""

from __future__ import annotations

import asyncio
import logging
import time
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any
from uuid import uuid4

import pytest

from symfonic_pg.embedders import HashingEmbedder
from symfonic_pg.memory import (
    Association,
    ConversationTurn,
    MemoryQuery,
    MemoryRecord,
    MemoryScope,
    MemoryUnavailable,
)
from symfonic_pg.postgres import replicas
from symfonic_pg.store import MemoryStore
from tests.replicas.conftest import Pair

DRIVERS = ("asyncpg", "psycopg")


@pytest.fixture
def user() -> MemoryScope:
    """A user of a tenant that no other test uses."""
    return MemoryScope.of(("org", uuid4().hex), ("user", "u1"))


@asynccontextmanager
async def replicated(pair: Pair, **options: Any) -> AsyncIterator[MemoryStore]:
    async with MemoryStore.connect(
        pair.dsn, read_dsn=pair.read_dsn, embedder=HashingEmbedder(), **options
    ) as store:
        yield store


async def recalled(store: MemoryStore, scope: MemoryScope) -> set[str]:
    return {memory.record_id for memory in (await store.recall(scope, "a lamp")).memories}


def lamp(scope: MemoryScope, record_id: str = "lamp") -> MemoryRecord:
    return MemoryRecord(record_id, scope, "semantic", f"a lamp, {record_id}")


@pytest.mark.parametrize("driver", DRIVERS)
async def test_reads_go_to_the_replica_and_writes_to_the_primary(
    pair: Pair, user: MemoryScope, driver: str
) -> None:
    async with replicated(pair, driver=driver, recent_turns=5, max_hops=1) as store:
        await store.remember(lamp(user, "old"))
        pair.pause()
        try:
            new = lamp(user, "new")
            await store.remember(new)
            await store.associate(user, Association("old", new))
            await store.append_turns(user, [ConversationTurn("t1", "ana", "hello", 1)])
            await store.reinforce(user, ["old"])

            assert await recalled(store, user) == {"old"}
            assert await store.count(user) == 1
            assert [record.record_id for record in await store.list(user)] == ["old"]
            [old] = await store.get(user, ["old", "new"])
            assert old.access_count == 0
            assert not await store.neighbours(user, ["old"])
            assert not await store.recent(user, 5)
            assert await store.explain(MemoryQuery(user, "a lamp"), "new") is None
        finally:
            pair.resume()
        assert await recalled(store, user) == {"old", "new"}
        assert await store.neighbours(user, ["old"])
        assert (await store.recall(user, "a lamp")).working.turns


@pytest.mark.parametrize("driver", DRIVERS)
async def test_fresh_sees_what_was_just_written(pair: Pair, user: MemoryScope, driver: str) -> None:
    async with replicated(pair, driver=driver) as store:
        pair.pause()
        try:
            await store.remember(lamp(user))
            assert await recalled(store, user) == set()
            assert await recalled(store.fresh, user) == {"lamp"}
            assert await store.fresh.count(user) == 1
            # A repository is the primary's, too.
            assert await store.repository.count(user) == 1
        finally:
            pair.resume()


async def test_a_model_that_the_replica_has_not_heard_of_can_be_written(
    pair: Pair, user: MemoryScope
) -> None:
    newest = HashingEmbedder(77)
    async with MemoryStore.connect(pair.dsn, read_dsn=pair.read_dsn, embedder=newest) as store:
        pair.pause()
        try:
            assert (await store.remember(lamp(user))).without_embedding == 0
            unseen = await store.retrieve(user, "a lamp")
            assert unseen.unavailable == ("vector",)
        finally:
            pair.resume()
        seen = await store.retrieve(user, "a lamp")
        assert seen.sources["vector"] == 1


@pytest.mark.parametrize("driver", DRIVERS)
async def test_a_replica_that_is_down_is_an_error_and_writes_go_on(
    pair: Pair, user: MemoryScope, driver: str
) -> None:
    async with replicated(pair, driver=driver) as store:
        await store.remember(lamp(user))
        pair.catch_up()
        assert await recalled(store, user) == {"lamp"}
        pair.replica.stop()
        try:
            with pytest.raises(MemoryUnavailable):
                await store.recall(user, "a lamp")
            with pytest.raises(MemoryUnavailable):
                await store.check()
            assert (await store.remember(lamp(user, "more"))).inserted == 1
            assert await recalled(store.fresh, user) == {"lamp", "more"}
        finally:
            pair.replica.start()
        pair.catch_up()
        assert await recalled(store, user) == {"lamp", "more"}
        await store.check()


@pytest.mark.parametrize("driver", DRIVERS)
async def test_with_fallback_the_primary_answers_until_the_replica_is_back(
    pair: Pair,
    user: MemoryScope,
    driver: str,
    monkeypatch: pytest.MonkeyPatch,
    caplog: pytest.LogCaptureFixture,
) -> None:
    monkeypatch.setattr(replicas, "PAUSE", 0.2)
    async with replicated(pair, driver=driver, read_fallback=True) as store:
        await store.remember(lamp(user))
        pair.catch_up()
        assert await recalled(store, user) == {"lamp"}
        pair.replica.stop()
        try:
            with caplog.at_level(logging.WARNING, logger="symfonic_pg"):
                assert await recalled(store, user) == {"lamp"}
                assert await recalled(store, user) == {"lamp"}
            assert len([line for line in caplog.records if "for the replica" in line.getMessage()]) == 1
            await store.check()
        finally:
            pair.replica.start()
        await asyncio.sleep(0.25)
        pair.pause()
        try:
            await store.remember(lamp(user, "new"))
            assert await recalled(store, user) == {"lamp"}, "the primary answered again"
        finally:
            pair.resume()


async def test_a_primary_that_is_down_stops_writes_alone(pair: Pair, user: MemoryScope) -> None:
    async with replicated(pair) as store:
        await store.remember(lamp(user))
        pair.catch_up()
    pair.primary.stop()
    try:
        async with replicated(pair, timeout=3.0) as store:
            assert await recalled(store, user) == {"lamp"}
            for write in (store.remember(lamp(user, "more")), store.reinforce(user, ["lamp"])):
                with pytest.raises(MemoryUnavailable):
                    await write
            with pytest.raises(MemoryUnavailable):
                await store.fresh.recall(user, "a lamp")
            with pytest.raises(MemoryUnavailable):
                await store.check()
    finally:
        pair.primary.start()
        pair.catch_up()


@pytest.mark.parametrize("driver", DRIVERS)
async def test_a_replica_alone_can_be_read_and_not_written(
    pair: Pair, user: MemoryScope, driver: str
) -> None:
    async with MemoryStore.connect(pair.dsn) as store:
        await store.remember(lamp(user))
    pair.catch_up()
    async with MemoryStore.connect(pair.read_dsn, driver=driver) as store:
        assert await recalled(store, user) == {"lamp"}
        with pytest.raises(MemoryUnavailable, match="read-only"):
            await store.remember(lamp(user, "more"))
        with pytest.raises(MemoryUnavailable, match="recovery"):
            await store.check()


class Hanging:
    """An executor that never answers."""

    borrowed = False

    def __init__(self) -> None:
        self.asked = 0
        self.closed = False

    async def fetch(self, statement: object) -> Any:
        self.asked += 1
        await asyncio.Event().wait()

    async def close(self) -> None:
        self.closed = True


class Answering(Hanging):
    async def fetch(self, statement: object) -> Any:
        self.asked += 1
        return [(self.asked,)]


async def test_a_replica_that_hangs_costs_one_caller_half_the_timeout_and_the_others_nothing() -> None:
    replica, primary = Hanging(), Answering()
    executor = replicas.FallbackExecutor(replica, primary, timeout=0.4)  # type: ignore[arg-type]
    started = time.monotonic()
    await executor.fetch("one")  # type: ignore[arg-type]
    assert 0.15 < time.monotonic() - started < 0.4
    started = time.monotonic()
    await asyncio.gather(*(executor.fetch("more") for _ in range(20)))  # type: ignore[arg-type]
    assert time.monotonic() - started < 0.15
    assert (replica.asked, primary.asked) == (1, 21)
    await executor.close()
    assert (replica.closed, primary.closed) == (True, False)


async def test_where_neither_answers_the_timeout_holds() -> None:
    executor = replicas.FallbackExecutor(Hanging(), Hanging(), timeout=0.2)  # type: ignore[arg-type]
    started = time.monotonic()
    with pytest.raises(MemoryUnavailable, match=r"within 0\.2 s"):
        await executor.fetch("one")  # type: ignore[arg-type]
    assert time.monotonic() - started < 0.5


async def test_after_the_pause_one_call_tries_the_replica_again(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(replicas, "PAUSE", 0.1)
    replica, primary = Hanging(), Answering()
    executor = replicas.FallbackExecutor(replica, primary, timeout=0.1)  # type: ignore[arg-type]
    await executor.fetch("one")  # type: ignore[arg-type]
    await asyncio.sleep(0.12)
    await asyncio.gather(*(executor.fetch("more") for _ in range(10)))  # type: ignore[arg-type]
    assert replica.asked == 2
