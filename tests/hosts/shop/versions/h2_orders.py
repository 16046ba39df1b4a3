"""Orders."""

import sqlalchemy as sa
from alembic import op

revision = "h2"
down_revision = "h1"


def upgrade() -> None:
    op.create_table(
        "orders",
        sa.Column("id", sa.Integer, primary_key=True),
        sa.Column("customer_id", sa.Integer, sa.ForeignKey("customers.id"), nullable=False),
    )


def downgrade() -> None:
    op.drop_table("orders")
