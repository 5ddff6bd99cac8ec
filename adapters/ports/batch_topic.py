"""What batches ask of the topic that documents are published to."""

from collections.abc import AsyncIterator
from typing import Protocol

from contracts.batches import BatchKey, BatchPlan, Names, Publication
from domain.batches.resources import FoundResource


class BatchTopic(Protocol):
    """The topic that documents of all batches are published to."""

    async def subscribe(self, names: Names, plan: BatchPlan, key: BatchKey) -> str:
        """Subscribe the queue to the events of its batch; what the cloud calls the subscription.

        Raises:
            NoRoom: The topic has no room for another filter policy.
        """
        ...

    async def is_subscribed(self, subscription: str) -> bool:
        """Whether a subscription is still there, by its name; true where it may not be read."""
        ...

    async def unsubscribe(self, names: Names, plan: BatchPlan) -> bool:
        """Take every subscription of the queue away."""
        ...

    async def publish(self, plan: BatchPlan, publication: Publication) -> None:
        """Publish an announcement."""
        ...

    async def send_canary(self, plan: BatchPlan, key: BatchKey, message_id: str) -> None:
        """Publish a message that only the batch's own queue is subscribed to."""
        ...

    def found(self, prefix: str, topic_arn: str) -> AsyncIterator[FoundResource]:
        """Subscriptions of the queues of every batch of an installation."""
        ...
