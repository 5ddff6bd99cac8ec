"""Imports, their progress and rejects, and rejected messages."""

from typing import Any

import sqlalchemy as sa
from alembic import op

revision = "0001"
down_revision = None

ID = sa.BigInteger().with_variant(sa.Integer(), "sqlite")
MOMENT = sa.DateTime(timezone=True)
COUNTS = ("created", "updated", "unchanged", "rejected", "deleted", "flagged", "problem_count")
HOLDS = sa.text("guard IS NOT NULL AND state IN ('running', 'parked', 'completed', 'failed')")


def texts(*names: str) -> list[sa.Column[Any]]:
    return [sa.Column(name, sa.Text()) for name in names]


def required_texts(*names: str) -> list[sa.Column[Any]]:
    return [sa.Column(name, sa.Text(), nullable=False) for name in names]


def counts() -> list[sa.Column[Any]]:
    return [sa.Column(name, sa.BigInteger(), nullable=False) for name in COUNTS]


def upgrade() -> None:
    op.create_table(
        "import_tasks",
        *required_texts("project_id", "task_id", "document_type", "state"),
        *texts("strategy", "path", "guard"),
        *counts(),
        *required_texts("problems"),
        *texts("report", "source_name"),
        sa.Column("source_size", sa.BigInteger()),
        *texts("source_sha256", "filename"),
        *required_texts("workflow_id"),
        *texts("reason", "note"),
        sa.Column("created_at", MOMENT, nullable=False),
        sa.Column("started_at", MOMENT),
        sa.Column("finished_at", MOMENT),
        sa.Column("updated_at", MOMENT, nullable=False),
        sa.PrimaryKeyConstraint("project_id", "task_id", name="pk_import_tasks"),
    )
    op.create_index("ix_import_tasks_task_id", "import_tasks", ["task_id"])
    op.create_index("ix_import_tasks_created_at", "import_tasks", ["created_at"])
    op.create_index(
        "uq_import_tasks_guard",
        "import_tasks",
        ["project_id", "document_type", "guard"],
        unique=True,
        postgresql_where=HOLDS,
        sqlite_where=HOLDS,
    )
    op.create_table(
        "import_progress",
        sa.Column("id", ID, nullable=False),
        *required_texts("project_id", "task_id"),
        sa.Column("cursor", sa.BigInteger(), nullable=False),
        *counts(),
        *required_texts("header"),
        sa.Column("finished", sa.Boolean(), nullable=False),
        *texts("retired", "aside", "staged_columns"),
        sa.Column("updated_at", MOMENT, nullable=False),
        sa.PrimaryKeyConstraint("id", name="pk_import_progress"),
        sa.UniqueConstraint("project_id", "task_id", name="uq_import_progress_project_id_task_id"),
    )
    op.create_table(
        "import_rejects",
        sa.Column("id", ID, nullable=False),
        sa.Column("load_id", sa.BigInteger(), nullable=False),
        sa.Column("line", sa.BigInteger(), nullable=False),
        *required_texts("cells", "problems"),
        sa.PrimaryKeyConstraint("id", name="pk_import_rejects"),
    )
    op.create_index(
        "ix_import_rejects_load_id_line_id", "import_rejects", ["load_id", "line", "id"]
    )
    op.create_table(
        "rejected_messages",
        sa.Column("id", ID, nullable=False),
        *required_texts("queue"),
        *texts("message_id"),
        *required_texts("reason", "description"),
        sa.Column("body", sa.LargeBinary(), nullable=False),
        sa.Column("truncated", sa.Boolean(), nullable=False),
        sa.Column("received_at", MOMENT, nullable=False),
        sa.Column("resubmitted_at", MOMENT),
        sa.PrimaryKeyConstraint("id", name="pk_rejected_messages"),
        sa.UniqueConstraint("queue", "message_id", name="uq_rejected_messages_queue_message_id"),
    )
