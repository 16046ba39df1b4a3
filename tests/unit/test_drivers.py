"""The driver: the one named, else the DSN's, else one that is installed."""

from __future__ import annotations

import pytest

from symfonic_pg.memory.errors import MemoryContractError, SymfonicError
from symfonic_pg.postgres import drivers
from symfonic_pg.postgres.drivers import choose_driver

PLAIN = "postgresql://u@h/d"


@pytest.fixture
def installed(monkeypatch: pytest.MonkeyPatch) -> set[str]:
    """The names that count as installed; the test takes some away."""
    names = {"asyncpg", "psycopg"}
    monkeypatch.setattr(drivers, "find_spec", lambda name: name if name in names else None)
    return names


@pytest.mark.parametrize(
    ("dsn", "driver", "chosen"),
    [
        (PLAIN, None, "asyncpg"),
        (PLAIN, "psycopg", "psycopg"),
        ("postgresql+psycopg://u@h/d", None, "psycopg"),
        ("postgresql+psycopg://u@h/d", "asyncpg", "asyncpg"),
    ],
)
def test_what_is_named_wins(installed: set[str], dsn: str, driver: str | None, chosen: str) -> None:
    assert choose_driver(dsn, driver=driver) == chosen


def test_what_is_installed_is_taken(installed: set[str]) -> None:
    installed.remove("asyncpg")
    assert choose_driver(PLAIN) == "psycopg"


def test_the_preference_may_be_another(installed: set[str]) -> None:
    assert choose_driver(PLAIN, preferred=("psycopg", "asyncpg")) == "psycopg"


@pytest.mark.parametrize("driver", ["asyncpg", "psycopg"])
def test_a_named_driver_that_is_not_there_is_never_replaced(installed: set[str], driver: str) -> None:
    installed.remove(driver)
    with pytest.raises(SymfonicError, match=rf"symfonic-pg\[{driver}\]"):
        choose_driver(f"postgresql+{driver}://u@h/d")


def test_without_any_the_error_names_both_extras(installed: set[str]) -> None:
    installed.clear()
    with pytest.raises(SymfonicError, match=r"\[asyncpg\].*\[psycopg\]"):
        choose_driver(PLAIN)


def test_another_name_is_refused() -> None:
    with pytest.raises(MemoryContractError, match="driver must be") as error:
        choose_driver(PLAIN, driver="psycopg2")
    assert error.value.field == "driver"
