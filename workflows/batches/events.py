"""Events of the case-events queue: as they come, and what each changes in its batch."""

import json
from collections.abc import Mapping, Sequence
from datetime import datetime
from enum import StrEnum
from types import MappingProxyType
from typing import Annotated, Any, Final, Literal

from pydantic import BeforeValidator, Field, TypeAdapter

from workflows.batches.names import BatchKey, Id, LoaderStatus, Purpose, Timings
from workflows.shared.contracts import Person, WireContract, built_when_used

MESSAGE_BYTES: Final = 256 * 1024
"""The limit of a message of SQS."""
PASSED_ON_BYTES: Final = 48 * 1024
"""Those of all types of event fit into one announcement."""


class _Event(WireContract):
    case_id: Id
    batch_id: Id
    passed_on: Annotated[str | None, Field(max_length=PASSED_ON_BYTES)] = None
    """A JSON object of the fields that docflow does not use; its announcements have them too."""

    @property
    def key(self) -> BatchKey:
        """The batch that it is about."""
        return BatchKey(case_id=self.case_id, batch_id=self.batch_id)


class JobStarted(_Event):
    """A batch is ready to be loaded."""

    event_type: Literal["JOB_STARTED"] = "JOB_STARTED"
    timings: Timings | None = None
    """Other times than the installation's, for this batch."""


class JobFinished(_Event):
    """All documents of a batch have been sent."""

    event_type: Literal["JOB_FINISHED"] = "JOB_FINISHED"
    documents: Annotated[int | None, Field(ge=0, le=1_000_000_000)] = None
    """How many there are; None: it is not said, and not checked."""


class CancelMode(StrEnum):
    """How much of a batch is stopped."""

    FULL = "full"
    """Everything, at once; what is still in its queues is deleted."""
    PARTIAL = "partial"
    """No further message is accepted; what is in flight is loaded."""


def _remark(most: int) -> BeforeValidator:
    """Text that is shown and decides nothing: too much of it is cut, anything else is left out."""

    def cut(value: Any) -> str | None:
        return value[:most] if isinstance(value, str) else None

    return BeforeValidator(cut)


class ImportCancelled(_Event):
    """A person cancelled a batch."""

    event_type: Literal["IMPORT_CANCELLED"] = "IMPORT_CANCELLED"
    mode: CancelMode = CancelMode.FULL
    reason: Annotated[Annotated[str, Field(max_length=500)] | None, _remark(500)] = None
    by: Annotated[Person | None, _remark(200)] = None

    @property
    def explanation(self) -> str | None:
        """Who cancelled it and why, for the batch's row; None: neither is known."""
        if self.reason is None and self.by is None:
            return None
        person = f" by {self.by}" if self.by else ""
        return f"cancelled{person}" + (f": {self.reason}" if self.reason else "")


class BatchEndFinished(_Event):
    """What follows the loading of a batch is done."""

    event_type: Literal["BATCH_END_FINISHED"] = "BATCH_END_FINISHED"


class RedriveRequested(_Event):
    """A request to retry the dead letters of a batch, also after its end."""

    event_type: Literal["REDRIVE_REQUESTED"] = "REDRIVE_REQUESTED"
    with_failed: bool = False
    """Documents that are recorded as failed are tried again too."""


CaseEvent = Annotated[
    JobStarted | JobFinished | ImportCancelled | BatchEndFinished | RedriveRequested,
    Field(discriminator="event_type"),
]
CASE_EVENT: Final = TypeAdapter[
    JobStarted | JobFinished | ImportCancelled | BatchEndFinished | RedriveRequested
](CaseEvent, config=built_when_used())
EVENT_TYPES: Final = (
    "JOB_STARTED",
    "JOB_FINISHED",
    "IMPORT_CANCELLED",
    "BATCH_END_FINISHED",
    "REDRIVE_REQUESTED",
)


class Announcement(StrEnum):
    """Events that docflow publishes to the topic."""

    LOADER_STARTED = "LOADER_STARTED"
    """Delivery is proven: documents of the batch may be sent."""
    BATCH_END_START = "BATCH_END_START"
    LOADER_FINISHED = "LOADER_FINISHED"


class Publication(WireContract):
    """The body of an announcement; `eventType`, `caseId` and `batchId` are attributes as well."""

    event_type: Announcement
    case_id: Id
    batch_id: Id
    status: Annotated[str, Field(max_length=64)] = "SUCCESS"
    """SUCCESS, PARTIAL, EMPTY, or how else the batch ended."""
    documents: dict[str, int] | None = None
    """Of LOADER_FINISHED: documents by state."""
    message_id: Annotated[str, Field(max_length=128)]
    """The same whenever the same announcement is published again."""
    passed_on: dict[str, Any] = Field(default_factory=dict[str, Any])
    """Fields of the batch's events that docflow does not use."""

    def body(self) -> dict[str, Any]:
        """What is published: fields that are passed on never take the place of docflow's own."""
        own = self.model_dump(mode="json", by_alias=True, exclude_none=True, exclude={"passed_on"})
        return {**self.passed_on, **own}


_BEFORE_THE_END: Final = ("JOB_STARTED", "JOB_FINISHED", "REDRIVE_REQUESTED")
_SOURCES: Final[Mapping[str, Sequence[str]]] = MappingProxyType(
    {
        Announcement.LOADER_STARTED: ("JOB_STARTED", "REDRIVE_REQUESTED"),
        Announcement.BATCH_END_START: _BEFORE_THE_END,
        Announcement.LOADER_FINISHED: (*_BEFORE_THE_END, "BATCH_END_FINISHED", "IMPORT_CANCELLED"),
    }
)
"""Events that lead to an announcement, as they follow each other in whatever order they arrive."""


def with_fields_of(event: CaseEvent, kept: str | None) -> str | None:
    """What is kept of a batch's events, with those of one more.

    Args:
        event: Its fields take the place of those of an earlier event of its type.
        kept: The column as it is.
    """
    if event.passed_on is None:
        return kept
    fields: dict[str, Any] = json.loads(kept) if kept else {}
    return json.dumps({**fields, event.event_type: json.loads(event.passed_on)})


def fields_for(announcement: Announcement, kept: str | None) -> Mapping[str, Any]:
    """The fields of the events that lead to it; of two of one name, that of the later event."""
    by_type: dict[str, dict[str, Any]] = json.loads(kept) if kept else {}
    sources = _SOURCES[announcement]
    return {name: value for kind in sources for name, value in by_type.get(kind, {}).items()}


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


def columns_after_end(status: LoaderStatus, now: datetime) -> dict[str, Any]:
    """Columns of a batch that begins clean when it is started again."""
    return {
        **_become(status, now),
        "attention": None,
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


def column_changes(event: CaseEvent, row: Mapping[str, Any], now: datetime) -> dict[str, Any]:
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
            return {**columns_after_end(LoaderStatus.WAITING, now), **asked}


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
        **columns_after_end(LoaderStatus.CANCELLED, now),
        "cancelled_mode": mode,
        "reason": _before_it_was_built(event.explanation),
    }


def _before_it_was_built(reason: str | None) -> str:
    return "cancelled before it was built" if reason is None else f"{reason}; it was not built yet"


def _become(status: LoaderStatus, now: datetime) -> dict[str, Any]:
    return {"loader_status": status.value, "loader_status_updated_at": now}
