from django.db import transaction
from django.http import HttpRequest, HttpResponse, JsonResponse

from desk.models import Order
from symfonic_pg import MemoryRecord, MemoryScope
from symfonic_pg.contrib.django import async_memory_store, memory_store

DESK = MemoryScope.of(("org", "acme"))


def orders(request: HttpRequest, customer: str) -> JsonResponse:
    with transaction.atomic():
        order = Order.objects.create(customer=customer, item=request.POST["item"])
        record = MemoryRecord(
            f"order-{order.pk}", DESK.child("customer", customer), "episodic", f"ordered: {order.item}"
        )
        memory_store().remember(record)
    return JsonResponse({"order": order.pk}, status=201)


async def prompt(request: HttpRequest, customer: str) -> HttpResponse:
    recalled = await async_memory_store().recall(DESK.child("customer", customer), request.GET["cue"])
    return HttpResponse(recalled.render(), content_type="text/plain")
