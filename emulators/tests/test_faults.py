"""The Service Bus emulator under faults, refusals and hostile peers."""

import asyncio
import gc
import random
import socket
import sys
import time
from asyncio.subprocess import Process
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from signal import SIGINT, SIGTERM, Signals

import pytest
import pytest_asyncio
from azure.servicebus import NEXT_AVAILABLE_SESSION, ServiceBusMessage
from azure.servicebus.aio import ServiceBusClient, ServiceBusReceiver
from azure.servicebus.exceptions import ServiceBusAuthenticationError, ServiceBusError

from emulators.service_bus import QueueSettings, ServiceBusEmulator
from emulators.service_bus.codec import Described, Symbol, ULong, encode
from emulators.service_bus.connection import Connection
from emulators.service_bus.node import Directory
from emulators.service_bus.performatives import (
    AMQP_HEADER,
    SASL_FRAME,
    SASL_HEADER,
    Attach,
    Begin,
    Close,
    Detach,
    Disposition,
    Flow,
    Open,
    Performative,
    SaslInit,
    Transfer,
    encode_performative,
    frame,
)
from emulators.tests.clients import EmulatorClients, bodies, open_clients, receive, receive_one

pytestmark = pytest.mark.asyncio(loop_scope="module")

DETACHED = ("detached-complete", "detached-abandon", "detached-defer", "detached-dead_letter")
QUEUES = (*DETACHED, "hostile", "refusing")


@pytest_asyncio.fixture(loop_scope="module", scope="module")
async def clients() -> AsyncIterator[EmulatorClients]:
    async with open_clients(*map(QueueSettings, QUEUES)) as running:
        yield running


@pytest.mark.parametrize(
    ("decision", "left"),
    [
        ("complete", {}),
        ("abandon", {"active": 1}),
        ("defer", {"deferred": 1}),
        ("dead_letter", {"dead_letter": 1}),
    ],
)
async def test_settlement_continues_through_management_after_a_detach(
    clients: EmulatorClients, decision: str, left: dict[str, int]
) -> None:
    queue = f"detached-{decision}"
    await clients.send(queue, "held")
    receiver = clients.receiver(queue)
    message = await receive_one(receiver)
    await clients.emulator.drop_links(queue)
    assert clients.counts(queue) == {"locked": 1}
    await getattr(receiver, f"{decision}_message")(message)
    assert clients.counts(queue) == left


@pytest.mark.filterwarnings(
    # The client forgets to close a socket that was cut.
    "ignore:unclosed:ResourceWarning",
    "ignore::pytest.PytestUnraisableExceptionWarning",
)
async def test_a_client_that_retries_survives_faults() -> None:
    await asyncio.gather(*map(survive, ("links", "connections", "network")))
    gc.collect()


async def survive(fault: str) -> None:
    async with open_clients(QueueSettings("q")) as clients:
        sender = await clients.send("q", "before")
        receiver = clients.receiver("q")
        await receiver.complete_message(await receive_one(receiver))
        if fault == "links":
            await clients.emulator.drop_links("q")
        else:
            await clients.emulator.drop_connections(abruptly=fault == "network")
        await sender.send_messages(ServiceBusMessage("after"))
        message = await receive_one(receiver)
        assert str(message) == "after"
        await receiver.complete_message(message)
        assert clients.counts("q") == {}


async def refusal(receiver: ServiceBusReceiver) -> ServiceBusError:
    with pytest.raises(ServiceBusError) as error:
        await receiver.receive_messages(1, max_wait_time=5)
    return error.value


async def test_what_is_not_there_or_not_supported_is_refused(clients: EmulatorClients) -> None:
    unknown, topic, session = await asyncio.gather(
        refusal(clients.receiver("missing")),
        refusal(clients.client.get_subscription_receiver("refusing", "sub")),
        refusal(clients.receiver("refusing", session_id=NEXT_AVAILABLE_SESSION)),
    )
    assert isinstance(unknown, ServiceBusAuthenticationError)
    assert "Status code: 404" in str(unknown.inner_exception)
    assert "missing' could not be found" in str(unknown.inner_exception)
    assert isinstance(topic, ServiceBusAuthenticationError)
    assert "does not support message sessions" in str(session)
    with pytest.raises(KeyError, match="missing"):
        clients.emulator.counts("missing")


def body(performative: Performative, payload: bytes = b"") -> bytes:
    return frame(0, encode_performative(performative) + payload)


def log_in(mechanism: str) -> bytes:
    init = SaslInit(mechanism=Symbol(mechanism), initial_response=b"\x00user\x00password")
    return SASL_HEADER + frame(0, encode_performative(init), SASL_FRAME)


def attach(*, role: bool, address: str = "hostile") -> bytes:
    end = Described(ULong(0x28 if role else 0x29), [address])
    link = Attach(name="link", handle=0, role=role, source=end, target=end)
    return body(link)


OPENED = log_in("PLAIN") + AMQP_HEADER + body(Open(container_id="peer"))
BEGUN = OPENED + body(Begin(next_outgoing_id=0, incoming_window=100, outgoing_window=100))
SENDING = BEGUN + attach(role=False)
CLOSE = body(Close())
CLOSED_WELL = frame(0, encode_performative(Close()))


async def converse(emulator: ServiceBusEmulator, data: bytes) -> bytes:
    """Send bytes; what comes back until the emulator hangs up."""
    reader, writer = await asyncio.open_connection("127.0.0.1", emulator.port)
    try:
        writer.write(data)
        return await asyncio.wait_for(reader.read(-1), 60)
    finally:
        writer.close()
        await writer.wait_closed()


@pytest.mark.parametrize(
    ("data", "answer"),
    [
        pytest.param(b"GET / HTTP/1.1\r\n\r\n", SASL_HEADER, id="http"),
        pytest.param(b"\x16\x03\x01\x02\x00\x01\x00\x01", SASL_HEADER, id="tls"),
        pytest.param(AMQP_HEADER, SASL_HEADER, id="no log-in"),
        pytest.param(log_in("GSSAPI"), b"\x50\x01", id="unknown mechanism"),
        pytest.param(
            SASL_HEADER + b"\xff\xff\xff\xff\x02\x01\x00\x00", SASL_HEADER, id="huge log-in"
        ),
        pytest.param(OPENED + CLOSE, CLOSED_WELL, id="polite"),
        pytest.param(
            OPENED + b"\xff\xff\xff\xff\x02\x00\x00\x00",
            b"connection:framing-error",
            id="huge frame",
        ),
        pytest.param(
            OPENED + b"\x00\x00\x00\x08\x03\x00\x00\x00", b"connection:framing-error", id="offset"
        ),
        pytest.param(
            OPENED + b"\x00\x00\x00\x04\x02\x00\x00\x00",
            b"connection:framing-error",
            id="tiny frame",
        ),
        pytest.param(
            OPENED + frame(0, b"", SASL_FRAME), b"connection:framing-error", id="late log-in"
        ),
        pytest.param(OPENED + frame(0, b"\xff\xff"), b"amqp:decode-error", id="no value"),
        pytest.param(
            OPENED + frame(0, encode(Described(ULong(0x11), []))),
            b"amqp:decode-error",
            id="lacking fields",
        ),
        pytest.param(OPENED + attach(role=True), b"amqp:not-allowed", id="no session"),
        pytest.param(OPENED + body(Open(container_id="x")), b"amqp:illegal-state", id="open twice"),
        pytest.param(
            BEGUN + body(Detach(handle=7)), b"session:unattached-handle", id="unknown handle"
        ),
        pytest.param(SENDING + attach(role=False), b"session:handle-in-use", id="handle in use"),
        pytest.param(
            SENDING + body(Transfer(handle=0, more=True)) + CLOSE, b"amqp:invalid-field", id="no id"
        ),
        pytest.param(
            SENDING + body(Transfer(handle=0, delivery_id=0), b"\x40") + CLOSE,
            b"amqp:decode-error",
            id="no message",
        ),
        pytest.param(
            BEGUN + attach(role=True, address="nowhere") + CLOSE, b"amqp:not-found", id="no queue"
        ),
        pytest.param(
            BEGUN + attach(role=True, address="sb://[") + CLOSE, b"amqp:not-found", id="no URL"
        ),
        pytest.param(
            BEGUN + attach(role=True, address="hostile/Subscriptions/s") + CLOSE,
            b"does not support topics",
            id="topic",
        ),
        pytest.param(
            BEGUN
            + body(
                Attach(
                    name="link",
                    handle=0,
                    role=False,
                    target=Described(ULong(0x30), [Symbol("amqp:local-transactions")]),
                )
            )
            + CLOSE,
            b"does not support transactions",
            id="transaction",
        ),
        pytest.param(
            BEGUN
            + attach(role=True)
            + body(
                Flow(
                    handle=0,
                    link_credit=(1 << 32) - 1,
                    incoming_window=(1 << 32) - 1,
                    next_outgoing_id=0,
                    outgoing_window=0,
                    drain=True,
                )
            )
            + body(Disposition(role=True, first=0, last=(1 << 32) - 1, settled=True))
            + CLOSE,
            CLOSED_WELL,
            id="huge numbers",
        ),
    ],
)
async def test_an_invalid_peer_affects_only_its_own_connection(
    clients: EmulatorClients, data: bytes, answer: bytes
) -> None:
    assert answer in await converse(clients.emulator, data)
    assert CLOSED_WELL in await converse(clients.emulator, OPENED + CLOSE)


class Discarding(asyncio.Transport):
    def write(self, data: bytes | bytearray | memoryview) -> None: ...

    def close(self) -> None: ...


async def test_damaged_conversations_never_break_the_emulator() -> None:
    """Whatever `data_received` does not handle itself would end up in the event loop's log."""
    message = encode(Described(ULong(0x75), b"body"))
    request = frame(0, encode_performative(Transfer(handle=0, delivery_id=0)) + message)
    credit = Flow(handle=1, link_credit=9, incoming_window=9, next_outgoing_id=0, outgoing_window=9)
    end = Described(ULong(0x28), ["hostile"])
    consumer = body(Attach(name="consumer", handle=1, role=True, source=end))
    accept = Described(ULong(0x24), [])
    settled = body(Disposition(role=True, first=1 << 30, state=accept))
    conversation = SENDING + request + consumer + body(credit) + settled + CLOSE
    start = len(log_in("PLAIN"))
    randomness = random.Random(1)
    directory = Directory([QueueSettings("hostile")], time.time)
    for _ in range(3000):
        damaged = bytearray(conversation)
        for _ in range(randomness.randint(1, 3)):
            damaged[randomness.randrange(start, len(damaged))] = randomness.randrange(256)
        lost: list[Connection] = []
        connection = Connection(directory, lost.append)
        connection.connection_made(Discarding())
        connection.data_received(bytes(damaged))
        connection.connection_lost(None)
        assert lost == [connection]
    await asyncio.sleep(0)
    for node in directory:
        node.stop()


async def test_frames_may_arrive_in_any_pieces(clients: EmulatorClients) -> None:
    reader, writer = await asyncio.open_connection("127.0.0.1", clients.emulator.port)
    data = SENDING + body(Detach(handle=0, closed=True)) + CLOSE
    for offset in range(len(data)):
        writer.write(data[offset : offset + 1])
        await writer.drain()
    assert (await asyncio.wait_for(reader.read(-1), 60)).endswith(CLOSED_WELL)
    writer.close()
    await writer.wait_closed()


async def test_an_idle_peer_is_kept_alive(clients: EmulatorClients) -> None:
    reader, writer = await asyncio.open_connection("127.0.0.1", clients.emulator.port)
    writer.write(
        log_in("ANONYMOUS") + AMQP_HEADER + body(Open(container_id="x", idle_time_out=200))
    )
    empty = frame(0, b"")
    data = await asyncio.wait_for(reader.readuntil(empty), 60)
    data += await asyncio.wait_for(reader.readuntil(empty), 60)
    assert data.count(empty) == 2
    writer.close()
    await writer.wait_closed()


async def test_it_stays_on_loopback() -> None:
    for host in ("0.0.0.0", "::", "192.0.2.1", "example.org"):
        with pytest.raises(ValueError, match="loopback"):
            ServiceBusEmulator([QueueSettings("q")], host=host)
    with pytest.raises(ValueError, match="at least one queue"):
        ServiceBusEmulator([])
    with pytest.raises(ValueError, match="given twice"):
        await ServiceBusEmulator([QueueSettings("q"), QueueSettings("Q")]).start()


async def test_stopping_disconnects_clients_and_frees_the_port() -> None:
    emulator = ServiceBusEmulator([QueueSettings("q")])
    await emulator.start()
    reader, writer = await asyncio.open_connection("127.0.0.1", emulator.port)
    writer.write(OPENED)
    await reader.readuntil(b"docflow-service-bus-emulator")
    await asyncio.wait_for(emulator.stop(), 60)
    assert b"amqp:connection:forced" in await asyncio.wait_for(reader.read(-1), 60)
    writer.close()
    await writer.wait_closed()
    with socket.create_server(("127.0.0.1", emulator.port)):
        pass


SERVE = """
import asyncio, functools, pathlib, sys
from emulators.service_bus import parse_queue, serve
announce = functools.partial(print, flush=True)
messages = pathlib.Path(sys.argv[1])
asyncio.run(serve([parse_queue("q:lock=30,max=10")], port=0, announce=announce, messages=messages))
"""


@asynccontextmanager
async def served(messages: Path) -> AsyncIterator[tuple[Process, ServiceBusClient]]:
    """A process of its own, which is gone with the block, and a client of it."""
    process = await asyncio.create_subprocess_exec(
        *(sys.executable, "-c", SERVE, str(messages)), stdout=asyncio.subprocess.PIPE
    )
    try:
        assert process.stdout is not None
        url = (await asyncio.wait_for(process.stdout.readline(), 60)).decode().strip()
        async with ServiceBusClient.from_connection_string(url) as client:
            yield process, client
    finally:
        if process.returncode is None:
            process.kill()
        await process.wait()


@pytest.mark.parametrize("number", [SIGTERM, SIGINT])
async def test_it_serves_until_it_is_stopped(number: Signals, tmp_path: Path) -> None:
    async with served(tmp_path / "messages.db") as (process, client):
        async with client.get_queue_sender("q") as sender:
            await sender.send_messages(ServiceBusMessage("hello"))
        process.send_signal(number)
        assert await asyncio.wait_for(process.wait(), 60) == 0


async def test_a_killed_emulator_has_lost_no_message_that_it_accepted(tmp_path: Path) -> None:
    async with served(tmp_path / "messages.db") as (process, client):
        async with client.get_queue_sender("q") as sender:
            await sender.send_messages([ServiceBusMessage(f"{number}") for number in range(50)])
            await sender.send_messages(ServiceBusMessage("50"))
        async with client.get_queue_receiver("q") as receiver:
            (first,) = await receive(receiver, 1)
            await receiver.complete_message(first)
            # Locked when it dies, as messages are that a worker has at hand.
            await receive(receiver, 5)
            process.kill()
            await process.wait()
    async with (
        served(tmp_path / "messages.db") as (_, client),
        client.get_queue_receiver("q") as receiver,
    ):
        assert bodies(await receive(receiver, 50)) == [f"{number}" for number in range(1, 51)]
