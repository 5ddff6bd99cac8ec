"""The queue of a batch and its dead letters, on SQS."""

import asyncio
import contextlib
import hashlib
import json
import re
from collections.abc import AsyncIterator, Iterator, Mapping, Sequence
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any, Final, cast

from adapters.aws.session import Missing, aws, has_code, is_trouble, settling
from adapters.ports.batches import QueuedDeadLetter
from adapters.ports.errors import Denied, NotYet, PortError, Throttled, Unavailable
from workflows.batches.events import MESSAGE_BYTES
from workflows.batches.loads import CANARY
from workflows.batches.names import (
    LONGEST_RETENTION,
    BatchKey,
    BatchPlan,
    Names,
    QueueDepth,
    Resource,
    key_of,
)
from workflows.batches.runs import Redriven
from workflows.batches.validation import WORKFLOW_TAG, FoundResource

if TYPE_CHECKING:
    from types_aiobotocore_sqs import SQSClient
    from types_aiobotocore_sqs.type_defs import MessageTypeDef


REASON: Final = "Reason"
"""Attribute of a dead letter: why it is one, for people."""
DEAD_LETTER_LOOK_SECONDS: Final = 60
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
        PortError: As `adapters.aws.session` translates what SQS answers.
    """
    seen: dict[str, MessageTypeDef] = {}
    try:
        while len(seen) < most:
            with aws(f"look at {url}"):
                got = await client.receive_message(
                    QueueUrl=url,
                    MaxNumberOfMessages=min(10, most - len(seen)),
                    WaitTimeSeconds=POLL_SECONDS,
                    VisibilityTimeout=DEAD_LETTER_LOOK_SECONDS,
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


MOVE_PAUSE: Final = 5.0
"""Seconds until a move that is under way is looked at again."""
HIDDEN_SECONDS: Final = 120
"""While a chunk is moved one by one."""
CHUNK: Final = 250
"""Messages in memory at once: 64 MB when all of them are as large as can be."""
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


LONGEST_VISIBILITY: Final = 12 * 3600
LONGEST_POLL: Final = 20
LOOK_SECONDS: Final = 1
"""Of a long poll for a canary: it asks every server of SQS, which a short one does not."""
LOOK_VISIBILITY: Final = 30
KEY: Final = "Key"
"""Attribute of a dead letter: the same for the same message."""
ATTRIBUTE_CHARACTERS: Final = 1_000
TOGETHER: Final = 10
"""Messages that SQS takes at once, which together may be as large as one."""
_COUNTS: Final = (
    "ApproximateNumberOfMessages",
    "ApproximateNumberOfMessagesDelayed",
    "ApproximateNumberOfMessagesNotVisible",
)
_OTHER_ATTRIBUTES: Final = ("QueueNameExists", "QueueAlreadyExists")
_UNFIT: Final = re.compile("[^\t\n\r\x20-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]")
"""Characters that SQS does not take."""


class AwsQueues:
    """The queue of a batch, and its dead letters."""

    def __init__(self, client: "SQSClient") -> None:
        self._client = client
        self._redriving = Redrive(client)

    async def ensure_dead_letters(self, names: Names, plan: BatchPlan, owner: str) -> None:
        """Make the dead-letter queue.

        Raises:
            NotYet: A queue of that name was deleted less than 60 s ago.
            Denied: The cloud refuses.
        """
        # The age of a message keeps counting after it moves here: this queue has to keep it longer
        # than the other one does.
        wanted = {"MessageRetentionPeriod": str(LONGEST_RETENTION)}
        await self._ensure(names.dead_letters, plan, wanted, owner)

    async def ensure_queue(
        self, names: Names, plan: BatchPlan, owner: str, visibility: int
    ) -> None:
        """Make the queue.

        Args:
            names: Of the batch.
            plan: Of the batch.
            owner: Id of the run that makes it.
            visibility: Seconds that a received message stays hidden.

        Raises:
            NotYet: A queue of that name was deleted less than 60 s ago.
            Denied: The cloud refuses.
        """
        wanted = {
            "MessageRetentionPeriod": str(plan.retention),
            "VisibilityTimeout": str(min(visibility, LONGEST_VISIBILITY)),
            "ReceiveMessageWaitTimeSeconds": str(LONGEST_POLL),
        }
        await self._ensure(names.queue, plan, wanted, owner)

    async def set_redrive_policy(self, names: Names, plan: BatchPlan) -> None:
        """Send what was received too often to the dead letters, and let nothing else go there."""
        queue, dead = await asyncio.gather(self._url(names.queue), self._url(names.dead_letters))
        is_now, dead_is_now = await asyncio.gather(
            self._attributes(queue, "All"),
            self._attributes(dead, "All"),
        )
        policy = {
            "deadLetterTargetArn": dead_is_now["QueueArn"],
            "maxReceiveCount": plan.max_receives,
        }
        allowed = {"redrivePermission": "byQueue", "sourceQueueArns": [is_now["QueueArn"]]}
        # The permission first: SQS refuses a redrive policy that is not allowed.
        await self._set_policy(dead, dead_is_now, "RedriveAllowPolicy", allowed)
        await self._set_policy(queue, is_now, "RedrivePolicy", policy)

    async def allow_topic(self, names: Names, plan: BatchPlan) -> None:
        """Let the topic, and no other, send to the queue."""
        queue = await self._url(names.queue)
        is_now = await self._attributes(queue, "All")
        policy = {
            "Version": "2012-10-17",
            "Statement": [
                {
                    "Sid": "DocumentsOfTheBatch",
                    "Effect": "Allow",
                    "Principal": {"Service": "sns.amazonaws.com"},
                    "Action": "sqs:SendMessage",
                    "Resource": is_now["QueueArn"],
                    "Condition": {"ArnEquals": {"aws:SourceArn": plan.topic_arn}},
                }
            ],
        }
        await self._set_policy(queue, is_now, "Policy", policy)

    async def has_proof(self, queue: str, message_id: str) -> bool:
        """Look for a canary in the queue, and take canaries out of it.

        Any other message of the batch that came through the subscription proves delivery as well,
        and stays.
        """
        url = await self._url(queue)
        with aws(f"look for a canary in {queue}"):
            got = await self._client.receive_message(
                QueueUrl=url,
                MaxNumberOfMessages=10,
                WaitTimeSeconds=LOOK_SECONDS,
                VisibilityTimeout=LOOK_VISIBILITY,
            )
        messages = got.get("Messages", [])
        for message in messages:
            await self._put_back(url, message)
        return bool(messages)

    async def depth(self, queue: str) -> QueueDepth | None:
        """Messages by state; None: there is no such queue."""
        try:
            attributes = await self._attributes(await self._url(queue), *_COUNTS)
        except Missing:
            return None
        visible, delayed, in_flight = (int(attributes[name]) for name in _COUNTS)
        return QueueDepth(visible=visible, delayed=delayed, in_flight=in_flight)

    async def redrive(self, names: Names) -> Redriven:
        """Move all dead letters back, each message once; continues a move in progress.

        Raises:
            NotYet: A move is under way.
        """
        try:
            dead = await self._url(names.dead_letters)
            is_now = await self._attributes(dead, "QueueArn", *_COUNTS)
        except Missing:
            return Redriven(moved=0)
        queue = await self._url(names.queue)
        target = await self._attributes(queue, "QueueArn")
        return await self._redriving.run(
            source=dead,
            source_arn=is_now["QueueArn"],
            target=queue,
            target_arn=target["QueueArn"],
            expected=sum(int(is_now[name]) for name in _COUNTS),
        )

    async def send(self, names: Names, bodies: Sequence[str]) -> None:
        """Put messages into the queue; one that is sent again is there twice.

        Raises:
            Denied: There is no such queue.
        """
        url = await self._url(names.queue)
        for together in _together(bodies):
            with aws(f"put messages into {names.queue}"):
                answer = await self._client.send_message_batch(
                    QueueUrl=url,
                    Entries=[
                        {"Id": str(number), "MessageBody": body}
                        for number, body in enumerate(together)
                    ],
                )
            if failed := answer.get("Failed", []):
                codes = ", ".join(sorted({each["Code"] for each in failed}))
                raise Unavailable(f"{names.queue} did not take {len(failed):,} messages ({codes})")

    async def dead_letter(self, names: Names, body: str, reason: str, deduplication: str) -> None:
        """Put a message among the dead letters.

        Args:
            names: Of the batch.
            body: As it came.
            reason: Why, for people; goes with it as an attribute.
            deduplication: The same for the same message, however often it is put there.

        Raises:
            Denied: There is no such queue any more.
        """
        url = await self._url(names.dead_letters)
        attributes = {REASON: _fit(reason), KEY: _fit(deduplication)}
        extra = sum(len(f"{name}String{value}".encode()) for name, value in attributes.items())
        if len(body.encode()) + extra > MESSAGE_BYTES:
            attributes.clear()
        with aws(f"put a message into {names.dead_letters}"):
            await self._client.send_message(
                QueueUrl=url,
                MessageBody=body,
                MessageAttributes={
                    name: {"DataType": "String", "StringValue": value}
                    for name, value in attributes.items()
                },
            )

    async def dead_letters(self, names: Names, most: int) -> Sequence[QueuedDeadLetter]:
        """Look at dead letters, which stay where they are; none where there is no such queue."""
        try:
            return await look(self._client, await self._url(names.dead_letters), most)
        except Missing:
            return ()

    async def delete_queue(self, queue: str, owner: str) -> bool:
        """Delete a queue with everything in it.

        Raises:
            Denied: It is not this owner's.
        """
        try:
            url = await self._url(queue)
            other = await self._owner(url)
            if other != owner:
                raise Denied(
                    f"the queue {queue} is not deleted: its tag {WORKFLOW_TAG} is "
                    f"{other or 'missing'}, not {owner}"
                )
            with aws(f"delete {queue}"):
                await self._client.delete_queue(QueueUrl=url)
        except Missing:
            return False
        return True

    async def found(self, prefix: str) -> AsyncIterator[FoundResource]:
        """Queues of every batch of an installation."""
        pages = self._client.get_paginator("list_queues").paginate(
            QueueNamePrefix=f"{prefix}_doc_loader_", PaginationConfig={"PageSize": 1000}
        )
        with aws("list queues"):
            async for page in pages:
                for url in page.get("QueueUrls", []):
                    name = url.rsplit("/", 1)[-1]
                    key = key_of(prefix, name)
                    if key is not None and (found := await self._describe(key, name, url)):
                        yield found

    async def _describe(self, key: BatchKey, name: str, url: str) -> FoundResource | None:
        """None: it has been deleted since; SQS continues to list a deleted queue for a minute."""
        try:
            attributes, owner = await asyncio.gather(
                self._attributes(url, *_COUNTS, "CreatedTimestamp"), self._owner(url)
            )
        except Missing:
            return None
        dead = name.endswith("_dlq")
        return FoundResource(
            key=key,
            resource=Resource.DEAD_LETTERS if dead else Resource.QUEUE,
            name=name,
            made_at=datetime.fromtimestamp(int(float(attributes["CreatedTimestamp"])), UTC),
            owner=owner,
            details={"messages": str(sum(int(attributes[count]) for count in _COUNTS))},
        )

    async def _ensure(
        self, name: str, plan: BatchPlan, wanted: Mapping[str, str], owner: str
    ) -> None:
        if plan.kms_key is not None:
            wanted = {**wanted, "KmsMasterKeyId": plan.kms_key}
        tags = {**plan.tags, WORKFLOW_TAG: owner}
        try:
            with aws(f"make {name}"):
                made = await self._client.create_queue(
                    QueueName=name, Attributes=cast(Any, dict(wanted)), tags=tags
                )
        except Denied as error:
            if not has_code(error, *_OTHER_ATTRIBUTES):
                raise
            await self._adopt(name, wanted, owner, tags)
            return
        if plan.tags and await self._owner(made["QueueUrl"]) in (None, owner):
            # One that was there already keeps the tags that it had.
            with aws(f"tag {name}"):
                await self._client.tag_queue(QueueUrl=made["QueueUrl"], Tags=tags)

    async def _adopt(
        self, name: str, wanted: Mapping[str, str], owner: str, tags: Mapping[str, str]
    ) -> None:
        """Take a queue that exists with other attributes, unless it belongs to another owner."""
        url = await self._url(name)
        other = await self._owner(url)
        if other not in (None, owner):
            raise Denied(
                f"a queue {name} exists and belongs to {other}, not to {owner}: remove it, or "
                "choose another prefix"
            )
        with aws(f"set {', '.join(wanted)} of {name}"):
            await self._client.set_queue_attributes(
                QueueUrl=url, Attributes=cast(Any, dict(wanted))
            )
            await self._client.tag_queue(QueueUrl=url, Tags=dict(tags))

    async def _put_back(self, url: str, message: "MessageTypeDef") -> None:
        """Take a canary out of the queue; a document that came early is the loader's."""
        handle = message.get("ReceiptHandle", "")
        with settling(f"look for a canary in {url}"):
            if _is_canary(message.get("Body", "")):
                await self._client.delete_message(QueueUrl=url, ReceiptHandle=handle)
            else:
                await self._client.change_message_visibility(
                    QueueUrl=url, ReceiptHandle=handle, VisibilityTimeout=0
                )

    async def _owner(self, url: str) -> str | None:
        with aws(f"read tags of {url}"):
            got = await self._client.list_queue_tags(QueueUrl=url)
        return got.get("Tags", {}).get(WORKFLOW_TAG)

    async def _url(self, name: str) -> str:
        with aws(f"find {name}"):
            return (await self._client.get_queue_url(QueueName=name))["QueueUrl"]

    async def _attributes(self, url: str, *names: str) -> Mapping[str, str]:
        with aws(f"read {url}"):
            got = await self._client.get_queue_attributes(
                QueueUrl=url, AttributeNames=cast(Any, list(names))
            )
        return cast(Mapping[str, str], got.get("Attributes", {}))

    async def _set_policy(
        self, url: str, is_now: Mapping[str, str], name: str, policy: Mapping[str, Any]
    ) -> None:
        """Set a policy, whole, unless it is there: a change takes a minute to arrive everywhere."""
        if name in is_now and json.loads(is_now[name]) == policy:
            return
        with aws(f"set {name} of {url}"):
            await self._client.set_queue_attributes(
                QueueUrl=url, Attributes=cast(Any, {name: json.dumps(policy)})
            )


def _fit(text: str) -> str:
    """A text as SQS takes it for an attribute."""
    return _UNFIT.sub("?", text)[:ATTRIBUTE_CHARACTERS] or "?"


def _is_canary(body: str) -> bool:
    try:
        content = json.loads(body)
    except ValueError:
        return False
    return isinstance(content, dict) and cast(dict[str, Any], content).get("eventType") == CANARY


def _together(bodies: Sequence[str]) -> Iterator[Sequence[str]]:
    group: list[str] = []
    size = 0
    for body in bodies:
        own = len(body.encode())
        if group and (len(group) == TOGETHER or size + own > MESSAGE_BYTES):
            yield group
            group, size = [], 0
        group.append(body)
        size += own
    if group:
        yield group
