"""Receivers of the Service Bus emulator, as the unmodified azure-servicebus client sees them."""

import asyncio
import time
from collections.abc import AsyncIterator
from datetime import UTC, datetime, timedelta

import pytest
import pytest_asyncio
from azure.servicebus import (
    ServiceBusMessage,
    ServiceBusMessageState,
    ServiceBusReceiveMode,
)
from azure.servicebus.aio import AutoLockRenewer, ServiceBusReceiver
from azure.servicebus.exceptions import (
    MessageLockLostError,
    MessageNotFoundError,
    ServiceBusError,
)

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

SHORT_LOCK = 1.0
QUEUES = [
    *(QueueSettings(f"queue-{number}") for number in range(12)),
    QueueSettings("short-1", lock_seconds=SHORT_LOCK),
    QueueSettings("short-2", lock_seconds=SHORT_LOCK),
    QueueSettings("renewed", lock_seconds=4),
    QueueSettings("twice", max_delivery_count=2),
]
UNUSED = iter(QUEUES[:12])


@pytest_asyncio.fixture(loop_scope="module", scope="module")
async def clients() -> AsyncIterator[EmulatorClients]:
    async with open_clients(*QUEUES) as running:
        yield running


@pytest.fixture
def queue() -> str:
    """A queue that no other test uses."""
    return next(UNUSED).name


async def test_an_empty_queue_keeps_a_receiver_waiting_and_no_longer(
    clients: EmulatorClients, queue: str
) -> None:
    start = time.monotonic()
    assert await clients.receiver(queue).receive_messages(5, max_wait_time=0.8) == []
    assert 0.7 < time.monotonic() - start < 3


async def test_a_waiting_receiver_gets_what_is_sent(clients: EmulatorClients, queue: str) -> None:
    receiver = clients.receiver(queue)
    waiting = asyncio.create_task(receive_one(receiver))
    await clients.send(queue, "wanted")
    message = await asyncio.wait_for(waiting, 60)
    assert str(message) == "wanted"
    await receiver.complete_message(message)


async def test_an_abandoned_message_is_delivered_again(
    clients: EmulatorClients, queue: str
) -> None:
    await clients.send(queue, "again")
    receiver = clients.receiver(queue)
    for deliveries in range(3):
        message = await receive_one(receiver)
        assert message.delivery_count == deliveries
        await receiver.abandon_message(message)
    await receiver.complete_message(await receive_one(receiver))
    assert clients.counts(queue) == {}


async def test_a_dead_letter_keeps_its_reason_and_its_properties(
    clients: EmulatorClients, queue: str
) -> None:
    sent = ServiceBusMessage("bad", application_properties={"kept": "yes"})
    await clients.sender(queue).send_messages(sent)
    receiver = clients.receiver(queue)
    await receiver.dead_letter_message(
        await receive_one(receiver), reason="Malformed", error_description="no task_id: add it"
    )
    assert clients.counts(queue) == {"dead_letter": 1}
    receiver = clients.dead_letters(queue)
    message = await receive_one(receiver)
    assert str(message) == "bad"
    assert message.dead_letter_reason == "Malformed"
    assert message.dead_letter_error_description == "no task_id: add it"
    assert message.dead_letter_source == queue
    assert message.application_properties is not None
    assert message.application_properties[b"kept"] == b"yes"
    await receiver.abandon_message(message)
    await receiver.complete_message(await receive_one(receiver))
    assert clients.counts(queue) == {}


async def test_a_dead_letter_needs_no_reason_and_cannot_die_again(
    clients: EmulatorClients, queue: str
) -> None:
    await clients.send(queue, "bad")
    receiver = clients.receiver(queue)
    await receiver.dead_letter_message(await receive_one(receiver))
    receiver = clients.dead_letters(queue)
    message = await receive_one(receiver)
    assert (message.dead_letter_reason, message.application_properties) == (None, None)
    with pytest.raises(ServiceBusError, match="cannot be dead-lettered again"):
        await receiver.dead_letter_message(message, reason="again")


async def test_too_many_deliveries_end_in_the_dead_letters(clients: EmulatorClients) -> None:
    await clients.send("twice", "poison")
    receiver = clients.receiver("twice")
    for _ in range(2):
        await receiver.abandon_message(await receive_one(receiver))
    assert clients.counts("twice") == {"dead_letter": 1}
    message = await receive_one(clients.dead_letters("twice"))
    assert message.dead_letter_reason == "MaxDeliveryCountExceeded"


async def test_a_deferred_message_is_received_by_its_number(
    clients: EmulatorClients, queue: str
) -> None:
    await clients.send(queue, "one", "two", "three")
    receiver = clients.receiver(queue)
    for message in await receive(receiver, 3):
        await receiver.defer_message(message)
    assert clients.counts(queue) == {"deferred": 3}
    one, two = await receiver.receive_deferred_messages([1, 2])
    assert (str(one), str(two)) == ("one", "two")
    assert one.locked_until_utc is not None
    await receiver.complete_message(one)
    await receiver.dead_letter_message(two, reason="late", error_description="too late")
    [three] = await receiver.receive_deferred_messages(3)
    await receiver.abandon_message(three)
    [three] = await receiver.receive_deferred_messages(3)
    assert three.delivery_count == 1
    await receiver.renew_message_lock(three)
    await receiver.complete_message(three)
    with pytest.raises(MessageNotFoundError):
        await receiver.receive_deferred_messages(1)
    buried = await receive_one(clients.dead_letters(queue))
    assert (buried.dead_letter_reason, str(buried)) == ("late", "two")


async def test_peeking_takes_nothing(clients: EmulatorClients, queue: str) -> None:
    sender = await clients.send(queue, "a", "b", "c")
    later = datetime.now(UTC) + timedelta(hours=1)
    await sender.schedule_messages(ServiceBusMessage("d"), later)
    receiver = clients.receiver(queue)
    await receiver.defer_message(await receive_one(receiver))
    peeked = await receiver.peek_messages(10, sequence_number=1)
    assert bodies(peeked) == ["a", "b", "c", "d"]
    assert [message.state for message in peeked] == [
        ServiceBusMessageState.DEFERRED,
        ServiceBusMessageState.ACTIVE,
        ServiceBusMessageState.ACTIVE,
        ServiceBusMessageState.SCHEDULED,
    ]
    assert bodies(await receiver.peek_messages(1, sequence_number=2)) == ["b"]
    assert await receiver.peek_messages(10, sequence_number=5) == []
    assert clients.counts(queue) == {"active": 2, "deferred": 1, "scheduled": 1}


async def test_an_expired_lock_gives_the_message_to_the_next_one(clients: EmulatorClients) -> None:
    await clients.send("short-1", "slow")
    first, second = clients.receiver("short-1"), clients.receiver("short-1")
    held = await receive_one(first)
    start = time.monotonic()
    again = await receive_one(second)
    assert SHORT_LOCK - 0.4 < time.monotonic() - start < SHORT_LOCK + 2
    assert again.delivery_count == 1
    with pytest.raises(MessageLockLostError):
        await first.complete_message(held)
    await second.complete_message(again)
    assert clients.counts("short-1") == {}


async def test_the_broker_itself_refuses_a_lost_lock(clients: EmulatorClients) -> None:
    await clients.send("short-2", "slow")
    receiver = clients.receiver("short-2")
    held = await receive_one(receiver)
    again = await receive_one(receiver)
    # The client would not even ask once its own clock says that the lock is over.
    held._expiry = datetime.now(UTC) + timedelta(minutes=1)
    with pytest.raises(MessageLockLostError):
        await receiver.complete_message(held)
    with pytest.raises(MessageLockLostError):
        await receiver.renew_message_lock(held)
    await receiver.complete_message(again)
    assert clients.counts("short-2") == {}


async def test_a_renewed_lock_outlives_its_time(clients: EmulatorClients) -> None:
    await clients.send("renewed", "manual", "automatic")
    async with AutoLockRenewer() as renewer:
        receiver = clients.receiver("renewed")
        manual, automatic = await receive(receiver, 2)
        first_end = manual.locked_until_utc
        assert first_end is not None
        renewer.register(receiver, automatic, max_lock_renewal_duration=30)
        # No receiver gets either message until after the first end of their locks.
        assert await receiver.receive_messages(1, max_wait_time=2) == []
        assert await receiver.renew_message_lock(manual) > first_end
        assert await receiver.receive_messages(1, max_wait_time=2.5) == []
        assert datetime.now(UTC) > first_end
        await complete(receiver, [manual, automatic])
    assert clients.counts("renewed") == {}


async def test_scheduled_messages_wait_and_can_be_cancelled(
    clients: EmulatorClients, queue: str
) -> None:
    sender = clients.sender(queue)
    soon = datetime.now(UTC) + timedelta(seconds=1.5)
    messages = [ServiceBusMessage("kept"), ServiceBusMessage("cancelled")]
    numbers = await sender.schedule_messages(messages, soon)
    await sender.send_messages(ServiceBusMessage("sent", scheduled_enqueue_time_utc=soon))
    assert clients.counts(queue) == {"scheduled": 3}
    await sender.cancel_scheduled_messages(numbers[1])
    with pytest.raises(MessageNotFoundError):
        await sender.cancel_scheduled_messages(numbers[1])
    received = await receive(clients.receiver(queue), 2)
    # The client sends the moment in milliseconds.
    assert datetime.now(UTC) >= soon - timedelta(milliseconds=1)
    assert sorted(bodies(received)) == ["kept", "sent"]


async def test_receive_and_delete_needs_no_settlement(clients: EmulatorClients, queue: str) -> None:
    await clients.send(queue, *(f"{i}" for i in range(20)))
    receiver = clients.receiver(queue, receive_mode=ServiceBusReceiveMode.RECEIVE_AND_DELETE)
    messages = await receive(receiver, 20)
    assert bodies(messages) == [f"{i}" for i in range(20)]
    assert clients.counts(queue) == {}


async def test_expired_messages_are_not_delivered(clients: EmulatorClients, queue: str) -> None:
    sender = clients.sender(queue)
    await sender.send_messages(ServiceBusMessage("gone", time_to_live=timedelta(seconds=1)))
    assert clients.counts(queue) == {"active": 1}
    async with asyncio.timeout(60):
        while clients.counts(queue):
            await asyncio.sleep(0.05)
    await sender.send_messages(ServiceBusMessage("stays"))
    assert str(await receive_one(clients.receiver(queue))) == "stays"


async def test_receivers_share_a_queue_without_sharing_messages(
    clients: EmulatorClients, queue: str
) -> None:
    receivers = [clients.receiver(queue) for _ in range(3)]
    await asyncio.gather(*(receiver.peek_messages() for receiver in receivers))
    await clients.send(queue, *(f"{i}" for i in range(120)))

    async def consume(receiver: ServiceBusReceiver) -> list[str]:
        share: list[str] = []
        while clients.counts(queue):
            batch = await receiver.receive_messages(7, max_wait_time=0.5)
            share += bodies(batch)
            await complete(receiver, batch)
        return share

    shares = await asyncio.gather(*map(consume, receivers))
    assert all(shares)
    everything = [body for share in shares for body in share]
    assert sorted(everything, key=int) == [f"{i}" for i in range(120)]


async def test_what_a_closing_receiver_holds_unseen_is_released(
    clients: EmulatorClients, queue: str
) -> None:
    await clients.send(queue, *(f"{i}" for i in range(5)))
    async with clients.client.get_queue_receiver(queue, prefetch_count=5) as receiver:
        await receiver.complete_message(await receive_one(receiver))
        assert clients.counts(queue) == {"locked": 4}
    messages = await receive(clients.receiver(queue), 4)
    assert {message.delivery_count for message in messages} == {0}
