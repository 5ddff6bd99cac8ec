"""Transfers: their states, turns, routes and partners."""

import sqlalchemy as sa
from alembic import op

revision = "0011"
down_revision = "0010"

MOMENT = sa.DateTime(timezone=True)


def _texts(*names: str) -> list[sa.Column[str]]:
    return [sa.Column(name, sa.Text()) for name in names]


def upgrade() -> None:
    op.create_table(
        "transfers",
        sa.Column("transfer_id", sa.Text(), nullable=False),
        *_texts("digest", "run"),
        sa.Column("status", sa.Text(), nullable=False),
        sa.Column("at", MOMENT, nullable=False),
        sa.Column("source", sa.Text(), nullable=False),
        sa.Column("event_id", sa.Text(), nullable=False),
        *_texts("account_id", "type", "subject", "queue", "job", "file", "reason", "by", "receipt"),
        *_texts("kept"),
        sa.PrimaryKeyConstraint("transfer_id", name="pk_transfers"),
    )
    op.create_index("ix_transfers_at", "transfers", ["at"])
    op.create_index("ix_transfers_status_at", "transfers", ["status", "at"])
    op.create_table(
        "jobstatus",
        sa.Column("transfer_id", sa.Text(), nullable=False),
        sa.Column("at", MOMENT, nullable=False),
        sa.Column("status", sa.Text(), nullable=False),
        *_texts("queue", "job", "file", "reason", "by"),
        sa.PrimaryKeyConstraint("transfer_id", "at", "status", name="pk_jobstatus"),
    )
    op.create_table(
        "transfer_turns",
        sa.Column("key", sa.Text(), nullable=False),
        sa.Column("run", sa.Text(), nullable=False),
        sa.Column("arrived", MOMENT, nullable=False),
        sa.Column("begun", sa.Boolean(), nullable=False),
        sa.PrimaryKeyConstraint("key", "run", name="pk_transfer_turns"),
    )
    op.create_index("ix_transfer_turns_run", "transfer_turns", ["run"])
    op.create_table(
        "jobconfig",
        sa.Column("queue", sa.Text(), nullable=False),
        sa.Column("rule", sa.Text(), nullable=False),
        sa.Column("record", sa.Text(), nullable=False),
        sa.PrimaryKeyConstraint("queue", "rule", name="pk_jobconfig"),
    )
    op.create_table(
        "jobconfig_changes",
        sa.Column(
            "id", sa.BigInteger().with_variant(sa.Integer(), "sqlite"), nullable=False
        ),
        sa.Column("queue", sa.Text(), nullable=False),
        sa.Column("rule", sa.Text(), nullable=False),
        sa.Column("change", sa.Text(), nullable=False),
        sa.Column("record", sa.Text(), nullable=False),
        sa.Column("at", MOMENT, nullable=False),
        sa.PrimaryKeyConstraint("id", name="pk_jobconfig_changes"),
    )
    op.create_table(
        "partners",
        sa.Column("name", sa.Text(), nullable=False),
        sa.Column("revision", sa.Integer(), nullable=False),
        sa.Column("record", sa.Text(), nullable=False),
        sa.PrimaryKeyConstraint("name", name="pk_partners"),
    )
    op.create_table(
        "partner_sessions",
        sa.Column("name", sa.Text(), nullable=False),
        sa.Column("owner", sa.Text(), nullable=False),
        sa.Column("until", MOMENT, nullable=False),
        sa.PrimaryKeyConstraint("name", "owner", name="pk_partner_sessions"),
    )
