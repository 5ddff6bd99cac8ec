"""Fields of case events that announcements pass on, and batches that are not known yet."""

import sqlalchemy as sa
from alembic import op

revision = "0018"
down_revision = "0017"


def upgrade() -> None:
    op.add_column("batches", sa.Column("passed_on", sa.Text()))
    op.add_column(
        "batches", sa.Column("known", sa.Boolean(), nullable=False, server_default=sa.true())
    )
