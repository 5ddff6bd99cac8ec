"""Removes kept copies whose last day is over; started by a schedule, once a day."""

from temporalio import workflow

from activities.transfers.receipt import CopyRemoval
from contracts.transfers import CopyRetentionOrder, CopyRetentionResult
from workflows import policies
from workflows.waiting import Waiting


@workflow.defn(name="TransferCopyRetention")
class TransferCopyRetention:
    """Looks once; what it does not come to is found the next day."""

    @workflow.run
    async def run(self, order: CopyRetentionOrder) -> CopyRetentionResult:
        """Remove the copies."""
        return await Waiting().done(lambda: _removed(order))


async def _removed(order: CopyRetentionOrder) -> CopyRetentionResult:
    return await workflow.execute_activity_method(
        CopyRemoval.remove_copies, order, summary="remove kept copies", **policies.LONG
    )
