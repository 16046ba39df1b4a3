"""The in-memory twin and PostgreSQL give the same answers, whatever is stored and asked."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from uuid import uuid4

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from symfonic_pg.memory import (
    SIGNAL_NAMES,
    Candidate,
    CoordinatedRetrieval,
    MemoryScope,
    RetrievalCoordinator,
    RetrievalPolicy,
    SpreadingActivation,
)
from symfonic_pg.memory.observing import ObservingSource
from symfonic_pg.postgres.connecting import connected
from symfonic_pg.postgres.repository import MemoryRepository
from symfonic_pg.postgres.sources import PostgresCandidateSource
from symfonic_pg.testing import InMemoryCandidateSource, InMemoryRepository
from symfonic_pg.testing.strategies import DIMENSION, World, policies, world
from tests.conftest import create_database, drop_database

MODEL = "world-model"
NEAR = 1e-4


@pytest.fixture(scope="module")
def shared_database(server: str, template_database: str) -> Iterator[str]:
    """One database for all examples: each has a tenant of its own."""
    dsn = create_database(server, template_database)
    yield dsn
    drop_database(server, dsn)


@given(
    seed=st.integers(0, 2**32),
    sizes=st.lists(st.integers(0, 40), min_size=1, max_size=6),
    policy=policies(),
    max_hops=st.integers(0, 2),
)
@settings(
    max_examples=40,
    deadline=None,
    suppress_health_check=[HealthCheck.too_slow, HealthCheck.function_scoped_fixture],
)
def test_postgres_and_the_twin_agree(
    shared_database: str, seed: int, sizes: list[int], policy: RetrievalPolicy, max_hops: int
) -> None:
    drawn = world(MemoryScope.of(("org", uuid4().hex)), seed, sizes)
    asyncio.run(_agree(shared_database, drawn, policy, max_hops))


async def _agree(dsn: str, drawn: World, policy: RetrievalPolicy, max_hops: int) -> None:
    executor = connected(dsn, pool_max=1)
    try:
        real, twin = MemoryRepository(executor), InMemoryRepository()
        for repository in (real, twin):
            await repository.register_model(MODEL, DIMENSION)
            await drawn.write(repository, MODEL)
        ours = await _answer(PostgresCandidateSource(real, model=MODEL), drawn, policy, max_hops)
        theirs = await _answer(InMemoryCandidateSource(twin, model=MODEL), drawn, policy, max_hops)
    finally:
        await executor.close()
    _same_candidates(ours[0], theirs[0])
    _same_answer(ours[1], theirs[1])


async def _answer(
    source: ObservingSource, drawn: World, policy: RetrievalPolicy, max_hops: int
) -> tuple[list[Candidate], CoordinatedRetrieval]:
    candidates = await source.search(drawn.query, policy.effective_layers(drawn.query))
    activation = SpreadingActivation(source, max_hops) if max_hops else None
    coordinator = RetrievalCoordinator(source=source, policy=policy, activation=activation)
    return candidates, await coordinator.coordinate(drawn.query)


def _same_candidates(ours: list[Candidate], theirs: list[Candidate]) -> None:
    real = {one.record.record_id: one for one in ours}
    twin = {one.record.record_id: one for one in theirs}
    assert real.keys() == twin.keys()
    for record_id, one in real.items():
        other = twin[record_id]
        # Each clock counted its own uses.
        assert _told(one) == _told(other)
        for name in SIGNAL_NAMES:
            mine, its = getattr(one.signals, name), getattr(other.signals, name)
            assert (mine is None) == (its is None), (record_id, name, mine, its)
            assert mine is None or abs(mine - its) <= NEAR, (record_id, name, mine, its)


def _told(candidate: Candidate) -> dict[str, object]:
    record = candidate.record
    return {name: getattr(record, name) for name in record.__dataclass_fields__ if name not in _CLOCKED}


_CLOCKED = {"last_accessed_at", "created_at_given"}


def _same_answer(ours: CoordinatedRetrieval, theirs: CoordinatedRetrieval) -> None:
    assert ours.sources == theirs.sources
    assert ours.unavailable == theirs.unavailable
    mine, its = ours.memories, theirs.memories
    ranks = {memory.record_id: memory.rank_score for memory in its}
    for place, memory in enumerate(mine):
        same = place < len(its) and its[place].record_id == memory.record_id
        # Neighbours nearer than the numbers are sure may change places, also across the edge of the answer.
        near = ranks.get(memory.record_id, its[-1].rank_score if its else 0.0)
        assert same or abs(near - memory.rank_score) <= NEAR, (place, memory.record_id)
    # A score within that uncertainty of a floor, or a text at the edge of max_chars, may be in or out.
    assert abs(len(mine) - len(its)) <= 1
