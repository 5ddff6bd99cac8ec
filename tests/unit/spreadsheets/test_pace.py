"""How fast an import works, from the counts and times that it has."""

from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from activities.spreadsheets.records import Pace, SpreadsheetRow
from workers.spreadsheets.pages import labels
from workflows.spreadsheets.mappings import Layout, SpreadsheetState
from workflows.spreadsheets.runs import RowCounts

NOW = datetime(2026, 1, 5, 12, tzinfo=UTC)
ROW = SpreadsheetRow(
    uuid="0d2f8a52-6c1e-4d4e-9d8f-5b1a7f0c2b11",
    workflow_id="w",
    organisation_id=1,
    import_type="RESULT",
    context_id=1,
    filename="a.csv",
    by="ada",
    auto_start=False,
    dry_run=False,
    fingerprint=None,
    state=SpreadsheetState.PROCESSING,
    state_since=NOW - timedelta(seconds=10),
    step="process rows",
    reason=None,
    assignee="ada",
    waiting_since=None,
    version=1,
    revision=1,
    total=10_000,
    counts=RowCounts(created=2_000, error=400),
    parked=100,
    values_total=0,
    open_values=0,
    layout=Layout(),
    report=None,
    undo_state=None,
    created_at=NOW,
    updated_at=NOW,
    finished_at=None,
    purged_at=None,
)


def test_rows_that_are_processed_have_a_rate_and_an_end() -> None:
    assert ROW.pace(NOW) == Pace(250.0, 30)


def test_rows_that_are_read_have_a_rate() -> None:
    reading = ROW.model_copy(update={"state": SpreadsheetState.COLUMN_MAPPING, "total": 5_000})
    assert reading.pace(NOW) == Pace(500.0)


@pytest.mark.parametrize(
    "changes",
    [
        {"waiting_since": NOW},
        {"state_since": NOW - timedelta(seconds=1)},
        {"mark_round": 1},
        {"total": None},
        {"counts": RowCounts(), "parked": 0},
        {"counts": RowCounts(created=10_000), "parked": 0},
        {"state": SpreadsheetState.CELL_MAPPING},
        {"state": SpreadsheetState.COMPLETED},
    ],
)
def test_no_pace_is_given_where_nothing_is_known(changes: dict[str, Any]) -> None:
    assert ROW.model_copy(update=changes).pace(NOW) is None


def test_paces_have_words() -> None:
    assert [labels.speed(rate) for rate in (812.4, 1.2, 0.1)] == [
        *("812 rows a second", "1 row a second", "6 rows a minute")
    ]
    assert [labels.length(each) for each in (5, 45, 61, 3_700, 90_000)] == [
        *("a few seconds", "a minute", "2 minutes", "2 hours", "2 days")
    ]
