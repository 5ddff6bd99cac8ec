"""Partitions of an event hub are shared without loss; checkpoints pass nothing undecided."""

import asyncio
import uuid
from collections import Counter
from collections.abc import AsyncGenerator

import pytest
import pytest_asyncio
from azure.eventhub import EventData, parse_connection_string
from azure.eventhub.aio import EventHubConsumerClient, EventHubProducerClient

from adapters.azure.blobs import AzureBlobs
from emulators.service_bus import HubSettings, ServiceBusEmulator
from tests.support.forgotten_connections import collect_forgotten_connections
from tests.support.waiting import eventually
from workers.shared.bridges.consumer import BridgeTotals, Consumer, Limits
from workers.shared.bridges.event_hub import Checkpoints, EventHubTransport, HubMessage
from workers.shared.bridges.transport import QueueMissing, TransportError
from workers.shared.services.bodies import DeadLetter, Settle, Verdict

PARTITIONS = 4
EVENTS = 60


class Hub:
    """A hub of several partitions, and its checkpoints."""

    def __init__(self, emulator: ServiceBusEmulator, account: str, name: str) -> None:
        self.emulator = emulator
        self.container = f"checkpoints-{uuid.uuid4().hex}"
        self._account = account
        self._name = name

    def checkpoints(self) -> Checkpoints:
        return Checkpoints.from_connection_string(self._account, self.container)

    def transport(self, name: str | None = None) -> EventHubTransport:
        store = self.checkpoints()
        client = EventHubConsumerClient.from_connection_string(
            self.emulator.connection_string,
            "$Default",
            eventhub_name=name or self._name,
            checkpoint_store=store,
            load_balancing_interval=0.3,
            partition_ownership_expiration_interval=3,
            retry_total=0,
        )
        return EventHubTransport(client, store, checkpoint_seconds=0.1)

    async def send(self, bodies: list[str]) -> None:
        client = EventHubProducerClient.from_connection_string(
            self.emulator.connection_string, eventhub_name=self._name
        )
        async with client:
            for number, body in enumerate(bodies):
                partition = str(number % PARTITIONS)
                await client.send_batch([EventData(body)], partition_id=partition)


@pytest_asyncio.fixture
async def hub(azure_account: str) -> AsyncGenerator[Hub]:
    """An empty hub of four partitions."""
    async with ServiceBusEmulator((), hubs=[HubSettings("files", PARTITIONS)]) as emulator:
        hub = Hub(emulator, azure_account, "files")
        await AzureBlobs(azure_account, hub.container).create_container()
        yield hub
        collect_forgotten_connections()


async def test_partitions_are_shared_and_taken_over_without_loss(hub: Hub) -> None:
    seen: Counter[bytes] = Counter()
    by: dict[str, set[str]] = {"first": set(), "second": set()}
    stops = {name: asyncio.Event() for name in by}

    async def work(name: str) -> None:
        async def accept(raw: bytes, _earlier: int, message_id: str | None) -> Verdict:
            seen[raw] += 1
            by[name].add((message_id or "").split(":")[0])
            return Settle("x")

        consumer = Consumer(hub.transport(), accept, Limits(wait=0.3, quiet=1))
        await consumer.run(stops[name])

    async def all_seen(most: int) -> bool:
        return len(seen) == most

    first = asyncio.create_task(work("first"))
    await hub.send([f"a{number}" for number in range(EVENTS)])
    await eventually(lambda: all_seen(EVENTS))
    assert by["first"] == {str(number) for number in range(PARTITIONS)}
    second = asyncio.create_task(work("second"))

    async def shared() -> bool:
        sent = sum(hub.emulator.events("files"))
        await hub.send([f"b{sent + number}" for number in range(PARTITIONS)])
        return len(by["second"]) >= 2

    await eventually(shared)
    stops["first"].set()
    await first
    sent = sum(hub.emulator.events("files"))
    await eventually(lambda: all_seen(sent))
    stops["second"].set()
    await second
    assert len(seen) == sent


async def test_a_checkpoint_never_passes_an_event_that_is_undecided(hub: Hub) -> None:
    await hub.send([str(number) for number in range(3 * PARTITIONS)])
    transport = hub.transport()
    held = await received(transport, 3 * PARTITIONS)
    # All but the first of each partition.
    for message in held:
        if not message.message_id.endswith(":0"):
            await transport.complete(message)
    await transport.close()
    again = hub.transport()
    assert len(await received(again, 3 * PARTITIONS)) == 3 * PARTITIONS
    await again.close()


async def test_a_drain_waits_for_the_partitions_of_a_consumer_that_died(hub: Hub) -> None:
    namespace = parse_connection_string(hub.emulator.connection_string).fully_qualified_namespace
    owned = {
        "fully_qualified_namespace": namespace,
        "eventhub_name": "files",
        "consumer_group": "$Default",
        "owner_id": "died",
    }
    async with hub.checkpoints() as store:
        await store.claim_ownership([{**owned, "partition_id": str(n)} for n in range(PARTITIONS)])
    await hub.send([str(number) for number in range(PARTITIONS)])

    async def accept(_raw: bytes, _earlier: int, _message_id: str | None) -> Verdict:
        return Settle("x")

    # Shorter than the three seconds after which another consumer may take them over.
    consumer = Consumer(hub.transport(), accept, Limits(wait=0.3, quiet=1))
    totals = await consumer.run(asyncio.Event(), drain=True)
    assert totals == BridgeTotals(received=PARTITIONS, settled=PARTITIONS)


async def test_a_dead_letter_lets_the_checkpoint_pass(hub: Hub) -> None:
    await hub.send([str(number) for number in range(PARTITIONS)])
    transport = hub.transport()
    for message in await received(transport, PARTITIONS):
        await transport.dead_letter(message, DeadLetter("InvalidMessage", "no event"))
    await transport.close()
    again = hub.transport()
    assert await again.receive(10, 3.0) == []
    await again.close()


async def test_a_broken_connection_delivers_what_is_undecided_again(hub: Hub) -> None:
    await hub.send(["1"])
    transport = hub.transport()
    (first,) = await received(transport, 1)
    await hub.emulator.drop_connections(abruptly=True)
    (second,) = await received(transport, 1)
    assert (second.body, second.message_id) == (first.body, first.message_id)
    await transport.complete(second)
    await transport.close()


async def test_a_hub_that_is_not_there_is_named(hub: Hub) -> None:
    transport = hub.transport("elsewhere")
    with pytest.raises(QueueMissing, match="there is no event hub elsewhere"):
        await transport.receive(1, 0.1)
    await transport.close()


async def received(transport: EventHubTransport, most: int) -> list[HubMessage]:
    """Receive until there are so many, over errors of a connection that was cut."""
    found: list[HubMessage] = []

    async def enough() -> bool:
        try:
            found.extend(await transport.receive(most, 0.5))
        except TransportError:
            return False
        return len(found) >= most

    await eventually(enough)
    return found
