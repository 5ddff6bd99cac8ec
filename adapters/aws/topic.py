"""The topic that documents of all batches are published to, on SNS."""

import asyncio
import json
import logging
from collections.abc import AsyncIterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any, Final

from adapters.aws.session import Missing, aws, has_code
from adapters.ports.errors import Denied, NoRoom
from workflows.batches.events import Publication
from workflows.batches.loads import CANARY, DOCUMENT_EVENT_TYPES
from workflows.batches.names import BatchKey, BatchPlan, Names, Resource, key_of
from workflows.batches.validation import FoundResource

if TYPE_CHECKING:
    from types_aiobotocore_sns import SNSClient
    from types_aiobotocore_sns.type_defs import SubscriptionTypeDef
    from types_aiobotocore_sqs import SQSClient

logger = logging.getLogger(__name__)

FILTER_POLICIES: Final = 200
"""Subscriptions with a filter policy that a topic may have."""
READS_AT_ONCE: Final = 10
_UNCONFIRMED: Final = ("PendingConfirmation", "Deleted")
_NO_ROOM: Final = (
    "FilterPolicyLimitExceeded",
    "FilterPolicyLimitExceededException",
    "SubscriptionLimitExceeded",
    "SubscriptionLimitExceededException",
)


def filter_policy(key: BatchKey) -> dict[str, Any]:
    """The events of one batch, and its canaries."""
    return {
        "eventType": [*DOCUMENT_EVENT_TYPES, CANARY],
        "caseId": [{"numeric": ["=", key.case_id]}],
        "batchId": [{"numeric": ["=", key.batch_id]}],
    }


class AwsTopic:
    """The topic that documents of all batches are published to.

    Args:
        client: Of the topics.
        queues: Of the queues that subscribe; a topic may be in another account than they are.

    """

    def __init__(self, client: "SNSClient", queues: "SQSClient") -> None:
        self._client = client
        self._queues = queues

    async def subscribe(self, names: Names, plan: BatchPlan, key: BatchKey) -> str:
        """Subscribe the queue to the events of its batch; the ARN of the subscription.

        Raises:
            NoRoom: The topic has no room for another filter policy.
        """
        queue_arn = await self._queue_arn(names.queue)
        wanted = {
            "FilterPolicyScope": plan.filter_scope,
            "FilterPolicy": json.dumps(filter_policy(key)),
            "RawMessageDelivery": "true",
        }
        there = [each async for each in self._subscriptions(plan.topic_arn)]
        mine = [_arn(each) for each in there if each.get("Endpoint") == queue_arn]
        if kept := await self._keep_one(mine, wanted):
            return kept
        await self._check_room(plan.topic_arn, there)
        try:
            with aws(f"subscribe {names.queue}"):
                made = await self._client.subscribe(
                    TopicArn=plan.topic_arn,
                    Protocol="sqs",
                    Endpoint=queue_arn,
                    Attributes=wanted,
                    ReturnSubscriptionArn=True,
                )
        except Denied as error:
            if has_code(error, *_NO_ROOM):
                raise _no_room(plan.topic_arn) from error
            raise
        return made["SubscriptionArn"]

    async def is_subscribed(self, subscription: str) -> bool:
        """Whether a subscription is still there, by its ARN; true where it may not be read."""
        try:
            await self._attributes(subscription)
        except Missing:
            return False
        except Denied as error:
            logger.warning("not known whether %s is still there: %s", subscription, error)
        return True

    async def unsubscribe(self, names: Names, plan: BatchPlan) -> bool:
        """Take every subscription of the queue away, also when the queue is gone."""
        try:
            queue_arn = await self._queue_arn(names.queue)
        except Missing:
            queue_arn = None
        try:
            mine = [
                _arn(each)
                async for each in self._subscriptions(plan.topic_arn)
                if each.get("Endpoint") == queue_arn
                or (queue_arn is None and _queue_of(each) == names.queue)
            ]
        except Missing:
            return False
        for arn in mine:
            await self._unsubscribe(arn)
        return bool(mine)

    async def publish(self, plan: BatchPlan, publication: Publication) -> None:
        """Publish an announcement."""
        await self._publish(
            plan,
            publication.body(),
            publication.event_type,
            BatchKey(case_id=publication.case_id, batch_id=publication.batch_id),
        )

    async def send_canary(self, plan: BatchPlan, key: BatchKey, message_id: str) -> None:
        """Publish a message that only the batch's own queue is subscribed to."""
        body = {
            "eventType": CANARY,
            "caseId": key.case_id,
            "batchId": key.batch_id,
            "messageId": message_id,
        }
        await self._publish(plan, body, CANARY, key)

    async def found(self, prefix: str, topic_arn: str) -> AsyncIterator[FoundResource]:
        """Subscriptions of the queues of every batch of an installation; none without its topic."""
        try:
            async for each in self._subscriptions(topic_arn):
                key = key_of(prefix, _queue_of(each))
                if key is not None:
                    yield FoundResource(key=key, resource=Resource.SUBSCRIPTION, name=_arn(each))
        except Missing:
            # They went with it.
            return

    async def _publish(
        self, plan: BatchPlan, body: Mapping[str, Any], event_type: str, key: BatchKey
    ) -> None:
        with aws(f"publish {event_type} of {key}"):
            await self._client.publish(
                TopicArn=plan.topic_arn,
                Message=json.dumps(body),
                MessageAttributes={
                    "eventType": {"DataType": "String", "StringValue": event_type},
                    "caseId": {"DataType": "Number", "StringValue": str(key.case_id)},
                    "batchId": {"DataType": "Number", "StringValue": str(key.batch_id)},
                },
            )

    async def _check_room(self, topic_arn: str, there: Sequence["SubscriptionTypeDef"]) -> None:
        """Subscriptions without a filter policy do not count; only a full topic is asked for it.

        Raises:
            Denied: AWS would refuse; with what can be done about it.
        """
        if len(there) < FILTER_POLICIES:
            return
        limit = asyncio.Semaphore(READS_AT_ONCE)

        async def is_filtered(arn: str) -> bool:
            async with limit:
                return await self._is_filtered(arn)

        filtered = await asyncio.gather(*(is_filtered(_arn(each)) for each in there))
        if sum(filtered) >= FILTER_POLICIES:
            raise _no_room(topic_arn)

    async def _is_filtered(self, arn: str) -> bool:
        try:
            has = await self._attributes(arn)
        except Denied:
            # Gone since, or another account's: AWS decides.
            return False
        return bool(json.loads(has.get("FilterPolicy") or "{}"))

    async def _keep_one(self, arns: Sequence[str], wanted: Mapping[str, str]) -> str | None:
        """Repair the first subscription that is still there, and remove the others."""
        kept = None
        for arn in arns:
            if kept is not None:
                await self._unsubscribe(arn)
                continue
            try:
                await self._repair(arn, wanted)
            except Missing:
                # Listed although it has been deleted a moment ago.
                continue
            kept = arn
        return kept

    async def _repair(self, arn: str, wanted: Mapping[str, str]) -> None:
        has = await self._attributes(arn)
        for name, value in wanted.items():
            if not _same(has.get(name), value):
                with aws(f"set {name} of {arn}"):
                    await self._client.set_subscription_attributes(
                        SubscriptionArn=arn, AttributeName=name, AttributeValue=value
                    )

    async def _attributes(self, arn: str) -> Mapping[str, str]:
        with aws(f"read {arn}"):
            got = await self._client.get_subscription_attributes(SubscriptionArn=arn)
        return got.get("Attributes", {})

    async def _unsubscribe(self, arn: str) -> None:
        try:
            with aws(f"unsubscribe {arn}"):
                await self._client.unsubscribe(SubscriptionArn=arn)
        except Missing:
            return

    async def _subscriptions(self, topic_arn: str) -> AsyncIterator["SubscriptionTypeDef"]:
        pages = self._client.get_paginator("list_subscriptions_by_topic").paginate(
            TopicArn=topic_arn
        )
        with aws(f"list subscriptions of {topic_arn}"):
            async for page in pages:
                for subscription in page.get("Subscriptions", []):
                    if _arn(subscription) not in _UNCONFIRMED:
                        yield subscription

    async def _queue_arn(self, queue: str) -> str:
        with aws(f"find {queue}"):
            url = (await self._queues.get_queue_url(QueueName=queue))["QueueUrl"]
            got = await self._queues.get_queue_attributes(QueueUrl=url, AttributeNames=["QueueArn"])
        return got.get("Attributes", {})["QueueArn"]


def _arn(subscription: "SubscriptionTypeDef") -> str:
    return subscription.get("SubscriptionArn", "")


def _queue_of(subscription: "SubscriptionTypeDef") -> str:
    """The name of the queue that is subscribed; '' where the subscriber is not a queue."""
    if subscription.get("Protocol") != "sqs":
        return ""
    return subscription.get("Endpoint", "").rpartition(":")[2]


def _no_room(topic_arn: str) -> NoRoom:
    return NoRoom(
        f"the topic {topic_arn} has no room for another filter policy, it takes "
        f"{FILTER_POLICIES}: let other batches end first, or ask AWS for a higher quota"
    )


def _same(has: str | None, wanted: str) -> bool:
    if has == wanted:
        return True
    try:
        return has is not None and json.loads(has) == json.loads(wanted)
    except ValueError:
        return False
