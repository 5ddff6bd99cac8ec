"""Runs of batches in Temporal: status, events and answers."""

import asyncio
import uuid
from collections.abc import Mapping
from typing import Final

from temporalio.client import WorkflowUpdateFailedError, WorkflowUpdateRPCTimeoutOrCancelledError
from temporalio.exceptions import ApplicationError

from adapters.ports import BatchStore
from contracts.batches import (
    BatchAnswer,
    BatchKey,
    BatchStatus,
    CaseEvent,
    CaseStatus,
    JobFinished,
    JobStarted,
    Timings,
)
from contracts.errors import KEY_REUSED
from domain.batches.events import STARTABLE
from workers.connect import connect
from workers.services.batches import access
from workers.services.batches.cases import CaseRuns
from workers.services.batches.outcomes import standing
from workers.services.errors import NotFound, Refused, TemporalUnavailable, WrongState
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

    async def is_unrecorded(self, key: BatchKey) -> bool:
        """Whether an event of a batch is accepted, and stands in no row yet.

        Raises:
            TemporalUnavailable: The case runs, and no worker answers for it.
        """
        view = await self.look(key.case_workflow_id)
        if view is None or view.closed:
            return False
        case = await self.query(key.case_workflow_id, "status", CaseStatus)
        return case is not None and key.batch_id in case.unrecorded

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


async def refuse_in_vain(runs: BatchRuns, environment: Mapping[str, str], key: BatchKey) -> None:
    """Refuse an event of a person that changes nothing.

    Raises:
        NotFound: There is no such batch.
        WrongState: It has ended.
    """
    async with access.open_store(environment) as store:
        await refuse_cancel_in_vain(runs, store, key)


async def refuse_cancel_in_vain(runs: BatchRuns, store: BatchStore, key: BatchKey) -> None:
    """Refuse to cancel what is not there, or has ended.

    Raises:
        NotFound: There is no such batch.
        WrongState: It has ended.
    """
    # Asked first: what the case has recorded meanwhile stands in the table.
    is_coming = await runs.is_unrecorded(key)
    view = await store.get(key)
    if view is None and not is_coming:
        raise NotFound(f"there is no {key}; `docflow batches list` shows what there is")
    if view is not None and view.status.terminal and not is_coming:
        raise WrongState(f"{key} {standing(view.status)}: there is nothing to cancel")


async def refuse_event_in_vain(
    runs: BatchRuns, environment: Mapping[str, str], event: JobStarted | JobFinished
) -> None:
    """Refuse to start a batch that is not loaded again, or to finish one that has ended.

    Raises:
        WrongState: It would change nothing; the message says what to do.
    """
    # Asked first: what the case has recorded meanwhile stands in the table.
    is_coming = await runs.is_unrecorded(event.key)
    async with access.open_store(environment) as store:
        view = await store.get(event.key)
    if is_coming or view is None or not view.status.terminal:
        return
    ended = f"{event.key} {standing(view.status)}"
    if view.status not in STARTABLE:
        raise WrongState(f"{ended}, and not loaded again: send its documents in another batch")
    if isinstance(event, JobFinished):
        raise WrongState(f"{ended}: start it again first")


async def open_runs(environment: Mapping[str, str]) -> BatchRuns:
    """Connect.

    Raises:
        TemporalUnreachable: Temporal does not answer.
    """
    return BatchRuns(await connect(), environment)
