"""Messages of a Service Bus queue become jobs."""

import asyncio
import json

import pytest
from azure.servicebus import ServiceBusMessage
from azure.servicebus.aio import ServiceBusClient

from emulators.service_bus import QueueSettings as EmulatedQueue
from emulators.service_bus import ServiceBusEmulator
from tests.support.jobs.gateway import JobStack, ended, job_types
from workers.jobs.factory import job_intake
from workers.jobs.settings import JobQueueSettings
from workers.shared.bridges.service_bus import ServiceBusBridge

pytestmark = pytest.mark.asyncio(loop_scope="session")

SECRET = "planted-secret-of-a-client"


def body(job_id: str, stage: int = 1, **parameters: object) -> str:
    return json.dumps(
        {"job_id": job_id, "job_type": "hello_world", "stage": stage, "parameters": parameters}
    )


async def test_messages_of_the_queue_start_jobs_or_are_dead_lettered(jobs: JobStack) -> None:
    given = {"webhook_url": "https://client.example.com", "webhook_secret": SECRET}
    messages = [
        body("foreign-1", n=1, message="queue"),
        body("foreign-1", n=1, message="queue"),
        body("foreign-1", n=2, message="queue"),
        body("foreign-2", stage=3, n=1, **given),
    ]
    async with ServiceBusEmulator([EmulatedQueue("jobs", 5, 10)]) as emulator:
        client = ServiceBusClient.from_connection_string(emulator.connection_string)
        async with client, client.get_queue_sender("jobs") as sender:
            await sender.send_messages([ServiceBusMessage(each) for each in messages])
        settings = JobQueueSettings(
            connection_string=emulator.connection_string, max_messages=1, max_wait_seconds=1
        )
        intake = job_intake(jobs.environment, jobs.client, jobs.resources, "jobs", job_types())
        assert await intake.ready()
        totals = await ServiceBusBridge(settings, intake.accept).run(asyncio.Event(), drain=True)
    async with jobs.browser() as olga:
        document = await ended(olga, "foreign-1")
    rejected = await jobs.resources.rejected.list()
    assert totals.received == 4
    assert (document["alias"], document["parameters"]["n"]) == ("foreign-1", 1)
    reasons = {each.reason for each in rejected if each.queue == "jobs"}
    assert reasons == {"KeyReused", "StageNotSupported"}
    assert not any(SECRET in each.body + each.description for each in rejected)
