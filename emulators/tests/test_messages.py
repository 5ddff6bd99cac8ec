"""Messages in the Service Bus emulator: what of them arrives, as the unmodified client sees it."""

import os
from collections.abc import AsyncIterator, Mapping
from datetime import UTC, datetime, timedelta
from typing import Any
from uuid import uuid4

import pytest
import pytest_asyncio
from azure.servicebus import ServiceBusMessage
from azure.servicebus.amqp import (
    AmqpAnnotatedMessage,
    AmqpMessageHeader,
    AmqpMessageProperties,
)
from azure.servicebus.exceptions import MessageAlreadySettled, MessageSizeExceededError

from emulators.service_bus import QueueSettings
from emulators.tests.clients import (
    EmulatorClients,
    bodies,
    complete,
    open_clients,
    receive,
    receive_one,
)

pytestmark = pytest.mark.asyncio(loop_scope="module")

QUEUES = [QueueSettings(f"queue-{number}") for number in range(7)]
UNUSED = iter(QUEUES)


@pytest_asyncio.fixture(loop_scope="module", scope="module")
async def clients() -> AsyncIterator[EmulatorClients]:
    async with open_clients(*QUEUES) as running:
        yield running


@pytest.fixture
def queue() -> str:
    """A queue that no other test uses."""
    return next(UNUSED).name


async def test_everything_a_sender_sets_arrives_as_it_was(
    clients: EmulatorClients, queue: str
) -> None:
    identifier = uuid4()
    message = ServiceBusMessage(
        b"\x00\xffbody",
        message_id="m-1",
        correlation_id="c-1",
        subject="label",
        content_type="application/json",
        reply_to="back",
        to="there",
        time_to_live=timedelta(minutes=5),
        application_properties={
            "text": "Grüße",
            "whole": 2**31 - 1,
            "real": 0.5,
            "flag": True,
            "id": identifier,
            "nothing": None,
        },
    )
    before = datetime.now(UTC)
    await clients.sender(queue).send_messages(message)
    receiver = clients.receiver(queue)
    received = await receive_one(receiver)
    assert b"".join(received.body) == b"\x00\xffbody"
    assert received.message_id == "m-1"
    assert received.correlation_id == "c-1"
    assert received.subject == "label"
    assert received.content_type == "application/json"
    assert (received.reply_to, received.to) == ("back", "there")
    assert received.time_to_live == timedelta(minutes=5)
    assert received.application_properties == {
        b"text": "Grüße".encode(),
        b"whole": 2**31 - 1,
        b"real": 0.5,
        b"flag": True,
        b"id": identifier,
        b"nothing": None,
    }
    assert received.delivery_count == 0
    assert received.enqueued_time_utc is not None
    assert abs(received.enqueued_time_utc - before) < timedelta(seconds=5)
    assert received.locked_until_utc is not None
    lock = received.locked_until_utc - received.enqueued_time_utc
    assert timedelta(seconds=59) < lock < timedelta(seconds=65)
    await receiver.complete_message(received)
    with pytest.raises(MessageAlreadySettled):
        await receiver.complete_message(received)
    assert clients.counts(queue) == {}


BODIES: Mapping[str, tuple[Any, Any]] = {
    "data_body": ([b"a", b"b"], [b"a", b"b"]),
    "value_body": ({"key": [1, "two", None]}, {b"key": [1, b"two", None]}),
    "sequence_body": ([[1, 2], ["three"]], [[1, 2], [b"three"]]),
}
"""What the client is given as a body, and what it hands out."""


def annotated(kind: str) -> AmqpAnnotatedMessage:
    """A message with a body of this kind and every section that the client writes."""
    return AmqpAnnotatedMessage(
        **{kind: BODIES[kind][0]},
        header=AmqpMessageHeader(durable=True, priority=7, time_to_live=60_000, delivery_count=3),
        properties=AmqpMessageProperties(message_id="m", group_id="g", user_id=b"u"),
        annotations={"x-mine": "kept", "x-opt-sequence-number": 99},
        delivery_annotations={"hop": "dropped"},
        application_properties={"text": "Grüße", "whole": 5},
        footer={"digest": "d"},
    )


@pytest.mark.parametrize("kind", BODIES)
async def test_an_annotated_message_arrives_with_its_sections(
    clients: EmulatorClients, queue: str, kind: str
) -> None:
    sender, receiver = clients.sender(queue), clients.receiver(queue)
    await sender.send_messages(annotated(kind))
    await sender.send_messages([annotated(kind), annotated(kind)])
    messages = await receive(receiver, 3)
    for number, message in enumerate(messages, 1):
        raw = message.raw_amqp_message
        body = raw.body if kind == "value_body" else list(raw.body)
        assert (raw.body_type.value, body) == (kind.removesuffix("_body"), BODIES[kind][1])
        assert raw.header is not None
        assert (raw.header.durable, raw.header.priority) == (True, 7)
        assert (raw.header.time_to_live, raw.header.delivery_count) == (60_000, 0)
        assert raw.properties is not None
        assert (raw.properties.message_id, raw.properties.user_id) == (b"m", b"u")
        assert raw.properties.group_id == b"g"
        assert raw.application_properties == {b"text": "Grüße".encode(), b"whole": 5}
        assert raw.annotations is not None
        assert (raw.annotations[b"x-mine"], message.sequence_number) == (b"kept", number)
        # They are for the broker, as Azure reads them.
        assert (raw.delivery_annotations, raw.footer) == (None, {b"digest": b"d"})
    await complete(receiver, messages)


async def test_a_message_may_lack_a_body(clients: EmulatorClients, queue: str) -> None:
    def bare() -> list[ServiceBusMessage | AmqpAnnotatedMessage]:
        return [
            ServiceBusMessage(None, message_id="m", application_properties={"whole": 5}),
            AmqpAnnotatedMessage(value_body=None),
            AmqpAnnotatedMessage(data_body=[]),
        ]

    sender, receiver = clients.sender(queue), clients.receiver(queue)
    for message in bare():
        await sender.send_messages(message)
    await sender.send_messages(bare())
    messages = await receive(receiver, 6)
    assert [message.body for message in messages] == [None] * 6
    assert [message.message_id for message in messages] == ["m", None, None] * 2
    assert messages[0].application_properties == {b"whole": 5}
    await receiver.dead_letter_message(messages[0], reason="Empty")
    await complete(receiver, messages[1:])
    buried = await receive_one(clients.dead_letters(queue))
    assert (buried.body, buried.dead_letter_reason) == (None, "Empty")


async def test_a_batch_arrives_in_order_with_numbers_in_sequence(
    clients: EmulatorClients, queue: str
) -> None:
    sent = [ServiceBusMessage(f"{i}", message_id=f"id-{i}") for i in range(250)]
    await clients.sender(queue).send_messages(sent)
    receiver = clients.receiver(queue)
    messages = await receive(receiver, 250)
    assert bodies(messages) == [f"{i}" for i in range(250)]
    assert [message.message_id for message in messages] == [f"id-{i}" for i in range(250)]
    assert [message.sequence_number for message in messages] == list(range(1, 251))
    assert clients.counts(queue) == {"locked": 250}
    await complete(receiver, messages)
    assert clients.counts(queue) == {}


async def test_messages_larger_than_a_frame_arrive_whole(
    clients: EmulatorClients, queue: str
) -> None:
    payloads = [os.urandom(200_000), os.urandom(65_536), b"small"]
    sender = clients.sender(queue)
    for payload in payloads:
        await sender.send_messages(ServiceBusMessage(payload))
    with pytest.raises(MessageSizeExceededError):
        await sender.send_messages(ServiceBusMessage(b"x" * 300_000))
    receiver = clients.receiver(queue)
    messages = await receive(receiver, 3)
    assert [b"".join(message.body) for message in messages] == payloads
    await complete(receiver, messages)
    assert clients.counts(queue) == {}
