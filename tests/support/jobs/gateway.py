"""A gateway with jobs: workers of every lane, operators with tokens."""

from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import AsyncExitStack
from dataclasses import dataclass
from typing import Any

import httpx
from cryptography.fernet import Fernet
from fastapi import FastAPI
from temporalio.client import Client

from activities.jobs.api import (
    InputNeeded,
    JobType,
    JobTypes,
    NotReady,
    StageContext,
    TaskContext,
    TaskDone,
    job_type,
    task,
)
from activities.jobs.catalogue import Catalogue
from activities.jobs.types.hello_world import HelloWorld
from adapters.database.runs import SqlRuns
from tests.support.gateway import TOKENS, token
from tests.support.waiting import eventually
from workers.jobs.factory import job_service
from workers.jobs.pages import part_of
from workers.jobs.register import JOBS, NAME
from workers.jobs.resources import job_resources
from workers.jobs.settings import JobSettings, WebhookSettings
from workers.shared.gateway.app import create_app
from workers.shared.gateway.http.auth import Tokens
from workers.shared.resources import Resources
from workers.shared.services.inbox import Inbox
from workers.shared.services.readiness import Readiness
from workers.shared.settings.common import BlobSettings
from workers.shared.settings.gateway import GatewaySettings
from workers.shared.worker_factory import build_lanes, build_worker
from workflows.jobs.definitions import OnFailure, StageDefinition, WorkflowDefinition
from workflows.jobs.records import JsonObject
from workflows.jobs.runs import PlannedTask
from workflows.shared.contracts import Contract
from workflows.shared.errors import RuleViolation

FOOTPRINT = {
    "type": "Polygon",
    "coordinates": [[[10, 50], [11, 50], [11, 51], [10, 51], [10, 50]]],
}


class SurveyParameters(Contract):
    """What is surveyed."""

    files: str | tuple[str, ...] = ()
    bad: int = 0
    """Tasks that fail."""
    ask: bool = False
    """The first stage asks when it was done."""
    taken: str | None = None
    """When it was done."""
    broken: bool = False
    """The publication fails at the first attempt."""
    late: bool = False
    """The first measurement is not ready for a long time."""


@job_type(
    WorkflowDefinition(
        job_type="survey",
        description="Makes a file, a preview and a footprint; some of its tasks fail.",
        total_stages=2,
        stages=(
            StageDefinition(
                stage_number=1,
                stage_name="measure",
                task_type="measure",
                max_parallel_tasks=10,
                on_failure=OnFailure.CONTINUE,
            ),
            StageDefinition(stage_number=2, stage_name="publish", task_type="publish"),
        ),
    )
)
class Survey(JobType[SurveyParameters]):
    """Four measurements, one publication."""

    parameters = SurveyParameters
    file_parameter = "files"

    def inputs(self, parameters: SurveyParameters) -> Sequence[str]:
        files = parameters.files
        return (files,) if isinstance(files, str) else files

    async def plan(
        self, stage: StageDefinition, context: StageContext[SurveyParameters]
    ) -> AsyncIterator[PlannedTask]:
        for number in range(4 if stage.stage_number == 1 else 1):
            yield PlannedTask(index=f"tile-x{number}", parameters={"number": number})

    @task("measure")
    async def measure(self, context: TaskContext[SurveyParameters]) -> TaskDone:
        given = context.parameters
        if given.ask and given.taken is None:
            raise InputNeeded("taken", "when was <it> surveyed?")
        if given.late and context.task["number"] == 0:
            raise NotReady("the archive fetches it", 3_600)
        if context.task["number"] < context.parameters.bad:
            raise RuleViolation(f"tile <{context.index}> holds no data")
        return TaskDone(result={"metres": 3})

    @task("publish")
    async def publish(self, context: TaskContext[SurveyParameters]) -> TaskDone:
        if context.parameters.broken and context.attempt == 1:
            raise RuleViolation("the printer is broken")
        for name, content in (("preview.png", PNG), ("heights.txt", b"1 2 3")):
            path = context.folder / name
            path.write_bytes(content)
            await context.resources.silver.upload(path, f"{context.job_id}/{name}")
        return TaskDone()

    async def result(self, context: StageContext[SurveyParameters]) -> JsonObject:
        return {
            "outputs": {
                "preview": f"silver://{context.job_id}/preview.png",
                "footprint": FOOTPRINT,
                "notes": ["heights in <feet> were left out"],
                "files": [
                    {
                        "uri": f"silver://{context.job_id}/heights.txt",
                        "title": "Heights",
                        "media_type": "text/plain",
                        "size": 5,
                    }
                ],
            }
        }


def job_types() -> JobTypes:
    """Those that the workers have."""
    return JobTypes(HelloWorld, Survey)


PNG = bytes.fromhex(
    "89504e470d0a1a0a0000000d49484452000000010000000108000000003a7e9b55"
    "0000000a49444154789c63680000008200815ce5da3d0000000049454e44ae426082"
)
"""One grey pixel."""


@dataclass
class JobStack:
    """A gateway, and what it stands on."""

    client: Client
    resources: Resources
    app: FastAPI
    environment: Mapping[str, str]

    def browser(
        self, *roles: str, app: FastAPI | None = None, address: str | None = None
    ) -> httpx.AsyncClient:
        """A client of an operator, or of who has these roles."""
        bearer = token("olga", 1, *(roles or ("operator",)))
        return httpx.AsyncClient(
            transport=None if address else httpx.ASGITransport(app or self.app),
            base_url=address or "http://gateway",
            headers={"authorization": f"Bearer {bearer}"},
            timeout=60,
        )


async def open_job_stack(exits: AsyncExitStack, client: Client, resources: Resources) -> JobStack:
    """A gateway with workers behind it."""
    environment = {
        "DATABASE_URL": str(resources.database.engine.url),
        "DOCFLOW_SCRATCH": str(resources.scratch),
        "DOCFLOW_BLOB_FOLDER": str(resources.scratch.parent / "blobs"),
        "DOCFLOW_WEBHOOK_LOCAL": "true",
        "DOCFLOW_WEBHOOK_KEY": Fernet.generate_key().decode(),
    }
    for tier in ("bronze", "silver", "gold"):
        (resources.scratch.parent / "blobs" / tier).mkdir(parents=True, exist_ok=True)
    types = job_types()
    own = job_resources(
        JobSettings.read(environment),
        BlobSettings.read(environment),
        resources.blobs,
        resources.database,
        resources.scratch,
        types=types,
        webhooks=WebhookSettings.read(environment),
    )
    await exits.enter_async_context(build_worker(client, JOBS, resources, own))
    for lane in build_lanes(client, JOBS, resources, own):
        await exits.enter_async_context(lane)
    service = job_service(environment, client, resources, types)
    app = create_app(
        {NAME: part_of(service, resources.scratch, Catalogue(resources.database))},
        Inbox(client, SqlRuns(resources.database)),
        resources.database,
        Readiness(()),
        Tokens(TOKENS),
        GatewaySettings(tokens=TOKENS, allowed_hosts=("*",), requests_per_minute=0),
    )
    return JobStack(client, resources, app, environment)


async def submit(browser: httpx.AsyncClient, job_type: str, **parameters: Any) -> str:
    """Id of a job that was started."""
    answer = await browser.post("/api/jobs", json={"job_type": job_type, "parameters": parameters})
    assert answer.status_code == 201, answer.text
    return answer.json()["job_id"]


async def ended(browser: httpx.AsyncClient, job: str) -> dict[str, Any]:
    """Wait until a job has ended, and its record says so."""
    document: dict[str, Any] = {}

    async def over() -> bool:
        nonlocal document
        document = (await browser.get(f"/api/jobs/{job}")).json()
        return document.get("status") in ("COMPLETED", "FAILED", "CANCELLED")

    await eventually(over, seconds=120)
    return document
