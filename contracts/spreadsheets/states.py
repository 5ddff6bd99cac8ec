"""Where a spreadsheet import stands, and where it may go from there."""

from collections.abc import Mapping
from enum import StrEnum
from types import MappingProxyType
from typing import Final


class SpreadsheetState(StrEnum):
    """The life of one spreadsheet; the last four are final."""

    UPLOADED = "UPLOADED"
    COLUMN_MAPPING = "COLUMN_MAPPING"
    CELL_MAPPING = "CELL_MAPPING"
    PROCESSING = "PROCESSING"
    COMPLETED = "COMPLETED"
    FAILED = "FAILED"
    CANCELLED = "CANCELLED"
    TERMINATED = "TERMINATED"
    """Its run was ended from outside; rows that are in stay in."""


_S = SpreadsheetState

FINAL: Final = frozenset({_S.COMPLETED, _S.FAILED, _S.CANCELLED, _S.TERMINATED})

NEXT: Final[Mapping[SpreadsheetState, frozenset[SpreadsheetState]]] = MappingProxyType(
    {
        # A file that turns out damaged fails wherever that shows: it cannot be mapped.
        _S.UPLOADED: frozenset({_S.COLUMN_MAPPING, _S.FAILED, _S.CANCELLED}),
        _S.COLUMN_MAPPING: frozenset({_S.CELL_MAPPING, _S.FAILED, _S.CANCELLED}),
        _S.CELL_MAPPING: frozenset({_S.PROCESSING, _S.FAILED, _S.CANCELLED}),
        _S.PROCESSING: frozenset({_S.CELL_MAPPING, _S.COMPLETED, _S.FAILED, _S.CANCELLED}),
        _S.COMPLETED: frozenset(),
        _S.FAILED: frozenset(),
        _S.CANCELLED: frozenset(),
        _S.TERMINATED: frozenset(),
    }
)
"""Every legal transition of a run; one that is terminated makes none."""


class UndoState(StrEnum):
    """Whether an import's rows were taken back."""

    RUNNING = "RUNNING"
    UNDONE = "UNDONE"
    UNDONE_PARTLY = "UNDONE_PARTLY"
    """Some rows were left alone; it may be requested again, for what is left."""
    FAILED = "FAILED"
    TERMINATED = "TERMINATED"
    """Its run was ended from outside; it may be requested again, and resumes."""


class MappingStatus(StrEnum):
    """How far a column or a value is understood."""

    AUTO_MATCHED = "AUTO_MATCHED"
    MANUAL_MATCHED = "MANUAL_MATCHED"
    UNMATCHED = "UNMATCHED"
    """On the wire of the HTTP API it reads UNRESOLVED."""
    IGNORED = "IGNORED"


class Outcome(StrEnum):
    """Outcome of a row."""

    CREATED = "CREATED"
    UPDATED = "UPDATED"
    SKIPPED = "SKIPPED"
    ERROR = "ERROR"
