"""Django, set up and migrated by its own commands."""

from __future__ import annotations

from collections.abc import Iterator

import django
import pytest

django.setup()

from django.core.management import call_command
from django.db import connections

from symfonic_pg.contrib.django import DjangoMemoryStore, memory_store


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
