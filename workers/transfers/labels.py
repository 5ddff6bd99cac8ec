"""What the pages call states of transfers and of their actions."""

from collections.abc import Mapping, Sequence
from typing import Final

from workers.shared.text import N_, Label
from workers.transfers.redrive import TransferOverview
from workflows.transfers.events import TransferStatus
from workflows.transfers.routes import ANY, is_exact
from workflows.transfers.watches import ExpectedState

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


PARTNERS: Final[Mapping[str, Label]] = {
    "enabled": Label(N_("Enabled"), "good"),
    "disabled": Label(N_("Disabled"), "warn"),
    "stopped": Label(N_("Stopped"), "bad"),
}
CLOCKS: Final[Mapping[str, Label]] = {
    "active": Label(N_("Active"), "good"),
    "paused": Label(N_("Paused"), "warn"),
    "missing": Label(N_("Missing"), "bad"),
}
DAYS: Final[Mapping[ExpectedState, Label]] = {
    ExpectedState.PENDING: Label(N_("Not due yet"), "info"),
    ExpectedState.MET: Label(N_("Came in time"), "good"),
    ExpectedState.MISSING: Label(N_("Missing"), "bad"),
    ExpectedState.LATE: Label(N_("Came late"), "warn"),
    ExpectedState.TOO_MANY: Label(N_("Too many"), "warn"),
    ExpectedState.CLOSED: Label(N_("Closed")),
}
CHANGES: Final[Mapping[str, str]] = {
    "added": N_("added"),
    "changed": N_("changed"),
    "removed": N_("removed"),
}
ATTRIBUTES: Final[Mapping[str, str]] = {
    "account_id": N_("Account"),
    "source": N_("Source"),
    "type": N_("Type"),
    "subject": N_("Subject"),
}
"""Of events and rules, as pages call them."""


def condition(pattern: str) -> str:
    """How a pattern that has matched does it."""
    if pattern == ANY:
        return N_("takes anything")
    return N_("is exactly it") if is_exact(pattern) else N_("takes it, as a pattern")


_READS: Final = N_("Reads from")
_SENDS: Final = N_("Sends to")


def sides(found: TransferOverview) -> Sequence[tuple[str, str, str]]:
    """Where the files of a transfer come from and go to: what is done, the partner, the place."""
    return [
        (_READS if each.action == "ReadFile" else _SENDS, name, detail.place or "")
        for each, detail in found.actions
        if (name := detail.partner)
    ]


def verify(transfer_id: str) -> str:
    """The command that verifies a receipt."""
    return f"docflow transfer receipt {transfer_id[:12]} --verify"
