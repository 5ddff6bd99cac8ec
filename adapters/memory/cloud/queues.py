"""Queues and the topic of a cloud in memory."""

import hashlib
import json
from collections.abc import AsyncIterator, Sequence
from typing import Any, cast

from adapters.memory.cloud.state import CloudState, DeadLetter, MemoryQueue
from adapters.ports import Denied, NoRoom, NotYet, QueuedDeadLetter
from contracts.batches import (
    CANARY,
    LONGEST_RETENTION,
    BatchKey,
    BatchPlan,
    Names,
    Publication,
    QueueDepth,
    Redriven,
    Resource,
    key_of,
)
from domain.batches.resources import FoundResource


class MemoryQueues:
    """`BatchQueues` in memory."""

    def __init__(self, cloud: CloudState) -> None:
        self._cloud = cloud

    async def ensure_dead_letters(self, names: Names, plan: BatchPlan, owner: str) -> None:
        """Make the dead-letter queue."""
        with self._cloud.call("ensure_dead_letters"):
            self._make(names.dead_letters, owner).retention = LONGEST_RETENTION

    async def ensure_queue(
        self, names: Names, plan: BatchPlan, owner: str, visibility: int
    ) -> None:
        """Make the queue."""
        with self._cloud.call("ensure_queue"):
            queue = self._make(names.queue, owner)
            queue.retention, queue.visibility = plan.retention, visibility

    def _make(self, name: str, owner: str) -> MemoryQueue:
        cloud = self._cloud
        if name in cloud.deleted_at:
            rest = (cloud.deleted_at[name] + cloud.name_rest - cloud.clock()).total_seconds()
            if rest > 0:
                raise NotYet(f"a queue {name} was deleted a moment ago", rest)
        queue = cloud.queues_by_name.setdefault(name, MemoryQueue(owner, cloud.clock()))
        if queue.owner not in (None, owner):
            raise Denied(f"a queue {name} exists and belongs to {queue.owner}")
        queue.owner = owner
        return queue

    async def set_redrive_policy(self, names: Names, plan: BatchPlan) -> None:
        """Send what was received too often to the dead letters."""
        with self._cloud.call("set_redrive_policy"):
            self._cloud.queue(names.dead_letters)
            queue = self._cloud.queue(names.queue)
            queue.dead_letters, queue.max_receives = names.dead_letters, plan.max_receives

    async def allow_topic(self, names: Names, plan: BatchPlan) -> None:
        """Let the topic send to the queue."""
        with self._cloud.call("allow_topic"):
            self._cloud.queue(names.queue).topic_arn = plan.topic_arn

    async def has_proof(self, queue: str, message_id: str) -> bool:
        """Take canaries out of the queue."""
        with self._cloud.call("has_proof"):
            here = self._cloud.queue(queue)
            proven = bool(here.messages)
            here.messages[:] = [body for body in here.messages if not _is_canary(body)]
            return proven

    async def depth(self, queue: str) -> QueueDepth | None:
        """Messages; None: there is no such queue."""
        with self._cloud.call("depth"):
            await self._cloud.work(queue)
            here = self._cloud.queues_by_name.get(queue)
            return None if here is None else here.depth

    async def redrive(self, names: Names) -> Redriven:
        """Move all dead letters back, each message once."""
        with self._cloud.call("redrive"):
            dead = self._cloud.queues_by_name.get(names.dead_letters)
            if dead is None:
                return Redriven(moved=0)
            queue = self._cloud.queue(names.queue)
            bodies = list(dict.fromkeys(dead.messages))
            queue.messages += bodies
            duplicates = len(dead.messages) - len(bodies)
            dead.messages.clear()
            return Redriven(moved=len(bodies), duplicates=duplicates)

    async def send(self, names: Names, bodies: Sequence[str]) -> None:
        """Put messages into the queue."""
        with self._cloud.call("send"):
            self._cloud.queue(names.queue).messages.extend(bodies)

    async def dead_letter(self, names: Names, body: str, reason: str, deduplication: str) -> None:
        """Put a message among the dead letters."""
        with self._cloud.call("dead_letter"):
            self._cloud.queue(names.dead_letters).messages.append(body)
            letter = DeadLetter(names.dead_letters, body, reason, deduplication)
            self._cloud.dead_lettered.append(letter)

    async def dead_letters(self, names: Names, most: int) -> Sequence[QueuedDeadLetter]:
        """Look at dead letters."""
        with self._cloud.call("dead_letters"):
            queue = self._cloud.queues_by_name.get(names.dead_letters)
            reasons = {
                letter.body: letter.reason
                for letter in self._cloud.dead_lettered
                if letter.queue == names.dead_letters
            }
            bodies = queue.messages[:most] if queue is not None else []
            return [QueuedDeadLetter(body, reasons.get(body), None) for body in bodies]

    async def delete_queue(self, queue: str, owner: str) -> bool:
        """Delete a queue with everything in it, unless it belongs to another owner."""
        with self._cloud.call("delete_queue"):
            here = self._cloud.queues_by_name.get(queue)
            if here is None:
                return False
            if here.owner != owner:
                raise Denied(f"the queue {queue} belongs to {here.owner}, not to {owner}")
            del self._cloud.queues_by_name[queue]
            self._cloud.deleted_at[queue] = self._cloud.clock()
            return True

    async def found(self, prefix: str) -> AsyncIterator[FoundResource]:
        """Queues of every batch of an installation."""
        with self._cloud.call("found_queues"):
            for name, queue in list(self._cloud.queues_by_name.items()):
                key = key_of(prefix, name)
                if key is not None:
                    kind = Resource.DEAD_LETTERS if name.endswith("_dlq") else Resource.QUEUE
                    details = {"messages": str(queue.depth.total)}
                    yield FoundResource(key, kind, name, queue.made_at, queue.owner, details)


class MemoryTopic:
    """`BatchTopic` in memory."""

    def __init__(self, cloud: CloudState) -> None:
        self._cloud = cloud

    async def subscribe(self, names: Names, plan: BatchPlan, key: BatchKey) -> str:
        """Subscribe the queue to the events of its batch; the name of the queue."""
        with self._cloud.call("subscribe"):
            self._cloud.queue(names.queue)
            subscriptions, most = self._cloud.subscriptions, self._cloud.filter_policies
            if names.queue not in subscriptions:
                if most is not None and len(subscriptions) >= most:
                    raise NoRoom("the topic has no room for another filter policy")
                self._cloud.to_miss[names.queue] = self._cloud.lost_deliveries
            subscriptions[names.queue] = key
            return names.queue

    async def is_subscribed(self, subscription: str) -> bool:
        """Whether a subscription is still there, by the name of its queue."""
        with self._cloud.call("is_subscribed"):
            return subscription in self._cloud.subscriptions

    async def unsubscribe(self, names: Names, plan: BatchPlan) -> bool:
        """Take the subscription of the queue away."""
        with self._cloud.call("unsubscribe"):
            return self._cloud.subscriptions.pop(names.queue, None) is not None

    async def publish(self, plan: BatchPlan, publication: Publication) -> None:
        """Publish an announcement."""
        with self._cloud.call("publish"):
            self._cloud.published.append(publication)
            for listener in self._cloud.listeners:
                listener(publication)

    async def send_canary(self, plan: BatchPlan, key: BatchKey, message_id: str) -> None:
        """Publish a message that only the batch's own queue is subscribed to."""
        with self._cloud.call("send_canary"):
            body = {"eventType": CANARY, "caseId": key.case_id, "batchId": key.batch_id}
            self.deliver(key, json.dumps({**body, "messageId": message_id}))

    def deliver(self, key: BatchKey, body: str) -> int:
        """Publish a message of a batch, as a sender does; return how many queues got it."""
        cloud = self._cloud
        reached = 0
        for name in [name for name, of in cloud.subscriptions.items() if of == key]:
            queue = cloud.queues_by_name.get(name)
            if queue is None or not queue.open_to_topic:
                continue
            if cloud.to_miss.get(name, 0) > 0:
                cloud.to_miss[name] -= 1
                continue
            queue.messages.append(body)
            reached += 1
        return reached

    async def found(self, prefix: str, topic_arn: str) -> AsyncIterator[FoundResource]:
        """Subscriptions of the queues of every batch of an installation."""
        with self._cloud.call("found_subscriptions"):
            for name, key in list(self._cloud.subscriptions.items()):
                if key_of(prefix, name) is not None:
                    arn = f"{topic_arn}:{hashlib.sha256(name.encode()).hexdigest()[:12]}"
                    yield FoundResource(key, Resource.SUBSCRIPTION, arn)


def _is_canary(body: str) -> bool:
    try:
        content = json.loads(body)
    except ValueError:
        return False
    return isinstance(content, dict) and cast(dict[str, Any], content).get("eventType") == CANARY
