"""${message}"""

from symfonic_pg.postgres.migration_environment import run_file

revision = ${repr(up_revision)}
down_revision = ${repr(down_revision)}
branch_labels = ${repr(branch_labels)}
depends_on = ${repr(depends_on)}


def upgrade() -> None:
    run_file("${up_revision}.sql")


def downgrade() -> None:
    run_file("${up_revision}_down.sql")
