"""The read-only models over the views."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import UTC, datetime
from typing import Any

import pytest
from django.db import DatabaseError, connection, connections
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


def plan(queryset: Any) -> str:
    """How PostgreSQL would read it if tables this small were large."""
    with connection.cursor() as cursor:
        cursor.execute("SET enable_seqscan = off")
        cursor.execute("SET enable_sort = off")
        cursor.execute("SET enable_bitmapscan = off")
    try:
        return str(queryset.explain(costs=False))
    finally:
        with connection.cursor() as cursor:
            cursor.execute("RESET ALL")


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


@pytest.mark.parametrize(
    ("queryset", "index"),
    [
        (
            lambda: Memory.objects.filter(scope=ANNA).order_by("tenant", "layer", "-updated_at", "record_id"),
            "memories_recent",
        ),
        (lambda: Memory.objects.order_by("-tenant", "-number"), "memories_pkey"),
        (lambda: Memory.objects.filter(key="org:acme/m1"), "record_id ="),
        (lambda: Scope.objects.filter(path=ANNA), "scopes_pkey"),
        (lambda: Scope.objects.filter(parent_number=None).order_by("tenant", "number"), "scopes_tenants"),
        (
            lambda: Scope.objects.filter(tenant="org:acme", parent_number=7).order_by("kind", "level_id"),
            "scopes_path",
        ),
    ],
)
def test_lists_are_read_in_the_order_of_an_index(queryset: Any, index: str) -> None:
    read = plan(queryset()[:100])
    assert index in read
    assert "Seq Scan on memories" not in read
    assert "Seq Scan on scopes" not in read
    assert not read.startswith(("Limit\n  ->  Sort", "Limit\n  ->  Incremental"))


@settings(max_examples=60, deadline=None)
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
    assert Memory.objects.count() == 0
    assert Memory.objects.using("default").count() == 3
    with CaptureQueriesContext(connections["memories"]) as captured:
        list(Scope.objects.all())
    assert len(captured) == 1


def test_the_hosts_own_models_stay_where_they_were() -> None:
    assert Order.objects.db == "default"
