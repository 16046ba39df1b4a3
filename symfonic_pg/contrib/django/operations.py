"""The migration operation that runs the frozen SQL files, the same that Alembic runs."""

from __future__ import annotations

from typing import Any

from django.db import router
from django.db.migrations.exceptions import IrreversibleError
from django.db.migrations.operations.base import Operation

from symfonic_pg.assets import asset_dir
from symfonic_pg.contrib.django.configuration import Configuration, configured
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
        stands = migration.stands()
        if stands is not None and stands >= self.revision:
            return
        if stands != self.after and not migration.printed:
            raise IrreversibleError(
                f"revision {self.revision} follows {self.after}, the schema stands at {stands}"
            )
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

    def _first(self, name: str) -> Any:
        with self._editor.connection.cursor() as cursor:
            cursor.execute(load_statement(name, schema=self._configuration.schema).text)
            row = cursor.fetchone()
        return None if row is None else row[0]
