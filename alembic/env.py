"""What Alembic runs around the revisions: by `symfonic-pg migrate` and by `alembic upgrade`.

Options: `-x dsn=…` (else the environment variable SYMFONIC_PG_DSN), `-x schema=symfonic`, `-x vectors=public`
(the schema of pgvector where the database has none yet, and in --sql).
"""

import os

from alembic import context
from alembic.util import CommandError

from symfonic_pg.memory.errors import SymfonicError
from symfonic_pg.postgres.migration_environment import Target, print_script, run_online

options = context.get_x_argument(as_dictionary=True)
target = context.config.attributes.get("target") or Target(
    dsn=options.get("dsn") or os.environ.get("SYMFONIC_PG_DSN", ""),
    schema=options.get("schema", "symfonic"),
    vectors=options.get("vectors"),
)

if not (target.dsn or "target" in context.config.attributes or context.is_offline_mode()):
    raise CommandError("no database is named: set SYMFONIC_PG_DSN or give -x dsn=postgresql://…")

try:
    if context.is_offline_mode():
        print_script(context, target)
    else:
        run_online(context, target)
except SymfonicError as exc:
    raise CommandError(str(exc)) from exc
