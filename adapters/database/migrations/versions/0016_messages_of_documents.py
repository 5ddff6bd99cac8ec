"""Checkpoints by the content of their message, versions of documents, messages that failed."""

import sqlalchemy as sa
from alembic import op

revision = "0016"
down_revision = "0014"

MOMENT = sa.DateTime(timezone=True)


def key(*names: str) -> list[sa.Column[str]]:
    return [sa.Column(name, sa.Text(), nullable=False) for name in names]


def texts(*names: str) -> list[sa.Column[str]]:
    return [sa.Column(name, sa.Text()) for name in names]


def upgrade() -> None:
    with op.batch_alter_table("process_checkpoints") as table:
        table.add_column(
            sa.Column("message_key", sa.Text(), nullable=False, server_default=sa.text("''"))
        )
        table.drop_constraint("pk_process_checkpoints", type_="primary")
        table.create_primary_key(
            "pk_process_checkpoints",
            ["case_id", "batch_id", "document_id", "event_type", "step", "message_key"],
        )
    op.add_column("documents", sa.Column("message_key", sa.Text()))
    op.add_column("documents", sa.Column("sent_at", MOMENT))
    op.create_table(
        "document_versions",
        sa.Column("case_id", sa.BigInteger(), nullable=False),
        *key("document_id", "version"),
        sa.Column("batch_id", sa.BigInteger(), nullable=False),
        sa.Column("blob_name", sa.Text(), nullable=False),
        *texts("filename", "etag", "sha256", "media_type", "title", "tags", "text"),
        sa.Column("size", sa.BigInteger()),
        sa.Column("sent_at", MOMENT),
        sa.Column("kept_at", MOMENT, nullable=False),
        sa.PrimaryKeyConstraint(
            "case_id", "document_id", "version", name="pk_document_versions"
        ),
    )
    op.create_table(
        "failed_messages",
        sa.Column("case_id", sa.BigInteger(), nullable=False),
        sa.Column("batch_id", sa.BigInteger(), nullable=False),
        *key("document_id", "message_key", "event_type", "reason", "message"),
        sa.Column("failed_at", MOMENT, nullable=False),
        sa.PrimaryKeyConstraint(
            "case_id", "batch_id", "document_id", "message_key", name="pk_failed_messages"
        ),
    )
