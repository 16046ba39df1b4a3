"""The contract for pytest: load it by `-p symfonic_pg.testing.plugin` or by `pytest_plugins`.

A test that takes `behaviour` runs once for each behaviour of the contract. The repository is yours to make:

    @pytest.fixture
    async def repository():
        ...

    async def test_contract(behaviour, repository):
        await behaviour(repository)
"""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from symfonic_pg.testing.twin import InMemoryRepository

_CONTRACT = "symfonic_pg.testing.contract"

# Then an assertion that fails shows its values; too late for what is imported already.
if _CONTRACT not in sys.modules:
    pytest.register_assert_rewrite(_CONTRACT)


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    """Run a test that takes `behaviour` with each of them."""
    if "behaviour" in metafunc.fixturenames:
        from symfonic_pg.testing.contract import CONTRACT

        metafunc.parametrize("behaviour", CONTRACT, ids=str)


@pytest.fixture
def in_memory_repository() -> InMemoryRepository:
    """An empty repository in this process."""
    from symfonic_pg.testing.twin import InMemoryRepository

    return InMemoryRepository()
