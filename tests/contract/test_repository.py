"""Every repository behaves the same."""

from __future__ import annotations

import pytest

from symfonic_pg.testing import CONTRACT, Behaviour, ContractRepository
from symfonic_pg.testing.contract.base import Another


@pytest.mark.parametrize("behaviour", CONTRACT, ids=str)
async def test_a_repository_keeps_the_contract(
    behaviour: Behaviour, repository: ContractRepository, another: Another
) -> None:
    await behaviour(repository, another)
