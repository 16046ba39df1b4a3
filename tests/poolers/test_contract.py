"""The whole contract through PgBouncer in transaction mode, without prepared statements."""

from __future__ import annotations

from collections.abc import AsyncIterator

import pytest

from symfonic_pg.postgres.repository import MemoryRepository
from symfonic_pg.testing import CONTRACT, Behaviour, ContractRepository
from symfonic_pg.testing.contract.base import Another
from tests.poolers.kinds import ENGINES, OWN

KINDS = {kind.name: kind for kind in (*OWN, *ENGINES)}


@pytest.fixture(params=KINDS)
async def repository(request: pytest.FixtureRequest, shared_database: str) -> AsyncIterator[MemoryRepository]:
    async with KINDS[request.param].open(shared_database) as executor:
        yield MemoryRepository(executor)


@pytest.fixture
def another(repository: MemoryRepository) -> Another:
    async def make() -> ContractRepository:
        return MemoryRepository(repository.executor)

    return make


@pytest.mark.parametrize("behaviour", CONTRACT, ids=str)
async def test_a_repository_behind_a_pooler_keeps_the_contract(
    behaviour: Behaviour, repository: MemoryRepository, another: Another
) -> None:
    await behaviour(repository, another)
