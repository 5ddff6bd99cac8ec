"""Cases, batches and their documents."""

from typing import Any

import sqlalchemy as sa
from alembic import op

revision = "0006"
down_revision = "0005"

MOMENT = sa.DateTime(timezone=True)


def key(name: str, kind: Any = sa.Text) -> sa.Column[Any]:
    return sa.Column(name, kind(), autoincrement=False, nullable=False)


def texts(*names: str) -> list[sa.Column[Any]]:
    return [sa.Column(name, sa.Text(), nullable=True) for name in names]


def moments(*names: str, nullable: bool = True) -> list[sa.Column[Any]]:
    return [sa.Column(name, MOMENT, nullable=nullable) for name in names]


def flag(name: str) -> sa.Column[Any]:
    return sa.Column(name, sa.Boolean(), nullable=False)


def number(name: str) -> sa.Column[Any]:
    return sa.Column(name, sa.Integer(), nullable=False)


def table(name: str, keys: list[sa.Column[Any]], *columns: sa.Column[Any]) -> None:
    op.create_table(
        name,
        *keys,
        *columns,
        sa.PrimaryKeyConstraint(*(column.name for column in keys), name=f"pk_{name}"),
    )


def case_and(*keys: sa.Column[Any]) -> list[sa.Column[Any]]:
    return [key("case_id", sa.BigInteger), *keys]


def index(name: str, *columns: str) -> None:
    op.create_index(f"ix_{name}_{'_'.join(columns)}", name, list(columns))


def upgrade() -> None:
    table(
        "cases",
        [key("id", sa.BigInteger)],
        sa.Column("max_processing_daemons", sa.Integer(), nullable=True),
    )
    table(
        "batches",
        case_and(key("batch_id", sa.BigInteger)),
        sa.Column("loader_status", sa.Text(), nullable=False),
        *moments("loader_status_updated_at", nullable=False),
        *texts("reason", "purpose", "timings", "cancelled_mode"),
        *moments("job_finished_at", "end_finished_at"),
        flag("skipped"),
        number("redrive_pass"),
        flag("final_pass"),
        number("dead_letters"),
        *moments("created_at", "updated_at", nullable=False),
    )
    index("batches", "updated_at")
    create_documents()
    create_temporary()


def create_documents() -> None:
    table(
        "documents",
        case_and(key("document_id")),
        sa.Column("batch_id", sa.BigInteger(), nullable=False),
        sa.Column("state", sa.Text(), nullable=False),
        *texts("blob_name", "filename", "etag", "sha256", "media_type", "title", "author"),
        sa.Column("size", sa.BigInteger(), nullable=True),
        *moments("created_at", "modified_at"),
        sa.Column("pages", sa.Integer(), nullable=True),
        *texts("metadata", "notes", "reason", "failed_event", "duplicate_of"),
        flag("truncated"),
        *moments("updated_at", nullable=False),
    )
    index("documents", "case_id", "batch_id", "state")
    index("documents", "case_id", "sha256")
    text = sa.Column("text", sa.Text(), nullable=False)
    table("document_texts", case_and(key("document_id")), text)
    table("document_relations", case_and(key("document_id"), key("related_id"), key("kind")))
    table("document_messages", case_and(key("document_id"), key("message_key")), flag("own"))
    index("document_messages", "case_id", "message_key")
    tag = sa.Column("tag", sa.Text(), nullable=False)
    table("document_tags", case_and(key("document_id"), key("tag_key")), tag)
    table(
        "attachments",
        case_and(key("document_id"), key("blob_key")),
        sa.Column("blob_name", sa.Text(), nullable=False),
        sa.Column("filename", sa.Text(), nullable=False),
        sa.Column("size", sa.BigInteger(), nullable=False),
        *texts("sha256"),
    )


def create_temporary() -> None:
    batch = sa.BigInteger
    document = sa.Column("document_id", sa.Text(), nullable=False)
    table("doc_dedupe", case_and(key("batch_id", batch), key("sha256")), document)
    tag = sa.Column("tag", sa.Text(), nullable=False)
    table("tag_dedupe", case_and(key("batch_id", batch), key("tag_key")), tag)
    table(
        "process_checkpoints",
        case_and(key("batch_id", batch), key("document_id"), key("event_type"), key("step")),
        *moments("done_at", nullable=False),
    )
