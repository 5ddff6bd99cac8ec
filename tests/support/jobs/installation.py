"""An installation of jobs whose blobs are in memory: everything else is real."""

from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass
from datetime import timedelta
from pathlib import Path
from typing import Any

from temporalio.client import Client, WorkflowHandle
from temporalio.common import Priority
from temporalio.worker import Worker

from activities.jobs.api import JobPorts, JobResources, JobType, JobTypes
from activities.jobs.catalogue import Catalogue
from activities.jobs.folders import StageFolders
from activities.jobs.store import SqlJobLeftovers, SqlJobStore
from activities.jobs.types.hello_world import HelloWorld
from activities.shared.dependencies import Dependencies
from adapters.database.engine import Database, open_database
from tests.support.fresh_database import fresh_url
from tests.support.memory.blobs import MemoryBlobs
from tests.support.scripted import ScriptedActivities, scripted
from workers.jobs.register import JOBS
from workers.jobs.resources import JobsOpened, webhook_ports
from workers.jobs.settings import WebhookSettings
from workers.shared.register import activities_of
from workers.shared.settings.webhooks import ReceiverSettings
from workflows.jobs.definitions import Lane
from workflows.jobs.job import Job
from workflows.jobs.records import JobRecord, TaskRecord
from workflows.jobs.runs import JobInput, JobResult, job_id, job_workflow_id
from workflows.shared import attributes

QUEUE = "jobs"


@dataclass
class JobInstallation:
    """Jobs with their tables and blobs."""

    client: Client
    blobs: MemoryBlobs
    opened: JobsOpened
    database: Database
    waits: ScriptedActivities
    """Waits for dependencies: each of them answers at once, after an outage."""

    @property
    def store(self) -> SqlJobStore:
        return self.opened.store

    async def start(self, order: JobInput) -> WorkflowHandle[Any, JobResult]:
        """Start a job, as its service does."""
        project = order.project or order.definition.job_type
        return await self.client.start_workflow(
            Job.run,
            order,
            id=job_workflow_id(order.job_id),
            task_queue=QUEUE,
            search_attributes=attributes.at_start("jobs", order.definition.job_type, project),
            priority=Priority(fairness_key=project),
        )

    async def run(self, order: JobInput) -> JobResult:
        """Run a job to its end."""
        return await (await self.start(order)).result()

    async def record(self, order: JobInput) -> JobRecord:
        """The row of a job."""
        found = await self.store.job(order.job_id)
        assert found is not None
        return found

    async def tasks(self, order: JobInput, **which: Any) -> Sequence[TaskRecord]:
        """Rows of the tasks of a job."""
        return (await self.store.tasks(order.job_id, limit=100_000, **which)).tasks


def order_of(
    kind: type[JobType[Any]] = HelloWorld, parameters: dict[str, Any] | None = None, **fields: Any
) -> JobInput:
    """The order of a job, with the id that its service would give it."""
    given = parameters or {}
    return JobInput(
        job_id=job_id(kind.definition, given, ()),
        definition=kind.definition,
        parameters=given,
        **fields,
    )


def ports_of(
    folder: Path, blobs: MemoryBlobs, database: Database, types: Sequence[type[JobType[Any]]]
) -> JobPorts:
    """What activities of jobs share, over blobs in memory."""
    resources = JobResources(
        bronze=MemoryBlobs(),
        silver=MemoryBlobs(),
        gold=MemoryBlobs(),
        catalogue=Catalogue(database),
        scratch=folder / "scratch",
    )
    return JobPorts(
        types=JobTypes(HelloWorld, *types),
        resources=resources,
        folders=StageFolders(blobs, folder / "scratch"),
        store=SqlJobStore(database),
        result_bytes=10_000,
    )


@asynccontextmanager
async def job_installation(
    client: Client,
    folder: Path,
    run_worker: Callable[..., Worker],
    *types: type[JobType[Any]],
    url: str | None = None,
) -> AsyncIterator[JobInstallation]:
    """Workers of jobs and of both lanes, over a database of their own.

    Args:
        client: Of the Temporal server.
        folder: For the database and temporary files.
        run_worker: The fixture.
        types: Job types beside `hello_world`.
        url: Of a database with tables; None: a new one.
    """
    url = url or fresh_url()
    async with AsyncExitStack() as stack:
        database = await stack.enter_async_context(open_database(url))
        blobs = MemoryBlobs()
        ports = ports_of(folder, blobs, database, types)
        local = webhook_ports(WebhookSettings(receivers=ReceiverSettings(local=True)), database)
        leftovers = SqlJobLeftovers(database)
        opened = JobsOpened(
            *(SqlJobStore(database), ports, 100, 4, False),
            *(local, blobs, leftovers, timedelta(days=90)),
        )
        waits = scripted(Dependencies)
        every: Any = activities_of(*JOBS.activities(None, opened))  # type: ignore[arg-type]
        every = [*every, *waits.activities()]
        await stack.enter_async_context(run_worker(QUEUE, list(JOBS.workflows()), every))
        for lane in (Lane.LIGHT, Lane.HEAVY):
            tasks: Any = activities_of(*JOBS.lanes[0].activities(None, opened))  # type: ignore[arg-type]
            await stack.enter_async_context(run_worker(lane.value, [], tasks))
        yield JobInstallation(client, blobs, opened, database, waits)
