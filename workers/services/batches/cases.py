"""Delivering events to the runs of cases; an event starts its case's run where there is none."""

import asyncio

from temporalio.client import (
    Client,
    WithStartWorkflowOperation,
    WorkflowUpdateRPCTimeoutOrCancelledError,
)
from temporalio.common import Priority, WorkflowIDConflictPolicy, WorkflowIDReusePolicy

from contracts.batches import TASK_QUEUE, CaseEvent, CaseOrder, Timings
from workers.services.intake import START_TIMEOUT, short
from workflows import attributes
from workflows.batches.case_queue import CaseQueue


class CaseRuns:
    """Runs of cases in one namespace.

    Args:
        client: Of the namespace in which batches run.
        timings: Of every batch that brings none of its own.
    """

    def __init__(self, client: Client, timings: Timings) -> None:
        self._client = client
        self._timings = timings

    async def deliver(self, event: CaseEvent, update_id: str) -> None:
        """Deliver an event and wait until its case has accepted it.

        Args:
            event: Recorded once, however often it is delivered under the same id.
            update_id: Of the delivery.

        Raises:
            WorkflowUpdateFailedError: The case cannot accept it now.
            WorkflowUpdateRPCTimeoutOrCancelledError: No worker answered.
            RPCError: Temporal does not accept it.
        """
        start = self._start(event)
        # Errors of the start surface both here and on the handle: both have to be awaited.
        started = asyncio.create_task(start.workflow_handle())
        try:
            await self._client.execute_update_with_start_workflow(
                CaseQueue.take,
                event,
                start_workflow_operation=start,
                id=update_id,
                rpc_timeout=START_TIMEOUT,
            )
        except WorkflowUpdateRPCTimeoutOrCancelledError as error:
            # The client raises this for a cancellation as well, which must not be swallowed.
            if isinstance(error.__cause__, asyncio.CancelledError):
                raise asyncio.CancelledError from error
            raise
        finally:
            started.cancel()
            await asyncio.gather(started, return_exceptions=True)

    def _start(self, event: CaseEvent) -> WithStartWorkflowOperation[CaseQueue, object]:
        return WithStartWorkflowOperation(
            CaseQueue.run,
            CaseOrder(case_id=event.case_id, timings=self._timings),
            id=event.key.case_workflow_id,
            task_queue=TASK_QUEUE,
            # Its batches and their steps inherit it.
            priority=Priority(fairness_key=event.key.fairness_key),
            id_conflict_policy=WorkflowIDConflictPolicy.USE_EXISTING,
            id_reuse_policy=WorkflowIDReusePolicy.ALLOW_DUPLICATE,
            search_attributes=attributes.at_start("batches", event.event_type, str(event.case_id)),
            static_summary=short(f"Batches of case {event.case_id}"),
        )
