"""Views as a host writes them."""

from __future__ import annotations

from typing import Any

from django.db import transaction
from django.http import JsonResponse

from symfonic_pg import MemoryRecord
from symfonic_pg.contrib.django import async_memory_store, memory_store
from tests.django.host.shop.models import Order

ANNA = "org:acme/user:anna"


def recall(request: Any) -> JsonResponse:
    """A synchronous view."""
    found = memory_store().recall(ANNA, request.GET["cue"])
    return JsonResponse({"texts": [one.record.text for one in found.memories]})


async def recall_async(request: Any) -> JsonResponse:
    """An asynchronous one."""
    found = await async_memory_store().recall(ANNA, request.GET["cue"])
    return JsonResponse({"texts": [one.record.text for one in found.memories]})


def order(request: Any) -> JsonResponse:
    """An order and what is worth remembering about it, or neither."""
    with transaction.atomic():
        made = Order.objects.create(item=request.GET["item"])
        memory_store().remember(
            MemoryRecord(f"order-{made.pk}", ANNA, "episodic", f"Anna ordered a {made.item}")
        )
        if "fail" in request.GET:
            raise RuntimeError("the till is closed")
    return JsonResponse({"order": made.pk})
