"""At most 500 tasks of a stage, in a run of their own: one blob of results."""

import asyncio

from temporalio import workflow

from activities.jobs.task_batches import BatchRecords
from contracts.jobs import TASK_BATCH, BatchEnd, BatchOrder
from workflows import policies
from workflows.failures import failures_logged
from workflows.jobs.batch_work import BatchWork


@workflow.defn(name=TASK_BATCH)
class TaskBatch:
    """Does the tasks of a batch and puts their results together; reports to its stage."""

    @workflow.init
    def __init__(self, order: BatchOrder) -> None:
        self._work = BatchWork(order, workflow.info().start_time, self._report)

    @workflow.run
    async def run(self, order: BatchOrder) -> BatchEnd:
        """Do the tasks; a cancelled batch ends as well, with what it has."""
        await self._work.run()
        end = await self._work.waiting.done_despite_cancel(self._close)
        await workflow.wait_condition(workflow.all_handlers_finished)
        return self._work.end(end.counts)

    async def _close(self) -> BatchEnd:
        return await workflow.execute_activity_method(
            BatchRecords.close_batch,
            self._work.recording(),
            summary="results of the batch",
            **policies.LONG,
        )

    def _report(self) -> None:
        asyncio.create_task(self._report_to_stage())  # noqa: RUF006 - the run keeps its tasks

    async def _report_to_stage(self) -> None:
        parent = workflow.info().parent
        if parent is None:
            return
        stage = workflow.get_external_workflow_handle(parent.workflow_id, run_id=parent.run_id)
        with failures_logged("the stage was not sent the progress of its batch"):
            await stage.signal("progress", self._work.progress)

    @workflow.signal(name="stop")
    def stop(self) -> None:
        """Begin no further task; those in progress are finished."""
        self._work.stop()
