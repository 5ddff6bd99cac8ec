"""Rows of transfers, routes, partners and watches; bytes between actions; events; secrets.

Rows of transfers, routes and partners; bytes between actions; events; secrets.

Every method of the stores raises `Unavailable` when the database does not answer.

What watches saw, what came on queues, and what was recorded of the days of expectations.

Every method raises `Unavailable` when the database does not answer.
"""

from collections.abc import AsyncIterator, Sequence
from dataclasses import dataclass
from datetime import date, datetime
from typing import Protocol, TypeVar

from workflows.shared.contracts import BlobRef
from workflows.transfers.events import RouteKey, TransferStatus
from workflows.transfers.partners import Partner
from workflows.transfers.routes import RouteRemark, RouteRule
from workflows.transfers.runs import KeptTransfer
from workflows.transfers.watches import ExpectedDay, SeenFile, WatchState

T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class StatusRow:
    """One row of `jobstatus`: a transfer entered a state."""

    transfer_id: str
    status: TransferStatus
    at: datetime
    source: str
    event_id: str
    account_id: str | None = None
    type: str | None = None
    subject: str | None = None
    queue: str | None = None
    job: str | None = None
    file: str | None = None
    reason: str | None = None
    by: str | None = None
    run: str | None = None
    """Workflow id of the run that closes it; None: that of the row before."""
    digest: str | None = None
    """Of the event that came first, or by which the job was started."""
    receipt: BlobRef | None = None
    kept: KeptTransfer | None = None


class TransferStore(Protocol):
    """`jobstatus`: the newest state of every transfer, and every state that it was in."""

    async def record(self, row: StatusRow) -> bool:
        """Add a state; the same one twice is one. What it leaves out stays as it was.

        Of events with the same source and id, the row is that of the one that came first, until
        the job of another one writes: Temporal has one job for both, so that one is carried out.

        Returns:
            False: the row is that of another event, and nothing was written.
        """
        ...

    async def note(self, row: StatusRow) -> None:
        """Add to the states that a transfer was in, and leave its state now as it is."""
        ...

    async def get(self, transfer_id: str) -> StatusRow | None:
        """The state of a transfer now; None: there is none."""
        ...

    async def find(self, beginning: str) -> Sequence[StatusRow]:
        """Transfers whose id begins so (8 hex digits and more), the newest first; at most 10."""
        ...

    async def trail(self, transfer_id: str) -> Sequence[StatusRow]:
        """States of a transfer, the oldest first."""
        ...

    async def newest(
        self,
        *,
        limit: int,
        status: TransferStatus | None = None,
        queue: str | None = None,
        account_id: str | None = None,
        reason: str | None = None,
        before: datetime | None = None,
        behind: str | None = None,
    ) -> Sequence[StatusRow]:
        """The state of each transfer now, the newest change first.

        Args:
            limit: At most so many.
            status: Only those in this state.
            queue: Only those of this queue.
            account_id: Only those of this account.
            reason: Only those whose reason begins so.
            before: Only those that changed earlier, UTC.
            behind: Id of the last transfer of a page, which changed at `before`: those of that
                very moment that come behind it as well.
        """
        ...

    async def count(self, status: TransferStatus) -> int:
        """How many transfers are in a state now."""
        ...


class Turns(Protocol):
    """Who may work on a sequence key, in the order of arrival.

    All that a run has is given back by the state of its end in `TransferStore`.
    """

    async def newest(self, watch: str, queue: str | None) -> datetime | None:
        """The last place that is reserved for an event of a watch; None: none is."""
        ...

    async def reserve(self, watch: str, queue: str | None, run: str, place: datetime) -> None:
        """Keep a place for the job of an event that a watch is about to send.

        Args:
            watch: Its name: its events keep the order of their places.
            queue: Where its events go, routed already; None: they are routed.
            run: Workflow id of the job; one that has a place keeps it.
            place: Behind those that are reserved already.
        """
        ...

    async def take(self, key: str, run: str, arrived: datetime) -> Sequence[str]:
        """Stand in line, or see how far one is.

        Args:
            key: What runs write one after the other.
            run: Workflow id; it stands in line once.
            arrived: Of its event: the earlier one comes first, unless another has begun. The
                place that was reserved for it counts instead.

        Returns:
            Workflow ids of those before it, the one whose turn it is first; none: it is its turn.
        """
        ...

    async def unreserve(self, run: str) -> None:
        """Give up the place that was reserved for a run, of which it needs none."""
        ...


@dataclass(frozen=True, slots=True)
class SettingsFile:
    """`jobsettings.json`, as it is now."""

    text: bytes
    ref: BlobRef
    """Its name, size and sha256."""


class SettingsSource(Protocol):
    """Where `jobsettings.json` is kept."""

    async def read(self) -> SettingsFile:
        """The file as it is now.

        Raises:
            RuleViolation: There is none, or it is too long.
            Unavailable: It cannot be read at the moment.
        """
        ...


class RouteStore(Protocol):
    """`jobconfig`, in the database or in Azure Tables."""

    async def version(self) -> str:
        """Changes whenever a rule does: what is kept in memory holds as long as it is the same."""
        ...

    async def rules(self) -> Sequence[RouteRule]:
        """All of them, those that are disabled included."""
        ...

    async def unusable(self) -> Sequence[RouteRemark]:
        """Rows that others wrote and of which no rule can be made, with the reason."""
        ...

    async def put(self, rule: RouteRule) -> None:
        """Insert or replace a rule; key: (queue, rule). The change stands in the trail."""
        ...

    async def remove(self, queue: str, rule: str, by: str | None) -> bool:
        """Remove a rule; False: there is none."""
        ...

    async def trail(self, limit: int = 200) -> Sequence[tuple[RouteRule, str]]:
        """Changes, the newest first, each with what was done: `added`, `changed`, `removed`."""
        ...


class PartnerStore(Protocol):
    """Records of partners."""

    async def get(self, name: str) -> Partner | None:
        """One; None: there is none."""
        ...

    async def all(self) -> Sequence[Partner]:
        """All, by name."""
        ...

    async def put(self, partner: Partner, *, expected: int | None = None) -> Partner:
        """Insert or replace; it is given the next revision.

        Args:
            partner: The record.
            expected: The revision that it replaces; None: whichever.

        Raises:
            RuleViolation: Another person has changed it meanwhile.
        """
        ...

    async def remove(self, name: str) -> bool:
        """Remove a record; False: there is none."""
        ...

    async def lease(self, name: str, owner: str, slots: int, seconds: float) -> bool:
        """Take or prolong one of a partner's sessions; False: all are taken."""
        ...

    async def release(self, name: str, owner: str) -> None:
        """Give a session back."""
        ...


class Staging(Protocol):
    """Bytes of runs between two actions; encrypted at rest when a key is set.

    References carry size and sha256 of the plain bytes.
    """

    async def write(self, run: str, name: str, chunks: AsyncIterator[bytes]) -> BlobRef:
        """Stream bytes in; there is no file when `chunks` raises. The same name is replaced.

        Args:
            run: Folder of the run: transfer id, and resend.
            name: Unique in the run: index of the action, round, number of the file.
            chunks: Pieces of any size.
        """
        ...

    def read(self, ref: BlobRef) -> AsyncIterator[bytes]:
        """Stream bytes out; damaged ones raise before the end.

        Raises:
            BlobNotFound: They are gone.
        """
        ...

    async def discard(self, ref: BlobRef) -> None:
        """Remove one file, as of an attempt that failed; one that is gone is not an error."""
        ...

    async def remove(self, run: str) -> int:
        """Remove everything of a run; how many files there were."""
        ...


class Notes(Protocol):
    """What attempts at an action leave for the next one, beside the staged bytes of the run.

    It survives a killed worker, and is removed with them. Texts of a few kilobytes.
    """

    async def read(self, run: str, name: str) -> bytes | None:
        """The newest text of that name; None: there is none."""
        ...

    async def write(self, run: str, name: str, text: bytes) -> None:
        """Insert or replace a text."""
        ...


class KeptCopies(Protocol):
    """Copies of what was written, encrypted, to be sent again."""

    async def keep(self, run: str, name: str, until: date, chunks: AsyncIterator[bytes]) -> BlobRef:
        """Stream a file in, kept up to and with a day.

        Raises:
            Denied: No key is set to encrypt it with.
        """
        ...

    def read(self, ref: BlobRef) -> AsyncIterator[bytes]:
        """Stream bytes out.

        Raises:
            BlobNotFound: They are not kept any more.
        """
        ...

    async def remove_before(self, day: date) -> int:
        """Remove what was kept up to earlier days; how many files there were."""
        ...


class EventSender(Protocol):
    """Has events carried out; the same event sent again changes nothing."""

    async def send(self, body: str, queue: str | None) -> str:
        """Send an event.

        Args:
            body: JSON in structured mode.
            queue: It goes to this queue, routed already; None: it is routed.

        Returns:
            Its transfer id.

        Raises:
            RuleViolation: There is no such queue, or another event has its source and id.
            Unavailable: It was not accepted.
        """
        ...


class StartedJobs(Protocol):
    """Jobs that Temporal has, however they were started."""

    async def job_digest(self, transfer_id: str) -> str | None:
        """Digest of the event that the job of a transfer was started by; None: it is not known.

        Raises:
            Unavailable: Temporal does not answer.
        """
        ...


class Secrets(Protocol):
    """Secrets by reference (`env:`, `file:`, `aws:`)."""

    async def secret(self, reference: str) -> str:
        """The secret.

        Raises:
            Denied: There is none; the message names the reference, never a value.
            Unavailable: The service that keeps it does not answer.
        """
        ...


class WatchStore(Protocol):
    """Files as watches saw them last."""

    async def seen(self, watch: str) -> Sequence[SeenFile]:
        """Files that were there at the last look."""
        ...

    async def vanished(self, watch: str, at: datetime) -> Sequence[SeenFile]:
        """Files that were found gone at that moment."""
        ...

    async def put(self, watch: str, files: Sequence[SeenFile]) -> None:
        """Insert or replace files; key: path."""
        ...

    async def prune(self, watch: str, before: datetime) -> int:
        """Remove files that vanished before a moment; how many they were."""
        ...

    async def files(self, watch: str, limit: int, *, unsent: bool = False) -> Sequence[SeenFile]:
        """Files for people, those that vanished included, the newest first.

        Args:
            watch: Whose.
            limit: How many at most.
            unsent: Only those without an event.
        """
        ...

    async def state(self, watch: str) -> WatchState | None:
        """What its last look came to; None: there was none."""
        ...

    async def put_state(self, state: WatchState) -> None:
        """Insert or replace."""
        ...


@dataclass(frozen=True, slots=True)
class Arrival:
    """A transfer that came on a queue."""

    transfer_id: str
    at: datetime
    key: RouteKey | None
    """None: it was recorded without."""
    file: str | None


class ExpectedStore(Protocol):
    """Days of expectations, and the arrivals that they are judged by."""

    async def arrivals(
        self, queue: str, begin: datetime, end: datetime, limit: int
    ) -> Sequence[Arrival]:
        """Transfers that came on a queue, each once, by the time at which it first came there.

        Args:
            queue: Which.
            begin: Included.
            end: Not included.
            limit: How many at most.
        """
        ...

    async def days(self, name: str, limit: int) -> Sequence[ExpectedDay]:
        """What was recorded of an expectation, the newest day first."""
        ...

    async def record(self, days: Sequence[ExpectedDay]) -> None:
        """Insert or replace; key: (name, day). What a person has closed stays closed."""
        ...
