"""Webhooks of jobs: secrets, messages, deliveries, hosts that are left alone; foreign ids."""

import sqlalchemy as sa
from alembic import op

revision = "0010"
down_revision = "0009"

MOMENT = sa.DateTime(timezone=True)


def upgrade() -> None:
    op.create_table(
        "webhook_secrets",
        sa.Column("reference", sa.Text(), nullable=False),
        sa.Column("job_id", sa.Text(), nullable=False),
        sa.Column("encrypted", sa.LargeBinary(), nullable=False),
        sa.Column("created_at", MOMENT, nullable=False),
        sa.PrimaryKeyConstraint("reference", name="pk_webhook_secrets"),
    )
    op.create_table(
        "webhook_messages",
        sa.Column("id", sa.Text(), nullable=False),
        sa.Column("job_id", sa.Text(), nullable=False),
        sa.Column("body", sa.LargeBinary(), nullable=False),
        sa.Column("created_at", MOMENT, nullable=False),
        sa.PrimaryKeyConstraint("id", name="pk_webhook_messages"),
    )
    op.create_table(
        "webhook_deliveries",
        sa.Column("job_id", sa.Text(), nullable=False),
        sa.Column("attempt", sa.Integer(), nullable=False),
        sa.Column("number", sa.Integer(), nullable=False),
        sa.Column("redelivery", sa.Integer(), nullable=False),
        sa.Column("delivery_attempt", sa.Integer(), nullable=False),
        sa.Column("ordered", sa.Text(), nullable=False),
        sa.Column("result", sa.Text(), nullable=False),
        sa.Column("seconds", sa.Float(), nullable=False),
        sa.Column("sent_at", MOMENT, nullable=False),
        sa.PrimaryKeyConstraint(
            "job_id",
            "attempt",
            "number",
            "redelivery",
            "delivery_attempt",
            name="pk_webhook_deliveries",
        ),
    )
    op.create_index(
        "ix_webhook_deliveries_job_id_sent_at", "webhook_deliveries", ["job_id", "sent_at"]
    )
    op.create_table(
        "webhook_hosts",
        sa.Column("host", sa.Text(), nullable=False),
        sa.Column("failures", sa.BigInteger(), nullable=False),
        sa.Column("open_until", MOMENT),
        sa.Column("updated_at", MOMENT, nullable=False),
        sa.PrimaryKeyConstraint("host", name="pk_webhook_hosts"),
    )
    op.create_table(
        "job_aliases",
        sa.Column("alias", sa.Text(), nullable=False),
        sa.Column("digest", sa.Text(), nullable=False),
        sa.Column("job_id", sa.Text(), nullable=False),
        sa.Column("created_at", MOMENT, nullable=False),
        sa.PrimaryKeyConstraint("alias", name="pk_job_aliases"),
    )
