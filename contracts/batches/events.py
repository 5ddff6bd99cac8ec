"""Events of the case-events queue, as they come from outside."""

from enum import StrEnum
from typing import Annotated, Any, Final, Literal

from pydantic import BeforeValidator, Field, TypeAdapter

from contracts.answers import Person
from contracts.base import WireContract, built_when_used
from contracts.batches.names import BatchKey, Id
from contracts.batches.plans import Timings

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
