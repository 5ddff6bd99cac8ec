"""The Service Bus bridge against the emulator: nothing is lost, nothing done twice."""

import asyncio
import json
import time
from collections import Counter
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

import pytest
from azure.servicebus import ServiceBusMessage, ServiceBusReceivedMessage, ServiceBusSubQueue
from azure.servicebus.amqp import AmqpAnnotatedMessage, AmqpMessageProperties
from temporalio.client import Client

from emulators.service_bus import QueueSettings as EmulatedQueue
from emulators.service_bus import ServiceBusEmulator
from emulators.tests.clients import quick_client
from stack.children import free_port
from stack.temporal import temporal_server
from tests.support.bridges import running
from tests.support.memory.rejected import MemoryRejectedMessages
from workers.imports.intake import ImportIntake
from workers.imports.settings import QueueSettings
from workers.shared.bridges.consumer import Accept, BridgeError, BridgeTotals, Retry
from workers.shared.bridges.service_bus import ServiceBusBridge
from workers.shared.plugin import docflow_plugin
from workers.shared.services.bodies import Abandon, DeadLetter, Settle, Verdict

QUEUE = "import-queue"
QUICK = Retry(first_pause=0.05, longest_pause=0.2, hold=1.0)


@pytest.fixture
async def emulator() -> AsyncIterator[ServiceBusEmulator]:
    async with ServiceBusEmulator([EmulatedQueue(QUEUE, 5, 10)]) as emulator:
        yield emulator


def queue_of(emulator: ServiceBusEmulator, *, at_once: int = 10, wait: int = 1) -> QueueSettings:
    return QueueSettings(
        connection_string=emulator.connection_string,
        queue_name=QUEUE,
        max_messages=at_once,
        max_wait_seconds=wait,
    )


async def send(emulator: ServiceBusEmulator, messages: Sequence[ServiceBusMessage]) -> None:
    client = quick_client(emulator.connection_string)
    async with client, client.get_queue_sender(QUEUE) as sender:
        for first in range(0, len(messages), 100):
            await sender.send_messages(list(messages[first : first + 100]))


def numbered(count: int) -> list[ServiceBusMessage]:
    return [ServiceBusMessage(b"%d" % number, message_id=f"m{number}") for number in range(count)]


async def dead_letters(emulator: ServiceBusEmulator) -> list[ServiceBusReceivedMessage]:
    client = quick_client(emulator.connection_string)
    receiver = client.get_queue_receiver(QUEUE, sub_queue=ServiceBusSubQueue.DEAD_LETTER)
    async with client, receiver:
        return await receiver.peek_messages(max_message_count=100)


async def until(condition: Callable[[], bool], within: float = 20) -> None:
    async with asyncio.timeout(within):
        while not condition():
            await asyncio.sleep(0.01)


def is_empty(emulator: ServiceBusEmulator) -> bool:
    counts = emulator.counts(QUEUE)
    return counts.active == counts.locked == 0


def bridge_of(
    emulator: ServiceBusEmulator,
    accept: Accept,
    *,
    ready: Callable[[], Awaitable[bool]] | None = None,
) -> ServiceBusBridge:
    return ServiceBusBridge(queue_of(emulator, wait=30), accept, ready=ready, retry=QUICK)


async def settle(raw: bytes, _deliveries: int, _message_id: str | None) -> Verdict:
    return Settle(raw.decode())


async def test_every_verdict_is_carried_out(emulator: ServiceBusEmulator) -> None:
    seen: list[tuple[bytes, int, str | None]] = []

    async def accept(raw: bytes, deliveries: int, message_id: str | None) -> Verdict:
        seen.append((raw, deliveries, message_id))
        if int(raw) % 3:
            return Settle("import/P1/T1")
        return DeadLetter("InvalidMessage", "blob_name: Field required")

    await send(emulator, numbered(100))
    totals = await ServiceBusBridge(queue_of(emulator), accept).run(asyncio.Event(), drain=True)

    assert totals == BridgeTotals(received=100, settled=66, dead_lettered=34, abandoned=0)
    assert sorted(seen) == sorted((b"%d" % n, 0, f"m{n}") for n in range(100))
    assert is_empty(emulator)
    dead = await dead_letters(emulator)
    assert {message.message_id for message in dead} == {f"m{n}" for n in range(0, 100, 3)}
    assert {message.dead_letter_reason for message in dead} == {"InvalidMessage"}
    assert {message.dead_letter_error_description for message in dead} == {
        "blob_name: Field required"
    }


async def test_a_batch_starts_together_within_its_limit(emulator: ServiceBusEmulator) -> None:
    at_once = most = 0

    async def accept(raw: bytes, deliveries: int, message_id: str | None) -> Verdict:
        nonlocal at_once, most
        at_once += 1
        most = max(most, at_once)
        await asyncio.sleep(0.05)
        at_once -= 1
        return Settle("x")

    await send(emulator, numbered(60))
    bridge = ServiceBusBridge(queue_of(emulator, at_once=8), accept)
    await bridge.run(asyncio.Event(), drain=True)
    assert most == 8


async def test_every_kind_of_body_reaches_the_intake(emulator: ServiceBusEmulator) -> None:
    bodies: Mapping[str, tuple[Mapping[str, Any], bytes | None]] = {
        "empty": ({"data_body": [b""]}, b""),
        "sections": ({"data_body": [b"ab", b"cd"]}, b"abcd"),
        "text": ({"value_body": "text"}, b"text"),
        "nothing": ({"value_body": None}, b""),
        "map": ({"value_body": {"a": 1}}, None),
        "sequence": ({"sequence_body": [[1, 2]]}, None),
    }
    seen: list[tuple[str | None, bytes]] = []

    async def accept(body: bytes, deliveries: int, message_id: str | None) -> Verdict:
        seen.append((message_id, body))
        return Settle("x")

    client = quick_client(emulator.connection_string)
    async with client, client.get_queue_sender(QUEUE) as sender:
        for name, (body, _) in bodies.items():
            await sender.send_messages(
                AmqpAnnotatedMessage(**body, properties=AmqpMessageProperties(message_id=name))
            )
        await sender.send_messages(ServiceBusMessage(b"", message_id="plain"))
    await ServiceBusBridge(queue_of(emulator), accept).run(asyncio.Event(), drain=True)
    assert sorted(str(name) for name, _ in seen) == sorted((*bodies, "plain"))
    expected = {**{name: raw for name, (_, raw) in bodies.items()}, "plain": b""}
    assert [(name, raw) for name, raw in seen if expected[str(name)] not in (None, raw)] == []


async def test_a_stop_ends_an_idle_wait_at_once(emulator: ServiceBusEmulator) -> None:
    stop = asyncio.Event()
    run = asyncio.create_task(ServiceBusBridge(queue_of(emulator, wait=30), settle).run(stop))
    await send(emulator, numbered(1))
    await until(lambda: is_empty(emulator))
    began = time.monotonic()
    stop.set()
    assert (await run).settled == 1
    assert time.monotonic() - began < 15


async def test_a_stop_mid_batch_finishes_starts_and_loses_nothing(
    emulator: ServiceBusEmulator,
) -> None:
    stop, started, never = asyncio.Event(), asyncio.Event(), asyncio.Event()
    taken: set[str] = set()

    async def accept(raw: bytes, deliveries: int, message_id: str | None) -> Verdict:
        number = int(raw)
        if number < 7:
            taken.add(raw.decode())
            return Settle("x")
        started.set()
        await (stop.wait() if number % 2 else never.wait())
        await asyncio.sleep(0.5)
        taken.add(raw.decode())
        return Settle("x")

    await send(emulator, numbered(40))
    bridge = ServiceBusBridge(queue_of(emulator, wait=30), accept, retry=QUICK)
    run = asyncio.create_task(bridge.run(stop))
    await started.wait()
    began = time.monotonic()
    stop.set()
    totals = await run
    assert time.monotonic() - began < 10
    assert 7 < totals.settled == len(taken) < totals.received

    await until(lambda: emulator.counts(QUEUE).locked == 0, within=10)
    assert emulator.counts(QUEUE).active == 40 - totals.settled
    back: set[str] = set()

    async def again(raw: bytes, deliveries: int, message_id: str | None) -> Verdict:
        back.add(raw.decode())
        return Settle("x")

    await ServiceBusBridge(queue_of(emulator), again).run(asyncio.Event(), drain=True)
    assert taken | back == {str(number) for number in range(40)}
    assert not taken & back


@pytest.mark.parametrize("fault", ["links", "connections"])
async def test_lost_links_and_connections_are_survived(
    emulator: ServiceBusEmulator, fault: str
) -> None:
    seen: Counter[bytes] = Counter()

    async def accept(raw: bytes, deliveries: int, message_id: str | None) -> Verdict:
        seen[raw] += 1
        await asyncio.sleep(0.01)
        return Settle("x")

    async with running(bridge_of(emulator, accept)) as stopped:
        for _ in range(3):
            await send(emulator, numbered(50))
            await until(lambda: emulator.counts(QUEUE).active < 40)
            await (emulator.drop_links(QUEUE) if fault == "links" else emulator.drop_connections())
        await until(lambda: is_empty(emulator), within=40)
        await stopped()
    assert set(seen) == {b"%d" % number for number in range(50)}
    assert emulator.counts(QUEUE).dead_letter == 0


async def test_an_idle_link_that_was_closed_is_opened_again(emulator: ServiceBusEmulator) -> None:
    async with running(bridge_of(emulator, settle)):
        await send(emulator, numbered(1))
        await until(lambda: is_empty(emulator))
        await emulator.drop_links(QUEUE)
        await send(emulator, numbered(5))
        await until(lambda: is_empty(emulator))


async def test_a_short_outage_spends_no_delivery(emulator: ServiceBusEmulator) -> None:
    asked: Counter[bytes] = Counter()
    deliveries: set[int] = set()

    async def accept(raw: bytes, earlier: int, message_id: str | None) -> Verdict:
        asked[raw] += 1
        deliveries.add(earlier)
        return Settle("x") if asked[raw] > 3 else Abandon("away")

    await send(emulator, numbered(20))
    bridge = ServiceBusBridge(queue_of(emulator), accept, retry=QUICK)
    totals = await bridge.run(asyncio.Event(), drain=True)
    assert totals == BridgeTotals(received=20, settled=20)
    assert deliveries == {0}


async def test_a_long_outage_spends_one_delivery(emulator: ServiceBusEmulator) -> None:
    away, probes = True, 0
    deliveries: Counter[int] = Counter()

    async def accept(raw: bytes, earlier: int, message_id: str | None) -> Verdict:
        if away:
            return Abandon("away")
        deliveries[earlier] += 1
        return Settle("x")

    async def ready() -> bool:
        nonlocal probes
        probes += 1
        return not away

    await send(emulator, numbered(30))
    async with running(bridge_of(emulator, accept, ready=ready)) as stopped:
        await until(lambda: probes >= 20)
        counts = emulator.counts(QUEUE)
        assert (counts.active, counts.locked, counts.dead_letter) == (30, 0, 0)
        away = False
        await until(lambda: is_empty(emulator))
        totals = await stopped()
    assert totals.settled == 30
    assert set(deliveries) <= {0, 1}
    assert totals.abandoned == deliveries[1] > 0


async def test_a_drain_gives_messages_back_and_ends_without_temporal(
    emulator: ServiceBusEmulator,
) -> None:
    async def accept(raw: bytes, deliveries: int, message_id: str | None) -> Verdict:
        return Abandon("away")

    await send(emulator, numbered(5))
    bridge = ServiceBusBridge(queue_of(emulator), accept, retry=QUICK)
    totals = await bridge.run(asyncio.Event(), drain=True)
    assert totals.abandoned == totals.received > 0
    assert emulator.counts(QUEUE).active == 5


async def test_an_unknown_queue_is_named(emulator: ServiceBusEmulator) -> None:
    settings = QueueSettings(
        connection_string=emulator.connection_string,
        queue_name="no-such-queue",
        max_wait_seconds=1,
    )
    with pytest.raises(BridgeError, match="no-such-queue"):
        await ServiceBusBridge(settings, settle).run(asyncio.Event(), drain=True)


def import_messages(count: int) -> list[ServiceBusMessage]:
    return [
        ServiceBusMessage(
            json.dumps(
                {
                    "document_type": "equipment",
                    "task_id": f"T{number}",
                    "project_id": "P1",
                    "blob_name": "equipment.csv",
                }
            ),
            message_id=f"m{number}",
        )
        for number in range(count)
    ]


async def test_an_outage_of_temporal_loses_and_doubles_nothing(
    emulator: ServiceBusEmulator, tmp_path: Path
) -> None:
    port = free_port()
    async with temporal_server(tmp_path, port=port, ui=False) as server:
        client = await Client.connect(server.address, plugins=[docflow_plugin()])
        intake = ImportIntake(client, MemoryRejectedMessages(), queue=QUEUE)
        stop, asked = asyncio.Event(), 0

        async def ready() -> bool:
            nonlocal asked
            asked += 1
            return await intake.ready()

        bridge = ServiceBusBridge(
            queue_of(emulator), intake.accept, ready=ready, retry=Retry(0.1, 0.5, 2.0)
        )
        await send(emulator, import_messages(10))
        run = asyncio.create_task(bridge.run(stop))
        await until(lambda: is_empty(emulator))
    await send(emulator, import_messages(40))
    # Messages were given back, and it asks for Temporal before it receives again.
    await until(lambda: asked >= 3, within=60)
    assert emulator.counts(QUEUE).dead_letter == 0
    assert not run.done()
    async with temporal_server(tmp_path, port=port, ui=False):
        await until(lambda: is_empty(emulator), within=40)
        stop.set()
        totals = await run
        assert totals.settled == 50
        assert totals.dead_lettered == 0
        ids = {f"import/P1/T{number}" for number in range(40)}
        assert ids == {execution.id async for execution in client.list_workflows()}
