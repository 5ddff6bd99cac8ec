"""Removes what is kept no longer: files, row results and values of old imports."""

from temporalio import workflow
from temporalio.exceptions import FailureError, is_cancelled_exception

from activities.spreadsheets.retention import SpreadsheetRetentionSteps
from contracts.spreadsheets import (
    Answer,
    ExpiredInput,
    PurgeInput,
    PurgeResult,
    RetentionOrder,
    workflow_id,
)
from workflows import policies
from workflows.steps import explain


@workflow.defn(name="SpreadsheetRetention")
class SpreadsheetRetention:
    """Page by page, the oldest first; what one run does not reach, the next one does."""

    @workflow.run
    async def run(self, order: RetentionOrder) -> PurgeResult:
        """Purge what is due; safe to run twice and at any time."""
        due = ExpiredInput(order=order, now=workflow.now())
        purged = 0
        while purged < order.most:
            page = await workflow.execute_activity_method(
                SpreadsheetRetentionSteps.expired, due, summary="what is due", **policies.LONG
            )
            if not page.uuids:
                break
            for uuid in page.waiting:
                await self._give_up(uuid)
            done = await workflow.execute_activity_method(
                SpreadsheetRetentionSteps.purge,
                PurgeInput(uuids=page.uuids, now=due.now),
                summary=f"purge {len(page.uuids)} imports",
                **policies.LONG,
            )
            purged += done.purged
            if not done.purged:
                break
        leftovers = await workflow.execute_activity_method(
            SpreadsheetRetentionSteps.purge_leftovers, due, summary="leftovers", **policies.LONG
        )
        return leftovers.model_copy(update={"purged": purged})

    async def _give_up(self, uuid: str) -> None:
        """End a run that still waits for answers about a file that is about to go."""
        run = workflow.get_external_workflow_handle(workflow_id(uuid))
        try:
            await run.signal(
                "cancel", Answer(by="retention", reason="nobody has answered for too long")
            )
        except FailureError as error:
            if is_cancelled_exception(error):
                raise
            # A run that is gone already waits for nobody.
            workflow.logger.info("%s: %s", uuid, explain(error))
