"""One import or delete message, from the queue to rows in the database."""

import asyncio
from datetime import timedelta
from types import MappingProxyType
from typing import Final, NoReturn

from temporalio import workflow
from temporalio.exceptions import ApplicationError, FailureError

from workflows.imports.findings import changed, changes_of
from workflows.imports.messages import ImportMessage
from workflows.imports.runs import (
    CORRECTIONS,
    Closing,
    Correction,
    HandlerInput,
    HandlerOutcome,
    ImportInput,
    ImportPlan,
    ImportResult,
    ImportState,
    ImportStatus,
    Preparation,
    Retry,
)
from workflows.imports.steps import ImportLifecycle
from workflows.shared import attributes, policies
from workflows.shared.contracts import MEMO, Answer, AnyAnswer
from workflows.shared.errors import (
    IMPORT_FAILED,
    INVALID_CORRECTION,
    KEY_REUSED,
    OTHER_WORK,
    TABLE_CHANGED,
    TOO_LATE,
    RuleViolation,
)
from workflows.shared.failures import Cancellation, explain
from workflows.shared.notifications import NotificationKind, counted
from workflows.shared.parking import Decision, Parkable, Parking
from workflows.shared.run_notifications import Notifications
from workflows.shared.waiting import Waiting, begun_locally, done_remotely

_RECORD: Final = "record result"
_DONE: Final = "done"
_CURES: Final = MappingProxyType(
    {
        TABLE_CHANGED: "or, if the type was changed, retry with its newest version (`docflow retry "
        "ID --set type_digest=DIGEST`, see `docflow type list --json`)"
    }
)
"""What a message can do beside what its failures say."""
SHORTEST_PAUSE: Final = timedelta(seconds=5)
"""Between two looks at a running task that has the work; each pause is twice the one before."""
LONGEST_PAUSE: Final = timedelta(minutes=5)


class _Skipped(Exception):
    """There is nothing to do, or a person decided so.

    Attributes:
        earlier: State of the import of the same work, where that is the reason.
    """

    def __init__(self, reason: str, earlier: ImportState | None = None) -> None:
        super().__init__(reason)
        self.earlier = earlier


class _Refused(Exception):
    """Another message has the task; this one is recorded as rejected.

    Attributes:
        digest: Of the message that has it.
    """

    def __init__(self, reason: str, digest: str | None) -> None:
        super().__init__(reason)
        self.digest = digest


class _Failed(Exception):
    """A person gave up, or none answered in time."""


@workflow.defn(name="DocumentImport")
class DocumentImport(Parkable, retry=Retry, skip=Answer, fail=Answer):
    """route -> preflight -> resolve source -> run handler -> record result -> delete blob.

    The first step does all of it for a small table without problems. A step that fails permanently
    parks the run; what was done before stays done.
    """

    @workflow.init
    def __init__(self, order: ImportInput) -> None:
        self._notices, self._waiting = Notifications(order.notices), Waiting()
        super().__init__(Parking(timedelta(seconds=order.park_for_seconds), self._notices))
        self._message, self._origin = order.message, order.origin
        self._corrections: tuple[Correction, ...] = ()
        self._held_up: str | None = None
        """Why it waits for another task."""
        self._plan: ImportPlan | None = None
        self._outcome: HandlerOutcome | None = None
        self._recorded: HandlerOutcome | None = None
        """What is recorded already, where the first step has done everything."""
        self._step = "waiting for a worker"
        self._state = ImportState.RUNNING
        self._cancellation = Cancellation[Answer]()

    @workflow.run
    async def run(self, order: ImportInput) -> ImportResult:
        """Import the document; a run that fails has state `failed` in its status row too."""
        self._notices.begin()
        try:
            is_complete = await self._cancellation.completes(self._import())
        except _Skipped as skipped:
            result = await self._close(ImportState.SKIPPED, str(skipped))
            return result.model_copy(update={"earlier": skipped.earlier})
        except _Refused as refused:
            await self._refuse(str(refused), refused.digest)
        except _Failed as failed:
            await self._fail(str(failed))
        if not is_complete:
            return await self._cancelled()
        if self._recorded is not None:
            return await self._end(ImportState.COMPLETED, self._recorded)
        return await self._close(ImportState.COMPLETED)

    async def _import(self) -> None:
        await self._waiting.retried(self._prepare_and_handle, self._park)

    async def _prepare_and_handle(self) -> None:
        pause = SHORTEST_PAUSE
        while True:
            preparation = await self._prepare()
            assert preparation.plan is not None
            self._plan = preparation.plan
            if preparation.done:
                # A small document; or all local steps of a workflow task are done again because its
                # worker died before the end of the task: then the record alone has the outcome.
                self._recorded = preparation.outcome
                return
            outcome = await self._handle(self._plan)
            if outcome.waits is None:
                break
            await self._wait_for_other(outcome.waits, pause)
            pause = min(2 * pause, LONGEST_PAUSE)
        self._outcome = outcome
        if self._outcome.held_back is not None:
            # Nothing was written: that is for a person to decide, like a failure.
            raise ApplicationError(self._outcome.held_back)

    async def _prepare(self) -> Preparation:
        """What is to be done, with a plan."""
        pause = SHORTEST_PAUSE
        while True:
            self._begin("prepare")
            preparation = await begun_locally(
                ImportLifecycle.prepare,
                ImportInput(message=self._message, origin=self._origin),
                Preparation,
                "route, preflight, resolve source",
            )
            if preparation.waits is None:
                break
            await self._wait_for_other(preparation.waits, pause)
            pause = min(2 * pause, LONGEST_PAUSE)
        if preparation.refused is not None:
            raise _Refused(preparation.refused, preparation.digest)
        if preparation.plan is None:
            raise _Skipped(preparation.skip or "nothing to do", preparation.state)
        return preparation

    async def _wait_for_other(self, reason: str, pause: timedelta) -> None:
        """Wait before the next look at the task that has the work."""
        self._held_up = reason
        workflow.set_current_details(f"**Waits** for another import\n\n{reason}")
        try:
            await workflow.sleep(pause, summary="another task has the work")
        finally:
            self._held_up = None
            workflow.set_current_details("")

    async def _handle(self, plan: ImportPlan) -> HandlerOutcome:
        self._begin(plan.facts.handler)
        handler = plan.facts.handler.value
        work = HandlerInput(message=self._message, plan=plan)
        summary = f"{plan.facts.document_type} {self._message.task_id}"
        do = begun_locally if plan.path == "local" else done_remotely
        return await do(handler, work, HandlerOutcome, summary)

    def _begin(self, step: str) -> None:
        self._cancellation.check()
        self._step = step

    async def _park(self, failure: FailureError) -> None:
        reason = explain(failure, _CURES)
        self._state = ImportState.PARKED
        answered = await self._parking.wait(
            self._step, reason, lambda: self._record(ImportState.PARKED, reason)
        )
        decided = f"{answered.reason or reason}" + (f" ({answered.by})" if answered.by else "")
        if answered.decision is Decision.SKIP:
            raise _Skipped(decided)
        if answered.decision is Decision.FAIL:
            raise _Failed(decided)
        if isinstance(answered.answer, Retry):
            self._correct(answered.answer)
        # The document may have been corrected under the same name: look at it again. A load
        # resumes behind its progress mark when it is still the same.
        self._plan = self._outcome = None
        self._state = ImportState.RUNNING
        self._parking.resume()

    def _correct(self, answer: Retry) -> None:
        """Take what a person has changed of the message, and note who it was."""
        corrected = _corrected(self._message, answer)
        if corrected == self._message:
            return
        changes = changes_of(self._message, corrected)
        done = Correction(by=answer.by, at=workflow.now().isoformat(), changes=changes)
        self._corrections = (*self._corrections, done)[-CORRECTIONS:]
        self._message = corrected

    async def _cancelled(self) -> ImportResult:
        stopped = self._cancellation.request
        reason = (stopped and stopped.reason) or "cancelled; what was committed stays"
        result = await self._close(ImportState.CANCELLED, reason)
        if stopped is None:
            # Temporal's own cancel: the run shows as Canceled.
            raise asyncio.CancelledError(reason)
        return result

    async def _refuse(self, reason: str, digest: str | None) -> NoReturn:
        """End without a record: the status row is that of the message that has the task."""
        # A start that meets this run by the task's id compares with the message that has the task.
        workflow.upsert_memo({MEMO: digest})
        self._state, self._step = ImportState.FAILED, _DONE
        workflow.upsert_search_attributes(attributes.not_waiting(self._state))
        await self._notices.end(NotificationKind.FAILED, self._state, reason)
        await workflow.wait_condition(workflow.all_handlers_finished)
        result = ImportResult(
            task_id=self._message.task_id,
            project_id=self._message.project_id,
            document_type=self._message.document_type,
            state=self._state,
            reason=reason,
        )
        raise ApplicationError(reason, result, type=KEY_REUSED, non_retryable=True)

    async def _fail(self, reason: str) -> NoReturn:
        result = await self._close(ImportState.FAILED, reason, NotificationKind.FAILED)
        raise ApplicationError(reason, result, type=IMPORT_FAILED, non_retryable=True)

    async def _close(
        self,
        state: ImportState,
        reason: str | None = None,
        kind: NotificationKind = NotificationKind.ENDED,
    ) -> ImportResult:
        self._step = _RECORD
        outcome = await self._waiting.retried_despite_cancel(
            lambda: self._record(state, reason), self._park_unrecorded
        )
        return await self._end(state, outcome, reason, kind)

    async def _end(
        self,
        state: ImportState,
        outcome: HandlerOutcome,
        reason: str | None = None,
        kind: NotificationKind = NotificationKind.ENDED,
    ) -> ImportResult:
        """The result, once it is recorded."""
        self._state, self._step, self._outcome = state, _DONE, outcome
        workflow.upsert_search_attributes(attributes.not_waiting(state))
        workflow.set_current_details("")
        await self._notices.end(kind, state, reason or outcome.note or counted(outcome.counts))
        await workflow.wait_condition(workflow.all_handlers_finished)
        return ImportResult(
            task_id=self._message.task_id,
            project_id=self._message.project_id,
            document_type=self._message.document_type,
            state=state,
            counts=outcome.counts,
            problem_count=outcome.problem_count,
            problems=outcome.problems,
            report=outcome.report,
            path=self._plan and self._plan.path,
            reason=reason or outcome.note,
            note=outcome.note if reason else None,
        )

    async def _park_unrecorded(self, failure: FailureError) -> None:
        # The work is done and only its record is missing: any answer tries again.
        self._state = ImportState.PARKED
        await self._parking.wait(self._step, explain(failure))
        self._parking.resume()

    async def _record(self, state: ImportState, reason: str | None) -> HandlerOutcome:
        return await workflow.execute_local_activity_method(
            ImportLifecycle.finish,
            Closing(
                message=self._message,
                plan=self._plan,
                state=state,
                reason=reason,
                outcome=self._outcome,
                digest=None if self._origin is None else self._origin.digest,
                corrections=self._corrections,
            ),
            summary=f"record {state}",
            **policies.SHORT,
        )

    def _answered(self) -> ImportStatus:
        return self.status()

    def _validate_answer(self, decision: Decision, answer: AnyAnswer) -> None:
        if isinstance(answer, Retry):
            self._refuse_other_work(_corrected(self._message, answer))

    def _refuse_other_work(self, corrected: ImportMessage) -> None:
        for name in ("project_id", "task_id", "document_type"):
            old, new = getattr(self._message, name), getattr(corrected, name)
            if old != new:
                raise ApplicationError(
                    f"a corrected message keeps its {name}: {old!r}, not {new!r}",
                    type=OTHER_WORK,
                )

    @workflow.update(name="cancel")
    async def cancel(self, answer: Answer) -> ImportStatus:
        """Stop between chunks; what is committed stays and is counted."""
        self._cancellation.stop(answer)
        return self.status()

    @cancel.validator
    def _validate_cancel(self, answer: Answer) -> None:
        if self._is_closing:
            raise ApplicationError("too late: the import is done", type=TOO_LATE)

    @property
    def _is_closing(self) -> bool:
        return self._step in (_RECORD, _DONE)

    @workflow.signal(name="cancel")
    def cancel_signal(self, answer: Answer | None = None) -> None:
        """Twin of the update, for `temporal workflow signal`."""
        if not self._is_closing:
            self._cancellation.stop(answer or Answer())

    def _next_steps(self) -> str | None:
        if not self._parking.waits:
            return None
        return "retry" if self._step == _RECORD else "retry, skip, fail or cancel"

    @workflow.query(name="status")
    def status(self) -> ImportStatus:
        """Where the run stands."""
        since = self._parking.since
        return ImportStatus(
            state=self._state,
            step=self._step,
            reason=self._parking.reason or self._held_up,
            next_steps=self._next_steps(),
            waiting_since=since.isoformat() if since else None,
            plan=self._plan,
            outcome=self._outcome,
            waiting_for=self._waiting.dependency,
        )

    @workflow.query(name="message")
    def message(self) -> ImportInput:
        """The message, as people have corrected it."""
        return ImportInput(message=self._message)


def _corrected(message: ImportMessage, answer: Retry) -> ImportMessage:
    """The message as a person has corrected it.

    Raises:
        ApplicationError: The answer changes what no message of this type has.
    """
    try:
        return changed(answer.message or message, answer.changes)
    except RuleViolation as error:
        raise ApplicationError(str(error), type=INVALID_CORRECTION) from error
