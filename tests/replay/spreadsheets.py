"""Recorded cases of `spreadsheets`, by workflow."""

from tests.replay import spreadsheets_cases, spreadsheets_parked_cases

CASES_OF = {
    "SpreadsheetImport": {**spreadsheets_cases.CASES, **spreadsheets_parked_cases.CASES},
    "SpreadsheetUndo": spreadsheets_cases.UNDO_CASES,
    "SpreadsheetRetention": spreadsheets_cases.RETENTION_CASES,
}
