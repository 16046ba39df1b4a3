"""The revisions of this package on a connection, and in a transaction, of somebody else's Alembic."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

from symfonic_pg.assets import asset_dir
from symfonic_pg.memory.errors import MemoryContractError
from symfonic_pg.postgres.migration_environment import translated
from symfonic_pg.postgres.migration_scripts import PATIENCE, VERSION_TABLE, in_turn, prepare

if TYPE_CHECKING:
    from alembic.runtime.migration import MigrationContext
    from sqlalchemy import Connection

# So many seconds a host's transaction waits for another migrator, whose indexes may in turn wait for its end.
_PATIENCE = 60.0
# What the files of the migrations set for their transaction.
_SETTINGS = ("lock_timeout", "client_min_messages", "check_function_bodies")


def upgrade_on(
    connection: Connection, *, schema: str = "symfonic", vectors: str | None = None, revision: str = "head"
) -> None:
    """Bring the schema to `revision` on this connection.

    In the transaction that it is in, which is left open and as it was; without one, in one of its own.
    MigrationError where server or rights do not allow it, or where indexes have to be built that no
    transaction can hold.
    """
    _check(connection)
    borrowed = connection.in_transaction()
    with translated():
        migration = _migration(connection, schema, revision, own_transaction=not borrowed)
        patience = _PATIENCE if borrowed else PATIENCE
        with _operations(migration), in_turn(migration.begin_transaction, connection, patience):
            before = _settings(connection) if borrowed else {}
            migration.opts["vectors_schema"] = prepare(connection, schema, vectors)
            migration.run_migrations()
            _restore(connection, before)


def _check(connection: Connection) -> None:
    from sqlalchemy import Connection

    rule = "a SQLAlchemy Connection to PostgreSQL, not in AUTOCOMMIT mode"
    if not isinstance(connection, Connection):
        got: object = type(connection).__name__
    elif connection.dialect.name != "postgresql":
        got = connection.dialect.name
    elif getattr(connection.connection.dbapi_connection, "autocommit", False):
        got = "AUTOCOMMIT"
    else:
        return
    raise MemoryContractError(f"connection must be {rule}, got {got}", field="connection", rule=rule, got=got)


def _migration(
    connection: Connection, schema: str, revision: str, *, own_transaction: bool
) -> MigrationContext:
    from alembic.runtime.migration import MigrationContext
    from alembic.script import ScriptDirectory

    script = ScriptDirectory(os.fspath(asset_dir("alembic")))

    def plan(stands: Any, _: MigrationContext) -> Any:
        return script._upgrade_revs(revision, stands)

    # Without an environment: the host's, if one is running, stays what `alembic.context` means.
    return MigrationContext.configure(
        connection=connection,
        opts={
            "fn": plan,
            "script": script,
            "version_table": VERSION_TABLE,
            "version_table_schema": schema,
            "own_transaction": own_transaction,
        },
    )


@contextmanager
def _operations(migration: MigrationContext) -> Iterator[None]:
    """`alembic.op` means our migration for the block, and then again whatever it meant before."""
    from alembic.operations import Operations

    outer = vars(sys.modules["alembic.op"]).get("_proxy")
    ours = Operations(migration)
    ours._install_proxy()
    try:
        yield
    finally:
        ours._remove_proxy()
        if outer is not None:
            outer._install_proxy()


def _settings(connection: Connection) -> dict[str, Any]:
    from sqlalchemy import func, select

    return {name: connection.scalar(select(func.current_setting(name))) for name in _SETTINGS}


def _restore(connection: Connection, settings: dict[str, Any]) -> None:
    from sqlalchemy import func, select

    for name, value in settings.items():
        connection.execute(select(func.set_config(name, value, True)))
