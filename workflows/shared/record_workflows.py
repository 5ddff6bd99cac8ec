"""Workflows that write, close, tell and remove records for every pipeline."""

from temporalio import workflow

from workflows.shared import policies
from workflows.shared.records import (
    RECORD,
    ROW_RETENTION,
    RUN_SWEEPER,
    Rejection,
    RowRetentionInput,
    RowRetentionResult,
    RunsSwept,
    RunSweepInput,
)
from workflows.shared.run_webhooks import RUN_WEBHOOKS, RunsTold, RunWebhooksInput
from workflows.shared.steps import Rejections, RowRemoval, RunSweep
from workflows.shared.steps import RunWebhooks as RunWebhookSteps
from workflows.shared.waiting import Waiting


@workflow.defn(name=RECORD)
class RejectionRecord:
    """Its start is the promise that the message is recorded: it waits for the database."""

    @workflow.run
    async def run(self, rejection: Rejection) -> None:
        """Record it."""
        await Waiting().done(lambda: _record(rejection))


async def _record(rejection: Rejection) -> None:
    await workflow.execute_activity_method(
        Rejections.record,
        rejection,
        summary=f"record a message of {rejection.queue}"[:200],
        **policies.ANSWER,
    )


@workflow.defn(name=ROW_RETENTION)
class RowRetention:
    """Removes once; what a run does not reach is left to the next one."""

    @workflow.run
    async def run(self, order: RowRetentionInput) -> RowRetentionResult:
        """Remove what is due; safe to run twice and at any time."""
        return await Waiting().done(lambda: _removed(order))


async def _removed(order: RowRetentionInput) -> RowRetentionResult:
    return await workflow.execute_activity_method(
        RowRemoval.remove_old,
        order,
        summary=f"remove old rows of {order.pipeline}",
        **policies.LONG,
    )


@workflow.defn(name=RUN_SWEEPER)
class RunSweeper:
    """What `temporal workflow terminate` leaves behind is closed as `terminated`."""

    @workflow.run
    async def run(self, order: RunSweepInput) -> RunsSwept:
        """Sweep once; every worker serves it for its pipeline."""
        return await Waiting().done(lambda: _sweep(order))


async def _sweep(order: RunSweepInput) -> RunsSwept:
    return await workflow.execute_activity_method(
        RunSweep.sweep,
        order,
        summary=f"close rows of terminated runs of {order.pipeline}",
        **policies.LONG,
    )


@workflow.defn(name=RUN_WEBHOOKS)
class RunWebhooks:
    """Tells receivers once what has become of runs; what it does not reach is left to the next."""

    @workflow.run
    async def run(self, order: RunWebhooksInput) -> RunsTold:
        """Look and tell; safe to run twice and at any time."""
        return await Waiting().done(lambda: _told(order))


async def _told(order: RunWebhooksInput) -> RunsTold:
    return await workflow.execute_activity_method(
        RunWebhookSteps.tell, order, summary="tell receivers about runs", **policies.LONG
    )
