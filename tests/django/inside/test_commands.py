"""What manage.py can be asked, and what `check` says."""

from __future__ import annotations

import io
from types import ModuleType
from typing import Any

import psycopg
import pytest
from django.core.checks import run_checks
from django.core.exceptions import ImproperlyConfigured
from django.core.management import CommandError, call_command
from django.db import connection, connections
from django.test.utils import override_settings

from symfonic_pg import MemoryRecord
from symfonic_pg.contrib.django import DjangoMemoryStore, memory_store
from symfonic_pg.contrib.django.databases import address_of, prepares
from symfonic_pg.embedders import EmbedderUnavailable, HashingEmbedder
from symfonic_pg.memory import RetrievalPolicy

ANNA = "org:acme/user:anna"
POLICY = RetrievalPolicy(min_relevance=0.25)


def said(command: str, *arguments: str, **options: Any) -> str:
    out = io.StringIO()
    call_command(command, *arguments, stdout=out, stderr=out, no_color=True, **options)
    return out.getvalue()


def errors() -> dict[str, str]:
    return {
        error.id: f"{error.msg} {error.hint or ''}"
        for error in run_checks()
        if error.id.startswith("symfonic_pg")
    }


def pending(store: DjangoMemoryStore) -> int:
    return store.count_pending(ANNA).waiting


def unembedded(alias: str = "default") -> DjangoMemoryStore:
    return DjangoMemoryStore(alias, embedder=None)


def test_the_doctor_finds_a_migrated_database_well() -> None:
    printed = said("memory_doctor")
    assert "ok       revision: the schema symfonic stands at revision" in printed
    assert "failure" not in printed


def test_the_doctor_names_djangos_command_and_fails() -> None:
    out = io.StringIO()
    with override_settings(SYMFONIC_PG_SCHEMA="nowhere"), pytest.raises(CommandError, match="checks failed"):
        call_command("memory_doctor", database="memories", stdout=out, no_color=True)
    assert "manage.py migrate symfonic_pg --database memories" in out.getvalue()


def test_the_doctor_asks_about_a_role() -> None:
    with connection.cursor() as cursor:
        cursor.execute("DROP ROLE IF EXISTS django_reader")
        cursor.execute("CREATE ROLE django_reader")
    out = io.StringIO()
    with pytest.raises(CommandError):
        call_command("memory_doctor", role="django_reader", stdout=out, no_color=True)
    assert "GRANT USAGE ON SCHEMA symfonic TO django_reader;" in out.getvalue()
    with connection.cursor() as cursor:
        cursor.execute("DROP ROLE django_reader")


def test_pending_memories_are_embedded(store: DjangoMemoryStore) -> None:
    unembedded().remember([MemoryRecord(f"m{n}", ANNA, "semantic", f"Anna {n}") for n in range(10)])
    assert pending(store) == 10
    printed = said("memory_embed", "--limit", "4", "--batch-size", "2", verbosity=2)
    assert printed.splitlines()[-1] == "4 embedded, 6 remaining"
    assert printed.count("2 embedded") == 2
    assert said("memory_embed", "--scope", "org:nobody").strip() == "0 embedded"
    assert said("memory_embed", "--retry").splitlines() == ["0 to be tried again", "6 embedded"]
    assert pending(store) == 0


def test_they_are_embedded_in_the_named_database() -> None:
    unembedded("memories").remember(MemoryRecord("m1", ANNA, "semantic", "Anna"))
    assert said("memory_embed", "--database", "memories").strip() == "1 embedded"
    memory_store("memories").erase("org:acme")


@override_settings(SYMFONIC_PG_EMBEDDER=None)
def test_without_an_embedder_there_is_nothing_to_embed_with() -> None:
    with pytest.raises(CommandError, match="SYMFONIC_PG_EMBEDDER"):
        call_command("memory_embed")


class Down(HashingEmbedder):
    """Does not answer."""

    async def embed(self, texts: Any) -> Any:
        raise EmbedderUnavailable("nobody is there")


def test_an_embedder_that_does_not_answer_is_a_failure(store: DjangoMemoryStore) -> None:
    unembedded().remember(MemoryRecord("m1", ANNA, "semantic", "Anna"))
    down = override_settings(SYMFONIC_PG_EMBEDDER=f"{__name__}.Down")
    with down, pytest.raises(CommandError, match="nobody is there"):
        call_command("memory_embed", stdout=io.StringIO())
    assert pending(store) == 1


def test_the_projects_settings_are_sound() -> None:
    assert errors() == {}


@pytest.mark.parametrize(
    ("setting", "value", "id", "said"),
    [
        ("SYMFONIC_PG_EMBEDER", "x", "E002", "SYMFONIC_PG_EMBEDER is no setting"),
        ("SYMFONIC_PG_EMBEDDER", "no.such.module", "E001", "SYMFONIC_PG_EMBEDDER"),
        ("SYMFONIC_PG_DATABASE", "nowhere", "E003", "no alias 'nowhere'"),
        ("SYMFONIC_PG_DATABASE", [], "E001", "SYMFONIC_PG_DATABASE"),
        ("SYMFONIC_PG_SCHEMA", "no-schema", "E001", "schema must be"),
        ("SYMFONIC_PG_VECTORS", "no-schema", "E001", "schema must be"),
        ("SYMFONIC_PG_TIMEOUT", -1, "E001", "timeout"),
        ("SYMFONIC_PG_LANGUAGE", "klingon", "E001", "language"),
        ("SYMFONIC_PG_POOL_MAX", 0, "E001", "pool"),
        ("DATABASE_ROUTERS", ["tests.django.host.routers.NothingElsewhere"], "E004", "'memories'"),
    ],
)
def test_a_setting_that_cannot_work_is_found_before_it_is_used(
    setting: str, value: Any, id: str, said: str
) -> None:
    with override_settings(**{setting: value}):
        found = errors()
    assert said in found[f"symfonic_pg.{id}"]


def test_psycopg2_is_refused_with_a_reason(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(type(connections["default"]), "Database", ModuleType("psycopg2"))
    assert "psycopg 3" in errors()["symfonic_pg.E003"]
    with override_settings(SYMFONIC_PG_TIMEOUT=2.0), pytest.raises(ImproperlyConfigured, match="psycopg 3"):
        memory_store()


def test_another_kind_of_database_is_refused_with_a_reason(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(type(connections["default"]), "vendor", "sqlite")
    with override_settings(SYMFONIC_PG_DATABASE="default"):
        found = errors()
    assert "'default' is sqlite" in found["symfonic_pg.E003"]


@override_settings(
    SYMFONIC_PG_POLICY=f"{__name__}.POLICY", SYMFONIC_PG_MAX_HOPS=2, SYMFONIC_PG_RECENT_TURNS=3
)
def test_every_option_of_a_store_is_a_setting() -> None:
    settings = memory_store().settings
    assert (settings.policy, settings.max_hops, settings.recent_turns) == (POLICY, 2, 3)
    assert isinstance(settings.embedder, HashingEmbedder)


def test_the_address_is_djangos(monkeypatch: pytest.MonkeyPatch) -> None:
    entry = connections["default"].settings_dict
    monkeypatch.setitem(entry, "PASSWORD", "p@ss/ word%&")
    monkeypatch.setitem(
        entry, "OPTIONS", {"application_name": "a b", "connect_timeout": 7, "assume_role": "pg_monitor"}
    )
    address = address_of("default")
    assert "p@ss" not in address
    with psycopg.connect(address.replace("+psycopg", "")) as held:
        assert held.info.password == "p@ss/ word%&"
        row = held.execute(
            "SELECT current_user, current_setting('application_name'), current_database()"
        ).fetchone()
        assert row == ("pg_monitor", "a b", entry["NAME"])
    assert prepares("default") is None
    for threshold, expected in ((5, True), (None, False)):
        monkeypatch.setitem(entry, "OPTIONS", {"prepare_threshold": threshold})
        assert prepares("default") is expected
