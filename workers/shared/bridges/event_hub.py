"""Azure Event Hubs -> handler: partitions as logs, checkpoints that never pass what is undecided.

An event hub has no leases: the owner of a partition reads it in order. Events are kept in order
until they are settled, and the checkpoint of a partition moves up to the first one that is not. So
a consumer that dies at any moment loses nothing: what lies behind its checkpoint is delivered
again, and what was accepted already is met as a duplicate then.
"""

import asyncio
import logging
import math
from collections import deque
from collections.abc import Callable, Iterable, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Final, cast

from azure.core.exceptions import AzureError
from azure.eventhub import EventData
from azure.eventhub.aio import EventHubConsumerClient
from azure.eventhub.exceptions import AuthenticationError, ConnectError, EventHubError
from azure.eventhub.extensions.checkpointstoreblobaio import BlobCheckpointStore

from workers.shared.bridges.transport import LeaseLost, QueueMissing, QueueRefused, TransportError
from workers.shared.services.bodies import DeadLetter

if TYPE_CHECKING:
    from azure.eventhub import CloseReason
    from azure.eventhub.aio import PartitionContext

logger = logging.getLogger(__name__)

FROM_THE_BEGINNING: Final = "-1"
"""Where a partition without a checkpoint is read from: the newest would leave events out."""
_HELD: Final = 500
"""Events that wait to be received, over all partitions."""
_PREFETCH: Final = 100


@dataclass(slots=True, eq=False)
class HubMessage:
    """An event in flight."""

    event: EventData = field(repr=False)
    body: bytes = field(repr=False)
    message_id: str
    partition: "_Partition"
    delivery_count: int = 0
    settled: bool = False


@dataclass(slots=True, eq=False)
class _Partition:
    """A partition as long as it is ours."""

    context: "PartitionContext"
    in_order: deque[HubMessage] = field(default_factory=deque[HubMessage])
    """From the first event that is not settled on."""
    reached: EventData | None = None
    """The last event before that one; its checkpoint is not written yet."""
    ours: bool = True

    def advance(self) -> None:
        """Move up over what is settled."""
        while self.in_order and self.in_order[0].settled:
            self.reached = self.in_order.popleft().event


def body_of(event: EventData) -> bytes:
    """The bytes of an event."""
    raw: object = event.body
    if isinstance(raw, bytes):
        return raw
    if isinstance(raw, str) or not isinstance(raw, Iterable):
        return str(raw).encode()
    parts = cast(Iterable[object], raw)
    return b"".join(each if isinstance(each, bytes) else str(each).encode() for each in parts)


class Checkpoints(BlobCheckpointStore):
    """The checkpoint store, which also knows which partitions some consumer reads.

    That of another consumer is known to be read once its owner has renewed it: a consumer that
    died looks like a live one until its ownership expires.
    """

    def __init__(self, *args: Any, **options: Any) -> None:
        super().__init__(*args, **options)
        self.forget()

    @classmethod
    def from_connection_string(
        cls, conn_str: str, container_name: str, *, credential: Any = None, **options: Any
    ) -> "Checkpoints":
        """A store in a container of a storage account."""
        made = super().from_connection_string(
            conn_str, container_name, credential=credential, **options
        )
        return cast(Checkpoints, made)

    def forget(self) -> None:
        """Begin anew, with a client that has claimed nothing yet."""
        self.read: set[str] = set()
        self._first_seen: dict[str, str] = {}

    async def list_ownership(self, *args: Any, **options: Any) -> Iterable[dict[str, Any]]:
        """The owners of partitions; the client asks before it claims some."""
        owners = list(await super().list_ownership(*args, **options))
        for each in owners:
            partition, version = each["partition_id"], each["etag"]
            if each["owner_id"] and self._first_seen.setdefault(partition, version) != version:
                self.read.add(partition)
        return owners

    async def claim_ownership(
        self, ownership_list: Iterable[dict[str, Any]], **options: Any
    ) -> Iterable[dict[str, Any]]:
        """Make partitions this consumer's, as far as no other one is faster."""
        claimed = list(await super().claim_ownership(ownership_list, **options))
        self.read |= {each["partition_id"] for each in claimed if each["owner_id"]}
        return claimed


class EventHubTransport:
    """A consumer group of an event hub as the consumer needs it.

    Dead letters count as settled: their record holds them, and the hub keeps every event as long
    as its retention says.

    Args:
        client: Of the consumer group, with a checkpoint store; this transport closes it.
        checkpoints: That store; this transport closes it too.
        body: Makes the body that is decided about of an event.
        checkpoint_seconds: Between two writes of the checkpoints.
    """

    def __init__(
        self,
        client: EventHubConsumerClient,
        checkpoints: Checkpoints,
        *,
        body: Callable[[EventData], bytes] = body_of,
        checkpoint_seconds: float = 1.0,
    ) -> None:
        self.name = client.eventhub_name
        self._client = client
        self._checkpoints = checkpoints
        self._body = body
        self._checkpoint_seconds = checkpoint_seconds
        self._arrived: asyncio.Queue[HubMessage] = asyncio.Queue(_HELD)
        self._all: frozenset[str] = frozenset()
        """Ids of the partitions of the hub."""
        self._partitions: dict[str, _Partition] = {}
        self._tasks: list[asyncio.Task[None]] = []
        self._delayed: set[asyncio.TimerHandle] = set()
        self._problem: Exception | None = None

    async def receive(self, most: int, wait: float) -> Sequence[HubMessage]:
        """Receive events; those of a partition come in order.

        There is no answer without events before every partition is read by some consumer.
        """
        if not self._tasks or self._tasks[0].done():
            await self._open()
        while True:
            found = await self._next(most, wait)
            if not found and self._problem is not None:
                problem, self._problem = self._problem, None
                raise _translated(problem, self.name)
            if found or self._checkpoints.read >= self._all or self._tasks[0].done():
                return found

    async def _next(self, most: int, wait: float) -> Sequence[HubMessage]:
        found: list[HubMessage] = []
        with suppress(TimeoutError):
            async with asyncio.timeout(wait):
                found.append(await self._arrived.get())
        while len(found) < most and not self._arrived.empty():
            found.append(self._arrived.get_nowait())
        return [each for each in found if each.partition.ours]

    def lease_seconds(self, message: HubMessage) -> float:
        """There are no leases."""
        return math.inf

    async def extend(self, message: HubMessage) -> None:
        """There is nothing to renew."""

    async def complete(self, message: HubMessage) -> None:
        """Let the checkpoint pass an event, once everything before it is settled too."""
        self._check(message)
        message.settled = True
        message.partition.advance()

    async def abandon(self, message: HubMessage, delay: int) -> None:
        """Deliver an event again, from memory."""
        self._check(message)
        message.delivery_count += 1

        def again() -> None:
            self._delayed.discard(handle)
            if message.partition.ours:
                self._put_again(message)

        handle = asyncio.get_running_loop().call_later(delay, again)
        self._delayed.add(handle)

    async def dead_letter(self, message: HubMessage, verdict: DeadLetter) -> None:
        """Settle an event that can never be accepted."""
        await self.complete(message)

    async def close(self) -> None:
        """Write the checkpoints, and give the partitions to others."""
        for handle in self._delayed:
            handle.cancel()
        await self._write_checkpoints()
        # The client does not wait for a callback that a full queue blocks.
        for task in self._tasks:
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)
        with suppress(EventHubError, AzureError):
            await self._client.close()
        await self._checkpoints.close()

    def _check(self, message: HubMessage) -> None:
        if not message.partition.ours:
            raise LeaseLost(f"{self.name}: {message.message_id} is another consumer's by now")

    def _put_again(self, message: HubMessage) -> None:
        try:
            self._arrived.put_nowait(message)
        except asyncio.QueueFull:
            handle = asyncio.get_running_loop().call_later(1.0, self._put_again, message)
            self._delayed.add(handle)

    async def _open(self) -> None:
        """Begin to receive; the client does so in tasks of its own from then on.

        Raises:
            TransportError: The hub cannot be used; the client alone would only log it.
        """
        try:
            properties = await self._client.get_eventhub_properties()
        except (EventHubError, AzureError) as error:
            raise _translated(error, self.name) from error
        self._all = frozenset(properties["partition_ids"])
        self._checkpoints.forget()
        for task in self._tasks:
            task.cancel()
        self._tasks = [
            asyncio.create_task(self._receive_all()),
            asyncio.create_task(self._keep_checkpoints()),
        ]

    async def _receive_all(self) -> None:
        try:
            await self._client.receive(
                self._take,
                prefetch=_PREFETCH,
                starting_position=FROM_THE_BEGINNING,
                on_error=self._note,
                on_partition_initialize=self._begin,
                on_partition_close=self._end,
            )
        except (EventHubError, AzureError) as error:
            self._problem = error

    async def _take(self, context: "PartitionContext", event: EventData | None) -> None:
        if event is None:
            return
        partition = self._partitions[context.partition_id]
        name = f"{context.partition_id}:{event.sequence_number}"
        message = HubMessage(event, self._body(event), name, partition)
        partition.in_order.append(message)
        await self._arrived.put(message)

    async def _begin(self, context: "PartitionContext") -> None:
        # Read from its checkpoint again: what was in flight before comes once more.
        await self._end(context, None)
        self._partitions[context.partition_id] = _Partition(context)

    async def _end(self, context: "PartitionContext", reason: "CloseReason | None") -> None:
        partition = self._partitions.pop(context.partition_id, None)
        if partition is not None:
            partition.ours = False

    async def _note(self, context: "PartitionContext | None", error: Exception) -> None:
        logger.warning("event hub %s: %s", self.name, type(error).__name__)
        self._problem = error

    async def _keep_checkpoints(self) -> None:
        while True:
            await asyncio.sleep(self._checkpoint_seconds)
            await self._write_checkpoints()

    async def _write_checkpoints(self) -> None:
        for partition in list(self._partitions.values()):
            reached = partition.reached
            if reached is None or not partition.ours:
                continue
            try:
                await partition.context.update_checkpoint(reached)
            except (EventHubError, AzureError) as error:
                # Events behind it come again, and are met as duplicates; the next round writes it.
                logger.warning(
                    "event hub %s: the checkpoint of partition %s was not written (%s)",
                    self.name,
                    partition.context.partition_id,
                    type(error).__name__,
                )
                continue
            if partition.reached is reached:
                partition.reached = None


def _translated(error: Exception, name: str) -> TransportError:
    """What the client raised, without addresses or signatures."""
    check = "check the connection string, the name of the hub and the consumer group"
    text = str(error).casefold()
    if isinstance(error, AuthenticationError):
        if "not-found" in text or "could not be found" in text or "404" in text:
            return QueueMissing(f"there is no event hub {name}; {check}")
        return QueueRefused(f"event hub {name} does not let us in; {check}")
    if isinstance(error, ConnectError) and "not-found" in text:
        return QueueMissing(f"there is no event hub {name}; {check}")
    return TransportError(f"event hub {name}: {type(error).__name__}")
