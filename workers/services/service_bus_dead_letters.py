"""The dead letters of a Service Bus queue."""

import secrets
from collections.abc import AsyncGenerator, Awaitable, Callable, Sequence
from contextlib import asynccontextmanager

from azure.servicebus import ServiceBusReceivedMessage, ServiceBusSubQueue
from azure.servicebus.aio import ServiceBusClient, ServiceBusReceiver
from azure.servicebus.exceptions import ServiceBusError

from workers.services.dead_letters import DeadLetter
from workers.services.service_bus import (
    SECONDS_TO_ANSWER,
    QueueSettings,
    ServiceBusQueue,
    open_queue,
)

_AT_ONCE = 100
"""Messages of one request."""
_ALL = 10_000
"""Dead letters that one call for all of them takes."""
_WAIT_SECONDS = 3
"""How long an empty queue is waited on."""


class ServiceBusDeadLetters:
    """Dead letters of one queue; a `DeadLetters`.

    A message of a certain number can only be had by receiving: those in front of it are locked
    meanwhile, and given back.
    """

    def __init__(self, queue: ServiceBusQueue) -> None:
        self._queue = queue

    @property
    def queue(self) -> str:
        """Its name."""
        return self._queue.name

    async def list(self, most: int) -> Sequence[DeadLetter]:
        """The oldest first; none is taken."""
        async with self._receiver() as receiver:
            found: list[ServiceBusReceivedMessage] = []
            after = 0
            while len(found) < most:
                wanted = min(_AT_ONCE, most - len(found))
                page = await receiver.peek_messages(
                    wanted, sequence_number=after, timeout=SECONDS_TO_ANSWER
                )
                if not page:
                    break
                found += page
                after = (page[-1].sequence_number or 0) + 1
            return [self._described(message) for message in found]

    async def resubmit(
        self, numbers: Sequence[int] | None, body: bytes | None
    ) -> Sequence[DeadLetter]:
        """Send again, then remove."""

        async def send(message: ServiceBusReceivedMessage) -> None:
            # A new id: the queue may drop one that it has seen.
            id = f"redelivered-{message.sequence_number}-{secrets.token_hex(4)}"
            await self._queue.send(_body(message) if body is None else body, id)

        return await self._taken(numbers, send)

    async def purge(self, numbers: Sequence[int] | None) -> Sequence[DeadLetter]:
        """Delete them."""

        async def drop(message: ServiceBusReceivedMessage) -> None:
            return

        return await self._taken(numbers, drop)

    async def _taken(
        self,
        numbers: Sequence[int] | None,
        act: Callable[[ServiceBusReceivedMessage], Awaitable[None]],
    ) -> Sequence[DeadLetter]:
        """Act on each message that is wanted, and remove it; give the others back."""
        if numbers is None:
            # Messages that arrive meanwhile are left out: what is sent again may come back.
            numbers = [each.number for each in await self.list(_ALL)]
        missing = set(numbers)
        done: list[DeadLetter] = []
        async with self._receiver() as receiver:
            others: list[ServiceBusReceivedMessage] = []
            try:
                while missing:
                    page = await receiver.receive_messages(_AT_ONCE, max_wait_time=_WAIT_SECONDS)
                    if not page:
                        break
                    for message in page:
                        number = message.sequence_number or 0
                        if number not in missing:
                            others.append(message)
                            continue
                        await act(message)
                        await receiver.complete_message(message)
                        done.append(self._described(message))
                        missing.discard(number)
            finally:
                for message in others:
                    await receiver.abandon_message(message)
        return done

    @asynccontextmanager
    async def _receiver(self) -> AsyncGenerator[ServiceBusReceiver]:
        client: ServiceBusClient = self._queue.client
        receiver = client.get_queue_receiver(
            self.queue, sub_queue=ServiceBusSubQueue.DEAD_LETTER, prefetch_count=0
        )
        try:
            async with receiver:
                yield receiver
        except ServiceBusError as error:
            raise self._queue.unreachable(error) from error

    def _described(self, message: ServiceBusReceivedMessage) -> DeadLetter:
        return DeadLetter(
            queue=self.queue,
            number=message.sequence_number or 0,
            message_id=message.message_id,
            reason=message.dead_letter_reason,
            description=message.dead_letter_error_description,
            deliveries=message.delivery_count or 0,
            sent_at=message.enqueued_time_utc,
            body=_body(message),
        )


def _body(message: ServiceBusReceivedMessage) -> bytes:
    return b"".join(message.body)


@asynccontextmanager
async def open_service_bus_dead_letters(
    settings: QueueSettings,
) -> AsyncGenerator[ServiceBusDeadLetters]:
    """The dead letters of the queue that the settings name.

    Raises:
        SettingsError: The connection string cannot be read.
    """
    async with open_queue(settings) as queue:
        yield ServiceBusDeadLetters(queue)
