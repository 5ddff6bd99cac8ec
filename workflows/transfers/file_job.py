"""One job: the actions of its settings, one after another, over the files of one event."""

import asyncio
from datetime import timedelta
from types import MappingProxyType
from typing import Final, NoReturn

from temporalio import workflow
from temporalio.exceptions import ApplicationError, FailureError, is_cancelled_exception

from workflows.shared import attributes, policies
from workflows.shared.contracts import Answer, AnyAnswer, BlobRef
from workflows.shared.errors import TOO_LATE, TRANSFER_FAILED, WRONG_STATE
from workflows.shared.failures import Cancellation, explain
from workflows.shared.notifications import NotificationKind
from workflows.shared.parking import Answered, Decision, Parkable, Parking
from workflows.shared.run_notifications import Notifications
from workflows.shared.waiting import OnFailure, Waiting
from workflows.transfers.assignment import SETTINGS, Assignment, Reassigned, SequenceLock
from workflows.transfers.attempts import Attempts, Progress, carried_out
from workflows.transfers.events import FILE_JOB, TransferStatus, file_of
from workflows.transfers.fired_events import loop_of
from workflows.transfers.job_end import Ending, JobFailed, ReceiptSteps
from workflows.transfers.job_settings import may_be_left_out
from workflows.transfers.runs import (
    ActionInput,
    ActionResult,
    FileJobInput,
    Manifest,
    PlanInput,
    TransferAssign,
    TransferPlan,
    TransferRetry,
    TransferView,
    in_one_sentence,
    is_done_before,
)
from workflows.transfers.settings import Action
from workflows.transfers.steps import Planning

_MEANINGS: Final = MappingProxyType(
    {
        "retry": "try again from the failed action",
        "skip": "leave this action out",
        "fail": "give the transfer up",
    }
)


@workflow.defn(name=FILE_JOB)
class FileJob(Parkable, retry=TransferRetry, skip=Answer, fail=Answer):
    """load settings -> wait for its turn -> action 1 -> action 2 -> ... -> receipt -> source.

    An action that fails is tried again as its settings say, and then parks the run: a person has it
    tried again from there, leaves the action out, or gives up. A partner that cannot be reached is
    waited for. What becomes of the source is decided when everything is written.
    """

    @workflow.init
    def __init__(self, order: FileJobInput) -> None:
        self._notices, self._waiting = Notifications(order.notices), Waiting()
        timeout = timedelta(seconds=order.park_for_seconds)
        super().__init__(Parking(timeout, self._notices, _MEANINGS))
        self._order = order
        self._status = TransferStatus.READ_MESSAGE
        self._plan: TransferPlan | None = None
        self._index: int | None = None
        """Of the action that is carried out; None: none is."""
        self._round = 0
        self._files = order.files
        self._read: dict[int, Manifest] = {}
        self._steps = ReceiptSteps(order)
        self._progress = Progress()
        self._remarks: list[str] = []
        self._left_out = False
        self._turn = SequenceLock(order, self._waiting, self._show)
        self._reason: str | None = None
        self._receipt: BlobRef | None = None
        self._cancellation = Cancellation[Answer]()
        self._ending = Ending(order, self._waiting, self._parking.unrecorded)
        self._assignment = Assignment(order, self._parking, self._waiting)
        self._closing = False

    @workflow.run
    async def run(self, order: FileJobInput) -> TransferView:
        """Carry out the job; one that fails has the state Failed in its row too."""
        self._notices.begin()
        if (file := file_of(order.event)) is not None:
            self._notices.facts["about"] = {"filename": file}
        try:
            is_complete = await self._cancellation.completes(self._work())
        except JobFailed as failed:
            return await self._fail(str(failed), failed.by)
        except Reassigned:
            await self._assignment.carried_on()
        if not is_complete:
            return await self._cancelled()
        return await self._close(TransferStatus.SUCCEEDED)

    async def _work(self) -> None:
        self._plan = await self._waiting.retried(self._loaded, self._park_at(SETTINGS))
        self._remark(*self._plan.remarks)
        self._progress.begin(self._plan)
        if (loop := loop_of(self._order, self._plan.job.job)) is not None:
            raise JobFailed(loop)
        if self._plan.sequence is not None:
            await self._turn.taken(self._plan.sequence, self._park_at("turn"))
        index = 0
        while index < len(self._actions):
            if is_done_before(self._order, index, self._actions[index]):
                self._mark_done_before(index)
            else:
                await self._until_done(index)
            index += 1
        self._index = None

    @property
    def _actions(self) -> tuple[Action, ...]:
        return () if self._plan is None else self._plan.job.actions.list

    async def _loaded(self) -> TransferPlan:
        return await self._load(PlanInput(job=self._order, at=workflow.info().start_time))

    async def _load(self, order: PlanInput) -> TransferPlan:
        return await workflow.execute_local_activity_method(
            Planning.load_plan, order, summary="load the job's settings", **policies.SHORT
        )

    def _park_at(self, step: str) -> OnFailure:
        """Asks a person about what comes before the actions."""

        async def park(failure: FailureError) -> None:
            self._assignment.asks(step)
            answered = await self._ask(step, explain(failure))
            self._assignment.check()
            if answered.decision is not Decision.RETRY:
                self._give_up(answered, explain(failure))

        return park

    def _mark_done_before(self, index: int) -> None:
        """The transfer that is carried out anew has done this action."""
        note = f"done in transfer {(self._order.redriven_from or '')[:12]}, and not repeated"
        self._progress.skipped(index, note)
        self._note_outcome(index, "done before", note, None)
        self._remark(f"{index + 1}. {self._actions[index].action} was {note}")

    async def _until_done(self, index: int) -> None:
        """Carry out one action, until it is done or left out."""
        self._index, self._round = index, 0
        self._begin_action(index)
        attempts = Attempts(self._actions[index], self._require_plan().job.actions)
        while True:
            self._cancellation.check()
            try:
                result = await self._waiting.done(lambda: self._run_action(index))
            except FailureError as failure:
                if is_cancelled_exception(failure):
                    raise
                pause = attempts.pause_after(failure)
                if pause is not None:
                    self._progress.note(index, f"{explain(failure)}; {attempts.next_attempt}")
                    self._show()
                    await workflow.sleep(pause, summary=attempts.next_attempt)
                    continue
                if await self._leaves_out(index, failure):
                    return
                attempts = Attempts(self._actions[index], self._require_plan().job.actions)
                continue
            self._action_done(index, result)
            return

    async def _run_action(self, index: int) -> ActionResult:
        plan = self._require_plan()
        order = ActionInput(
            job=self._order,
            plan_zone=plan.job.zone,
            index=index,
            round=self._round,
            action=self._actions[index],
            settings_job=plan.job.job,
            configured_by=self._progress.configured_by(index, plan),
            names=plan.names[index],
            files=self._files,
            previous=self._steps.previous,
            inline_step=plan.inline_receipt,
        )
        return await carried_out(order)

    def _action_done(self, index: int, result: ActionResult) -> None:
        self._files = result.files
        self._read[index] = result.files
        self._remark(*result.remarks)
        self._steps.done(result)
        self._progress.done(index, result)
        self._show()
        if result.infected is not None:
            raise JobFailed(result.infected)

    async def _leaves_out(self, index: int, failure: FailureError) -> bool:
        """Ask a person about an action that has failed; whether it is left out."""
        reason = failed = explain(failure)
        self._progress.parked(index, reason)
        while True:
            answered = await self._ask(f"{index + 1}. {self._actions[index].action}", reason)
            if answered.decision is Decision.FAIL:
                self._give_up(answered, failed)
            if answered.decision is Decision.SKIP:
                self._skip(index, answered, failed)
                return True
            try:
                await self._waiting.done(lambda given=answered: self._correct(index, given))
            except FailureError as error:
                if is_cancelled_exception(error):
                    raise
                reason = f"the corrected settings: {explain(error)}; before: {failed}"
                continue
            self._round += 1
            self._begin_action(index)
            return False

    async def _correct(self, index: int, answered: Answered) -> None:
        given = answered.answer
        if not isinstance(given, TransferRetry) or not (given.settings or given.action):
            return
        plan = self._require_plan()
        self._plan = await self._load(
            PlanInput(
                job=self._order,
                at=workflow.now(),
                plan=plan,
                index=index,
                settings=given.settings,
                action=given.action,
            )
        )
        self._progress.begin(self._plan)
        self._remark(*self._plan.remarks, *self._progress.corrected(index, given))

    def _skip(self, index: int, answered: Answered, reason: str) -> None:
        self._left_out = True
        who = f" by {answered.by}" if answered.by else ""
        self._progress.skipped(index, reason)
        self._note_outcome(index, "skipped", answered.explain(reason), answered.by)
        self._remark(f"{index + 1}. {self._actions[index].action} was left out{who}: {reason}")

    def _note_outcome(self, index: int, outcome: str, reason: str, by: str | None) -> None:
        configured_by = self._progress.configured_by(index, self._require_plan())
        self._steps.add(index, self._actions[index], outcome, reason, by, configured_by)

    def _give_up(self, answered: Answered, reason: str) -> NoReturn:
        raise JobFailed(answered.final_reason(reason), answered.by)

    async def _ask(self, step: str, reason: str) -> Answered:
        self._reason = reason = self._progress.named(self._index, reason)
        job = self._plan and self._plan.job.job
        answered = await self._parking.wait(
            step, reason, lambda: self._ending.record_parked(job, reason)
        )
        self._parking.resume()
        self._reason = None
        if answered.decision is not Decision.FAIL:
            await self._ending.record_resumed(job, answered, step)
        return answered

    async def _cancelled(self) -> TransferView:
        stopped = self._cancellation.request
        reason = (stopped and stopped.reason) or "cancelled; what was written stays"
        view = await self._close(TransferStatus.FAILED, reason, stopped and stopped.by)
        if stopped is None:
            # Temporal's own cancel: the run shows as Canceled.
            raise asyncio.CancelledError(reason)
        return view

    async def _fail(self, reason: str, by: str | None) -> NoReturn:
        view = await self._close(TransferStatus.FAILED, reason, by, NotificationKind.FAILED)
        raise ApplicationError(reason, view, type=TRANSFER_FAILED, non_retryable=True)

    async def _close(
        self,
        status: TransferStatus,
        reason: str | None = None,
        by: str | None = None,
        kind: NotificationKind = NotificationKind.ENDED,
    ) -> TransferView:
        index, self._index, self._closing = self._index, None, True
        if status is TransferStatus.FAILED:
            self._progress.failed(reason or "")
            if index is not None:
                self._note_outcome(index, "failed", reason or "", by)
        succeeded = status is TransferStatus.SUCCEEDED
        self._receipt = await self._ending.receipt(
            self._plan, self._files, self._steps, succeeded=succeeded
        )
        if self._plan is not None:
            left_out = succeeded and self._left_out
            self._remark(
                *await self._ending.settle(
                    self._plan, self._read, succeeded=succeeded, left_out=left_out
                )
            )
        # A success has its remarks for a reason.
        self._reason = (reason or in_one_sentence(self._remarks))[:500] or None
        self._status = status
        closing = self._ending.closing(
            self._plan, status, self._reason, by, self._receipt, self._read
        )
        await self._ending.close(closing, self._files)
        shown = status.lower()
        workflow.upsert_search_attributes(attributes.not_waiting(shown))
        workflow.set_current_details(self._progress.text(self._reason))
        await self._notices.end(kind, shown, self._reason or self._progress.sentence(self._files))
        await workflow.wait_condition(workflow.all_handlers_finished)
        return self.status()

    def _begin_action(self, index: int) -> None:
        self._progress.running(index)
        self._show()

    def _require_plan(self) -> TransferPlan:
        assert self._plan is not None
        return self._plan

    def _remark(self, *remarks: str) -> None:
        self._remarks = [*dict.fromkeys((*self._remarks, *remarks))]

    def _show(self, waits: str | None = None) -> None:
        if not self._parking.waits:
            workflow.set_current_details(self._progress.text(waits))

    def _answered(self) -> TransferView:
        return self.status()

    def _validate_answer(self, decision: Decision, answer: AnyAnswer) -> None:
        corrects = isinstance(answer, TransferRetry) and bool(answer.action)
        if self._closing or not (corrects or decision is Decision.SKIP):
            return
        if self._index is None:
            raise ApplicationError("no action has begun: plain retry, or fail", type=WRONG_STATE)
        action = self._actions[self._index]
        if not (corrects or may_be_left_out(action)):
            reason = f"{action.action} cannot be left out: what follows relies on it; retry or fail"
            raise ApplicationError(reason, type=WRONG_STATE)

    @workflow.update(name="assign")
    async def assign(self, answer: TransferAssign) -> TransferView:
        """Have another queue carry it out; none of its actions has begun."""
        self._assignment.take(answer)
        return self.status()

    @assign.validator
    def _validate_assign(self, answer: TransferAssign) -> None:
        self._assignment.refuse_unless_possible()

    @workflow.signal(name="assign")
    def assign_signal(self, answer: TransferAssign) -> None:
        """Twin of the update, for `temporal workflow signal`."""
        self._assignment.take(answer)

    @workflow.update(name="cancel")
    async def cancel(self, answer: Answer) -> TransferView:
        """Begin no further action; what was written stays, and the source is kept."""
        self._cancellation.stop(answer)
        return self.status()

    @cancel.validator
    def _validate_cancel(self, answer: Answer) -> None:
        if self._closing:
            raise ApplicationError("too late: the transfer is done", type=TOO_LATE)

    @workflow.signal(name="cancel")
    def cancel_signal(self, answer: Answer | None = None) -> None:
        """Twin of the update, for `temporal workflow signal`."""
        if not self._closing:
            self._cancellation.stop(answer or Answer())

    @workflow.query(name="status")
    def status(self) -> TransferView:
        """Where the transfer stands."""
        return TransferView(
            transfer_id=self._order.transfer_id,
            status=self._status,
            queue=self._order.queue,
            job=self._plan and self._plan.job.job,
            account_id=self._order.event.account_id,
            file=file_of(self._order.event),
            actions=self._progress.views(waiting=self._waiting.label),
            reason=(self._parking.reason or self._reason or "")[:500] or None,
            waiting_for=self._waiting.label or self._turn.waits,
            since=self._parking.since,
            receipt=self._receipt,
        )
