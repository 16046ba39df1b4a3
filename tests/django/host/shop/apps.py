"""The host's own app."""

from __future__ import annotations

from django.apps import AppConfig


class ShopConfig(AppConfig):
    """Orders."""

    name = "tests.django.host.shop"
    label = "shop"
    default_auto_field = "django.db.models.BigAutoField"
