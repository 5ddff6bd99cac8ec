"""What the tests of the Service Bus emulator share."""

import asyncio
from collections.abc import AsyncIterator, Iterable
from contextlib import asynccontextmanager
from typing import Any

from azure.servicebus import ServiceBusMessage, ServiceBusReceivedMessage, ServiceBusSubQueue
from azure.servicebus.aio import ServiceBusClient, ServiceBusReceiver, ServiceBusSender

from emulators.service_bus import QueueSettings, ServiceBusEmulator


def quick_client(connection_string: str, **more: Any) -> ServiceBusClient:
    """A client of the emulator.

    With the default timeout of its socket, every step of an open and a close waits for a quiet
    fifth of a second.
    """
    return ServiceBusClient.from_connection_string(connection_string, socket_timeout=0.05, **more)


class EmulatorClients:
    """An emulator with a queue for each test, and the real client.

    Closing a sender or receiver takes the client about a second, so all are closed together.
    """

    def __init__(self, emulator: ServiceBusEmulator) -> None:
        self.emulator = emulator
        self.client = quick_client(
            emulator.connection_string, retry_total=1, retry_backoff_factor=0.1
        )
        self._handlers: list[ServiceBusSender | ServiceBusReceiver] = []
        self._senders: dict[str, ServiceBusSender] = {}
        self._receivers: dict[str, ServiceBusReceiver] = {}

    async def open(self, queues: Iterable[str]) -> None:
        """Open a sender and a receiver of each queue, which takes about a second in all."""
        for queue in queues:
            self._senders[queue] = self.sender(queue)
            self._receivers[queue] = self.receiver(queue)
        await asyncio.gather(*(handler.__aenter__() for handler in self._handlers))

    def sender(self, queue: str) -> ServiceBusSender:
        if queue in self._senders:
            return self._senders[queue]
        sender = self.client.get_queue_sender(queue)
        self._handlers.append(sender)
        return sender

    def receiver(self, queue: str, **options: Any) -> ServiceBusReceiver:
        if queue in self._receivers and not options:
            return self._receivers.pop(queue)
        receiver = self.client.get_queue_receiver(queue, **options)
        self._handlers.append(receiver)
        return receiver

    def dead_letters(self, queue: str) -> ServiceBusReceiver:
        return self.receiver(queue, sub_queue=ServiceBusSubQueue.DEAD_LETTER)

    async def send(self, queue: str, *bodies: str) -> ServiceBusSender:
        sender = self.sender(queue)
        await sender.send_messages([ServiceBusMessage(body) for body in bodies])
        return sender

    def counts(self, queue: str) -> dict[str, int]:
        """Counts that are not zero."""
        counts = self.emulator.counts(queue)
        states = ("active", "locked", "scheduled", "deferred", "dead_letter")
        return {state: number for state in states if (number := getattr(counts, state))}

    async def close(self) -> None:
        await asyncio.gather(*(handler.close() for handler in self._handlers))
        await self.client.close()


@asynccontextmanager
async def open_clients(*queues: QueueSettings) -> AsyncIterator[EmulatorClients]:
    async with ServiceBusEmulator(queues) as emulator:
        clients = EmulatorClients(emulator)
        try:
            await clients.open(settings.name for settings in queues)
            yield clients
        finally:
            await clients.close()


async def receive(receiver: ServiceBusReceiver, number: int) -> list[ServiceBusReceivedMessage]:
    """Exactly so many messages."""
    messages: list[ServiceBusReceivedMessage] = []
    while len(messages) < number:
        batch = await receiver.receive_messages(number - len(messages), max_wait_time=5)
        assert batch, f"got {len(messages)} of {number} messages"
        messages += batch
    return messages


async def receive_one(receiver: ServiceBusReceiver) -> ServiceBusReceivedMessage:
    return (await receive(receiver, 1))[0]


async def complete(receiver: ServiceBusReceiver, messages: list[ServiceBusReceivedMessage]) -> None:
    await asyncio.gather(*map(receiver.complete_message, messages))


def bodies(messages: list[ServiceBusReceivedMessage]) -> list[str]:
    return [str(message) for message in messages]
