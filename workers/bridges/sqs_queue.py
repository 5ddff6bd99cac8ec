"""One queue of SQS, and the messages that were received from it."""

import asyncio
import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from typing import TYPE_CHECKING, Any, Final, cast

from adapters.aws.errors import aws
from adapters.ports import PortError
from workers.bridges.timestamps import moment_of
from workers.services.verdicts import DeadLetter

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
    """A queue; every method raises the errors of `adapters.aws.errors.aws`.

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
