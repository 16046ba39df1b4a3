"""The repositories that the contract is run on."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from symfonic_pg.testing.plugin import pytest_generate_tests

if TYPE_CHECKING:
    from symfonic_pg.testing import ContractRepository
    from symfonic_pg.testing.contract.base import Another

    Backend = tuple[ContractRepository, Another | None]

__all__ = ["pytest_generate_tests"]

# For each kind the fixture that gives a repository, whose store language is `english`, and what makes one more
# on the same storage. The behaviours make up their own tenants: one database serves them all.
BACKENDS = {"memory": "in_memory"}


@pytest.fixture
def in_memory() -> Backend:
    """The twin; it shares its storage with nobody."""
    from symfonic_pg.testing import InMemoryRepository

    return InMemoryRepository(), None


@pytest.fixture(params=list(BACKENDS.values()), ids=list(BACKENDS))
def backend(request: pytest.FixtureRequest) -> Backend:
    """Each kind in turn."""
    chosen: Backend = request.getfixturevalue(request.param)
    return chosen


@pytest.fixture
def repository(backend: Backend) -> ContractRepository:
    """The repository under test."""
    return backend[0]


@pytest.fixture
def another(backend: Backend) -> Another | None:
    """What makes one more repository on the same storage, where that can be."""
    return backend[1]
