"""Embedding what stands as pending: everything without a current vector, once, by any number of workers."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from datetime import timedelta

import asyncpg
import pytest
from sqlalchemy.ext.asyncio import AsyncSession, create_async_engine

from symfonic_pg.embedders import HashingEmbedder
from symfonic_pg.memory import MemoryContractError, MemoryRecord
from symfonic_pg.postgres.migrations import migrate
from symfonic_pg.store import EmbedReport, MemoryStore, PendingCounts
from tests.integration.pending import Embedder, leases, records, stale, value


@pytest.fixture
async def plain(database: str) -> AsyncIterator[MemoryStore]:
    """A store that writes without embedding."""
    async with MemoryStore.connect(database) as store:
        yield store


@pytest.fixture
def embedder() -> Embedder:
    return Embedder()


@pytest.fixture
async def store(database: str, embedder: Embedder) -> AsyncIterator[MemoryStore]:
    """A store on the same database that embeds."""
    async with MemoryStore.connect(database, embedder=embedder) as store:
        yield store


@pytest.mark.parametrize("driver", ["asyncpg", "psycopg"])
async def test_what_was_written_without_a_vector_gets_one(
    database: str, plain: MemoryStore, embedder: Embedder, driver: str
) -> None:
    given = [
        MemoryRecord("deep", "org:a%2Fb/user:u%3A1", "episodic", "a deep memory"),
        *records(5),
    ]
    await plain.remember(given)
    async with MemoryStore.connect(database, embedder=embedder, driver=driver) as store:
        report = await store.embed_pending()
        assert report == EmbedReport(embedded=6, remaining=0)
        assert sorted(embedder.asked) == sorted(record.text for record in given)
        found = await store.recall("org:a%2Fb/user:u%3A1", "deep")
        assert found.retrieval.sources["vector"] == 1
        assert await store.embed_pending() == EmbedReport(remaining=0)
    assert len(embedder.batches) == 2  # one for the memories, one for the cue
    assert await leases(database) == 0


async def test_the_vector_is_the_one_that_remember_would_have_written(
    database: str, plain: MemoryStore, store: MemoryStore
) -> None:
    await plain.remember(records(1, "org:left"))
    await store.embed_pending()
    await store.remember(records(1, "org:right"))
    kinds = "SELECT count(DISTINCT (embedding::text, content_hash, text_version)) FROM symfonic.embeddings"
    assert await value(database, kinds) == 1


async def test_the_hook_sees_the_record_as_it_was_written(database: str, plain: MemoryStore) -> None:
    record = MemoryRecord(
        "r", "org:acme/user:u1", "episodic", "said", 0.5, "note",
        access_count=3, language="german", metadata={"speaker": "Ana", "n": [1, None]},
    )  # fmt: skip
    await plain.remember(record)
    seen: list[MemoryRecord] = []

    class Hook:
        version = "seen"

        def __call__(self, record: MemoryRecord) -> str:
            seen.append(record)
            return record.text

    async with MemoryStore.connect(database, embedder=Embedder(), embed_text=Hook()) as store:
        await store.embed_pending()
    assert seen == [record]


async def test_a_changed_text_is_pending_again(
    plain: MemoryStore, store: MemoryStore, embedder: Embedder
) -> None:
    await store.remember(records(3))
    assert await store.count_pending() == PendingCounts()
    await plain.remember(MemoryRecord("r1", "org:acme", "semantic", "another text"))
    assert await store.count_pending() == PendingCounts(waiting=1)
    embedder.batches.clear()
    assert await store.embed_pending() == EmbedReport(embedded=1, remaining=0)
    assert embedder.asked == ["another text"]


async def test_a_change_of_metadata_alone_is_not(plain: MemoryStore, store: MemoryStore) -> None:
    await store.remember(records(1))
    await plain.remember(MemoryRecord("r0", "org:acme", "semantic", "text r0", metadata={"n": 1}))
    assert await store.count_pending() == PendingCounts()


async def test_a_vector_of_another_text_is_stale_however_it_came_there(
    database: str, store: MemoryStore
) -> None:
    await store.remember(records(2))
    # As a restored dump or a replica without triggers may have it.
    await value(database, "UPDATE symfonic.embeddings SET content_hash = '\\x00' WHERE memory_id = 1")
    assert await store.embed_pending() == EmbedReport(embedded=1, remaining=0)
    assert await stale(database) == 0


async def test_another_version_of_the_hook_makes_every_vector_stale(
    database: str, store: MemoryStore
) -> None:
    await store.remember(records(70))

    class Louder:
        version = "loud-1"

        def __call__(self, record: MemoryRecord) -> str:
            return record.text.upper()

    embedder = Embedder()
    async with MemoryStore.connect(database, embedder=embedder, embed_text=Louder()) as louder:
        assert await louder.count_pending() == PendingCounts(waiting=70)
        assert await louder.embed_pending() == EmbedReport(embedded=70, remaining=0)
        assert await louder.count_pending() == PendingCounts()
    assert set(embedder.asked) == {record.text.upper() for record in records(70)}
    versions = "SELECT string_agg(DISTINCT text_version, ',') FROM symfonic.embeddings"
    assert await value(database, versions) == "loud-1"
    assert await value(database, "SELECT count(*) FROM symfonic.embeddings") == 70


async def test_each_model_has_vectors_of_its_own(database: str, store: MemoryStore) -> None:
    await store.remember(records(3))
    async with MemoryStore.connect(database, embedder=HashingEmbedder(64)) as other:
        assert await other.count_pending() == PendingCounts(waiting=3)
        assert (await other.embed_pending()).embedded == 3
    assert await store.count_pending() == PendingCounts()
    assert await value(database, "SELECT count(*) FROM symfonic.embeddings") == 6


async def test_counting_writes_nothing(database: str, plain: MemoryStore, store: MemoryStore) -> None:
    await plain.remember(records(3))
    assert await store.count_pending() == PendingCounts(waiting=3)
    assert await store.failed_embeddings() == []
    assert await store.retry_embeddings() == 0
    assert await value(database, "SELECT count(*) FROM symfonic.models") == 0


async def test_batches_and_limit(plain: MemoryStore, store: MemoryStore, embedder: Embedder) -> None:
    await plain.remember(records(25))
    told: list[EmbedReport] = []
    report = await store.embed_pending(limit=12, batch_size=5, on_batch=told.append)
    assert report == EmbedReport(embedded=12, remaining=13)
    assert [len(batch) for batch in embedder.batches] == [5, 5, 2]
    assert told == [EmbedReport(embedded=5), EmbedReport(embedded=5), EmbedReport(embedded=2)]
    assert await store.embed_pending(limit=0) == EmbedReport(remaining=13)
    assert await store.embed_pending(batch_size=5) == EmbedReport(embedded=13, remaining=0)
    assert len(set(embedder.asked)) == len(embedder.asked) == 25


async def test_a_scope_limits_it_to_what_lies_there_and_below(
    plain: MemoryStore, store: MemoryStore, embedder: Embedder
) -> None:
    places = ["org:acme", "org:acme/user:u1", "org:acme/user:u1/session:s", "org:acme/user:u2", "org:acme-2"]
    for number, place in enumerate(places):
        await plain.remember(records(2, place, f"{number}-"))
    assert await store.count_pending("org:acme/user:u1") == PendingCounts(waiting=4)
    report = await store.embed_pending(scope="org:acme/user:u1")
    assert report == EmbedReport(embedded=4, remaining=0)
    assert sorted(embedder.asked) == [f"text {place}-{number}" for place in (1, 2) for number in (0, 1)]
    assert await store.embed_pending(scope="org:nobody") == EmbedReport(remaining=0)
    assert await store.count_pending() == PendingCounts(waiting=6)
    assert await store.embed_pending(scope="org:acme") == EmbedReport(embedded=4, remaining=0)
    assert await store.embed_pending() == EmbedReport(embedded=2, remaining=0)


async def test_a_text_without_an_embedding_is_asked_for_once(
    database: str, plain: MemoryStore, store: MemoryStore, embedder: Embedder
) -> None:
    embedder.nothing = {"text r0": 0.0, "text r1": float("nan"), "text r2": float("inf")}
    await plain.remember(records(4))
    report = await store.embed_pending()
    assert report == EmbedReport(embedded=1, without_embedding=3, remaining=0)
    assert await store.embed_pending() == EmbedReport(remaining=0)
    assert len(embedder.asked) == 4
    assert await store.count_pending() == PendingCounts(empty=3)
    assert await store.failed_embeddings() == []
    found = await store.failed_embeddings(without_embedding=True)
    assert [(one.record_id, one.reason, one.error) for one in found] == [
        (f"r{number}", "empty", None) for number in range(3)
    ]
    # Asked again when its text is another, or on request.
    await plain.remember(MemoryRecord("r0", "org:acme", "semantic", "words"))
    assert await store.embed_pending() == EmbedReport(embedded=1, remaining=0)
    assert await store.retry_embeddings(record_ids=["r1", "nobody"]) == 1
    assert await store.embed_pending() == EmbedReport(without_embedding=1, remaining=0)


async def test_a_text_that_has_no_embedding_any_more_loses_its_vector(
    database: str, store: MemoryStore
) -> None:
    await store.remember(records(1))
    embedder = Embedder()
    embedder.nothing = {"text r0": 0.0}

    class Hook:
        version = "2"

        def __call__(self, record: MemoryRecord) -> str:
            return record.text

    async with MemoryStore.connect(database, embedder=embedder, embed_text=Hook()) as other:
        assert await other.embed_pending() == EmbedReport(without_embedding=1, remaining=0)
    assert await value(database, "SELECT count(*) FROM symfonic.embeddings") == 0


async def test_a_rolled_back_transaction_leaves_no_work_behind(
    database: str, store: MemoryStore, plain: MemoryStore, embedder: Embedder
) -> None:
    engine = create_async_engine(database.replace("postgresql://", "postgresql+asyncpg://"))
    async with AsyncSession(engine) as session:
        report = await plain.using(session).remember(records(3))
        assert report.without_embedding == 3
        # Not yet anybody else's business.
        assert await store.embed_pending() == EmbedReport(remaining=0)
        await session.rollback()
    assert await store.embed_pending() == EmbedReport(remaining=0)
    assert await leases(database) == 0
    assert embedder.batches == []

    async with AsyncSession(engine) as session:
        await plain.using(session).remember(records(3))
        found = await plain.using(session).recall("org:acme", "text r1")
        assert found.retrieval.memories[0].record.record_id == "r1"
        await session.commit()
    assert await store.embed_pending() == EmbedReport(embedded=3, remaining=0)
    await engine.dispose()


async def test_it_does_not_run_inside_a_callers_transaction(database: str, store: MemoryStore) -> None:
    connection = await asyncpg.connect(database)
    with pytest.raises(MemoryContractError, match="locks"):
        await store.using(connection).embed_pending()
    await connection.close()


async def test_a_store_without_an_embedder_says_so(plain: MemoryStore) -> None:
    with pytest.raises(MemoryContractError, match="no embedder"):
        await plain.embed_pending()


async def test_nothing_is_held_while_the_model_runs(
    database: str, plain: MemoryStore, store: MemoryStore, embedder: Embedder
) -> None:
    await plain.remember(records(3))
    seen: list[tuple[int, int]] = []

    async def look(texts: object) -> None:
        # Other sessions of this database that are in a transaction, and what is locked of ours.
        others = "FROM pg_stat_activity WHERE datname = current_database() AND pid <> pg_backend_pid()"
        open_ones = await value(database, f"SELECT count(*) {others} AND xact_start IS NOT NULL")
        locks = await value(
            database,
            "SELECT count(*) FROM pg_locks l JOIN pg_class c ON c.oid = l.relation"
            " WHERE c.relnamespace = 'symfonic'::regnamespace AND l.pid <> pg_backend_pid()",
        )
        seen.append((open_ones, locks))

    embedder.meanwhile = look
    await store.embed_pending()
    assert seen == [(0, 0)]


async def test_a_text_that_changes_meanwhile_is_not_written(
    database: str, plain: MemoryStore, store: MemoryStore, embedder: Embedder
) -> None:
    await plain.remember(records(4))

    async def change(texts: object) -> None:
        embedder.meanwhile = None
        await plain.remember(MemoryRecord("r1", "org:acme", "semantic", "changed"))
        await plain.forget("org:acme", ["r2"])

    embedder.meanwhile = change
    assert await store.embed_pending() == EmbedReport(embedded=2, changed=2, remaining=1)
    assert await leases(database) == 0
    assert await stale(database) == 0
    assert await store.embed_pending() == EmbedReport(embedded=1, remaining=0)
    assert embedder.asked[-1] == "changed"


async def test_a_memory_that_moves_meanwhile_keeps_its_vector_in_step(
    database: str, plain: MemoryStore, store: MemoryStore, embedder: Embedder
) -> None:
    await plain.remember(records(1))

    async def move(texts: object) -> None:
        await plain.move("org:acme", ["r0"], "org:acme/user:u1")

    embedder.meanwhile = move
    assert await store.embed_pending() == EmbedReport(embedded=1, remaining=0)
    embedder.meanwhile = None
    found = await store.recall("org:acme/user:u1", "text")
    assert found.retrieval.sources["vector"] == 1


@pytest.mark.parametrize("end", ["commit", "rollback"])
async def test_a_writer_in_the_middle_of_a_change_is_not_waited_for(
    database: str, plain: MemoryStore, store: MemoryStore, embedder: Embedder, end: str
) -> None:
    await plain.remember(records(2))
    writer = await asyncpg.connect(database)
    transaction = writer.transaction()

    async def begin_change(texts: object) -> None:
        embedder.meanwhile = None
        await transaction.start()
        await plain.using(writer).remember(MemoryRecord("r0", "org:acme", "semantic", "changed"))

    embedder.meanwhile = begin_change
    report = await asyncio.wait_for(store.embed_pending(), 5)
    assert report == EmbedReport(embedded=1, changed=1, remaining=1)
    await getattr(transaction, end)()
    await writer.close()
    assert await store.embed_pending() == EmbedReport(embedded=1, remaining=0)
    assert embedder.asked[-1] == ("changed" if end == "commit" else "text r0")
    assert await stale(database) == 0


async def test_a_vector_that_came_meanwhile_stays_one(
    database: str, plain: MemoryStore, store: MemoryStore, embedder: Embedder
) -> None:
    await plain.remember(records(1))

    async def remember(texts: object) -> None:
        embedder.meanwhile = None
        await store.remember(records(1))

    embedder.meanwhile = remember
    assert await store.embed_pending() == EmbedReport(embedded=1, remaining=0)
    assert await value(database, "SELECT count(*) FROM symfonic.embeddings") == 1
    assert await leases(database) == 0


async def test_another_schema_has_its_own(database: str, embedder: Embedder, store: MemoryStore) -> None:
    await asyncio.to_thread(migrate, database, schema="second")
    async with (
        MemoryStore.connect(database, schema="second") as plain,
        MemoryStore.connect(database, schema="second", embedder=embedder) as second,
    ):
        await plain.remember(records(2))
        assert await store.embed_pending() == EmbedReport(remaining=0)
        assert await second.embed_pending() == EmbedReport(embedded=2, remaining=0)


async def test_finding_few_among_many_reads_two_indexes_and_no_table(
    database: str, store: MemoryStore, embedder: Embedder
) -> None:
    many = 20_000
    await store.remember(records(1))
    connection = await asyncpg.connect(database)
    await connection.execute("SET session_replication_role = replica")
    await connection.execute(
        f"""
        INSERT INTO symfonic.memories (tenant_id, memory_id, scope_id, layer, record_id, text, created_at,
                                       updated_at, content_hash, terms, term_counts, term_total)
        SELECT tenant_id, 10 + n, scope_id, layer, 'm' || n, 'text ' || n, now(), now(),
               sha256(convert_to('text ' || n, 'UTF8')), '{{}}', '{{}}', 0
          FROM symfonic.memories, generate_series(1, {many}) AS n;
        INSERT INTO symfonic.embeddings (tenant_id, memory_id, model_id, scope_id, layer, embedding,
                                         content_hash)
        SELECT m.tenant_id, m.memory_id, e.model_id, m.scope_id, m.layer, e.embedding, m.content_hash
          FROM symfonic.embeddings AS e, symfonic.memories AS m
         WHERE m.memory_id > 10 AND m.memory_id % 6000 <> 0;
        """
    )
    await connection.execute("VACUUM (ANALYZE) symfonic.memories, symfonic.embeddings")
    await connection.execute("SET enable_seqscan = off; SET enable_bitmapscan = off")
    plan = await connection.fetch(
        "EXPLAIN (COSTS OFF)"
        " SELECT * FROM symfonic.unembedded(NULL, 1::smallint, '', 'org:acme', 5000, 'org:acme', 15000)"
    )
    scans = sorted(
        row[0].strip(" ->") for row in plan if "Scan" in row[0] and "Subquery Scan" not in row[0]
    )
    assert scans == [
        "Index Only Scan using embeddings_pkey on embeddings e",
        "Index Only Scan using memories_pkey on memories m",
    ], plan
    await connection.close()

    embedder.batches.clear()
    claims = 0
    fetch = store.repository.executor.fetch

    async def counted(statement: object) -> object:
        nonlocal claims
        claims += getattr(statement, "name", "") == "claim_pending"
        return await fetch(statement)  # type: ignore[arg-type]

    store.repository.executor.fetch = counted  # type: ignore[method-assign,assignment]
    assert (await store.embed_pending()).embedded == 3
    # One call found them, wherever they lie; it ends at the window that holds the first.
    assert claims <= 4


async def test_a_lease_is_refused_where_no_clock_could_keep_it(store: MemoryStore) -> None:
    with pytest.raises(MemoryContractError, match="lease"):
        await store.embed_pending(lease=timedelta(0))
