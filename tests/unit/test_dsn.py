"""Data source names: every usual form reaches the drivers, and no password reaches a message."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from symfonic_pg.memory.errors import MemoryContractError
from symfonic_pg.postgres.dsn import driver_of, for_asyncpg, normalise, redacted


@pytest.mark.parametrize("scheme", ["postgresql", "postgres", "postgresql+asyncpg", "postgresql+psycopg"])
def test_every_scheme_becomes_the_plain_one(scheme: str) -> None:
    assert normalise(f"{scheme}://u:p%40w@h:5433/db?application_name=a%20b") == (
        "postgresql://u:p%40w@h:5433/db?application_name=a%20b"
    )


@pytest.mark.parametrize(
    "dsn",
    [
        "postgresql://",
        "postgresql:///db?host=%2Fvar%2Frun%2Fpostgresql&port=5433",
        "postgresql://u@/db?host=/tmp/run",
        "postgresql://u@a:1,b:2/db?target_session_attrs=read-write",
        "postgresql://u@[::1]:5432/db",
        "postgresql://u@h/db?options=-c%20search_path%3Dx",
    ],
)
def test_sockets_hosts_and_options_are_kept(dsn: str) -> None:
    assert normalise(dsn) == dsn


def test_the_ssl_parameter_of_sqlalchemy_becomes_sslmode() -> None:
    assert normalise("postgresql+asyncpg://h/db?ssl=require&a=1") == "postgresql://h/db?sslmode=require&a=1"


@pytest.mark.parametrize(
    "dsn",
    [
        "",
        "mysql://h/db",
        "host=h dbname=secret",
        "postgresql+pg8000://h",
        "postgresql:/h",
        "http://x",
        None,
        5,
    ],
)
def test_anything_else_is_refused_without_repeating_it(dsn: str) -> None:
    with pytest.raises(MemoryContractError, match="dsn must be postgresql://") as refused:
        normalise(dsn)
    assert refused.value.field == "dsn"
    assert "secret" not in str(refused.value)


def test_the_driver_may_be_named() -> None:
    assert driver_of("postgresql+asyncpg://h") == "asyncpg"
    assert driver_of("postgresql+psycopg://h") == "psycopg"
    assert driver_of("postgres://h") is None


def test_asyncpg_is_spared_what_only_libpq_knows() -> None:
    dsn = "postgresql://h/db?channel_binding=require&sslmode=require&connect_timeout=5&application_name=x"
    assert for_asyncpg(dsn) == "postgresql://h/db?sslmode=require&application_name=x"
    assert for_asyncpg("postgresql://h/db?keepalives=1") == "postgresql://h/db"


@pytest.mark.parametrize(
    ("dsn", "shown"),
    [
        ("postgresql://u:hidden@h/db", "postgresql://u:***@h/db"),
        ("postgresql+asyncpg://u:hid@den@h/db", "postgresql+asyncpg://u:***@h/db"),
        ("postgresql://u:hid/den@h/db", "postgresql://u:***@h/db"),
        ("postgresql://:hidden@h/db", "postgresql://:***@h/db"),
        ("postgresql://u@h/db", "postgresql://u@h/db"),
        ("postgresql://h:5432/db", "postgresql://h:5432/db"),
        ("postgresql://h/db?user=u&password=hidden&a=1", "postgresql://h/db?user=u&password=***&a=1"),
        ("postgresql://h/db?sslpassword=hidden", "postgresql://h/db?sslpassword=***"),
        ("host=h password = 'hid \\' den' user=u", "host=h password = *** user=u"),
        ("mysql://u:hidden@h", "mysql://u:***@h"),
    ],
)
def test_no_password_is_shown(dsn: str, shown: str) -> None:
    assert redacted(dsn) == shown


@given(st.text(alphabet=st.characters(exclude_characters="*"), min_size=1))
def test_no_password_whatever_is_in_it_is_shown(password: str) -> None:
    assert redacted(f"postgresql://user:{password}@host/db") == "postgresql://user:***@host/db"
