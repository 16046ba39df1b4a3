"""The synchronous store in Django's transactions."""

from __future__ import annotations

import inspect
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import UTC, datetime, timedelta, timezone
from typing import Any

import psycopg
import pytest
from django.core.exceptions import ImproperlyConfigured, SynchronousOnlyOperation
from django.db import IntegrityError, connection, connections, transaction
from django.db.transaction import TransactionManagementError
from django.test.utils import CaptureQueriesContext, override_settings

from symfonic_pg import MemoryContractError, MemoryQuery, MemoryRecord, MemoryStore, MemoryUnavailable
from symfonic_pg.contrib.django import DjangoMemoryStore, memory_store
from symfonic_pg.contrib.django.databases import address_of
from symfonic_pg.embedders import HashingEmbedder
from symfonic_pg.memory import Association, ConversationTurn, SchemaMismatch
from tests.django.host.shop.models import Order

ACME = "org:acme"
ANNA = "org:acme/user:anna"


def note(
    record_id: str, text: str = "Anna wants refunds by bank transfer", scope: str = ANNA
) -> MemoryRecord:
    return MemoryRecord(record_id, scope, "semantic", text)


class Changed(Exception):
    """The host has thought better of it."""


@contextmanager
def rolled_back(**options: Any) -> Iterator[None]:
    try:
        with transaction.atomic(**options):
            yield
            raise Changed
    except Changed:
        pass


@contextmanager
def locked(alias: str, record_id: str) -> Iterator[psycopg.Connection[Any]]:
    """Somebody else has the row of a memory."""
    dsn = address_of(alias).replace("+psycopg", "")
    with psycopg.connect(dsn) as other:
        other.execute("SELECT FROM symfonic.memories WHERE record_id = %s FOR UPDATE", [record_id])
        yield other
        other.rollback()


def terminate() -> None:
    """End the session behind Django's default connection."""
    with connections["memories"].cursor() as administrator:
        pid = connection.connection.info.backend_pid
        administrator.execute("SELECT pg_terminate_backend(%s, 5000)", [pid])


def test_memory_and_row_are_committed_together(store: DjangoMemoryStore) -> None:
    with transaction.atomic():
        made = Order.objects.create(item="lamp")
        assert store.remember(note("m1")).inserted == 1
    assert Order.objects.filter(pk=made.pk).exists()
    assert store.count(ANNA) == 1


def test_memory_and_row_are_rolled_back_together(store: DjangoMemoryStore) -> None:
    with rolled_back():
        made = Order.objects.create(item="lamp")
        store.remember(note("m1"))
        assert [one.record.record_id for one in store.recall(ANNA, "refund").memories] == ["m1"]
    assert not Order.objects.filter(pk=made.pk).exists()
    assert store.count(ANNA) == 0


def test_a_savepoint_takes_back_its_own_part(store: DjangoMemoryStore) -> None:
    with transaction.atomic():
        store.remember(note("outer"))
        with rolled_back():
            store.remember(note("inner"))
        store.remember(note("after"))
    assert {one.record_id for one in store.list(ANNA)} == {"outer", "after"}


def test_a_bulk_load_belongs_to_the_block_too(store: DjangoMemoryStore) -> None:
    with rolled_back():
        assert store.load([note(f"m{n}") for n in range(20)], batch_size=7).inserted == 20
    assert store.count(ANNA) == 0
    assert store.load([note(f"m{n}") for n in range(20)], batch_size=7).inserted == 20
    assert store.count(ANNA) == 20


def test_the_hosts_failure_takes_the_memory_with_it(store: DjangoMemoryStore) -> None:
    first = Order.objects.create(item="lamp")

    def again() -> None:
        with transaction.atomic():
            store.remember(note("m1"))
            Order.objects.create(pk=first.pk, item="again")

    with pytest.raises(IntegrityError):
        again()
    assert store.count(ANNA) == 0


def test_another_alias_is_another_database(store: DjangoMemoryStore) -> None:
    elsewhere = memory_store("memories")
    with transaction.atomic(using="memories"):
        elsewhere.remember(note("m1"))
    assert store.count(ANNA) == 0
    with rolled_back(using="memories"):
        elsewhere.remember(note("m2"))
        store.remember(note("kept"))
    assert [one.record_id for one in elsewhere.list(ANNA)] == ["m1"]
    assert [one.record_id for one in store.list(ANNA)] == ["kept"]
    assert elsewhere.erase(ACME) == 1


def test_what_the_caller_got_wrong_costs_no_transaction(store: DjangoMemoryStore) -> None:
    store.remember(note("taken", scope=ACME))
    with transaction.atomic():
        Order.objects.create(item="lamp")
        with pytest.raises(MemoryContractError, match="taken"):
            store.remember(note("taken"))
        with pytest.raises(MemoryContractError):
            store.remember(note("m1"), [[1.0, 2.0]], model="nobody knows it")
        store.remember(note("m2"))
    assert [one.record_id for one in store.list(ANNA, exactly=True)] == ["m2"]


def test_a_database_error_marks_the_block_for_rollback(store: DjangoMemoryStore) -> None:
    store.remember(note("m1"))
    quick = DjangoMemoryStore("default", timeout=0.3)
    with locked("default", "m1"), transaction.atomic():
        with pytest.raises(MemoryUnavailable, match=r"within 0\.3 s"):
            quick.remember(note("m1", "another text"))
        with pytest.raises(TransactionManagementError):
            Order.objects.count()
        with pytest.raises(MemoryUnavailable, match="atomic"):
            store.count(ANNA)
        transaction.set_rollback(True)
    assert store.count(ANNA) == 1


def test_an_inner_block_confines_a_database_error(store: DjangoMemoryStore) -> None:
    store.remember(note("m1"))
    quick = DjangoMemoryStore("default", timeout=0.3)
    with locked("default", "m1"), transaction.atomic():
        with pytest.raises(MemoryUnavailable), transaction.atomic():
            quick.remember(note("m1", "another text"))
        store.remember(note("m2"))
    assert store.count(ANNA) == 2


def test_a_timeout_leaves_a_connection_that_works(store: DjangoMemoryStore) -> None:
    store.remember(note("m1"))
    quick = DjangoMemoryStore("default", timeout=0.3)
    held = connection.connection
    with locked("default", "m1"), pytest.raises(MemoryUnavailable, match=r"within 0\.3 s"):
        quick.remember(note("m1", "another text"))
    assert quick.count(ANNA) == 1
    assert connection.connection is held


def test_a_lost_connection_is_replaced_outside_a_block(store: DjangoMemoryStore) -> None:
    store.remember(note("m1"))
    terminate()
    with pytest.raises(MemoryUnavailable):
        store.count(ANNA)
    assert store.count(ANNA) == 1


def test_a_lost_connection_inside_a_block_is_the_end_of_it(store: DjangoMemoryStore) -> None:
    def lose() -> None:
        with transaction.atomic():
            store.remember(note("m1"))
            terminate()
            store.count(ANNA)

    with pytest.raises(MemoryUnavailable):
        lose()
    assert store.count(ANNA) == 0


def test_writers_that_collide_outside_a_block_try_again(store: DjangoMemoryStore) -> None:
    reports: list[Any] = []
    errors: list[BaseException] = []
    together = threading.Barrier(8)

    def write() -> None:
        try:
            together.wait(10)
            for turn in range(10):
                reports.append(store.remember(note(f"m{turn}", scope=f"{ANNA}/session:s{turn}")))
        except BaseException as error:
            errors.append(error)
        finally:
            connections.close_all()

    threads = [threading.Thread(target=write) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(60)
    assert errors == []
    assert sum(report.inserted for report in reports) == 10


def test_the_cue_is_embedded_without_a_loop_in_this_thread(store: DjangoMemoryStore) -> None:
    store.remember([note("m1"), note("m2", "Anna has a dog")])
    answer = store.recall(ANNA, "refunds by bank transfer").retrieval.result
    assert answer.unavailable == ()
    assert answer.sources["vector"] == 2
    assert answer.memories[0].record.record_id == "m1"


class Slow(HashingEmbedder):
    """Answers a cue too late."""

    closed = 0

    async def embed_query(self, text: str) -> Any:
        import asyncio

        await asyncio.sleep(30)

    async def aclose(self) -> None:
        Slow.closed += 1


def test_an_embedder_that_is_too_slow_leaves_the_other_routes(store: DjangoMemoryStore) -> None:
    slow = DjangoMemoryStore("default", embedder=Slow(), timeout=0.3)
    slow.remember(note("m1"))
    answer = slow.recall(ANNA, "refund").retrieval.result
    assert answer.unavailable == ("vector",)
    assert [one.record.record_id for one in answer.memories] == ["m1"]
    # Once for each loop that it was given.
    assert Slow.closed == 2


def test_every_verb_is_there_and_works(store: DjangoMemoryStore) -> None:
    store.remember([note("m1"), note("m2", "Anna has a dog")])
    m1, m2 = store.get(ANNA, ["m1", "m2"])
    assert store.associate(ANNA, Association("m1", m2)) == 1
    assert [edge.target.record_id for edge in store.neighbours(ANNA, ["m1"])] == ["m2"]
    assert store.dissociate(ANNA, Association("m1", m2)) == 1
    assert store.append_turn(ANNA, ConversationTurn("t1", "user", "hello", 1)) == 1
    assert [turn.text for turn in store.recent(ANNA, 5)] == ["hello"]
    assert store.reinforce(ANNA, ["m1"]) == 1
    query = MemoryQuery(ANNA, "refund")
    assert [one.record for one in store.retrieve(query).memories][:1] == store.get(ANNA, ["m1"])
    assert store.explain(query, "m2") is not None
    assert store.count_pending(ANNA).waiting == 0
    assert store.move(ANNA, ["m2"], ACME) == 1
    assert store.forget(ANNA, ["m1", "m2"]) == 1
    assert store.check() is None
    assert [model.dimension for model in store.repository.models()] == [HashingEmbedder().dimension]
    assert m1.record_id == "m1"


def test_a_recall_with_a_window_and_hops_takes_turns_on_the_connection(store: DjangoMemoryStore) -> None:
    full = DjangoMemoryStore("default", recent_turns=3, max_hops=1)
    full.remember([note("m1"), note("m2", "The till is in the hall")])
    full.append_turn(ANNA, ConversationTurn("t1", "user", "hello", 1))
    recalled = full.recall(ANNA, "refund")
    assert [turn.text for turn in recalled.working.turns] == ["hello"]


def test_every_verb_is_the_async_stores_own() -> None:
    verbs = {
        name: member
        for name, member in inspect.getmembers(MemoryStore, inspect.iscoroutinefunction)
        if not name.startswith("_")
    }
    assert len(verbs) > 20
    for name, verb in verbs.items():
        assert getattr(DjangoMemoryStore, name).__wrapped__ is verb


def test_no_model_runs_inside_a_transaction_of_djangos(store: DjangoMemoryStore) -> None:
    with pytest.raises(MemoryContractError, match="transaction"):
        store.embed_pending()


async def test_in_async_code_django_says_no() -> None:
    with pytest.raises(SynchronousOnlyOperation):
        memory_store().count(ANNA)


def test_djangos_instruments_see_the_statements_and_not_the_memories(store: DjangoMemoryStore) -> None:
    seen: list[str] = []

    def wrapper(execute: Any, sql: str, params: Any, many: bool, context: Any) -> Any:
        seen.append(sql)
        return execute(sql, params, many, context)

    with CaptureQueriesContext(connection) as captured, connection.execute_wrapper(wrapper):
        store.remember(note("m1", "a secret of Anna's"))
        store.recall(ANNA, "secret")
    assert any("remember(" in sql for sql in seen)
    assert len(captured) == len(seen)
    assert "secret" not in str(captured.captured_queries)


@pytest.mark.parametrize("zone", ["Asia/Kolkata", "America/Sao_Paulo"])
def test_instants_do_not_depend_on_the_projects_time_zone(store: DjangoMemoryStore, zone: str) -> None:
    early = datetime(1, 1, 3, tzinfo=UTC)
    moment = datetime(2026, 3, 1, 12, tzinfo=timezone(timedelta(hours=5, minutes=30)))
    with override_settings(USE_TZ=False, TIME_ZONE=zone):
        store.remember(MemoryRecord("m1", ANNA, "semantic", "x", created_at=early, updated_at=moment))
        [found] = store.get(ANNA, ["m1"])
    assert (found.created_at, found.updated_at) == (early, moment)
    assert found.updated_at.tzinfo is UTC


def test_a_missing_schema_names_both_commands(store: DjangoMemoryStore) -> None:
    elsewhere = DjangoMemoryStore("default", schema="elsewhere")
    with pytest.raises(
        SchemaMismatch, match=r"symfonic-pg migrate.*manage\.py migrate symfonic_pg"
    ) as caught:
        elsewhere.count(ANNA)
    assert caught.value.found is None
    with connection.cursor() as cursor:
        cursor.execute("CREATE SCHEMA elsewhere")
        cursor.execute("CREATE TABLE elsewhere.symfonic_pg_version AS SELECT '0000' AS version_num")
    try:
        with pytest.raises(SchemaMismatch) as caught:
            elsewhere.count(ANNA)
        assert caught.value.found == "0000"
    finally:
        with connection.cursor() as cursor:
            cursor.execute("DROP SCHEMA elsewhere CASCADE")


def test_the_store_of_an_alias_is_one_and_follows_the_settings(store: DjangoMemoryStore) -> None:
    assert memory_store() is memory_store("default")
    with override_settings(SYMFONIC_PG_TIMEOUT=1.5):
        assert memory_store().settings.timeout == 1.5
    assert memory_store().settings.timeout == 5.0
    with pytest.raises(ImproperlyConfigured, match="no alias 'nowhere'"):
        memory_store("nowhere")
