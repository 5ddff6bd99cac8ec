"""What an event of a case changes in its batch's row."""

from collections.abc import Mapping
from datetime import datetime
from typing import Any, Final

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
from domain.batches.passed_on import with_fields_of

STARTABLE = (
    LoaderStatus.WAITING,
    LoaderStatus.PROCESSING,
    LoaderStatus.FAILED,
    LoaderStatus.SKIPPED,
    LoaderStatus.INCOMPLETE,
    LoaderStatus.TERMINATED,
)
"""One that is complete or cancelled is not loaded again."""
NOT_KNOWN: Final = "events came, but no JOB_STARTED, and it is not expected: no batch waits for it"
"""Why a batch that only stray events name does nothing, for people."""


def new_row(case_id: int, batch_id: int, now: datetime, *, known: bool) -> dict[str, Any]:
    """The row of a batch that is not started yet.

    Args:
        case_id: Its case.
        batch_id: Its number.
        now: UTC.
        known: It is expected; else an event has come that does not start it.
    """
    return {
        "case_id": case_id,
        "batch_id": batch_id,
        "loader_status": LoaderStatus.WAITING.value,
        "loader_status_updated_at": now,
        "job_documents": None,
        "passed_on": None,
        "known": known,
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
        "job_documents": None,
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
    starts = isinstance(event, JobStarted)
    changes = _changes(event, row, status, now)
    known = {"known": True} if starts and not row["known"] else {}
    if status.terminal and not changes:
        return known
    kept = with_fields_of(event, None if status.terminal and starts else row["passed_on"])
    fields = {} if kept == row["passed_on"] else {"passed_on": kept}
    return {**changes, **known, **fields}


def _changes(
    event: CaseEvent, row: Mapping[str, Any], status: LoaderStatus, now: datetime
) -> dict[str, Any]:
    match event:
        case JobStarted():
            return _started(event, row, status, now)
        case JobFinished():
            if status.terminal:
                return {}
            # Events may come in any order: a document too few is asked about, one too many is not.
            known = row["job_documents"]
            is_news = event.documents is not None and (known is None or event.documents > known)
            counts = {"job_documents": event.documents} if is_news else {}
            return (
                counts if row["job_finished_at"] is not None else {"job_finished_at": now, **counts}
            )
        case BatchEndFinished():
            known = status.terminal or row["end_finished_at"] is not None
            return {} if known else {"end_finished_at": now}
        case ImportCancelled():
            return _cancelled(event, row, status, now)
        case RedriveRequested():
            if not status.terminal or not (row["dead_letters"] or event.with_failed):
                return {}
            purpose = Purpose.RETRY_FAILED if event.with_failed else Purpose.REDRIVE
            asked = {"purpose": purpose.value, "reason": None}
            return {**ended(LoaderStatus.WAITING, now), **asked}


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
    if not status.terminal:
        return changes
    # Its documents are sent again, those that were lost with a queue as well.
    return {**_become(LoaderStatus.WAITING, now), **changes, "lost": None}


def _cancelled(
    event: ImportCancelled, row: Mapping[str, Any], status: LoaderStatus, now: datetime
) -> dict[str, Any]:
    mode = event.mode.value
    if status.terminal:
        return {}
    if status is LoaderStatus.PROCESSING:
        # Its run does the rest; the reason is for one that was terminated.
        cancelled = {"cancelled_mode": mode, "reason": event.explanation or "cancelled"}
        return {} if row["cancelled_mode"] == mode else cancelled
    return {
        **ended(LoaderStatus.CANCELLED, now),
        "cancelled_mode": mode,
        "reason": _before_it_was_built(event.explanation),
    }


def _before_it_was_built(reason: str | None) -> str:
    return "cancelled before it was built" if reason is None else f"{reason}; it was not built yet"


def _become(status: LoaderStatus, now: datetime) -> dict[str, Any]:
    return {"loader_status": status.value, "loader_status_updated_at": now}
