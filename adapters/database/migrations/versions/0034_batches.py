"""Batches that have ended without LOADER_FINISHED having been published."""

import sqlalchemy as sa
from alembic import op

revision = "0034"
down_revision = "0033"

UNANNOUNCED = sa.text("unannounced_since IS NOT NULL")


def upgrade() -> None:
    # Of batches that ended before nothing is known: none of them is announced again.
    op.add_column("batches", sa.Column("unannounced_since", sa.DateTime(timezone=True)))
    op.create_index(
        "ix_batches_unannounced_since",
        "batches",
        ["unannounced_since"],
        postgresql_where=UNANNOUNCED,
        sqlite_where=UNANNOUNCED,
    )
