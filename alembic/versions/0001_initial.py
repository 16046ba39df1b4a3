"""Scopes, memories, embeddings, usage, associations and turns, with the functions that read them."""

from symfonic_pg.postgres.migration_environment import run_file

revision = "0001"
down_revision = None
branch_labels = None
depends_on = None


def upgrade() -> None:
    run_file("0001_initial.sql")


def downgrade() -> None:
    run_file("0001_initial_down.sql")
