"""Messages of a batch that are loaded together."""

from enum import StrEnum
from typing import Annotated, Final

from pydantic import BeforeValidator, Field

from contracts.base import Contract
from contracts.batches.loads import DocumentState, LoadOrder
from contracts.batches.names import BatchKey, DocumentId
from contracts.dependencies import Dependency, DependencyName

GROUP_MESSAGES: Final = 10
"""As many as SQS gives with one receive."""
GROUP_BYTES: Final = 256 << 10
"""Of the bodies of a group; a single message may have as many."""

Number = Annotated[int, Field(ge=0, lt=GROUP_MESSAGES)]
"""Of a message in its group."""

REASON_CHARACTERS: Final = 1_000
"""A group has as many reasons as messages; the load of its own has the whole text."""


def _cut(value: object) -> object:
    return value[:REASON_CHARACTERS] if isinstance(value, str) else value


GroupReason = Annotated[str, BeforeValidator(_cut), Field(max_length=REASON_CHARACTERS)]
"""Why a message is not done; what is longer is cut."""


class GroupOrder(Contract):
    """Input of a group, and of each attempt to load what is left of it."""

    key: BatchKey
    loads: tuple[LoadOrder, ...] = Field(min_length=1, max_length=GROUP_MESSAGES)


class GroupEnd(StrEnum):
    """What becomes of one message of a group."""

    DONE = "done"
    """It is loaded; by this group, or before."""
    SINGLE = "single"
    """It takes a load of its own: it is large, or failed, or its worker was lost with it."""
    OUTAGE = "outage"
    """Something that docflow itself needs did not answer."""


class AwaitedByMessage(Contract):
    """What did not answer when a message was loaded."""

    dependency: Dependency
    name: DependencyName | None = None
    """Which one, where there are many."""
    room: int = Field(default=0, ge=0)
    """Bytes that the step needs on the scratch disk; 0: not known."""


class GroupOutcome(Contract):
    """The outcome of one message of a group."""

    number: Number
    end: GroupEnd
    state: DocumentState | None = None
    """Of its document, where this is known."""
    reason: GroupReason | None = None
    """Why it is not done."""
    awaited: AwaitedByMessage | None = None
    """What did not answer."""


class GroupProgress(Contract):
    """Heartbeat of a group."""

    outcomes: tuple[GroupOutcome, ...] = Field(default=(), max_length=GROUP_MESSAGES)
    in_progress: tuple[Number, ...] = Field(default=(), max_length=GROUP_MESSAGES)
    """Messages whose loading has begun and has not ended."""


class GroupOutcomes(Contract):
    """Result of one attempt: an outcome for each message of its order."""

    outcomes: tuple[GroupOutcome, ...] = Field(max_length=GROUP_MESSAGES)


class GroupStatus(Contract):
    """Where a group stands; its result."""

    messages: int
    done: int = 0
    single: tuple[DocumentId, ...] = Field(default=(), max_length=GROUP_MESSAGES)
    """Documents of the messages that were given to loads of their own."""
    waiting_for: Dependency | None = None
    """What docflow itself needs and does not answer; the run continues when it does."""
