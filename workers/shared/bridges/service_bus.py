"""Azure Service Bus queue -> handler: peek-lock, locks as leases, dead letters of the queue's own.

A start that Temporal does not accept is held for a while and then given back, and nothing is
received until Temporal is available again: a lock that is kept through a long outage would keep
the message from every other bridge.
"""

import asyncio
import logging
from collections.abc import Awaitable, Callable, Generator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any, Final

from azure.servicebus import ServiceBusReceivedMessage
from azure.servicebus.aio import ServiceBusReceiver
from azure.servicebus.amqp import AmqpMessageBodyType
from azure.servicebus.exceptions import (
    MessageLockLostError,
    MessagingEntityNotFoundError,
    ServiceBusAuthenticationError,
    ServiceBusAuthorizationError,
    ServiceBusConnectionError,
    ServiceBusError,
)

from workers.shared.bridges.consumer import (
    Accept,
    BridgeError,
    BridgeTotals,
    Consumer,
    Limits,
    Retry,
)
from workers.shared.bridges.transport import LeaseLost, QueueMissing, QueueRefused, TransportError
from workers.shared.health import Health
from workers.shared.services.bodies import DeadLetter
from workers.shared.services.service_bus import QueueSettings

logger = logging.getLogger(__name__)

_WRONG_SETTINGS = (
    MessagingEntityNotFoundError,
    ServiceBusAuthenticationError,
    ServiceBusAuthorizationError,
)

_POLL: Final = 2.0
"""Seconds that one receive waits at most, so that none can delay a stop."""
_MORE: Final = 0.05
"""Seconds that a receive waits for a batch when the last one was full."""


class ServiceBusBridge:
    """Receives messages of one queue, has them accepted, and settles them."""

    def __init__(
        self,
        settings: QueueSettings,
        accept: Accept,
        *,
        ready: Callable[[], Awaitable[bool]] | None = None,
        retry: Retry | None = None,
        health: Health | None = None,
    ) -> None:
        """Set up; nothing is opened before `run`.

        Args:
            settings: The queue, how many messages at once, and how long an empty queue is
                waited on before a drain ends.
            accept: Decides about a message; may be called again with the same one.
            ready: Whether what `accept` depends on is available, so that nothing is received
                before. Without it a pause has to do.
            retry: How long to hold messages, and to pause before trying again.
            health: Shows whether messages are received and accepted.
        """
        self._settings = settings
        self._accept = accept
        self._ready = ready
        self._retry = retry or Retry()
        self._health = health or Health()

    async def run(self, stop: asyncio.Event, *, drain: bool = False) -> BridgeTotals:
        """Work until `stop` is set; see `Consumer.run`.

        Raises:
            BridgeError: The connection string cannot be read.
            QueueUnusable: The queue does not exist, or does not let us in.
        """
        most = self._settings.max_messages
        consumer = Consumer(
            ServiceBusTransport(self._settings),
            self._accept,
            # A batch is received when the last one is decided about; two may still be settling.
            Limits(
                concurrency=most,
                in_flight=3 * most,
                refill=most,
                wait=_POLL,
                quiet=self._settings.max_wait_seconds,
            ),
            ready=self._ready,
            retry=self._retry,
            health=self._health,
        )
        return await consumer.run(stop, drain=drain)


@dataclass(frozen=True, slots=True)
class LockedMessage:
    """A message under a lock."""

    native: ServiceBusReceivedMessage

    @property
    def body(self) -> bytes:
        """The sections of the body as one; nothing for a message without a body."""
        body = self.native.body
        if body is None or isinstance(body, bytes):
            return body or b""
        if self.native.body_type is AmqpMessageBodyType.DATA:
            return b"".join(body)
        # A map or a sequence is not a body that docflow reads; as text it is refused and recorded.
        return str(body).encode("utf-8", errors="replace")

    @property
    def message_id(self) -> str | None:
        """As the sender set it."""
        return None if self.native.message_id is None else str(self.native.message_id)[:128]

    @property
    def delivery_count(self) -> int:
        """Deliveries before this one."""
        return self.native.delivery_count or 0


class ServiceBusTransport:
    """A queue of Service Bus as the consumer needs it.

    A lock outlives the link it was received through: what one link could not settle, the next
    one can.
    """

    def __init__(self, settings: QueueSettings) -> None:
        self.name = settings.queue_name
        self._settings = settings
        self._receiver: ServiceBusReceiver | None = None
        self._lost: ServiceBusReceiver | None = None
        self._ask = 1
        self._extending = asyncio.Lock()

    async def receive(self, most: int, wait: float) -> Sequence[LockedMessage]:
        """Receive messages, through a new link when the last one was lost.

        A receive of several waits for a gap after the first, so while few messages arrive one
        is asked for at a time: a lone message is then received at once.
        """
        receiver = self._receiver or await self._open()
        ask = min(self._ask, most)
        wait = min(wait, _MORE) if ask > 1 else wait
        time = asyncio.get_running_loop().time
        began = time()
        try:
            messages = await receiver.receive_messages(ask, wait)
        except ServiceBusError as error:
            await self._lose()
            raise TransportError(f"receiving from queue {self.name!r}: {error}") from error
        if not messages and time() - began < wait / 2:
            await self._lose()
            raise TransportError(f"the link to queue {self.name!r} was closed")
        self._ask = min(2 * ask, most) if len(messages) == ask else 1
        return [LockedMessage(message) for message in messages]

    def lease_seconds(self, message: LockedMessage) -> float:
        """What is left of the lock."""
        until = message.native.locked_until_utc
        return (until - datetime.now(UTC)).total_seconds() if until else 0.0

    async def extend(self, message: LockedMessage) -> None:
        """Renew the lock."""
        with self._settling(message) as receiver:
            # One at a time: all go through the one management link of the receiver.
            async with self._extending:
                await receiver.renew_message_lock(message.native)

    async def complete(self, message: LockedMessage) -> None:
        """Take the message off the queue."""
        with self._settling(message) as receiver:
            await receiver.complete_message(message.native)

    async def abandon(self, message: LockedMessage, delay: int) -> None:
        """Unlock the message; it is delivered again at once, the queue knows no delay."""
        with self._settling(message) as receiver:
            await receiver.abandon_message(message.native)

    async def dead_letter(self, message: LockedMessage, verdict: DeadLetter) -> None:
        """Move the message to the dead letters of the queue."""
        with self._settling(message) as receiver:
            await receiver.dead_letter_message(
                message.native, reason=verdict.reason, error_description=verdict.description
            )

    async def close(self) -> None:
        """Close the link."""
        await self._close_lost()
        await self._lose()

    async def _open(self) -> ServiceBusReceiver:
        await self._close_lost()
        receiver = _OneLink.of(self._settings)
        try:
            self._receiver = await receiver.__aenter__()
        except _WRONG_SETTINGS as error:
            missing = isinstance(error, MessagingEntityNotFoundError)
            refused = QueueMissing if missing else QueueRefused
            raise refused(
                f"cannot open queue {self.name!r}: {error}; "
                "check its name and the connection string"
            ) from error
        except ServiceBusError as error:
            raise TransportError(f"cannot open queue {self.name!r}: {error}") from error
        self._ask = 1
        logger.info("receiving from queue %r", self.name)
        return self._receiver

    async def _lose(self) -> None:
        self._receiver, self._lost = None, self._receiver
        await self._close_lost()

    async def _close_lost(self) -> None:
        # Kept until it is closed: a stop may cut the closing off, and it is called again then.
        if self._lost is not None:
            try:
                await self._lost.close()
            except ServiceBusError as error:
                logger.info("closing: %s", error)
            self._lost = None

    @contextmanager
    def _settling(self, message: LockedMessage) -> Generator[ServiceBusReceiver]:
        if self.lease_seconds(message) <= 0:
            raise LeaseLost("its lock has expired")
        if self._receiver is None:
            raise TransportError(f"queue {self.name!r} is not open")
        try:
            yield self._receiver
        except MessageLockLostError as error:
            raise LeaseLost(str(error)) from error
        except (ServiceBusError, ValueError) as error:
            raise TransportError(str(error)) from error


class _OneLink(ServiceBusReceiver):
    """A receiver that ends with its link.

    The client's own would open and close its link from within every operation that finds it
    lost, and nothing keeps those apart: settlements that run together each open a connection,
    and all but one of them leak, still receiving; closes that run together break each other.
    """

    def __init__(self, **settings: Any) -> None:
        super().__init__(**settings)
        self._opened = False
        self._closing = asyncio.Lock()

    @classmethod
    def of(cls, settings: QueueSettings) -> ServiceBusReceiver:
        try:
            return cls._from_connection_string(
                settings.connection_string,
                queue_name=settings.queue_name,
                prefetch_count=0,
                retry_total=0,
            )
        except ValueError as error:
            raise BridgeError(
                f"AZURE_SERVICE_BUS_CONNECTION_STRING cannot be read: {error}"
            ) from error

    async def _open(self, timeout: float | None = None) -> None:
        if self._opened and not self._running:
            raise ServiceBusConnectionError(message="the link is closed")
        await super()._open(timeout)
        self._opened = True

    async def _close_handler(self) -> None:
        async with self._closing:
            await super()._close_handler()
