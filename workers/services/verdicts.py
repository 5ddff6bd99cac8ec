"""The verdict on a message; the consumer of the queue carries it out."""

from dataclasses import dataclass
from typing import Final

from contracts import errors

MALFORMED_BODY: Final = "MalformedBody"
"""The body is not a JSON object that docflow can read."""
UNKNOWN_DOCUMENT_TYPE: Final = "UnknownDocumentType"
"""`document_type` is missing, or names nothing that docflow imports."""
UNKNOWN_EVENT_TYPE: Final = "UnknownEventType"
"""`eventType` is missing, or names no event that docflow takes from this queue."""
INVALID_MESSAGE: Final = "InvalidMessage"
"""Fields of the message are missing or wrong."""
NOT_ACCEPTED: Final = "NotAccepted"
"""It was not accepted in any of its deliveries, although everything that docflow needs answers."""
KEY_REUSED: Final = errors.KEY_REUSED
"""The run of this key was started by a message with other content."""

DESCRIPTION_LIMIT: Final = 4096
"""Characters of a dead letter description that Service Bus keeps."""


@dataclass(frozen=True, slots=True)
class Settle:
    """Temporal has the work: take the message off the queue."""

    workflow_id: str
    duplicate: bool = False
    """The same message came before; its run may be open or over."""


@dataclass(frozen=True, slots=True)
class DeadLetter:
    """The message can never be accepted, and where there is a record, it is recorded: set it
    aside."""

    reason: str
    """One of the constants of this module."""
    description: str
    """Names the fields and what is wrong with them; at most `DESCRIPTION_LIMIT` characters."""


@dataclass(frozen=True, slots=True)
class Abandon:
    """The message is not accepted now: give it back."""

    reason: str
    passes: bool = True
    """A service that docflow needs is unavailable or does not let us in; False: it may be the
    message that it refuses."""


Verdict = Settle | DeadLetter | Abandon
