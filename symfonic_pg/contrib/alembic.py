"""A host's own Alembic beside the schema of a store: it leaves that alone, and may bring it up to date.

In the host's env.py:

    from symfonic_pg.contrib.alembic import include_name, include_object, upgrade

    context.configure(connection=connection, target_metadata=metadata,
                      include_object=include_object, include_name=include_name)
    with context.begin_transaction():
        upgrade(connection)
        context.run_migrations()

Needs the extra `migrate`.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from contextlib import suppress
from functools import cache
from typing import Any

import alembic.context
from alembic.runtime.environment import EnvironmentContext
from sqlalchemy import Connection

from symfonic_pg.assets import asset_dir
from symfonic_pg.postgres.migration_guest import upgrade_on
from symfonic_pg.postgres.migration_scripts import VERSION_TABLE, MigrationError
from symfonic_pg.postgres.statements import load_statement, quoted_schema

with suppress(ImportError):
    # Teaches SQLAlchemy the type, which it would warn about whenever it looks at our tables.
    import pgvector.sqlalchemy  # noqa: F401

__all__ = ["Hooks", "include_name", "include_object", "upgrade"]


def upgrade(
    connection: Connection, *, schema: str = "symfonic", vectors: str | None = None, revision: str = "head"
) -> None:
    """Bring the schema of a store to `revision`, in the transaction that the connection is in.

    Commit and rollback are the host's; a connection that is in no transaction gets one of its own. In an
    env.py it does something while Alembic upgrades, and nothing while it checks, compares, stamps or
    downgrades. A revision of the host's may call it as well. `vectors` is where the extension goes in a
    database that has none. MigrationError says which statement helps where rights are missing; it is raised
    in --sql mode, too, for which `symfonic-pg migrate --sql` prints the script.
    """
    environment = _environment()
    if environment is not None:
        if environment.is_offline_mode():
            raise MigrationError("a script of its own comes from `symfonic-pg migrate --sql`")
        command = environment.context_opts.get("fn")
        if getattr(command, "__name__", "upgrade") != "upgrade":
            return
    upgrade_on(connection, schema=schema, vectors=vectors, revision=revision)


class Hooks:
    """Alembic's hooks for a host whose database holds the schema of a store, whatever its name.

    What lies in that schema is never proposed for dropping, and the store's own tables are never compared
    with anything. Both also where the host's search_path leads there, so that Alembic sees them without a
    schema; a host that keeps tables of its own there still sees those compared.
    """

    def __init__(self, schema: str = "symfonic") -> None:
        quoted_schema(schema)
        self.schema = schema

    def include_object(
        self, item: Any, name: str | None, type_: str, reflected: bool, compare_to: Any | None
    ) -> bool:
        """For `context.configure(include_object=…)`."""
        if type_ != "table" or not self._holds(item.schema, name):
            return True
        return name not in _own_tables() and not (reflected and compare_to is None)

    def include_name(self, name: str | None, type_: str, parent_names: Mapping[str, str | None]) -> bool:
        """For `context.configure(include_name=…)`: spares Alembic even the look at the store's tables."""
        if type_ != "table" or name not in _own_tables():
            return True
        return not self._holds(parent_names.get("schema_name"), name)

    def _holds(self, schema: str | None, name: str | None) -> bool:
        """Whether the schema of the store holds this table; without a schema the search_path decides."""
        return schema == self.schema if schema is not None else name in self._visible()

    def _visible(self) -> set[str]:
        environment = _environment()
        connection = environment.get_bind() if environment is not None else None
        if connection is None:
            return set()
        return set(
            connection.exec_driver_sql(load_statement("migrate_visible", schema=self.schema).text).scalars()
        )


def _environment() -> EnvironmentContext | None:
    """The environment of the host's Alembic, None where none is running."""
    environment: EnvironmentContext | None = vars(alembic.context).get("_proxy")
    return environment


@cache
def _own_tables() -> frozenset[str]:
    """The names of the store's tables, as its schema.sql has them."""
    text = (asset_dir("sql") / "schema.sql").read_text(encoding="utf-8")
    return frozenset(re.findall(r"\{schema\}\.(\w+) \($", text, re.MULTILINE)) | {VERSION_TABLE}


_hooks = Hooks()
include_object = _hooks.include_object
include_name = _hooks.include_name
