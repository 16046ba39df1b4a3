"""The package itself: what importing it costs, what it offers, and where its files are."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

import symfonic_pg
import symfonic_pg.memory
from symfonic_pg import assets
from symfonic_pg.assets import asset_dir
from symfonic_pg.memory.errors import SymfonicError

ROOT = Path(__file__).parents[2]


def test_importing_it_loads_nothing_but_itself() -> None:
    code = "import sys; before = set(sys.modules); import symfonic_pg; print(set(sys.modules) - before)"
    printed = subprocess.check_output([sys.executable, "-c", code], cwd=ROOT, text=True)
    assert "symfonic_pg.memory" not in printed
    assert "asyncio" not in printed


def test_a_name_that_it_does_not_have_is_an_attribute_error() -> None:
    with pytest.raises(AttributeError, match="no attribute 'MemoryShop'"):
        _ = symfonic_pg.MemoryShop


def test_the_public_names_are_there_and_one_definition_each() -> None:
    assert set(symfonic_pg.__all__) <= set(dir(symfonic_pg))
    for name in set(symfonic_pg.__all__) - {"__version__", "MemoryStore"}:
        assert getattr(symfonic_pg, name) is getattr(symfonic_pg.memory, name)
    assert symfonic_pg.MemoryStore.__module__.startswith("symfonic_pg.store")


@pytest.fixture
def elsewhere(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """A place for the package where neither a checkout nor packaged files are found."""
    monkeypatch.setattr(assets, "_PACKAGE", tmp_path / "symfonic_pg")
    monkeypatch.setattr(assets, "_CHECKOUT", tmp_path)
    asset_dir.cache_clear()
    yield tmp_path
    asset_dir.cache_clear()


def test_the_library_alembic_beside_the_package_is_not_taken_for_ours(elsewhere: Path) -> None:
    (elsewhere / "alembic").mkdir()
    with pytest.raises(SymfonicError, match="incomplete"):
        asset_dir("alembic")


def test_packaged_files_come_before_a_checkouts(elsewhere: Path) -> None:
    (elsewhere / "pyproject.toml").touch()
    (elsewhere / "sql").mkdir()
    assert asset_dir("sql") == elsewhere / "sql"
    asset_dir.cache_clear()
    (elsewhere / "symfonic_pg" / "_sql").mkdir(parents=True)
    assert asset_dir("sql") == elsewhere / "symfonic_pg" / "_sql"
