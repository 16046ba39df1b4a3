"""The same in hosts without asyncio: the caller's session or connection, in the caller's thread."""

from __future__ import annotations

import os
import signal
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import psycopg
import pytest
from psycopg_pool import ConnectionPool
from sqlalchemy import Connection, Engine, create_engine, select, text
from sqlalchemy.exc import DBAPIError
from sqlalchemy.ext.asyncio import create_async_engine
from sqlalchemy.orm import Session, scoped_session, sessionmaker

from symfonic_pg import MemoryStore as AsyncMemoryStore
from symfonic_pg import SchemaMismatch
from symfonic_pg.embedders import HashingEmbedder
from symfonic_pg.memory import Association, ConversationTurn, MemoryContractError, MemoryUnavailable
from symfonic_pg.postgres.migrations import migrate
from symfonic_pg.sync import MemoryRepository, MemoryStore
from tests.integration.blocking_kinds import BLOCKING, Blocking, blocking_engine
from tests.integration.test_sqlalchemy import ELSEWHERE, SCOPE, Base, Order, note


@pytest.fixture
def engine(database: str) -> Iterator[Engine]:
    made = blocking_engine(database, pool_size=3, max_overflow=0)
    Base.metadata.create_all(made)
    yield made
    assert made.pool.checkedout() == 0  # type: ignore[attr-defined]
    made.dispose()


@pytest.fixture
def store(engine: Engine) -> MemoryStore:
    return MemoryStore.on(engine)


def stored(dsn: str) -> tuple[int, int]:
    with psycopg.connect(dsn) as outsider:
        found = outsider.execute(
            "SELECT (SELECT count(*) FROM orders), (SELECT count(*) FROM symfonic.memories)"
        ).fetchone()
    assert found is not None
    return found[0], found[1]


def test_a_memory_and_a_row_are_committed_together(database: str, engine: Engine, store: MemoryStore) -> None:
    with Session(engine) as session, session.begin():
        store.using(session).remember(note("m1"))
        session.add(Order(id=1, item="paper"))
        session.flush()
        assert stored(database) == (0, 0)
    assert stored(database) == (1, 1)


@pytest.mark.parametrize("verb", ["remember", "load"])
def test_a_memory_and_a_row_are_rolled_back_together(
    database: str, engine: Engine, store: MemoryStore, verb: str
) -> None:
    with Session(engine) as session:
        getattr(store.using(session), verb)([note("m1")])
        session.add(Order(id=1, item="paper"))
        session.flush()
        session.rollback()
        assert store.using(session).count(SCOPE) == 0
    assert stored(database) == (0, 0)


@pytest.mark.parametrize("verb", ["remember", "load"])
def test_a_connection_that_has_begun_nothing_yet_can_roll_back_a_memory(
    engine: Engine, store: MemoryStore, verb: str
) -> None:
    with engine.connect() as connection:
        getattr(store.using(connection), verb)([note("m1")])
        connection.rollback()
        getattr(store.using(connection), verb)([note("m2")])
        connection.commit()
    assert [record.record_id for record in store.list(SCOPE)] == ["m2"]


def test_savepoints(database: str, engine: Engine, store: MemoryStore) -> None:
    with Session(engine) as session, session.begin():
        inside = store.using(session)
        with session.begin_nested() as savepoint:
            inside.remember(note("inner"))
            inside.load([note("loaded")])
            savepoint.rollback()
        with session.begin_nested():
            session.add(Order(id=1, item="ink"))
            inside.remember(note("kept"))
    assert stored(database) == (1, 1)


def test_two_stores_share_one_transaction(database: str, engine: Engine, store: MemoryStore) -> None:
    migrate(database, schema="second")
    second = MemoryStore.on(engine, schema="second")
    with Session(engine) as session:
        store.using(session).remember(note("m1"))
        second.using(session).remember([note("m1"), note("m2")])
        assert (store.using(session).count(SCOPE), second.using(session).count(SCOPE)) == (1, 2)
        session.rollback()
    assert (store.count(SCOPE), second.count(SCOPE)) == (0, 0)


def test_errors_leave_what_sqlalchemy_expects(database: str, engine: Engine, store: MemoryStore) -> None:
    missing = MemoryStore.on(engine, schema="missing")
    store.remember(note("taken", scope=ELSEWHERE))
    with Session(engine) as session:
        session.add(Order(id=1, item="paper"))
        with pytest.raises(MemoryContractError, match="taken"):
            store.using(session).remember([note("m1"), note("taken")])
        session.flush()
        with session.begin_nested() as savepoint:
            with pytest.raises(SchemaMismatch):
                missing.using(session).count(SCOPE)
            savepoint.rollback()
        assert store.using(session).count(SCOPE) == 0
        with pytest.raises(SchemaMismatch):
            missing.using(session).count(SCOPE)
        with pytest.raises(DBAPIError, match="current transaction is aborted"):
            session.execute(select(Order))
        session.rollback()
        store.using(session).remember(note("m1"))
        session.commit()
    assert stored(database) == (0, 2)


def test_the_session_is_neither_ended_nor_closed(database: str, engine: Engine, store: MemoryStore) -> None:
    with Session(engine) as session:
        connection = session.connection()
        with store.using(session) as inside:
            inside.remember(note("m1"))
        inside.close()
        assert session.in_transaction()
        assert not connection.closed
        assert session.connection() is connection
        assert stored(database) == (0, 0)


def test_every_statement_runs_in_the_callers_thread_on_the_callers_connection(
    engine: Engine, store: MemoryStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    threads: set[int] = set()
    execute = psycopg.RawCursor.execute

    def watched(*args: Any, **kwargs: Any) -> Any:
        threads.add(threading.get_ident())
        return execute(*args, **kwargs)

    monkeypatch.setattr(psycopg.RawCursor, "execute", watched)
    with Session(engine) as session:
        store.using(session).remember(note("m1"))
        store.using(session).load(note(f"l{number}") for number in range(3))
        store.using(session).recall(SCOPE, "paper")
        assert threads == {threading.get_ident()}


def test_everything_that_a_recall_can_ask_runs_in_the_transaction(engine: Engine) -> None:
    full = MemoryStore.on(engine, embedder=HashingEmbedder(), max_hops=2, recent_turns=3)
    with Session(engine) as session:
        inside = full.using(session)
        inside.remember([note("m1", "the refund was promised"), note("m2", "by phone")])
        inside.associate(SCOPE, Association("m1", note("m2")))
        inside.append_turn(SCOPE, ConversationTurn("t1", "customer", "where is my money?"))
        recalled = inside.recall(SCOPE, "refund", limit=5)
        assert recalled.retrieval.result.sources["vector"] == 2
        assert recalled.render().splitlines()[0] == "[working] customer: where is my money?"
        assert inside.using(session).recall(SCOPE, "refund").retrieval.result.sources["vector"] == 2
        session.rollback()
    assert full.count(SCOPE) == 0
    assert full.recall(SCOPE, "refund").working.turns == ()


async def test_it_works_where_an_event_loop_runs(engine: Engine, store: MemoryStore) -> None:
    with Session(engine) as session:
        store.using(session).remember(note("m1"))
        assert store.using(session).count(SCOPE) == 1
        assert store.count(SCOPE) == 0


def test_a_lock_of_somebody_elses_ends_the_call_in_time(database: str, engine: Engine) -> None:
    store = MemoryStore.on(engine, timeout=0.3)
    store.remember(note("m1"))
    with psycopg.connect(database) as other:
        other.execute("SELECT 1 FROM symfonic.memories FOR UPDATE")
        with Session(engine) as session:
            began = time.monotonic()
            with pytest.raises(MemoryUnavailable, match=r"0\.3 s"):
                store.using(session).remember(note("m1", "changed"))
            assert time.monotonic() - began < 1.5
            session.rollback()
            assert store.using(session).count(SCOPE) == 1
        with pytest.raises(MemoryUnavailable, match=r"0\.3 s"):
            store.remember(note("m1", "changed"))
    assert store.count(SCOPE) == 1


@contextmanager
def interrupted_after(seconds: float) -> Iterator[None]:
    """What Ctrl-C does, so many seconds from now."""
    timer = threading.Timer(seconds, os.kill, (os.getpid(), signal.SIGINT))
    timer.start()
    try:
        yield
    finally:
        timer.join()


@contextmanager
def on_session(engine: Engine) -> Iterator[tuple[object, Callable[[], None]]]:
    with Session(engine) as session:
        yield session, session.rollback


@contextmanager
def on_connection(engine: Engine) -> Iterator[tuple[object, Callable[[], None]]]:
    with engine.connect() as connection:
        yield connection, connection.rollback


@contextmanager
def on_psycopg(engine: Engine) -> Iterator[tuple[object, Callable[[], None]]]:
    dsn = engine.url.set(drivername="postgresql").render_as_string(hide_password=False)
    with psycopg.connect(dsn) as connection:
        yield connection, connection.rollback


@pytest.mark.parametrize("owner", [on_session, on_connection, on_psycopg])
def test_ctrl_c_leaves_a_connection_that_can_be_rolled_back(
    database: str, engine: Engine, store: MemoryStore, owner: Callable[..., Any]
) -> None:
    store.remember(note("m1"))
    with psycopg.connect(database) as other:
        other.execute("SELECT 1 FROM symfonic.memories FOR UPDATE")
        with owner(engine) as (connection, rollback):
            inside = store.using(connection)
            with pytest.raises(KeyboardInterrupt), interrupted_after(0.3):
                inside.remember(note("m1", "changed"))
            rollback()
            assert inside.count(SCOPE) == 1


@pytest.mark.parametrize("kind", [kind for kind in BLOCKING if not kind.borrowed], ids=str)
def test_ctrl_c_leaves_a_pool_that_works(database: str, kind: Blocking) -> None:
    with kind.open(database) as repository:
        repository.remember([note("m1")])
        with psycopg.connect(database) as other:
            other.execute("SELECT 1 FROM symfonic.memories FOR UPDATE")
            began = time.monotonic()
            with pytest.raises(KeyboardInterrupt), interrupted_after(0.3):
                repository.remember([note("m1", "changed")])
            assert time.monotonic() - began < 3
            busy = other.execute(
                "SELECT count(*) FROM pg_stat_activity WHERE datname = current_database()"
                " AND pid <> pg_backend_pid() AND state <> 'idle' AND backend_type = 'client backend'"
            ).fetchone()
            assert busy == (0,)
        assert repository.count(SCOPE) == 1


def test_a_server_that_vanishes_under_a_session_can_be_left_behind(
    engine: Engine, store: MemoryStore
) -> None:
    with Session(engine) as session:
        inside = store.using(session)
        inside.remember(note("m1"))
        pid = session.scalar(text("SELECT pg_backend_pid()"))
        with engine.connect() as other:
            other.execute(text("SELECT pg_terminate_backend(:pid, 5000)"), {"pid": pid})
        with pytest.raises(MemoryUnavailable):
            inside.count(SCOPE)
        session.rollback()
        assert inside.count(SCOPE) == 0


def test_a_pool_heals_after_its_connections_were_lost(
    database: str, engine: Engine, store: MemoryStore
) -> None:
    store.remember(note("m1"))
    with psycopg.connect(database, autocommit=True) as other:
        other.execute(
            "SELECT pg_terminate_backend(pid, 5000) FROM pg_stat_activity"
            " WHERE datname = current_database() AND pid <> pg_backend_pid()"
        )
    assert store.count(SCOPE) == 1


def test_what_a_synchronous_host_has_is_told_from_the_rest(database: str, engine: Engine) -> None:
    factory = scoped_session(sessionmaker(engine))
    assert MemoryRepository(factory).count(SCOPE) == 0
    factory.remove()
    with psycopg.connect(database) as connection, ConnectionPool(database, open=True) as pool:
        for owner in (engine, connection, pool):
            assert MemoryRepository(owner).count(SCOPE) == 0
        asynchronous = create_async_engine(engine.url)
        for owner in (asynchronous, object(), database, None):
            with pytest.raises(MemoryContractError, match=r"symfonic_pg\.sync runs on"):
                MemoryStore.on(owner)
        with pytest.raises(MemoryContractError, match=r"symfonic_pg\.MemoryStore"):
            MemoryStore.on(asynchronous)
        for owner in (engine, connection, Session(engine), pool):
            with pytest.raises(MemoryContractError, match=r"symfonic_pg\.sync"):
                AsyncMemoryStore.on(owner)


def test_another_dialect_is_refused_before_any_statement() -> None:
    other = create_engine("sqlite://")
    with pytest.raises(MemoryContractError, match=r"postgresql\+psycopg.*sqlite"):
        MemoryStore.on(other)
    with Session(other) as session, pytest.raises(MemoryContractError, match="sqlite"):
        MemoryRepository(session).count(SCOPE)
    other.dispose()


async def test_a_session_under_asyncio_is_refused(database: str) -> None:
    def inside(connection: Connection) -> None:
        with pytest.raises(MemoryContractError, match="under asyncio"):
            MemoryRepository(connection)

    made = create_async_engine(database.replace("postgresql://", "postgresql+psycopg://"))
    async with made.connect() as connection:
        await connection.run_sync(inside)
    await made.dispose()


def test_an_outdated_schema_is_named(database: str, engine: Engine) -> None:
    with psycopg.connect(database) as connection:
        connection.execute("DROP FUNCTION symfonic.append_turns")
        connection.execute("UPDATE symfonic.symfonic_pg_version SET version_num = '0000'")
    store = MemoryStore.on(engine)
    with pytest.raises(SchemaMismatch, match="0000") as mismatch:
        store.append_turn(SCOPE, ConversationTurn("t1", text="hello"))
    assert mismatch.value.found == "0000"


def test_writers_that_collide_are_run_again(engine: Engine, store: MemoryStore) -> None:
    ids = [f"m{number}" for number in range(20)]
    store.remember([note(record_id) for record_id in ids])
    failures: list[BaseException] = []

    def write(step: int) -> None:
        try:
            for turn in range(5):
                store.reinforce(SCOPE, ids[::step])
                store.remember([note(record_id, f"turn {turn} of {step}") for record_id in ids[::step]])
        except BaseException as error:
            failures.append(error)

    threads = [threading.Thread(target=write, args=(step,)) for step in (1, -1, 1)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert failures == []
    assert store.count(SCOPE) == 20
