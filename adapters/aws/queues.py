"""The queue of a batch and its dead letters, on SQS."""

import json
from collections.abc import AsyncIterator, Mapping
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any, Final, cast

from botocore.exceptions import ClientError

from adapters.aws.errors import Missing, aws, code_of
from adapters.aws.redriving import Redriving
from adapters.ports import WORKFLOW_TAG, Denied, FoundResource
from contracts.batches import (
    CANARY,
    LONGEST_RETENTION,
    BatchPlan,
    Names,
    QueueDepth,
    Redriven,
    Resource,
    key_of,
)

if TYPE_CHECKING:
    from types_aiobotocore_sqs import SQSClient

LONGEST_VISIBILITY: Final = 12 * 3600
REASON_CHARACTERS: Final = 1_000
_COUNTS: Final = (
    "ApproximateNumberOfMessages",
    "ApproximateNumberOfMessagesDelayed",
    "ApproximateNumberOfMessagesNotVisible",
)
_EXISTS: Final = ("QueueNameExists", "QueueAlreadyExists")


class AwsQueues:
    """Queues, by their names; URLs are asked for each time, as a queue may be made anew."""

    def __init__(self, client: "SQSClient") -> None:
        self._client = client
        self._redriving = Redriving(client)

    async def ensure_dead_letters(self, names: Names, plan: BatchPlan, owner: str) -> None:
        """Make the dead-letter queue; it keeps messages for as long as SQS does."""
        wanted = {"MessageRetentionPeriod": str(LONGEST_RETENTION)}
        await self._ensure(names.dead_letters, wanted, owner)

    async def ensure_queue(
        self, names: Names, plan: BatchPlan, owner: str, visibility: int
    ) -> None:
        """Make the queue."""
        wanted = {
            "MessageRetentionPeriod": str(plan.retention),
            "VisibilityTimeout": str(min(visibility, LONGEST_VISIBILITY)),
            "ReceiveMessageWaitTimeSeconds": "20",
        }
        await self._ensure(names.queue, wanted, owner)

    async def set_redrive_policy(self, names: Names, plan: BatchPlan) -> None:
        """Send what was received too often to the dead letters, and let nothing else go there."""
        queue, dead = await self._url(names.queue), await self._url(names.dead_letters)
        policy = {
            "deadLetterTargetArn": await self._arn(dead),
            "maxReceiveCount": plan.max_receives,
        }
        allowed = {
            "redrivePermission": "byQueue",
            "sourceQueueArns": [await self._arn(queue)],
        }
        await self._set(queue, {"RedrivePolicy": json.dumps(policy)})
        await self._set(dead, {"RedriveAllowPolicy": json.dumps(allowed)})

    async def allow_topic(self, names: Names, plan: BatchPlan) -> None:
        """Let the topic, and no other, send to the queue."""
        queue = await self._url(names.queue)
        policy = {
            "Version": "2012-10-17",
            "Statement": [
                {
                    "Sid": "DocumentsOfTheBatch",
                    "Effect": "Allow",
                    "Principal": {"Service": "sns.amazonaws.com"},
                    "Action": "sqs:SendMessage",
                    "Resource": await self._arn(queue),
                    "Condition": {"ArnEquals": {"aws:SourceArn": plan.topic_arn}},
                }
            ],
        }
        await self._set(queue, {"Policy": json.dumps(policy)})

    async def has_proof(self, queue: str, message_id: str) -> bool:
        """Look for a canary in the queue, and take canaries out of it."""
        url = await self._url(queue)
        with aws(f"look for a canary in {queue}"):
            got = await self._client.receive_message(
                QueueUrl=url, MaxNumberOfMessages=10, WaitTimeSeconds=1, VisibilityTimeout=30
            )
            messages = got.get("Messages", [])
            for message in messages:
                handle = message.get("ReceiptHandle", "")
                if _is_canary(message.get("Body", "")):
                    await self._client.delete_message(QueueUrl=url, ReceiptHandle=handle)
                else:
                    # A document that came early: it is the loader's.
                    await self._client.change_message_visibility(
                        QueueUrl=url, ReceiptHandle=handle, VisibilityTimeout=0
                    )
        # Whatever came, came through the subscription: nobody else may send.
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
        """Move all dead letters back, each message once; goes on with a move under way."""
        try:
            dead = await self._url(names.dead_letters)
        except Missing:
            return Redriven(moved=0)
        depth = await self.depth(names.dead_letters)
        return await self._redriving.run(
            source=dead,
            source_arn=await self._arn(dead),
            target=await self._url(names.queue),
            expected=0 if depth is None else depth.total,
        )

    async def dead_letter(self, names: Names, body: str, reason: str, deduplication: str) -> None:
        """Put a message among the dead letters."""
        url = await self._url(names.dead_letters)
        attributes = {"Reason": reason[:REASON_CHARACTERS] or "unknown", "Key": deduplication}
        with aws(f"put a message into {names.dead_letters}"):
            await self._client.send_message(
                QueueUrl=url,
                MessageBody=body,
                MessageAttributes={
                    name: {"DataType": "String", "StringValue": value}
                    for name, value in attributes.items()
                },
            )

    async def delete_queue(self, queue: str) -> bool:
        """Delete a queue with everything in it."""
        try:
            url = await self._url(queue)
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
                    if key_of(prefix, name) is not None:
                        found = await self._describe(prefix, name, url)
                        if found is not None:
                            yield found

    async def _describe(self, prefix: str, name: str, url: str) -> FoundResource | None:
        """None: it was deleted since it was listed, which SQS goes on to list for a minute."""
        key = key_of(prefix, name)
        assert key is not None
        try:
            attributes = await self._attributes(url, *_COUNTS, "CreatedTimestamp")
            owner = await self._owner(url)
        except Missing:
            return None
        dead = name.endswith("_dlq")
        return FoundResource(
            key=key,
            resource=Resource.DEAD_LETTERS if dead else Resource.QUEUE,
            name=name,
            made_at=datetime.fromtimestamp(int(float(attributes["CreatedTimestamp"])), UTC),
            # A queue without the tag is not ours, however it is called.
            owner=owner or "",
            details={"messages": str(sum(int(attributes[count]) for count in _COUNTS))},
        )

    async def _ensure(self, name: str, wanted: Mapping[str, str], owner: str) -> None:
        tags = {WORKFLOW_TAG: owner}
        try:
            await self._client.create_queue(
                QueueName=name, Attributes=cast(Any, dict(wanted)), tags=tags
            )
        except ClientError as error:
            if not any(code in code_of(error) for code in _EXISTS):
                with aws(f"make {name}"):
                    raise
            await self._adopt(name, wanted, owner)

    async def _adopt(self, name: str, wanted: Mapping[str, str], owner: str) -> None:
        """Take a queue that exists with other attributes, when it is this batch's own."""
        url = await self._url(name)
        others = await self._owner(url)
        if others != owner:
            raise Denied(
                f"a queue {name} exists and is tagged with {others!r}, not {owner!r}: "
                "remove it, or choose another prefix"
            )
        await self._set(url, wanted)

    async def _owner(self, url: str) -> str | None:
        with aws(f"read tags of {url}"):
            got = await self._client.list_queue_tags(QueueUrl=url)
        return got.get("Tags", {}).get(WORKFLOW_TAG)

    async def _url(self, name: str) -> str:
        with aws(f"find {name}"):
            return (await self._client.get_queue_url(QueueName=name))["QueueUrl"]

    async def _arn(self, url: str) -> str:
        return (await self._attributes(url, "QueueArn"))["QueueArn"]

    async def _attributes(self, url: str, *names: str) -> Mapping[str, str]:
        with aws(f"read {url}"):
            got = await self._client.get_queue_attributes(
                QueueUrl=url, AttributeNames=cast(Any, list(names))
            )
        return cast(Mapping[str, str], got.get("Attributes", {}))

    async def _set(self, url: str, attributes: Mapping[str, str]) -> None:
        with aws(f"set {', '.join(attributes)} of {url}"):
            await self._client.set_queue_attributes(
                QueueUrl=url, Attributes=cast(Any, dict(attributes))
            )


def _is_canary(body: str) -> bool:
    try:
        said = json.loads(body)
    except ValueError:
        return False
    return isinstance(said, dict) and cast(dict[str, Any], said).get("eventType") == CANARY
