"""The topic that documents of all batches are published to, on SNS."""

import json
from collections.abc import AsyncIterator, Mapping
from typing import TYPE_CHECKING, Any, Final

from adapters.aws.errors import Missing, aws
from adapters.ports import Denied, FoundResource
from contracts.batches import (
    CANARY,
    DOCUMENT_EVENT_TYPES,
    BatchKey,
    BatchPlan,
    Names,
    Publication,
    Resource,
    key_of,
)

if TYPE_CHECKING:
    from types_aiobotocore_sns import SNSClient
    from types_aiobotocore_sns.type_defs import SubscriptionTypeDef

FILTER_POLICIES: Final = 200
"""Subscriptions with a filter policy that a topic may have."""
_PENDING: Final = ("PendingConfirmation", "Deleted")


def filter_policy(key: BatchKey) -> dict[str, Any]:
    """The events of one batch, and its canaries."""
    return {
        "eventType": [*DOCUMENT_EVENT_TYPES, CANARY],
        "caseId": [{"numeric": ["=", key.case_id]}],
        "batchId": [{"numeric": ["=", key.batch_id]}],
    }


class AwsTopic:
    """Subscriptions and publications."""

    def __init__(self, client: "SNSClient") -> None:
        self._client = client

    async def subscribe(self, names: Names, plan: BatchPlan, key: BatchKey) -> None:
        """Subscribe the queue to the events of its batch.

        Raises:
            Denied: The topic has no room for another filter policy.
        """
        queue_arn = _queue_arn(plan.topic_arn, names.queue)
        wanted = {
            "FilterPolicy": json.dumps(filter_policy(key)),
            "FilterPolicyScope": plan.filter_scope,
            "RawMessageDelivery": "true",
        }
        mine, others = await self._count(plan.topic_arn, queue_arn)
        if mine:
            await self._repair(mine[0], wanted)
            for surplus in mine[1:]:
                await self._unsubscribe(surplus)
            return
        if others >= FILTER_POLICIES:
            raise Denied(
                f"the topic has {others} subscriptions and takes {FILTER_POLICIES} filter "
                "policies: let other batches end first, or ask AWS for a higher quota"
            )
        with aws(f"subscribe {names.queue}"):
            await self._client.subscribe(
                TopicArn=plan.topic_arn,
                Protocol="sqs",
                Endpoint=queue_arn,
                Attributes=wanted,
                ReturnSubscriptionArn=True,
            )

    async def unsubscribe(self, names: Names, plan: BatchPlan) -> bool:
        """Take every subscription of the queue away."""
        try:
            mine, _ = await self._count(plan.topic_arn, _queue_arn(plan.topic_arn, names.queue))
        except Missing:
            return False
        for arn in mine:
            await self._unsubscribe(arn)
        return bool(mine)

    async def publish(self, plan: BatchPlan, publication: Publication) -> None:
        """Announce something to the world."""
        await self._publish(
            plan,
            publication.model_dump(mode="json", by_alias=True),
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
        """Subscriptions of the queues of every batch of an installation."""
        async for subscription in self._subscriptions(topic_arn):
            name = subscription.get("Endpoint", "").rsplit(":", 1)[-1]
            key = key_of(prefix, name)
            if key is not None:
                yield FoundResource(
                    key=key,
                    resource=Resource.SUBSCRIPTION,
                    name=subscription.get("SubscriptionArn", ""),
                )

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

    async def _repair(self, arn: str, wanted: Mapping[str, str]) -> None:
        with aws(f"read {arn}"):
            got = await self._client.get_subscription_attributes(SubscriptionArn=arn)
        has = got.get("Attributes", {})
        for name, value in wanted.items():
            if not _same(has.get(name), value):
                with aws(f"set {name} of {arn}"):
                    await self._client.set_subscription_attributes(
                        SubscriptionArn=arn, AttributeName=name, AttributeValue=value
                    )

    async def _unsubscribe(self, arn: str) -> None:
        try:
            with aws(f"unsubscribe {arn}"):
                await self._client.unsubscribe(SubscriptionArn=arn)
        except Missing:
            return

    async def _count(self, topic_arn: str, queue_arn: str) -> tuple[list[str], int]:
        """Subscriptions of a queue, and how many others the topic has."""
        mine: list[str] = []
        others = 0
        async for subscription in self._subscriptions(topic_arn):
            if subscription.get("Endpoint") == queue_arn:
                mine.append(subscription.get("SubscriptionArn", ""))
            else:
                others += 1
        return mine, others

    async def _subscriptions(self, topic_arn: str) -> AsyncIterator["SubscriptionTypeDef"]:
        pages = self._client.get_paginator("list_subscriptions_by_topic").paginate(
            TopicArn=topic_arn
        )
        with aws(f"list subscriptions of {topic_arn}"):
            async for page in pages:
                for subscription in page.get("Subscriptions", []):
                    if subscription.get("SubscriptionArn") not in _PENDING:
                        yield subscription


def _queue_arn(topic_arn: str, queue: str) -> str:
    """A batch's queue is in the account and region of its topic."""
    partition, region, account = (topic_arn.split(":")[place] for place in (1, 3, 4))
    return f"arn:{partition}:sqs:{region}:{account}:{queue}"


def _same(has: str | None, wanted: str) -> bool:
    if has == wanted:
        return True
    try:
        return has is not None and json.loads(has) == json.loads(wanted)
    except ValueError:
        return False
