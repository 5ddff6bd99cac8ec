"""The register of `jobs`: staged jobs, their stages and batches of tasks."""

import re
from collections.abc import AsyncGenerator, Mapping, Sequence
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING, Any, Final

from workers.shared.register import (
    QUEUE_ERRANDS,
    Bridge,
    Context,
    Lane,
    Pipeline,
    Readers,
    Resubmission,
    RunKind,
    RunRow,
    scheduled,
)
from workflows.jobs.definitions import HEAVY_MEMORY, TASK_QUEUE
from workflows.jobs.definitions import Lane as TaskLane
from workflows.jobs.records import WEBHOOK_DELIVERY, WEBHOOK_PREFIX, JobStatus
from workflows.jobs.runs import (
    JOB,
    JOB_RETENTION,
    JOB_RETENTION_SCHEDULE,
    STAGE,
    TASK_BATCH,
    JobRetentionInput,
    JobRetry,
    JobView,
    StageView,
)
from workflows.shared.contracts import Answer
from workflows.shared.dependencies import WAITING

if TYPE_CHECKING:
    from adapters.ports.records import OpenRows
    from workers.jobs.resources import JobsOpened
    from workers.jobs.settings import JobQueueSettings, JobSettings
    from workers.shared.declared_schedules import Declared
    from workers.shared.resources import Resources

NAME: Final = "jobs"
_JOB: Final = "(?P<job>[0-9a-f]{64})"
_STAGE: Final = rf"job/{_JOB}/[0-9]+/[0-9]+(?:\.[0-9]+)?"


def _workflows() -> Sequence[type]:
    from workflows.jobs.batch_work import TaskBatch
    from workflows.jobs.job import Job
    from workflows.jobs.retention_and_webhooks import JobRetention, WebhookDelivery
    from workflows.jobs.stage import Stage

    return (Job, Stage, TaskBatch, WebhookDelivery, JobRetention)


def _settings(environment: Mapping[str, str]) -> "JobSettings":
    from workers.jobs.settings import JobSettings, WebhookSettings
    from workers.shared.settings.check import check_settings

    check_settings(environment, JobSettings, WebhookSettings)
    return JobSettings.read(environment)


@asynccontextmanager
async def _open(context: Context, settings: "JobSettings") -> AsyncGenerator["JobsOpened"]:
    from adapters.files.computation import ForkingExecutor
    from adapters.files.rasters.pool import FileRasters
    from adapters.ports.spatial import Rasters, SubprocessExecutor
    from workers.jobs.resources import job_resources
    from workers.jobs.settings import WebhookSettings
    from workers.shared.settings.common import BlobSettings

    common = context.resources
    memory = settings.heavy_memory
    async with (
        FileRasters(settings.heavy, memory_bytes=memory) as rasters,
        ForkingExecutor(settings.heavy, HEAVY_MEMORY, memory) as computing,
    ):
        yield job_resources(
            settings,
            BlobSettings.read(context.environment),
            common.blobs,
            common.database,
            common.scratch,
            more={Rasters: rasters, SubprocessExecutor: computing},
            webhooks=WebhookSettings.read(context.environment),
        )


def activities(common: "Resources", own: "JobsOpened") -> Sequence[object]:
    """What a worker of jobs runs."""
    from activities.jobs.completion import JobRetentionSteps, StageClosing
    from activities.jobs.groups import BatchRecords
    from activities.jobs.planning import StagePlanning
    from activities.jobs.webhooks import JobWebhooks

    return (
        StagePlanning(own.ports),
        BatchRecords(own.ports),
        StageClosing(own.ports),
        JobWebhooks(own.webhooks, own.store),
        JobRetentionSteps(own.ports, own.blobs, own.leftovers, own.keep),
        *_tasks(common, own),
    )


def _tasks(common: "Resources", own: "JobsOpened") -> Sequence[object]:
    from activities.jobs.groups import TaskGroups

    return (TaskGroups(own.ports),)


def _open_rows(own: "JobsOpened") -> "OpenRows":
    return own.store


def _bridge_settings(environment: Mapping[str, str]) -> "JobQueueSettings":
    from workers.jobs.settings import JobQueueSettings, TierSettings, WebhookSettings
    from workers.shared.settings.check import check_settings

    check_settings(environment, JobQueueSettings, TierSettings, WebhookSettings)
    return JobQueueSettings.read(environment)


def _queue_name(environment: Mapping[str, str]) -> str:
    from workers.jobs.settings import JobQueueSettings

    named = environment.get("DOCFLOW_JOBS_QUEUE", "").strip()
    return named or JobQueueSettings.model_fields["queue_name"].default


def _schedules() -> Mapping[str, "Declared"]:
    from workers.shared.declared_schedules import Declared, daily

    return {
        JOB_RETENTION_SCHEDULE: Declared(
            pipeline=NAME,
            workflow=JOB_RETENTION,
            task_queue=TASK_QUEUE,
            input=JobRetentionInput(),
            at=daily(3),
        )
    }


def _light(own: "JobsOpened") -> int:
    return own.light_slots


def _light_tuned(own: "JobsOpened") -> bool:
    return own.light_tuned


def _heavy(own: "JobsOpened") -> int:
    return own.heavy_slots


def _id(found: re.Match[str]) -> str:
    return found["job"]


def _page(job_id: str) -> str:
    return f"/jobs/{job_id}"


def _title(job_id: str) -> str:
    return f"Job {job_id[:8]}"


_ANSWERS: Mapping[str, Any] = {
    "retry": JobRetry,
    "skip": Answer,
    "fail": Answer,
    "cancel": Answer,
}


def _readers() -> Sequence[Readers]:
    from adapters.files.limits import MB, VECTOR_MEMORY_BYTES

    # A heavy task reads rasters or vector data, or computes: a process is kept ready for each.
    return (
        Readers(
            memory_bytes=VECTOR_MEMORY_BYTES,
            memory_setting=HEAVY_MEMORY,
            slots=("DOCFLOW_JOBS_HEAVY_SLOTS",),
            kept_bytes=3 * 128 * MB,
        ),
    )


JOBS = Pipeline(
    name=NAME,
    title="Job",
    task_queue=TASK_QUEUE,
    contracts="workflows.jobs",
    activities_package="activities.jobs",
    runs=(
        RunKind(
            workflow=JOB,
            pattern=re.compile(f"job/{_JOB}"),
            parse=_id,
            title=_title,
            page=_page,
            row=lambda job_id: RunRow(f"job/{job_id}", job_id, job_id),
            status=JobView,
            answers=_ANSWERS,
            states=(
                JobStatus.PARKED.lower(),
                WAITING,
                "running",
                JobStatus.FAILED.lower(),
                JobStatus.TERMINATED.lower(),
                JobStatus.CANCELLED.lower(),
                JobStatus.COMPLETED.lower(),
            ),
        ),
        RunKind(workflow=STAGE, pattern=re.compile(_STAGE), parse=_id, status=StageView),
        RunKind(workflow=TASK_BATCH, pattern=re.compile(f"{_STAGE}/[0-9]+"), parse=_id),
        RunKind(
            workflow=WEBHOOK_DELIVERY,
            pattern=re.compile(rf"{WEBHOOK_PREFIX}/{_JOB}/[0-9]+/[0-9]+(?:/[0-9]+)?"),
            parse=_id,
        ),
        scheduled(JOB_RETENTION_SCHEDULE, JOB_RETENTION),
    ),
    workflows=_workflows,
    schedules=_schedules,
    settings=_settings,
    open=_open,
    activities=activities,
    lanes=(
        Lane("light", TaskLane.LIGHT.value, _light, _tasks, tuned=_light_tuned),
        Lane("heavy", TaskLane.HEAVY.value, _heavy, _tasks),
    ),
    own_states=tuple(JobStatus),
    open_rows=_open_rows,
    worker_help="Work on jobs, their stages and tasks.",
    libraries=("rasterio", "pyogrio"),
    # They plan, record and aggregate.
    activity_slots=16,
    activity_bytes=8 << 20,
    readers=_readers,
    enabled_by="DOCFLOW_BRONZE_CONTAINER",
    requirements="workers.jobs.setup:worker_requirements",
    gateway="workers.jobs.pages:open_part",
    errands={
        **QUEUE_ERRANDS,
        "start": "workers.jobs.errands:start",
        "restart": "workers.jobs.errands:restart",
    },
    bridges=(
        Bridge(
            name="job-queue",
            help="Receive messages that ask for jobs from Service Bus and start them.",
            settings=_bridge_settings,
            run="workers.jobs.factory:receive",
            requirements="workers.jobs.setup:queue_requirements",
            resubmission=Resubmission(
                setting="DOCFLOW_JOBS_QUEUE",
                queue=_queue_name,
                sender="workers.jobs.intake:SENDER",
                dead_letters="workers.jobs.intake:dead_letters",
            ),
        ),
    ),
    naming="job/ID, or the first 8 characters of ID or more",
    corrects=("retry",),
    changes=("retry",),
)
