"""Storage queues and an event hub -> runs of transfers."""

import asyncio
import logging
from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, Final, Protocol

from azure.eventhub.aio import EventHubConsumerClient
from azure.storage.queue.aio import QueueClient

from activities.transfers.operators_files import Queue
from activities.transfers.store import SqlTransferStore
from workers.shared.bridges.consumer import (
    BridgeError,
    BridgeTotals,
    Consumer,
    Limits,
    QueueUnusable,
    Retry,
)
from workers.shared.bridges.event_hub import Checkpoints, EventHubTransport
from workers.shared.bridges.storage_queue import (
    LONGEST_HOLD,
    POISON,
    Encoding,
    StorageQueueTransport,
)
from workers.shared.health import Health
from workers.shared.register import Context
from workers.shared.services.bodies import Verdict
from workers.transfers.factory import intake_of
from workers.transfers.resources import QueueAddress, QueueAddresses, queue_addresses
from workers.transfers.settings import (
    APP_SETTINGS,
    EventHubSettings,
    StorageQueueSettings,
    queues_of,
)

if TYPE_CHECKING:
    from azure.identity.aio import DefaultAzureCredential

logger = logging.getLogger(__name__)


class Intake(Protocol):
    """What decides about the messages of one queue."""

    async def accept(self, raw: bytes, delivery_count: int, message_id: str | None) -> Verdict:
        """Body, deliveries before this one, message id -> what becomes of the message."""
        ...

    async def give_up(
        self, raw: bytes, delivery_count: int, message_id: str | None, reason: str
    ) -> Verdict:
        """What becomes of one that is not accepted although everything is available."""
        ...

    async def ready(self) -> bool:
        """Whether it can accept messages."""
        ...


IntakeOf = Callable[[str], Intake]
"""By the name of a queue."""

_ATTEMPTS: Final[Mapping[str, Any]] = {"retry_total": 1, "initial_backoff": 1}
"""Of one request, the second after a second: the consumer retries from there on."""
_LOOK_AGAIN: Final = 30.0
"""Seconds until a queue that could not be used is looked at again."""
_HEALTH: Final = 0.5
_LIMITS: Final = Limits(concurrency=16, in_flight=32, wait=2, quiet=3)
_HUB_LIMITS: Final = Limits(concurrency=32, in_flight=256, wait=1, quiet=3)


class StorageQueuesBridge:
    """Receives from several storage queues at once.

    A queue that cannot be used is named and looked at again, and holds no other up.

    Args:
        addresses: Of the queues.
        intake_of: Decides about the messages of each.
        encoding: How senders write bodies.
        health: Shows whether messages are received and accepted, each queue as a part.
        look_again: Seconds until a queue that could not be used is looked at again.
        retry: Of messages that are not accepted.
    """

    def __init__(
        self,
        addresses: QueueAddresses,
        intake_of: IntakeOf,
        *,
        encoding: Encoding = Encoding.AUTO,
        health: Health | None = None,
        look_again: float = _LOOK_AGAIN,
        retry: Retry | None = None,
    ) -> None:
        self._addresses = addresses
        self._intake_of = intake_of
        self._retry = retry or Retry()
        self._encoding = encoding
        self._health = health or Health()
        self._look_again = look_again
        self._entra = _Entra()

    async def run(self, stop: asyncio.Event, *, drain: bool = False) -> BridgeTotals:
        """Work until `stop` is set, or with `drain` until all queues are empty.

        Raises:
            BridgeError: None of the queues can be used, each of them for a reason of its own.
        """
        async with self._entra:
            return await self._run(stop, drain=drain)

    async def _run(self, stop: asyncio.Event, *, drain: bool) -> BridgeTotals:
        session = _Session(stop, len(self._addresses.queues))
        watches = [
            asyncio.create_task(self._show_health()),
            asyncio.create_task(session.watch()),
        ]
        try:
            async with asyncio.TaskGroup() as group:
                runs = [
                    group.create_task(self._queue(each, session, drain=drain))
                    for each in self._addresses.queues
                ]
        finally:
            for watch in watches:
                watch.cancel()
            self._health.ready = False
        if session.hopeless:
            reasons = (str(session.refused[name]) for name in sorted(session.refused))
            raise BridgeError("; ".join(reasons))
        return _sum([each.result() for each in runs])

    async def _queue(
        self, address: QueueAddress, session: "_Session", *, drain: bool
    ) -> BridgeTotals:
        while True:
            intake = self._intake_of(address.name)
            consumer = Consumer(
                self._transport(address),
                intake.accept,
                _LIMITS,
                ready=intake.ready,
                retry=self._retry,
                hold_while_unavailable=LONGEST_HOLD,
                give_up=intake.give_up,
                health=self._health.part(address.name),
            )
            try:
                return await consumer.run(session.stop, drain=drain)
            except QueueUnusable as error:
                session.refuse(address.name, error)
                if drain or session.hopeless:
                    return BridgeTotals()
                logger.error("%s; it is looked at again in %g s", error, self._look_again)
            try:
                async with asyncio.timeout(self._look_again):
                    await session.ended.wait()
                    return BridgeTotals()
            except TimeoutError:
                session.refused.pop(address.name, None)

    async def _show_health(self) -> None:
        """The bridge takes work as long as one of its queues does."""
        parts = [self._health.part(each.name) for each in self._addresses.queues]
        while True:
            self._health.ready = any(part.ready for part in parts)
            await asyncio.sleep(_HEALTH)

    def _transport(self, address: QueueAddress) -> StorageQueueTransport:
        return StorageQueueTransport(
            _client(address, self._entra),
            _client(address, self._entra, POISON),
            visibility_timeout=self._addresses.visibility_seconds,
            poll=self._addresses.poll_seconds,
            encoding=self._encoding,
        )


class _Session:
    """One run of the bridge: which queues could not be used, and when it ends."""

    def __init__(self, stop: asyncio.Event, queues: int) -> None:
        self.stop = stop
        self.ended = asyncio.Event()
        self.refused: dict[str, BridgeError] = {}
        self._queues = queues

    @property
    def hopeless(self) -> bool:
        """Whether none of the queues can be used."""
        return len(self.refused) == self._queues

    def refuse(self, queue: str, error: BridgeError) -> None:
        """Note that a queue cannot be used; the last one of all ends the run."""
        self.refused[queue] = error
        if self.hopeless:
            self.ended.set()

    async def watch(self) -> None:
        """End with the stop."""
        await self.stop.wait()
        self.ended.set()


async def receive_queues(
    context: Context, settings: StorageQueueSettings, stop: asyncio.Event, drain: bool
) -> BridgeTotals:
    """Receive events from storage queues and start their runs; the entry point of the register."""
    queues = queues_of(context.environment)
    addresses = queue_addresses(settings, tuple(queues))
    if addresses.unused:
        logger.info("%s: not used: %s", APP_SETTINGS, ", ".join(addresses.unused))
    for warning in addresses.warnings:
        logger.warning("%s", warning)
    bridge = StorageQueuesBridge(
        addresses,
        _intake_of(context, queues),
        encoding=Encoding(settings.encoding),
        health=context.health,
    )
    return await bridge.run(stop, drain=drain)


async def receive_hub(
    context: Context, settings: EventHubSettings, stop: asyncio.Event, drain: bool
) -> BridgeTotals:
    """Receive the events of a hub and route them; the entry point of the register."""
    intake = _intake_of(context, {})(settings.hub)
    return await run_event_hub(settings, intake, stop, drain=drain, health=context.health)


def _intake_of(context: Context, queues: Mapping[str, Queue]) -> IntakeOf:
    resources = context.resources
    known = SqlTransferStore(resources.database)
    return intake_of(context.client, resources.rejected, queues, known)


async def run_event_hub(
    settings: EventHubSettings,
    intake: Intake,
    stop: asyncio.Event,
    *,
    drain: bool,
    health: Health,
) -> BridgeTotals:
    """Receive the events of a hub until `stop` is set.

    Raises:
        BridgeError: The hub cannot be used, or a connection string cannot be read.
    """
    try:
        store = Checkpoints.from_connection_string(settings.checkpoints, settings.container)
        client = EventHubConsumerClient.from_connection_string(
            settings.connection_string,
            settings.group,
            eventhub_name=settings.hub,
            checkpoint_store=store,
            load_balancing_interval=5,
            partition_ownership_expiration_interval=30,
            **_ATTEMPTS,
        )
    except ValueError as error:
        raise BridgeError(f"the settings of the event hub cannot be read: {error}") from error
    consumer = Consumer(
        EventHubTransport(client, store),
        intake.accept,
        _HUB_LIMITS,
        ready=intake.ready,
        hold_while_unavailable=LONGEST_HOLD,
        give_up=intake.give_up,
        health=health,
    )
    return await consumer.run(stop, drain=drain)


class _Entra:
    """The credential of this process for Entra ID; nothing is loaded where no queue asks for it.

    `DefaultAzureCredential` takes what the machine has: environment variables of a service
    principal, a workload identity, a managed identity.
    """

    def __init__(self) -> None:
        self._credential: DefaultAzureCredential | None = None

    def credential(self) -> "DefaultAzureCredential":
        """For a client, which does not close it."""
        if self._credential is None:
            from azure.identity.aio import DefaultAzureCredential

            self._credential = DefaultAzureCredential()
        return self._credential

    async def __aenter__(self) -> None:
        """Nothing is opened before it is asked for."""

    async def __aexit__(self, *_: object) -> None:
        if self._credential is not None:
            await self._credential.close()
            self._credential = None


def _client(address: QueueAddress, entra: _Entra, suffix: str = "") -> QueueClient:
    try:
        if address.connection_string is not None:
            return QueueClient.from_connection_string(
                address.connection_string, address.name + suffix, **_ATTEMPTS
            )
        assert address.url is not None
        sas = (address.poison_sas if suffix else None) or address.sas
        return QueueClient.from_queue_url(
            address.url.rstrip("/") + suffix,
            credential=sas or entra.credential(),
            **_ATTEMPTS,
        )
    except ValueError as error:
        raise BridgeError(f"queue {address.name}: its address cannot be read: {error}") from error


def _sum(totals: Sequence[BridgeTotals]) -> BridgeTotals:
    done = BridgeTotals()
    for each in totals:
        done = done.plus(
            received=each.received,
            settled=each.settled,
            dead_lettered=each.dead_lettered,
            abandoned=each.abandoned,
        )
    return done
