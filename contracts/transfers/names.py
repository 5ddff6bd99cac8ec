"""Words and names that all of `transfers` shares."""

import hashlib
import json
from enum import StrEnum
from typing import Annotated, Final

from pydantic import Field, StringConstraints

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
