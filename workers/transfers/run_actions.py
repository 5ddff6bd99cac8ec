"""What can be done to runs of transfers, by id."""

from collections.abc import Mapping
from contextlib import AbstractAsyncContextManager
from dataclasses import replace
from typing import TYPE_CHECKING, Any, Final

from workers.shared.register import Run
from workers.shared.services.bodies import correction_of
from workers.shared.services.errors import InvalidRequest
from workers.shared.services.identity import acting_user
from workers.shared.services.run_actions import (
    AnswerRequest,
    Report,
    RunActions,
    send_answer,
)
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


class TransferRunActions:
    """What can be done to events and to their jobs."""

    pipeline = "transfers"
    naming = "transfer/ID, transfer/ID/job, or the first 8 characters of ID or more"
    corrects: frozenset[str] = frozenset({"retry"})
    changes: frozenset[str] = frozenset()

    def name(self, run: Run) -> str:
        """The workflow id."""
        return run.workflow_id

    async def answer(
        self, environment: Mapping[str, str], run: Run, request: AnswerRequest
    ) -> Mapping[str, Any]:
        """Send the update of the verb; `retry` takes the failed action with corrected settings.

        Raises:
            InvalidRequest: The correction is not a JSON object.
            ServiceError: There is no such open run, it refused, or no worker answered.
        """
        action = correction_of(request.correction, "action")
        named = replace(request, by=request.by or acting_user(environment))
        return await send_answer(environment, run, named, action=action)

    def report(
        self, environment: Mapping[str, str], run: Run
    ) -> AbstractAsyncContextManager[Report]:
        """No run offers one."""
        raise InvalidRequest(f"{run.workflow_id} has no report; see `docflow transfers receipt`")


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


RUN_ACTIONS: Final[RunActions] = TransferRunActions()
