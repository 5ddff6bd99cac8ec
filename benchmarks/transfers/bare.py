"""The shape of an event and its job, with activities that do nothing."""

from datetime import timedelta
from typing import Final

from temporalio import activity, workflow
from temporalio.common import RetryPolicy
from temporalio.workflow import ParentClosePolicy

from workflows.shared.contracts import Contract

EVENTS: Final = "bare-events"
JOBS: Final = "bare-jobs"
_ONCE: Final = RetryPolicy(maximum_attempts=1)


class Bare(Contract):
    """Input and result of everything."""

    number: int
    remote: int = 2
    """Remote activities of its job."""


@activity.defn(name="bare.step")
async def step(bare: Bare) -> Bare:
    """Nothing."""
    return bare


async def _locally(bare: Bare) -> None:
    await workflow.execute_local_activity(
        step, bare, start_to_close_timeout=timedelta(minutes=1), retry_policy=_ONCE
    )


@workflow.defn(name="BareEvent")
class BareEvent:
    """One local step, and a child that outlives it."""

    @workflow.run
    async def run(self, bare: Bare) -> Bare:
        """Start the child."""
        await _locally(bare)
        await workflow.start_child_workflow(
            BareJob.run,
            bare,
            id=f"{workflow.info().workflow_id}/job",
            task_queue=JOBS,
            parent_close_policy=ParentClosePolicy.ABANDON,
        )
        return bare


@workflow.defn(name="BareJob")
class BareJob:
    """A local step, remote ones, a local one."""

    @workflow.run
    async def run(self, bare: Bare) -> Bare:
        """Do all of them."""
        await _locally(bare)
        for _ in range(bare.remote):
            await workflow.execute_activity(
                step, bare, start_to_close_timeout=timedelta(minutes=1), retry_policy=_ONCE
            )
        await _locally(bare)
        return bare
