"""Customers and orders, and a garage."""

import sqlalchemy as sa
from alembic import op

revision = "h1"
down_revision = None


def upgrade() -> None:
    op.create_table(
        "customers",
        sa.Column("id", sa.Integer, primary_key=True),
        sa.Column("name", sa.String(100), nullable=False),
    )
    op.create_index("ix_customers_name", "customers", ["name"])
    op.execute("CREATE SCHEMA garage")
    op.create_table(
        "models",
        sa.Column("id", sa.Integer, primary_key=True),
        sa.Column("name", sa.String(50), nullable=False, unique=True),
        schema="garage",
    )


def downgrade() -> None:
    op.drop_table("models", schema="garage")
    op.execute("DROP SCHEMA garage")
    op.drop_table("customers")
