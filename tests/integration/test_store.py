"""MemoryStore on a real server: what a recall costs, what it leaves behind, and what it says when things
fail.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from datetime import UTC, datetime
from typing import Any

import asyncpg
import pytest

from symfonic_pg.embedders import HashingEmbedder
from symfonic_pg.memory import (
    Association,
    ConversationTurn,
    MemoryContractError,
    MemoryQuery,
    MemoryRecord,
    MemoryScope,
    MemoryUnavailable,
    RetrievalPolicy,
)
from symfonic_pg.postgres.executors import Executor, Rows
from symfonic_pg.postgres.statements import Statement
from symfonic_pg.store import MemoryStore, StoreSettings

ORG = MemoryScope.parse("org:acme")
USER = ORG.child("user", "u1")
SESSION = USER.child("session", "s1")


class Counting:
    """An executor that writes down what it runs, and can be told to die after so many statements."""

    borrowed = False

    def __init__(self, executor: Executor) -> None:
        self._executor = executor
        self.names: list[str] = []
        self.lives: int | None = None

    async def fetch(self, statement: Statement) -> Rows:
        if self.lives is not None and len(self.names) >= self.lives:
            raise MemoryUnavailable("the server is gone")
        self.names.append(statement.name)
        return await self._executor.fetch(statement)

    def __getattr__(self, name: str) -> Any:
        return getattr(self._executor, name)


@asynccontextmanager
async def counted(dsn: str, **options: Any) -> AsyncIterator[tuple[MemoryStore, Counting]]:
    async with MemoryStore.connect(dsn, **options) as store:
        counting = Counting(store.repository.executor)
        yield MemoryStore(store.repository.on(counting), store.settings), counting  # type: ignore[arg-type]


async def fill(store: MemoryStore) -> None:
    lamp = MemoryRecord("lamp", ORG, "semantic", "The lamp flickers after an hour", 0.9)
    batch = MemoryRecord("batch", ORG, "episodic", "Firmware 7 went out in March")
    await store.remember([lamp, batch, MemoryRecord("mine", USER, "semantic", "Ana owns a lamp")])
    await store.associate(ORG, Association("lamp", batch, "caused by", 1.0))
    await store.append_turns(SESSION, [ConversationTurn("t1", "ana", "my lamp flickers", 1)])


async def test_a_recall_is_three_statements_and_needs_no_set_up(database: str) -> None:
    async with counted(database, embedder=HashingEmbedder(), max_hops=1, recent_turns=4) as (store, counting):
        await fill(store)
        counting.names.clear()
        recalled = await store.recall(SESSION, "flickering lamp")
        assert sorted(counting.names) == ["neighbours", "recent_turns", "search"]
        assert recalled.working.turns
        recalled.report.reconcile()


async def test_a_store_that_dies_after_the_search_degrades_the_answer(database: str) -> None:
    policy = RetrievalPolicy(min_relevance=0.3)
    async with counted(database, max_hops=1, policy=policy) as (store, counting):
        await fill(store)
        counting.names.clear()
        counting.lives = 1
        recalled = await store.recall(USER, "lamp")
        assert recalled.degraded
        assert recalled.retrieval.activation.degraded
        assert "lamp" in {memory.record_id for memory in recalled.memories}
        counting.lives = 0
        with pytest.raises(MemoryUnavailable):
            await store.recall(USER, "lamp")


async def test_reads_need_no_right_to_write(database: str) -> None:
    async with MemoryStore.connect(database, embedder=HashingEmbedder()) as writer:
        await fill(writer)
    owner = await asyncpg.connect(database)
    try:
        await owner.execute("""
            DROP ROLE IF EXISTS symfonic_reader;
            CREATE ROLE symfonic_reader LOGIN;
            GRANT USAGE ON SCHEMA symfonic TO symfonic_reader;
            GRANT SELECT ON ALL TABLES IN SCHEMA symfonic TO symfonic_reader;
            GRANT EXECUTE ON ALL FUNCTIONS IN SCHEMA symfonic TO symfonic_reader;
            ALTER ROLE symfonic_reader SET default_transaction_read_only = on;
        """)
        before = await _written(owner)
        reader = database.replace("postgres@", "symfonic_reader@")
        async with MemoryStore.connect(
            reader, embedder=HashingEmbedder(), max_hops=1, recent_turns=2
        ) as store:
            query = MemoryQuery(SESSION, "lamp", context_ids=("mine",), where={})
            recalled = await store.recall(query)
            assert {memory.record_id for memory in recalled.memories} == {"lamp", "batch", "mine"}
            assert "vector" in recalled.retrieval.sources
            assert await store.explain(query, "lamp")
            assert len(await store.get(SESSION, ["lamp", "mine"])) == 2
            assert await store.count(SESSION) == 3
            assert len(await store.list(SESSION)) == 3
            assert await store.neighbours(SESSION, ["lamp"])
            assert await store.recent(SESSION, 5)
            with pytest.raises(MemoryUnavailable):
                await store.reinforce(SESSION, ["lamp"])
        await asyncio.sleep(0.1)
        assert await _written(owner) == before
    finally:
        await owner.execute("DROP OWNED BY symfonic_reader; DROP ROLE symfonic_reader")
        await owner.close()


async def _written(connection: asyncpg.Connection[asyncpg.Record]) -> Sequence[Any]:
    """Every row version of every table of the store."""
    tables = await connection.fetch(
        "SELECT tablename FROM pg_tables WHERE schemaname = 'symfonic' ORDER BY 1"
    )
    return [
        await connection.fetchval(f"SELECT array_agg((ctid, xmin, xmax)::text) FROM symfonic.{name}")
        for (name,) in tables
    ]


async def test_a_slow_recall_leaves_one_line_without_any_text(
    database: str, caplog: pytest.LogCaptureFixture
) -> None:
    async with MemoryStore.connect(database, slow_recall=0.0) as store:
        await fill(store)
        with caplog.at_level(logging.WARNING, logger="symfonic_pg"):
            await store.recall(SESSION, "secret lamp")
        (line,) = [record for record in caplog.records if "slow recall" in record.getMessage()]
        assert line.routes["lexical"] == 2  # type: ignore[attr-defined]
        assert "lamp" not in line.getMessage()


async def test_a_store_tells_what_it_saw_before_anybody_judges(database: str) -> None:
    async with MemoryStore.connect(database) as store:
        await fill(store)
        seen = await store.search(MemoryQuery(USER, "lamp"))
        assert {one.record.record_id for one in seen.found} == {"lamp", "batch", "mine"}
        assert seen.routes["lexical"] == 2
        only = await store.search(MemoryQuery(USER, "lamp"), ["episodic"])
        assert [one.record.record_id for one in only.found] == ["batch"]


async def test_explain_gives_numbers_for_what_was_left_out(database: str) -> None:
    async with MemoryStore.connect(database) as store:
        await fill(store)
        query = MemoryQuery(USER, "lamp", limit=1)
        returned = (await store.retrieve(query)).memories[0].record_id
        left_out = await store.explain(query, "batch")
        assert left_out is not None
        assert left_out.score is not None
        assert left_out.last_rank_score is not None
        assert left_out.score < left_out.last_rank_score
        assert "over limit 1" in str(left_out)
        assert (await store.explain(query, returned)).fate.returned  # type: ignore[union-attr]
        outside = await store.explain(MemoryQuery(ORG, "lamp"), "mine")
        assert outside is None
        assert await store.explain(MemoryQuery(ORG, "lamp"), "no such record") is None


async def test_explain_looks_at_what_no_route_fetched(database: str) -> None:
    async with MemoryStore.connect(database, fanout=1) as store:
        await store.remember(
            MemoryRecord(f"m{place}", USER, "semantic", f"lamp number {place}", place / 100)
            for place in range(30)
        )
        await store.remember(
            MemoryRecord("gone", USER, "semantic", "an old lamp", expires_at=datetime(2020, 1, 1, tzinfo=UTC))
        )
        query = MemoryQuery(USER, "lamp", limit=1)
        unfetched = await store.explain(query, "m3")
        assert unfetched is not None
        assert not unfetched.fetched
        assert unfetched.score is not None
        assert "no route" in str(unfetched)
        gone = await store.explain(query, "gone")
        assert gone is not None
        assert "expired" in str(gone)


class Failing(HashingEmbedder):
    """An embedder whose endpoint is down."""

    async def embed(self, texts: Sequence[str]) -> Any:
        raise OSError("connection refused")


async def test_a_failing_embedder_costs_the_vector_route_and_nothing_else(database: str) -> None:
    async with MemoryStore.connect(database, embedder=Failing()) as store:
        report = await store.remember(MemoryRecord("lamp", USER, "semantic", "a lamp"))
        assert (report.inserted, report.without_embedding) == (1, 1)
        result = await store.retrieve(USER, "lamp")
        assert [memory.record_id for memory in result.memories] == ["lamp"]
        assert result.unavailable == ("vector",)


async def test_a_bad_record_is_refused_before_it_costs_an_embedding(database: str) -> None:
    async with MemoryStore.connect(database, embedder=Failing()) as store:
        with pytest.raises(MemoryContractError, match=r"record 1 \('w'\)"):
            await store.remember(
                [MemoryRecord("ok", USER, "semantic", "x"), MemoryRecord("w", USER, "working", "turn")]
            )
        assert await store.count(USER) == 0


class Counted(HashingEmbedder):
    """An embedder that counts the texts it is given."""

    texts = 0

    async def embed(self, texts: Sequence[str]) -> Any:
        self.texts += len(texts)
        return await super().embed(texts)


async def test_what_is_embedded_already_costs_no_embedding(database: str) -> None:
    embedder = Counted()
    async with MemoryStore.connect(database, embedder=embedder) as store:
        records = [MemoryRecord(f"m{place}", USER, "semantic", f"lamp {place}") for place in range(5)]
        assert (await store.remember(records)).without_embedding == 0
        assert (await store.load([*records, MemoryRecord("new", USER, "semantic", "a shade")])).unchanged == 5
        assert embedder.texts == 6
        changed = MemoryRecord("m0", USER, "semantic", "another lamp")
        assert (await store.remember([changed, *records[1:]])).without_embedding == 0
        assert embedder.texts == 7


def test_settings_that_make_no_sense_are_refused_at_once() -> None:
    for wrong in (
        {"decay": 0.0},
        {"max_nodes": 0},
        {"recent_turns": -1},
        {"cosine_share": 2.0},
        {"fanout": 0},
    ):
        with pytest.raises(MemoryContractError):
            MemoryStore(_Unasked(), StoreSettings(**wrong))  # type: ignore[arg-type]


class _Unasked:
    """A repository that nothing is asked of."""


async def test_loads_of_the_same_records_at_once_all_succeed(database: str) -> None:
    async with MemoryStore.connect(database) as store:
        records = [MemoryRecord(f"m{place}", USER, "semantic", f"lamp {place}") for place in range(300)]
        reports = await asyncio.gather(*(store.load(records) for _ in range(6)))
        assert await store.count(USER) == 300
        assert [report.total for report in reports] == [300] * 6
        assert sum(report.inserted for report in reports) == 300


@pytest.mark.parametrize("meanwhile", ["move", "edit"])
async def test_a_vector_never_outlives_its_text_or_its_scope(database: str, meanwhile: str) -> None:
    elsewhere = ORG.child("user", "u2")
    record = MemoryRecord("m", USER, "semantic", "alpha")
    host = await asyncpg.connect(database)
    try:
        async with MemoryStore.connect(database) as store:
            await store.repository.register_model("m", 2)
            await store.remember(record)
            transaction = host.transaction()
            await transaction.start()
            if meanwhile == "move":
                await store.using(host).move(USER, ["m"], elsewhere)
            else:
                await store.using(host).remember(MemoryRecord("m", USER, "semantic", "beta"))
            writing = asyncio.create_task(store.remember([record], [[1.0, 0.0]], model="m"))
            await asyncio.sleep(0.3)
            assert not writing.done()
            await transaction.commit()
            if meanwhile == "move":
                with pytest.raises(MemoryContractError):
                    await writing
            else:
                assert (await writing).updated == 1
        stray = "e.content_hash <> m.content_hash OR e.scope_id <> m.scope_id"
        tables = "symfonic.embeddings AS e JOIN symfonic.memories AS m USING (tenant_id, memory_id)"
        assert await host.fetchval(f"SELECT count(*) FROM {tables} WHERE {stray}") == 0
    finally:
        await host.close()


async def test_explain_says_that_no_layer_was_searched(database: str) -> None:
    async with MemoryStore.connect(database) as store:
        await fill(store)
        explained = await store.explain(MemoryQuery(USER, "lamp", layers=["working"]), "lamp")
        assert explained is not None
        assert "no layer to search" in str(explained)
        with pytest.raises(MemoryContractError):
            await store.explain("org:acme", "lamp")  # type: ignore[arg-type]


async def test_uses_never_overflow_what_a_record_was_written_with(database: str) -> None:
    async with MemoryStore.connect(database) as store:
        await store.remember(MemoryRecord("m", USER, "semantic", "lamp", access_count=2**63 - 1))
        await store.reinforce(USER, ["m"])
        assert [one.access_count for one in await store.get(USER, ["m"])] == [2**63 - 1]
        assert (await store.retrieve(USER, "lamp")).memories[0].record.access_count == 2**63 - 1


async def test_a_model_that_is_gone_is_a_contract_error(database: str) -> None:
    owner = await asyncpg.connect(database)
    try:
        async with MemoryStore.connect(database) as store:
            await store.repository.register_model("m", 2)
            await owner.execute("DELETE FROM symfonic.models")
            record = MemoryRecord("r", USER, "semantic", "lamp")
            with pytest.raises(MemoryContractError, match="registered"):
                await store.remember([record], [[1.0, 0.0]], model="m")
            with pytest.raises(MemoryContractError, match="registered"):
                await store.load([(record, [1.0, 0.0])], model="m")
            assert await store.count(USER) == 0
    finally:
        await owner.close()


async def test_what_moved_out_of_sight_takes_no_place_among_the_edges(database: str) -> None:
    async with MemoryStore.connect(database) as store:
        seed, good = (MemoryRecord(name, USER, "semantic", name) for name in ("seed", "good"))
        hidden = [MemoryRecord(f"h{place:04}", USER, "semantic", "hidden") for place in range(1001)]
        await store.load([seed, good, *hidden])
        await store.associate(USER, [Association("seed", one) for one in hidden])
        await store.associate(USER, Association("seed", good, weight=0.5))
        await store.move(USER, [one.record_id for one in hidden], ORG.child("user", "u2"))
        assert [edge.target.record_id for edge in await store.neighbours(USER, ["seed"])] == ["good"]
        assert await store.repository.hops(USER, "seed", ["good"], 3) == {"good": 1}
        result = await store.retrieve(MemoryQuery(USER, "good", context_ids=["seed"]))
        assert result.completeness["graph"] == "exact"


@pytest.mark.parametrize("driver", ["asyncpg", "psycopg"])
async def test_texts_arrive_whatever_the_database_takes_for_its_clients_encoding(
    database: str, driver: str
) -> None:
    owner = await asyncpg.connect(database)
    name = await owner.fetchval("SELECT current_database()")
    await owner.execute(f"ALTER DATABASE {name} SET client_encoding = latin1")
    await owner.close()
    async with MemoryStore.connect(database, driver=driver) as store:
        await store.load([MemoryRecord("l", USER, "semantic", "caf\u00e9 \u65e5\u672c")])
        await store.remember(MemoryRecord("r", USER, "semantic", "\u65e5\u672c"))
        texts = {one.record_id: one.text for one in await store.list(USER)}
        assert texts == {"l": "caf\u00e9 \u65e5\u672c", "r": "\u65e5\u672c"}


class Hanging(HashingEmbedder):
    """An embedder that never answers."""

    async def embed(self, texts: Sequence[str]) -> Any:
        await asyncio.sleep(3600)


async def test_an_embedder_that_hangs_leaves_records_pending(database: str) -> None:
    async with MemoryStore.connect(database, embedder=Hanging(), embed_timeout=0.1) as store:
        record = MemoryRecord("lamp", USER, "semantic", "a lamp")
        assert (await store.remember(record)).without_embedding == 1
        assert (await store.load([MemoryRecord("shade", USER, "semantic", "a shade")])).without_embedding == 1


async def test_an_id_that_comes_to_lie_elsewhere_meanwhile_costs_no_transaction(database: str) -> None:
    first, second = await asyncpg.connect(database), await asyncpg.connect(database)
    try:
        async with MemoryStore.connect(database) as store:
            earlier, later = first.transaction(), second.transaction()
            await earlier.start()
            await later.start()
            await store.using(first).remember(MemoryRecord("m", USER, "semantic", "lamp"))
            elsewhere = ORG.child("user", "u2")
            records = [MemoryRecord(name, elsewhere, "semantic", "lamp") for name in ("new", "m")]
            writing = asyncio.create_task(store.using(second).remember(records))
            await asyncio.sleep(0.3)
            await earlier.commit()
            with pytest.raises(MemoryContractError, match=r"record 1 \('m'\)"):
                await writing
            assert await second.fetchval("SELECT 1") == 1
            await later.commit()
            assert await store.count(elsewhere) == 0
    finally:
        await first.close()
        await second.close()


async def test_new_languages_at_two_scopes_wait_for_each_other_in_one_order(database: str) -> None:
    scopes = [ORG.child("user", f"u{place}") for place in range(2)]
    async with MemoryStore.connect(database) as store:
        names = [f"m{place}" for place in range(40)]
        await store.remember(
            MemoryRecord(name, scopes[place % 2], "semantic", "lamp") for place, name in enumerate(names)
        )
        for language in ("german", "french", "spanish"):
            batches = [
                [
                    MemoryRecord(name, scopes[place % 2], "semantic", f"lamp {turn}", language=language)
                    for place, name in enumerate(names)
                    if place // 2 % 2 == turn
                ]
                for turn in range(2)
            ]
            reports = await asyncio.gather(*(store.remember(batch[::-1]) for batch in batches))
            assert sum(report.updated for report in reports) == 40


async def test_vectors_given_without_a_model_are_the_embedders(database: str) -> None:
    async with MemoryStore.connect(database, embedder=HashingEmbedder(dimension=2)) as store:
        record = MemoryRecord("lamp", USER, "semantic", "a lamp")
        assert (await store.remember([record], [[0.6, 0.8]])).without_embedding == 0
        query = MemoryQuery(USER, embedding=[0.6, 0.8])
        assert (await store.retrieve(query)).memories[0].signals.cue == pytest.approx(1.0, abs=1e-3)
