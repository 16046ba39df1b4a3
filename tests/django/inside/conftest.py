"""Django, set up, and migrated by its own command."""

from __future__ import annotations

from collections.abc import Iterator

import django
import pytest
from django.core.management import call_command
from django.db import connections
from django.test.utils import override_settings

from symfonic_pg.contrib.django import DjangoMemoryStore, memory_store


def pytest_configure() -> None:
    django.setup()


@pytest.fixture(scope="session", autouse=True)
def _migrated() -> Iterator[None]:
    for alias in connections:
        call_command("migrate", database=alias, verbosity=0)
    yield
    connections.close_all()


@pytest.fixture
def store() -> Iterator[DjangoMemoryStore]:
    """The store of the default database, emptied afterwards."""
    store = memory_store()
    yield store
    store.erase("org:acme")


@pytest.fixture
def settings_elsewhere() -> Iterator[None]:
    """The store's database is another than the default one."""
    with override_settings(SYMFONIC_PG_DATABASE="memories"):
        yield
