"""The read-only models over the views."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import UTC, datetime
from typing import Any

import pytest
from django.db import DatabaseError, connections
from django.test.utils import CaptureQueriesContext
from hypothesis import given, settings
from hypothesis import strategies as st

from symfonic_pg import MemoryRecord, MemoryScope
from symfonic_pg.contrib.django import DjangoMemoryStore, memory_store
from symfonic_pg.contrib.django.models import Memory, Scope
from symfonic_pg.embedders import HashingEmbedder
from tests.django.host.shop.models import Order

ACME = MemoryScope.parse("org:acme")
ANNA = ACME.child("user", "anna")
MOMENT = datetime(2026, 3, 1, 12, tzinfo=UTC)

names = st.text(st.characters(exclude_characters="\0", exclude_categories=["Cs"]), min_size=1, max_size=8)
levels = st.tuples(names.filter(str.strip), names.filter(str.strip))


@pytest.fixture(autouse=True)
def _memories(store: DjangoMemoryStore) -> Iterator[None]:
    store.remember(
        [
            MemoryRecord(
                "m1", ANNA, "semantic", "Anna wants refunds", 0.5, updated_at=MOMENT, access_count=2
            ),
            MemoryRecord("a/b", ANNA.child("session", "s/1"), "episodic", "x" * 300, metadata={"a": [1]}),
            MemoryRecord("m3", ACME, "semantic", "Acme sells lamps", kind="profile"),
        ]
    )
    return


def test_a_memory_has_all_that_the_record_has(store: DjangoMemoryStore) -> None:
    store.reinforce(ANNA, ["m1"])
    store.reinforce(ANNA.child("session", "s2"), ["m1"])
    found = Memory.objects.get(pk="org:acme/m1")
    assert (found.scope, found.record_id, found.layer) == (str(ANNA), "m1", "semantic")
    assert (found.text, found.salience, found.updated_at) == ("Anna wants refunds", 0.5, MOMENT)
    assert found.uses == 4
    assert found.last_used_at is not None
    assert found.embedded_by == HashingEmbedder().model
    assert Memory.objects.get(record_id="a/b").metadata == {"a": [1]}
    assert len(Memory.objects.get(record_id="a/b").preview) == 200


def test_scopes_are_counted() -> None:
    found = {scope.path: (scope.depth, scope.children, scope.memories) for scope in Scope.objects.all()}
    assert found == {
        "org:acme": (1, 1, 1),
        "org:acme/user:anna": (2, 1, 1),
        "org:acme/user:anna/session:s%2F1": (3, 0, 1),
    }


def test_they_are_found_by_scope_and_by_key() -> None:
    assert {one.record_id for one in Memory.objects.filter(scope=ANNA)} == {"m1"}
    assert {one.record_id for one in Memory.objects.filter(scope__in=[str(ANNA), ACME])} == {"m1", "m3"}
    assert {one.record_id for one in Memory.objects.exclude(scope=ANNA)} == {"a/b", "m3"}
    assert Memory.objects.get(key="org:acme/a/b").scope == "org:acme/user:anna/session:s%2F1"
    assert set(Memory.objects.in_bulk(["org:acme/m1", "org:acme/none", "nonsense"])) == {"org:acme/m1"}
    assert not Memory.objects.filter(scope="no scope").exists()
    assert not Memory.objects.filter(scope="org:nobody").exists()
    assert Scope.objects.get(path=ANNA).level_id == "anna"


@pytest.fixture(scope="module")
def _many(_migrated: None) -> Iterator[None]:
    """A level with many memories, and many levels with one."""
    layers = ("semantic", "episodic", "procedural", "prospective")
    store = DjangoMemoryStore("memories", embedder=None)
    store.load(
        MemoryRecord(f"m{n}", ANNA if n < 2000 else ACME.child("user", f"u{n}"), layers[n % 4], f"note {n}")
        for n in range(3000)
    )
    with connections["memories"].cursor() as cursor:
        cursor.execute("ANALYZE")
    yield
    store.erase(ACME)


@pytest.mark.usefixtures("_many")
@pytest.mark.parametrize(
    ("queryset", "access"),
    [
        (
            lambda: Memory.objects.filter(scope=ANNA).order_by("tenant", "layer", "-updated_at", "record_id"),
            "Index Scan using memories_recent on memories",
        ),
        (
            lambda: Memory.objects.order_by("-tenant", "-number"),
            "Index Scan Backward using memories_pkey on memories",
        ),
        (lambda: Memory.objects.filter(key="org:acme/m1"), "record_id = 'm1'"),
        (lambda: Memory.objects.filter(scope=ANNA, record_id="m1"), "record_id = 'm1'"),
        (lambda: Scope.objects.filter(path=ANNA), "Index Scan using scopes_pkey on scopes"),
        (
            lambda: Scope.objects.filter(parent_number=None).order_by("tenant", "number"),
            "using scopes_tenants on scopes",
        ),
        (
            lambda: Scope.objects.filter(
                tenant="org:acme", parent_number=Scope.objects.filter(path=ACME).values("number")[:1]
            ).order_by("kind", "level_id", "tenant", "number"),
            "Index Scan using scopes_path on scopes",
        ),
    ],
)
def test_lists_are_read_by_an_index_and_in_its_order(queryset: Any, access: str) -> None:
    plan = str(queryset().using("memories")[:100].explain(costs=False))
    assert access in plan
    assert "Seq Scan on memories" not in plan
    # Sorting a hundred rows that come in order already is not sorting a level.
    assert not plan.startswith("Limit\n  ->  Sort")


@settings(max_examples=30, deadline=None)
@given(st.lists(levels, min_size=1, max_size=5))
def test_the_text_form_is_that_of_the_vocabulary(path: list[tuple[str, str]]) -> None:
    scope = MemoryScope.of(*path)
    store = memory_store("memories")
    store.remember(MemoryRecord("m1", scope, "semantic", "text"))
    try:
        assert Scope.objects.using("memories").get(path=scope).path == str(scope)
        assert Memory.objects.using("memories").get(scope=scope).scope == str(scope)
        assert Memory.objects.using("memories").get(key=f"{scope.tenant}/m1").record_id == "m1"
    finally:
        store.erase(scope.root)


def test_nothing_is_written_through_them() -> None:
    found = Memory.objects.get(record_id="m1")
    for write in (found.save, found.delete, Scope.objects.first().save):
        with pytest.raises(TypeError, match="read-only"):
            write()
    writes = [
        lambda: Memory.objects.update(kind="profile"),
        lambda: Memory.objects.all().delete(),
        lambda: Memory.objects.bulk_create([found]),
        lambda: Scope.objects.update(kind="x"),
        lambda: Scope.objects.all().delete(),
    ]
    for write in writes:
        with pytest.raises(DatabaseError):
            write()


def test_they_are_read_where_the_store_is_whatever_a_router_says(settings_elsewhere: None) -> None:
    # The host's router sends every model of every app to the default database.
    assert not Memory.objects.filter(record_id="a/b").exists()
    assert Memory.objects.using("default").filter(record_id="a/b").exists()
    with CaptureQueriesContext(connections["memories"]) as captured:
        list(Scope.objects.all())
    assert len(captured) == 1


def test_the_hosts_own_models_stay_where_they_were() -> None:
    assert Order.objects.db == "default"
