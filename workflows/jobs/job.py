"""One job: its stages one after another, and what becomes of those that fail."""

import asyncio
from datetime import timedelta
from types import MappingProxyType
from typing import Final, NoReturn

from temporalio import workflow
from temporalio.exceptions import (
    ApplicationError,
    ChildWorkflowError,
    FailureError,
    is_cancelled_exception,
)

from workflows.jobs.batch_work import sentence, show_wait, wait_of
from workflows.jobs.definitions import OnFailure
from workflows.jobs.progress import counted, line, reason_of, with_end
from workflows.jobs.records import JobStatus
from workflows.jobs.retention_and_webhooks import start_deliveries
from workflows.jobs.runs import (
    JOB,
    NAMED,
    FailedName,
    JobInput,
    JobRecording,
    JobResult,
    JobRetry,
    JobView,
    JobWait,
    StageEnd,
    StageInput,
    StageProgress,
    StageRef,
    StageState,
    StageTally,
    StageView,
    TaskCounts,
    stage_workflow_id,
)
from workflows.jobs.stage import Stage, explain_child
from workflows.jobs.steps import StageClosing
from workflows.shared import attributes, policies
from workflows.shared.contracts import Answer, AnyAnswer
from workflows.shared.errors import JOB_FAILED, TOO_LATE, WRONG_STATE
from workflows.shared.failures import Cancellation, explain
from workflows.shared.notifications import NotificationKind
from workflows.shared.parking import Answered, Decision, Parkable, Parking
from workflows.shared.run_notifications import Notifications
from workflows.shared.waiting import Waiting


def check_answer(decision: Decision, answer: AnyAnswer, end: StageEnd | None) -> None:
    """Refuse an answer that does not fit.

    Args:
        decision: What the person decided.
        answer: With what the person gave.
        end: Of the stage at which the job is parked; None: its stages are done.

    Raises:
        ApplicationError: It leaves out a parameter that is asked for, or would have no effect.
    """
    given = answer.parameters if isinstance(answer, JobRetry) else None
    if end is None:
        if given or decision is Decision.SKIP:
            text = "the stages of the job are done: it takes no parameters, and leaves nothing out"
            raise ApplicationError(text, type=WRONG_STATE)
        return
    asked = {each.parameter for each in end.questions}
    if decision is Decision.RETRY and (missing := sorted(asked - set(given or {}))):
        names = " and ".join(missing)
        text = f"retry needs the parameter {names}: {reason_of(end)}"
        raise ApplicationError(text, type=WRONG_STATE)


_MEANINGS: Final = MappingProxyType(
    {
        "retry": "do the failed stage again, keeping its good tasks",
        "skip": "leave the failed tasks out",
        "fail": "give it up",
    }
)
_ONLY_RETRY: Final = "retry"


class _Failed(Exception):
    """A stage has failed, and the job with it."""


@workflow.defn(name=JOB)
class Job(Parkable, retry=JobRetry, skip=Answer, fail=Answer):
    """stage 1 -> stage 2 -> ... -> record result -> webhooks.

    A stage that fails ends the job, or parks it, as its definition says; a parameter that only a
    person can give parks it always. Stages before it stay done.
    """

    @workflow.init
    def __init__(self, order: JobInput) -> None:
        self._notices, self._waiting = Notifications(order.notices), Waiting()
        timeout = timedelta(seconds=order.park_for_seconds)
        super().__init__(Parking(timeout, self._notices, _MEANINGS))
        self._order = order
        self._status = JobStatus.QUEUED
        self._stage = 0
        self._reason: str | None = None
        self._views = {
            stage.stage_number: StageView(stage=stage.stage_number, name=stage.stage_name)
            for stage in order.definition.stages
        }
        self._done: list[StageRef] = []
        self._end: StageEnd | None = None
        self._steps = _ONLY_RETRY
        self._makes_result = False
        self._ends: dict[int, StageEnd] = {}
        self._cancellation = Cancellation[Answer]()
        self._closing = False
        self._wait: JobWait | None = None

    @workflow.run
    async def run(self, order: JobInput) -> JobResult:
        """Run the job; one that fails has state FAILED in its row too."""
        self._notices.begin()
        try:
            is_complete = await self._cancellation.completes(self._work())
        except _Failed as failed:
            await self._fail(str(failed))
        if not is_complete:
            return await self._cancelled()
        return await self._close(JobStatus.COMPLETED)

    async def _work(self) -> None:
        await self._stages()
        if self._makes_result:
            await self._waiting.retried(self._result_made, self._park_without_result)

    async def _stages(self) -> None:
        kept = {ref.stage: ref for ref in self._order.kept}
        first = self._order.restart_from or 1
        for definition in self._order.definition.stages:
            number = definition.stage_number
            if number < first:
                self._keep(kept[number])
                continue
            self._stage = number
            await self._until_done(number, kept.get(number))

    def _keep(self, ref: StageRef) -> None:
        """A stage of an attempt before, whose results are used."""
        self._done.append(ref)
        known = dict(zip(self._order.kept, self._order.kept_counts, strict=False))
        counts = known.get(ref)
        was_empty = counts is not None and not counts.total
        update = {
            "state": StageState.SKIPPED if was_empty else StageState.COMPLETED,
            "ref": ref,
            "counts": counts or TaskCounts(),
        }
        self._views[ref.stage] = self._views[ref.stage].model_copy(update=update)

    async def _until_done(self, number: int, redo: StageRef | None) -> None:
        """Run a stage until it is done, or left out."""
        attempts = 0
        while True:
            end = await self._run_stage(number, attempts, redo)
            if end.failure is None and not end.questions:
                break
            answered = await self._decided(number, end)
            if answered is Decision.SKIP:
                await self._leave_out(number, attempts, end)
                break
            redo = None if answered is None else end.ref
            attempts += 1
        self._done.append(self._ends[number].ref)

    async def _run_stage(self, number: int, round: int, redo: StageRef | None) -> StageEnd:
        self._cancellation.check()
        order = StageInput(
            job=self._order, stage=number, round=round, done=tuple(self._done), redo=redo
        )
        self._begin(order)
        await self._waiting.retried(self._recorded, self._park_unrecorded)
        self._cancellation.check()
        try:
            end = await workflow.execute_child_workflow(
                Stage.run,
                order,
                id=stage_workflow_id(self._order.job_id, order.ref),
                search_attributes=attributes.of_part(self._order.organisation_id),
                static_summary=f"Stage {number}: {order.definition.stage_name}",
            )
        except ChildWorkflowError as error:
            if is_cancelled_exception(error):
                raise
            end = StageEnd(ref=order.ref, counts=self._views[number].counts).model_copy(
                update={"failure": explain_child(error)}
            )
        self._ends[number] = end
        self._ended(number, end)
        if end.cancelled:
            raise asyncio.CancelledError
        self._cancellation.check()
        return end

    def _begin(self, order: StageInput) -> None:
        self._status, self._end = JobStatus.PROCESSING, None
        self._views[order.stage] = StageView(
            stage=order.stage,
            name=order.definition.stage_name,
            state=StageState.RUNNING,
            ref=order.ref,
            began_at=workflow.now(),
        )
        self._show()

    def _ended(self, number: int, end: StageEnd) -> None:
        self._views[number] = with_end(self._views[number], end, workflow.now())
        self._show_wait(None)
        self._show()

    async def _decided(self, number: int, end: StageEnd) -> Decision | None:
        """What becomes of a stage that has failed.

        Returns:
            RETRY: do it again, keeping its good tasks; None: do it again with other parameters,
            and keep none; SKIP: leave out what has failed.
        """
        reason = reason_of(end)
        policy = self._order.definition.stage(number).on_failure
        if not end.questions and policy is not OnFailure.PARK:
            raise _Failed(f"stage {number} ({self._views[number].name}): {reason}")
        self._end, self._steps = end, "retry, skip, fail or cancel"
        answered = await self._parked(f"stage {number} ({self._views[number].name})", reason)
        if answered.decision is Decision.SKIP:
            return Decision.SKIP
        given = answered.answer.parameters if isinstance(answered.answer, JobRetry) else None
        if not given:
            return Decision.RETRY
        parameters = {**self._order.parameters, **given}
        self._order = self._order.model_copy(update={"parameters": parameters})
        return None

    async def _parked(self, step: str, reason: str) -> Answered:
        """Wait for a person, who may give the job up."""
        self._status, self._reason = JobStatus.PARKED, reason
        answered = await self._parking.wait(step, reason, self._recorded)
        self._parking.resume()
        self._status, self._end, self._reason = JobStatus.PROCESSING, None, None
        self._steps = _ONLY_RETRY
        if answered.decision is Decision.FAIL:
            raise _Failed(answered.final_reason(reason))
        return answered

    async def _result_made(self) -> None:
        self._cancellation.check()
        await workflow.execute_activity_method(
            StageClosing.make_result,
            self._recording(),
            summary="make the result of the job",
            **policies.LONG,
        )

    async def _park_without_result(self, failure: FailureError) -> None:
        self._steps = "retry, fail or cancel"
        await self._parked("result", explain(failure))

    async def _leave_out(self, number: int, round: int, end: StageEnd) -> None:
        """Use what a failed stage has found without the tasks that failed."""
        order = StageInput(job=self._order, stage=number, round=round, done=tuple(self._done))
        tally = StageTally(order=order, tasks=end.counts.total)
        if end.counts.total:
            await self._waiting.retried(
                lambda: workflow.execute_activity_method(
                    StageClosing.close_stage,
                    tally,
                    summary="leave the failed tasks out",
                    **policies.LONG,
                ),
                self._park_unrecorded,
            )
        left = end.model_copy(update={"failure": None, "questions": ()})
        self._ends[number] = left
        self._ended(number, left)

    async def _cancelled(self) -> JobResult:
        stopped = self._cancellation.request
        reason = (stopped and stopped.reason) or "cancelled; what was done stays"
        result = await self._close(JobStatus.CANCELLED, reason)
        if stopped is None:
            # Temporal's own cancel: the run shows as Canceled.
            raise asyncio.CancelledError(reason)
        return result

    async def _fail(self, reason: str) -> NoReturn:
        result = await self._close(JobStatus.FAILED, reason, NotificationKind.FAILED)
        raise ApplicationError(reason, result, type=JOB_FAILED, non_retryable=True)

    async def _close(
        self,
        status: JobStatus,
        reason: str | None = None,
        kind: NotificationKind = NotificationKind.ENDED,
    ) -> JobResult:
        self._closing, self._status, self._reason = True, status, reason
        await self._waiting.retried_despite_cancel(self._recorded, self._park_unrecorded)
        workflow.upsert_search_attributes(attributes.not_waiting(status.lower()))
        self._show()
        result = self._result()
        if status in (JobStatus.COMPLETED, JobStatus.FAILED):
            await start_deliveries(self._order, self._status)
        await self._notices.end(kind, status.lower(), reason or counted(result))
        await workflow.wait_condition(workflow.all_handlers_finished)
        return result

    async def _park_unrecorded(self, failure: FailureError) -> None:
        # Only its record is missing: any answer tries again.
        status, self._status = self._status, JobStatus.PARKED
        await self._parking.unrecorded(failure)
        self._status = status

    async def _recorded(self) -> None:
        recorded = await workflow.execute_local_activity_method(
            StageClosing.record,
            self._recording(),
            summary=f"record {self._status}",
            **policies.SHORT,
        )
        # Releases before returned nothing.
        self._makes_result = recorded is not None and recorded.makes_result

    def _recording(self) -> JobRecording:
        return JobRecording(
            job=self._order,
            status=self._status,
            stage=self._stage,
            stages=tuple(end.ref for end in self._recorded_ends()),
            failed_count=sum(end.counts.failed for end in self._recorded_ends()),
            began_at=workflow.info().start_time,
            reason=self._reason and self._reason[:2_000],
        )

    def _recorded_ends(self) -> list[StageEnd]:
        kept = [ref for ref in self._done if ref.stage not in self._ends]
        before = [StageEnd(ref=ref, counts=self._views[ref.stage].counts) for ref in kept]
        return sorted([*before, *self._ends.values()], key=lambda end: end.ref.stage)

    def _result(self) -> JobResult:
        return JobResult(
            job_id=self._order.job_id,
            attempt=self._order.attempt,
            status=self._status,
            stages=tuple(self._views.values()),
            failed_count=sum(end.counts.failed for end in self._recorded_ends()),
            failed=self._failed_names(),
            reason=self._reason and self._reason[:2_000],
        )

    def _failed_names(self) -> tuple[FailedName, ...]:
        return tuple(each for end in self._ends.values() for each in end.failed)[:NAMED]

    def _show(self) -> None:
        if not self._parking.waits:
            lines = (f"- {line(view)}\n" for view in self._views.values())
            waits = f"{sentence(self._wait)}\n\n" if self._wait else ""
            workflow.set_current_details(waits + "".join(lines))

    def _show_wait(self, wait: JobWait | None) -> None:
        """Show as the state of the job that the stage which runs waits."""
        if wait == self._wait:
            return
        self._wait = wait
        show_wait(wait)

    def _answered(self) -> JobView:
        return self.status()

    def _validate_answer(self, decision: Decision, answer: AnyAnswer) -> None:
        check_answer(decision, answer, self._end)

    @workflow.update(name="cancel")
    async def cancel(self, answer: Answer) -> JobView:
        """Begin no further task; what is in progress cleans up, what is done stays."""
        self._cancellation.stop(answer)
        return self.status()

    @cancel.validator
    def _validate_cancel(self, answer: Answer) -> None:
        if self._closing:
            raise ApplicationError("too late: the job is done", type=TOO_LATE)

    @workflow.signal(name="cancel")
    def cancel_signal(self, answer: Answer | None = None) -> None:
        """Twin of the update, for `temporal workflow signal`."""
        if not self._closing:
            self._cancellation.stop(answer or Answer())

    @workflow.signal(name="progress")
    def progress(self, progress: StageProgress) -> None:
        """A stage says how far it is."""
        view = progress.view
        known = self._views[view.stage]
        if known.state is StageState.RUNNING and known.ref == view.ref:
            self._views[view.stage] = view
            self._show_wait(progress.awaits)
            self._show()

    @workflow.query(name="status")
    def status(self) -> JobView:
        """Where the job stands."""
        return JobView(
            job_id=self._order.job_id,
            attempt=self._order.attempt,
            status=self._status,
            stage=self._stage,
            stages=tuple(self._views.values()),
            reason=self._parking.reason or self._reason,
            questions=self._end.questions if self._end is not None else (),
            next_steps=self._steps if self._parking.waits else None,
            waiting_since=self._parking.since,
            failed=self._failed_names(),
            awaits=wait_of(self._waiting.current) or self._wait,
        )
