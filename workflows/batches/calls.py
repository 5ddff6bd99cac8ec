"""Steps of a batch beside its infrastructure: one method, one activity."""

from collections.abc import Callable
from datetime import timedelta

from temporalio import workflow
from temporalio.exceptions import FailureError

from workflows.batches.events import Announcement
from workflows.batches.loads import REASON_CHARACTERS
from workflows.batches.names import BatchKey, BatchPlan, Purpose
from workflows.batches.runs import (
    Announce,
    BatchAttention,
    Closing,
    DocumentCounts,
    PolledDepth,
    RedriveInput,
    Redriven,
    SkipBatch,
    StepInput,
    SweepInfo,
    Validate,
    Validation,
)
from workflows.batches.steps import (
    BatchCompletion,
    BatchDrain,
    BatchLeases,
    BatchPlans,
    BatchValidation,
    CaseBacklog,
)
from workflows.shared import policies


class BatchSteps:
    """The steps of one batch; each raises `FailureError` when it has failed permanently."""

    def __init__(self, key: BatchKey) -> None:
        self._key = key

    async def validate(self, purpose: Purpose, grace: int) -> Validation:
        """Whether the batch may be built; when it may, it is ours, as far as it goes prepared."""
        return await workflow.execute_activity_method(
            BatchValidation.validate,
            Validate(key=self._key, purpose=purpose, grace=grace, prepare=True),
            summary=f"may {self._key} be built?",
            **policies.LONG,
        )

    async def plan(self) -> BatchPlan:
        """What it is built from."""
        return await workflow.execute_local_activity_method(
            BatchPlans.plan, self._key, summary="read the plan", **policies.SHORT
        )

    async def take_leases(self, plan: BatchPlan) -> None:
        """Take what the batch needs of the limits of the account, however long that takes."""
        await workflow.execute_activity_method(
            BatchLeases.take_leases,
            StepInput(key=self._key, plan=plan),
            summary="take leases of the account",
            **policies.LONG,
        )

    async def announce(
        self,
        plan: BatchPlan,
        event: Announcement,
        status: str = "SUCCESS",
        documents: DocumentCounts | None = None,
    ) -> None:
        """Publish an event for other services."""
        await workflow.execute_activity_method(
            BatchCompletion.announce,
            Announce(
                key=self._key, plan=plan, event_type=event, status=status, documents=documents
            ),
            summary=f"publish {event}",
            **policies.LONG,
        )

    async def look(self, plan: BatchPlan, subscription: str | None) -> PolledDepth:
        """Count messages and open loads, and see whether everything is there."""
        return await workflow.execute_activity_method(
            BatchDrain.look,
            StepInput(key=self._key, plan=plan, subscription=subscription),
            summary="count messages",
            **policies.LONG,
        )

    async def redrive(self, order: RedriveInput) -> Redriven:
        """Move the dead letters back."""
        return await workflow.execute_activity_method(
            BatchDrain.redrive,
            order,
            summary=f"pass {order.number}{' (final)' if order.final else ''}",
            **policies.LONG,
        )

    async def cancel_loads(self) -> DocumentCounts | None:
        """Stop every open load of the batch; its documents, of which none is `loading` then."""
        return await workflow.execute_activity_method(
            BatchDrain.cancel_loads, self._key, summary="stop open loads", **policies.LONG
        )

    async def sweep_facts(self) -> SweepInfo:
        """What the sweep of the batch has to know of its row.

        Not a local step: what it has seen is in history before the row is changed.
        """
        return await workflow.execute_activity_method(
            BatchCompletion.sweep_facts, self._key, summary="read its row", **policies.LONG
        )

    async def close(self, closing: Closing) -> DocumentCounts:
        """Record how the batch ends."""
        return await workflow.execute_local_activity_method(
            BatchCompletion.close, closing, summary=f"record {closing.status}", **policies.SHORT
        )

    async def call(self, reason: str | None) -> None:
        """Record why people are asked to look at the batch; None: they no longer are."""
        await workflow.execute_local_activity_method(
            BatchCompletion.call,
            BatchAttention(key=self._key, reason=reason and reason[:REASON_CHARACTERS]),
            summary="record why it needs attention" if reason else "record that it continues",
            **policies.SHORT,
        )

    async def count(self) -> DocumentCounts:
        """Count the documents of the batch."""
        return await workflow.execute_local_activity_method(
            BatchCompletion.count, self._key, summary="count documents", **policies.SHORT
        )

    async def skip(self, reason: str) -> None:
        """Record that the batch is left alone."""
        await workflow.execute_local_activity_method(
            CaseBacklog.skip,
            SkipBatch(key=self._key, reason=reason),
            summary="record why it is left alone",
            **policies.SHORT,
        )

    async def truncate(self) -> None:
        """Empty the temporary tables of the batch."""
        await workflow.execute_local_activity_method(
            BatchCompletion.truncate, self._key, summary="empty temporary tables", **policies.SHORT
        )

    async def notify_case(self) -> None:
        """Signal the run of the case that this one is about to end."""
        case = workflow.get_external_workflow_handle(self._key.case_workflow_id)
        try:
            await case.signal("batch_ends", self._key.batch_id)
        except FailureError as error:
            workflow.logger.info("%s not notified: %s", self._key.case_workflow_id, error)


async def pause(seconds: int) -> None:
    """Wait. No timer is started for 0 seconds: the server would fire it after one."""
    if seconds:
        await workflow.sleep(timedelta(seconds=seconds))


async def happens_within(event: Callable[[], bool], most: int, summary: str) -> bool:
    """Wait for a condition for at most `most` seconds; whether it was met."""
    try:
        await workflow.wait_condition(
            event, timeout=timedelta(seconds=most), timeout_summary=summary
        )
    except TimeoutError:
        return False
    return True
