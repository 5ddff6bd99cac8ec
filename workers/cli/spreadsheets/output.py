"""How commands show spreadsheets."""

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from contracts.spreadsheets import MappingStatus, RowCounts, SpreadsheetState
from workers.cli.output import text

if TYPE_CHECKING:
    from rich.text import Text

_STATES: Mapping[SpreadsheetState, str] = {
    SpreadsheetState.UPLOADED: "cyan",
    SpreadsheetState.COLUMN_MAPPING: "bold yellow",
    SpreadsheetState.CELL_MAPPING: "bold yellow",
    SpreadsheetState.PROCESSING: "cyan",
    SpreadsheetState.COMPLETED: "green",
    SpreadsheetState.FAILED: "bold red",
    SpreadsheetState.TERMINATED: "bold red",
    SpreadsheetState.CANCELLED: "magenta",
}
_MATCHES: Mapping[MappingStatus, str] = {
    MappingStatus.AUTO_MATCHED: "green",
    MappingStatus.MANUAL_MATCHED: "green",
    MappingStatus.UNMATCHED: "bold yellow",
    MappingStatus.IGNORED: "dim",
}


def spreadsheet_state(state: SpreadsheetState) -> "Text":
    """A state in its colour."""
    return text(state, _STATES[state])


def match(status: MappingStatus) -> "Text":
    """How far something is understood, in its colour."""
    return text(status, _MATCHES[status])


def row_counts(counts: RowCounts) -> str:
    """Outcome of the rows."""
    return ", ".join(f"{number:,} {name}" for name, number in counts.model_dump().items())


def as_json(value: object) -> Any:
    """A result of the service, for programs; times are ISO 8601."""
    from pydantic_core import to_jsonable_python

    return to_jsonable_python(value)
