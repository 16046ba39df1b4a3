"""What the project's settings say: every name starts with SYMFONIC_PG_."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import cache
from typing import Any

from django.conf import settings
from django.core.exceptions import ImproperlyConfigured
from django.core.signals import setting_changed
from django.dispatch import receiver
from django.utils.module_loading import import_string

from symfonic_pg.store import StoreOptions, StoreSettings

PREFIX = "SYMFONIC_PG_"

# Ours; every other setting is a keyword argument of MemoryStore in capitals.
_OWN = ("DATABASE", "VECTORS", "POOL_MAX")
# Objects, which a settings file names by their dotted path.
_OBJECTS = ("EMBEDDER", "POLICY", "EMBED_TEXT")


@dataclass(frozen=True, slots=True, eq=False)
class Configuration:
    """The settings, read once.

    `databases` are the aliases whose database holds a store, the first of them the one that is meant where
    none is named; `vectors` is where the extension goes in a database that has none; `pool_max` bounds an
    async store's pool; `options` are the keyword arguments of every store.
    """

    databases: tuple[str, ...] = ("default",)
    vectors: str = "public"
    pool_max: int = 10
    options: StoreOptions = field(default_factory=StoreOptions)

    @property
    def database(self) -> str:
        """The alias that is meant where none is named."""
        return self.databases[0]

    @property
    def schema(self) -> str:
        """The schema of the store."""
        return self.store.schema

    @property
    def store(self) -> StoreSettings:
        """The options with their defaults."""
        return StoreSettings(**self.options)


@cache
def configured() -> Configuration:
    """The settings as they stand; ImproperlyConfigured names one that cannot be used."""
    options = {name.lower(): _option(name) for name in option_names() if hasattr(settings, PREFIX + name)}
    return Configuration(
        databases=_aliases(getattr(settings, f"{PREFIX}DATABASE", "default")),
        vectors=getattr(settings, f"{PREFIX}VECTORS", "public"),
        pool_max=getattr(settings, f"{PREFIX}POOL_MAX", 10),
        options=options,  # type: ignore[arg-type]
    )


@receiver(setting_changed)
def _forget(**changed: Any) -> None:
    configured.cache_clear()


def option_names() -> list[str]:
    """The settings that become options of a store, without their prefix."""
    return [name.upper() for name in StoreOptions.__annotations__]


def unknown_settings() -> list[str]:
    """The settings with our prefix that mean nothing."""
    known = {PREFIX + name for name in (*_OWN, *option_names())}
    return sorted(name for name in dir(settings) if name.startswith(PREFIX) and name not in known)


def _option(name: str) -> Any:
    value = getattr(settings, PREFIX + name)
    if name not in _OBJECTS or not isinstance(value, str):
        return value
    try:
        found = import_string(value)
        # A class or a function that makes the object, or the object itself.
        return (
            found()
            if isinstance(found, type) or (name == "EMBEDDER" and not hasattr(found, "embed"))
            else found
        )
    except ImportError as exc:
        raise ImproperlyConfigured(f"{PREFIX}{name}: {exc}") from exc


def _aliases(value: str | Sequence[str]) -> tuple[str, ...]:
    aliases = (value,) if isinstance(value, str) else tuple(value)
    if not aliases or not all(isinstance(alias, str) for alias in aliases):
        raise ImproperlyConfigured(f"{PREFIX}DATABASE must be an alias of DATABASES, or several")
    return aliases
