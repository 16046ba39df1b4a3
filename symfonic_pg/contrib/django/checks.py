"""What `manage.py check` says about the project's settings."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from django.core.checks import Error
from django.core.exceptions import ImproperlyConfigured
from django.db import router

from symfonic_pg.contrib.django.configuration import configured, unknown_settings
from symfonic_pg.contrib.django.databases import address_of, obstacle
from symfonic_pg.contrib.django.stores import memory_store
from symfonic_pg.memory.errors import MemoryContractError
from symfonic_pg.postgres.connecting import connected
from symfonic_pg.postgres.statements import quoted_schema

APP_LABEL = "symfonic_pg"


def check_settings(**asked: Any) -> list[Error]:
    """Everything that would make the first use of a store fail; asks no database."""
    try:
        return list(_found())
    except (ImproperlyConfigured, MemoryContractError, TypeError) as exc:
        return [Error(str(exc), id=f"{APP_LABEL}.E001")]


def _found() -> Iterator[Error]:
    for name in unknown_settings():
        yield Error(f"{name} is no setting of symfonic_pg", id=f"{APP_LABEL}.E002")
    configuration = configured()
    quoted_schema(configuration.schema)
    quoted_schema(configuration.vectors)
    for alias in configuration.databases:
        reason = obstacle(alias)
        if reason is not None:
            yield Error(reason, id=f"{APP_LABEL}.E003")
            continue
        # Made, not used: neither connects before its first call.
        memory_store(alias)
        connected(address_of(alias), pool_max=configuration.pool_max)
        if not router.allow_migrate(alias, APP_LABEL):
            yield Error(
                f"a router keeps {APP_LABEL} out of {alias!r}, which SYMFONIC_PG_DATABASE names",
                hint=f"its allow_migrate({alias!r}, {APP_LABEL!r}) must not be False",
                id=f"{APP_LABEL}.E004",
            )
