"""Timeouts, cancellations, lost connections, servers that are down: an error in time, and then it works."""

from __future__ import annotations

import asyncio
import socket
import time
import traceback
from collections.abc import AsyncIterator, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from urllib.parse import parse_qs, urlsplit

import asyncpg
import psutil
import psycopg
import pytest

from symfonic_pg.memory.errors import MemoryContractError, MemoryUnavailable
from symfonic_pg.postgres.embedded import EmbeddedServer
from symfonic_pg.postgres.executors import Executor
from symfonic_pg.postgres.executors.asyncpg import AsyncpgExecutor
from symfonic_pg.postgres.executors.deadlines import GRACE
from symfonic_pg.postgres.executors.psycopg import PsycopgExecutor
from symfonic_pg.postgres.statements import Statement
from tests.conftest import FAST, create_database, drop_database, server_binaries
from tests.integration.executor_kinds import BORROWED, OWN, POOLED, Borrowed, Pooled, running

EVERY = pytest.mark.parametrize("kind", [*POOLED, *BORROWED], ids=str)
EVERY_POOL = pytest.mark.parametrize("kind", POOLED, ids=str)
EVERY_LOAN = pytest.mark.parametrize("kind", BORROWED, ids=str)
ONE = Statement("one", "SELECT 1")
SLEEP = Statement("sleep", "SELECT pg_sleep(60)")
PID = Statement("pid", "SELECT pg_backend_pid()")
SLACK = 0.5  # what a busy machine may add


@pytest.fixture(scope="module")
def shared(server: str) -> Iterator[str]:
    """A database of this module's own."""
    dsn = create_database(server, "template0")
    yield dsn
    drop_database(server, dsn)


@pytest.fixture
def notes(shared: str) -> str:
    """A database with an empty table `notes`."""
    with psycopg.connect(shared, autocommit=True) as connection:
        connection.execute("DROP TABLE IF EXISTS notes")
        connection.execute("CREATE TABLE notes (note text)")
    return shared


@pytest.fixture
async def outside(notes: str) -> AsyncIterator[asyncpg.Connection]:
    """Another session on the same database."""
    connection = await asyncpg.connect(notes)
    yield connection
    await connection.close()


@contextmanager
def taking_at_most(seconds: float) -> Iterator[None]:
    start = time.monotonic()
    yield
    assert time.monotonic() - start < seconds + SLACK


async def works(executor: Executor) -> bool:
    return [list(row) for row in await executor.fetch(ONE)] == [[1]]


async def sessions(outside: asyncpg.Connection) -> list[str]:
    """What the other sessions of the database are at, once those that were closed have gone."""
    for _ in range(40):
        states = [
            row["state"] if not row["state"].startswith("active") else row["query"]
            for row in await outside.fetch(
                "SELECT state, query FROM pg_stat_activity"
                " WHERE datname = current_database() AND pid <> pg_backend_pid() AND state <> 'idle'"
            )
        ]
        if not states:
            break
        await asyncio.sleep(0.05)
    return states


async def count(outside: asyncpg.Connection) -> int:
    found: int = await outside.fetchval("SELECT count(*) FROM notes")
    return found


async def asleep(outside: asyncpg.Connection) -> None:
    """Wait until somebody's pg_sleep runs."""
    for _ in range(200):
        if await outside.fetchval(
            "SELECT count(*) FROM pg_stat_activity"
            " WHERE datname = current_database() AND wait_event = 'PgSleep'"
        ):
            return
        await asyncio.sleep(0.01)
    raise AssertionError("nothing slept")


async def half_written(executor: Executor) -> None:
    async with executor.transaction() as inside:
        await inside.fetch(Statement("add", "INSERT INTO notes VALUES ('half')"))
        await inside.fetch(SLEEP)


# Cancellation and timeouts


@EVERY_POOL
async def test_a_cancelled_call_leaves_a_clean_pool(
    kind: Pooled, notes: str, outside: asyncpg.Connection
) -> None:
    async with kind.open(notes, size=1) as executor:
        for _ in range(3):
            call = asyncio.create_task(executor.fetch(SLEEP))
            await asleep(outside)
            call.cancel()
            with taking_at_most(GRACE), pytest.raises(asyncio.CancelledError):
                await call
            assert await sessions(outside) == []
            assert await works(executor)


@EVERY_POOL
async def test_a_cancelled_transaction_leaves_nothing_half_written(
    kind: Pooled, notes: str, outside: asyncpg.Connection
) -> None:
    async with kind.open(notes, size=1) as executor:
        call = asyncio.create_task(half_written(executor))
        await asleep(outside)
        call.cancel()
        with taking_at_most(GRACE), pytest.raises(asyncio.CancelledError):
            await call
        assert await sessions(outside) == []
        assert await count(outside) == 0
        assert await works(executor)


@EVERY_POOL
async def test_a_block_that_is_cancelled_between_its_statements_rolls_back(
    kind: Pooled, notes: str, outside: asyncpg.Connection
) -> None:
    async def writing(executor: Executor) -> None:
        async with executor.transaction() as inside:
            await inside.fetch(Statement("add", "INSERT INTO notes VALUES ('half')"))
            await asyncio.sleep(60)

    async with kind.open(notes, size=1) as executor:
        call = asyncio.create_task(writing(executor))
        await asyncio.sleep(0.2)
        call.cancel()
        with pytest.raises(asyncio.CancelledError):
            await call
        assert await sessions(outside) == []
        assert await count(outside) == 0
        assert await works(executor)


@EVERY_LOAN
async def test_after_a_cancellation_the_owner_can_roll_back(
    kind: Borrowed, notes: str, outside: asyncpg.Connection
) -> None:
    async with kind.open(notes) as loan:
        await loan.executor.fetch(Statement("add", "INSERT INTO notes VALUES ('half')"))
        call = asyncio.create_task(loan.executor.fetch(SLEEP))
        await asleep(outside)
        call.cancel()
        with taking_at_most(GRACE), pytest.raises(asyncio.CancelledError):
            await call
        await loan.rollback()
        assert await sessions(outside) == []
    assert await count(outside) == 0


@EVERY
async def test_a_call_ends_with_its_timeout(
    kind: Pooled | Borrowed, notes: str, outside: asyncpg.Connection
) -> None:
    async with running(kind, notes, timeout=0.3) as executor:
        with (
            taking_at_most(0.3 + GRACE),
            pytest.raises(MemoryUnavailable, match=r"no answer within 0\.3 s") as late,
        ):
            await executor.fetch(SLEEP)
        assert isinstance(late.value.__cause__, TimeoutError)
        if isinstance(kind, Pooled):
            assert await sessions(outside) == []
            assert await works(executor)
    assert await sessions(outside) == []


@EVERY_POOL
async def test_a_transaction_that_times_out_is_undone(
    kind: Pooled, notes: str, outside: asyncpg.Connection
) -> None:
    async with kind.open(notes, timeout=0.3, size=1) as executor:
        with taking_at_most(0.3 + GRACE), pytest.raises(MemoryUnavailable, match="no answer within"):
            await half_written(executor)
        assert await sessions(outside) == []
        assert await count(outside) == 0
        assert await works(executor)


@EVERY_POOL
async def test_waiting_for_a_connection_counts(kind: Pooled, notes: str, outside: asyncpg.Connection) -> None:
    async with kind.open(notes, timeout=0.3, size=1) as executor:
        async with executor.transaction() as inside:
            assert await works(inside)
            with taking_at_most(0.3), pytest.raises(MemoryUnavailable):
                await executor.fetch(ONE)
            with taking_at_most(0.3), pytest.raises(MemoryUnavailable):
                async with executor.transaction():
                    raise AssertionError("there was no connection for it")
        assert await works(executor)
    assert await sessions(outside) == []


@EVERY_LOAN
async def test_waiting_for_ones_turn_counts(kind: Borrowed, notes: str) -> None:
    async with kind.open(notes, timeout=0.3) as loan:
        async with loan.executor.transaction() as inside:
            with taking_at_most(0.3), pytest.raises(MemoryUnavailable, match="no answer within"):
                await loan.executor.fetch(ONE)
            assert await works(inside)
        assert await works(loan.executor)


@EVERY_POOL
async def test_callers_that_give_up_waiting_take_no_place(kind: Pooled, notes: str) -> None:
    async with kind.open(notes, size=1) as executor:
        async with executor.transaction():
            waiting = [asyncio.create_task(executor.fetch(ONE)) for _ in range(5)]
            await asyncio.sleep(0.05)
            for call in waiting[:4]:
                call.cancel()
            await asyncio.wait(waiting, timeout=0.05)
        outcome = await asyncio.gather(*waiting, return_exceptions=True)
        assert [type(one) for one in outcome[:4]] == [asyncio.CancelledError] * 4
        assert [list(row) for row in outcome[4]] == [[1]]
        assert await works(executor)


# Lost connections


@EVERY_POOL
async def test_a_backend_killed_between_calls_is_replaced(
    kind: Pooled, notes: str, outside: asyncpg.Connection
) -> None:
    async with kind.open(notes, size=2) as executor:
        async with executor.transaction() as one, executor.transaction() as other:
            await asyncio.gather(works(one), works(other))
        await outside.execute(
            "SELECT pg_terminate_backend(pid, 5000) FROM pg_stat_activity"
            " WHERE datname = current_database() AND pid <> pg_backend_pid()"
        )
        assert await works(executor)
        assert await works(executor)


@EVERY_POOL
async def test_a_backend_killed_in_a_statement_is_an_outage_and_then_works(
    kind: Pooled, notes: str, outside: asyncpg.Connection
) -> None:
    async with kind.open(notes, size=1) as executor:
        call = asyncio.create_task(executor.fetch(SLEEP))
        await asleep(outside)
        await outside.execute(
            "SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE wait_event = 'PgSleep'"
            " AND datname = current_database()"
        )
        with taking_at_most(GRACE), pytest.raises(MemoryUnavailable) as lost:
            await call
        assert lost.value.__cause__ is not None
        assert await works(executor)


@EVERY_LOAN
async def test_a_backend_killed_under_its_owner_is_an_outage(
    kind: Borrowed, notes: str, outside: asyncpg.Connection
) -> None:
    async with kind.open(notes) as loan:
        [[pid]] = await loan.executor.fetch(PID)
        await outside.execute("SELECT pg_terminate_backend($1, 5000)", pid)
        with pytest.raises(MemoryUnavailable):
            await loan.executor.fetch(ONE)
        with pytest.raises(MemoryUnavailable):
            async with loan.executor.transaction():
                raise AssertionError("there is no connection for it")


# A server that is down, or hangs


@pytest.fixture(scope="module")
def private(server: str, tmp_path_factory: pytest.TempPathFactory) -> Iterator[EmbeddedServer]:
    """A server of this module's own, to be stopped and frozen."""
    path = tmp_path_factory.mktemp("private")
    with EmbeddedServer(path, binaries=server_binaries(), settings=FAST) as running:
        yield running


@contextmanager
def frozen(private: EmbeddedServer) -> Iterator[None]:
    """Every process of the server stops where it is; the system goes on taking connections for it."""
    folder = Path(parse_qs(urlsplit(private.dsn).query)["host"][0]).parent
    postmaster = psutil.Process(int((folder / "data" / "postmaster.pid").read_text().split()[0]))
    processes = [postmaster, *postmaster.children()]
    for process in processes:
        with suppress(psutil.NoSuchProcess):
            process.suspend()
    try:
        yield
    finally:
        for process in processes:
            with suppress(psutil.NoSuchProcess):
                process.resume()


@EVERY_POOL
async def test_a_restarted_server_is_found_again(kind: Pooled, private: EmbeddedServer) -> None:
    async with kind.open(private.dsn, timeout=1.0) as executor:
        assert await works(executor)
        private.stop()
        try:
            with taking_at_most(1.0 + GRACE), pytest.raises(MemoryUnavailable) as down:
                await executor.fetch(ONE)
            assert down.value.__cause__ is not None
        finally:
            private.start()
        if kind.name == "psycopg-pool":
            # It waits longer and longer before it tries again.
            await until_it_answers(executor)
        else:
            assert await works(executor)


@pytest.mark.parametrize("kind", OWN, ids=str)
async def test_a_restart_between_two_calls_is_not_noticed(kind: Pooled, private: EmbeddedServer) -> None:
    async with kind.open(private.dsn) as executor:
        async with executor.transaction() as one, executor.transaction() as other:
            await asyncio.gather(works(one), works(other))
        # Blocks the event loop, so that it hears of the end of its connections only afterwards.
        private.stop()
        private.start()
        assert await works(executor)
        async with executor.transaction() as one, executor.transaction() as other:
            assert await works(one)
            assert await works(other)


@EVERY
async def test_a_server_that_hangs_costs_the_timeout_and_no_more(
    kind: Pooled | Borrowed, private: EmbeddedServer
) -> None:
    async with running(kind, private.dsn, timeout=0.5) as executor:
        assert await works(executor)
        with frozen(private), taking_at_most(0.5 + 2 * GRACE), pytest.raises(MemoryUnavailable):
            await executor.fetch(ONE)
        if isinstance(kind, Pooled):
            async with kind.open(private.dsn) as other:
                await until_it_answers(other)
            assert await works(executor)


@EVERY_POOL
async def test_connecting_to_a_server_that_hangs_costs_the_timeout_and_no_more(
    kind: Pooled, private: EmbeddedServer
) -> None:
    async with kind.open(private.dsn, timeout=0.5) as executor:
        with frozen(private), taking_at_most(0.5 + GRACE), pytest.raises(MemoryUnavailable):
            await executor.fetch(ONE)
        await until_it_answers(executor)


@EVERY_POOL
async def test_a_cancelled_call_does_not_wait_for_a_server_that_hangs(
    kind: Pooled, private: EmbeddedServer
) -> None:
    async with kind.open(private.dsn, size=1) as executor:
        assert await works(executor)
        with frozen(private):
            for write in (executor.fetch(SLEEP), in_transaction(executor)):
                call = asyncio.create_task(write)
                await asyncio.sleep(0.1)
                call.cancel()
                with taking_at_most(2 * GRACE), pytest.raises(asyncio.CancelledError):
                    await call
        await until_it_answers(executor)


@EVERY_POOL
async def test_a_transaction_on_a_server_that_hangs_ends_too(kind: Pooled, private: EmbeddedServer) -> None:
    async with kind.open(private.dsn, timeout=0.5, size=1) as executor:

        async def freezing() -> None:
            async with executor.transaction() as inside:
                assert await works(inside)
                with frozen(private):
                    await inside.fetch(ONE)

        with taking_at_most(0.5 + 3 * GRACE), pytest.raises(MemoryUnavailable):
            await freezing()
        await until_it_answers(executor)


async def in_transaction(executor: Executor) -> None:
    async with executor.transaction() as inside:
        await inside.fetch(SLEEP)


async def until_it_answers(executor: Executor) -> None:
    """A server that was frozen does what had piled up first; psycopg's own pool waits before it tries."""
    for _ in range(10):
        try:
            assert await works(executor)
            return
        except MemoryUnavailable:
            await asyncio.sleep(0.2)
    raise AssertionError("the pool did not heal")


def unused_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port: int = probe.getsockname()[1]
        return port


@EVERY_POOL
async def test_a_refused_connection_is_an_outage_with_its_cause(kind: Pooled) -> None:
    dsn = f"postgresql://somebody@127.0.0.1:{unused_port()}/nothing"
    async with kind.open(dsn, timeout=1.0) as executor:
        # Of pools that are ours, and of engines, at once; psycopg's own pool goes on trying.
        with taking_at_most(1.0 if kind.name == "psycopg-pool" else 0.0):
            with pytest.raises(MemoryUnavailable) as refused:
                await executor.fetch(ONE)
            assert refused.value.__cause__ is not None
        with pytest.raises(MemoryUnavailable):
            async with executor.transaction():
                raise AssertionError("there is no connection for it")


@pytest.mark.parametrize("kind", OWN, ids=str)
@pytest.mark.parametrize("wrong", ["database", "role", "host", "socket"])
async def test_no_such_place_is_an_outage(kind: Pooled, wrong: str, server: str) -> None:
    address = urlsplit(server)
    dsn = {
        "database": address._replace(path="/no_such_database").geturl(),
        "role": server.replace("//postgres@", "//no_such_role@"),
        "host": "postgresql://postgres@no-such-host.invalid/postgres",
        "socket": "postgresql:///postgres?host=/no/such/folder",
    }[wrong]
    async with kind.open(dsn, timeout=5.0) as executor:
        with pytest.raises(MemoryUnavailable):
            await executor.fetch(ONE)


@pytest.mark.parametrize("kind", OWN, ids=str)
async def test_a_server_without_room_is_an_outage(
    kind: Pooled, notes: str, outside: asyncpg.Connection
) -> None:
    name = await outside.fetchval("SELECT current_database()")
    role = f"{name}_role"
    await outside.execute(f"CREATE ROLE {role} LOGIN CONNECTION LIMIT 0")
    try:
        async with kind.open(notes.replace("//postgres@", f"//{role}@")) as executor:
            with pytest.raises(MemoryUnavailable, match="too many connections"):
                await executor.fetch(ONE)
            await outside.execute(f"ALTER ROLE {role} CONNECTION LIMIT 1")
            assert await works(executor)
    finally:
        await outside.execute(f"DROP ROLE {role}")


@EVERY_POOL
async def test_a_database_that_only_reads_is_an_outage_for_a_write(
    kind: Pooled, notes: str, outside: asyncpg.Connection
) -> None:
    name = await outside.fetchval("SELECT current_database()")
    await outside.execute(f"ALTER DATABASE {name} SET default_transaction_read_only = on")
    try:
        async with kind.open(notes) as executor:
            with pytest.raises(MemoryUnavailable, match="read-only transaction"):
                await executor.fetch(Statement("add", "INSERT INTO notes VALUES ('a')"))
            assert await works(executor)
    finally:
        await outside.execute(f"ALTER DATABASE {name} RESET default_transaction_read_only")


# What never reaches a server


@pytest.mark.parametrize("executor", [AsyncpgExecutor, PsycopgExecutor])
def test_making_an_executor_touches_no_server_and_needs_no_event_loop(
    executor: type[AsyncpgExecutor] | type[PsycopgExecutor],
) -> None:
    executor.connect(f"postgresql://127.0.0.1:{unused_port()}/nothing", pool_min=2, pool_max=5)


@pytest.mark.parametrize(
    ("executor", "dsn"),
    [
        (AsyncpgExecutor, "postgresql://user:hidden/password@host:port/db"),
        (AsyncpgExecutor, "postgresql://user:hidden@host/db?sslmode=nonsense"),
        (PsycopgExecutor, "postgresql://user:hidden@host/db?nonsense=1"),
    ],
)
async def test_a_dsn_that_a_driver_cannot_read_is_refused_without_its_password(
    executor: type[AsyncpgExecutor] | type[PsycopgExecutor], dsn: str
) -> None:
    opened = executor.connect(dsn)
    with pytest.raises(MemoryContractError, match=r"dsn must be .*//user:\*\*\*@host") as refused:
        await opened.fetch(ONE)
    assert "hidden" not in "".join(traceback.format_exception(refused.value))


@pytest.mark.parametrize("executor", [AsyncpgExecutor, PsycopgExecutor])
@pytest.mark.parametrize("sizes", [(-1, 1), (0, 0), (3, 2)])
def test_pool_sizes_that_make_no_pool_are_refused(
    executor: type[AsyncpgExecutor] | type[PsycopgExecutor], sizes: tuple[int, int]
) -> None:
    with pytest.raises(MemoryContractError, match="pool_min"):
        executor.connect("postgresql://", pool_min=sizes[0], pool_max=sizes[1])


@pytest.mark.parametrize("kind", OWN, ids=str)
async def test_after_close_nothing_is_opened(kind: Pooled, notes: str, outside: asyncpg.Connection) -> None:
    async with kind.open(notes) as executor:
        async with executor.transaction() as inside:
            await executor.close()
            await executor.close()
            # What had begun may end.
            assert await works(inside)
        with pytest.raises(MemoryUnavailable, match="closed"):
            await executor.fetch(ONE)
    for _ in range(40):
        left = await outside.fetchval(
            "SELECT count(*) FROM pg_stat_activity"
            " WHERE datname = current_database() AND pid <> pg_backend_pid()"
        )
        if left == 0:
            break
        await asyncio.sleep(0.05)
    assert left == 0


@pytest.mark.parametrize("kind", OWN, ids=str)
def test_another_event_loop_is_refused(kind: Pooled, server: str) -> None:
    with asyncio.Runner() as one, asyncio.Runner() as other:
        manager = kind.open(server)
        executor = one.run(manager.__aenter__())
        assert one.run(works(executor))
        with pytest.raises(MemoryContractError, match="event loop"):
            other.run(works(executor))
        one.run(manager.__aexit__(None, None, None))
