"""What the store remembers about imports and messages."""

from typing import Any, Final

from sqlalchemy import (
    BigInteger,
    Boolean,
    Column,
    Index,
    LargeBinary,
    Table,
    Text,
    UniqueConstraint,
    text,
)

from adapters.database.models.base import BigId, UtcDateTime, metadata
from contracts.imports import Counts, ImportState

FINAL: Final = (
    ImportState.COMPLETED,
    ImportState.SKIPPED,
    ImportState.FAILED,
    ImportState.CANCELLED,
    ImportState.TERMINATED,
)
"""States in which nothing more is written for an import; only a terminated one begins again."""

HOLDING: Final = (
    ImportState.RUNNING,
    ImportState.PARKED,
    ImportState.COMPLETED,
    ImportState.FAILED,
)
"""States in which an import holds its guard against other tasks."""

COUNTS: Final = tuple(Counts.model_fields)


def _counts() -> list[Column[Any]]:
    return [Column(name, BigInteger, nullable=False, default=0) for name in COUNTS]


_NOT_COMPLETED = text("state <> 'completed'")
HAS_PROBLEMS: Final = text("(report IS NOT NULL OR problems <> '[]')")
"""Of rows from which problems and report can be removed."""
HOLDS: Final = text("guard IS NOT NULL AND state IN ('running', 'parked', 'completed', 'failed')")
"""Of rows whose import holds its guard; written out, so that any plan may use the index of them."""

import_tasks = Table(
    "import_tasks",
    metadata,
    Column("project_id", Text, primary_key=True),
    Column("task_id", Text, primary_key=True),
    Column("document_type", Text, nullable=False),
    Column("state", Text, nullable=False),
    Column("strategy", Text),
    Column("path", Text),
    Column("guard", Text),
    Column("digest", Text),
    Column("run_id", Text),
    *_counts(),
    Column("problem_count", BigInteger, nullable=False, default=0),
    Column("problems", Text, nullable=False, default="[]"),
    Column("report", Text),
    Column("source_name", Text),
    Column("source_size", BigInteger),
    Column("source_sha256", Text),
    Column("filename", Text),
    Column("workflow_id", Text, nullable=False),
    Column("reason", Text),
    Column("note", Text),
    Column("corrections", Text),
    Column("problems_removed_at", UtcDateTime),
    Column("created_at", UtcDateTime, nullable=False),
    Column("started_at", UtcDateTime),
    Column("finished_at", UtcDateTime),
    Column("updated_at", UtcDateTime, nullable=False),
    Index(None, "task_id"),
    Index(None, "created_at"),
    Index(None, "project_id", "created_at"),
    Index(None, "document_type", "created_at"),
    Index(
        "ix_import_tasks_not_completed",
        *("state", "created_at"),
        postgresql_where=_NOT_COMPLETED,
        sqlite_where=_NOT_COMPLETED,
    ),
    Index(None, "finished_at"),
    Index(
        "ix_import_tasks_problems",
        "finished_at",
        postgresql_where=HAS_PROBLEMS,
        sqlite_where=HAS_PROBLEMS,
    ),
    Index(
        "uq_import_tasks_guard",
        *("project_id", "document_type", "guard"),
        unique=True,
        postgresql_where=HOLDS,
        sqlite_where=HOLDS,
    ),
)
"""`digest` is of the message that began the import, `run_id` of its run; None: it was begun by a
release that kept neither. `problems_removed_at` says when problems and report were removed because
their time was over.

Lists are short and sorted by time, so each filter has an index with the time. Nearly all rows are
completed, and these are not in the index of states."""

import_progress = Table(
    "import_progress",
    metadata,
    Column("id", BigId, primary_key=True),
    Column("project_id", Text, nullable=False),
    Column("task_id", Text, nullable=False),
    Column("cursor", BigInteger, nullable=False, default=0),
    *_counts(),
    Column("problem_count", BigInteger, nullable=False, default=0),
    Column("header", Text, nullable=False, default="[]"),
    Column("finished", Boolean, nullable=False, default=False),
    Column("retired", Text),
    Column("aside", Text),
    Column("staged_columns", Text),
    Column("updated_at", UtcDateTime, nullable=False),
    UniqueConstraint("project_id", "task_id"),
)
"""One open load; `id` is the `load_id` of what is kept aside for it."""

import_rejects = Table(
    "import_rejects",
    metadata,
    Column("id", BigId, primary_key=True),
    Column("load_id", BigInteger, nullable=False),
    Column("line", BigInteger, nullable=False),
    Column("cells", Text, nullable=False),
    Column("problems", Text, nullable=False),
    Index(None, "load_id", "line", "id"),
)

import_answers = Table(
    "import_answers",
    metadata,
    Column("project_id", Text, primary_key=True),
    Column("document_type", Text, primary_key=True),
    Column("question", Text, primary_key=True),
    Column("answer", Text, nullable=False),
    Column("task_id", Text, nullable=False),
    Column("answered_at", UtcDateTime, nullable=False),
)
"""What people said about the documents of a project and type, so that they are asked once."""

_NOT_RESUBMITTED = text("resubmitted_at IS NULL")

rejected_messages = Table(
    "rejected_messages",
    metadata,
    Column("id", BigId, primary_key=True),
    Column("queue", Text, nullable=False),
    Column("message_id", Text),
    Column("reason", Text, nullable=False),
    Column("description", Text, nullable=False),
    Column("body", LargeBinary, nullable=False),
    Column("body_sha256", Text, nullable=False, server_default=text("''")),
    Column("truncated", Boolean, nullable=False),
    Column("received_at", UtcDateTime, nullable=False),
    Column("resubmitted_at", UtcDateTime),
    UniqueConstraint("queue", "message_id", "body_sha256"),
    Index(None, "resubmitted_at"),
    Index(
        "ix_rejected_messages_open",
        *("received_at", "queue"),
        postgresql_where=_NOT_RESUBMITTED,
        sqlite_where=_NOT_RESUBMITTED,
    ),
)
"""`body_sha256` is of the whole body; empty in rows of earlier releases."""
