"""A cloud in memory, for tests: queues, a topic, functions and grants over one state."""

import hashlib
import json
from collections import Counter, defaultdict
from collections.abc import AsyncIterator, Callable
from dataclasses import dataclass, field
from datetime import UTC, datetime

from adapters.ports import Denied, FoundResource, SourceFunction
from contracts.batches import (
    CANARY,
    BatchKey,
    BatchPlan,
    Names,
    Publication,
    QueueDepth,
    Redriven,
    Resource,
    key_of,
)

ROLE = "loader"


@dataclass
class MemoryQueue:
    """One queue."""

    owner: str
    made_at: datetime
    messages: list[str] = field(default_factory=list[str])
    open_to_topic: bool = False
    redrives: bool = False


@dataclass
class MemoryFunction:
    """One function."""

    owner: str
    made_at: datetime
    mapped: bool = False
    reserved: int | None = None


@dataclass
class MemoryCloud:
    """What exists, what was published, and what is to fail.

    Attributes:
        calls: Every call of a port, by its name.
    """

    queues_by_name: dict[str, MemoryQueue] = field(default_factory=dict[str, MemoryQueue])
    functions_by_name: dict[str, MemoryFunction] = field(default_factory=dict[str, MemoryFunction])
    subscriptions: dict[str, BatchKey] = field(default_factory=dict[str, BatchKey])
    policies: set[str] = field(default_factory=set[str])
    published: list[Publication] = field(default_factory=list[Publication])
    calls: Counter[str] = field(default_factory=Counter[str])
    listeners: list[Callable[[Publication], None]] = field(
        default_factory=list[Callable[[Publication], None]]
    )
    """Told of every announcement."""
    _failures: dict[str, list[Exception]] = field(
        default_factory=lambda: defaultdict[str, list[Exception]](list)
    )

    def __post_init__(self) -> None:
        self.queues = MemoryQueues(self)
        self.topic = MemoryTopic(self)
        self.functions = MemoryFunctions(self)
        self.grants = MemoryGrants(self)

    @property
    def is_empty(self) -> bool:
        """Nothing of any batch exists."""
        return not (
            self.queues_by_name or self.functions_by_name or self.subscriptions or self.policies
        )

    def fail(self, call: str, error: Exception, times: int = 1) -> None:
        """Let the next calls of a name raise an error of the ports."""
        self._failures[call] += [error] * times

    def begin(self, call: str) -> None:
        """Count a call, and fail it when it is to fail."""
        self.calls[call] += 1
        if self._failures[call]:
            raise self._failures[call].pop(0)

    def queue(self, name: str) -> MemoryQueue:
        """A queue that exists.

        Raises:
            Denied: It does not.
        """
        if name not in self.queues_by_name:
            raise Denied(f"there is no queue {name}")
        return self.queues_by_name[name]


class MemoryQueues:
    """`BatchQueues` in memory."""

    def __init__(self, cloud: MemoryCloud) -> None:
        self._cloud = cloud

    async def ensure_dead_letters(self, names: Names, plan: BatchPlan, owner: str) -> None:
        """Make the dead-letter queue."""
        self._cloud.begin("ensure_dead_letters")
        self._make(names.dead_letters, owner)

    async def ensure_queue(
        self, names: Names, plan: BatchPlan, owner: str, visibility: int
    ) -> None:
        """Make the queue."""
        self._cloud.begin("ensure_queue")
        self._make(names.queue, owner)

    def _make(self, name: str, owner: str) -> None:
        queue = self._cloud.queues_by_name.setdefault(name, MemoryQueue(owner, datetime.now(UTC)))
        if queue.owner != owner:
            raise Denied(f"a queue {name} exists and belongs to {queue.owner}")

    async def set_redrive_policy(self, names: Names, plan: BatchPlan) -> None:
        """Note that there is one."""
        self._cloud.begin("set_redrive_policy")
        self._cloud.queue(names.dead_letters)
        self._cloud.queue(names.queue).redrives = True

    async def allow_topic(self, names: Names, plan: BatchPlan) -> None:
        """Let the topic send to the queue."""
        self._cloud.begin("allow_topic")
        self._cloud.queue(names.queue).open_to_topic = True

    async def has_proof(self, queue: str, message_id: str) -> bool:
        """Take canaries out of the queue."""
        self._cloud.begin("has_proof")
        here = self._cloud.queue(queue)
        proven = bool(here.messages)
        here.messages = [body for body in here.messages if json.loads(body)["eventType"] != CANARY]
        return proven

    async def depth(self, queue: str) -> QueueDepth | None:
        """Messages; None: there is no such queue."""
        self._cloud.begin("depth")
        here = self._cloud.queues_by_name.get(queue)
        return None if here is None else QueueDepth(visible=len(here.messages))

    async def redrive(self, names: Names) -> Redriven:
        """Move all dead letters back, each message once."""
        self._cloud.begin("redrive")
        dead = self._cloud.queues_by_name.get(names.dead_letters)
        if dead is None:
            return Redriven(moved=0)
        bodies = list(dict.fromkeys(dead.messages))
        self._cloud.queue(names.queue).messages += bodies
        duplicates = len(dead.messages) - len(bodies)
        dead.messages = []
        return Redriven(moved=len(bodies), duplicates=duplicates)

    async def dead_letter(self, names: Names, body: str, reason: str, deduplication: str) -> None:
        """Put a message among the dead letters."""
        self._cloud.begin("dead_letter")
        self._cloud.queue(names.dead_letters).messages.append(body)

    async def delete_queue(self, queue: str) -> bool:
        """Delete a queue with everything in it."""
        self._cloud.begin("delete_queue")
        return self._cloud.queues_by_name.pop(queue, None) is not None

    async def found(self, prefix: str) -> AsyncIterator[FoundResource]:
        """Queues of every batch of an installation."""
        self._cloud.begin("found_queues")
        for name, queue in list(self._cloud.queues_by_name.items()):
            key = key_of(prefix, name)
            if key is not None:
                kind = Resource.DEAD_LETTERS if name.endswith("_dlq") else Resource.QUEUE
                details = {"messages": str(len(queue.messages))}
                yield FoundResource(key, kind, name, queue.made_at, queue.owner, details)


class MemoryTopic:
    """`BatchTopic` in memory."""

    def __init__(self, cloud: MemoryCloud) -> None:
        self._cloud = cloud

    async def subscribe(self, names: Names, plan: BatchPlan, key: BatchKey) -> None:
        """Subscribe the queue to the events of its batch."""
        self._cloud.begin("subscribe")
        self._cloud.queue(names.queue)
        self._cloud.subscriptions[names.queue] = key

    async def unsubscribe(self, names: Names, plan: BatchPlan) -> bool:
        """Take the subscription of the queue away."""
        self._cloud.begin("unsubscribe")
        return self._cloud.subscriptions.pop(names.queue, None) is not None

    async def publish(self, plan: BatchPlan, publication: Publication) -> None:
        """Announce something to the world."""
        self._cloud.begin("publish")
        self._cloud.published.append(publication)
        for listener in self._cloud.listeners:
            listener(publication)

    async def send_canary(self, plan: BatchPlan, key: BatchKey, message_id: str) -> None:
        """Publish a message that only the batch's own queue is subscribed to."""
        self._cloud.begin("send_canary")
        body = {"eventType": CANARY, "caseId": key.case_id, "batchId": key.batch_id}
        self.deliver(key, json.dumps({**body, "messageId": message_id}))

    def deliver(self, key: BatchKey, body: str) -> int:
        """What happens to a message of a batch: into how many queues it went."""
        queues = [name for name, of in self._cloud.subscriptions.items() if of == key]
        for name in queues:
            queue = self._cloud.queues_by_name.get(name)
            if queue is not None and queue.open_to_topic:
                queue.messages.append(body)
        return len(queues)

    async def found(self, prefix: str, topic_arn: str) -> AsyncIterator[FoundResource]:
        """Subscriptions of the queues of every batch of an installation."""
        self._cloud.begin("found_subscriptions")
        for name, key in list(self._cloud.subscriptions.items()):
            if key_of(prefix, name) is not None:
                arn = f"{topic_arn}:{hashlib.sha256(name.encode()).hexdigest()[:12]}"
                yield FoundResource(key, Resource.SUBSCRIPTION, arn)


class MemoryFunctions:
    """`BatchFunctions` in memory."""

    def __init__(self, cloud: MemoryCloud) -> None:
        self._cloud = cloud

    async def source(self, plan: BatchPlan) -> SourceFunction:
        """Facts of the function to clone."""
        self._cloud.begin("source")
        return SourceFunction(timeout=30, role=ROLE)

    async def exists(self, function: str) -> bool:
        """Whether there is such a function."""
        self._cloud.begin("exists")
        return function in self._cloud.functions_by_name

    async def clone(self, names: Names, plan: BatchPlan, key: BatchKey, owner: str) -> None:
        """Make the batch's function."""
        self._cloud.begin("clone")
        made = MemoryFunction(owner, datetime.now(UTC))
        if self._cloud.functions_by_name.setdefault(names.function, made).owner != owner:
            raise Denied(f"a function {names.function} exists and belongs to somebody else")

    async def attach(self, names: Names, plan: BatchPlan) -> None:
        """Let the queue invoke the function."""
        self._cloud.begin("attach")
        self._cloud.queue(names.queue)
        self._function(names).mapped = True

    async def detach(self, names: Names) -> bool:
        """Delete the mapping."""
        self._cloud.begin("detach")
        function = self._cloud.functions_by_name.get(names.function)
        if function is None or not function.mapped:
            return False
        function.mapped = False
        return True

    async def reserve(self, names: Names, plan: BatchPlan) -> None:
        """Reserve the function's concurrency."""
        self._cloud.begin("reserve")
        self._function(names).reserved = plan.concurrency

    async def delete(self, function: str) -> bool:
        """Delete a function."""
        self._cloud.begin("delete_function")
        return self._cloud.functions_by_name.pop(function, None) is not None

    async def found(self, prefix: str) -> AsyncIterator[FoundResource]:
        """Functions, mappings and reservations of every batch of an installation."""
        self._cloud.begin("found_functions")
        for name, function in list(self._cloud.functions_by_name.items()):
            key = key_of(prefix, name)
            if key is None:
                continue
            yield FoundResource(key, Resource.FUNCTION, name, function.made_at, function.owner)
            if function.mapped:
                yield FoundResource(key, Resource.MAPPING, name)
            if function.reserved is not None:
                yield FoundResource(key, Resource.CONCURRENCY, name)

    def _function(self, names: Names) -> MemoryFunction:
        if names.function not in self._cloud.functions_by_name:
            raise Denied(f"there is no function {names.function}")
        return self._cloud.functions_by_name[names.function]


class MemoryGrants:
    """`BatchGrants` in memory."""

    def __init__(self, cloud: MemoryCloud) -> None:
        self._cloud = cloud

    async def grant(self, names: Names, plan: BatchPlan, role: str) -> None:
        """Allow what the batch needs."""
        self._cloud.begin("grant")
        self._cloud.policies.add(names.policy)

    async def revoke(self, names: Names, role: str) -> bool:
        """Take it back."""
        self._cloud.begin("revoke")
        gone = names.policy in self._cloud.policies
        self._cloud.policies.discard(names.policy)
        return gone

    async def found(self, prefix: str, role: str) -> AsyncIterator[FoundResource]:
        """Policies of every batch of an installation."""
        self._cloud.begin("found_policies")
        for name in sorted(self._cloud.policies):
            key = key_of(prefix, name)
            if key is not None:
                yield FoundResource(key, Resource.PERMISSIONS, name)
