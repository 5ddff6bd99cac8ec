"""One import or delete message, from the queue to rows in the database."""

import asyncio
from datetime import timedelta
from typing import Final, NoReturn

from temporalio import workflow
from temporalio.exceptions import ApplicationError, FailureError, is_cancelled_exception

from activities.imports.lifecycle import ImportLifecycle
from contracts.errors import IMPORT_FAILED
from contracts.imports import (
    Answer,
    Closing,
    HandlerInput,
    HandlerOutcome,
    ImportMessage,
    ImportOrder,
    ImportPlan,
    ImportResult,
    ImportState,
    ImportStatus,
    Retry,
)
from workflows import attributes, policies
from workflows.steps import Answered, Decision, Parking, explain

_RECORD: Final = "record result"
_DONE: Final = "done"


class _Skipped(Exception):
    """There is nothing to do, or a person said so."""


class _Failed(Exception):
    """A person gave up, or the wait for one was over."""


@workflow.defn(name="DocumentImport")
class DocumentImport:
    """route -> preflight -> resolve source -> run handler -> record result -> delete blob.

    A step that cannot be done parks the run; what was done before stays done.
    """

    @workflow.init
    def __init__(self, order: ImportOrder) -> None:
        self._message = order.message
        self._plan: ImportPlan | None = None
        self._outcome: HandlerOutcome | None = None
        self._step = "waiting for a worker"
        self._state = ImportState.RUNNING
        self._parking = Parking[Retry](timedelta(seconds=order.park_for_seconds))
        self._work: asyncio.Task[None] | None = None
        self._stopped: Answer | None = None

    @workflow.run
    async def run(self, order: ImportOrder) -> ImportResult:
        """Import the document; a run that fails has state `failed` in its status row too."""
        self._work = asyncio.create_task(self._import())
        try:
            await self._work
        except _Skipped as skipped:
            return await self._close(ImportState.SKIPPED, str(skipped))
        except _Failed as failed:
            await self._fail(str(failed))
        except asyncio.CancelledError:
            return await self._cancelled()
        except FailureError as error:
            if not is_cancelled_exception(error):
                raise
            return await self._cancelled()
        return await self._close(ImportState.COMPLETED)

    async def _import(self) -> None:
        while True:
            try:
                self._plan = await self._prepare()
                self._outcome = await self._handle(self._plan)
                reason = self._outcome.held_back
            except FailureError as error:
                if is_cancelled_exception(error):
                    raise
                reason = explain(error)
            if reason is None:
                return
            await self._park(reason)

    async def _prepare(self) -> ImportPlan:
        self._begin("prepare")
        preparation = await workflow.execute_local_activity_method(
            ImportLifecycle.prepare,
            ImportOrder(message=self._message),
            summary="route, preflight, resolve source",
            **policies.SHORT,
        )
        if preparation.plan is None:
            raise _Skipped(preparation.skip or "nothing to do")
        return preparation.plan

    async def _handle(self, plan: ImportPlan) -> HandlerOutcome:
        self._begin(plan.facts.handler)
        handler = plan.facts.handler.value
        work = HandlerInput(message=self._message, plan=plan)
        summary = f"{plan.facts.document_type} {self._message.task_id}"
        if plan.path == "local":
            return await workflow.execute_local_activity(
                handler, work, result_type=HandlerOutcome, summary=summary, **policies.SHORT
            )
        return await workflow.execute_activity(
            handler, work, result_type=HandlerOutcome, summary=summary, **policies.LONG
        )

    def _begin(self, step: str) -> None:
        # A wish to stop that came while a step was ending must not start the next one.
        if self._stopped is not None:
            raise asyncio.CancelledError
        self._step = step

    async def _park(self, reason: str) -> None:
        self._state = ImportState.PARKED
        answered = await self._parking.wait(
            self._step, reason, lambda: self._announce_parked(reason)
        )
        said = f"{answered.reason or reason}" + (f" ({answered.by})" if answered.by else "")
        if answered.decision is Decision.SKIP:
            raise _Skipped(said)
        if answered.decision is Decision.FAIL:
            raise _Failed(said)
        if answered.correction is not None and answered.correction.message is not None:
            self._message = answered.correction.message
        # The document may have been put right under the same name: look at it anew. A load goes
        # on behind its progress mark when it is the same still.
        self._plan = self._outcome = None
        self._state = ImportState.RUNNING
        self._parking.resume()

    async def _announce_parked(self, reason: str) -> None:
        try:
            await self._record(ImportState.PARKED, reason)
        except FailureError as error:
            if is_cancelled_exception(error):
                raise
            # The run waits whether or not the status row can say so.
            workflow.logger.warning("status row of a parked run not written: %s", explain(error))

    async def _cancelled(self) -> ImportResult:
        stopped = self._stopped
        reason = (stopped and stopped.reason) or "cancelled; what was committed stays"
        result = await self._close(ImportState.CANCELLED, reason)
        if stopped is None:
            # Temporal's own cancel: the run shows as Canceled.
            raise asyncio.CancelledError(reason)
        return result

    async def _fail(self, reason: str) -> NoReturn:
        result = await self._close(ImportState.FAILED, reason)
        raise ApplicationError(reason, result, type=IMPORT_FAILED, non_retryable=True)

    async def _close(self, state: ImportState, reason: str | None = None) -> ImportResult:
        self._step = _RECORD
        while True:
            try:
                outcome = await self._record(state, reason)
                break
            except FailureError as error:
                if is_cancelled_exception(error):
                    # Too late to stop anything, and without its record the end would be lost.
                    continue
                # The work is done and only its record is missing: any answer tries again.
                self._state = ImportState.PARKED
                await self._parking.wait(self._step, explain(error), _nobody)
                self._parking.resume()
        self._state, self._step, self._outcome = state, _DONE, outcome
        workflow.upsert_search_attributes(attributes.going_on(state))
        workflow.set_current_details("")
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
        )

    async def _record(self, state: ImportState, reason: str | None) -> HandlerOutcome:
        return await workflow.execute_local_activity_method(
            ImportLifecycle.finish,
            Closing(
                message=self._message,
                plan=self._plan,
                state=state,
                reason=reason,
                outcome=self._outcome,
            ),
            summary=f"record {state}",
            **policies.SHORT,
        )

    @workflow.update(name="retry")
    async def retry(self, answer: Retry) -> ImportStatus:
        """Try a parked run again from the failed step; a corrected message starts over."""
        self._parking.answer(Answered(Decision.RETRY, by=answer.by, correction=answer))
        return self.status()

    @retry.validator
    def _check_retry(self, answer: Retry) -> None:
        self._parking.refuse_unless_waiting()
        if answer.message is not None:
            self._refuse_other_work(answer.message)

    def _refuse_other_work(self, corrected: ImportMessage) -> None:
        for name in ("project_id", "task_id", "document_type"):
            old, new = getattr(self._message, name), getattr(corrected, name)
            if old != new:
                raise ApplicationError(
                    f"a corrected message keeps its {name}: {old!r}, not {new!r}",
                    type="OtherWork",
                )

    @workflow.update(name="skip")
    async def skip(self, answer: Answer) -> ImportStatus:
        """Leave a parked document out."""
        self._parking.answer(Answered(Decision.SKIP, answer.reason, answer.by))
        return self.status()

    @skip.validator
    def _check_skip(self, answer: Answer) -> None:
        self._parking.refuse_unless_waiting()

    @workflow.update(name="fail")
    async def fail(self, answer: Answer) -> ImportStatus:
        """Give a parked document up."""
        self._parking.answer(Answered(Decision.FAIL, answer.reason, answer.by))
        return self.status()

    @fail.validator
    def _check_fail(self, answer: Answer) -> None:
        self._parking.refuse_unless_waiting()

    @workflow.update(name="cancel")
    async def cancel(self, answer: Answer) -> ImportStatus:
        """Stop between chunks; what is committed stays and is counted."""
        self._stop(answer)
        return self.status()

    @cancel.validator
    def _check_cancel(self, answer: Answer) -> None:
        if self._is_closing:
            raise ApplicationError("too late: the import is done", type="TooLate")

    @property
    def _is_closing(self) -> bool:
        return self._step in (_RECORD, _DONE)

    def _stop(self, answer: Answer) -> None:
        self._stopped = self._stopped or answer
        if self._work is not None:
            self._work.cancel()

    @workflow.signal(name="retry")
    def retry_signal(self, answer: Retry | None = None) -> None:
        """Twin of the update, for `temporal workflow signal`."""
        answer = answer or Retry()
        try:
            self._check_retry(answer)
        except ApplicationError as error:
            workflow.logger.warning("signal retry refused: %s", error.message)
            return
        self._parking.answer(Answered(Decision.RETRY, by=answer.by, correction=answer))

    @workflow.signal(name="skip")
    def skip_signal(self, answer: Answer | None = None) -> None:
        """Twin of the update, for `temporal workflow signal`."""
        answer = answer or Answer()
        self._parking.answer(Answered(Decision.SKIP, answer.reason, answer.by))

    @workflow.signal(name="fail")
    def fail_signal(self, answer: Answer | None = None) -> None:
        """Twin of the update, for `temporal workflow signal`."""
        answer = answer or Answer()
        self._parking.answer(Answered(Decision.FAIL, answer.reason, answer.by))

    @workflow.signal(name="cancel")
    def cancel_signal(self, answer: Answer | None = None) -> None:
        """Twin of the update, for `temporal workflow signal`."""
        if not self._is_closing:
            self._stop(answer or Answer())

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
            reason=self._parking.reason,
            next_steps=self._next_steps(),
            waiting_since=since.isoformat() if since else None,
            plan=self._plan,
            outcome=self._outcome,
        )


async def _nobody() -> None:
    """Nothing to tell."""
