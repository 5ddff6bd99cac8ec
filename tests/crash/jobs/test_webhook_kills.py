"""A worker is killed in a fan-out, and again while a receiver of its webhook does not answer."""

import asyncio
import json
from collections import Counter
from pathlib import Path

import pytest

from activities.jobs.store import SqlJobStore
from activities.jobs.webhook_store import SqlWebhookLog
from tests.crash.harness import running_system, until
from tests.support.jobs.receivers import receiver, silent, with_status
from workers.jobs.factory import TIERS, job_service
from workers.shared.services.identity import OPERATOR, Identity
from workflows.jobs.records import JobStatus
from workflows.jobs.runs import JobRequest, job_workflow_id

pytestmark = pytest.mark.chaos(alone=True)

GREETINGS = 400
WITHIN = 300
"""Seconds: a delivery whose worker was killed is noticed half a minute after its timeout."""
WHO = Identity("operator", (), frozenset({OPERATOR}))
LOCAL = {"DOCFLOW_WEBHOOK_LOCAL": "true"}


async def test_a_message_that_a_killed_worker_was_sending_arrives_as_it_was(
    tmp_path: Path,
) -> None:
    for tier in TIERS:
        (tmp_path / "blobs" / tier).mkdir(parents=True)
    answers = [silent]

    async def answer(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await (answers.pop() if answers else with_status("200 OK"))(reader, writer)

    command = ("worker", "jobs")
    async with (
        receiver(answer) as site,
        running_system(tmp_path, command, settings=LOCAL) as system,
    ):
        store = SqlJobStore(system.resources.database)
        service = job_service({**system.settings, **LOCAL}, await system.client(), system.resources)
        parameters = {
            "n": GREETINGS,
            "message": "kills",
            "webhook_url": f"http://127.0.0.1:{site.port}/done",
            "webhook_timeout_seconds": 5,
        }
        request = JobRequest(job_type="hello_world", parameters=parameters)
        job = (await service.submit(WHO, request)).job_id
        (worker,) = system.docflow

        async def greets() -> bool:
            record = await store.job(job)
            return record is not None and record.stage >= 1

        await until(greets, "the job is in its fan-out", WITHIN)
        await worker.kill()
        await worker.start()

        async def asked() -> bool:
            return len(site.requests) == 1

        await until(asked, "the receiver has the message and does not answer", WITHIN)
        await worker.kill()
        await worker.start()

        log = SqlWebhookLog(system.resources.database)

        async def delivered() -> bool:
            return any(each.delivered for each in await log.deliveries(job))

        await until(delivered, "the message is delivered", WITHIN)
        client = await system.client()
        end = await client.get_workflow_handle(f"job-webhook/{job}/1/0").result()
        record = await store.job(job)
        replies = (await store.tasks(job, stage=2, limit=2 * GREETINGS)).tasks
        await client.get_workflow_handle(job_workflow_id(job)).result()
    assert record is not None and record.status is JobStatus.COMPLETED
    assert Counter(each.task_index for each in replies) == {
        str(number): 1 for number in range(GREETINGS)
    }
    assert end["delivered"] and len(site.requests) == 2
    (first_head, first), (second_head, second) = site.requests
    assert first == second and json.loads(second)["status"] == "completed"
    ids = [head.split("webhook-id: ")[1].split()[0] for head in (first_head, second_head)]
    assert ids[0] == ids[1]
