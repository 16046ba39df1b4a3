"""Memories and a host's own rows in one transaction of SQLAlchemy's, over both drivers."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass
from datetime import timedelta

import psycopg
import pytest
from sqlalchemy import func, select, text
from sqlalchemy.exc import DBAPIError
from sqlalchemy.ext.asyncio import (
    AsyncConnection,
    AsyncEngine,
    AsyncSession,
    async_scoped_session,
    async_sessionmaker,
)
from sqlalchemy.orm import DeclarativeBase, Mapped, mapped_column

from symfonic_pg import MemoryRecord, MemoryScope, MemoryStore, SchemaMismatch
from symfonic_pg.embedders import HashingEmbedder
from symfonic_pg.memory import Association, ConversationTurn, MemoryContractError, MemoryUnavailable
from symfonic_pg.postgres.migrations import migrate
from symfonic_pg.postgres.repository import MemoryRepository
from tests.integration.executor_kinds import engine_for

SCOPE = MemoryScope.parse("org:acme/user:u1")
ELSEWHERE = MemoryScope.parse("org:acme/user:u2")


class Base(DeclarativeBase):
    pass


class Order(Base):
    __tablename__ = "orders"
    id: Mapped[int] = mapped_column(primary_key=True)
    item: Mapped[str]


def note(record_id: str, content: str = "likes blue paper", scope: MemoryScope = SCOPE) -> MemoryRecord:
    return MemoryRecord(record_id, scope, "semantic", content)


@dataclass(frozen=True)
class Host:
    """An application with a table of its own, and what an outsider sees of its database."""

    dsn: str
    engine: AsyncEngine
    sessions: async_sessionmaker[AsyncSession]
    store: MemoryStore

    def stored(self) -> tuple[int, int]:
        """How many orders and memories are committed."""
        with psycopg.connect(self.dsn) as outsider:
            found = outsider.execute(
                "SELECT (SELECT count(*) FROM orders), (SELECT count(*) FROM symfonic.memories)"
            ).fetchone()
        assert found is not None
        return found[0], found[1]


@asynccontextmanager
async def hosted(dsn: str, driver: str, timeout: float = 10.0) -> AsyncIterator[Host]:
    engine = engine_for(dsn, driver, pool_size=3, max_overflow=0)
    async with engine.begin() as connection:
        await connection.run_sync(Base.metadata.create_all)
    try:
        yield Host(dsn, engine, async_sessionmaker(engine), MemoryStore.on(engine, timeout=timeout))
        assert engine.pool.checkedout() == 0  # type: ignore[attr-defined]
    finally:
        await engine.dispose()


@pytest.fixture(params=["asyncpg", "psycopg"])
def driver(request: pytest.FixtureRequest) -> str:
    name: str = request.param
    return name


@pytest.fixture
async def host(database: str, driver: str) -> AsyncIterator[Host]:
    async with hosted(database, driver) as opened:
        yield opened


async def test_a_memory_and_a_row_are_committed_together(host: Host) -> None:
    async with host.sessions.begin() as session:
        session.add(Order(id=1, item="paper"))
        await host.store.using(session).remember(note("m1"))
        await session.flush()
        assert host.stored() == (0, 0)
    assert host.stored() == (1, 1)


async def test_a_memory_and_a_row_are_rolled_back_together(host: Host) -> None:
    with suppress(ZeroDivisionError):
        async with host.sessions.begin() as session:
            session.add(Order(id=1, item="paper"))
            await session.flush()
            await host.store.using(session).remember(note("m1"))
            _ = 1 / 0
    assert host.stored() == (0, 0)


@pytest.mark.parametrize("verb", ["remember", "load", "append"])
async def test_what_comes_before_any_statement_of_the_transaction_is_part_of_it(
    host: Host, verb: str
) -> None:
    async with host.sessions() as session:
        inside = host.store.using(session)
        if verb == "remember":
            await inside.remember(note("m1"))
        elif verb == "load":
            await inside.load([note("m1")])
        else:
            await inside.append_turns(SCOPE, [ConversationTurn("t1", text="hello")])
        await session.rollback()
        assert await inside.count(SCOPE) == 0
        assert await inside.recent(SCOPE, 10) == []
    assert host.stored() == (0, 0)


@pytest.mark.parametrize("verb", ["remember", "load"])
async def test_a_connection_that_has_begun_nothing_yet_can_roll_back_a_memory(host: Host, verb: str) -> None:
    async with host.engine.connect() as connection:
        await getattr(host.store.using(connection), verb)([note("m1")])
        await connection.rollback()
        await getattr(host.store.using(connection), verb)([note("m2")])
        await connection.commit()
    assert [record.record_id for record in await host.store.list(SCOPE)] == ["m2"]


async def test_the_transaction_sees_its_own_memories_and_others_do_not(host: Host) -> None:
    async with host.sessions() as session:
        inside = host.store.using(session)
        await session.execute(select(Order))
        await inside.remember(note("m1", "the refund was promised"))
        session.add(Order(id=1, item="paper"))
        recalled = await inside.recall(SCOPE, "refund")
        assert [memory.record.record_id for memory in recalled.memories] == ["m1"]
        assert await session.scalar(select(func.count()).select_from(Order)) == 1
        assert (await host.store.recall(SCOPE, "refund")).memories == ()
        await session.commit()
    assert host.stored() == (1, 1)


async def test_a_host_goes_on_after_its_commit_in_the_same_session(host: Host) -> None:
    async with host.sessions() as session:
        inside = host.store.using(session)
        await inside.remember(note("m1"))
        await session.commit()
        await inside.remember(note("m2"))
        await session.rollback()
        await inside.remember(note("m3"))
        await session.commit()
        assert {record.record_id for record in await inside.list(SCOPE)} == {"m1", "m3"}


async def test_a_savepoint_that_is_rolled_back_takes_its_memories_along(host: Host) -> None:
    async with host.sessions.begin() as session:
        inside = host.store.using(session)
        await inside.remember(note("outer"))
        with suppress(ZeroDivisionError):
            async with session.begin_nested():
                session.add(Order(id=1, item="paper"))
                await inside.remember(note("inner"))
                await inside.load([note("loaded")])
                _ = 1 / 0
        async with session.begin_nested():
            session.add(Order(id=2, item="ink"))
            await inside.remember(note("kept"))
    assert {record.record_id for record in await host.store.list(SCOPE)} == {"outer", "kept"}
    assert host.stored() == (1, 2)


async def test_a_savepoint_may_be_the_first_thing_of_a_transaction(host: Host) -> None:
    async with host.sessions() as session:
        async with session.begin_nested():
            await host.store.using(session).remember(note("m1"))
        await session.rollback()
    assert host.stored() == (0, 0)


async def test_two_stores_share_one_transaction(host: Host) -> None:
    migrate(host.dsn, schema="second")
    second = MemoryStore.on(host.engine, schema="second")
    async with host.sessions() as session:
        await host.store.using(session).remember(note("m1"))
        await second.using(session).load([note("m1"), note("m2")])
        both = await asyncio.gather(
            host.store.using(session).count(SCOPE), second.using(session).count(SCOPE)
        )
        assert both == [1, 2]
        await session.rollback()
        assert await second.using(session).count(SCOPE) == 0
    assert await host.store.count(SCOPE) == 0


async def test_calls_at_once_on_one_session_take_turns(host: Host) -> None:
    async with host.sessions.begin() as session:
        inside = host.store.using(session)
        await asyncio.gather(
            *(inside.remember(note(f"m{number}")) for number in range(5)),
            *(inside.load([note(f"l{number}")]) for number in range(3)),
            inside.count(SCOPE),
        )
    assert host.stored() == (0, 8)


async def test_a_contract_error_leaves_the_transaction_as_it_was(host: Host) -> None:
    await host.store.remember(note("taken", scope=ELSEWHERE))
    async with host.sessions.begin() as session:
        inside = host.store.using(session)
        session.add(Order(id=1, item="paper"))
        await inside.remember(note("m1"))
        with pytest.raises(MemoryContractError, match="taken"):
            await inside.remember([note("m2"), note("taken")])
        with pytest.raises(MemoryContractError, match="taken"):
            await inside.load([note("m3"), note("taken")])
        with pytest.raises(MemoryContractError):
            await inside.recall(SCOPE, embedding=[0.0, 0.0])
    assert host.stored() == (1, 2)
    assert [record.record_id for record in await host.store.list(SCOPE)] == ["m1"]


async def test_a_database_error_asks_for_the_rollback_that_sqlalchemy_expects(host: Host) -> None:
    missing = MemoryStore.on(host.engine, schema="missing")
    async with host.sessions() as session:
        session.add(Order(id=1, item="paper"))
        await session.flush()
        with pytest.raises(SchemaMismatch):
            await missing.using(session).count(SCOPE)
        with pytest.raises(DBAPIError, match="current transaction is aborted"):
            await session.execute(select(Order))
        with pytest.raises(MemoryUnavailable, match="current transaction is aborted"):
            await host.store.using(session).count(SCOPE)
        await session.rollback()
        await host.store.using(session).remember(note("m1"))
        await session.commit()
    assert host.stored() == (0, 1)


async def test_a_database_error_inside_a_savepoint_costs_the_savepoint_alone(host: Host) -> None:
    missing = MemoryStore.on(host.engine, schema="missing")
    async with host.sessions.begin() as session:
        session.add(Order(id=1, item="paper"))
        await host.store.using(session).remember(note("m1"))
        async with session.begin_nested() as savepoint:
            await host.store.using(session).remember(note("lost"))
            with pytest.raises(SchemaMismatch):
                await missing.using(session).count(SCOPE)
            await savepoint.rollback()
        await host.store.using(session).remember(note("m2"))
    assert host.stored() == (1, 2)


async def test_a_statement_of_the_hosts_that_fails_is_the_hosts(host: Host) -> None:
    async with host.sessions() as session:
        await host.store.using(session).remember(note("m1"))
        with pytest.raises(DBAPIError):
            await session.execute(text("SELECT 1 / 0"))
        with pytest.raises(MemoryUnavailable):
            await host.store.using(session).count(SCOPE)
        await session.rollback()
        assert await host.store.using(session).count(SCOPE) == 0


async def test_the_session_is_neither_ended_nor_closed(host: Host) -> None:
    async with host.sessions() as session:
        connection = await session.connection()
        await host.store.using(session).remember(note("m1"))
        await host.store.using(session).load([note("m2")])
        await host.store.using(session).recall(SCOPE, "paper")
        await host.store.using(session).repository.executor.close()
        assert session.in_transaction()
        assert not session.in_nested_transaction()
        assert not connection.closed
        assert await session.connection() is connection
        assert host.stored() == (0, 0)


async def test_a_lock_of_somebody_elses_ends_the_call_in_time(database: str, driver: str) -> None:
    async with hosted(database, driver, timeout=0.3) as host:
        await host.store.remember(note("m1"))
        with psycopg.connect(database) as other:
            other.execute("SELECT 1 FROM symfonic.memories FOR UPDATE")
            async with host.sessions() as session:
                with pytest.raises(MemoryUnavailable, match=r"0\.3 s"):
                    await host.store.using(session).remember(note("m1", "changed"))
                await session.rollback()
                assert await host.store.using(session).count(SCOPE) == 1


async def test_a_cancelled_call_leaves_a_session_that_can_be_rolled_back(host: Host) -> None:
    await host.store.remember(note("m1"))
    with psycopg.connect(host.dsn) as other:
        other.execute("SELECT 1 FROM symfonic.memories FOR UPDATE")
        async with host.sessions() as session:
            call = asyncio.create_task(host.store.using(session).remember(note("m1", "changed")))
            await asyncio.sleep(0.2)
            call.cancel()
            with pytest.raises(asyncio.CancelledError):
                await call
            await session.rollback()
            assert await host.store.using(session).count(SCOPE) == 1
            await session.commit()


async def test_everything_that_a_recall_can_ask_runs_in_the_transaction(host: Host) -> None:
    full = MemoryStore.on(
        host.engine,
        embedder=HashingEmbedder(),
        max_hops=2,
        recent_turns=3,
        exclude_speakers=frozenset({"tool"}),
    )
    async with host.sessions() as session:
        inside = full.using(session)
        await inside.remember([note("m1", "the refund was promised"), note("m2", "by phone")])
        await inside.associate(SCOPE, Association("m1", note("m2")))
        await inside.append_turn(SCOPE, ConversationTurn("t1", "customer", "where is my money?"))
        recalled = await inside.recall(SCOPE, "refund", limit=5)
        assert recalled.retrieval.result.sources["vector"] == 2
        assert recalled.working.turns[0].turn_id == "t1"
        assert {memory.record.record_id for memory in recalled.memories} == {"m1", "m2"}
        assert recalled.render().splitlines()[0] == "[working] customer: where is my money?"
        await session.rollback()
    assert await full.count(SCOPE) == 0
    assert await full.repository.models() == []


async def test_a_read_only_transaction_can_recall(host: Host) -> None:
    await host.store.remember(note("m1"))
    async with host.engine.connect() as connection:
        await connection.execution_options(isolation_level="REPEATABLE READ", postgresql_readonly=True)
        assert len((await host.store.using(connection).recall(SCOPE, "paper")).memories) == 1
        with pytest.raises(MemoryUnavailable, match="read-only"):
            await host.store.using(connection).remember(note("m2"))
        await connection.rollback()


async def test_a_repository_takes_what_a_host_has(host: Host) -> None:
    assert not MemoryRepository(host.engine).borrowed
    await MemoryRepository(host.engine).remember([note("m1")])
    scoped = async_scoped_session(host.sessions, scopefunc=asyncio.current_task)
    async with host.sessions() as session, host.engine.connect() as connection:
        for owner in (session, connection, scoped):
            repository = MemoryRepository(owner, timeout=5.0)
            assert repository.borrowed
            assert await repository.forget(SCOPE, ["m1"]) == 1
            await owner.rollback()
    await scoped.remove()
    assert await host.store.count(SCOPE) == 1


async def test_what_the_host_set_for_its_transaction_is_left_as_it_was(host: Host) -> None:
    names = (
        "search_path",
        "jit",
        "plan_cache_mode",
        "enable_seqscan",
        "hnsw.ef_search",
        "lock_timeout",
        "TimeZone",
    )

    async def settings(connection: AsyncConnection) -> list[str]:
        return [
            str(await connection.scalar(text("SELECT current_setting(:name, true)"), {"name": name}))
            for name in names
        ]

    store = MemoryStore.on(host.engine, embedder=HashingEmbedder())
    async with host.engine.begin() as connection:
        await connection.execute(text("SET LOCAL search_path = pg_catalog"))
        await connection.execute(text("SET LOCAL TimeZone = 'Asia/Kathmandu'"))
        await connection.execute(text("LOAD 'vector'"))
        before = await settings(connection)
        await store.using(connection).remember(note("m1"))
        await store.using(connection).load([note("m2")])
        recalled = await store.using(connection).recall(SCOPE, "paper")
        assert {memory.record.updated_at.utcoffset() for memory in recalled.memories} == {timedelta(0)}
        assert await settings(connection) == before
