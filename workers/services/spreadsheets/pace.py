"""How fast an import works through its rows, and when it will be done; about."""

from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Final

from adapters.database.spreadsheets.records import SpreadsheetRow
from contracts.spreadsheets import SpreadsheetState

_LEAST: Final = timedelta(seconds=3)
"""Work that has just begun says nothing about its speed."""


@dataclass(frozen=True, slots=True)
class Pace:
    """What the counts and times of an import say about its speed.

    Attributes:
        rows_per_second: Rows read or processed, since the step began.
        seconds_left: Until the last row is processed; None: it is not known how many come.
    """

    rows_per_second: float
    seconds_left: int | None = None


def pace_of(row: SpreadsheetRow, now: datetime) -> Pace | None:
    """The pace of an import that works; None: it does not, or nothing can be said.

    While rows are read it is not known how many there are. Of rows that had waited for a value
    the moment at which they were taken up is not known row by row, so nothing is said of them.
    """
    working = now - row.state_since
    if row.waiting_since is not None or working < _LEAST:
        return None
    if row.state is SpreadsheetState.COLUMN_MAPPING and row.total:
        return Pace(row.total / working.total_seconds())
    if row.state is not SpreadsheetState.PROCESSING or row.round or not row.total:
        return None
    done = row.counts.done + row.parked
    if not done or done >= row.total:
        return None
    rate = done / working.total_seconds()
    return Pace(rate, round((row.total - done) / rate))
