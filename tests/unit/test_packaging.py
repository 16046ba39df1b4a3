"""What people install: the wheel, built through the sdist, away from the checkout."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import tomllib
import zipfile
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
# The checkout is on the path of the tests' interpreter; -I takes that away and the target has to do.
OUTSIDE = """
import sys
sys.path.insert(0, sys.argv[1])
import symfonic_pg
from symfonic_pg.assets import asset_dir
from symfonic_pg.postgres.migrations import head_revision, migration_sql
assert symfonic_pg.__file__.startswith(sys.argv[1]), symfonic_pg.__file__
for name in ("sql", "alembic"):
    assert str(asset_dir(name)).startswith(sys.argv[1]), asset_dir(name)
script = migration_sql(schema="elsewhere")
assert f"'{head_revision()}'" in script
print(script)
"""


@pytest.fixture(scope="module")
def wheel(tmp_path_factory: pytest.TempPathFactory) -> Path:
    output = tmp_path_factory.mktemp("dist")
    subprocess.run(
        [sys.executable, "-m", "build", "--no-isolation", "--outdir", output, ROOT],
        check=True, capture_output=True, cwd=output,
    )  # fmt: skip
    [built] = output.glob("*.whl")
    assert len(list(output.glob("*.tar.gz"))) == 1
    return built


@pytest.fixture(scope="module")
def installed(wheel: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder like site-packages, with the wheel unpacked and a library `alembic` beside it."""
    target = tmp_path_factory.mktemp("site-packages")
    with zipfile.ZipFile(wheel) as archive:
        archive.extractall(target)
    import alembic

    shutil.copytree(Path(alembic.__file__).parent, target / "alembic")
    return target


def entries(wheel: Path) -> set[str]:
    with zipfile.ZipFile(wheel) as archive:
        return set(archive.namelist())


def tracked(*folders: str) -> list[str]:
    listing = subprocess.run(
        ["git", "ls-files", "--cached", "--others", "--exclude-standard", "-z", *folders],
        cwd=ROOT, capture_output=True, text=True, check=False,
    )  # fmt: skip
    if listing.returncode != 0:
        pytest.skip("not a git checkout")
    return [name for name in listing.stdout.split("\0") if name and (ROOT / name).is_file()]


def test_the_wheel_holds_every_file_of_sql_and_alembic_and_no_other(wheel: Path) -> None:
    expected = {f"symfonic_pg/_{name}" for name in tracked("sql", "alembic")}
    folders = ("symfonic_pg/_sql/", "symfonic_pg/_alembic/")
    shipped = {name for name in entries(wheel) if name.startswith(folders)}
    assert shipped == expected
    assert "symfonic_pg/_sql/schema.sql" in shipped
    assert "symfonic_pg/_alembic/env.py" in shipped


def test_the_wheel_holds_the_package_and_nothing_beside_it(wheel: Path) -> None:
    names = entries(wheel)
    assert {name for name in names if ".dist-info/" not in name} == {
        *tracked("symfonic_pg"),
        *(f"symfonic_pg/_{name}" for name in tracked("sql", "alembic")),
    }
    assert "symfonic_pg/py.typed" in names
    assert any(name.endswith("licenses/LICENSE") for name in names)


def test_it_works_outside_the_checkout(installed: Path, tmp_path: Path) -> None:
    printed = subprocess.run(
        [sys.executable, "-I", "-c", OUTSIDE, installed],
        cwd=tmp_path, capture_output=True, text=True, check=False, env={"PATH": os.environ["PATH"]},
    )  # fmt: skip
    assert printed.returncode == 0, printed.stderr
    assert 'CREATE TABLE "elsewhere".memories' in printed.stdout


def test_the_base_install_depends_on_nothing(wheel: Path) -> None:
    with zipfile.ZipFile(wheel) as archive:
        [metadata] = [name for name in archive.namelist() if name.endswith(".dist-info/METADATA")]
        lines = archive.read(metadata).decode().splitlines()
        [entry_points] = [name for name in archive.namelist() if name.endswith("entry_points.txt")]
        assert "symfonic-pg = symfonic_pg.cli:main" in archive.read(entry_points).decode()
    required = [line for line in lines if line.startswith("Requires-Dist:")]
    assert required
    assert all("extra ==" in line for line in required)


def test_extras_that_name_each_other_exist() -> None:
    extras = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]["optional-dependencies"]
    named = {
        extra
        for requirements in extras.values()
        for requirement in requirements
        if requirement.startswith("symfonic-pg[")
        for extra in requirement.removeprefix("symfonic-pg[").removesuffix("]").split(",")
    }
    assert named
    assert named <= set(extras)


def test_alembic_stays_a_folder() -> None:
    # A package of that name at the top would hide the library from whatever runs there.
    assert not (ROOT / "alembic" / "__init__.py").exists()
