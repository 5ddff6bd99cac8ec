"""Rows say by which message and run they were begun, for longer than Temporal keeps the run."""

import sqlalchemy as sa
from alembic import op

revision = "0008"
down_revision = "0007"


def upgrade() -> None:
    op.add_column("import_tasks", sa.Column("digest", sa.Text()))
    op.add_column("import_tasks", sa.Column("run_id", sa.Text()))
    op.add_column("process_checkpoints", sa.Column("digest", sa.Text()))
