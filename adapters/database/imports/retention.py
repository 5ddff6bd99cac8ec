"""Rows of imports and of rejected messages whose time is over."""

from typing import Final

from sqlalchemy import func, true

from adapters.database.engine import Database
from adapters.database.models.imports import (
    FINAL,
    HAS_PROBLEMS,
    import_tasks,
    rejected_messages,
)
from adapters.database.retention import SqlOldRows

_ENDED: Final = import_tasks.c.state.in_([state.value for state in FINAL])


def old_problems(database: Database) -> SqlOldRows:
    """Problems and reports of imports that have ended; the status rows stay."""
    tasks = import_tasks
    return SqlOldRows(
        database,
        tasks,
        tasks.c.finished_at,
        HAS_PROBLEMS & _ENDED,
        blob=tasks.c.report,
        emptied={"problems": "[]", "report": None, "problems_removed_at": func.now()},
    )


def old_imports(database: Database) -> SqlOldRows:
    """Status rows of imports that have ended, with their reports."""
    tasks = import_tasks
    return SqlOldRows(database, tasks, tasks.c.finished_at, _ENDED, blob=tasks.c.report)


def old_resubmitted(database: Database) -> SqlOldRows:
    """Rejected messages that were sent again."""
    return SqlOldRows(database, rejected_messages, rejected_messages.c.resubmitted_at, true())


def old_rejected(database: Database) -> SqlOldRows:
    """Rejected messages that were never sent again."""
    messages = rejected_messages
    return SqlOldRows(
        database, messages, messages.c.received_at, messages.c.resubmitted_at.is_(None)
    )
