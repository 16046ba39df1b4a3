"""The migration operation that runs the frozen SQL files, the same that Alembic runs."""

from __future__ import annotations

import time
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from django.db import router
from django.db.migrations.exceptions import IrreversibleError
from django.db.migrations.operations.base import Operation

from symfonic_pg.assets import asset_dir
from symfonic_pg.contrib.django.configuration import Configuration, configured
from symfonic_pg.memory.errors import MemoryUnavailable
from symfonic_pg.postgres.migration_indexes import PATIENT, IndexBuild, index_builds
from symfonic_pg.postgres.migration_scripts import LOOK, PATIENCE
from symfonic_pg.postgres.statements import load_statement, quoted_schema


class RunRevision(Operation):
    """Takes a database's schema from one revision to the next, in the migration's transaction, or back.

    Only in the databases that SYMFONIC_PG_DATABASE names. The revision is written into the version table that
    `symfonic-pg migrate` keeps; what stands there already is not done again, so that either tool goes on
    where the other stopped.
    """

    reduces_to_sql = True
    reversible = True

    def __init__(self, revision: str, after: str | None, script: str) -> None:
        self.revision = revision
        self.after = after
        self.script = script

    def state_forwards(self, app_label: str, state: Any) -> None:
        """Nothing: the models over the views are operations of their own."""

    def database_forwards(self, app_label: str, schema_editor: Any, from_state: Any, to_state: Any) -> None:
        """Prepare schema and extension, then run the file unless the database has it."""
        migration = _Migration.on(schema_editor, app_label)
        if migration is None:
            return
        migration.run("prepare")
        if self._is_due(migration):
            migration.run(self.script)
            migration.run("stamp", revision=self.revision)

    def database_backwards(self, app_label: str, schema_editor: Any, from_state: Any, to_state: Any) -> None:
        """Take the file back unless the database is further back already."""
        migration = _Migration.on(schema_editor, app_label)
        if migration is None:
            return
        stands = self.revision if migration.printed else migration.stands()
        if stands is None or stands < self.revision:
            return
        if stands > self.revision:
            raise IrreversibleError(f"the schema stands at {stands}: take it back to {self.revision} first")
        migration.run(f"{self.script}_down")
        migration.run("stamp", revision=self.after or "")

    def describe(self) -> str:
        """What `migrate --plan` prints."""
        return f"Run sql/migrations/{self.script}.sql"

    def _is_due(self, migration: _Migration) -> bool:
        stands = migration.stands()
        if stands is not None and stands >= self.revision:
            return False
        if stands != self.after and not migration.printed:
            raise IrreversibleError(
                f"revision {self.revision} follows {self.after}, the schema stands at {stands}"
            )
        return True


class BuildIndexes(RunRevision):
    """Builds the indexes of a file that holds nothing else, concurrently: while their tables are written.

    Its migration does nothing else and says `atomic = False`. A build that fails leaves the database at the
    revision before, and is done anew by the next attempt.
    """

    def database_forwards(self, app_label: str, schema_editor: Any, from_state: Any, to_state: Any) -> None:
        """Build what is missing, one migrator at a time, unless the database has the revision."""
        migration = _Migration.on(schema_editor, app_label)
        if migration is None:
            return
        with migration.outside():
            if self._is_due(migration):
                migration.build(f"{self.script}.sql")
                migration.run("stamp", revision=self.revision)

    def database_backwards(self, app_label: str, schema_editor: Any, from_state: Any, to_state: Any) -> None:
        """Drop the indexes unless the database is further back already."""
        migration = _Migration.on(schema_editor, app_label)
        if migration is None:
            return
        with migration.outside():
            if migration.printed or migration.stands() == self.revision:
                migration.drop(f"{self.script}.sql")
                migration.run("stamp", revision=self.after or "")

    def describe(self) -> str:
        """What `migrate --plan` prints."""
        return f"Build the indexes of sql/migrations/{self.script}.sql"


class _Migration:
    """One database in one migration."""

    def __init__(self, schema_editor: Any, configuration: Configuration) -> None:
        self._editor = schema_editor
        self._configuration = configuration
        self._vectors = self._first("migrate_vectors") or configuration.vectors

    @classmethod
    def on(cls, schema_editor: Any, app_label: str) -> _Migration | None:
        """The migration of a database that holds a store, None for any other."""
        configuration, alias = configured(), schema_editor.connection.alias
        if alias not in configuration.databases or not router.allow_migrate(alias, app_label):
            return None
        return cls(schema_editor, configuration)

    @property
    def printed(self) -> bool:
        """Whether `sqlmigrate` collects the statements, and none is run."""
        return bool(self._editor.collect_sql)

    def stands(self) -> str | None:
        """The revision that the schema stands at."""
        if self.printed or not self._first("migrate_versioned"):
            return None
        revision: str | None = self._first("migrate_revision")
        return revision

    def run(self, name: str, *, revision: str = "") -> None:
        """Run one file of sql/migrations."""
        text = (asset_dir("sql") / "migrations" / f"{name}.sql").read_text(encoding="utf-8")
        text = text.replace("{schema}", quoted_schema(self._configuration.schema))
        text = text.replace("{vectors}", quoted_schema(self._vectors))
        # None, not an empty tuple: the files hold percent signs.
        self._editor.execute(text.replace("{revision}", revision), params=None)

    @contextmanager
    def outside(self) -> Iterator[None]:
        """For what no transaction can hold: the turn to migrate, for as long as the block lasts."""
        if self.printed:
            yield
            return
        if self._editor.connection.in_atomic_block:
            raise IrreversibleError("the migration of BuildIndexes has to say atomic = False")
        deadline = time.monotonic() + PATIENCE
        while not self._first("migrate_keep_lock"):
            if time.monotonic() > deadline:
                raise MemoryUnavailable("another migration of this database takes too long")
            time.sleep(LOOK)
        try:
            with self._patient():
                yield
        finally:
            self._first("migrate_drop_lock")

    def build(self, name: str) -> None:
        """Build what a file names; what an earlier attempt has left unfinished is dropped first."""
        broken = set() if self.printed else set(self._column("migrate_invalid_indexes"))
        for build in self._builds(name):
            if build.name in broken:
                self._drop(build)
            self._editor.execute(build.statement, params=None)

    def drop(self, name: str) -> None:
        """Drop what a file names."""
        for build in reversed(self._builds(name)):
            self._drop(build)

    def _builds(self, name: str) -> list[IndexBuild]:
        return index_builds(name, self._configuration.schema, self._vectors)

    def _drop(self, build: IndexBuild) -> None:
        statement = load_statement("migrate_drop_index", schema=self._configuration.schema, index=build.name)
        self._editor.execute(statement.text, params=None)

    @contextmanager
    def _patient(self) -> Iterator[None]:
        """No timeout of the project's ends a build that has to take long."""
        with self._editor.connection.cursor() as cursor:
            before = {name: _called(cursor, "current_setting", name) for name in PATIENT}
            for name, value in PATIENT.items():
                _called(cursor, "set_config", name, value, False)
            try:
                yield
            finally:
                for name, value in before.items():
                    _called(cursor, "set_config", name, value, False)

    def _column(self, name: str) -> list[Any]:
        with self._editor.connection.cursor() as cursor:
            cursor.execute(load_statement(name, schema=self._configuration.schema).text)
            return [row[0] for row in cursor.fetchall()]

    def _first(self, name: str) -> Any:
        with self._editor.connection.cursor() as cursor:
            cursor.execute(load_statement(name, schema=self._configuration.schema).text)
            row = cursor.fetchone()
        return None if row is None else row[0]


def _called(cursor: Any, function: str, *arguments: Any) -> Any:
    cursor.callproc(function, arguments)
    return cursor.fetchone()[0]
