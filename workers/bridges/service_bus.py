"""Azure Service Bus queue -> workflow: receive in peek-lock, start, settle.

A message is settled only after Temporal has accepted its start, so a bridge that dies at any
moment loses nothing: what it had not settled comes back when its lock ends, and a start that
was accepted already is met as a duplicate then.
"""

import asyncio
import logging
from collections.abc import Awaitable, Callable, Sequence
from datetime import UTC, datetime
from typing import Any

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

from workers.bridges.retry import Accept, Retry
from workers.bridges.stop import Stop
from workers.bridges.totals import BridgeError, BridgeTotals
from workers.services.verdicts import Abandon, DeadLetter, Settle, Verdict
from workers.settings import QueueSettings

logger = logging.getLogger(__name__)

_WRONG_SETTINGS = (
    MessagingEntityNotFoundError,
    ServiceBusAuthenticationError,
    ServiceBusAuthorizationError,
)

_POLL = 2.0
"""Seconds that one receive waits at most, so that none can hold up a stop."""
_MORE = 0.05
"""Seconds that a receive waits for a batch when messages have just been coming in."""
_SETTLE_AGAIN = 0.2
# Seconds from the wish to stop until each is cut off: together they keep a stop within 10 s.
_STOP_STARTING = 4.0
_STOP_SETTLING = 6.0
_STOP_CLOSING = 8.0


class ServiceBusBridge:
    """Receives messages of one queue, has them accepted, carries out the verdicts."""

    def __init__(
        self,
        settings: QueueSettings,
        accept: Accept,
        *,
        ready: Callable[[], Awaitable[bool]] | None = None,
        retry: Retry | None = None,
    ) -> None:
        """Set up; nothing is opened before `run`.

        Args:
            settings: The queue, how many messages at once, and how long an empty queue is
                waited on before a drain ends.
            accept: Decides about a message; may be called again with the same one.
            ready: Tells whether what `accept` needs is back, so that nothing is received
                before. Without it a pause has to do.
            retry: How long to hold messages, and to pause before trying again.
        """
        self._settings = settings
        self._accept = accept
        self._ready = ready
        self._retry = retry or Retry()

    async def run(self, stop: asyncio.Event, *, drain: bool = False) -> BridgeTotals:
        """Work until `stop` is set.

        Args:
            stop: Stop receiving, finish the starts under way, settle, close: within 10 s.
            drain: End when the queue has stayed empty for `max_wait_seconds`, or when messages
                had to be given back because Temporal is away.

        Raises:
            BridgeError: The connection string cannot be read, or the queue does not exist or
                does not let us in.
        """
        session = _Session(self._settings, self._accept, self._ready, self._retry, stop, drain)
        await session.work()
        return session.totals


class _OneLink(ServiceBusReceiver):
    """A receiver that is done with when its link is lost.

    The client's own would open and close its link from within every operation that meets it
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


class _Session:
    """One run of the bridge."""

    def __init__(
        self,
        settings: QueueSettings,
        accept: Accept,
        ready: Callable[[], Awaitable[bool]] | None,
        retry: Retry,
        stop: asyncio.Event,
        drain: bool,
    ) -> None:
        self.totals = BridgeTotals()
        self._settings = settings
        self._accept = accept
        self._ready = ready
        self._retry = retry
        self._stop = Stop(stop)
        self._drain = drain
        self._receiver: ServiceBusReceiver | None = None
        self._pauses = retry.pauses()
        self._away = False
        # Settlements of one batch may be under way while the next is received, not more.
        self._room = asyncio.Semaphore(2 * settings.max_messages)

    async def work(self) -> None:
        watch = asyncio.create_task(self._stop.watch())
        try:
            if await self._connect(first=True):
                async with (
                    self._stop.deadline_after_stop(_STOP_SETTLING) as limit,
                    asyncio.TaskGroup() as settlements,
                ):
                    await self._serve(settlements)
                if limit.expired():
                    logger.warning("stopped before everything was settled; the rest comes back")
        finally:
            await self._disconnect()
            watch.cancel()

    async def _connect(self, *, first: bool = False) -> bool:
        """Open a receiver, however long that takes; False when the stop came first."""
        name = self._settings.queue_name
        while not self._stop.is_set:
            receiver = _OneLink.of(self._settings)
            try:
                async with self._stop.deadline_after_stop(0):
                    self._receiver = await receiver.__aenter__()
                    logger.info("receiving from queue %r", name)
                    return True
            except _WRONG_SETTINGS as error:
                if first:
                    raise BridgeError(
                        f"cannot open queue {name!r}: {error}; "
                        "check its name and the connection string"
                    ) from error
                logger.warning("cannot open queue %r: %s", name, error)
            except ServiceBusError as error:
                logger.warning("cannot open queue %r: %s", name, error)
            await self._stop.pause(next(self._pauses))
        return False

    async def _disconnect(self) -> None:
        receiver, self._receiver = self._receiver, None
        if receiver is None:
            return
        async with self._stop.deadline_after_stop(_STOP_CLOSING):
            try:
                await receiver.close()
            except ServiceBusError as error:
                logger.info("closing: %s", error)

    async def _serve(self, settlements: asyncio.TaskGroup) -> None:
        while self._receiver is not None and not await self._take(self._receiver, settlements):
            await self._disconnect()
            await self._stop.pause(next(self._pauses))
            await self._connect()

    async def _take(self, receiver: ServiceBusReceiver, settlements: asyncio.TaskGroup) -> bool:
        """Take messages in; True when there is no more to do, False when the link is lost."""
        clock = asyncio.get_running_loop().time
        quiet_since, ask = clock(), 1
        while not self._stop.is_set:
            left = self._settings.max_wait_seconds - (clock() - quiet_since)
            if self._drain and left <= 0:
                return True
            # A receive of several waits for a gap after the first, so while little comes in
            # one is asked for at a time: a lone message is then taken in at once.
            wait = _MORE if ask > 1 else _POLL
            wait = min(wait, left) if self._drain else wait
            began = clock()
            try:
                messages = await self._receive(receiver, ask, wait)
            except ServiceBusError as error:
                logger.warning("receiving: %s; opening the queue again", error)
                return False
            if messages:
                await self._start(messages, settlements)
                ask = min(ask * 2, self._settings.max_messages) if len(messages) == ask else 1
                quiet_since = clock()
            elif clock() - began < wait / 2 and not self._stop.is_set:
                logger.warning("the link closed by itself; opening the queue again")
                return False
            else:
                ask = 1
            if self._away and not await self._is_back():
                return True
        return True

    async def _receive(
        self, receiver: ServiceBusReceiver, ask: int, wait: float
    ) -> Sequence[ServiceBusReceivedMessage]:
        async with self._stop.deadline_after_stop(0):
            messages = await receiver.receive_messages(ask, wait)
            if messages:
                self.totals = self.totals.plus(received=len(messages))
                self._pauses = self._retry.pauses()
            return messages
        return ()

    async def _is_back(self) -> bool:
        """Wait until Temporal is back; False when the run ends before."""
        if self._drain:
            return False
        for pause in self._retry.pauses():
            if await self._stop.pause(pause):
                return False
            if self._ready is None or await self._ready():
                self._away = False
                return True
        raise AssertionError("pauses have no end")

    async def _start(
        self, messages: Sequence[ServiceBusReceivedMessage], settlements: asyncio.TaskGroup
    ) -> None:
        undecided = list(messages)

        async def handle(message: ServiceBusReceivedMessage) -> None:
            verdict = await self._retry.run(
                self._accept,
                _body(message),
                message.delivery_count or 0,
                _message_id(message),
                self._stop.pause,
            )
            self._away = self._away or isinstance(verdict, Abandon)
            await self._room.acquire()
            undecided.remove(message)
            settlements.create_task(self._settle(message, verdict))

        keeper = settlements.create_task(self._keep_locked(undecided))
        try:
            async with (
                self._stop.deadline_after_stop(_STOP_STARTING),
                asyncio.TaskGroup() as starts,
            ):
                for message in messages:
                    starts.create_task(handle(message))
        finally:
            keeper.cancel()

    async def _keep_locked(self, messages: list[ServiceBusReceivedMessage]) -> None:
        """Renew the locks of messages that are still in the list, at half their time."""
        while messages:
            await asyncio.sleep(max(0.2, min(map(_lock_seconds, messages)) / 2))
            for message in list(messages):
                if self._receiver is None:
                    break
                try:
                    await self._receiver.renew_message_lock(message)
                except (ServiceBusError, ValueError) as error:
                    logger.warning("lock of message %r not renewed: %s", message.message_id, error)

    async def _settle(self, message: ServiceBusReceivedMessage, verdict: Verdict) -> None:
        try:
            # A lock outlives the link it came through: what one link could not settle, the
            # next one can.
            while _lock_seconds(message) > 0:
                if self._receiver is not None:
                    try:
                        await self._carry_out(self._receiver, message, verdict)
                        return
                    except MessageLockLostError:
                        break
                    except (ServiceBusError, ValueError) as error:
                        logger.info("message %r not settled yet: %s", message.message_id, error)
                await asyncio.sleep(_SETTLE_AGAIN)
            logger.warning("message %r lost its lock; it comes back", message.message_id)
        finally:
            self._room.release()

    async def _carry_out(
        self,
        receiver: ServiceBusReceiver,
        message: ServiceBusReceivedMessage,
        verdict: Verdict,
    ) -> None:
        match verdict:
            case Settle():
                await receiver.complete_message(message)
                self.totals = self.totals.plus(settled=1)
            case DeadLetter(reason, description):
                await receiver.dead_letter_message(
                    message, reason=reason, error_description=description
                )
                self.totals = self.totals.plus(dead_lettered=1)
            case Abandon():
                await receiver.abandon_message(message)
                self.totals = self.totals.plus(abandoned=1)


def _lock_seconds(message: ServiceBusReceivedMessage) -> float:
    until = message.locked_until_utc
    return (until - datetime.now(UTC)).total_seconds() if until else 0.0


def _body(message: ServiceBusReceivedMessage) -> bytes:
    body = message.body
    if isinstance(body, bytes):
        return body
    if message.body_type is AmqpMessageBodyType.DATA:
        return b"".join(body)
    # A map or a sequence is no body that docflow reads; as text it is refused and recorded.
    return str(body).encode("utf-8", errors="replace")


def _message_id(message: ServiceBusReceivedMessage) -> str | None:
    return None if message.message_id is None else str(message.message_id)[:128]
