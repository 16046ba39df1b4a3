"""What calls leave in a session that another client will get next: nothing."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import psycopg
import pytest

from symfonic_pg.memory import (
    Association,
    ConversationTurn,
    MemoryContractError,
    MemoryLayer,
    MemoryQuery,
    MemoryRecord,
    MemoryScope,
)
from symfonic_pg.postgres.repository import MemoryRepository
from symfonic_pg.postgres.statements import Statement, load_statement
from tests.conftest import database_name, temporary_home, with_database
from tests.integration.executor_kinds import Pooled
from tests.poolers.kinds import ENGINES, OWN, POOLS, TOLD
from tests.poolers.pgbouncer import pooled

ORG = MemoryScope.parse("org:acme")
USER = ORG.child("user", "u1")
MODEL = "four dimensions"
# More than the exact scan of a level takes: the answer comes from the HNSW index and its settings.
LARGE = 15_100

FILL = f"""
    INSERT INTO symfonic.memories (tenant_id, scope_id, layer, record_id, text, created_at, updated_at,
                                   content_hash, terms, term_counts, term_total)
    SELECT s.tenant_id, s.scope_id, 'semantic', 'filler-' || n, 'filler', now(), now(),
           sha256('filler'), '{{}}', '{{}}', 0
      FROM symfonic.scopes AS s, generate_series(1, {LARGE}) AS n WHERE s.level_id = 'acme';
    INSERT INTO symfonic.embeddings (tenant_id, memory_id, model_id, scope_id, layer, embedding, content_hash)
    SELECT m.tenant_id, m.memory_id, d.model_id, m.scope_id, m.layer,
           format('[1,%s,%s,0]', random(), random())::halfvec, m.content_hash
      FROM symfonic.memories AS m, symfonic.models AS d WHERE m.text = 'filler';
"""
# Settings that differ from what the session began with, statements, cursors, locks, tables and channels.
STATE = """
    SELECT 'backend' AS kind, pg_backend_pid()::text AS name, '' AS value
    UNION ALL SELECT 'setting', s.name, s.setting FROM pg_settings AS s WHERE s.source = 'session'
    UNION ALL SELECT 'statement', p.name, p.statement FROM pg_prepared_statements AS p
    UNION ALL SELECT 'cursor', c.name, c.statement FROM pg_cursors AS c WHERE c.name <> ''
    UNION ALL SELECT 'lock', l.locktype, l.mode FROM pg_locks AS l
               WHERE l.pid = pg_backend_pid() AND l.locktype IN ('advisory', 'object')
    UNION ALL SELECT 'table', t.relname, '' FROM pg_class AS t WHERE t.relpersistence = 't'
    UNION ALL SELECT 'channel', channel, '' FROM pg_listening_channels() AS channel
    ORDER BY 1, 2
"""


@pytest.fixture(scope="module")
def one_session(server: str) -> Iterator[str]:
    """A PgBouncer whose clients all share one server connection."""
    with temporary_home() as home, pooled(server, home, default_pool_size=1) as dsn:
        yield dsn


def asked(dsn: str, statement: str) -> list[tuple[Any, ...]]:
    with psycopg.connect(dsn, autocommit=True, prepare_threshold=None) as connection:
        return connection.execute(statement).fetchall()


def run(dsn: str, *statements: str) -> None:
    with psycopg.connect(dsn, autocommit=True) as connection:
        for statement in statements:
            connection.execute(statement)


async def enlarge(dsn: str, repository: MemoryRepository) -> None:
    """A level that only the index can answer for."""
    model = await repository.register_model(MODEL, 4)
    await repository.remember([MemoryRecord("lamp", ORG, "semantic", "a lamp")], [[1, 0, 0, 0]], model=MODEL)
    index = load_statement("index_model_hnsw", vectors="public", dimension=4, model=model.number)
    run(dsn, FILL, index.text, "ANALYZE symfonic.embeddings")


async def everything(repository: MemoryRepository) -> None:
    """Each verb once, the failing ones included."""
    record = MemoryRecord("mine", USER, "semantic", "Ana owns a lamp", metadata={"room": 4})
    await repository.remember([record], [[0.5, 1, 0, 0]], model=MODEL)
    await repository.load([(MemoryRecord("loaded", USER, "episodic", "it broke"), [0, 1, 0, 0])], model=MODEL)
    await repository.associate(USER, [Association("mine", MemoryRecord("lamp", ORG, "semantic", "a lamp"))])
    await repository.append_turns(USER, [ConversationTurn("t1", "ana", "hello", 1)])
    await repository.reinforce(USER, ["mine", "lamp"])
    query = MemoryQuery(USER, "lamp", embedding=[1, 0, 0, 0], context_ids=["mine"])
    seen = await repository.search(query, frozenset(MemoryLayer), model=MODEL)
    assert seen.completeness["vector"] == "approximate"
    await repository.observe(query, ["lamp"], model=MODEL)
    await repository.neighbours(USER, ["mine"])
    await repository.hops(USER, "mine", ["lamp"], 3)
    await repository.recent(USER, 5)
    await repository.list(USER, where={"room": 4})
    assert await repository.count(USER) == LARGE + 3
    elsewhere = MemoryRecord("lamp", USER, "semantic", "a lamp of another level")
    with pytest.raises(MemoryContractError):
        await repository.load([elsewhere])
    await repository.dissociate(USER, [Association("mine", MemoryRecord("lamp", ORG, "semantic", "x"))])
    await repository.move(USER, ["loaded"], ORG)
    await repository.forget(ORG, ["loaded"])
    assert await repository.erase(USER) == 1


async def test_a_shared_session_is_left_as_it_was(database: str, one_session: str) -> None:
    shared = with_database(one_session, database_name(database))
    before = None
    for kind in (*OWN, *TOLD, *POOLS, *ENGINES):
        async with kind.open(shared) as executor:
            repository = MemoryRepository(executor)
            if before is None:
                await enlarge(database, repository)
                before = asked(shared, STATE)
            await everything(repository)
        after = asked(shared, STATE)
        # An asyncpg pool resets every session that it gets back: there may be less than before, never more.
        assert set(after) <= set(before), kind
        assert after[0] == before[0], "another session was asked"


async def test_a_setting_that_is_left_behind_would_be_seen(database: str, one_session: str) -> None:
    shared = with_database(one_session, database_name(database))
    before = asked(shared, STATE)
    run(shared, "SET enable_seqscan = off")
    assert asked(shared, STATE) == [*before, ("setting", "enable_seqscan", "off")]


@pytest.mark.parametrize("kind", OWN, ids=str)
async def test_calls_that_follow_each_other_meet_different_sessions(
    pooled_database: str, kind: Pooled
) -> None:
    backend = Statement("backend", "SELECT pg_backend_pid()")
    async with kind.open(pooled_database, size=1) as executor:
        backends = [(await executor.fetch(backend))[0][0] for _ in range(12)]
    assert len(set(backends)) > 1, "every call met the same session: the contract proved nothing"
