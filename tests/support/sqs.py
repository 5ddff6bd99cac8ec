"""Queues of SQS for tests of bridges."""

import json
import uuid
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, cast

if TYPE_CHECKING:
    from types_aiobotocore_sqs import SQSClient

_COUNTS = (
    "ApproximateNumberOfMessages",
    "ApproximateNumberOfMessagesDelayed",
    "ApproximateNumberOfMessagesNotVisible",
)


@dataclass(frozen=True)
class Pair:
    """A queue and its dead letters."""

    client: "SQSClient"
    url: str
    dead_url: str

    async def send(self, bodies: Sequence[str], **more: Any) -> None:
        """Send bodies in order, ten at a time."""
        for first in range(0, len(bodies), 10):
            entries = [
                {"Id": str(number), "MessageBody": body, **more}
                for number, body in enumerate(bodies[first : first + 10])
            ]
            sent = await self.client.send_message_batch(
                QueueUrl=self.url, Entries=cast(Any, entries)
            )
            assert not sent.get("Failed")

    async def left(self) -> int:
        """Messages in the queue, whatever their state."""
        return await depth(self.client, self.url)

    async def is_empty(self) -> bool:
        """Whether nothing is in the queue.

        The queue counts each state by itself, so a message whose state changes between two counts
        is in none of them: only two looks at an empty queue say that it is empty.
        """
        return await self.left() == 0 and await self.left() == 0

    async def dead(self) -> list[Mapping[str, Any]]:
        """Take all dead letters."""
        return await take_all(self.client, self.dead_url)


async def pair_of_queues(
    client: "SQSClient",
    *,
    max_receives: int = 100,
    attributes: Mapping[str, str] | None = None,
    name: str | None = None,
) -> Pair:
    """Make a queue with dead letters."""
    suffix = ".fifo" if (attributes or {}).get("FifoQueue") else ""
    stem = name or f"jobs-{uuid.uuid4().hex[:12]}"
    made = await client.create_queue(
        QueueName=f"{stem}_dlq{suffix}", Attributes=cast(Any, dict(attributes or {}))
    )
    dead = made["QueueUrl"]
    got = await client.get_queue_attributes(QueueUrl=dead, AttributeNames=["QueueArn"])
    policy = {"deadLetterTargetArn": got["Attributes"]["QueueArn"], "maxReceiveCount": max_receives}
    wanted = {"RedrivePolicy": json.dumps(policy), **(attributes or {})}
    queue = await client.create_queue(
        QueueName=f"{stem}{suffix}", Attributes=cast(Any, dict(wanted))
    )
    return Pair(client, queue["QueueUrl"], dead)


async def depth(client: "SQSClient", url: str) -> int:
    """Messages of a queue, whatever their state."""
    got = await client.get_queue_attributes(QueueUrl=url, AttributeNames=list(_COUNTS))
    return sum(int(got["Attributes"][name]) for name in _COUNTS)


async def take_all(client: "SQSClient", url: str) -> list[Mapping[str, Any]]:
    """Receive and delete everything that is visible."""
    taken: list[Mapping[str, Any]] = []
    while True:
        got = await client.receive_message(
            QueueUrl=url, MaxNumberOfMessages=10, MessageAttributeNames=["All"]
        )
        messages = got.get("Messages", [])
        if not messages:
            return taken
        for message in messages:
            await client.delete_message(QueueUrl=url, ReceiptHandle=message["ReceiptHandle"])
        taken += messages
