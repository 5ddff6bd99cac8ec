"""A look at the messages of a dead-letter queue, which stay there."""

from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any, Final, cast

from adapters.aws.errors import aws, settling
from adapters.ports import QueuedDeadLetter

if TYPE_CHECKING:
    from types_aiobotocore_sqs import SQSClient
    from types_aiobotocore_sqs.type_defs import MessageTypeDef

REASON: Final = "Reason"
"""Attribute of a dead letter: why it is one, for people."""
HIDDEN_SECONDS: Final = 60
"""While the others are looked at; then all can be received again."""
POLL_SECONDS: Final = 1
"""A long poll asks every server of SQS: when it brings nothing, there is nothing."""


async def look(client: "SQSClient", url: str, most: int) -> list[QueuedDeadLetter]:
    """Receive messages without taking them out of their queue.

    Args:
        client: Of SQS.
        url: Of the queue.
        most: Messages to look at.

    Raises:
        PortError: As `adapters.aws.errors` translates what SQS answers.
    """
    seen: dict[str, MessageTypeDef] = {}
    try:
        while len(seen) < most:
            with aws(f"look at {url}"):
                got = await client.receive_message(
                    QueueUrl=url,
                    MaxNumberOfMessages=min(10, most - len(seen)),
                    WaitTimeSeconds=POLL_SECONDS,
                    VisibilityTimeout=HIDDEN_SECONDS,
                    MessageAttributeNames=["All"],
                    AttributeNames=["SentTimestamp"],
                )
            messages = got.get("Messages", [])
            if not messages:
                break
            seen |= {message.get("MessageId", ""): message for message in messages}
    finally:
        for message in seen.values():
            with settling(f"look at {url}"):
                await client.change_message_visibility(
                    QueueUrl=url,
                    ReceiptHandle=message.get("ReceiptHandle", ""),
                    VisibilityTimeout=0,
                )
    return [_letter(message) for message in seen.values()]


def _letter(message: "MessageTypeDef") -> QueuedDeadLetter:
    attribute = message.get("MessageAttributes", {}).get(REASON)
    sent = cast(dict[str, Any], message.get("Attributes", {})).get("SentTimestamp")
    return QueuedDeadLetter(
        body=message.get("Body", ""),
        reason=None if attribute is None else attribute.get("StringValue"),
        sent_at=None if sent is None else datetime.fromtimestamp(int(sent) / 1000, UTC),
    )
