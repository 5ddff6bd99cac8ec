"""Which answers a transfer takes now: what pages and commands offer."""

from collections.abc import Sequence
from datetime import UTC, datetime
from enum import StrEnum
from typing import TYPE_CHECKING

from contracts.transfers import TransferStatus, file_job_id
from domain.transfers.job_settings import LEFT_OUT
from workers.services.transfers.verbs import run_of

if TYPE_CHECKING:
    from workers.services.transfers.service import TransferDetails


class Offer(StrEnum):
    """Something that a person can have done with a transfer."""

    ASSIGN = "assign"
    """Name its queue."""
    REROUTE = "reroute"
    """Look at the rules again."""
    RETRY = "retry"
    CORRECT = "correct"
    """Try again with other settings of the action that failed, or those that the file has now."""
    SKIP = "skip"
    FAIL = "fail"
    CANCEL = "cancel"
    RESEND = "resend"
    REDRIVE = "redrive"


def offers(found: "TransferDetails") -> Sequence[Offer]:
    """What a person can have done with a transfer, as its row and its run say."""
    return [*_answers(found), *_others(found)]


def _answers(found: "TransferDetails") -> Sequence[Offer]:
    """Of a run that waits for a person; of another one, none."""
    view = found.view
    if view is None or view.since is None:
        return ()
    if view.status is TransferStatus.NO_ASSIGNED:
        return (Offer.ASSIGN, Offer.REROUTE, Offer.SKIP, Offer.FAIL)
    parked = [each for each in view.actions if each.state == "parked"]
    offered = [Offer.RETRY]
    if parked:
        offered.append(Offer.CORRECT)
    elif not view.actions:
        # Parked at `settings`: no action has begun.
        offered.insert(0, Offer.ASSIGN)
    if any(each.action in LEFT_OUT for each in parked):
        offered.append(Offer.SKIP)
    return (*offered, Offer.FAIL)


def _others(found: "TransferDetails") -> Sequence[Offer]:
    row, view = found.row, found.view
    match row.status:
        case TransferStatus.READ_MESSAGE if view is not None:
            return (Offer.CANCEL,)
        case TransferStatus.SUCCEEDED if row.kept is not None:
            return (Offer.RESEND,) if row.kept.until >= datetime.now(UTC).date() else ()
        case TransferStatus.FAILED if run_of(row) == file_job_id(row.transfer_id):
            return (Offer.REDRIVE,)
        case _:
            return ()
