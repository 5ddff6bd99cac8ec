"""The bridge of the queue of import messages: messages -> runs."""

import asyncio

from workers.bridges.service_bus import ServiceBusBridge
from workers.bridges.totals import BridgeTotals
from workers.pipelines.base import Context
from workers.services.imports.intake import ImportIntake
from workers.settings.imports import BridgeSettings


async def receive(
    context: Context, settings: BridgeSettings, stop: asyncio.Event, drain: bool
) -> BridgeTotals:
    """Receive import messages and start their runs; the entry point of the register."""
    intake = ImportIntake(
        context.client,
        context.resources.rejected,
        queue=settings.queue.queue_name,
        park_for_days=settings.runs.park_for_days,
        prefixes=settings.runs.blob_prefixes,
    )
    bridge = ServiceBusBridge(
        settings.queue, intake.accept, ready=intake.ready, health=context.health
    )
    return await bridge.run(stop, drain=drain)
