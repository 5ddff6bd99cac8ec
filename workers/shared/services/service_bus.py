"""A Service Bus queue: send a message, see how many wait, its dead letters."""

import asyncio
import secrets
import shlex
from collections.abc import AsyncGenerator, Awaitable, Callable, Mapping, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass
from datetime import datetime
from http import HTTPStatus
from typing import ClassVar, Generic, Protocol, TypeVar

from azure.servicebus import ServiceBusMessage, ServiceBusReceivedMessage, ServiceBusSubQueue
from azure.servicebus.aio import ServiceBusClient, ServiceBusReceiver
from azure.servicebus.exceptions import (
    MessagingEntityNotFoundError,
    ServiceBusAuthenticationError,
    ServiceBusError,
)

from workers.shared.errors import SettingsError
from workers.shared.services.errors import QueueUnavailable
from workers.shared.services.requirements import Finding, Requirement, State

Message = TypeVar("Message")


class QueueSettings(Protocol):
    """The settings of one queue."""

    queue_setting: ClassVar[str]
    """The setting that names it."""

    @property
    def connection_string(self) -> str:
        """The namespace of the queue."""
        ...

    @property
    def queue_name(self) -> str:
        """The queue."""
        ...

    @property
    def max_messages(self) -> int:
        """Received and started together."""
        ...

    @property
    def max_wait_seconds(self) -> int:
        """That an empty queue is waited on before a drain ends."""
        ...


SECONDS_TO_ANSWER = 15
"""How long one attempt may take before the queue counts as unreachable."""


@dataclass(frozen=True)
class QueueSnapshot:
    """What was seen in a queue."""

    waiting: int
    """Messages that are in the queue, those under a lock included."""
    dead_letters: int
    at_most: int
    """The bound of messages to look at was reached."""


class ServiceBusQueue:
    """One queue, over an open client."""

    def __init__(self, client: ServiceBusClient, settings: QueueSettings) -> None:
        self._client = client
        self._name = settings.queue_name
        self._setting = settings.queue_setting
        self._sender = client.get_queue_sender(self._name)
        # A sender is not made for two tasks at once.
        self._sending = asyncio.Lock()

    @property
    def name(self) -> str:
        """Its name."""
        return self._name

    @property
    def client(self) -> ServiceBusClient:
        """The open client."""
        return self._client

    @property
    def namespace(self) -> str:
        """Host of the Service Bus namespace."""
        return self._client.fully_qualified_namespace

    async def exists(self) -> bool:
        """Whether there is such a queue.

        Raises:
            QueueUnavailable: The namespace does not answer, or does not let us in.
        """
        try:
            await self._peek(None, 1)
        except QueueUnavailable as error:
            if _is_missing(error.__cause__):
                return False
            raise
        return True

    async def send(self, body: bytes, message_id: str) -> None:
        """Send one message; it is in the queue when this returns.

        Raises:
            QueueUnavailable: It cannot be sent, or it is not known whether it was.
        """
        message = ServiceBusMessage(body, message_id=message_id, content_type="application/json")
        try:
            async with self._sending:
                await self._sender.send_messages(message)
        except ServiceBusError as error:
            raise self.unreachable(error) from error

    async def depth(self, at_most: int) -> QueueSnapshot:
        """Look at what is in the queue, up to `at_most` messages, without taking any.

        Raises:
            QueueUnavailable: The queue does not answer.
        """
        waiting, dead_letters = await asyncio.gather(
            self._peek(None, at_most), self._peek(ServiceBusSubQueue.DEAD_LETTER, at_most)
        )
        return QueueSnapshot(waiting, dead_letters, at_most)

    async def _peek(self, sub_queue: ServiceBusSubQueue | None, at_most: int) -> int:
        receiver = self._client.get_queue_receiver(
            self._name,
            sub_queue=sub_queue,  # pyright: ignore[reportArgumentType] - None is its default
        )
        try:
            async with receiver:
                return len(await receiver.peek_messages(at_most, timeout=SECONDS_TO_ANSWER))
        except ServiceBusError as error:
            raise self.unreachable(error) from error

    def unreachable(self, error: ServiceBusError) -> QueueUnavailable:
        """What a failure of the client is to people."""
        return QueueUnavailable(
            f"cannot use the Service Bus queue {self._name!r} at "
            f"{self.namespace}: {str(error).splitlines()[0]}; is it up, "
            f"and are AZURE_SERVICE_BUS_CONNECTION_STRING and {self._setting} right?"
        )


def _is_missing(error: BaseException | None) -> bool:
    """Whether the namespace answered that there is no such queue: when asked for it, or already
    when asked for the right to use it."""
    refusal = getattr(error, "__context__", None)
    return isinstance(error, MessagingEntityNotFoundError) or (
        isinstance(error, ServiceBusAuthenticationError)
        and getattr(refusal, "status_code", None) == HTTPStatus.NOT_FOUND
    )


@asynccontextmanager
async def open_queue(settings: QueueSettings) -> AsyncGenerator[ServiceBusQueue]:
    """Open the queue that the settings name; it is reached when it is first used.

    Raises:
        SettingsError: The connection string cannot be read.
    """
    try:
        client = ServiceBusClient.from_connection_string(
            settings.connection_string, retry_total=1, try_timeout=SECONDS_TO_ANSWER
        )
    except ValueError as error:
        raise SettingsError(
            f"AZURE_SERVICE_BUS_CONNECTION_STRING cannot be read: {error}"
        ) from error
    async with client:
        yield ServiceBusQueue(client, settings)


def queue_requirement(queue: ServiceBusQueue, settings: QueueSettings, what: str) -> Requirement:
    """That a queue is there, for `docflow setup`.

    Checked by opening it: the key that receives has no right to make a queue.

    Args:
        queue: As it was opened.
        settings: Its settings.
        what: What the requirement is called.
    """
    name = settings.queue_name

    async def check() -> Finding:
        if await queue.exists():
            return Finding(State.OK, name)
        return Finding(State.MISSING, f"there is no queue {name!r} in {queue.namespace}")

    namespace = queue.namespace.partition(".")[0]
    command = (
        "az servicebus queue create --resource-group GROUP "
        f"--namespace-name {shlex.quote(namespace)} --name {shlex.quote(name)} "
        "--lock-duration PT5M --max-delivery-count 10"
    )
    return Requirement(
        what,
        check,
        consequence="no message is received",
        cure=f"correct {settings.queue_setting}, or run `{command}`",
    )


class ServiceBusSender(Generic[Message]):
    """Validates messages of a Service Bus queue, and sends them to it.

    Args:
        read: Reads a message as the bridge does, or raises `RefusedMessage`.
        key: What one run is known by, of a message.
        settings: Reads where the queue is.
    """

    def __init__(
        self,
        read: Callable[[bytes], Message],
        key: Callable[[Message], str],
        settings: Callable[[Mapping[str, str]], QueueSettings],
    ) -> None:
        self._read, self._key, self._settings = read, key, settings

    def check(self, body: bytes) -> None:
        """Check a message as the bridge does.

        Raises:
            RefusedMessage: It would be rejected.
        """
        self._read(body)

    def key(self, body: bytes) -> str:
        """What the run that a message starts is known by.

        Raises:
            RefusedMessage: It would be rejected.
        """
        return self._key(self._read(body))

    async def send(self, environment: Mapping[str, str], body: bytes, message_id: str) -> None:
        """Send a message; it is in the queue when this returns.

        Raises:
            SettingsError: A setting is missing or wrong.
            QueueUnavailable: It cannot be sent, or it is not known whether it was.
        """
        async with open_queue(self._settings(environment)) as opened:
            await opened.send(body, message_id)


@dataclass(frozen=True)
class DeadLetter:
    """A message in a dead letter queue."""

    queue: str
    number: int
    """The queue's own number of the message."""
    message_id: str | None
    reason: str | None
    """Why it is there: `MaxDeliveryCountExceeded`, or what the receiver gave."""
    description: str | None
    deliveries: int
    sent_at: datetime | None
    body: bytes


_AT_ONCE = 100
"""Messages of one request."""
_ALL = 10_000
"""Dead letters that one call for all of them takes."""
_WAIT_SECONDS = 3
"""How long an empty queue is waited on."""


class ServiceBusDeadLetters:
    """Dead letters of one queue.

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
        """The oldest first; none is taken.

        Raises:
            QueueUnavailable: The queue does not answer.
        """
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
        """Send dead letters to the queue again, and remove each once it is there.

        Args:
            numbers: Which; None: all.
            body: Of the message instead of its own.

        Returns:
            Those that were there.

        Raises:
            QueueUnavailable: The queue does not answer; what was sent is removed.
        """

        async def send(message: ServiceBusReceivedMessage) -> None:
            # A new id: the queue may drop one that it has seen.
            id = f"redelivered-{message.sequence_number}-{secrets.token_hex(4)}"
            await self._queue.send(_body(message) if body is None else body, id)

        return await self._taken(numbers, send)

    async def purge(self, numbers: Sequence[int] | None) -> Sequence[DeadLetter]:
        """Delete dead letters; those that were there.

        Raises:
            QueueUnavailable: The queue does not answer.
        """

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
