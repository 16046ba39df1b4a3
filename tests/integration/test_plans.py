"""The hot statements stay on their indexes, and read no more than they should, whatever the statistics say.

The data is skewed on purpose: to the planner a tenant is a handful of rows, since nearly all are, and the one
that is asked is large. Custom and generic plans of the outer statement are both held to it; inside functions
all are generic.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Iterator
from pathlib import Path

import asyncpg
import pytest

from symfonic_pg.memory import RETRIEVABLE_LAYERS, MemoryLayer, MemoryQuery, MemoryRecord, MemoryScope
from symfonic_pg.memory.recall import Association
from symfonic_pg.postgres.dsn import for_asyncpg
from symfonic_pg.postgres.executors import executor_for
from symfonic_pg.postgres.executors.asyncpg import AsyncpgExecutor
from symfonic_pg.postgres.repository import MemoryRepository
from tests.conftest import create_database, drop_database
from tests.integration.plans import Node, Plans, scans, told

FILL = Path(__file__).with_name("plans_data.sql")
BIG = MemoryScope.parse("org:big")
USER = BIG.child("user", "u")
SESSION = USER.child("session", "s")
MODEL = "small"
TABLES = ("scopes", "memories", "postings", "embeddings", "usage", "associations", "turns")
# The memory with ten thousand edges in each direction.
HUB = "hub"
QUERY = MemoryQuery(SESSION, "common t7 u33", embedding=(0.1, 0.2, 0.3, 0.4, 0.5, 0.6, 0.7, 0.8))


@pytest.fixture(scope="module")
def filled(server: str, template_database: str) -> Iterator[str]:
    """A database of skewed data, indexed and analyzed; the tests only read it, or roll back."""
    dsn = create_database(server, template_database)
    asyncio.run(_fill(dsn))
    yield dsn
    drop_database(server, dsn)


async def _fill(dsn: str) -> None:
    connection = await asyncpg.connect(for_asyncpg(dsn))
    executor = AsyncpgExecutor.connect(dsn, timeout=120)
    try:
        repository = MemoryRepository(executor)
        await repository.register_model(MODEL, 8)
        await connection.execute(FILL.read_text(encoding="utf-8"))
        await repository.index_model(MODEL)
        for table in TABLES:
            await connection.execute(f"VACUUM (ANALYZE) symfonic.{table}")
    finally:
        await executor.close()
        await connection.close()


@pytest.fixture(params=["force_custom_plan", "force_generic_plan"])
async def watched(
    request: pytest.FixtureRequest, filled: str
) -> AsyncIterator[tuple[MemoryRepository, Plans]]:
    """A repository on one watched connection, in a transaction that is rolled back."""
    connection = await asyncpg.connect(for_asyncpg(filled))
    try:
        plans = await Plans.watching(connection, plan_cache_mode=request.param)
        transaction = connection.transaction()
        await transaction.start()
        yield MemoryRepository(executor_for(connection, timeout=60)), plans
        await transaction.rollback()
    finally:
        await connection.close()


Watched = tuple[MemoryRepository, Plans]


def assert_indexed(nodes: list[Node], **most: int) -> None:
    """No table is scanned as a whole, and of each named one no scan fetches more rows than that.

    What is counted in an index alone (Index Only Scan) is bounded elsewhere.
    """
    read = scans(nodes, *TABLES)
    whole = [node for node in read if node.kind in ("Seq Scan", "Bitmap Heap Scan")]
    assert not whole, told(whole)
    for table, rows in most.items():
        wide = [node for node in scans(read, table) if node.kind == "Index Scan" and node.rows > rows]
        assert not wide, told(wide)


def on_index(nodes: list[Node], index: str) -> list[Node]:
    """The scans of one index."""
    return [node for node in nodes if node.index == index]


async def test_search_fetches_its_candidates_by_key(watched: Watched) -> None:
    repository, plans = watched
    seen = await repository.search(QUERY, RETRIEVABLE_LAYERS, model=MODEL)
    nodes = await plans.of(lambda: repository.search(QUERY, RETRIEVABLE_LAYERS, model=MODEL))
    assert len(seen.found) > 300
    assert_indexed(
        nodes, scopes=2, memories=len(seen.found), embeddings=len(seen.found), postings=0, usage=20
    )
    counted = [node for node in scans(nodes, *TABLES) if node.kind == "Index Only Scan"]
    assert max(node.rows for node in counted) <= 60_000, told(counted)


async def test_a_few_vectors_are_fetched_by_a_plan_that_is_kept(watched: Watched) -> None:
    repository, plans = watched
    nodes = await plans.of(lambda: repository.search(QUERY, RETRIEVABLE_LAYERS, model=MODEL), times=2)
    fetched = [node for node in on_index(nodes, "embeddings_level") if node.kind == "Index Scan"]
    assert [(node.table, node.rows) for node in fetched] == [("embeddings", 400)]


async def test_levels_up_to_the_limit_are_compared_in_the_covering_index(watched: Watched) -> None:
    repository, plans = watched
    nodes = await plans.of(lambda: repository.search(QUERY, RETRIEVABLE_LAYERS, model=MODEL), times=2)
    exact = on_index(nodes, f"embeddings_level_{await number(repository)}")
    assert [(node.kind, node.rows) for node in exact] == [("Index Only Scan", 3000)]


async def test_larger_levels_are_asked_through_hnsw(watched: Watched) -> None:
    repository, plans = watched
    nodes = await plans.of(lambda: repository.search(QUERY, RETRIEVABLE_LAYERS, model=MODEL), times=2)
    [approximate] = on_index(nodes, f"embeddings_hnsw_{await number(repository)}")
    assert approximate.rows < 1000


async def test_a_layer_of_a_large_level_is_no_smaller_to_the_index(watched: Watched) -> None:
    repository, plans = watched
    layers = frozenset({MemoryLayer.PROSPECTIVE})
    nodes = await plans.of(lambda: repository.search(QUERY, layers, model=MODEL), times=2)
    # Postings know no layer: the memories of up to 3,000 are looked up for theirs, a level.
    assert_indexed(nodes, scopes=2, memories=3000, embeddings=1000, usage=20)
    exact = on_index(nodes, f"embeddings_level_{await number(repository)}")
    assert [node.kind for node in exact] == ["Index Only Scan"] * 2


@pytest.mark.parametrize("index", ["memories_recent", "memories_salient", "memories_profile"])
async def test_ordered_routes_merge_the_layers_and_stop(watched: Watched, index: str) -> None:
    repository, plans = watched
    nodes = await plans.of(lambda: repository.search(QUERY, RETRIEVABLE_LAYERS), times=2)
    assert sum(node.kind == "Merge Append" for node in nodes) == 9
    read = [node.rows for node in on_index(nodes, index) if node.kind == "Index Scan"]
    # Three levels, each up to fanout rows and one more that a layer was looked ahead for.
    assert sum(read) <= 3 * (50 + 4)


async def test_a_filter_that_nothing_passes_stops_at_the_scan_limit(watched: Watched) -> None:
    repository, plans = watched
    nobody = MemoryQuery(SESSION, "t7", where={"never": True})
    nodes = await plans.of(lambda: repository.search(nobody, RETRIEVABLE_LAYERS), times=2)
    assert_indexed(nodes, memories=5000)


async def test_a_walk_from_a_hub_follows_no_more_edges_than_its_limit(watched: Watched) -> None:
    repository, plans = watched
    query = MemoryQuery(SESSION, context_ids=(HUB,))
    nodes = await plans.of(lambda: repository.search(query, RETRIEVABLE_LAYERS), times=2)
    # The hub's strongest thousand, the edge of each of those back to it, and the hub's again: three hops.
    assert_indexed(nodes, scopes=2, memories=8000, associations=8000)


async def test_neighbours_of_a_hub(watched: Watched) -> None:
    repository, plans = watched
    nodes = await plans.of(lambda: repository.neighbours(SESSION, [HUB, "m7"]), times=2)
    assert_indexed(nodes, scopes=2, memories=1002, associations=1002, usage=20)


async def test_recent_turns_of_a_long_conversation(watched: Watched) -> None:
    repository, plans = watched
    nodes = await plans.of(lambda: repository.recent(SESSION, 20), times=2)
    assert_indexed(nodes, scopes=3, turns=20)


async def test_records_by_id(watched: Watched) -> None:
    repository, plans = watched
    ids = [f"m{number}" for number in range(1, 101)]
    for run in (
        lambda: repository.get(SESSION, ids),
        lambda: repository.observe(QUERY, ids, model=MODEL),
        lambda: repository.reinforce(SESSION, ids),
        lambda: repository.forget(USER, ids),
        lambda: repository.hops(SESSION, "m7", ids, 1),
    ):
        nodes = await plans.of(run, times=2)
        assert_indexed(nodes, scopes=3, memories=200, embeddings=100, associations=1000, usage=100)


async def test_a_page_of_a_large_lineage(watched: Watched) -> None:
    repository, plans = watched
    nodes = await plans.of(lambda: repository.list(SESSION, limit=20), times=2)
    # Of each level and layer a page, then the page itself.
    assert_indexed(nodes, scopes=3, memories=3 * 4 * 20, usage=20)


async def test_writes_touch_what_they_write(watched: Watched) -> None:
    repository, plans = watched
    records = [MemoryRecord(f"new{number}", SESSION, "semantic", f"t7 u{number}") for number in range(50)]
    changed = [MemoryRecord(one.record_id, SESSION, "semantic", one.text + " more") for one in records]
    edges = [Association("new1", one) for one in records[2:]]
    await repository.remember(records, [QUERY.embedding] * 50, model=MODEL)
    for run in (
        lambda: repository.remember(changed, [QUERY.embedding] * 50, model=MODEL),
        lambda: repository.associate(SESSION, edges),
        lambda: repository.move(SESSION, ["new1", "new2"], USER),
    ):
        nodes = await plans.of(run)
        assert_indexed(nodes, scopes=200, memories=200, embeddings=200, postings=500, associations=200)


async def test_no_table_is_read_as_a_whole_on_any_server(filled: str) -> None:
    """What the statistics collector counts, which needs no auto_explain."""
    connection = await asyncpg.connect(for_asyncpg(filled))
    repository = MemoryRepository(executor_for(connection, timeout=60))
    try:
        for _ in range(2):
            async with connection.transaction():
                seen = await repository.search(QUERY, RETRIEVABLE_LAYERS, model=MODEL)
                read = {
                    row["relname"]: (row["seq_tup_read"], row["idx_tup_fetch"])
                    for row in await connection.fetch(
                        "SELECT relname, seq_tup_read, idx_tup_fetch FROM pg_stat_xact_user_tables"
                    )
                }
            assert all(read[table][0] == 0 for table in TABLES if table in read), read
            # Far fewer than the 19,400 that are visible.
            assert len(seen.found) < read["memories"][1] < 8000, read
    finally:
        await connection.close()


async def number(repository: MemoryRepository) -> int:
    """The number of the model."""
    model = await repository.model(MODEL)
    assert model is not None
    return model.number
