"""The app, as INSTALLED_APPS names it."""

from __future__ import annotations

from django.apps import AppConfig
from django.core.checks import register

from symfonic_pg.contrib.django.checks import check_settings


class SymfonicPgConfig(AppConfig):
    """The app `symfonic_pg`: its migrations, its read-only models, its commands."""

    name = "symfonic_pg.contrib.django"
    label = "symfonic_pg"
    verbose_name = "Agent memory"
    default_auto_field = "django.db.models.BigAutoField"

    def ready(self) -> None:
        """Have `manage.py check`, and with it migrate and runserver, look at the settings."""
        register(check_settings)
