"""The databases that hosts really have: shared, locked down, with pgvector and search_path anywhere."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from datetime import UTC, datetime
from urllib.parse import quote, urlsplit, urlunsplit

import psycopg
import pytest
from sqlalchemy.ext.asyncio import AsyncSession

from symfonic_pg import MemoryRecord, MemoryScope, MemoryStore, MemoryUnavailable
from symfonic_pg.embedders import HashingEmbedder
from symfonic_pg.memory import Association, ConversationTurn
from symfonic_pg.postgres.doctor import examine
from symfonic_pg.postgres.migrations import downgrade, migrate
from symfonic_pg.store import StoreOptions
from symfonic_pg.sync import MemoryStore as SyncMemoryStore
from tests.conftest import database_name
from tests.integration.executor_kinds import engine_for
from tests.migration.test_migrations import run

ORG = MemoryScope.parse("org:acme")
USER = ORG.child("user", "u1")
EMBEDDER = HashingEmbedder()
OPTIONS: StoreOptions = {"embedder": EMBEDDER, "max_hops": 1, "recent_turns": 2}
ROLE = "symfonic_pg_test_app"
NOW = datetime(2026, 3, 1, 12, tzinfo=UTC)


def note(record_id: str, content: str, scope: MemoryScope = USER) -> MemoryRecord:
    return MemoryRecord(record_id, scope, "semantic", content, 0.5, created_at=NOW)


async def tour(store: MemoryStore) -> None:
    """Every verb, each with an answer that it must give."""
    await store.repository.register_model(EMBEDDER.model, EMBEDDER.dimension)
    assert (await store.remember([note("m1", "a refund was promised"), note("m2", "by phone")])).inserted == 2
    assert (await store.remember(note("m2", "by letter"))).updated == 1
    assert (await store.load([note("m3", "paid in March", ORG), note("m2", "by letter")])).inserted == 1
    assert await store.associate(USER, Association("m1", note("m2", "by letter"))) == 1
    assert await store.append_turn(USER, ConversationTurn("t1", "customer", "where is it?")) == 1
    assert await store.reinforce(USER, ["m1", "m3"]) == 2
    recalled = await store.recall(USER, "refund", context_ids=("m1",))
    assert recalled.retrieval.result.sources.keys() == {
        "vector", "lexical", "recent", "salient", "profile", "graph",
    }  # fmt: skip
    assert recalled.retrieval.result.unavailable == ()
    assert recalled.memories[0].record.record_id == "m1"
    assert recalled.working.turns[0].text == "where is it?"
    assert await store.count(USER) == 3
    assert [record.record_id for record in await store.get(USER, ["m3", "m1"])] == ["m3", "m1"]
    assert [edge.target.record_id for edge in await store.neighbours(USER, ["m1"])] == ["m2"]
    assert await store.repository.hops(USER, "m1", ["m2"], 3) == {"m2": 1}
    assert (await store.count_pending()).waiting == 0
    assert await store.move(USER, ["m2"], USER.child("session", "s1")) == 1
    assert len(await store.list(USER)) == 2
    assert await store.dissociate(USER, Association("m1", note("m2", "by letter"))) == 1
    assert await store.forget(USER, ["m1"]) == 1
    assert await store.erase(ORG) == 2


@asynccontextmanager
async def connected(dsn: str, driver: str, schema: str) -> AsyncIterator[MemoryStore]:
    async with MemoryStore.connect(dsn, driver=driver, schema=schema, **OPTIONS) as store:
        yield store


@asynccontextmanager
async def in_session(dsn: str, driver: str, schema: str) -> AsyncIterator[MemoryStore]:
    engine = engine_for(dsn, driver)
    async with AsyncSession(engine) as session:
        yield MemoryStore.on(engine, schema=schema, **OPTIONS).using(session)
    await engine.dispose()


Opening = Callable[[str, str, str], AbstractAsyncContextManager[MemoryStore]]
EVERYWHERE = pytest.mark.parametrize("driver", ["asyncpg", "psycopg"])
ON_ANY = pytest.mark.parametrize("opened", [connected, in_session])


# The databases in which the role was given something.
granted: list[str] = []


@pytest.fixture
def app_role(server: str) -> Iterator[str]:
    """A role that may log in and nothing else."""
    run(server, f"CREATE ROLE {ROLE} LOGIN PASSWORD 'test'")
    yield ROLE
    while granted:
        run(granted.pop(), f"DROP OWNED BY {ROLE}")
    run(server, f"DROP ROLE {ROLE}")


def as_app(dsn: str) -> str:
    """The same database for the role."""
    parts = urlsplit(dsn)
    host = parts.netloc.rpartition("@")[2]
    return urlunsplit(parts._replace(netloc=f"{ROLE}:test@{host}"))


def with_path(dsn: str, search_path: str) -> str:
    """The same database, its search_path set for everybody who connects from now on."""
    run(dsn, f"ALTER DATABASE {database_name(dsn)} SET search_path = {search_path}")
    return dsn


def grant_use(dsn: str, schema: str, vectors: str) -> None:
    """What the role needs to remember and recall, and no more: it may not even create a temporary table."""
    granted.append(dsn)
    run(
        dsn,
        f"REVOKE ALL ON DATABASE {database_name(dsn)} FROM PUBLIC",
        f"GRANT CONNECT ON DATABASE {database_name(dsn)} TO {ROLE}",
        f"GRANT USAGE ON SCHEMA {schema}, {vectors} TO {ROLE}",
        f"GRANT SELECT, INSERT, UPDATE, DELETE ON ALL TABLES IN SCHEMA {schema} TO {ROLE}",
        f"GRANT USAGE ON ALL SEQUENCES IN SCHEMA {schema} TO {ROLE}",
        "REVOKE CREATE ON SCHEMA public FROM PUBLIC",
    )


@ON_ANY
@EVERYWHERE
async def test_pgvector_may_live_in_another_schema(empty_database: str, driver: str, opened: Opening) -> None:
    run(empty_database, "CREATE SCHEMA extensions", "CREATE EXTENSION vector WITH SCHEMA extensions")
    run(empty_database, "DROP SCHEMA public")
    migrate(empty_database, schema="brain")
    async with opened(empty_database, driver, "brain") as store:
        await tour(store)
    assert [
        finding for finding in await examine(empty_database, schema="brain") if finding.status == "failure"
    ] == []


async def test_the_vector_indexes_follow_pgvector_to_its_schema(empty_database: str) -> None:
    run(empty_database, "CREATE SCHEMA extensions", "CREATE EXTENSION vector WITH SCHEMA extensions")
    migrate(empty_database)
    async with connected(empty_database, "asyncpg", "symfonic") as store:
        await store.remember(note("m1", "a refund was promised"))
        await store.repository.index_model(EMBEDDER.model)
        assert len((await store.recall(USER, "refund")).memories) == 1
    with psycopg.connect(empty_database) as connection:
        built = connection.execute(
            "SELECT count(*) FROM pg_indexes WHERE schemaname = 'symfonic' AND indexdef LIKE '%hnsw%'"
        ).fetchone()
    assert built == (1,)


@ON_ANY
@EVERYWHERE
async def test_a_search_path_may_exclude_both_schemas(database: str, driver: str, opened: Opening) -> None:
    for search_path in ("''", "pg_catalog", "nowhere"):
        async with opened(with_path(database, search_path), driver, "symfonic") as store:
            await tour(store)


@ON_ANY
@EVERYWHERE
async def test_objects_that_stand_in_the_way_by_name_are_not_met(
    database: str, driver: str, opened: Opening
) -> None:
    """A search_path in which every name of ours means something else."""
    run(
        database,
        "CREATE SCHEMA decoy",
        "CREATE TABLE decoy.memories (n integer)",
        "CREATE TABLE decoy.scopes (n integer)",
        "CREATE TABLE decoy.models (n integer)",
        "CREATE TYPE decoy.halfvec AS (n integer)",
        "CREATE FUNCTION decoy.search() RETURNS integer LANGUAGE sql AS 'SELECT 1'",
        "CREATE FUNCTION decoy.lineage(text, text[], text[]) RETURNS integer LANGUAGE sql AS 'SELECT 1'",
    )
    async with opened(with_path(database, "decoy, pg_catalog"), driver, "symfonic") as store:
        await tour(store)


@ON_ANY
@EVERYWHERE
async def test_a_role_that_may_create_nothing_can_do_everything(
    database: str, app_role: str, driver: str, opened: Opening
) -> None:
    grant_use(database, "symfonic", "public")
    with psycopg.connect(as_app(database), autocommit=True) as connection:
        for statement in ("CREATE TABLE t (n integer)", "CREATE TEMP TABLE t (n integer)", "CREATE SCHEMA s"):
            with pytest.raises(psycopg.errors.InsufficientPrivilege):
                connection.execute(statement)
    async with opened(as_app(database), driver, "symfonic") as store:
        await tour(store)


@EVERYWHERE
async def test_all_of_it_at_once(empty_database: str, app_role: str, driver: str) -> None:
    run(empty_database, "CREATE SCHEMA extensions", "CREATE EXTENSION vector WITH SCHEMA extensions")
    migrate(empty_database, schema="Brain")
    grant_use(empty_database, '"Brain"', "extensions")
    dsn = as_app(with_path(empty_database, "''"))
    for opened in (connected, in_session):
        async with opened(dsn, driver, "Brain") as store:
            await tour(store)


async def everything(store: MemoryStore) -> tuple[object, ...]:
    """What an application can find out about its memories, and nothing that depends on the clock."""
    recalled = await store.recall(USER, "refund", limit=100, as_of=NOW)
    return (
        await store.list(USER),
        recalled.memories,
        recalled.retrieval.result.sources,
        recalled.retrieval.result.dropped,
        recalled.working,
        await store.neighbours(USER, ["m1", "m2"]),
        await store.count(USER),
        [(model.name, model.dimension) for model in await store.repository.models()],
        await store.count_pending(),
    )


async def test_two_applications_in_one_database_do_not_see_each_other(database: str) -> None:
    migrate(database, schema="second")
    async with (
        connected(database, "asyncpg", "symfonic") as first,
        connected(database, "psycopg", "second") as second,
    ):
        await first.remember([note("m1", "a refund was promised"), note("m2", "by phone")])
        await first.associate(USER, Association("m1", note("m2", "by phone")))
        await first.append_turn(USER, ConversationTurn("t1", "customer", "where is it?"))
        alone = await everything(first)
        assert await second.count(USER) == 0
        assert (await second.recall(USER, "refund")).render() == ""
        await second.remember([note("m1", "another refund", ORG), note("m3", "refund refund refund")])
        await second.load([note(f"l{number}", "refund") for number in range(50)])
        await second.reinforce(USER, ["m1", "m3"])
        await second.append_turn(USER, ConversationTurn("t1", "customer", "something else"))
        assert await second.count(USER) == 52
        assert await everything(first) == alone
        assert await second.erase(ORG) == 52
        assert await everything(first) == alone
    downgrade(database, schema="second")
    async with connected(database, "psycopg", "symfonic") as first:
        assert await everything(first) == alone


async def test_a_role_of_one_application_cannot_read_the_others(database: str, app_role: str) -> None:
    migrate(database, schema="second")
    grant_use(database, "second", "public")
    async with connected(as_app(database), "asyncpg", "second") as second:
        await tour(second)
    async with connected(as_app(database), "asyncpg", "symfonic") as first:
        with pytest.raises(MemoryUnavailable, match="permission denied"):
            await first.count(USER)


def test_the_same_without_asyncio(empty_database: str, app_role: str) -> None:
    run(empty_database, "CREATE SCHEMA extensions", "CREATE EXTENSION vector WITH SCHEMA extensions")
    migrate(empty_database, schema="Brain")
    grant_use(empty_database, '"Brain"', "extensions")
    dsn = as_app(with_path(empty_database, "''"))
    with SyncMemoryStore.connect(dsn, schema="Brain", **OPTIONS) as store, psycopg.connect(dsn) as connection:
        for one in (store, store.using(connection)):
            one.remember([note("m1", "a refund was promised"), note("m2", "by phone")])
            one.load([note("m3", "paid in March", ORG)])
            recalled = one.recall(USER, "refund")
            assert recalled.memories[0].record.record_id == "m1"
            assert recalled.retrieval.result.sources["vector"] == 3
            assert one.erase(ORG) == 3


def test_the_address_may_set_the_path_itself(database: str) -> None:
    dsn = f"{database}&options={quote('-csearch_path=pg_catalog')}"
    with SyncMemoryStore.connect(dsn, driver="psycopg", **OPTIONS) as store:
        store.remember(note("m1", "a refund was promised"))
        assert len(store.recall(USER, "refund").memories) == 1
