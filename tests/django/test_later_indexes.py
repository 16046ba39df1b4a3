"""A made-up later migration of Django's that indexes a table which may be large."""

from __future__ import annotations

import shutil
import threading
from collections.abc import Callable
from pathlib import Path

import psycopg
import pytest

from symfonic_pg.assets import asset_dir
from symfonic_pg.postgres.migrations import current_revision, head_revision
from tests.django.conftest import Project
from tests.migration.catalogue import catalogue
from tests.migration.test_later_indexes import BUILT, FILL, INDEXES, _until, is_free
from tests.migration.test_migrations import one, run

LATER = """\
from django.db import migrations
from symfonic_pg.contrib.django.operations import BuildIndexes


class Migration(migrations.Migration):
    atomic = {atomic}
    dependencies = [("symfonic_pg", "{before}")]
    operations = [BuildIndexes(revision="9999", after="{revision}", script="9999_later")]
"""
# Django's command, for a package that is one revision longer than ours.
MANAGE = """
import pathlib, sys
sys.path.insert(0, {folder!r})
from symfonic_pg import assets
assets._PACKAGE = pathlib.Path({folder!r}) / "package"
from django.core.management import execute_from_command_line
execute_from_command_line(["manage.py", *sys.argv[1:]])
"""
Manage = Callable[..., str]


@pytest.fixture
def manage(project: Callable[..., Project], database: str, tmp_path: Path) -> Callable[..., Manage]:
    """Makes manage.py of a project with such a migration."""

    def make(atomic: bool = False) -> Manage:
        for name in ("sql", "alembic"):
            shutil.copytree(asset_dir(name), tmp_path / "package" / f"_{name}")
        (tmp_path / "package" / "_sql" / "migrations" / "9999_later.sql").write_text(INDEXES)
        folder = tmp_path / "later_migrations"
        folder.mkdir()
        (folder / "__init__.py").touch()
        ours = Path(__file__).parents[2] / "symfonic_pg" / "contrib" / "django" / "migrations"
        for script in ours.glob("0*.py"):
            shutil.copy(script, folder)
        before = max(script.stem for script in folder.glob("0*.py"))
        text = LATER.format(atomic=atomic, before=before, revision=head_revision())
        (folder / "later.py").write_text(text)
        host = project(database, MIGRATION_MODULES={"symfonic_pg": "later_migrations"})
        return lambda *arguments, **options: host.python(
            "-c", MANAGE.format(folder=str(tmp_path)), *arguments, **options
        )

    return make


def test_indexes_are_built_while_their_tables_are_written(
    database: str, manage: Callable[..., Manage]
) -> None:
    run(database, FILL)
    command = manage()
    command("migrate", "symfonic_pg", "0001_initial")
    builder = threading.Thread(target=command, args=("migrate", "symfonic_pg"))
    with psycopg.connect(database) as old:
        old.execute("UPDATE symfonic.scopes SET depth = 1 WHERE tenant_id = 'org:1'")
        builder.start()
        _until(lambda: one(database, "SELECT count(*) FROM pg_index WHERE NOT indisvalid") == 1)
        with psycopg.connect(database) as writer:
            writer.execute("SET lock_timeout = '1s'")
            writer.execute("UPDATE symfonic.scopes SET depth = 1 WHERE tenant_id = 'org:2'")
        assert not is_free(database)
    builder.join(60)
    assert current_revision(database) == "9999"
    assert one(database, BUILT) == 2
    assert is_free(database)
    command("migrate", "symfonic_pg", "0001_initial")
    assert current_revision(database) == head_revision()
    assert one(database, BUILT) == 0
    assert len(catalogue(database)) > 100


def test_a_build_that_failed_is_done_anew_by_the_next_attempt(
    database: str, manage: Callable[..., Manage]
) -> None:
    run(database, "INSERT INTO symfonic.models (name, dimension) VALUES ('one', 5), ('two', 5)")
    command = manage()
    assert "models_later" in command("migrate", "symfonic_pg", fails=True)
    assert current_revision(database) == head_revision()
    assert one(database, "SELECT count(*) FROM pg_index WHERE NOT indisvalid") == 1
    assert is_free(database)
    run(database, "DELETE FROM symfonic.models WHERE name = 'two'")
    command("migrate", "symfonic_pg")
    assert current_revision(database) == "9999"
    assert one(database, BUILT) == 2


def test_what_would_be_run_can_be_printed(database: str, manage: Callable[..., Manage]) -> None:
    printed = manage()("sqlmigrate", "symfonic_pg", "later")
    assert "CREATE INDEX CONCURRENTLY IF NOT EXISTS scopes_later" in printed
    assert "BEGIN;" not in printed
    assert one(database, BUILT) == 0


def test_a_migration_that_forgets_to_leave_its_transaction_says_so(
    database: str, manage: Callable[..., Manage]
) -> None:
    assert "atomic = False" in manage(atomic=True)("migrate", "symfonic_pg", fails=True)
    assert current_revision(database) == head_revision()
