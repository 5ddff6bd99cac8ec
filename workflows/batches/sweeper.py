"""Removes what runs that were terminated left behind."""

import asyncio
from typing import Final

from temporalio import workflow
from temporalio.exceptions import FailureError, WorkflowAlreadyStartedError
from temporalio.workflow import ParentClosePolicy

from workflows.batches.batch_lifecycle import BatchLifecycle
from workflows.batches.names import BatchKey, Purpose
from workflows.batches.runs import BatchInput, Orphans, SweepInput, Swept
from workflows.batches.steps import BatchOrphans
from workflows.shared import attributes, policies
from workflows.shared.failures import explain, reraise_cancellation
from workflows.shared.waiting import Waiting

AT_ONCE: Final = 5
"""Batches swept side by side: the cloud's control planes throttle early."""


@workflow.defn(name="BatchSweeper")
class BatchSweeper:
    """Finds resources whose batch has no open run, and removes them.

    Each batch is swept by a run of the batch's own id: the batch cannot be started meanwhile, and
    one that was started before is left alone.
    """

    @workflow.run
    async def run(self, order: SweepInput) -> Swept:
        """Sweep up to `order.most` batches."""
        orphans = await Waiting().done(lambda: _orphans(order))
        workflow.set_current_details(_details(orphans))
        room = asyncio.Semaphore(AT_ONCE)
        swept = await asyncio.gather(*(self._sweep(key, room) for key in orphans.keys))
        return Swept(
            batches=sum(clean is not None for clean in swept),
            left=sum(clean is False for clean in swept),
            more=orphans.more,
            not_ours=orphans.not_ours,
        )

    async def _sweep(self, key: BatchKey, room: asyncio.Semaphore) -> bool | None:
        """Whether nothing is left; None: the batch has been started meanwhile."""
        async with room:
            try:
                result = await workflow.execute_child_workflow(
                    BatchLifecycle.run,
                    BatchInput(key=key, purpose=Purpose.SWEEP, notify=False, notices=True),
                    id=key.workflow_id,
                    parent_close_policy=ParentClosePolicy.ABANDON,
                    search_attributes=attributes.at_start(
                        "batches", Purpose.SWEEP, str(key.case_id)
                    ),
                    static_summary=f"{str(key).capitalize()}: sweep",
                )
            except WorkflowAlreadyStartedError:
                return None
            except FailureError as error:
                reraise_cancellation(error)
                workflow.logger.warning("%s not swept: %s", key, explain(error))
                return False
            return not result.left


def _details(orphans: Orphans) -> str:
    """What an operator sees of the run."""
    parts = {
        "Sweeping": orphans.keys,
        "Left alone: something has one of our names and another owner's tag": orphans.not_ours,
    }
    return "\n\n".join(
        f"{title}\n\n" + "\n".join(f"- {key}" for key in keys)
        for title, keys in parts.items()
        if keys
    )


async def _orphans(order: SweepInput) -> Orphans:
    return await workflow.execute_activity_method(
        BatchOrphans.orphans, order, summary="find orphaned resources", **policies.LONG
    )
