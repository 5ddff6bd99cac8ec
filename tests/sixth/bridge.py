"""The bridge of parcels: files of a folder -> runs."""

import asyncio
from pathlib import Path

from tests.sixth.contracts import ParcelInput
from tests.sixth.register import NAME
from tests.sixth.workflows import ParcelDelivery
from workers.shared.bridges.consumer import BridgeTotals
from workers.shared.register import Context
from workflows.shared import attributes


async def receive(
    context: Context, settings: Path, stop: asyncio.Event, drain: bool
) -> BridgeTotals:
    """Start a run for each file of the folder, until the bridge is stopped."""
    totals = BridgeTotals()
    while True:
        for file in sorted(settings.iterdir()):
            await context.client.start_workflow(
                ParcelDelivery.run,
                ParcelInput(parcel=file.name),
                id=f"parcel/{file.name}",
                task_queue=NAME,
                search_attributes=attributes.at_start(NAME, "parcel", "P1"),
            )
            file.unlink()
            totals = totals.plus(received=1, settled=1)
        if drain or stop.is_set():
            return totals
        await asyncio.sleep(0.05)
