"""Leases of limited resources."""

import sqlalchemy as sa
from alembic import op

revision = "0027"
down_revision = "0026"


def upgrade() -> None:
    op.create_table(
        "leases",
        sa.Column(
            "position", sa.BigInteger().with_variant(sa.Integer(), "sqlite"), nullable=False
        ),
        sa.Column("resource", sa.Text(), nullable=False),
        sa.Column("owner", sa.Text(), nullable=False),
        sa.Column("units", sa.Integer(), nullable=False),
        sa.Column("granted", sa.Boolean(), nullable=False),
        sa.Column("expires_at", sa.DateTime(timezone=True), nullable=False),
        sa.PrimaryKeyConstraint("position", name="pk_leases"),
        sa.UniqueConstraint("resource", "owner", name="uq_leases_resource_owner"),
        sqlite_autoincrement=True,
    )
    op.create_index("ix_leases_owner", "leases", ["owner"])
