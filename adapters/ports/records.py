"""Records of runs and messages, how long they are kept, notices, and outages."""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Annotated, Final, Protocol

from workflows.shared.contracts import PlainRecord, served
from workflows.shared.dependencies import OutageInput
from workflows.shared.notifications import Notification


@dataclass(frozen=True, slots=True)
class RunEnd:
    """How the newest run of a workflow id ended."""

    status: str
    """Temporal's own: `completed`, `failed`, `canceled`, `terminated`, `timed_out`; or `unknown`
    where it knows no run of that id."""
    at: datetime | None = None
    """UTC; None: not known."""
    document_type: str | None = None
    """As its search attribute says; None: not known."""


class Runs(Protocol):
    """What Temporal knows of runs."""

    async def end(self, workflow_id: str) -> RunEnd | None:
        """How the newest run of an id ended; None: it is open, or continues as a new one."""
        ...


@dataclass(frozen=True, slots=True)
class OpenRow:
    """A row that its run has not closed."""

    id: str
    """Names the row: the workflow id of the run that it is about."""
    changed_at: datetime
    """UTC."""
    run: str | None = None
    """Workflow id of the run that would close it; None: that of `id`."""
    grace: timedelta = timedelta()
    """How much longer than others it is left to what else closes it."""
    only_after: frozenset[str] = frozenset()
    """Ends of its run that leave it open by mistake; empty: every end does."""


class OpenRows(Protocol):
    """The rows of one pipeline's runs."""

    async def open_rows(self, before: datetime, after: str, limit: int) -> Sequence[OpenRow]:
        """Rows of open runs that have not changed since, by id.

        Args:
            before: The latest change.
            after: Ids above this one.
            limit: At most so many.
        """
        ...

    async def terminate(
        self, id: str, reason: str, unchanged_since: datetime | None = None
    ) -> bool:
        """Close the row of a run that is over as terminated, and release what the run held.

        Args:
            id: Of the row.
            reason: For people.
            unchanged_since: Only if this was the last change of the row; None: whatever it was.

        Returns:
            False, and nothing changed: it is closed already, or has changed.
        """
        ...


REJECTED_BODY_BYTES: Final = 64 * 1024
"""Bytes of a rejected body that its record keeps."""


class RejectedHead(PlainRecord):
    """A rejected message without its body."""

    id: Annotated[int, served("Its number", 7)]
    queue: Annotated[str, served("The queue that it was received from", "a-queue")]
    message_id: Annotated[str | None, served("As its sender set it", "m-1")]
    reason: Annotated[str, served("Why it was rejected, in one word", "InvalidMessage")]
    description: Annotated[str, served("Why, for people", "task_id: Field required")]
    truncated: Annotated[bool, served("Only the beginning of the body is kept", False)]
    received_at: Annotated[datetime, served("When it was rejected", "2026-01-03T10:00:00Z")]
    resubmitted_at: Annotated[
        datetime | None, served("When it was sent again; null: never", None)
    ] = None
    dismissed_at: Annotated[
        datetime | None, served("When a person dismissed it; null: never", None)
    ] = None
    by: Annotated[str | None, served("Who dismissed it", "ann")] = None
    note: Annotated[str | None, served("Why it was dismissed", "a test")] = None

    @property
    def is_open(self) -> bool:
        """It was neither sent again nor dismissed."""
        return self.resubmitted_at is None and self.dismissed_at is None


class RejectedMessage(RejectedHead):
    """A message that went to the dead letter queue, kept to be looked at and sent again."""

    body: Annotated[str, served("What came; at most its first 64 KiB", '{"task_id": 1}')]


@dataclass(frozen=True, slots=True)
class RejectedFilter:
    """Which rejected messages are listed."""

    queue: str | None = None
    reason: str | None = None
    is_open: bool | None = None
    """Those that were neither sent again nor dismissed, or the others; None: all."""
    before: int | None = None
    """Only numbers below this one."""


@dataclass(frozen=True, slots=True)
class OpenRejections:
    """Rejected messages of one queue that were neither sent again nor dismissed."""

    queue: str
    number: int
    oldest: datetime
    """When the first of them was rejected, UTC."""


class RejectionRecord(Protocol):
    """Where rejected messages are recorded."""

    async def record(
        self, queue: str, message_id: str | None, reason: str, description: str, body: bytes
    ) -> None:
        """Keep a message; the same id and body of the same queue are kept once."""
        ...


class RejectedMessages(RejectionRecord, Protocol):
    """The record of rejected messages."""

    async def probe(self) -> None:
        """See whether messages can be recorded.

        Raises:
            Unavailable: They cannot.
        """
        ...

    async def list(
        self, limit: int = 50, wanted: RejectedFilter | None = None
    ) -> Sequence[RejectedMessage]:
        """The newest first."""
        ...

    async def open(self) -> Sequence[OpenRejections]:
        """What was neither sent again nor dismissed, by queue; queues without any are left out."""
        ...

    async def get(self, id: int) -> RejectedMessage | None:
        """One message."""
        ...

    async def mark_resubmitted(self, id: int) -> None:
        """Note that the message was sent again."""
        ...

    async def dismiss(self, id: int, by: str, note: str | None) -> None:
        """Note that nobody has to look at the message any more."""
        ...

    async def mark_dead_letter_resubmitted(
        self, queue: str, message_id: str | None, body: bytes
    ) -> None:
        """Note that a message was sent again from its dead letter queue, where it is recorded.

        Args:
            queue: That it was received from.
            message_id: As its sender set it.
            body: With which it was rejected, in full.
        """
        ...


class Outages(Protocol):
    """Shows operators what is down."""

    async def begin(self, outage: OutageInput, task_queue: str) -> None:
        """Show an outage; one that is shown already stays as it is.

        Args:
            outage: What is down, and why.
            task_queue: Whose workers see the end of it.
        """
        ...


class Notifications(Protocol):
    """One way to notify people."""

    async def send(self, notice: Notification) -> None:
        """Send a notice.

        Args:
            notice: Its id is the same for every attempt; receivers may dedupe on it.

        Raises:
            Unavailable: Another attempt may succeed.
            PortError: None will.
        """
        ...
