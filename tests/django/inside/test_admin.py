"""The admin: a tree, lists that stay quick, and nothing to write."""

from __future__ import annotations

import re
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from html import unescape
from typing import Any

import pytest
from django.contrib.auth.models import Permission, User
from django.db import connection
from django.test import Client
from django.test.utils import CaptureQueriesContext

from symfonic_pg import MemoryRecord, MemoryScope
from symfonic_pg.contrib.django import DjangoMemoryStore, lists, memory_store

ACME = MemoryScope.parse("org:acme")
ANNA = ACME.child("user", "anna")
SCOPES, MEMORIES = "/admin/symfonic_pg/scope/", "/admin/symfonic_pg/memory/"
MOMENT = datetime(2026, 3, 1, 12, tzinfo=UTC)


def note(
    record_id: str, scope: MemoryScope = ANNA, text: str = "Anna wants a refund", **fields: Any
) -> MemoryRecord:
    return MemoryRecord(record_id, scope, fields.pop("layer", "semantic"), text, **fields)


@pytest.fixture(scope="module")
def _user(_migrated: None) -> User:
    user = User.objects.create_user("clerk", is_staff=True)
    user.user_permissions.add(*Permission.objects.filter(content_type__app_label="symfonic_pg"))
    return user


@pytest.fixture
def client(_user: User) -> Client:
    """Somebody who may look at everything of ours."""
    client = Client()
    client.force_login(_user)
    return client


@pytest.fixture
def filled(store: DjangoMemoryStore) -> Iterator[DjangoMemoryStore]:
    store.load(
        [
            *(note(f"m{n}", updated_at=MOMENT + timedelta(hours=n)) for n in range(3)),
            note("e1", text="Anna called about lamps", layer="episodic"),
            note("s1", ANNA.child("session", "s1"), "in a session"),
            note("s2", ANNA.child("session", "s2"), "in another"),
            note("b1", ACME.child("user", "bert/<b>"), "Bert"),
            note("o1", ACME, "Acme sells lamps", metadata={"a": 1}),
        ]
    )
    return store


def page(client: Client, address: str, **query: str) -> str:
    answer = client.get(address, query)
    assert answer.status_code == 200, (answer.status_code, address)
    return str(answer.content.decode())


def column(html: str, name: str) -> list[str]:
    """The texts of one column, as a reader sees them, links and all."""
    cells = re.findall(rf'<t[dh] class="field-{name}[^"]*">(.*?)</t[dh]>', html, re.DOTALL)
    return [unescape(re.sub(r"<[^>]+>", "", cell)) for cell in cells]


def links(html: str, name: str) -> list[str]:
    cells = re.findall(rf'<t[dh] class="field-{name}[^"]*">(.*?)</t[dh]>', html, re.DOTALL)
    return [unescape(found) for cell in cells for found in re.findall(r'href="([^"]+)"', cell)]


def test_it_begins_with_the_tenants(client: Client, filled: DjangoMemoryStore) -> None:
    filled.remember(note("x", MemoryScope.parse("org:acme-corp")))
    html = page(client, SCOPES)
    assert column(html, "branch") == ["▸ org:acme", "· org:acme-corp"]
    assert column(html, "memories_here") == ["1", "1"]
    filled.erase("org:acme-corp")


def test_an_open_branch_shows_its_path_and_the_level_below(client: Client, filled: DjangoMemoryStore) -> None:
    html = page(client, SCOPES)
    html = page(client, links(html, "branch")[0])
    assert column(html, "branch") == ["▾ org:acme", "\u2003▸ user:anna", "\u2003· user:bert%2F<b>"]
    html = page(client, links(html, "branch")[1])
    assert column(html, "branch") == [
        "▾ org:acme",
        "\u2003▾ user:anna",
        "\u2003\u2003· session:s1",
        "\u2003\u2003· session:s2",
    ]
    assert column(html, "memories_here") == ["1", "4", "1", "1"]
    sidebar = html[html.index('id="changelist-filter"') :]
    assert "user:anna" in sidebar


def test_a_scope_leads_to_its_memories(client: Client, filled: DjangoMemoryStore) -> None:
    html = page(client, SCOPES, at=str(ACME))
    html = page(client, links(html, "memories_here")[1])
    assert column(html, "record_id") == ["e1", "m2", "m1", "m0"]
    assert set(column(html, "at")) == {str(ANNA)}
    assert column(page(client, MEMORIES, at=str(ANNA), layer="episodic"), "record_id") == ["e1"]


def test_without_a_scope_the_memories_of_all_are_listed(client: Client, filled: DjangoMemoryStore) -> None:
    html = page(client, MEMORIES)
    assert len(column(html, "record_id")) == 8
    # No index would find them.
    assert len(column(page(client, MEMORIES, layer="episodic"), "record_id")) == 8


@pytest.mark.parametrize("at", ["nonsense", "org:nobody", "org:acme/user:nobody", "%", "org:acme//"])
def test_a_scope_that_is_none_has_nothing(client: Client, filled: DjangoMemoryStore, at: str) -> None:
    assert column(page(client, MEMORIES, at=at), "record_id") == []
    assert [row for row in column(page(client, SCOPES, at=at), "branch") if "▾" not in row] == []


@pytest.mark.parametrize(
    ("term", "found"),
    [
        ("refunds", ["m2", "m1", "m0"]),
        ("lamp calling", ["e1"]),
        ("e1", ["e1"]),
        ("acme", []),
        ("%", []),
        ("' OR 1=1", []),
    ],
)
def test_in_an_open_scope_words_and_ids_are_searched(
    client: Client, filled: DjangoMemoryStore, term: str, found: list[str]
) -> None:
    assert column(page(client, MEMORIES, at=str(ANNA), q=term), "record_id") == found


@pytest.mark.parametrize(
    ("term", "found"),
    [
        ("org:acme/e1", ["e1"]),
        ("org:acme/user:anna/session:s1", ["s1"]),
        ("org:acme", ["o1"]),
        ("refund", []),
    ],
)
def test_elsewhere_scopes_and_keys_are_searched(
    client: Client, filled: DjangoMemoryStore, term: str, found: list[str]
) -> None:
    assert column(page(client, MEMORIES, q=term), "record_id") == found


@pytest.mark.parametrize(
    ("query", "found"),
    [
        ({"q": "org:ac"}, ["org:acme"]),
        ({"q": "acme"}, []),
        ({"q": "org:acme/user:anna"}, ["user:anna"]),
        ({"q": "org:acme/user:anna", "at": "org:nobody"}, ["user:anna"]),
        ({"q": "user:a", "at": "org:acme"}, ["user:anna"]),
        ({"q": "be", "at": "org:acme"}, ["user:bert%2F<b>"]),
        ({"q": "%", "at": "org:acme"}, []),
    ],
)
def test_scopes_are_searched_by_their_beginning(
    client: Client, filled: DjangoMemoryStore, query: dict[str, str], found: list[str]
) -> None:
    assert [row.split()[-1] for row in column(page(client, SCOPES, **query), "branch")] == found


def test_one_memory_shows_everything(client: Client, filled: DjangoMemoryStore) -> None:
    html = page(client, links(page(client, MEMORIES, at=str(ACME)), "record_id")[0])
    assert "Acme sells lamps" in html
    assert "&quot;a&quot;: 1" in html
    assert "readonly" in html
    assert page(client, SCOPES + "org_3Aacme_2Fuser_3Aanna/change/").count("readonly") >= 5


@pytest.mark.parametrize("address", [SCOPES, MEMORIES])
def test_nothing_can_be_written(client: Client, filled: DjangoMemoryStore, address: str) -> None:
    superuser = User.objects.get_or_create(username="root", is_staff=True, is_superuser=True)[0]
    client.force_login(superuser)
    key = "org_3Aacme_2Fe1" if address == MEMORIES else "org_3Aacme"
    assert client.get(f"{address}add/").status_code == 403
    assert client.get(f"{address}{key}/delete/").status_code == 403
    assert client.post(f"{address}{key}/change/", {"text": "x"}).status_code == 403
    html = page(client, f"{address}{key}/change/")
    assert 'name="_save"' not in html
    assert 'name="action"' not in page(client, address)


def test_nobody_looks_without_the_permission(filled: DjangoMemoryStore) -> None:
    client = Client()
    client.force_login(User.objects.get_or_create(username="guest", is_staff=True)[0])
    assert client.get(MEMORIES).status_code == 403
    assert {
        permission.codename for permission in Permission.objects.filter(content_type__app_label="symfonic_pg")
    } == {
        "view_memory",
        "view_scope",
    }


@pytest.mark.parametrize("address", [SCOPES, MEMORIES])
@pytest.mark.parametrize("query", [{}, {"at": "org:acme"}])
def test_no_question_is_asked_per_row(
    client: Client, filled: DjangoMemoryStore, address: str, query: dict[str, str]
) -> None:
    def asked() -> int:
        with CaptureQueriesContext(connection) as captured:
            page(client, address, **query)
        return len(captured)

    few = asked()
    filled.load([note(f"x{n}", ACME.child("user", f"u{n}")) for n in range(60)])
    filled.load([note(f"y{n}", ACME) for n in range(60)])
    assert asked() == few
    # The session, the user, two for permissions; the page and its bounded count, and what is open.
    assert few <= 7


def test_the_list_leaves_the_texts_where_they_are(client: Client, filled: DjangoMemoryStore) -> None:
    with CaptureQueriesContext(connection) as captured:
        page(client, MEMORIES, at=str(ANNA))
    assert not [one for one in captured.captured_queries if '."text"' in one["sql"]]


def test_a_long_list_is_counted_to_a_bound(
    client: Client, filled: DjangoMemoryStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(lists, "LISTED", 150)
    filled.load([note(f"x{n}") for n in range(400)])
    with CaptureQueriesContext(connection) as captured:
        html = page(client, MEMORIES, at=str(ANNA), p="2")
    assert "150 memories" in html
    assert len(column(html, "record_id")) == 50
    counts = [one["sql"] for one in captured.captured_queries if "COUNT(" in one["sql"]]
    assert counts
    assert all("LIMIT 150" in sql for sql in counts)
    assert "1,000+" not in html
    filled.load([note(f"z{n}") for n in range(700)])
    assert "1,000+" in column(page(client, SCOPES, at=str(ACME)), "memories_here")


def test_it_looks_where_the_store_is(
    client: Client, filled: DjangoMemoryStore, settings_elsewhere: None
) -> None:
    memory_store("memories").remember(note("far", ACME, "far away"))
    assert column(page(client, MEMORIES), "record_id") == ["far"]
    assert column(page(client, MEMORIES, at=str(ACME), q="away"), "record_id") == ["far"]
    assert column(page(client, SCOPES), "branch") == ["· org:acme"]
    memory_store("memories").erase(ACME)
