"""What the pages call states of transfers and of their actions."""

from collections.abc import Mapping
from typing import Final

from workers.shared.gateway.pages.renderer import N_
from workers.shared.text import Label
from workflows.transfers.events import TransferStatus

TRANSFERS: Final[Mapping[TransferStatus, Label]] = {
    TransferStatus.INVALID: Label(N_("Invalid"), "bad"),
    TransferStatus.GARBAGE: Label(N_("Garbage"), "bad"),
    TransferStatus.NO_ASSIGNED: Label(N_("Not assigned"), "warn"),
    TransferStatus.ASSIGNED: Label(N_("Assigned")),
    TransferStatus.READ_MESSAGE: Label(N_("In progress"), "info"),
    TransferStatus.SUCCEEDED: Label(N_("Succeeded"), "good"),
    TransferStatus.FAILED: Label(N_("Failed"), "bad"),
}
OPEN: Final = (TransferStatus.NO_ASSIGNED, TransferStatus.ASSIGNED, TransferStatus.READ_MESSAGE)
EXAMPLE: Final = '{"Path": "in/{name}"}'
"""Of corrected settings."""
PARKED: Final = Label(N_("Waits for a decision"), "warn")
WAITS: Final = Label(N_("Waits"), "warn")
_ACTIONS: Final[Mapping[str, Label]] = {
    "open": Label(N_("Not begun")),
    "running": Label(N_("Running"), "info"),
    "waiting": WAITS,
    "parked": PARKED,
    "done": Label(N_("Done"), "good"),
    "skipped": Label(N_("Left out")),
    "failed": Label(N_("Failed"), "bad"),
}


def of_action(state: str) -> Label:
    """The state of an action; one of a newer release as it is named there."""
    return _ACTIONS.get(state, Label(state))


def verify(transfer_id: str) -> str:
    """The command that verifies a receipt."""
    return f"docflow transfer receipt {transfer_id[:12]} --verify"
