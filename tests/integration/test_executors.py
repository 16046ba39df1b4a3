"""Whatever carries a statement, it arrives and comes back as the same values, whole or not at all."""

from __future__ import annotations

import asyncio
import struct
import subprocess
import sys
from collections.abc import AsyncIterator, Iterator
from datetime import UTC, datetime, timedelta, timezone
from pathlib import Path

import asyncpg
import psycopg
import pytest
from sqlalchemy import create_engine

from symfonic_pg.memory.errors import MemoryContractError, MemoryUnavailable, SchemaMismatch
from symfonic_pg.postgres.executors import CopyTarget, Executor, executor_for
from symfonic_pg.postgres.executors.pooled import RETRIES
from symfonic_pg.postgres.migrations import head_revision
from symfonic_pg.postgres.statements import Statement
from tests.conftest import create_database, drop_database
from tests.integration.executor_kinds import (
    AUTOCOMMIT,
    BORROWED,
    OWN,
    POOLED,
    Borrowed,
    Pooled,
    engine_for,
    running,
)

ROOT = Path(__file__).parents[2]
EVERY = pytest.mark.parametrize("kind", [*POOLED, *AUTOCOMMIT, *BORROWED], ids=str)
EVERY_POOL = pytest.mark.parametrize("kind", [*POOLED, *AUTOCOMMIT], ids=str)
EVERY_LOAN = pytest.mark.parametrize("kind", BORROWED, ids=str)

TYPES = {
    "text": ["", "a", "wörter \N{GRINNING FACE} '\"\\ %s $1 :x", "x" * 100_000],
    "bigint": [0, -1, 2**62],
    "integer": [0, 2**31 - 1],
    "double precision": [0.0, -1.5, 1e300],
    "boolean": [True, False],
    "bytea": [b"", b"\x00\xff", b"'\\"],
    "timestamptz": [
        datetime(2024, 2, 29, 12, 0, 0, 1, tzinfo=UTC),
        datetime(2024, 2, 29, 12, tzinfo=timezone(timedelta(hours=-7))),
        datetime(1, 1, 1, 0, 0, 0, 1, tzinfo=UTC),
        datetime(9999, 12, 31, 23, 59, 59, 999_998, tzinfo=UTC),
    ],
}
# asyncpg sends these two as -infinity and infinity: they go as text.
EXTREMES = [datetime(1, 1, 1, tzinfo=UTC), datetime(9999, 12, 31, 23, 59, 59, 999_999, tzinfo=UTC)]


def statement(text: str, *parameters: object) -> Statement:
    return Statement("test", text, parameters)


async def value(executor: Executor, text: str, *parameters: object) -> object:
    [[found]] = await executor.fetch(statement(text, *parameters))
    return found


@pytest.fixture(scope="module")
def shared(server: str) -> Iterator[str]:
    """A database of this module's own."""
    dsn = create_database(server, "template0")
    yield dsn
    drop_database(server, dsn)


@pytest.fixture
def notes(shared: str) -> str:
    """A database with an empty table `notes` in the schema `mine`."""
    with psycopg.connect(shared, autocommit=True) as connection:
        connection.execute("DROP SCHEMA IF EXISTS mine CASCADE")
        connection.execute("CREATE SCHEMA mine")
        connection.execute("CREATE TABLE mine.notes (id bigint PRIMARY KEY, note text)")
    return shared


@pytest.fixture
async def outside(notes: str) -> AsyncIterator[asyncpg.Connection]:
    """Another session on the same database: it sees what is committed."""
    connection = await asyncpg.connect(notes)
    yield connection
    await connection.close()


ADD = "INSERT INTO mine.notes VALUES ($1::bigint, $2::text)"
COUNT = "SELECT count(*) FROM mine.notes"


async def add(executor: Executor, number: int) -> None:
    await executor.fetch(statement(ADD, number, "a note"))


async def add_and_fail(executor: Executor, number: int) -> None:
    async with executor.transaction() as inside:
        await add(inside, number)
        raise ZeroDivisionError


# Types


@EVERY
async def test_values_come_back_as_they_went(kind: Pooled | Borrowed, server: str) -> None:
    async with running(kind, server) as executor:
        for name, values in TYPES.items():
            for sent in values:
                assert await value(executor, f"SELECT $1::{name}", sent) == sent
            assert await value(executor, f"SELECT $1::{name}", None) is None
            for sent in ([], values, [None, *values, None], [None]):
                assert await value(executor, f"SELECT $1::{name}[]", sent) == sent


@EVERY
async def test_json_travels_as_text(kind: Pooled | Borrowed, server: str) -> None:
    async with running(kind, server) as executor:
        document = '{"a": [1, 2.5, null, "\\u00e9%s"]}'
        assert (
            await value(executor, "SELECT ($1::text::jsonb)::text", document)
            == '{"a": [1, 2.5, null, "é%s"]}'
        )
        assert await value(executor, "SELECT ($1::jsonb)::text", "{}") == "{}"


@EVERY
async def test_rows_are_read_by_position_and_may_be_none(kind: Pooled | Borrowed, server: str) -> None:
    async with running(kind, server) as executor:
        rows = await executor.fetch(statement("SELECT g, 'x%' || g, 7 % 4 FROM generate_series(1, 300) g"))
        assert [tuple(row) for row in rows] == [(g, f"x%{g}", 3) for g in range(1, 301)]
        assert await executor.fetch(statement("SELECT 1 WHERE $1::boolean", False)) == []
        assert await executor.fetch(statement("CREATE TEMPORARY TABLE nothing_comes_back (a int)")) == []


@EVERY
async def test_instants_are_equal_whatever_zone_and_style_the_session_has(
    kind: Pooled | Borrowed, empty_database: str
) -> None:
    with psycopg.connect(empty_database, autocommit=True) as connection:
        name = connection.info.dbname
        for setting in ("TimeZone = 'Asia/Tokyo'", "DateStyle = 'German'", "bytea_output = 'escape'"):
            connection.execute(f"ALTER DATABASE {name} SET {setting}")
    async with running(kind, empty_database) as executor:
        for sent in [*TYPES["timestamptz"], *EXTREMES]:
            found = await value(executor, "SELECT $1::text::timestamptz", sent.isoformat())
            assert found.tzinfo is not None
            assert found.astimezone(UTC) == sent
        assert await value(executor, "SELECT $1::timestamptz[]", TYPES["timestamptz"]) == TYPES["timestamptz"]
        assert await value(executor, "SELECT $1::bytea", b"\x00'\\") == b"\x00'\\"


async def test_asyncpg_asks_for_no_type_of_a_single_value_or_of_texts(server: str) -> None:
    connection = await asyncpg.connect(server)
    executor = executor_for(connection)
    sent: list[str] = []
    connection.add_query_logger(lambda record: sent.append(record.query))
    values = {**{name: values[0] for name, values in TYPES.items()}, "text[]": ["a", None], "jsonb": "{}"}
    places = ", ".join(f"${place}::{name}" for place, name in enumerate(values, 1))
    asked = statement(f"SELECT {places}", *values.values())
    await executor.fetch(asked)
    await asyncio.sleep(0)  # the logger is called by the event loop
    await connection.close()
    assert sent == [asked.text]


@pytest.mark.parametrize("kind", OWN, ids=str)
@pytest.mark.parametrize("prepared", [True, False])
async def test_prepared_statements_can_be_turned_off(kind: Pooled, prepared: bool, server: str) -> None:
    connect = {"asyncpg": "AsyncpgExecutor", "psycopg": "PsycopgExecutor"}[kind.name]
    module = __import__(f"symfonic_pg.postgres.executors.{kind.name}", fromlist=[connect])
    executor = getattr(module, connect).connect(server, pool_max=1, prepared_statements=prepared)
    for number in range(10):
        assert await value(executor, "SELECT $1::bigint + 1", number) == number + 1
    rows = await executor.fetch(statement("SELECT 1 FROM pg_prepared_statements WHERE statement LIKE '%+ 1'"))
    await executor.close()
    assert len(rows) == prepared


# Transactions


@EVERY_POOL
async def test_each_call_is_a_transaction_of_its_own(
    kind: Pooled, notes: str, outside: asyncpg.Connection
) -> None:
    async with kind.open(notes) as executor:
        assert executor.borrowed is False
        await add(executor, 1)
        assert await outside.fetchval(COUNT) == 1
        await executor.copy(CopyTarget("mine", "notes", ("id", "note")), binary_rows(2, 4))
        assert await outside.fetchval(COUNT) == 3


@EVERY_POOL
async def test_a_transaction_happens_as_a_whole(
    kind: Pooled, notes: str, outside: asyncpg.Connection
) -> None:
    async with kind.open(notes) as executor:
        async with executor.transaction() as inside:
            await add(inside, 1)
            await add(inside, 2)
            assert await outside.fetchval(COUNT) == 0
        assert await outside.fetchval(COUNT) == 2
        with pytest.raises(ZeroDivisionError):
            await add_and_fail(executor, 3)
        assert await outside.fetchval(COUNT) == 2
        async with executor.transaction() as inside:
            pass
        await add(executor, 4)
        assert await outside.fetchval(COUNT) == 3
    assert await idle_in_transaction(outside) == 0


@EVERY
async def test_a_transaction_inside_another_undoes_itself_alone(kind: Pooled | Borrowed, notes: str) -> None:
    async with running(kind, notes) as executor, executor.transaction() as outer:
        await add(outer, 1)
        with pytest.raises(ZeroDivisionError):
            await add_and_fail(outer, 2)
        with pytest.raises(MemoryUnavailable, match="unique violation"):
            async with outer.transaction() as inner:
                await add(inner, 1)
        async with outer.transaction() as inner:
            await add(inner, 3)
        assert [row[0] for row in await outer.fetch(statement("SELECT id FROM mine.notes ORDER BY 1"))] == [
            1,
            3,
        ]


@EVERY_LOAN
@pytest.mark.parametrize("first", ["fetch", "copy", "transaction"])
async def test_a_write_that_comes_first_is_the_owners_to_roll_back(
    kind: Borrowed, first: str, notes: str, outside: asyncpg.Connection
) -> None:
    async with kind.open(notes) as loan:
        assert loan.executor.borrowed is True
        await write(loan.executor, first, 1)
        assert await outside.fetchval(COUNT) == 0
        await loan.rollback()
        assert await outside.fetchval(COUNT) == 0
    assert await outside.fetchval(COUNT) == 0
    assert await idle_in_transaction(outside) == 0


@EVERY_LOAN
@pytest.mark.parametrize("first", ["fetch", "copy", "transaction"])
async def test_a_write_that_comes_first_is_the_owners_to_commit(
    kind: Borrowed, first: str, notes: str, outside: asyncpg.Connection
) -> None:
    async with kind.open(notes) as loan:
        await write(loan.executor, first, 1)
        await write(loan.executor, "fetch", 2)
        assert await outside.fetchval(COUNT) == 0
        await loan.commit()
        assert await outside.fetchval(COUNT) == 2
    assert await outside.fetchval(COUNT) == 2


@pytest.mark.parametrize("driver", ["asyncpg", "psycopg"])
async def test_a_session_goes_on_after_commit_and_rollback(
    driver: str, notes: str, outside: asyncpg.Connection
) -> None:
    from sqlalchemy.ext.asyncio import AsyncSession, async_scoped_session, async_sessionmaker

    made = engine_for(notes, driver)
    factory = async_sessionmaker(made, class_=AsyncSession)
    scoped = async_scoped_session(factory, scopefunc=asyncio.current_task)
    executor = executor_for(scoped)
    await add(executor, 1)
    await scoped.commit()
    await add(executor, 2)
    await scoped.rollback()
    await add(executor, 3)
    async with scoped.begin_nested() as nested:
        await add(executor, 4)
        await nested.rollback()
    await scoped.commit()
    await scoped.close()
    await made.dispose()
    assert [row["id"] for row in await outside.fetch("SELECT id FROM mine.notes ORDER BY id")] == [1, 3]


@EVERY_LOAN
async def test_closing_leaves_a_borrowed_connection_alone(kind: Borrowed, server: str) -> None:
    async with kind.open(server) as loan:
        await loan.executor.close()
        assert await value(loan.executor, "SELECT 1") == 1


async def write(executor: Executor, how: str, number: int) -> None:
    if how == "copy":
        await executor.copy(CopyTarget("mine", "notes", ("id", "note")), binary_rows(number, number + 1))
    elif how == "transaction":
        async with executor.transaction() as inside:
            await add(inside, number)
    else:
        await add(executor, number)


async def idle_in_transaction(outside: asyncpg.Connection) -> int:
    count: int = await outside.fetchval(
        "SELECT count(*) FROM pg_stat_activity"
        " WHERE datname = current_database() AND state LIKE 'idle in transaction%'"
    )
    return count


# COPY


def binary_rows(first: int, end: int) -> Iterator[bytes]:
    """The rows (id, note) of binary COPY, one chunk a row, torn where no field ends."""
    torn = b"PGCOPY\n\xff\r\n\0" + struct.pack("!ii", 0, 0)
    for number in range(first, end):
        torn += struct.pack("!hiqi", 2, 8, number, 4) + b"note"
        yield torn[:-3]
        torn = torn[-3:]
    yield torn + struct.pack("!h", -1)


@EVERY
async def test_copy_loads_rows_in_any_chunks(kind: Pooled | Borrowed, notes: str) -> None:
    async with running(kind, notes) as executor:
        target = CopyTarget("mine", "notes", ("id", "note"))
        await executor.copy(target, binary_rows(0, 5000))
        async with executor.transaction() as inside:
            await inside.copy(target, binary_rows(5000, 5010))
        assert await value(executor, COUNT) == 5010
        assert await value(executor, "SELECT DISTINCT note FROM mine.notes") == "note"


@EVERY
async def test_a_copy_that_breaks_loads_nothing(kind: Pooled | Borrowed, notes: str) -> None:
    def broken() -> Iterator[bytes]:
        yield from list(binary_rows(1, 100))[:-1]
        raise LookupError("no more rows")

    async with running(kind, notes) as executor:
        target = CopyTarget("mine", "notes", ("id", "note"))
        with pytest.raises(LookupError, match="no more rows"):
            async with executor.transaction() as inside:
                await inside.copy(target, broken())
        assert await value(executor, COUNT) == 0
        async with executor.transaction() as inside:
            await inside.copy(target, binary_rows(1, 3))
        assert await value(executor, COUNT) == 2


@EVERY
async def test_copy_checks_its_names(kind: Pooled | Borrowed, server: str) -> None:
    async with running(kind, server) as executor:
        with pytest.raises(MemoryContractError, match="table must be"):
            await executor.copy(CopyTarget("mine", "notes; --", ("id",)), [])


# Many at once


@EVERY_POOL
async def test_calls_run_beside_each_other_and_wait_for_a_place(kind: Pooled, server: str) -> None:
    async with kind.open(server, size=4) as executor:
        asked = [value(executor, "SELECT $1::bigint FROM pg_sleep(0.02)", number) for number in range(40)]
        assert await asyncio.gather(*asked) == list(range(40))


@EVERY_LOAN
async def test_statements_queue_on_a_borrowed_connection(kind: Borrowed, server: str) -> None:
    async with kind.open(server) as loan:
        # Two executors on one connection know of one another.
        other = executor_for(loan.owner)
        asked = [
            value(executor, "SELECT $1::bigint FROM pg_sleep(0.001)", number)
            for number in range(20)
            for executor in (loan.executor, other)
        ]
        assert await asyncio.gather(*asked) == [number for number in range(20) for _ in range(2)]


@EVERY_LOAN
async def test_nobody_gets_between_a_savepoint_and_its_end(kind: Borrowed, notes: str) -> None:
    async with kind.open(notes) as loan:
        began = asyncio.Event()

        async def undone() -> None:
            async with loan.executor.transaction() as inside:
                await add(inside, 1)
                began.set()
                await asyncio.sleep(0.05)
                raise ZeroDivisionError

        async def kept() -> None:
            await began.wait()
            await add(loan.executor, 2)

        outcome = await asyncio.gather(undone(), kept(), return_exceptions=True)
        assert [type(one) for one in outcome] == [ZeroDivisionError, type(None)]
        assert [row[0] for row in await loan.executor.fetch(statement("SELECT id FROM mine.notes"))] == [2]


# Errors


RAISING = """
CREATE FUNCTION mine.fail(state text, times int) RETURNS int LANGUAGE plpgsql AS $$
BEGIN
    IF nextval('mine.calls') <= times THEN
        RAISE EXCEPTION 'made to fail' USING ERRCODE = state, DETAIL = 'a value';
    END IF;
    RETURN currval('mine.calls');
END $$
"""


@pytest.fixture
def failing(notes: str) -> str:
    """The same database with a function that fails as often as it is told, and counts its calls."""
    with psycopg.connect(notes, autocommit=True) as connection:
        connection.execute("CREATE SEQUENCE mine.calls")
        connection.execute(RAISING)
    return notes


FAIL = "SELECT mine.fail($1::text, $2::int)"


@EVERY
async def test_what_a_function_refuses_is_a_contract_error(kind: Pooled | Borrowed, failing: str) -> None:
    async with running(kind, failing) as executor:
        with pytest.raises(MemoryContractError, match=r"^made to fail$") as refused:
            await executor.fetch(statement(FAIL, "SY001", 99))
        assert refused.value.__cause__ is not None


@EVERY_POOL
@pytest.mark.parametrize("state", ["40001", "40P01", "23503", "23505"])
async def test_a_pool_repeats_what_lost_against_another_writer(
    kind: Pooled, state: str, failing: str, outside: asyncpg.Connection
) -> None:
    async with kind.open(failing) as executor:
        assert await value(executor, FAIL, state, RETRIES) == RETRIES + 1
        await outside.execute("ALTER SEQUENCE mine.calls RESTART")
        with pytest.raises(MemoryUnavailable, match="lost against concurrent writers"):
            await executor.fetch(statement(FAIL, state, 99))
        assert await outside.fetchval("SELECT last_value FROM mine.calls") == RETRIES + 1


@EVERY_LOAN
async def test_a_borrowed_connection_repeats_nothing(
    kind: Borrowed, failing: str, outside: asyncpg.Connection
) -> None:
    async with kind.open(failing) as loan:
        with pytest.raises(MemoryUnavailable, match="lost against concurrent writers"):
            await loan.executor.fetch(statement(FAIL, "40001", 1))
        with pytest.raises(MemoryUnavailable, match="current transaction is aborted"):
            await value(loan.executor, "SELECT 1")
        await loan.rollback()
    assert await outside.fetchval("SELECT last_value FROM mine.calls") == 1


@EVERY
@pytest.mark.parametrize(
    "text",
    ["SELECT * FROM nowhere.memories", "SELECT * FROM nowhere", "SELECT nowhere()", "SELECT mine.nowhere()"],
)
async def test_a_schema_that_is_not_there_is_named_with_its_remedy(
    kind: Pooled | Borrowed, text: str, server: str
) -> None:
    async with running(kind, server) as executor:
        with pytest.raises(SchemaMismatch, match=r"symfonic-pg migrate") as mismatch:
            await executor.fetch(statement(text))
    assert mismatch.value.expected == head_revision()
    assert mismatch.value.expected in str(mismatch.value)
    assert mismatch.value.found is None


@EVERY_POOL
async def test_an_older_schema_is_named_by_its_revision(kind: Pooled, notes: str) -> None:
    with psycopg.connect(notes, autocommit=True) as connection:
        connection.execute("CREATE TABLE mine.symfonic_pg_version (version_num text)")
        connection.execute("INSERT INTO mine.symfonic_pg_version VALUES ('0000')")
    async with kind.open(notes) as executor:
        with pytest.raises(SchemaMismatch, match="stands at revision 0000") as mismatch:
            await executor.fetch(Statement("test", "SELECT embedding FROM mine.notes", (), "mine"))
    assert mismatch.value.found == "0000"


@EVERY
async def test_a_bug_is_no_outage_and_shows_no_parameter(kind: Pooled | Borrowed, server: str) -> None:
    async with running(kind, server) as executor:
        with pytest.raises(Exception, match="division by zero") as bug:
            await executor.fetch(statement("SELECT 1 / $1::int, $2::text", 0, "a private memory"))
    assert not isinstance(bug.value, (MemoryUnavailable, MemoryContractError))
    assert "a private memory" not in str(bug.value)


@EVERY_POOL
async def test_a_pool_goes_on_after_an_error(kind: Pooled, server: str) -> None:
    async with kind.open(server, size=1) as executor:
        for _ in range(3):
            with pytest.raises(Exception, match="division by zero"):
                await value(executor, "SELECT 1 / 0")
            assert await value(executor, "SELECT 1") == 1
            with pytest.raises(Exception, match="division by zero"):
                async with executor.transaction() as inside:
                    await value(inside, "SELECT 1 / 0")
            assert await value(executor, "SELECT 1") == 1


@EVERY_POOL
async def test_a_plan_that_no_longer_fits_is_made_anew(
    kind: Pooled, notes: str, outside: asyncpg.Connection
) -> None:
    async with kind.open(notes, size=1) as executor:
        for _ in range(8):
            await executor.fetch(statement("SELECT * FROM mine.notes"))
        await outside.execute("ALTER TABLE mine.notes ADD COLUMN more text")
        await outside.execute("INSERT INTO mine.notes VALUES (1, 'a', 'b')")
        for _ in range(8):
            [row] = await executor.fetch(statement("SELECT * FROM mine.notes"))
            assert tuple(row) == (1, "a", "b")


# Recognition


async def test_what_asyncpg_lends_and_subclasses_are_known(server: str) -> None:
    class Ours(asyncpg.Connection):
        pass

    async with asyncpg.create_pool(server, min_size=0, connection_class=Ours) as pool, pool.acquire() as lent:
        assert await value(executor_for(lent), "SELECT 1") == 1
        assert executor_for(lent).borrowed
    assert executor_for(engine_for("postgresql://", "psycopg_async")).borrowed is False


@pytest.mark.parametrize(
    ("owner", "said"),
    [
        (create_engine("postgresql+psycopg://"), r"sqlalchemy\.engine\.base\.Engine"),
        (psycopg.Connection, r"builtins\.type"),
        ("postgresql://", r"builtins\.str"),
        (None, r"builtins\.NoneType"),
    ],
    ids=["engine", "class", "dsn", "none"],
)
def test_anything_else_is_refused_by_its_type(owner: object, said: str) -> None:
    with pytest.raises(
        MemoryContractError, match=f"a store runs on an asyncpg Pool .*, got {said}(;|$)"
    ) as refused:
        executor_for(owner)
    assert refused.value.field == "owner"


def test_a_synchronous_connection_is_refused(server: str) -> None:
    with psycopg.connect(server) as connection, pytest.raises(MemoryContractError, match="got psycopg"):
        executor_for(connection)


def test_an_engine_of_another_driver_is_refused() -> None:
    engine = engine_for("postgresql://", "psycopg")
    engine.dialect.driver = "other"
    with pytest.raises(MemoryContractError, match=r"dialect must be postgresql\+asyncpg or .* got 'other'"):
        executor_for(engine)


WITHOUT = """
import sys
sys.path.insert(0, sys.argv[1])
for name in sys.argv[3:]:
    sys.modules[name] = None
from symfonic_pg.memory.errors import MemoryContractError
from symfonic_pg.postgres.executors import executor_for
try:
    executor_for(object())
except MemoryContractError:
    pass
assert not {"asyncpg", "psycopg", "sqlalchemy"} & {name for name, module in sys.modules.items() if module}
exec(sys.argv[2])
"""


@pytest.mark.parametrize(
    ("code", "missing"),
    [
        ("", ("asyncpg", "psycopg", "psycopg_pool", "sqlalchemy")),
        ("import symfonic_pg.postgres.executors.psycopg", ("asyncpg", "psycopg_pool", "sqlalchemy")),
        ("import symfonic_pg.postgres.executors.asyncpg", ("psycopg", "psycopg_pool", "sqlalchemy")),
        (
            "from sqlalchemy.ext.asyncio import create_async_engine as make\n"
            "executor_for(make('postgresql+psycopg://'))",
            ("asyncpg", "psycopg_pool"),
        ),
        (
            "from sqlalchemy.ext.asyncio import create_async_engine as make\n"
            "executor_for(make('postgresql+asyncpg://'))",
            ("psycopg", "psycopg_pool"),
        ),
    ],
    ids=["nothing", "psycopg", "asyncpg", "engine-psycopg", "engine-asyncpg"],
)
def test_one_driver_is_enough(code: str, missing: tuple[str, ...]) -> None:
    command = [sys.executable, "-W", "error", "-c", WITHOUT, str(ROOT), code, *missing]
    done = subprocess.run(command, capture_output=True, text=True, timeout=60, check=False)
    assert done.returncode == 0, done.stderr
