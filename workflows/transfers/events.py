"""Events that say that a file is there, and the words that all of `transfers` shares.

Which file and which account an event is about.
"""

import hashlib
import json
from datetime import datetime
from enum import StrEnum
from typing import Annotated, Any, Final

from pydantic import Field, StringConstraints

from workflows.shared.contracts import Contract

FILE_EVENT: Final = "FileEvent"
FILE_JOB: Final = "FileJob"
"""Names of the workflow types."""
TASK_QUEUE: Final = "transfers"
"""Task queue of `FileEvent`, of watches and of expected files; each queue has one of its own."""
WATCH: Final = "watch"
"""Way in of the events of watches."""
TRANSFER_PREFIX: Final = "transfer"
"""What the workflow ids begin with, up to the slash."""
QUEUE_PREFIX: Final = "transfers-"
"""What the task queues of queues begin with: one of them has the name of another task queue."""

QueueName = Annotated[str, StringConstraints(pattern=r"^[a-z0-9](?:-?[a-z0-9]){2,62}$")]
"""As Azure Storage allows it: 3 to 63 lower-case letters, digits and single hyphens."""
TransferId = Annotated[str, StringConstraints(pattern=r"^[0-9a-f]{64}$")]
"""SHA-256 of source and id of the event: the id alone is unique per source only."""
PartnerName = Annotated[str, StringConstraints(pattern=r"^[a-z0-9][a-z0-9-]{0,62}$")]
SettingsJobName = Annotated[str, StringConstraints(pattern=r"^[A-Za-z0-9][A-Za-z0-9._-]{0,99}$")]
RuleName = Annotated[str, StringConstraints(pattern=r"^[A-Za-z0-9][A-Za-z0-9._-]{0,99}$")]
SecretReference = Annotated[
    str, StringConstraints(pattern=r"^(?:env|file|aws):[^\s\x00-\x1f]{1,480}$")
]
"""Where a secret is kept (`env:NAME`, `file:PATH`, `aws:NAME`); never the secret."""
FilePath = Annotated[str, StringConstraints(min_length=1, max_length=1_024)]
"""Path at an endpoint, segments joined by `/`; checked where it is used."""
Sentence = Annotated[str, Field(max_length=500)]


class TransferStatus(StrEnum):
    """States in `jobstatus`, as the system that docflow replaces names them."""

    INVALID = "Invalid"
    """The message is not a CloudEvent."""
    GARBAGE = "Garbage"
    """It is one that lacks a required field."""
    READ_MESSAGE = "ReadMessage"
    """Its message is read; the actions begin."""
    ASSIGNED = "Assigned"
    """A rule named the queue."""
    NO_ASSIGNED = "NoAssigned"
    """No rule matched; a person can still assign it."""
    SUCCEEDED = "Succeeded"
    FAILED = "Failed"


def transfer_id_of(source: str, event_id: str) -> str:
    """The id of a transfer: two sources may use the same id of an event."""
    return hashlib.sha256(json.dumps([source, event_id]).encode()).hexdigest()


def queue_task_queue(queue: str) -> str:
    """The task queue of Temporal on which the jobs of a queue run."""
    return f"{QUEUE_PREFIX}{queue}"


EVENT_BYTES: Final = 64 * 1024
"""An event that is longer is refused, recorded with its size."""
CHAIN: Final = 32
"""Events of one chain at most: `FireEvent` beyond it is a loop."""
DEPTH: Final = "docflowdepth"
VISITED: Final = "docflowvisited"
"""Extensions of an event that `FireEvent` sent: `depth`, and `visited` joined by blanks."""
ORGANISATION: Final = "docfloworganisation"
"""Extension of an event: the organisation that it belongs to, whatever way it comes."""
LARGEST_ORGANISATION: Final = 2**53

Attribute = Annotated[str, StringConstraints(min_length=1, max_length=500)]
Visit = Annotated[str, StringConstraints(min_length=1, max_length=200)]


class RouteKey(Contract):
    """What a route is looked up by; compared exactly, upper and lower case differ."""

    account_id: Attribute
    """`accountId` of the data."""
    source: Attribute
    type: Attribute
    subject: Attribute


class FileNotice(Contract):
    """A CloudEvent that was checked: every required field is there."""

    id: Attribute
    source: Attribute
    type: Attribute
    subject: Attribute
    account_id: Attribute
    organisation_id: int | None = None
    """Organisation that its transfer belongs to; None: the installation."""
    time: datetime
    """Of the event; its arrival where the event has none. Names with dates are resolved from it."""
    time_given: bool = True
    """False: the event has none."""
    data: dict[str, Any] = Field(default_factory=dict[str, Any], repr=False)
    """Further facts, as `fileName` or `path`; names in settings may refer to them."""
    depth: int = 0
    """How many events led to it by `FireEvent`."""
    visited: tuple[Visit, ...] = Field(default=(), max_length=CHAIN)
    """See `visit_of`: what led to it, the first one first."""

    @property
    def key(self) -> RouteKey:
        """What its route is looked up by."""
        return RouteKey(
            account_id=self.account_id, source=self.source, type=self.type, subject=self.subject
        )


def visit_of(queue: str, job: str, subject: str) -> str:
    """A visit of a chain of events: the same one twice is a loop."""
    return f"{queue}/{job}/{hashlib.sha256(subject.encode()).hexdigest()[:12]}"


ACCOUNT: Final = "accountId"
FILE_FIELDS: Final = ("fileName", "filename", "name", "path", "url")
"""Of the data: where the name of the file is looked for."""


def file_of(event: FileNotice) -> str | None:
    """The file that an event is about, as far as it says; its name alone."""
    for field in FILE_FIELDS:
        value = event.data.get(field)
        if isinstance(value, str) and value:
            return value.replace("\\", "/").rstrip("/").rpartition("/")[2][:255] or None
    return None
