"""What an event of a case changes in its batch's row."""

from collections.abc import Mapping
from datetime import datetime
from typing import Any

from contracts.batches import (
    BatchEndFinished,
    CaseEvent,
    ImportCancelled,
    JobFinished,
    JobStarted,
    LoaderStatus,
    Purpose,
    RedriveRequested,
)

STARTABLE = (
    LoaderStatus.WAITING,
    LoaderStatus.PROCESSING,
    LoaderStatus.FAILED,
    LoaderStatus.SKIPPED,
    LoaderStatus.INCOMPLETE,
    LoaderStatus.TERMINATED,
)
"""One that is complete or cancelled is not loaded again."""


def new_row(case_id: int, batch_id: int, now: datetime) -> dict[str, Any]:
    """The row of a batch that is not started yet."""
    return {
        "case_id": case_id,
        "batch_id": batch_id,
        "loader_status": LoaderStatus.WAITING.value,
        "loader_status_updated_at": now,
        "created_at": now,
        "updated_at": now,
    }


def ended(status: LoaderStatus, now: datetime) -> dict[str, Any]:
    """Columns of a batch that begins clean when it is started again."""
    return {
        **_become(status, now),
        "purpose": None,
        "timings": None,
        "job_finished_at": None,
        "end_finished_at": None,
        "cancelled_mode": None,
        "skipped": False,
        "redrive_pass": 0,
        "final_pass": False,
    }


def changes_of(event: CaseEvent, row: Mapping[str, Any], now: datetime) -> dict[str, Any]:
    """Columns that an event changes; none when it brings no news.

    Args:
        event: What happened.
        row: The batch as it is.
        now: UTC.
    """
    status = LoaderStatus(row["loader_status"])
    match event:
        case JobStarted():
            return _started(event, row, status, now)
        case JobFinished():
            known = status.terminal or row["job_finished_at"] is not None
            return {} if known else {"job_finished_at": now}
        case BatchEndFinished():
            known = status.terminal or row["end_finished_at"] is not None
            return {} if known else {"end_finished_at": now}
        case ImportCancelled():
            return _cancelled(event, row, status, now)
        case RedriveRequested():
            if not status.terminal or not row["dead_letters"]:
                return {}
            purpose = {"purpose": Purpose.REDRIVE.value, "reason": None}
            return {**ended(LoaderStatus.WAITING, now), **purpose}


def _started(
    event: JobStarted, row: Mapping[str, Any], status: LoaderStatus, now: datetime
) -> dict[str, Any]:
    if status not in STARTABLE or row["purpose"] is not None:
        return {}
    changes: dict[str, Any] = {
        "purpose": Purpose.LOAD.value,
        "skipped": False,
        "reason": None,
        "timings": None if event.timings is None else event.timings.model_dump_json(),
    }
    return {**_become(LoaderStatus.WAITING, now), **changes} if status.terminal else changes


def _cancelled(
    event: ImportCancelled, row: Mapping[str, Any], status: LoaderStatus, now: datetime
) -> dict[str, Any]:
    mode = event.mode.value
    if status.terminal:
        return {}
    if status is LoaderStatus.PROCESSING:
        # Its run does the rest.
        return {} if row["cancelled_mode"] == mode else {"cancelled_mode": mode}
    return {
        **ended(LoaderStatus.CANCELLED, now),
        "cancelled_mode": mode,
        "reason": _before_it_was_built(event.explanation),
    }


def _before_it_was_built(said: str | None) -> str:
    return "cancelled before it was built" if said is None else f"{said}; it was not built yet"


def _become(status: LoaderStatus, now: datetime) -> dict[str, Any]:
    return {"loader_status": status.value, "loader_status_updated_at": now}
