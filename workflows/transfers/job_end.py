"""How a job ends: copy and receipt, what becomes of its sources, and the row."""

from collections.abc import Awaitable, Callable, Mapping, Sequence
from typing import Any, Final, TypeVar

from temporalio import workflow
from temporalio.exceptions import FailureError

from workflows.shared import policies
from workflows.shared.contracts import BlobRef
from workflows.shared.failures import explain, failures_logged
from workflows.shared.parking import Answered
from workflows.shared.waiting import OnFailure, Waiting
from workflows.transfers.events import TransferStatus
from workflows.transfers.receipts import ReceiptStep, seal_step
from workflows.transfers.runs import (
    ActionResult,
    FileJobInput,
    KeepCopyInput,
    KeptCopy,
    Manifest,
    ReceiptInput,
    SettleInput,
    SettleResult,
    StatusInput,
    StoredReceipt,
    TransferClosing,
    TransferPlan,
)
from workflows.transfers.settings import Action, AfterSource, ReadFile
from workflows.transfers.steps import JobClosing, Receipts, Receiving


def job_status(order: FileJobInput, status: TransferStatus, **fields: Any) -> StatusInput:
    """What is written of a job now.

    Args:
        order: Of the job.
        status: The state of its transfer.
        fields: Further fields of the row.
    """
    return StatusInput(
        transfer_id=order.transfer_id,
        status=status,
        at=workflow.now(),
        run=workflow.info().workflow_id,
        digest=order.digest,
        event=order.event,
        **fields,
    )


async def record(order: StatusInput, summary: str) -> None:
    """Write it.

    Args:
        order: What is written.
        summary: Of the step, in Temporal's user interface.
    """
    await workflow.execute_local_activity_method(
        Receiving.record, order, summary=summary, **policies.SHORT
    )


_OUTCOMES: Final = "transfers-receipt-outcomes"
"""Change id: receipts of runs before it leave out what was not carried out."""
_SENTENCE: Final = 500


class ReceiptSteps:
    """What the receipt of a job will hold.

    Args:
        order: Of the job.
    """

    def __init__(self, order: FileJobInput) -> None:
        self._order = order
        self.previous = order.digest
        """Hash of the last step."""
        self.stored: list[BlobRef] = []
        """Steps of actions that were carried out, but for short ones."""
        self.outcomes: list[ReceiptStep] = []
        """Short ones, and steps of actions that were not carried out."""

    def done(self, result: ActionResult) -> None:
        """An action was carried out."""
        if result.inline_step:
            self.outcomes.append(ReceiptStep.model_validate_json(result.inline_step))
        elif result.step is not None:
            self.stored.append(result.step)
        else:
            return
        self.previous = result.step_sha256

    def add(
        self,
        index: int,
        action: Action,
        outcome: str,
        reason: str,
        decided_by: str | None,
        configured_by: str | None = None,
    ) -> None:
        """An action was not carried out, and why."""
        if not workflow.patched(_OUTCOMES):
            return
        step = seal_step(
            ReceiptStep(
                transfer_id=self._order.transfer_id,
                index=index,
                action=action.action,
                configured_by=configured_by,
                at=workflow.now(),
                outcome=outcome,
                reason=reason[:_SENTENCE],
                decided_by=decided_by,
                previous=self.previous,
                sha256="",
            )
        )
        self.outcomes.append(step)
        self.previous = step.sha256


_FEW_FILES: Final = 100
"""Of so many the worker of the run puts the receipt together, and removes what is staged."""
_RESUMED: Final = "transfers-record-resumed"
"""Change id: runs that were parked before it wrote nothing when they continued."""
T = TypeVar("T")


class JobFailed(Exception):
    """The transfer has failed."""

    def __init__(self, reason: str, by: str | None = None) -> None:
        super().__init__(reason)
        self.by = by


class Ending:
    """What a job records of itself, and its last steps: it is too late to cancel them.

    Args:
        order: Of the job.
        waiting: Of the run.
        park: Asks a person when one of them fails that the job cannot end without.
    """

    def __init__(self, order: FileJobInput, waiting: Waiting, park: OnFailure) -> None:
        self._order, self._waiting, self._park = order, waiting, park
        self.kept: KeptCopy | None = None
        """What can be sent again."""

    async def receipt(
        self, plan: TransferPlan | None, files: Manifest, steps: ReceiptSteps, *, succeeded: bool
    ) -> BlobRef | None:
        """Keep a copy of what was written where the job says so, and put the receipt together.

        Args:
            plan: Of the job; None: it has got none.
            files: As they were written.
            steps: Of the receipt.
            succeeded: Whether all was written.

        Returns:
            The receipt; None: no action has begun.
        """
        if succeeded and plan is not None and plan.job.keep_copy_days and files.files:
            copy = KeepCopyInput(job=self._order, files=files, days=plan.job.keep_copy_days)
            self.kept = await self._last(lambda: _execute("transfers.keep", copy, KeptCopy))
        if not (steps.stored or steps.outcomes):
            return None
        order = ReceiptInput(
            job=self._order,
            steps=tuple(steps.stored),
            kept=self.kept and self.kept.files.blob,
            outcomes=tuple(steps.outcomes),
        )
        is_short = plan is not None and plan.inline_receipt and files.files <= _FEW_FILES

        async def put_together() -> StoredReceipt:
            if not is_short:
                return await _execute("transfers.receipt", order, StoredReceipt)
            return await workflow.execute_local_activity_method(
                Receipts.receipt, order, summary="put the receipt together", **policies.SHORT
            )

        return (await self._last(put_together)).blob

    async def settle(
        self,
        plan: TransferPlan,
        read: Mapping[int, Manifest],
        *,
        succeeded: bool,
        left_out: bool = False,
    ) -> Sequence[str]:
        """Move or delete what was read, where the job says so.

        Args:
            plan: Of the job.
            read: The files of actions that are done, by their places.
            succeeded: Whether all was written.
            left_out: A person has left one of the actions out.

        Returns:
            What could not be done: such a source stays where it is, and the job does not fail.
        """
        if left_out:
            return ["the source stays as it is, because an action was left out"]
        remarks: list[str] = []
        for index, action in sources_to_settle(plan, succeeded=succeeded):
            if index not in read:
                continue
            order = SettleInput(
                job=self._order,
                index=index,
                action=action,
                names=plan.names[index],
                files=read[index],
                succeeded=succeeded,
            )
            try:
                result = await self._waiting.done_despite_cancel(
                    lambda order=order: _execute("transfers.settle_source", order, SettleResult)
                )
            except FailureError as error:
                remarks.append(f"the source stays as it is: {explain(error)}")
            else:
                remarks += result.remarks
        return remarks

    async def record_parked(self, job: str | None, reason: str) -> None:
        """Write why a job is parked; its state stays as it is."""
        await self._noted(job, f"parked: {reason}")

    async def record_resumed(self, job: str | None, answered: Answered, step: str) -> None:
        """Write that a parked job continues, and who has decided that."""
        if workflow.patched(_RESUMED):
            with failures_logged("its row still says that it is parked"):
                note = f"{answered.decision}: {step}"
                await self._waiting.done(lambda: self._noted(job, note, answered.by))

    async def _noted(self, job: str | None, note: str, by: str | None = None) -> None:
        order = job_status(
            self._order,
            TransferStatus.READ_MESSAGE,
            queue=self._order.queue,
            job=job,
            reason=note[:500],
            by=by,
        )
        await record(order, "record where it stands")

    def closing(
        self,
        plan: TransferPlan | None,
        status: TransferStatus,
        reason: str | None,
        by: str | None,
        receipt: BlobRef | None,
        read: Mapping[int, Manifest],
    ) -> TransferClosing:
        """How the job ends; `read` has the files of the actions that are done, by their places."""
        actions = () if plan is None else plan.job.actions.list
        sizes = [done.bytes for place, done in read.items() if isinstance(actions[place], ReadFile)]
        return TransferClosing(
            job=self._order,
            status=status,
            at=workflow.now(),
            settings_job=plan and plan.job.job,
            reason=reason,
            by=by,
            receipt=receipt,
            kept=self.kept,
            sequence=plan and plan.sequence,
            size=sum(sizes) if sizes else None,
        )

    async def close(self, closing: TransferClosing, files: Manifest) -> None:
        """Remove what is staged, and write how the job has ended."""
        summary = f"record {closing.status}"

        async def locally() -> None:
            await workflow.execute_local_activity_method(
                JobClosing.close, closing, summary=summary, **policies.SHORT
            )

        async def remotely() -> None:
            await workflow.execute_activity_method(
                JobClosing.close, closing, summary=summary, **policies.LONG
            )

        await self._last(locally if files.files <= _FEW_FILES else remotely)

    async def _last(self, work: Callable[[], Awaitable[T]]) -> T:
        return await self._waiting.retried_despite_cancel(work, self._park)


def sources_to_settle(plan: TransferPlan, *, succeeded: bool) -> Sequence[tuple[int, ReadFile]]:
    """The actions whose sources do not stay, with their places."""
    reads = [
        (index, action)
        for index, action in enumerate(plan.job.actions.list)
        if isinstance(action, ReadFile)
    ]
    if succeeded:
        return [each for each in reads if each[1].after is not AfterSource.KEEP]
    return [each for each in reads if each[1].on_failure_move_to is not None]


async def _execute(name: str, order: Any, result_type: type[T]) -> T:
    return await workflow.execute_activity(
        name, order, result_type=result_type, summary=name, **policies.LONG
    )
