"""Indexes for lists and for the removal of old rows; when problems of an import were removed."""

import sqlalchemy as sa
from alembic import op

revision = "0029"
down_revision = "0027"

NOT_COMPLETED = sa.text("state <> 'completed'")
HAS_PROBLEMS = sa.text("(report IS NOT NULL OR problems <> '[]')")
NOT_RESUBMITTED = sa.text("resubmitted_at IS NULL")


def index(name: str, table: str, *columns: str, where: sa.TextClause | None = None) -> None:
    op.create_index(name, table, list(columns), postgresql_where=where, sqlite_where=where)


def upgrade() -> None:
    op.add_column("import_tasks", sa.Column("problems_removed_at", sa.DateTime(timezone=True)))
    for columns in (
        ("project_id", "created_at"),
        ("document_type", "created_at"),
        ("finished_at",),
    ):
        index(f"ix_import_tasks_{'_'.join(columns)}", "import_tasks", *columns)
    index(
        "ix_import_tasks_not_completed",
        *("import_tasks", "state", "created_at"),
        where=NOT_COMPLETED,
    )
    index("ix_import_tasks_problems", "import_tasks", "finished_at", where=HAS_PROBLEMS)
    index("ix_rejected_messages_resubmitted_at", "rejected_messages", "resubmitted_at")
    index(
        "ix_rejected_messages_open",
        *("rejected_messages", "received_at", "queue"),
        where=NOT_RESUBMITTED,
    )
    index("ix_documents_updated_at", "documents", "updated_at")
    for columns in (("queue", "at"), ("account_id", "at"), ("run",)):
        index(f"ix_transfers_{'_'.join(columns)}", "transfers", *columns)
