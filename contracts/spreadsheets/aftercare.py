"""What comes after an import: taking it back, and letting go of what was kept for it."""

from datetime import datetime
from typing import Final

from pydantic import Field

from contracts.base import Contract
from contracts.spreadsheets.mappings import Person
from contracts.spreadsheets.runs import DAY, Reason, Uuid
from contracts.spreadsheets.states import UndoState

PROBLEMS_NAMED: Final = 5


def undo_id(uuid: str) -> str:
    """Id of the run that undoes an import."""
    return f"spreadsheet-undo/{uuid}"


class UndoOrder(Contract):
    """Input of the undo workflow and of `spreadsheets.undo`."""

    uuid: Uuid
    organisation_id: int
    by: Person
    filename: str = Field(max_length=255)
    requested_at: datetime
    within: int = Field(default=30 * DAY, ge=1)
    """Seconds after its end in which an import can be undone."""
    notices: bool = False
    """People are sent notices; an order of a release that had none asks for none."""
    retried_by: tuple[Person, ...] = Field(default=(), max_length=20)
    """Who had the step retried, in order."""


class UndoCounts(Contract):
    """What an undo did."""

    deleted: int = 0
    restored: int = 0
    left_alone: int = 0
    """Rows of the file of which anything was changed since, or is referred to by others."""


class UndoPreview(Contract):
    """What an undo would do now."""

    uuid: Uuid
    counts: UndoCounts = UndoCounts()


class UndoResult(Contract):
    """Result of the undo workflow."""

    uuid: Uuid
    state: UndoState
    counts: UndoCounts = UndoCounts()
    problems: tuple[Reason, ...] = Field(default=(), max_length=PROBLEMS_NAMED)
    """The first few that were left alone; all of them are in the report."""


class RetentionOrder(Contract):
    """Input of the retention workflow; seconds and counts."""

    finished_after: int = Field(default=7 * DAY, ge=1)
    """COMPLETED, FAILED, CANCELLED and TERMINATED, from their end."""
    waiting_after: int = Field(default=90 * DAY, ge=1)
    """UPLOADED, COLUMN_MAPPING and CELL_MAPPING, from their last change."""
    undo_after: int = Field(default=30 * DAY, ge=1)
    """Before-images, from the end of the import."""
    page: int = Field(default=100, ge=1, le=200)
    most: int = Field(default=10_000, ge=1)
    """Imports of one run; the next run takes the rest."""


class ExpiredPage(Contract):
    """Imports that are due, the oldest first."""

    uuids: tuple[Uuid, ...] = Field(default=(), max_length=200)
    waiting: tuple[Uuid, ...] = Field(default=(), max_length=200)
    """Those of them whose run still waits for a person."""


class ExpiredInput(Contract):
    """Input of `spreadsheets.expired`."""

    order: RetentionOrder
    now: datetime


class PurgeInput(Contract):
    """Input of `spreadsheets.purge`."""

    uuids: tuple[Uuid, ...] = Field(max_length=200)
    now: datetime


class PurgeResult(Contract):
    """Result of `spreadsheets.purge` and of the retention workflow."""

    purged: int = 0
    journals: int = 0
    """Before-images that were removed."""
    uploads: int = 0
    """Files of uploads that never became an import."""
    proposals: int = 0
    """Changes of reviews that were proposed and never applied."""
