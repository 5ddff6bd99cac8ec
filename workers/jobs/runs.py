"""Runs of jobs in Temporal: start, restart, cancel."""

import asyncio
from collections.abc import Mapping, Sequence
from contextlib import suppress
from datetime import datetime
from typing import Annotated, Any, Final

from pydantic import Field, computed_field
from temporalio.client import (
    Client,
    WorkflowExecutionDescription,
    WorkflowExecutionStatus,
    WorkflowFailureError,
    WorkflowHandle,
)
from temporalio.common import Priority, WorkflowIDConflictPolicy, WorkflowIDReusePolicy
from temporalio.exceptions import ApplicationError, WorkflowAlreadyStartedError
from temporalio.service import RPCError, RPCStatusCode

from activities.jobs.folders import StageFolders
from activities.jobs.store import SqlJobStore
from adapters.ports.errors import BlobNotFound
from workers.shared.services.errors import InvalidRequest, NotFound, WrongState
from workers.shared.services.intake import START_TIMEOUT, short
from workers.shared.services.quotas import Quotas
from workers.shared.services.runs import (
    PARKED,
    SECONDS_TO_ANSWER,
    TemporalRuns,
    standing,
    started_with,
    temporal_errors,
)
from workflows.jobs.definitions import TASK_QUEUE, WorkflowDefinition
from workflows.jobs.job import Job
from workflows.jobs.records import JobRecord, JobStatus, TaskStatus
from workflows.jobs.runs import (
    JobInput,
    JobResult,
    JobRetry,
    JobView,
    JobWait,
    Question,
    StageState,
    StageView,
    TaskCounts,
    job_workflow_id,
)
from workflows.shared import attributes
from workflows.shared.contracts import Answer, AnyAnswer, PlainRecord, not_served, served
from workflows.shared.fairness import fairness_key
from workflows.shared.parking import Decision

ENDED: Final = frozenset(
    {JobStatus.COMPLETED, JobStatus.FAILED, JobStatus.CANCELLED, JobStatus.TERMINATED}
)
"""Nothing more happens by itself."""
_AT_THE_END: Final[Mapping[JobStatus, StageState]] = {
    JobStatus.COMPLETED: StageState.COMPLETED,
    JobStatus.FAILED: StageState.FAILED,
    JobStatus.CANCELLED: StageState.CANCELLED,
    JobStatus.TERMINATED: StageState.CANCELLED,
}


class JobDocument(JobRecord):
    """The record of a job, with its stages."""

    stages: tuple[StageView, ...] = ()
    questions: tuple[Question, ...] = ()
    """Parameters that a person has to give."""
    next_steps: str | None = Field(default=None)
    """What a person can do while it is parked."""
    waiting_since: datetime | None = None
    awaits: JobWait | None = None
    """What it waits for without a person, as its run says."""

    @property
    def ended(self) -> bool:
        """Whether nothing more happens by itself."""
        return self.status in ENDED


def from_run(record: JobRecord, view: JobView) -> JobDocument:
    """As its run says: it knows more, and earlier, than the table.

    It has not ended before the table says so too, since the result stands there.
    """
    return _document(
        record,
        {
            "status": record.status if view.status in ENDED else view.status,
            "stage": view.stage,
            "stages": view.stages,
            "questions": view.questions,
            "next_steps": view.next_steps,
            "waiting_since": view.waiting_since,
            "awaits": view.awaits,
            "error_details": view.reason or record.error_details,
        },
    )


def from_table(
    record: JobRecord,
    counts: Mapping[int, Mapping[TaskStatus, int]],
    definition: WorkflowDefinition | None,
) -> JobDocument:
    """As the table says: when the job has ended, or no worker answers."""
    stages = tuple(
        _stage(record, number, _name(definition, number), counts.get(number, {}))
        for number in range(1, record.total_stages + 1)
    )
    return _document(record, {"stages": stages})


def _stage(
    record: JobRecord, number: int, name: str, by_status: Mapping[TaskStatus, int]
) -> StageView:
    state = _state(record, number, by_status)
    # What an earlier attempt has done of it does not count.
    counts = TaskCounts() if state is StageState.WAITING else _counts(by_status)
    return StageView(stage=number, name=name, state=state, counts=counts)


def _document(record: JobRecord, more: Mapping[str, Any]) -> JobDocument:
    fields = {name: getattr(record, name) for name in JobRecord.model_fields}
    return JobDocument.model_validate({**fields, **more})


def _name(definition: WorkflowDefinition | None, number: int) -> str:
    named: Sequence[str] = [] if definition is None else [s.stage_name for s in definition.stages]
    return named[number - 1] if number <= len(named) else f"stage-{number}"


def _counts(by_status: Mapping[TaskStatus, int]) -> TaskCounts:
    return TaskCounts(
        total=sum(by_status.values()),
        completed=by_status.get(TaskStatus.COMPLETED, 0),
        failed=by_status.get(TaskStatus.FAILED, 0),
        cancelled=by_status.get(TaskStatus.CANCELLED, 0),
    )


def _state(record: JobRecord, number: int, by_status: Mapping[TaskStatus, int]) -> StageState:
    if number < record.stage or record.status is JobStatus.COMPLETED:
        return StageState.COMPLETED if by_status else StageState.SKIPPED
    if number > record.stage:
        return StageState.WAITING
    return _AT_THE_END.get(record.status, StageState.RUNNING)


_ATTEMPT: Final = "attempt"
_ALIAS: Final = "alias"
"""Entries of a run's memo."""
_DONE: Final = (StageState.COMPLETED, StageState.SKIPPED)


class StartedJob(PlainRecord):
    """A job that runs, or has run."""

    job_id: Annotated[str, served("Its id", "5eed" * 16)]
    attempt: Annotated[int, served("Number of the attempt", 1)]
    created: Annotated[
        bool, served("False: the same job was asked for before; it was not started again", True)
    ]
    notes: Annotated[
        Sequence[str], served("What of the request was not used, and what to know of the run", [])
    ] = ()
    alias: Annotated[str | None, not_served()] = None
    """Of the run that was started or met."""

    @computed_field(description="Its run: /api/v1/runs/{id}", examples=["job/5eed5eed"])
    @property
    def id(self) -> str:
        """Workflow id."""
        return job_workflow_id(self.job_id)


class JobRuns:
    """Runs of jobs in one namespace; every refusal is a `ServiceError`.

    Args:
        client: Of the namespace.
        store: Remembers jobs that Temporal has forgotten; None: those begin anew.
        folders: Plans and results of stages: they hold the newest parameters of a job.
        quotas: Of organisations; None: there are none.
    """

    def __init__(
        self,
        client: Client,
        store: SqlJobStore | None = None,
        folders: StageFolders | None = None,
        quotas: Quotas | None = None,
    ) -> None:
        self._quotas = quotas
        self._client = client
        self._store = store
        self._folders = folders

    async def start(self, order: JobInput, *, rerun: bool = False) -> StartedJob:
        """Start a job, unless it was started before.

        Args:
            order: As its first attempt.
            rerun: Another attempt at the whole, when an earlier one has ended.

        Raises:
            TemporalUnavailable: Temporal does not answer.
            WrongState: A rerun of a job that has not ended.
            Unavailable: The database does not answer.
        """
        found = await self._found(order.job_id)
        if found is None:
            return await self._start_forgotten(order, rerun=rerun)
        if rerun:
            found = await self._closed(found, order.job_id)
        attempt = await _attempt_of(found)
        if found.status is WorkflowExecutionStatus.RUNNING:
            if rerun:
                raise WrongState(
                    "the job has not ended: cancel it before it is done again",
                    workflow_id=found.id,
                )
            return await self._met(found, order.job_id)
        if rerun:
            return await self._begin(order.model_copy(update={"attempt": attempt + 1}))
        return await self._met(found, order.job_id, _note(order.job_id, found))

    async def _met(
        self, found: WorkflowExecutionDescription, job_id: str, note: str | None = None
    ) -> StartedJob:
        """A run that was there before."""
        memo = await found.memo()
        alias = memo.get(_ALIAS)
        if _ALIAS not in memo and self._store is not None:
            # A run of an earlier release.
            record = await self._store.job(job_id)
            alias = record and record.alias
        notes = () if note is None else (note,)
        attempt = await _attempt_of(found)
        return StartedJob(job_id=job_id, attempt=attempt, created=False, notes=notes, alias=alias)

    async def _start_forgotten(self, order: JobInput, *, rerun: bool) -> StartedJob:
        """Start a job of which Temporal knows no run (any more)."""
        record = None if self._store is None else await self._store.job(order.job_id)
        if record is None:
            return await self._begin(order, WorkflowIDReusePolicy.REJECT_DUPLICATE)
        if record.status is JobStatus.COMPLETED and not rerun:
            return StartedJob(
                job_id=order.job_id, attempt=record.attempt, created=False, alias=record.alias
            )
        # Under another attempt, so that nothing that was published is overwritten.
        return await self._begin(order.model_copy(update={"attempt": record.attempt + 1}))

    async def _begin(
        self,
        order: JobInput,
        reuse: WorkflowIDReusePolicy = WorkflowIDReusePolicy.ALLOW_DUPLICATE,
    ) -> StartedJob:
        job_type = order.definition.job_type
        project = order.project or job_type
        if self._quotas is not None:
            await self._quotas.admit(order.organisation_id)
        with temporal_errors():
            try:
                await self._client.start_workflow(
                    Job.run,
                    order,
                    id=job_workflow_id(order.job_id),
                    task_queue=TASK_QUEUE,
                    id_reuse_policy=reuse,
                    # Of two callers at the same moment the later one meets the earlier one's run.
                    id_conflict_policy=WorkflowIDConflictPolicy.FAIL,
                    search_attributes=attributes.at_start(
                        "jobs", job_type, project, order.organisation_id
                    ),
                    memo={_ATTEMPT: order.attempt, _ALIAS: order.alias},
                    priority=Priority(fairness_key=fairness_key(order.organisation_id, project)),
                    static_summary=short(f"{job_type} for {project}"),
                    rpc_timeout=START_TIMEOUT,
                )
            except WorkflowAlreadyStartedError:
                found = await self._found(order.job_id)
                if found is None:
                    return StartedJob(job_id=order.job_id, attempt=order.attempt, created=False)
                return await self._met(found, order.job_id)
        return StartedJob(
            job_id=order.job_id, attempt=order.attempt, created=True, alias=order.alias
        )

    async def restart(self, job_id: str, from_stage: int | None = None) -> StartedJob:
        """Do the failed stage again, keeping its good tasks; or an earlier one, keeping none.

        Of a job that has completed without some tasks that is the first stage in which one failed.
        A parked job is answered with `retry`. Of one that has ended another attempt begins.

        Raises:
            NotFound: Temporal knows no such job.
            WrongState: It runs, or has completed.
            InvalidRequest: There is no such stage, or one before it is not done.
            TemporalUnavailable: Temporal does not answer, or no worker.
        """
        found = await self._found(job_id)
        if found is None:
            raise NotFound(
                f"Temporal knows no run of job {job_id[:8]} (any more): submit it again, with "
                "--rerun when it has completed"
            )
        found = await self._closed(found, job_id)
        attempt = await _attempt_of(found)
        if found.status is WorkflowExecutionStatus.RUNNING:
            return await self._retry(found, job_id, attempt, from_stage)
        handle = self._client.get_workflow_handle(found.id, run_id=found.run_id)
        with temporal_errors():
            stages = await _stages(handle, found)
            order = await started_with(self._client, found.id, JobInput)
        first = _first(stages, from_stage, job_id)
        kept = [view for view in stages if view.stage < first and view.ref is not None]
        redo = stages[first - 1]
        if first in (_failed(stages), _first_with_failures(stages)) and redo.ref is not None:
            kept.append(redo)
        order = await self._newest(order, stages)
        return await self._begin(
            order.model_copy(
                update={
                    "attempt": attempt + 1,
                    "restart_from": first,
                    "kept": tuple(view.ref for view in kept),
                    "kept_counts": tuple(view.counts for view in kept),
                }
            )
        )

    async def _closed(
        self, found: WorkflowExecutionDescription, job_id: str
    ) -> WorkflowExecutionDescription:
        """The run; one whose record says that it has ended is about to close."""
        if found.status is not WorkflowExecutionStatus.RUNNING or self._store is None:
            return found
        record = await self._store.job(job_id)
        if (
            record is None
            or record.status not in ENDED
            or (record.attempt != await _attempt_of(found))
        ):
            return found
        handle = self._client.get_workflow_handle(found.id, run_id=found.run_id)
        with temporal_errors(), suppress(TimeoutError, WorkflowFailureError):
            async with asyncio.timeout(SECONDS_TO_ANSWER):
                await handle.result()
        return await self._found(job_id) or found

    async def _retry(
        self,
        found: WorkflowExecutionDescription,
        job_id: str,
        attempt: int,
        from_stage: int | None,
    ) -> StartedJob:
        """Answer a job that is parked."""
        if found.typed_search_attributes.get(attributes.STATE) != PARKED or from_stage is not None:
            raise WrongState(
                "the job has not ended"
                + ("" if from_stage is None else ", so it cannot go back to a stage")
                + f": wait for it, or cancel it with `docflow cancel {found.id}`",
                workflow_id=found.id,
            )
        await self.answer(job_id, Decision.RETRY, JobRetry())
        notes = ("it was parked, and tries again",)
        return StartedJob(job_id=job_id, attempt=attempt, created=False, notes=notes)

    async def answer(self, job_id: str, decision: Decision, answer: AnyAnswer) -> None:
        """Answer a job that is parked.

        Raises:
            NotFound: There is no such open run.
            Refused: It is not parked, or asks for more.
            TemporalUnavailable: Temporal does not answer, or no worker.
        """
        runs = TemporalRuns(self._client, {})
        await runs.update(job_workflow_id(job_id), decision, answer, JobView, "jobs")

    async def cancel(self, job_id: str, reason: str | None = None) -> None:
        """Begin no more tasks and end; running tasks clean up.

        Raises:
            NotFound: There is no such open run.
            Refused: It is too late.
            TemporalUnavailable: Temporal does not answer, or no worker.
        """
        runs = TemporalRuns(self._client, {})
        await runs.update(job_workflow_id(job_id), "cancel", Answer(reason=reason), JobView, "jobs")

    async def _found(self, job_id: str) -> WorkflowExecutionDescription | None:
        """The newest run of a job; None: Temporal knows of none."""
        handle = self._client.get_workflow_handle(job_workflow_id(job_id))
        with temporal_errors():
            try:
                return await handle.describe(rpc_timeout=START_TIMEOUT)
            except RPCError as error:
                if error.status is RPCStatusCode.NOT_FOUND:
                    return None
                raise

    async def _newest(self, order: JobInput, stages: Sequence[StageView]) -> JobInput:
        """The order with the parameters that people have given since."""
        for view in reversed(stages):
            if self._folders is None or view.ref is None:
                continue
            # A stage that was never planned has none.
            with suppress(BlobNotFound):
                stage = await self._folders.order(order.job_id, view.ref)
                return order.model_copy(update={"parameters": stage.job.parameters})
        return order


async def _attempt_of(found: WorkflowExecutionDescription) -> int:
    memo: Mapping[str, Any] = await found.memo()
    return int(memo.get(_ATTEMPT, 1))


def _note(job_id: str, found: WorkflowExecutionDescription) -> str | None:
    """What to know of a run that has ended; None: it has completed."""
    state = found.typed_search_attributes.get(attributes.STATE) or ""
    assert found.status is not None
    if found.status is WorkflowExecutionStatus.COMPLETED:
        if state != JobStatus.CANCELLED.lower():
            return None
        ended = "was cancelled"
    else:
        ended = standing(found.status)
    return (
        f"this job was done before and {ended}: `docflow job restart {job_id[:8]}` continues "
        "at its failed stage and keeps what is good, --rerun does all of it again"
    )


async def _stages(
    handle: WorkflowHandle[Any, Any], found: WorkflowExecutionDescription
) -> Sequence[StageView]:
    """How far a run that has ended was."""
    if found.status is WorkflowExecutionStatus.COMPLETED:
        return JobResult.model_validate(await handle.result()).stages
    if found.status is WorkflowExecutionStatus.FAILED:
        try:
            await handle.result()
        except WorkflowFailureError as error:
            cause = error.cause
            if isinstance(cause, ApplicationError) and cause.details:
                return JobResult.model_validate(cause.details[0]).stages
    return (await handle.query(Job.status)).stages


def _failed(stages: Sequence[StageView]) -> int | None:
    """The first stage that is not done; None: all are."""
    return next((view.stage for view in stages if view.state not in _DONE), None)


def _first_with_failures(stages: Sequence[StageView]) -> int | None:
    """The first stage in which a task has failed; None: there is none."""
    return next((view.stage for view in stages if view.counts.failed), None)


def _first(stages: Sequence[StageView], wanted: int | None, job_id: str) -> int:
    """The stage at which another attempt begins."""
    failed = _failed(stages)
    if wanted is None:
        first = failed or _first_with_failures(stages)
        if first is None:
            raise WrongState(
                "every stage of the job is done: name one with --from-stage, or submit it again "
                "with --rerun",
                workflow_id=job_workflow_id(job_id),
            )
        return first
    last = len(stages) if failed is None else failed
    if not 1 <= wanted <= last:
        raise InvalidRequest(
            f"the job can be restarted from stage 1 to {last}, and not from {wanted}"
        )
    return wanted
