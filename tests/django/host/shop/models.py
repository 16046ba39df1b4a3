"""The host's own table."""

from __future__ import annotations

from django.db import models


class Order(models.Model):
    """Something that a customer ordered."""

    item = models.CharField(max_length=100)

    class Meta:
        app_label = "shop"
