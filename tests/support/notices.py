"""A notice to send."""

from datetime import UTC, datetime
from typing import Any

from contracts.spreadsheets import Notice, SpreadsheetState

KEY = "spreadsheet/5f0c62b1-1f0a-4e0e-9b1e-0d7c9c3f2a11/reminder/7"
SINCE = datetime(2026, 2, 3, 10, 15, tzinfo=UTC)


def a_notice(**changes: Any) -> Notice:
    """A reminder."""
    values = {
        "kind": "reminder",
        "uuid": "5f0c62b1-1f0a-4e0e-9b1e-0d7c9c3f2a11",
        "organisation_id": 1,
        "import_type": "EVENT_PARTICIPANT",
        "filename": "Anmeldungen März.xlsx",
        "state": SpreadsheetState.CELL_MAPPING,
        "assignee": "lovelace",
        "notify": "lovelace@example.com",
        "waiting_since": SINCE,
        "open": "2 values have no meaning yet.",
        "link": "https://docflow.example.com/imports/5f0c62b1",
    }
    return Notice(**{**values, **changes})
