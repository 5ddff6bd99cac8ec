"""Removes rows of one pipeline that are no longer kept; started by a schedule, once a day."""

from temporalio import workflow

from activities.row_retention import RowRemoval
from contracts.retention import ROW_RETENTION, RowRetentionOrder, RowRetentionResult
from workflows import policies
from workflows.waiting import Waiting


@workflow.defn(name=ROW_RETENTION)
class RowRetention:
    """Removes once; what a run does not reach is left to the next one."""

    @workflow.run
    async def run(self, order: RowRetentionOrder) -> RowRetentionResult:
        """Remove what is due; safe to run twice and at any time."""
        return await Waiting().done(lambda: _removed(order))


async def _removed(order: RowRetentionOrder) -> RowRetentionResult:
    return await workflow.execute_activity_method(
        RowRemoval.remove_old,
        order,
        summary=f"remove old rows of {order.pipeline}",
        **policies.LONG,
    )
