"""Recorded cases of `jobs`, by workflow."""

import asyncio
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Any

from temporalio import activity
from temporalio.client import Client, WorkflowFailureError, WorkflowHandle
from temporalio.exceptions import ApplicationError
from temporalio.worker import Worker

from activities.jobs.completion import JobRetentionSteps
from activities.shared.dependencies import Dependencies
from tests.support.jobs.scripted import ScriptedJob
from tests.support.scripted import ScriptedActivities, unavailable
from tests.support.waiting import eventually
from workflows.jobs.batch_work import TaskBatch
from workflows.jobs.definitions import Lane, OnFailure, StageDefinition, WorkflowDefinition
from workflows.jobs.job import Job
from workflows.jobs.records import (
    DELIVER_WEBHOOK,
    JobRecorded,
    JobStatus,
    WebhookAttempt,
    WebhookInput,
    WebhookReceiver,
)
from workflows.jobs.retention_and_webhooks import JobRetention, WebhookDelivery
from workflows.jobs.runs import (
    JobInput,
    JobRetentionInput,
    JobRetentionResult,
    JobRetry,
    Question,
    StageRef,
    batch_workflow_id,
    job_workflow_id,
    stage_workflow_id,
)
from workflows.jobs.stage import Stage
from workflows.shared import attributes
from workflows.shared.contracts import Answer
from workflows.shared.errors import WORKERS_LOST

Handle = WorkflowHandle[Any, Any]
Act = Callable[[Handle, ScriptedJob], Awaitable[None]]
ID = "5eed" * 16


def a_definition(on_failure: OnFailure = OnFailure.FAIL_FAST, **stage: Any) -> WorkflowDefinition:
    """Two stages; the fields are of the first."""
    return WorkflowDefinition(
        job_type="recorded",
        description="Recorded.",
        total_stages=2,
        stages=(
            StageDefinition(
                stage_number=1,
                stage_name="pieces",
                task_type="piece",
                on_failure=on_failure,
                **{"max_parallel_tasks": 2, **stage},
            ),
            StageDefinition(stage_number=2, stage_name="sum", task_type="sum"),
        ),
    )


async def _nothing(handle: Handle, script: ScriptedJob) -> None:
    return


async def _parked(handle: Handle) -> None:
    async def is_parked() -> bool:
        return (await handle.query(Job.status)).waiting_since is not None

    await eventually(is_parked)


async def _retry(handle: Handle, script: ScriptedJob) -> None:
    await _parked(handle)
    await handle.execute_update(Job.retry, JobRetry(by="ann"))


async def _answer(handle: Handle, script: ScriptedJob) -> None:
    await _parked(handle)
    await handle.execute_update(Job.retry, JobRetry(by="ann", parameters={"year": 1999}))


async def _skip(handle: Handle, script: ScriptedJob) -> None:
    await _parked(handle)
    await handle.signal("skip", Answer(by="ann"))


async def _give_up(handle: Handle, script: ScriptedJob) -> None:
    await _parked(handle)
    await handle.execute_update(Job.fail, Answer(by="ann", reason="no use"))


async def _cancel(handle: Handle, script: ScriptedJob) -> None:
    await script.working.wait()
    await handle.execute_update(Job.cancel, Answer(by="ann"))


async def _cancel_waiting(handle: Handle, script: ScriptedJob) -> None:
    async def waits() -> bool:
        return (await handle.query(Job.status)).awaits is not None

    await eventually(waits)
    await handle.execute_update(Job.cancel, Answer(by="ann"))


async def _cancel_in_temporal(handle: Handle, script: ScriptedJob) -> None:
    await script.working.wait()
    await handle.cancel()


@dataclass
class Case:
    """One way a job can go; the history is that of the job, or of a part of it."""

    script: ScriptedJob = field(default_factory=lambda: ScriptedJob({1: 3, 2: 1}))
    definition: WorkflowDefinition = field(default_factory=a_definition)
    act: Act = _nothing
    fields: Mapping[str, Any] = field(default_factory=dict[str, Any])
    of: str = job_workflow_id(ID)
    _job: Handle | None = None
    _tasks: asyncio.Task[None] | None = None

    workflow = Job
    workflows = (Job, Stage, TaskBatch, WebhookDelivery)

    def activities(self) -> list[Callable[..., Any]]:
        """For the worker."""
        return [*self.script.activities(), _delivered]

    async def start(self, client: Client, name: str, task_queue: str) -> Handle:
        """Start the job, and a worker of its tasks."""
        tasks = Worker(client, task_queue=Lane.LIGHT.value, activities=self.script.activities())
        self._tasks = asyncio.create_task(tasks.run())
        order = JobInput(
            job_id=ID,
            definition=self.definition,
            parameters={"pieces": 3},
            **{"notices": True, **self.fields},
        )
        self._job = await client.start_workflow(
            Job.run,
            order,
            id=job_workflow_id(ID),
            task_queue=task_queue,
            search_attributes=attributes.at_start("jobs", "recorded", "P1"),
        )
        return client.get_workflow_handle(self.of)

    async def go(self, handle: Handle) -> None:
        """Do what a person does, and wait for the end of the job."""
        assert self._job is not None and self._tasks is not None
        await self.act(self._job, self.script)
        try:
            await self._job.result()
        except WorkflowFailureError:
            return
        finally:
            self._tasks.cancel()
            await asyncio.gather(self._tasks, return_exceptions=True)


@activity.defn(name=DELIVER_WEBHOOK)
async def _delivered(order: WebhookInput) -> WebhookAttempt:
    """The receiver takes the message."""
    return WebhookAttempt(delivered=True)


_REF = StageRef(stage=1, attempt=1)
_FIRST_STAGE = stage_workflow_id(ID, _REF)
_MANY = 30
"""Tasks of a stage that has batches; histories of earlier releases have them with three."""
_FIRST_BATCH = batch_workflow_id(ID, _REF, 0)
_ASKS = Question(parameter="year", question="which year?")
_RECEIVERS = (WebhookReceiver(url="https://receiver.example/hook"),)


def _script(*, tasks: int = 3, acts: Any = None, **script: Any) -> ScriptedJob:
    return ScriptedJob({1: tasks, 2: 1}, acts, **script)


def _outage(**script: Any) -> ScriptedJob:
    return _script(**script, fails={"run_tasks": [unavailable()], "record": [unavailable()]})


def _own_result(**script: Any) -> ScriptedJob:
    """The job type makes the result of the job."""
    return _script(results={"record": JobRecorded(makes_result=True)}, **script)


def _lost() -> ApplicationError:
    text = "20 workers in a row were lost while they made the result of the job"
    return ApplicationError(text, type=WORKERS_LOST, non_retryable=True)


_GROUPED = a_definition(OnFailure.FAIL_FAST, max_parallel_tasks=100, tasks_per_activity=10)
_WIDE = a_definition(OnFailure.FAIL_FAST, max_parallel_tasks=1_000, tasks_per_activity=100)
_PARK = a_definition(OnFailure.PARK)
_CONTINUE = a_definition(OnFailure.CONTINUE)


@dataclass
class WebhookCase:
    """One way a delivery can go."""

    attempts: list[WebhookAttempt]

    workflow = WebhookDelivery

    def activities(self) -> list[Callable[..., Any]]:
        """For the worker."""
        left = list(self.attempts)

        @activity.defn(name=DELIVER_WEBHOOK)
        async def deliver(order: WebhookInput) -> WebhookAttempt:
            return left.pop(0)

        return [deliver]

    async def start(self, client: Client, name: str, task_queue: str) -> Handle:
        """Start the delivery."""
        order = WebhookInput(
            job_id=ID,
            attempt=1,
            status=JobStatus.COMPLETED,
            ended_at=datetime(2026, 1, 2, tzinfo=UTC),
            receiver=_RECEIVERS[0],
        )
        return await client.start_workflow(
            WebhookDelivery.run, order, id=f"job-webhook/{ID}/1/0", task_queue=task_queue
        )

    async def go(self, handle: Handle) -> None:
        """Nothing: time passes."""


_REFUSED = WebhookAttempt(delivered=False, status_code=500, problem="500", retry_after=1)
_OPEN = WebhookAttempt(delivered=False, counted=False, retry_after=1, problem="circuit is open")


@dataclass
class RetentionCase:
    """One removal of what is no longer kept."""

    script: ScriptedActivities

    workflow = JobRetention

    def activities(self) -> list[Callable[..., Any]]:
        """For the worker."""
        return self.script.activities()

    async def start(self, client: Client, name: str, task_queue: str) -> Handle:
        """Start it."""
        return await client.start_workflow(
            JobRetention.run, JobRetentionInput(), id="job-retention/1", task_queue=task_queue
        )

    async def go(self, handle: Handle) -> None:
        """Nothing: it ends by itself."""
        await handle.result()


def _removing(**script: Any) -> ScriptedActivities:
    removed = JobRetentionResult(jobs=1, files=2, named=("job/1",))
    results = {"remove_superseded": removed, "remove_expired": removed}
    return ScriptedActivities(JobRetentionSteps, Dependencies, results=results, **script)


CASES_OF: dict[str, dict[str, Any]] = {
    "Job": {
        "happy": Case(fields={"webhooks": _RECEIVERS}),
        "own-result": Case(_own_result()),
        "own-result-retried": Case(_own_result(fails={"make_result": [_lost()]}), act=_retry),
        "grouped": Case(_script(tasks=1_200), _GROUPED),
        "failed-fast": Case(_script(acts={(1, 1): "failed"})),
        "failed-then-retried": Case(_script(acts={(1, 1): "failed"}), _PARK, _retry),
        "failed-then-left-out": Case(_script(acts={(1, 1): "failed"}), _PARK, _skip),
        "failed-then-given-up": Case(_script(acts={(1, 1): "failed"}), _PARK, _give_up),
        "continued": Case(_script(acts={(1, 1): "failed"}), _CONTINUE),
        "asked-then-answered": Case(_script(acts={(1, 0): _ASKS}), act=_answer),
        "cancelled": Case(_script(held={"run_tasks"}), act=_cancel),
        "cancelled-in-temporal": Case(_script(held={"run_tasks"}), act=_cancel_in_temporal),
        "restarted": Case(
            fields={
                "attempt": 2,
                "restart_from": 2,
                "kept": (_REF, StageRef(stage=2, attempt=1)),
            }
        ),
        "outage": Case(_outage()),
        "empty": Case(_script(tasks=0)),
        "outage-shown": Case(_outage()),
        "not-ready-then-cancelled": Case(_script(acts={(1, 1): 3_600.0}), act=_cancel_waiting),
    },
    "Stage": {
        "happy": Case(_script(tasks=_MANY), of=_FIRST_STAGE),
        "small": Case(of=_FIRST_STAGE),
        "small-failed-fast": Case(_script(acts={(1, 1): "failed"}), of=_FIRST_STAGE),
        "small-asked-again": Case(_script(acts={(1, 1): 0.5}), of=_FIRST_STAGE),
        "small-asked": Case(_script(acts={(1, 0): _ASKS}), act=_answer, of=_FIRST_STAGE),
        "small-failed-while-asked-again": Case(
            _script(acts={(1, 1): 2.0, (1, 2): "failed"}), of=_FIRST_STAGE
        ),
        "small-failed-while-not-ready": Case(
            _script(acts={(1, 1): 3_600.0, (1, 2): "failed"}), of=_FIRST_STAGE
        ),
        "small-cancelled": Case(_script(held={"run_tasks"}), act=_cancel, of=_FIRST_STAGE),
        "small-outage": Case(_outage(), of=_FIRST_STAGE),
        "grouped": Case(_script(tasks=1_200), _GROUPED, of=_FIRST_STAGE),
        "failed-fast": Case(
            _script(tasks=1_200, acts={(1, 700): "failed"}), _GROUPED, of=_FIRST_STAGE
        ),
        "reported-by-time": Case(_script(tasks=1_200), _GROUPED, of=_FIRST_STAGE),
        "ten-thousand": Case(_script(tasks=10_000), _WIDE, of=_FIRST_STAGE),
        "cancelled": Case(_script(tasks=_MANY, held={"run_tasks"}), act=_cancel, of=_FIRST_STAGE),
        "outage": Case(_script(fails={"plan_stage": [unavailable()]}), of=_FIRST_STAGE),
        "outage-shown": Case(_script(fails={"plan_stage": [unavailable()]}), of=_FIRST_STAGE),
    },
    "TaskBatch": {
        "happy": Case(_script(tasks=_MANY), of=_FIRST_BATCH),
        "asked-again": Case(_script(tasks=_MANY, acts={(1, 1): 0.5}), of=_FIRST_BATCH),
        "outage": Case(_outage(tasks=_MANY), of=_FIRST_BATCH),
        "outage-shown": Case(_outage(tasks=_MANY), of=_FIRST_BATCH),
        "failed-fast": Case(_script(tasks=_MANY, acts={(1, 0): "failed"}), of=_FIRST_BATCH),
        "failed-while-not-ready": Case(
            _script(tasks=_MANY, acts={(1, 0): 3_600.0, (1, 1): "failed"}), of=_FIRST_BATCH
        ),
        "cancelled": Case(_script(tasks=_MANY, held={"run_tasks"}), act=_cancel, of=_FIRST_BATCH),
    },
    "JobRetention": {
        "happy": RetentionCase(_removing()),
        "outage": RetentionCase(_removing(fails={"remove_expired": [unavailable()]})),
    },
    "WebhookDelivery": {
        "delivered": WebhookCase([WebhookAttempt(delivered=True)]),
        "refused-then-delivered": WebhookCase([_REFUSED, _OPEN, WebhookAttempt(delivered=True)]),
        "given-up": WebhookCase([_REFUSED] * 4),
    },
}
