"""Bring a database to the schema that this version of the code expects, and back."""

from __future__ import annotations

import io
import os
import threading
from collections.abc import Callable
from functools import cache
from typing import TYPE_CHECKING

from symfonic_pg.assets import asset_dir
from symfonic_pg.memory.errors import SymfonicError
from symfonic_pg.postgres.migration_environment import Target, read_revision
from symfonic_pg.postgres.migration_scripts import MigrationError

if TYPE_CHECKING:
    from alembic.config import Config

# Alembic keeps the environment of a running command in module globals.
_one_command = threading.Lock()


@cache
def head_revision() -> str:
    """The revision that this code expects, read from the names of the packaged scripts; needs no Alembic."""
    scripts = (asset_dir("alembic") / "versions").glob("[0-9]*_*.py")
    return max(script.name.split("_", 1)[0] for script in scripts)


def migrate(
    dsn: str, *, schema: str = "symfonic", revision: str = "head", vectors: str | None = None
) -> None:
    """Upgrade the schema to `revision`, in one transaction; a second migrator waits for the first.

    Creates the schema and, where the database has none, the extension vector in the schema `vectors` (public
    unless named). Takes any form of DSN that the store takes. MigrationError where the server or the role's
    rights do not allow it, MemoryUnavailable where it cannot be reached. Blocks: in async code use a thread.
    """
    _run(lambda command, config: command.upgrade(config, revision), dsn, schema, vectors)


def downgrade(dsn: str, *, schema: str = "symfonic", revision: str = "base") -> None:
    """Take the schema back to `revision`, memories and all; base is a schema with an empty version table."""
    _run(lambda command, config: command.downgrade(config, revision), dsn, schema, None)


def migration_sql(*, schema: str = "symfonic", vectors: str = "public", revision: str = "head") -> str:
    """The script that takes an empty database to `revision`, for a person with the rights to run it.

    The extension vector is created in the schema `vectors` or must live there already.
    """
    script = io.StringIO()
    _run(lambda command, config: command.upgrade(config, revision, sql=True), "", schema, vectors, script)
    return script.getvalue()


def current_revision(dsn: str, *, schema: str = "symfonic") -> str | None:
    """The revision of the schema, None where it was never migrated or was taken back to base."""
    return read_revision(Target(dsn, schema))


def _run(
    action: Callable[..., None], dsn: str, schema: str, vectors: str | None, output: io.StringIO | None = None
) -> None:
    try:
        from alembic import command
        from alembic.config import Config
        from alembic.util import CommandError
    except ImportError as exc:
        raise SymfonicError("migrating needs Alembic: pip install 'symfonic-pg[migrate]'") from exc

    config = Config(output_buffer=output, attributes={"target": Target(dsn, schema, vectors)})
    _locate(config)
    with _one_command:
        try:
            action(command, config)
        except CommandError as exc:
            raise (
                exc.__cause__ if isinstance(exc.__cause__, SymfonicError) else MigrationError(str(exc))
            ) from exc


def _locate(config: Config) -> None:
    # ConfigParser reads a percent sign as the start of a reference.
    config.set_main_option("script_location", os.fspath(asset_dir("alembic")).replace("%", "%%"))
