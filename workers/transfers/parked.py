"""Which transfers wait for a person, by their rows."""

from collections.abc import Mapping
from typing import TYPE_CHECKING, Final

from workflows.transfers.events import TransferStatus
from workflows.transfers.runs import file_job_id, transfer_workflow_id

if TYPE_CHECKING:
    from activities.transfers.records import Transfer

SHOWN: Final = 12
"""Characters of an id, for people."""
_PARKED: Final = "parked: "
"""Begins the reason of a row whose run is parked."""
WAITING: Final[Mapping[TransferStatus, str | None]] = {
    TransferStatus.NO_ASSIGNED: None,
    TransferStatus.READ_MESSAGE: _PARKED,
}
"""States of transfers that may wait for a person, and how the reason of those that do begins."""
_EVENTS: Final = (TransferStatus.INVALID, TransferStatus.GARBAGE, TransferStatus.NO_ASSIGNED)


def run_of(row: "Transfer") -> str:
    """The workflow id of the run that a row is about."""
    if row.run is not None:
        return row.run
    is_event = row.status in _EVENTS
    return (transfer_workflow_id if is_event else file_job_id)(row.transfer_id)


def parked_reason(row: "Transfer") -> str | None:
    """Why a transfer waits for a person; None: it does not."""
    reason = row.reason or ""
    if row.status is TransferStatus.NO_ASSIGNED:
        return reason
    is_parked = row.status in WAITING and reason.startswith(_PARKED)
    return reason.removeprefix(_PARKED) if is_parked else None
