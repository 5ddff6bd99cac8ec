"""The bridge against the bare client of Azure Service Bus."""

import asyncio
import time

from azure.servicebus import ServiceBusReceiveMode
from azure.servicebus.aio import ServiceBusClient

from benchmarks.imports import workload
from benchmarks.report import Table, at_least, middle, spread
from benchmarks.stack import EMPTY_QUEUE, Servers
from workers.imports.intake import ImportIntake
from workers.imports.settings import QueueSettings
from workers.shared.bridges.consumer import Accept
from workers.shared.bridges.service_bus import ServiceBusBridge
from workers.shared.connect import connect
from workers.shared.resources import open_resources
from workers.shared.services.bodies import Settle, Verdict

SHARE = 0.5
STARTS = 500
"""Messages of a round that starts real runs, which take Temporal far longer to accept."""


async def compare(servers: Servers, count: int, rounds: int) -> Table:
    """Receive and settle what lies in a queue, round by round."""
    environment = {**servers.environment, "AZURE_SERVICE_BUS_QUEUE_NAME": EMPTY_QUEUE}
    settings = QueueSettings.read(environment)
    bare: list[float] = []
    bridge: list[float] = []
    intake: list[float] = []
    client = await connect(servers.temporal)
    async with open_resources(environment) as resources:
        imports = ImportIntake(client, resources.rejected, queue=EMPTY_QUEUE)
        for number in range(rounds):
            bodies = [_body(f"b{number}-{index:05}") for index in range(count)]
            await workload.send(servers.queue, EMPTY_QUEUE, bodies)
            bare.append(await _bare(settings, count))
            await workload.send(servers.queue, EMPTY_QUEUE, bodies)
            bridge.append(await _bridge(settings, _settle_at_once, count))
            await workload.send(servers.queue, EMPTY_QUEUE, bodies[:STARTS])
            intake.append(await _bridge(settings, imports.accept, STARTS))
    size = settings.max_messages
    table = Table(f"{count:,} messages, batches of {size}", ("how", "messages/s settled"))
    table.add("the bare client, receiving and completing", spread(bare))
    table.add("the bridge, accepting at once", spread(bridge))
    table.add("the bridge, starting runs on Temporal", spread(intake))
    share = middle([ours / theirs for ours, theirs in zip(bridge, bare, strict=True)])
    table.notes.append(f"the bridge at {at_least(share, SHARE, ' x the bare client')}")
    return table


def _body(task: str) -> bytes:
    return workload.message("equipment", task, blob_name=f"{task}.csv")


async def _bare(settings: QueueSettings, count: int) -> float:
    """Messages per second."""
    async with (
        ServiceBusClient.from_connection_string(settings.connection_string) as client,
        client.get_queue_receiver(
            settings.queue_name, receive_mode=ServiceBusReceiveMode.PEEK_LOCK
        ) as receiver,
    ):
        done, began = 0, time.perf_counter()
        while done < count:
            messages = await receiver.receive_messages(settings.max_messages, max_wait_time=1)
            await asyncio.gather(*map(receiver.complete_message, messages))
            done += len(messages)
        return count / (time.perf_counter() - began)


async def _bridge(settings: QueueSettings, accept: Accept, count: int) -> float:
    """Messages per second, from the first one accepted to the last."""
    moments: list[float] = []
    stop = asyncio.Event()

    async def counted(raw: bytes, delivery_count: int, message_id: str | None) -> Verdict:
        if not moments:
            moments.append(time.perf_counter())
        verdict = await accept(raw, delivery_count, message_id)
        moments.append(time.perf_counter())
        if len(moments) > count:
            stop.set()
        return verdict

    totals = await ServiceBusBridge(settings, counted).run(stop)
    if totals.settled != count:
        raise RuntimeError(f"the bridge settled {totals.settled} of {count} messages")
    return count / (moments[-1] - moments[0])


async def _settle_at_once(raw: bytes, delivery_count: int, message_id: str | None) -> Verdict:
    return Settle("")
