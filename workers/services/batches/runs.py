"""Runs of batches in Temporal: status, events and answers."""

import asyncio
import uuid
from collections.abc import Mapping
from typing import Final

from temporalio.client import WorkflowUpdateFailedError, WorkflowUpdateRPCTimeoutOrCancelledError
from temporalio.exceptions import ApplicationError

from contracts.batches import BatchAnswer, BatchKey, BatchStatus, CaseEvent, Timings
from contracts.errors import KEY_REUSED
from workers.connect import connect
from workers.services.batches.cases import CaseRuns
from workers.services.errors import Refused, TemporalUnavailable
from workers.services.runs import TemporalRuns, temporal_errors

PIPELINE: Final = "batches"
DELIVERY_SECONDS: Final = 10.0
"""A case answers in a fraction of a second, when there is a worker to run it."""


class BatchRuns(TemporalRuns):
    """Runs of batches of one namespace."""

    async def status(self, key: BatchKey) -> BatchStatus | None:
        """Where the newest run of a batch stands; None: there is none.

        Raises:
            TemporalUnavailable: No worker answers.
        """
        return await self.query(key.workflow_id, "status", BatchStatus)

    async def send(self, event: CaseEvent, timings: Timings) -> str:
        """Deliver an event to its case; the workflow id of the run that accepted it.

        Raises:
            Refused: The batch was started with other timings before.
            TemporalUnavailable: It was not accepted, or no worker answered.
        """
        workflow_id = event.key.case_workflow_id
        name = f"{event.event_type} of {event.key}"
        with temporal_errors():
            try:
                async with asyncio.timeout(DELIVERY_SECONDS):
                    # Sent again by a person, an event is meant again.
                    await CaseRuns(self.client, timings).deliver(event, uuid.uuid4().hex)
            except (TimeoutError, WorkflowUpdateRPCTimeoutOrCancelledError) as error:
                raise TemporalUnavailable(
                    f"{name}: {workflow_id} does not answer; is a worker of {PIPELINE} running?"
                ) from error
            except WorkflowUpdateFailedError as error:
                cause = error.cause
                if isinstance(cause, ApplicationError) and cause.type == KEY_REUSED:
                    raise Refused(f"{name} was refused: {cause.message}") from error
                raise TemporalUnavailable(f"{name} was not accepted: {error.cause}") from error
        return workflow_id

    async def answer(self, key: BatchKey, name: str, answer: BatchAnswer) -> None:
        """Send an update (`retry`, `skip`, `fail`) and wait until it is applied.

        Raises:
            NotFound: There is no such open run.
            Refused: The run refused; nothing has changed.
            TemporalUnavailable: No worker answered.
        """
        await self.update(key.workflow_id, name, answer, type(None), PIPELINE)


async def open_runs(environment: Mapping[str, str]) -> BatchRuns:
    """Connect.

    Raises:
        TemporalUnreachable: Temporal does not answer.
    """
    return BatchRuns(await connect(), environment)
