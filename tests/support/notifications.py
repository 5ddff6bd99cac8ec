"""A notice to send, and what orders one."""

from datetime import UTC, datetime, timedelta
from typing import Any

from workflows.shared.notifications import (
    NextStep,
    Notification,
    NotificationInput,
    NotificationKind,
    notice_id,
)

WORKFLOW_ID = "spreadsheet/5f0c62b1-1f0a-4e0e-9b1e-0d7c9c3f2a11"
ID = notice_id(WORKFLOW_ID, "reminder", 1)
SINCE = datetime(2026, 2, 3, 10, 15, tzinfo=UTC)


def a_notice(**changes: Any) -> Notification:
    """A reminder."""
    values = {
        "id": ID,
        "kind": NotificationKind.REMINDER,
        "pipeline": "spreadsheets",
        "workflow_id": WORKFLOW_ID,
        "run_id": "0190",
        "at": SINCE + timedelta(days=3),
        "title": "Spreadsheet Anmeldungen März.xlsx",
        "state": "CELL_MAPPING",
        "reason": "2 values have no meaning yet.",
        "steps": (NextStep(does="stop it", command=f"docflow cancel {WORKFLOW_ID}"),),
        "link": "https://docflow.example.com/imports/5f0c62b1",
        "recipients": ("lovelace@example.com",),
        "waiting_since": SINCE,
        "gives_up_at": SINCE + timedelta(days=90),
        "assignee": "lovelace",
        "notify": "lovelace@example.com",
        "about": {"organisation_id": 1, "import_type": "EVENT_PARTICIPANT"},
    }
    return Notification(**{**values, **changes})


def an_order(
    workflow_id: str, kind: NotificationKind = NotificationKind.PARKED, **changes: Any
) -> NotificationInput:
    """What a parked run says of itself."""
    values = {
        "id": notice_id(workflow_id, kind),
        "kind": kind,
        "workflow_id": workflow_id,
        "run_id": "0190",
        "at": SINCE,
        "state": "parked",
        "reason": "rows: the disk is full",
        "answers": ("retry", "skip", "fail"),
    }
    return NotificationInput(**{**values, **changes})
