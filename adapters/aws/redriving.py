"""Moving dead letters back: by a move task of SQS, or one by one where there are none."""

import hashlib
from typing import TYPE_CHECKING, Final

from botocore.exceptions import ClientError

from adapters.aws.errors import aws, code_of
from adapters.ports import NotYet
from contracts.batches import Redriven

if TYPE_CHECKING:
    from types_aiobotocore_sqs import SQSClient
    from types_aiobotocore_sqs.type_defs import MessageTypeDef

MOVE_PAUSE: Final = 5.0
HIDDEN_SECONDS: Final = 300
"""While messages are moved one by one."""
EMPTY_RECEIVES: Final = 3
"""In a row: one that brings nothing says little about a queue of SQS."""
_WITHOUT_TASKS: Final = frozenset(
    {
        "AWS.SimpleQueueService.UnsupportedOperation",
        "InternalError",
        "InternalFailure",
        "InvalidAction",
        "NotImplemented",
        "UnknownOperationException",
        "UnsupportedOperation",
    }
)


class Redriving:
    """Passes over a dead-letter queue."""

    def __init__(self, client: "SQSClient") -> None:
        self._client = client

    async def run(self, *, source: str, source_arn: str, target: str, expected: int) -> Redriven:
        """Move everything from one queue to another.

        Args:
            source: URL of the dead-letter queue.
            source_arn: Its ARN.
            target: URL of the queue that its messages came from.
            expected: Messages by the queue's counters.

        Raises:
            NotYet: A move is under way.
        """
        try:
            return await self._by_task(source_arn, expected)
        except ClientError as error:
            if code_of(error) not in _WITHOUT_TASKS:
                with aws("start a move of dead letters"):
                    raise
        with aws("move dead letters one by one"):
            return await self._one_by_one(source, target)

    async def _by_task(self, source_arn: str, expected: int) -> Redriven:
        got = await self._client.list_message_move_tasks(SourceArn=source_arn, MaxResults=1)
        newest = next(iter(got.get("Results", [])), None)
        if newest is not None and newest.get("Status") in ("RUNNING", "CANCELLING"):
            raise NotYet(
                f"{newest.get('ApproximateNumberOfMessagesMoved', 0)} dead letters are moved",
                MOVE_PAUSE,
            )
        if expected:
            # Messages go back to where they came from, under new ids.
            await self._client.start_message_move_task(SourceArn=source_arn)
        return Redriven(moved=expected)

    async def _one_by_one(self, source: str, target: str) -> Redriven:
        seen: set[str] = set()
        moved = duplicates = empty = 0
        while empty < EMPTY_RECEIVES:
            got = await self._client.receive_message(
                QueueUrl=source,
                MaxNumberOfMessages=10,
                VisibilityTimeout=HIDDEN_SECONDS,
                MessageAttributeNames=["All"],
            )
            messages = got.get("Messages", [])
            empty = 0 if messages else empty + 1
            for message in messages:
                key = hashlib.sha256(message.get("Body", "").encode()).hexdigest()
                if key in seen:
                    duplicates += 1
                else:
                    # Sent before it is deleted: a crash doubles a message, and loses none.
                    await self._send(target, message)
                    seen.add(key)
                    moved += 1
                await self._client.delete_message(
                    QueueUrl=source, ReceiptHandle=message.get("ReceiptHandle", "")
                )
        return Redriven(moved=moved, duplicates=duplicates)

    async def _send(self, target: str, message: "MessageTypeDef") -> None:
        await self._client.send_message(QueueUrl=target, MessageBody=message.get("Body", ""))
