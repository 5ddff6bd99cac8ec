"""A bench for queues and topics of any kind of cloud: what the world does to them."""

import json
import secrets
from abc import ABC, abstractmethod
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from adapters.aws.queues import AwsQueues
from adapters.aws.session import AwsClients
from adapters.aws.topic import AwsTopic
from tests.support.aws import cloud
from tests.support.memory.cloud import MemoryCloud, MemoryQueue
from tests.support.waiting import eventually
from workflows.batches.names import BatchKey, BatchPlan, Names, QueueDepth, names_of
from workflows.batches.validation import FoundResource

KEY = BatchKey(case_id=7, batch_id=3)
OTHER = BatchKey(case_id=7, batch_id=30)
"""Its names begin like those of the first."""
VISIBILITY = 30


@dataclass(frozen=True)
class Settings:
    """What a queue is set to."""

    retention: int
    visibility: int | None
    dead_letters: str | None
    max_receives: int | None
    topic_arn: str | None
    """The one that may send."""


@dataclass
class QueueSetup(ABC):
    """Queues and a topic, for one test."""

    name: str
    queues: AwsQueues
    topic: AwsTopic
    plan: BatchPlan
    patience: float = 20
    """Seconds that the cloud may take until what was done can be seen."""

    def names(self, key: BatchKey = KEY) -> Names:
        """What a batch's resources are called."""
        return names_of(self.plan.prefix, key)

    async def build(self, key: BatchKey = KEY, **plan: Any) -> Names:
        """Queue and dead letters with their policies."""
        names, wanted = self.names(key), self.plan.model_copy(update=plan)
        await self.queues.ensure_dead_letters(names, wanted, key.workflow_id)
        await self.queues.ensure_queue(names, wanted, key.workflow_id, VISIBILITY)
        await self.queues.set_redrive_policy(names, wanted)
        await self.queues.allow_topic(names, wanted)
        return names

    async def subscribe(self, key: BatchKey = KEY, **plan: Any) -> Names:
        """All of that, and a subscription."""
        names = await self.build(key)
        await self.topic.subscribe(names, self.plan.model_copy(update=plan), key)
        return names

    async def found_queues(self) -> list[FoundResource]:
        """Queues of the installation, by name."""
        found = [one async for one in self.queues.found(self.plan.prefix)]
        return sorted(found, key=lambda one: one.name)

    async def subscriptions(self) -> list[BatchKey]:
        """Batches that are subscribed, each as often as it is."""
        found = self.topic.found(self.plan.prefix, self.plan.topic_arn)
        return sorted([one.key async for one in found], key=str)

    async def holds(self, queue: str, **depth: int) -> None:
        """Wait until a queue has this depth.

        Raises:
            TimeoutError: It does not get there.
        """
        wanted = QueueDepth(**depth)

        async def does() -> bool:
            return await self.queues.depth(queue) == wanted

        await eventually(does, seconds=self.patience)

    async def arrives(self, queue: str, count: int = 1) -> list[str]:
        """Wait for messages and take them out of a queue.

        Raises:
            TimeoutError: They do not come.
        """
        bodies: list[str] = []

        async def all_are_here() -> bool:
            bodies.extend(await self.drain(queue))
            return len(bodies) >= count

        await eventually(all_are_here, seconds=self.patience)
        return bodies

    @abstractmethod
    async def send(self, queue: str, body: str, delay: int = 0) -> None:
        """Put a message into a queue, as no subscription does."""

    @abstractmethod
    async def receive(self, queue: str) -> str:
        """Receive a message and say nothing more about it."""

    @abstractmethod
    async def fail(self, queue: str, times: int) -> None:
        """Receive the one message of a queue so often, and give it back."""

    @abstractmethod
    async def drain(self, queue: str) -> list[str]:
        """Take what can be received out of a queue."""

    @abstractmethod
    async def settings(self, queue: str) -> Settings:
        """What a queue is set to."""

    @abstractmethod
    async def untag(self, queue: str) -> None:
        """Remove the owner's tag of a queue."""

    @abstractmethod
    async def publish(self, event_type: str, key: BatchKey = KEY, **more: Any) -> str:
        """Publish as the senders of documents do: the body."""


@dataclass
class MemoryQueueSetup(QueueSetup):
    """In memory."""

    cloud: MemoryCloud = field(kw_only=True)

    async def send(self, queue: str, body: str, delay: int = 0) -> None:
        here = self._queue(queue)
        (here.delayed if delay else here.messages).append(body)

    async def receive(self, queue: str) -> str:
        return self._queue(queue).take()

    async def fail(self, queue: str, times: int) -> None:
        async def fails(queue: str, body: str) -> bool:
            return False

        await self.cloud.functions.clone(self.names(), self.plan, KEY, KEY.workflow_id)
        await self.cloud.functions.attach(self.names(), self.plan)
        self.cloud.handler = fails
        await self.cloud.work(queue)
        self.cloud.handler = None

    async def drain(self, queue: str) -> list[str]:
        here = self._queue(queue)
        bodies = list(here.messages)
        here.messages.clear()
        return bodies

    async def settings(self, queue: str) -> Settings:
        here = self._queue(queue)
        return Settings(
            here.retention,
            here.visibility or None,
            here.dead_letters,
            here.max_receives if here.redrives else None,
            here.topic_arn,
        )

    async def untag(self, queue: str) -> None:
        self._queue(queue).owner = None

    async def publish(self, event_type: str, key: BatchKey = KEY, **more: Any) -> str:
        body = json.dumps(document(event_type, key, **more))
        self.cloud.topic.deliver(key, body)
        return body

    def _queue(self, name: str) -> MemoryQueue:
        return self.cloud.queue(name)


@dataclass
class AwsQueueSetup(QueueSetup):
    """On what speaks as AWS does."""

    clients: AwsClients = field(kw_only=True)

    async def send(self, queue: str, body: str, delay: int = 0) -> None:
        await self.clients.sqs.send_message(
            QueueUrl=await self.url(queue), MessageBody=body, DelaySeconds=delay
        )

    async def receive(self, queue: str) -> str:
        got: Any = await self.clients.sqs.receive_message(
            QueueUrl=await self.url(queue), WaitTimeSeconds=5
        )
        return got["Messages"][0]["Body"]

    async def fail(self, queue: str, times: int) -> None:
        # The receive after the last one is what makes it a dead letter.
        for _ in range(times + 1):
            got: Any = await self.clients.sqs.receive_message(
                QueueUrl=await self.url(queue), WaitTimeSeconds=1, VisibilityTimeout=0
            )
            if not got.get("Messages"):
                return

    async def drain(self, queue: str) -> list[str]:
        url = await self.url(queue)
        bodies: list[str] = []
        while True:
            got: Any = await self.clients.sqs.receive_message(
                QueueUrl=url, MaxNumberOfMessages=10, WaitTimeSeconds=0
            )
            if not got.get("Messages"):
                return bodies
            for message in got["Messages"]:
                bodies.append(message["Body"])
                await self.clients.sqs.delete_message(
                    QueueUrl=url, ReceiptHandle=message["ReceiptHandle"]
                )

    async def settings(self, queue: str) -> Settings:
        got: Any = await self.clients.sqs.get_queue_attributes(
            QueueUrl=await self.url(queue), AttributeNames=["All"]
        )
        has = got["Attributes"]
        redrive = json.loads(has.get("RedrivePolicy", "{}"))
        statements = json.loads(has.get("Policy") or "{}").get("Statement", [])
        return Settings(
            int(has["MessageRetentionPeriod"]),
            int(has["VisibilityTimeout"]),
            redrive.get("deadLetterTargetArn", "").rpartition(":")[2] or None,
            redrive.get("maxReceiveCount"),
            statements[0]["Condition"]["ArnEquals"]["aws:SourceArn"] if statements else None,
        )

    async def untag(self, queue: str) -> None:
        url = await self.url(queue)
        got: Any = await self.clients.sqs.list_queue_tags(QueueUrl=url)
        await self.clients.sqs.untag_queue(QueueUrl=url, TagKeys=list(got["Tags"]))

    async def publish(self, event_type: str, key: BatchKey = KEY, **more: Any) -> str:
        body = json.dumps(document(event_type, key, **more))
        numbers = {"caseId": key.case_id, "batchId": key.batch_id}
        await self.clients.sns.publish(
            TopicArn=self.plan.topic_arn,
            Message=body,
            MessageAttributes={
                "eventType": {"DataType": "String", "StringValue": event_type},
                **{
                    name: {"DataType": "Number", "StringValue": str(number)}
                    for name, number in numbers.items()
                },
            },
        )
        return body

    async def url(self, queue: str) -> str:
        """Where a queue is."""
        return (await self.clients.sqs.get_queue_url(QueueName=queue))["QueueUrl"]

    async def remove(self) -> None:
        """Leave nothing behind."""
        async for one in self.topic.found(self.plan.prefix, self.plan.topic_arn):
            await self.clients.sns.unsubscribe(SubscriptionArn=one.name)
        await self.clients.sns.delete_topic(TopicArn=self.plan.topic_arn)
        for one in await self.found_queues():
            await self.clients.sqs.delete_queue(QueueUrl=await self.url(one.name))


def document(event_type: str, key: BatchKey = KEY, **more: Any) -> dict[str, Any]:
    """What a sender says about a document of a batch."""
    return {"eventType": event_type, "caseId": key.case_id, "batchId": key.batch_id, **more}


QueueSetups = Callable[[], Awaitable[QueueSetup]]


@asynccontextmanager
async def open_queue_setups(name: str, folder: Path) -> AsyncIterator[QueueSetups]:
    """Open the cloud of that name, or the one in memory; every bench has a prefix of its own."""
    if name == "memory":

        async def in_memory() -> QueueSetup:
            memory = MemoryCloud()
            plan = _plan("arn:aws:sns:eu-central-1:123456789012:documents")
            return MemoryQueueSetup(name, memory.queues, memory.topic, plan, cloud=memory)

        yield in_memory
        return
    opened: list[AwsQueueSetup] = []
    async with cloud(name, folder) as setup:
        clients = setup.clients

        async def on_aws() -> QueueSetup:
            queues, topic = AwsQueues(clients.sqs), AwsTopic(clients.sns, clients.sqs)
            plan = _plan("arn:aws:sns:unknown")
            made = await clients.sns.create_topic(Name=plan.prefix)
            plan = plan.model_copy(update={"topic_arn": made["TopicArn"]})
            setup = AwsQueueSetup(name, queues, topic, plan, clients=clients)
            if name == "aws":
                # Filter policies, and counters, take their time.
                setup = replace(setup, patience=15 * 60)
            opened.append(setup)
            return setup

        try:
            yield on_aws
        finally:
            for setup in opened if name == "aws" else ():
                await setup.remove()


def _plan(topic_arn: str) -> BatchPlan:
    return BatchPlan(
        prefix=f"docflow-{secrets.token_hex(4)}", topic_arn=topic_arn, source_function="loader"
    )
