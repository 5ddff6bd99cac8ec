"""Moving dead letters back: by a move task of SQS, or one by one where there are none."""

import contextlib
import hashlib
import json
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, Final, cast

from adapters.aws.errors import aws, has_code, is_trouble, settling
from adapters.ports import Denied, NotYet, PortError, Throttled, Unavailable
from contracts.batches import Redriven

if TYPE_CHECKING:
    from types_aiobotocore_sqs import SQSClient
    from types_aiobotocore_sqs.type_defs import MessageTypeDef

MOVE_PAUSE: Final = 5.0
"""Seconds until a move that is under way is looked at again."""
HIDDEN_SECONDS: Final = 120
"""While a chunk is moved one by one."""
CHUNK: Final = 250
"""Messages in memory at once: 64 MB when all of them are as large as can be."""
POLL_SECONDS: Final = 1
"""A long poll asks every server of SQS: when it brings nothing, there is nothing."""
_UNDER_WAY: Final = ("RUNNING", "CANCELLING")
_WITHOUT_TASKS: Final = (
    "AWS.SimpleQueueService.UnsupportedOperation",
    "InvalidAction",
    "NotImplemented",
    "UnknownOperationException",
    "UnsupportedOperation",
)
"""The service has no move tasks, or none for this queue."""


class Redrive:
    """Passes over a dead-letter queue."""

    def __init__(self, client: "SQSClient") -> None:
        self._client = client

    async def run(
        self, *, source: str, source_arn: str, target: str, target_arn: str, expected: int
    ) -> Redriven:
        """Move everything from one queue to another.

        Args:
            source: URL of the dead-letter queue.
            source_arn: Its ARN.
            target: URL of the queue that its messages came from.
            target_arn: Its ARN.
            expected: Messages by the queue's counters.

        Returns:
            What was moved; what is being moved by now, where SQS does it.

        Raises:
            NotYet: A move is under way, or has ended halfway a moment ago.
        """
        try:
            if await self._by_task(source_arn, target_arn):
                return Redriven(moved=expected)
        except (Denied, Unavailable) as error:
            if isinstance(error, Throttled) or not _has_no_tasks(error):
                raise
        redriven = await self._one_by_one(source, target)
        if expected and redriven == Redriven(moved=0):
            raise NotYet(
                f"{expected} dead letters cannot be received: an earlier attempt holds them",
                MOVE_PAUSE,
            )
        return redriven

    async def _by_task(self, source_arn: str, target_arn: str) -> bool:
        """False: the task before this one could not do it."""
        with aws("look for a move of dead letters"):
            got = await self._client.list_message_move_tasks(SourceArn=source_arn, MaxResults=1)
        tasks = got.get("Results", [])
        if tasks and tasks[0].get("Status") in _UNDER_WAY:
            moved = tasks[0].get("ApproximateNumberOfMessagesMoved", 0)
            raise NotYet(f"{moved} dead letters have been moved, more follow", MOVE_PAUSE)
        if tasks and tasks[0].get("Status") == "FAILED":
            return False
        with aws("start a move of dead letters"):
            # The destination is explicit, because messages that a caller sent to the dead-letter
            # queue directly have no source queue.
            await self._client.start_message_move_task(
                SourceArn=source_arn, DestinationArn=target_arn
            )
        return True

    async def _one_by_one(self, source: str, target: str) -> Redriven:
        seen: set[bytes] = set()
        held: list[MessageTypeDef] = []
        moved = duplicates = 0
        try:
            while messages := await self._take(source, held):
                # Moved by this pass, it may have failed again: the next one's.
                fresh = [one for one in messages if _business_key(one) not in seen]
                for message in fresh:
                    if _business_key(message) in seen:
                        duplicates += 1
                    else:
                        # Sent before it is deleted: a crash doubles a message, and loses none.
                        await self._send(target, message)
                        seen.add(_business_key(message))
                        moved += 1
                    await self._delete(source, message)
                    held.remove(message)
        finally:
            await self._release(source, held)
        return Redriven(moved=moved, duplicates=duplicates)

    async def _take(self, source: str, held: list["MessageTypeDef"]) -> Sequence["MessageTypeDef"]:
        """Messages that were there before anything of theirs is sent; held as they come."""
        messages: list[MessageTypeDef] = []
        while len(messages) < CHUNK:
            with aws("receive dead letters"):
                got = await self._client.receive_message(
                    QueueUrl=source,
                    MaxNumberOfMessages=10,
                    VisibilityTimeout=HIDDEN_SECONDS,
                    WaitTimeSeconds=POLL_SECONDS,
                    MessageAttributeNames=["All"],
                )
            received = got.get("Messages", [])
            if not received:
                break
            messages += received
            held += received
        return messages

    async def _send(self, target: str, message: "MessageTypeDef") -> None:
        with aws("move a dead letter back"):
            await self._client.send_message(
                QueueUrl=target,
                MessageBody=message.get("Body", ""),
                MessageAttributes=cast(Any, message.get("MessageAttributes", {})),
            )

    async def _delete(self, source: str, message: "MessageTypeDef") -> None:
        with settling("delete a dead letter that was moved back"):
            await self._client.delete_message(
                QueueUrl=source, ReceiptHandle=message.get("ReceiptHandle", "")
            )

    async def _release(self, source: str, held: Sequence["MessageTypeDef"]) -> None:
        for message in held:
            # One that stays hidden comes back by itself.
            with contextlib.suppress(PortError), aws("leave a dead letter to the next pass"):
                await self._client.change_message_visibility(
                    QueueUrl=source,
                    ReceiptHandle=message.get("ReceiptHandle", ""),
                    VisibilityTimeout=0,
                )


def _has_no_tasks(error: PortError) -> bool:
    """Whether the messages have to be moved in another way, for now or always."""
    return has_code(error, *_WITHOUT_TASKS) or is_trouble(error)


def _business_key(message: "MessageTypeDef") -> bytes:
    """The same for the same message, in whatever order it names its fields."""
    body = message.get("Body", "")
    with contextlib.suppress(ValueError, RecursionError):
        body = json.dumps(json.loads(body), sort_keys=True)
    return hashlib.sha256(body.encode()).digest()
