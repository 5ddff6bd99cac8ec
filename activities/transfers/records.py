"""Records of transfers: what is stored, returned by the service, served and shown."""

from collections.abc import Sequence
from datetime import datetime
from typing import Annotated, Any, Literal, Self

from workflows.shared.contracts import BlobRef, PlainRecord, not_served, served
from workflows.transfers.events import FileNotice, TransferStatus, file_of
from workflows.transfers.runs import KeptTransfer, TransferView

_UNKNOWN = "unknown"


class TransferState(PlainRecord):
    """A state that a transfer was in: a row of `jobstatus`."""

    status: Annotated[TransferStatus, served("The state", "Assigned")]
    at: Annotated[datetime, served("When it was entered", "2026-03-01T08:00:01Z")]
    queue: Annotated[str | None, served("Queue of the transfer", "orders")] = None
    job: Annotated[str | None, served("Its job in the settings", "send-orders")] = None
    reason: Annotated[str | None, served("Why", "rule r1 of queue orders")] = None
    by: Annotated[str | None, served("Who decided it", "anna@example.org")] = None


class _Event(PlainRecord):
    transfer_id: Annotated[str, served("SHA-256 of source and id of the event", "5eed" * 16)]
    source: Annotated[str, served("Source of the event", "TMS.Route")]
    event_id: Annotated[str, served("Id of the event", "1047")]
    account_id: Annotated[str | None, served("Account that it is about", "TMS001")] = None
    organisation_id: Annotated[
        int | None, served("Organisation that it belongs to; null: the installation", 3)
    ] = None
    type: Annotated[str | None, served("Type of the event", "Succeeded")] = None
    subject: Annotated[str | None, served("Subject of the event", "File Upload")] = None
    file: Annotated[str | None, served("Name of the file", "routes.csv.pgp")] = None
    at: Annotated[datetime, served("When it changed last", "2026-03-01T08:00:01Z")]
    queue: Annotated[str | None, served("Its queue", "orders")] = None
    job: Annotated[str | None, served("Its job in the settings", "send-orders")] = None
    reason: Annotated[str | None, served("Why it is in this state", "no rule matches")] = None
    trail: Annotated[
        Sequence[TransferState], served("Its states, the oldest first; not in lists", [])
    ] = ()
    view: Annotated[
        TransferView | None, served("Its actions, as long as it is open", None, "run")
    ] = None

    @classmethod
    def of(
        cls, transfer_id: str, event: FileNotice | None, file: str | None = None, **state: Any
    ) -> Self:
        """Describe the transfer of an event.

        Args:
            transfer_id: Its id.
            event: The event; None: the message is none.
            file: The file, if the job knows it better than the event.
            state: Further fields.
        """
        if event is None:
            return cls(
                transfer_id=transfer_id, source=_UNKNOWN, event_id=transfer_id, file=file, **state
            )
        return cls(
            transfer_id=transfer_id,
            source=event.source,
            event_id=event.id,
            account_id=event.account_id,
            organisation_id=event.organisation_id,
            type=event.type,
            subject=event.subject,
            file=file or file_of(event),
            **state,
        )


class Transfer(_Event):
    """A transfer as it is now."""

    status: Annotated[TransferStatus, served("Its state", "NoAssigned")]
    by: Annotated[str | None, served("Who decided it", "anna@example.org")] = None
    offers: Annotated[
        Sequence[str], served("What a person can have done with it now; not in lists", ["retry"])
    ] = ()
    run: Annotated[str | None, not_served()] = None
    """Workflow id of the run that closes it; None: that of the row before."""
    digest: Annotated[str | None, not_served()] = None
    """Of the event that came first, or by which the job was started."""
    receipt: Annotated[
        BlobRef | None, served("The blob of its receipt, with its SHA-256; null: none yet", None)
    ] = None
    kept: Annotated[KeptTransfer | None, not_served()] = None
    size: Annotated[int | None, not_served()] = None
    """Bytes that it has read."""
    link: Annotated[str | None, not_served()] = None
    """To its run in the Web UI."""

    @property
    def is_parked(self) -> bool:
        """It waits for a person."""
        if self.status is TransferStatus.NO_ASSIGNED:
            return True
        return self.view is not None and self.view.since is not None


class AcceptedEvent(_Event):
    """An event that no worker has checked yet: its run is known to Temporal alone."""

    status: Annotated[Literal["Accepted"], served("No worker has checked it", "Accepted")] = (
        "Accepted"
    )
    ended: Annotated[str | None, not_served()] = None
    """How its run ended before it wrote a row, as in `was terminated`; None: it is open."""
