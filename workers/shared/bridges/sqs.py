"""SQS queue -> handler: long polls, visibility timeouts as leases, dead letters in a queue."""

import asyncio
import json
from collections.abc import Awaitable, Callable, Generator, Hashable, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from datetime import datetime
from typing import TYPE_CHECKING, Any, Final, cast

from adapters.aws.session import CREDENTIALS, Missing, aws, has_code
from adapters.ports.errors import Denied, PortError
from workers.shared.bridges.consumer import Accept, BridgeTotals, Consumer, Limits, Retry
from workers.shared.bridges.transport import (
    LeaseLost,
    NotDeadLettered,
    QueueMissing,
    QueueRefused,
    TransportError,
    moment_of,
)
from workers.shared.health import Health
from workers.shared.services.bodies import DeadLetter

if TYPE_CHECKING:
    from types_aiobotocore_sqs import SQSClient
    from types_aiobotocore_sqs.type_defs import MessageTypeDef


RECEIVED_AT_ONCE: Final = 10
"""Messages that one receive brings at most."""
ATTRIBUTES: Final = 10
"""Of a message, at most."""


@dataclass(slots=True)
class Received:
    """A message in flight."""

    text: str
    message_id: str
    receives: int
    """Including this one."""
    handle: str = field(repr=False)
    group: str | None = None
    """Of a FIFO queue: what must not be overtaken by what."""
    attributes: Mapping[str, Any] = field(default_factory=dict[str, Any], repr=False)
    sent_at: datetime | None = None
    """When the queue took it; UTC."""
    is_dead_lettered: bool = False
    """It is among the dead letters, and has only to be deleted."""

    @property
    def body(self) -> bytes:
        """The body as the intake reads it."""
        return self.text.encode("utf-8", "surrogatepass")

    @property
    def delivery_count(self) -> int:
        """Receives before this one."""
        return self.receives - 1


class SqsQueue:
    """A queue; every method raises the errors of `adapters.aws.session.aws`.

    Args:
        client: Of SQS.
        url: Of the queue.
        polls: Shared by queues whose long polls must leave connections of the client to others.
    """

    def __init__(
        self, client: "SQSClient", url: str, polls: asyncio.Semaphore | None = None
    ) -> None:
        self.url = url
        self.name = url.rsplit("/", 1)[-1]
        self._client = client
        self._polls = polls or asyncio.Semaphore()

    async def receive(self, most: int, wait: int, visibility_timeout: int) -> Sequence[Received]:
        """Receive messages.

        Args:
            most: How many.
            wait: Seconds to wait for the first message.
            visibility_timeout: Seconds that they stay hidden from others.
        """
        async with self._polls:
            with aws(f"receive from {self.name}"):
                got = await self._client.receive_message(
                    QueueUrl=self.url,
                    MaxNumberOfMessages=min(most, RECEIVED_AT_ONCE),
                    WaitTimeSeconds=wait,
                    VisibilityTimeout=visibility_timeout,
                    MessageSystemAttributeNames=[
                        "ApproximateReceiveCount",
                        "MessageGroupId",
                        "SentTimestamp",
                    ],
                    MessageAttributeNames=["All"],
                )
        return [_received(message) for message in got.get("Messages", [])]

    async def change_visibility(self, message: Received, seconds: int) -> None:
        """Hide a message from now on for so long; 0 gives it back at once."""
        with aws(f"hide a message of {self.name}"):
            await self._client.change_message_visibility(
                QueueUrl=self.url, ReceiptHandle=message.handle, VisibilityTimeout=seconds
            )

    async def delete(self, message: Received) -> None:
        """Settle a message."""
        with aws(f"delete a message of {self.name}"):
            await self._client.delete_message(QueueUrl=self.url, ReceiptHandle=message.handle)

    async def dead_letters(self) -> "DeadLetters | None":
        """The queue that its redrive policy names; None: there is none."""
        with aws(f"read the redrive policy of {self.name}"):
            got = await self._client.get_queue_attributes(
                QueueUrl=self.url, AttributeNames=["RedrivePolicy"]
            )
        policy = json.loads(got.get("Attributes", {}).get("RedrivePolicy") or "{}")
        target = policy.get("deadLetterTargetArn")
        if not target:
            return None
        account, name = target.split(":")[-2:]
        with aws(f"find {name}, the dead-letter queue of {self.name}"):
            found = await self._client.get_queue_url(QueueName=name, QueueOwnerAWSAccountId=account)
        return DeadLetters(self._client, found["QueueUrl"])


class DeadLetters:
    """A dead-letter queue.

    Args:
        client: Of SQS.
        url: Of the queue.
    """

    def __init__(self, client: "SQSClient", url: str) -> None:
        self._client = client
        self._url = url

    async def put(self, message: Received, verdict: DeadLetter) -> None:
        """Put a message there as it came, with the attributes `Reason` and `Description`."""
        reasons = {
            "Reason": {"DataType": "String", "StringValue": verdict.reason},
            "Description": {"DataType": "String", "StringValue": verdict.description},
        }
        own = [pair for pair in message.attributes.items() if pair[0] not in reasons]
        fifo: dict[str, str] = {}
        if self._url.endswith(".fifo"):
            fifo = {
                "MessageGroupId": message.group or message.message_id,
                "MessageDeduplicationId": message.message_id,
            }
        with aws(f"put a message into {self._url.rsplit('/', 1)[-1]}"):
            await self._client.send_message(
                QueueUrl=self._url,
                MessageBody=message.text,
                MessageAttributes=cast(Any, dict(own[: ATTRIBUTES - len(reasons)]) | reasons),
                **cast(Any, fifo),
            )


class RedriveTarget:
    """Sets messages aside in the dead-letter queue that a queue has at the moment.

    Args:
        queue: The queue that they come from.
        whole: Bytes of a body up to which its record holds all of it.
    """

    def __init__(self, queue: SqsQueue, whole: int) -> None:
        self._queue = queue
        self._whole = whole
        self._known: DeadLetters | None = None

    async def put(self, message: Received, verdict: DeadLetter) -> bool:
        """Set a message aside.

        Returns:
            False: there is no such queue, and the record does not hold all of the message.
        """
        known = self._known = self._known or await self._queue.dead_letters()
        if known is None:
            return len(message.body) <= self._whole
        try:
            await known.put(message, verdict)
        except PortError:
            # It may be another one by now.
            self._known = None
            raise
        return True


def _received(message: "MessageTypeDef") -> Received:
    system = message.get("Attributes", {})
    return Received(
        text=message.get("Body", ""),
        message_id=message.get("MessageId", ""),
        receives=int(system.get("ApproximateReceiveCount", 1)),
        handle=message.get("ReceiptHandle", ""),
        group=system.get("MessageGroupId"),
        sent_at=moment_of(system.get("SentTimestamp")),
        attributes={
            name: {part: value for part, value in attribute.items() if not part.endswith("Values")}
            for name, attribute in message.get("MessageAttributes", {}).items()
        },
    )


WriteDeadLetter = Callable[[Received, DeadLetter], Awaitable[bool]]
"""Puts a message among dead letters; False: it may not be deleted, the queue does it in time."""

LONGEST_HOLD: Final = 11 * 3600
"""Seconds in flight; SQS keeps no message hidden for longer than 12 hours."""


@dataclass(frozen=True)
class Polling:
    """How a queue is received from."""

    in_flight: int = 10
    """Messages that are received and not yet settled."""
    batch: int = 10
    """Messages that one receive returns at most."""
    refill: int = 1
    """Messages that there must be room for before more are received."""
    wait: int = 20
    """Seconds that a receive waits for the first message."""
    quiet: float = 20
    """Seconds that a queue stays empty before a drain ends."""
    visibility_timeout: int = 60
    """Seconds that a message in flight stays hidden from others; extended while it is."""


class SqsTransport:
    """A queue of SQS as the consumer needs it.

    Args:
        queue: To receive from.
        write_dead_letter: Keeps messages that can never be accepted.
        polling: How the queue is received from.
    """

    def __init__(
        self, queue: SqsQueue, write_dead_letter: WriteDeadLetter, polling: Polling
    ) -> None:
        self.name = queue.name
        self._queue = queue
        self._write_dead_letter = write_dead_letter
        self._polling = polling

    async def receive(self, most: int, wait: float) -> Sequence[Received]:
        """Receive messages; waits for whole seconds, at least one."""
        polling = self._polling
        try:
            return await self._queue.receive(
                min(most, polling.batch), max(1, int(wait)), polling.visibility_timeout
            )
        except PortError as error:
            if not (isinstance(error, Denied) or has_code(error, *CREDENTIALS)):
                raise TransportError(str(error)) from error
            refused = QueueMissing if isinstance(error, Missing) else QueueRefused
            raise refused(
                f"cannot receive from {self._queue.url}: {error}; "
                "check the queue's URL, the region and the rights"
            ) from error

    def lease_seconds(self, message: Received) -> float:
        """The visibility timeout that every receive and extension sets."""
        return self._polling.visibility_timeout

    async def extend(self, message: Received) -> None:
        """Hide a message for another visibility timeout."""
        with _settling():
            await self._queue.change_visibility(message, self._polling.visibility_timeout)

    async def complete(self, message: Received) -> None:
        """Delete a message."""
        with _settling():
            await self._queue.delete(message)

    async def abandon(self, message: Received, delay: int) -> None:
        """Make a message visible again after a delay."""
        with _settling():
            await self._queue.change_visibility(message, delay)

    async def dead_letter(self, message: Received, verdict: DeadLetter) -> None:
        """Write a dead letter, then delete the message."""
        if not message.is_dead_lettered:
            try:
                written = await self._write_dead_letter(message, verdict)
            except PortError as error:
                raise NotDeadLettered(str(error)) from error
            if not written:
                raise NotDeadLettered(
                    f"{self.name} has no dead-letter queue, "
                    "and the record of rejected messages does not hold the whole body"
                )
            message.is_dead_lettered = True
        await self.complete(message)

    async def close(self) -> None:
        """Nothing is open; the client belongs to the caller."""


@contextmanager
def _settling() -> Generator[None]:
    try:
        yield
    except Denied as error:
        raise LeaseLost(str(error)) from error
    except PortError as error:
        raise TransportError(str(error)) from error


@dataclass(frozen=True)
class SqsBridge:
    """Receives messages of one queue, has them accepted, and settles them."""

    queue: SqsQueue
    accept: Accept
    """Decides about a message; may be called again with the same one."""
    write_dead_letter: WriteDeadLetter
    """Keeps messages that can never be accepted."""
    accept_of: Callable[[Received], Accept] | None = None
    """What decides about a message where more of it counts than its body; None: `accept`."""
    ordering_key: Callable[[bytes], Hashable | None] | None = None
    """Which messages must not overtake each other, by their bodies: those of one key are decided
    about one after the other, in the order in which they were received."""
    ready: Callable[[], Awaitable[bool]] | None = None
    """Whether what `accept` depends on is available. As long as it is not, messages stay in
    flight: giving them back would use up their receives."""
    polling: Polling = Polling()
    retry: Retry = field(default_factory=Retry)
    """How long a message that is not accepted is held otherwise."""
    health: Health = field(default_factory=Health)
    """Shows whether messages are received and accepted."""

    async def run(
        self, stop: asyncio.Event, *, drain: bool = False, ends_with_queue: bool = False
    ) -> BridgeTotals:
        """Work until `stop` is set; see `Consumer.run`.

        Raises:
            QueueUnusable: The queue does not exist, or does not let us in, from the beginning.
        """
        polling = self.polling
        consumer = Consumer(
            SqsTransport(self.queue, self.write_dead_letter, polling),
            self.accept,
            Limits(
                concurrency=polling.in_flight,
                in_flight=polling.in_flight,
                refill=polling.refill,
                wait=polling.wait,
                quiet=polling.quiet,
            ),
            accept_of=self.accept_of,
            ordering_key=self.ordering_key,
            ready=self.ready,
            retry=self.retry,
            hold_while_unavailable=LONGEST_HOLD,
            health=self.health,
        )
        return await consumer.run(stop, drain=drain, ends_with_queue=ends_with_queue)
