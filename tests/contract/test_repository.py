"""Every repository behaves the same."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from symfonic_pg.testing import Behaviour, ContractRepository
    from symfonic_pg.testing.contract.base import Another


async def test_a_repository_keeps_the_contract(
    behaviour: Behaviour, repository: ContractRepository, another: Another | None
) -> None:
    await behaviour(repository, another)
