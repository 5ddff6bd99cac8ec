"""What watches saw, and the days of expected files."""

import sqlalchemy as sa
from alembic import op

revision = "0014"
down_revision = "0013"

MOMENT = sa.DateTime(timezone=True)


def upgrade() -> None:
    op.create_table(
        "watched_files",
        sa.Column("watch", sa.Text(), nullable=False),
        sa.Column("path", sa.Text(), nullable=False),
        sa.Column("size", sa.BigInteger(), nullable=False),
        sa.Column("changed", MOMENT),
        sa.Column("tag", sa.Text()),
        sa.Column("since", MOMENT, nullable=False),
        sa.Column("event", sa.Text()),
        sa.Column("problem", sa.Text()),
        sa.Column("vanished", MOMENT),
        sa.PrimaryKeyConstraint("watch", "path", name="pk_watched_files"),
    )
    op.create_index("ix_watched_files_watch_vanished", "watched_files", ["watch", "vanished"])
    op.create_table(
        "watch_states",
        sa.Column("watch", sa.Text(), nullable=False),
        sa.Column("record", sa.Text(), nullable=False),
        sa.PrimaryKeyConstraint("watch", name="pk_watch_states"),
    )
    op.create_table(
        "expected_days",
        sa.Column("name", sa.Text(), nullable=False),
        sa.Column("day", sa.Date(), nullable=False),
        sa.Column("state", sa.Text(), nullable=False),
        sa.Column("record", sa.Text(), nullable=False),
        sa.PrimaryKeyConstraint("name", "day", name="pk_expected_days"),
    )
    op.create_index("ix_jobstatus_queue_at", "jobstatus", ["queue", "at"])
