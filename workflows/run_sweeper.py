"""Closes the rows of runs of one pipeline that ended without closing them."""

from temporalio import workflow

from activities.run_sweep import RunSweep
from contracts.sweep import RUN_SWEEPER, RunsSwept, RunSweepOrder
from workflows import policies
from workflows.waiting import Waiting


@workflow.defn(name=RUN_SWEEPER)
class RunSweeper:
    """What `temporal workflow terminate` leaves behind is closed as `terminated`."""

    @workflow.run
    async def run(self, order: RunSweepOrder) -> RunsSwept:
        """Sweep once; every worker serves it for its pipeline."""
        return await Waiting().done(lambda: _sweep(order))


async def _sweep(order: RunSweepOrder) -> RunsSwept:
    return await workflow.execute_activity_method(
        RunSweep.sweep,
        order,
        summary=f"close rows of terminated runs of {order.pipeline}",
        **policies.LONG,
    )
