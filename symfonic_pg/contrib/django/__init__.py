"""Memories in a Django project: in its transactions, its migrations, its admin.

Put "symfonic_pg.contrib.django" into INSTALLED_APPS and run `manage.py migrate`. Needs the extra `django`,
that is Django 4.2 or newer on psycopg 3.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from symfonic_pg.contrib.django.stores import DjangoMemoryStore, async_memory_store, memory_store

__all__ = ["DjangoMemoryStore", "async_memory_store", "memory_store"]


def __getattr__(name: str) -> Any:
    # Loaded on first use: Django imports this package before there are settings to speak of.
    if name not in __all__:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    from symfonic_pg.contrib.django import stores

    return getattr(stores, name)
