"""The bridge of the queue that asks for jobs: messages -> runs."""

import asyncio

from workers.bridges.service_bus import ServiceBusBridge
from workers.bridges.totals import BridgeTotals
from workers.pipelines.base import Context
from workers.services.jobs.factory import job_intake
from workers.settings.jobs import JobQueueSettings


async def receive(
    context: Context, settings: JobQueueSettings, stop: asyncio.Event, drain: bool
) -> BridgeTotals:
    """Receive messages that ask for jobs and start them; the entry point of the register."""
    intake = job_intake(context.environment, context.client, context.resources, settings.queue_name)
    bridge = ServiceBusBridge(settings, intake.accept, ready=intake.ready, health=context.health)
    return await bridge.run(stop, drain=drain)
