"""A Service Bus queue: send a message, see how many wait, check that it is there."""

import asyncio
import shlex
from collections.abc import AsyncGenerator, Callable, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass
from http import HTTPStatus
from typing import ClassVar, Generic, Protocol, TypeVar

from azure.servicebus import ServiceBusMessage, ServiceBusSubQueue
from azure.servicebus.aio import ServiceBusClient
from azure.servicebus.exceptions import (
    MessagingEntityNotFoundError,
    ServiceBusAuthenticationError,
    ServiceBusError,
)

from workers.services.errors import QueueUnavailable
from workers.services.setup.requirements import Finding, Requirement, State
from workers.settings.errors import SettingsError

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
