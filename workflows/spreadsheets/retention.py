"""Removes what is no longer kept: files, row results and values of old imports."""

from functools import partial

from temporalio import workflow
from temporalio.exceptions import FailureError

from activities.spreadsheets.retention import SpreadsheetRetentionSteps
from contracts.spreadsheets import (
    Answer,
    ExpiredInput,
    ExpiredPage,
    PurgeInput,
    PurgeResult,
    RetentionOrder,
    workflow_id,
)
from workflows import policies
from workflows.failures import explain, reraise_cancellation
from workflows.waiting import Waiting


@workflow.defn(name="SpreadsheetRetention")
class SpreadsheetRetention:
    """Page by page, the oldest first; what one run does not reach is left to the next one."""

    @workflow.run
    async def run(self, order: RetentionOrder) -> PurgeResult:
        """Purge what is due; safe to run twice and at any time."""
        waiting = Waiting()
        due = ExpiredInput(order=order, now=workflow.now())
        purged = 0
        while purged < order.most:
            page = await waiting.done(lambda: _expired(due))
            if not page.uuids:
                break
            for uuid in page.waiting:
                await self._cancel_waiting(uuid)
            work = PurgeInput(uuids=page.uuids, now=due.now)
            done = await waiting.done(partial(_purge, work))
            purged += done.purged
            if not done.purged:
                break
        leftovers = await waiting.done(lambda: _purge_leftovers(due))
        return leftovers.model_copy(update={"purged": purged})

    async def _cancel_waiting(self, uuid: str) -> None:
        """Cancel a run that still waits for answers about a file that is to be removed."""
        run = workflow.get_external_workflow_handle(workflow_id(uuid))
        try:
            await run.signal("cancel", Answer(by="retention", reason="no answer for too long"))
        except FailureError as error:
            reraise_cancellation(error)
            # A run that has ended already awaits no answer.
            workflow.logger.info("%s: %s", uuid, explain(error))


async def _expired(due: ExpiredInput) -> ExpiredPage:
    return await workflow.execute_activity_method(
        SpreadsheetRetentionSteps.expired, due, summary="what is due", **policies.LONG
    )


async def _purge(work: PurgeInput) -> PurgeResult:
    return await workflow.execute_activity_method(
        SpreadsheetRetentionSteps.purge,
        work,
        summary=f"purge {len(work.uuids)} imports",
        **policies.LONG,
    )


async def _purge_leftovers(due: ExpiredInput) -> PurgeResult:
    return await workflow.execute_activity_method(
        SpreadsheetRetentionSteps.purge_leftovers, due, summary="leftovers", **policies.LONG
    )
