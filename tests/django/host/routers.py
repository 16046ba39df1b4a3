"""Routers as hosts have them."""

from __future__ import annotations

from typing import Any


class ShopOnDefault:
    """Keeps the shop in the default database and everything else wherever it wants to be."""

    def db_for_read(self, model: Any, **hints: Any) -> str | None:
        return "default"

    def db_for_write(self, model: Any, **hints: Any) -> str | None:
        return "default"

    def allow_migrate(self, db: str, app_label: str, **hints: Any) -> bool | None:
        return db == "default" if app_label == "shop" else None


class NothingElsewhere:
    """Lets nothing into any database but the default one."""

    def allow_migrate(self, db: str, app_label: str, **hints: Any) -> bool:
        return db == "default"
