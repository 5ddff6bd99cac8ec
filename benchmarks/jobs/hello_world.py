"""`hello_world` with ten thousand tasks: grouped, one by one, and beside another project."""

import asyncio
import os
import time
import uuid
from collections.abc import AsyncGenerator, Mapping
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Final

import psutil
from temporalio.client import Client
from temporalio.worker import Worker

from activities.jobs.api import JobTypes
from activities.jobs.store import SqlJobStore
from activities.jobs.types.hello_world import HelloWorld
from adapters.database.schema import upgrade
from benchmarks.jobs.bare import LIGHT, QUEUE, BareBatch, BareInput, BareJob, greet
from benchmarks.report import Table, at_most, middle, percentile, spread
from stack.postgres import postgres_server
from stack.temporal import temporal_server
from workers.jobs.register import JOBS
from workers.jobs.resources import job_resources
from workers.jobs.runs import JobRuns
from workers.jobs.settings import JobSettings
from workers.shared.connect import connect
from workers.shared.machine import tune_collector
from workers.shared.resources import open_resources
from workers.shared.settings.common import BlobSettings
from workers.shared.worker_factory import build_lanes, build_worker
from workflows.jobs.definitions import WorkflowDefinition
from workflows.jobs.records import TaskStatus
from workflows.jobs.runs import JobInput, StageRef, job_workflow_id
from workflows.jobs.runs import stage_workflow_id as stage_id

TASKS: Final = 10_000
BATCHES: Final = 20
WINDOW: Final = 50
GROUPED_SECONDS: Final = 5.0
RATIO: Final = 1.3
MEGABYTES: Final = 400.0
EVENTS: Final = 500
BESIDE_SECONDS: Final = 2.0
SMALL_JOBS: Final = 40
LIGHT_SLOTS: Final = (100, 30)
"""That there are by default, and fewer."""


@dataclass(frozen=True)
class Installation:
    """Workers of jobs, as `docflow worker jobs` builds them, and those of bare workflows."""

    client: Client
    runs: JobRuns
    store: SqlJobStore

    async def job(self, order: JobInput) -> float:
        """Seconds that a job takes."""
        began = time.perf_counter()
        await self.runs.start(order)
        await self.client.get_workflow_handle(job_workflow_id(order.job_id)).result()
        return time.perf_counter() - began

    async def bare(self) -> float:
        """Seconds that bare activities take."""
        began = time.perf_counter()
        await self.client.execute_workflow(
            BareJob.run,
            BareInput(batches=BATCHES, tasks=TASKS // BATCHES, window=WINDOW),
            id=f"bare-{uuid.uuid4()}",
            task_queue=QUEUE,
        )
        return time.perf_counter() - began

    async def completed(self, order: JobInput) -> int:
        """Tasks of a job that have completed so far."""
        counts = await self.store.counts(order.job_id, order.attempt)
        return sum(each.get(TaskStatus.COMPLETED, 0) for each in counts.values())

    async def events(self, order: JobInput) -> int:
        """Length of the longest history of a job and its stages."""
        stages = range(1, order.definition.total_stages + 1)
        refs = [StageRef(stage=stage, attempt=order.attempt) for stage in stages]
        ids = [job_workflow_id(order.job_id), *(stage_id(order.job_id, ref) for ref in refs)]
        found = [await self.client.get_workflow_handle(id).describe() for id in ids]
        return max(each.history_length for each in found)


def an_order(definition: WorkflowDefinition, n: int, project: str) -> JobInput:
    """A job that was never run."""
    return JobInput(
        job_id=(uuid.uuid4().hex + uuid.uuid4().hex),
        definition=definition,
        parameters={"n": n},
        project=project,
    )


def one_by_one() -> WorkflowDefinition:
    """Greetings alone, an activity each."""
    [greeting, *_] = HelloWorld.definition.stages
    stage = greeting.model_copy(update={"tasks_per_activity": 1})
    return HelloWorld.definition.model_copy(update={"total_stages": 1, "stages": (stage,)})


@asynccontextmanager
async def opened(
    folder: Path, settings: Mapping[str, str] | None = None
) -> AsyncGenerator[Installation]:
    """Temporal in memory, PostgreSQL, blobs in a folder, one process of workers."""
    async with AsyncExitStack() as stack:
        url = stack.enter_context(postgres_server(durable=True))
        await upgrade(url)
        server = await stack.enter_async_context(
            temporal_server(folder / "temporal", ui=False, in_memory=True)
        )
        environment = {
            "DATABASE_URL": url,
            "DOCFLOW_BLOB_FOLDER": str(folder / "blobs"),
            "DOCFLOW_SCRATCH": str(folder / "scratch"),
            **(settings or {}),
        }
        common = await stack.enter_async_context(open_resources(environment))
        client = await connect(server.address)
        blobs = BlobSettings.read(environment)
        own = job_resources(
            JobSettings.read(environment),
            blobs,
            common.blobs,
            common.database,
            common.scratch,
            JobTypes(HelloWorld),
        )
        workers = [
            build_worker(client, JOBS, common, own),
            *build_lanes(client, JOBS, common, own),
            Worker(client, task_queue=QUEUE, workflows=[BareJob, BareBatch]),
            Worker(
                client,
                task_queue=LIGHT,
                activities=[greet],
                max_concurrent_activities=own.light_slots,
            ),
        ]
        for worker in workers:
            await stack.enter_async_context(worker)
        tune_collector()
        yield Installation(client, JobRuns(client, own.store), own.store)


async def grouped(folder: Path, rounds: int) -> Table:
    """Three stages with ten thousand tasks, ten to an activity."""
    table = Table(
        f"hello_world, {TASKS:,} tasks, ten to an activity",
        ("seconds", "tasks/s", "memory MB", "longest history"),
    )
    async with opened(folder) as installation:
        seconds, events = list[float](), 0
        for _ in range(rounds):
            order = an_order(HelloWorld.definition, TASKS // 2, "P1")
            seconds.append(await installation.job(order))
            events = await installation.events(order)
        memory = _megabytes()
    rate = TASKS / middle(seconds)
    table.add(spread(seconds, 1), f"{rate:,.0f}", f"{memory:.0f}", f"{events}")
    table.notes += [
        at_most(middle(seconds), GROUPED_SECONDS, " s"),
        at_most(memory, MEGABYTES, " MB"),
        at_most(events, EVENTS, " events of job and stages"),
    ]
    return table


async def ungrouped(folder: Path, rounds: int) -> Table:
    """One stage with ten thousand tasks, an activity each, against bare activities."""
    table = Table(
        f"{TASKS:,} tasks, an activity each: {BATCHES} x {TASKS // BATCHES}, window {WINDOW}",
        ("bare activities s", "docflow s", "ratio", "memory MB", "longest history"),
    )
    async with opened(folder) as installation:
        bare, ours, events = list[float](), list[float](), 0
        for _ in range(rounds):
            bare.append(await installation.bare())
            order = an_order(one_by_one(), TASKS, "P1")
            ours.append(await installation.job(order))
            events = await installation.events(order)
        memory = _megabytes()
    ratio = middle(ours) / middle(bare)
    table.add(spread(bare, 1), spread(ours, 1), f"{ratio:.2f}", f"{memory:.0f}", f"{events}")
    table.notes += [
        at_most(ratio, RATIO),
        at_most(memory, MEGABYTES, " MB"),
        at_most(events, EVENTS, " events of job and stages"),
    ]
    return table


async def beside(folder: Path) -> Table:
    """Small jobs of one project while another one has ten thousand tasks to do."""
    table = Table(
        f"A hello_world of 3 beside {TASKS:,} tasks of another project",
        ("light slots", "jobs", "median s", "p95 s", "other tasks/s", "load"),
    )
    for slots in LIGHT_SLOTS:
        await _beside(folder / str(slots), slots, table)
    table.notes.append("16 slots of control, and the light ones, in one process")
    return table


async def _beside(folder: Path, slots: int, table: Table) -> None:
    settings = {"DOCFLOW_JOBS_LIGHT_SLOTS": str(slots)}
    async with opened(folder, settings) as installation:
        began, order = time.perf_counter(), an_order(one_by_one(), TASKS, "P1")
        flood = asyncio.create_task(installation.job(order))
        seconds: list[float] = []
        try:
            while len(seconds) < SMALL_JOBS and not flood.done():
                seconds.append(await installation.job(an_order(HelloWorld.definition, 3, "P2")))
            rate = await installation.completed(order) / (time.perf_counter() - began)
        finally:
            flood.cancel()
            await asyncio.gather(flood, return_exceptions=True)
        load = os.getloadavg()[0]
    slow = percentile(seconds, 0.95)
    table.add(
        f"{slots}",
        f"{len(seconds)}",
        f"{middle(seconds):.2f}",
        f"{slow:.2f}",
        f"{rate:.0f}",
        f"{load:.1f}",
    )
    table.notes.append(f"{slots} light slots: {at_most(slow, BESIDE_SECONDS, ' s')}")


def _megabytes() -> float:
    return psutil.Process().memory_info().rss / 1e6
