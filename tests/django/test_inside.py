"""Everything that needs Django in the process: each file of inside/ in one of its own, on new databases."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from tests.conftest import create_database, drop_database
from tests.django.conftest import Project

INSIDE = Path(__file__).parent / "inside"


@pytest.fixture
def second_database(server: str) -> Iterator[str]:
    """One more database with nothing in it."""
    dsn = create_database(server, "template0")
    yield dsn
    drop_database(server, dsn)


@pytest.mark.timeout(300)
@pytest.mark.parametrize("name", sorted(path.name for path in INSIDE.glob("test_*.py")))
def test_inside_django(
    name: str, project: Callable[..., Project], empty_database: str, second_database: str
) -> None:
    host = project(
        empty_database,
        also={"memories": second_database},
        SYMFONIC_PG_DATABASE=["default", "memories"],
        SYMFONIC_PG_EMBEDDER="symfonic_pg.embedders.HashingEmbedder",
        SYMFONIC_PG_TIMEOUT=5.0,
        DATABASE_ROUTERS=["tests.django.host.routers.ShopOnDefault"],
    )
    printed = host.python("-m", "pytest", "-q", "-p", "no:cacheprovider", str(INSIDE / name))
    assert " passed" in printed
