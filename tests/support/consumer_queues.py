"""Queues of every kind that the consumer receives from, one fresh queue for each test."""

from abc import ABC, abstractmethod
from collections.abc import AsyncGenerator, Awaitable, Callable
from contextlib import asynccontextmanager
from itertools import count
from pathlib import Path
from typing import Any

from azure.eventhub import EventData
from azure.eventhub.aio import EventHubConsumerClient, EventHubProducerClient
from azure.servicebus import ServiceBusMessage, ServiceBusSubQueue
from azure.servicebus.aio import ServiceBusClient
from azure.storage.queue.aio import QueueClient

from adapters.azure.blobs import AzureBlobs
from emulators.service_bus import HubSettings, ServiceBusEmulator
from emulators.service_bus import QueueSettings as EmulatedQueue
from emulators.tests.clients import quick_client
from stack.azurite import azurite
from tests.support.aws import cloud, clouds
from tests.support.forgotten_connections import collect_forgotten_connections
from tests.support.memory_queue import MemoryQueue, MemoryTransport
from tests.support.sqs import Pair, pair_of_queues
from workers.imports.settings import QueueSettings
from workers.shared.bridges.consumer import Accept, Consumer, Limits, Retry
from workers.shared.bridges.event_hub import Checkpoints, EventHubTransport, HubMessage
from workers.shared.bridges.service_bus import ServiceBusTransport
from workers.shared.bridges.sqs import Polling, RedriveTarget, SqsQueue, SqsTransport
from workers.shared.bridges.storage_queue import POISON, StorageQueueTransport, StoredMessage
from workers.shared.bridges.transport import Transport
from workers.shared.services.bodies import DeadLetter

LEASE = 3
"""Seconds of a lease, in every queue."""
QUICK = Retry(first_pause=0.05, longest_pause=0.2, hold=0.5)

KINDS = ["memory", "service-bus", "storage-queue", "event-hub", *clouds()]


class ConsumedQueue(ABC):
    """A queue and what a test looks at."""

    keeps_order = True
    """Whether a message that is given back can be delayed."""
    names_missing = True
    """Whether a queue that does not exist differs from one that refuses."""
    is_log = False
    """Whether everything behind an undecided message comes again, and deliveries are counted by
    the process that receives."""
    quiet = 1.5
    """Seconds that it stays empty before a drain ends."""

    @abstractmethod
    def transport(self) -> Transport[Any]:
        """A new one, as another process would have it."""

    @abstractmethod
    async def send(self, *bodies: str) -> None:
        """Send bodies in order."""

    @abstractmethod
    async def left(self) -> int:
        """Messages that are not settled."""

    @abstractmethod
    async def dead(self) -> list[tuple[str, str, str]]:
        """Body, reason and description of every dead letter; takes them."""

    @abstractmethod
    async def remove(self) -> None:
        """Make the queue unknown."""

    def consumer(self, accept: Accept, limits: Limits | None = None, **more: Any) -> Consumer[Any]:
        limits = limits or Limits(wait=1, quiet=self.quiet)
        return Consumer(self.transport(), accept, limits, **{"retry": QUICK, **more})

    async def is_empty(self) -> bool:
        return await self.left() == 0


class InMemory(ConsumedQueue):
    def __init__(self) -> None:
        self._queue = MemoryQueue(lease=LEASE)

    def transport(self) -> MemoryTransport:
        return MemoryTransport(self._queue)

    async def send(self, *bodies: str) -> None:
        self._queue.send(*bodies)

    async def left(self) -> int:
        return self._queue.left

    async def dead(self) -> list[tuple[str, str, str]]:
        return [(body.decode(), *why) for body, *why in self._queue.dead]

    async def remove(self) -> None:
        self._queue.is_there = False


class OfServiceBus(ConsumedQueue):
    keeps_order = False
    names_missing = False

    def __init__(self, emulator: ServiceBusEmulator, name: str) -> None:
        self._emulator = emulator
        self._name = name

    def transport(self) -> ServiceBusTransport:
        settings = QueueSettings(
            connection_string=self._emulator.connection_string,
            queue_name=self._name,
            max_messages=10,
            max_wait_seconds=1,
        )
        return ServiceBusTransport(settings)

    async def send(self, *bodies: str) -> None:
        async with self._client() as client, client.get_queue_sender(self._name) as sender:
            await sender.send_messages([ServiceBusMessage(body) for body in bodies])

    async def left(self) -> int:
        counts = self._emulator.counts(self._name)
        return counts.active + counts.locked

    async def dead(self) -> list[tuple[str, str, str]]:
        async with self._client() as client:
            receiver = client.get_queue_receiver(
                self._name, sub_queue=ServiceBusSubQueue.DEAD_LETTER
            )
            async with receiver:
                letters = await receiver.peek_messages(max_message_count=100)
        return [
            (str(one), one.dead_letter_reason or "", one.dead_letter_error_description or "")
            for one in letters
        ]

    async def remove(self) -> None:
        self._name = "no-such-queue"

    def _client(self) -> ServiceBusClient:
        return quick_client(self._emulator.connection_string)


class OfSqs(ConsumedQueue):
    def __init__(self, pair: Pair) -> None:
        self._pair = pair

    def transport(self) -> SqsTransport:
        queue = SqsQueue(self._pair.client, self._pair.url)
        polling = Polling(visibility_timeout=LEASE)
        return SqsTransport(queue, RedriveTarget(queue, whole=100).put, polling)

    async def send(self, *bodies: str) -> None:
        await self._pair.send(bodies)

    async def left(self) -> int:
        return await self._pair.left()

    async def dead(self) -> list[tuple[str, str, str]]:
        return [
            (
                letter["Body"],
                letter["MessageAttributes"]["Reason"]["StringValue"],
                letter["MessageAttributes"]["Description"]["StringValue"],
            )
            for letter in await self._pair.dead()
        ]

    async def remove(self) -> None:
        await self._pair.client.delete_queue(QueueUrl=self._pair.url)


class OfStorage(ConsumedQueue):
    def __init__(self, account: str, name: str) -> None:
        self._account = account
        self._name = name
        self._why: dict[str, DeadLetter] = {}

    def transport(self) -> StorageQueueTransport:
        return NotingTransport(
            self._client(self._name),
            self._client(self._name + POISON),
            self._why,
            visibility_timeout=LEASE,
            poll=0.1,
        )

    async def send(self, *bodies: str) -> None:
        async with self._client(self._name) as client:
            for body in bodies:
                await client.send_message(body)

    async def left(self) -> int:
        async with self._client(self._name) as client:
            return (await client.get_queue_properties()).approximate_message_count or 0

    async def dead(self) -> list[tuple[str, str, str]]:
        async with self._client(self._name + POISON) as client:
            letters = [each.content async for each in client.receive_messages()]
        # A storage queue has no room for the reasons.
        why = ((text, self._why[text]) for text in letters)
        return [(text, verdict.reason, verdict.description) for text, verdict in why]

    async def remove(self) -> None:
        async with self._client(self._name) as client:
            await client.delete_queue()

    def _client(self, name: str) -> QueueClient:
        return QueueClient.from_connection_string(self._account, name, retry_total=0)


class OfEventHub(ConsumedQueue):
    """One partition, so that what is sent in order is received in order."""

    is_log = True

    def __init__(self, emulator: ServiceBusEmulator, account: str, name: str) -> None:
        self._emulator = emulator
        self._account = account
        self._name = name
        self._why: list[tuple[str, str, str]] = []

    def transport(self) -> EventHubTransport:
        store = self._store()
        client = EventHubConsumerClient.from_connection_string(
            self._emulator.connection_string,
            "$Default",
            eventhub_name=self._name,
            checkpoint_store=store,
            load_balancing_interval=0.3,
            partition_ownership_expiration_interval=LEASE,
            retry_total=0,
        )
        return NotingHubTransport(client, store, self._why)

    async def send(self, *bodies: str) -> None:
        client = EventHubProducerClient.from_connection_string(
            self._emulator.connection_string, eventhub_name=self._name
        )
        async with client:
            await client.send_batch([EventData(body) for body in bodies])

    async def left(self) -> int:
        namespace = self._emulator.connection_string.split("//")[1].split(";")[0]
        async with self._store() as store:
            checkpoints = await store.list_checkpoints(namespace, self._name, "$Default")
        settled = sum(int(each["sequence_number"] or 0) + 1 for each in checkpoints)
        return sum(self._emulator.events(self._name)) - settled

    async def dead(self) -> list[tuple[str, str, str]]:
        return self._why

    async def remove(self) -> None:
        self._name = "no-such-hub"

    def _store(self) -> Checkpoints:
        return Checkpoints.from_connection_string(self._account, "checkpoints")


class NotingHubTransport(EventHubTransport):
    """Notes why events were set aside."""

    def __init__(
        self,
        client: EventHubConsumerClient,
        store: Checkpoints,
        why: list[tuple[str, str, str]],
    ) -> None:
        super().__init__(client, store, checkpoint_seconds=0.2)
        self._why = why

    async def dead_letter(self, message: HubMessage, verdict: DeadLetter) -> None:
        await super().dead_letter(message, verdict)
        self._why.append((message.body.decode(), verdict.reason, verdict.description))


class NotingTransport(StorageQueueTransport):
    """Notes why messages were set aside."""

    def __init__(
        self, queue: QueueClient, poison: QueueClient, why: dict[str, DeadLetter], **more: Any
    ) -> None:
        super().__init__(queue, poison, **more)
        self._why = why

    async def dead_letter(self, message: StoredMessage, verdict: DeadLetter) -> None:
        self._why[message.text] = verdict
        await super().dead_letter(message, verdict)


MakeQueue = Callable[[], Awaitable[ConsumedQueue]]


@asynccontextmanager
async def queue_maker(kind: str, folder: Path) -> AsyncGenerator[MakeQueue]:
    """What makes queues of one of `KINDS`."""
    if kind == "memory":

        async def in_memory() -> ConsumedQueue:
            return InMemory()

        yield in_memory
    elif kind == "service-bus":
        names = [f"queue-{number}" for number in range(50)]
        queues = [EmulatedQueue(name, LEASE, 10) for name in names]
        async with ServiceBusEmulator(queues) as emulator:
            numbers = count()

            async def of_service_bus() -> ConsumedQueue:
                return OfServiceBus(emulator, names[next(numbers)])

            yield of_service_bus
    elif kind == "storage-queue":
        folder.mkdir(exist_ok=True)
        async with azurite(folder) as account:
            numbers = count()

            async def of_storage() -> ConsumedQueue:
                name = f"queue-{next(numbers)}"
                async with QueueClient.from_connection_string(account, name) as client:
                    await client.create_queue()
                return OfStorage(account, name)

            yield of_storage
    elif kind == "event-hub":
        folder.mkdir(exist_ok=True)
        hubs = [HubSettings(f"hub-{number}", 1) for number in range(50)]
        async with azurite(folder) as account, ServiceBusEmulator((), hubs=hubs) as emulator:
            await AzureBlobs(account, "checkpoints").create_container()
            numbers = count()

            async def of_event_hub() -> ConsumedQueue:
                return OfEventHub(emulator, account, hubs[next(numbers)].name)

            yield of_event_hub
            collect_forgotten_connections()
    else:
        async with cloud(kind, folder) as started:

            async def of_sqs() -> ConsumedQueue:
                return OfSqs(await pair_of_queues(started.clients.sqs))

            yield of_sqs
