"""A cloud in memory: queues, a topic, functions and grants over one state.

What exists in a cloud in memory, and what is to go wrong in it.

Queues and the topic of a cloud in memory.

Functions and grants of a cloud in memory.

The account that owns everything in a cloud in memory.
"""

import hashlib
import json
from collections import Counter, defaultdict
from collections.abc import AsyncIterator, Awaitable, Callable, Generator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from typing import Any, Final, cast

from adapters.ports.batches import QueuedDeadLetter, SourceFunction
from adapters.ports.errors import Denied, NoRoom, NotYet, Throttled
from workflows.batches.events import Publication
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
from workflows.batches.validation import FoundResource
from workflows.shared.dependencies import Dependency

ROLE: Final = "loader"
"""Of the source function."""

Handler = Callable[[str, str], Awaitable[bool]]
"""What a function does with a message, by the names of queue and function, which are the same, and
its body; False: it failed."""


@dataclass
class MemoryQueue:
    """One queue; messages are their bodies."""

    owner: str | None
    made_at: datetime
    messages: list[str] = field(default_factory=list[str])
    """Those that can be received."""
    delayed: list[str] = field(default_factory=list[str])
    in_flight: list[str] = field(default_factory=list[str])
    retention: int = 0
    visibility: int = 0
    topic_arn: str | None = None
    """The topic that may send."""
    dead_letters: str | None = None
    max_receives: int = 1
    """Before a message goes there."""

    @property
    def open_to_topic(self) -> bool:
        """A topic may send."""
        return self.topic_arn is not None

    @property
    def redrives(self) -> bool:
        """It has a redrive policy."""
        return self.dead_letters is not None

    @property
    def depth(self) -> QueueDepth:
        """Messages by state."""
        return QueueDepth(
            visible=len(self.messages), delayed=len(self.delayed), in_flight=len(self.in_flight)
        )

    def take(self) -> str:
        """Receive a message: it stays in flight until it is settled or put back."""
        self.in_flight.append(self.messages.pop(0))
        return self.in_flight[-1]

    def settle(self, body: str) -> None:
        """Delete a message in flight."""
        self.in_flight.remove(body)

    def put_back(self, body: str) -> None:
        """Let a message in flight be received again."""
        self.in_flight.remove(body)
        self.messages.append(body)


@dataclass
class MemoryFunction:
    """One function."""

    owner: str
    made_at: datetime
    mapped: bool = False
    reserved: int | None = None
    pending: int = 0
    """How often it will report that it is not active yet."""
    mapping_pending: int = 0
    """How often its mapping will report that it is not enabled yet."""


@dataclass(frozen=True)
class DeadLetter:
    """What a caller sent to the dead-letter queue, and why."""

    queue: str
    body: str
    reason: str
    deduplication: str


@dataclass
class _Failure:
    error: Exception
    after: bool


def _now() -> datetime:
    return datetime.now(UTC)


@dataclass
class CloudState:
    """What exists, what was published, and what is to fail.

    Attributes:
        calls: How often a port was called, by the name of the call.
        history: The same in order.
    """

    queues_by_name: dict[str, MemoryQueue] = field(default_factory=dict[str, MemoryQueue])
    functions_by_name: dict[str, MemoryFunction] = field(default_factory=dict[str, MemoryFunction])
    subscriptions: dict[str, BatchKey] = field(default_factory=dict[str, BatchKey])
    """Queue to the batch whose events it gets."""
    policies: set[str] = field(default_factory=set[str])
    published: list[Publication] = field(default_factory=list[Publication])
    dead_lettered: list[DeadLetter] = field(default_factory=list[DeadLetter])
    """What was put among the dead letters by `dead_letter`, whatever became of it."""
    calls: Counter[str] = field(default_factory=Counter[str])
    history: list[str] = field(default_factory=list[str])
    listeners: list[Callable[[Publication], None]] = field(
        default_factory=list[Callable[[Publication], None]]
    )
    """Called with every announcement."""
    handler: Handler | None = None
    """What functions do; they take messages when messages are counted, and in `work`."""
    source: SourceFunction | None = field(default_factory=lambda: SourceFunction(30, ROLE))
    """What batches' functions are cloned from; None: there is none."""
    clock: Callable[[], datetime] = _now
    name_rest: timedelta = timedelta(0)
    """How long the name of a deleted queue cannot be used again."""
    lost_deliveries: int = 0
    """Messages that a new subscription misses, before its filter policy works."""
    pending_looks: int = 0
    """How often a new function, and a new mapping, report that they are not ready."""
    filter_policies: int | None = None
    """Subscriptions that the topic takes; None: any number."""
    reservable: int | None = None
    """Concurrency that may be reserved; None: any."""
    rates: dict[str, float] = field(default_factory=dict[str, float])
    """Calls a second that the account takes, by the name of the call; of others any number."""
    throttled: Counter[str] = field(default_factory=Counter[str])
    """How often a call was refused as one too many; those are not among `calls`."""
    deleted_at: dict[str, datetime] = field(default_factory=dict[str, datetime])
    to_miss: dict[str, int] = field(default_factory=dict[str, int])
    """Messages that a subscription misses yet, by its queue."""
    _admitted: dict[str, tuple[float, datetime]] = field(
        default_factory=dict[str, tuple[float, datetime]]
    )
    """Calls that were left of each rate, and when."""
    _failures: dict[str, list[_Failure]] = field(
        default_factory=lambda: defaultdict[str, list[_Failure]](list)
    )

    @property
    def is_empty(self) -> bool:
        """Nothing of any batch exists."""
        return not (
            self.queues_by_name or self.functions_by_name or self.subscriptions or self.policies
        )

    def fail(self, call: str, error: Exception, times: int = 1, *, after: bool = False) -> None:
        """Let the next calls of a name raise.

        Args:
            call: The method's name; those that several ports have are prefixed:
                `delete_function`, `found_queues`, `found_subscriptions`, `found_functions`,
                `found_policies`.
            error: An error of the ports.
            times: How often.
            after: The work is done, only the answer is lost.
        """
        self._failures[call] += [_Failure(error, after)] * times

    @contextmanager
    def call(self, name: str) -> Generator[None]:
        """Count a call, and fail it when it is to fail."""
        self._admit(name)
        self.calls[name] += 1
        self.history.append(name)
        failure = self._failures[name].pop(0) if self._failures[name] else None
        if failure is not None and not failure.after:
            raise failure.error
        yield
        if failure is not None:
            raise failure.error

    def _admit(self, name: str) -> None:
        """Refuse a call that is one too many; what is not used of a second is used in the next."""
        rate = self.rates.get(name)
        if rate is None:
            return
        now = self.clock()
        left, since = self._admitted.get(name, (rate, now))
        left = min(rate, left + rate * (now - since).total_seconds())
        if left < 1:
            self.throttled[name] += 1
            raise Throttled(f"{name}: more than {rate:g} calls a second", None, Dependency.CLOUD)
        self._admitted[name] = (left - 1, now)

    def queue(self, name: str) -> MemoryQueue:
        """A queue that exists.

        Raises:
            Denied: It does not.
        """
        if name not in self.queues_by_name:
            raise Denied(f"there is no queue {name}")
        return self.queues_by_name[name]

    async def work(self, name: str) -> None:
        """Let the function of a queue take messages until there are none, if it is mapped.

        One that fails as often as the redrive policy allows becomes a dead letter.
        """
        queue, function = self.queues_by_name.get(name), self.functions_by_name.get(name)
        if self.handler is None or queue is None or function is None:
            return
        while function.mapped and queue.messages:
            body = queue.take()
            receives = 1
            while not (done := await self.handler(name, body)) and receives < queue.max_receives:
                receives += 1
            dead = self.queues_by_name.get(queue.dead_letters or "")
            if not done and dead is None:
                queue.put_back(body)
                return
            queue.settle(body)
            if not done and dead is not None:
                dead.messages.append(body)


class MemoryQueues:
    """`AwsQueues` in memory."""

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
    """`AwsTopic` in memory."""

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


PAUSE: Final = 0.01
"""Seconds until what is being made is looked at again."""


class MemoryFunctions:
    """`AwsFunctions` in memory."""

    def __init__(self, cloud: CloudState) -> None:
        self._cloud = cloud

    async def source(self, plan: BatchPlan) -> SourceFunction:
        """Facts of the function to clone."""
        with self._cloud.call("source"):
            return self._source(plan)

    async def exists(self, function: str) -> bool:
        """Whether there is such a function."""
        with self._cloud.call("exists"):
            return function in self._cloud.functions_by_name

    async def clone(self, names: Names, plan: BatchPlan, key: BatchKey, owner: str) -> None:
        """Make the batch's function."""
        with self._cloud.call("clone"):
            self._source(plan)
            pending = self._cloud.pending_looks
            made = MemoryFunction(
                owner, self._cloud.clock(), pending=pending, mapping_pending=pending
            )
            function = self._cloud.functions_by_name.setdefault(names.function, made)
            if function.owner != owner:
                raise Denied(f"a function {names.function} exists and belongs to another owner")
            if function.pending > 0:
                function.pending -= 1
                raise NotYet(f"{names.function} is pending", PAUSE)

    async def attach(self, names: Names, plan: BatchPlan) -> None:
        """Let the queue invoke the function."""
        with self._cloud.call("attach"):
            self._cloud.queue(names.queue)
            function = self._function(names)
            function.mapped = True
            if function.mapping_pending > 0:
                function.mapping_pending -= 1
                raise NotYet(f"the mapping of {names.function} is being made", PAUSE)

    async def is_fed(self, names: Names) -> bool:
        """Whether the function is mapped."""
        with self._cloud.call("is_fed"):
            function = self._cloud.functions_by_name.get(names.function)
            return function is not None and function.mapped

    async def detach(self, names: Names) -> bool:
        """Delete the mapping."""
        with self._cloud.call("detach"):
            function = self._cloud.functions_by_name.get(names.function)
            if function is None or not function.mapped:
                return False
            function.mapped = False
            return True

    async def reserve(self, names: Names, plan: BatchPlan) -> None:
        """Reserve the function's concurrency."""
        with self._cloud.call("reserve"):
            function = self._function(names)
            others = sum(
                one.reserved or 0
                for one in self._cloud.functions_by_name.values()
                if one is not function
            )
            most = self._cloud.reservable
            if most is not None and others + plan.concurrency > most:
                raise NoRoom(f"{plan.concurrency} of concurrency are more than may be reserved")
            function.reserved = plan.concurrency

    async def delete(self, function: str, owner: str) -> bool:
        """Delete a function, unless it belongs to another owner."""
        with self._cloud.call("delete_function"):
            here = self._cloud.functions_by_name.get(function)
            if here is None:
                return False
            if here.owner != owner:
                raise Denied(f"the function {function} belongs to {here.owner}, not to {owner}")
            del self._cloud.functions_by_name[function]
            return True

    async def found(self, prefix: str) -> AsyncIterator[FoundResource]:
        """Functions, mappings and reservations of every batch of an installation."""
        with self._cloud.call("found_functions"):
            for name, function in list(self._cloud.functions_by_name.items()):
                key = key_of(prefix, name)
                if key is None:
                    continue
                yield FoundResource(key, Resource.FUNCTION, name, function.made_at, function.owner)
                if function.mapped:
                    yield FoundResource(key, Resource.MAPPING, name)
                if function.reserved is not None:
                    yield FoundResource(key, Resource.CONCURRENCY, name)

    def _source(self, plan: BatchPlan) -> SourceFunction:
        if self._cloud.source is None:
            raise Denied(f"there is no function {plan.source_function}")
        return self._cloud.source

    def _function(self, names: Names) -> MemoryFunction:
        if names.function not in self._cloud.functions_by_name:
            raise Denied(f"there is no function {names.function}")
        return self._cloud.functions_by_name[names.function]


class MemoryGrants:
    """`AwsGrants` in memory."""

    def __init__(self, cloud: CloudState) -> None:
        self._cloud = cloud

    async def grant(self, names: Names, plan: BatchPlan, role: str) -> None:
        """Allow what the batch needs."""
        with self._cloud.call("grant"):
            self._check(role)
            self._cloud.policies.add(names.policy)

    async def grant_once(self, plan: BatchPlan, role: str) -> None:
        """Allow what the plan grants, for all batches together."""
        with self._cloud.call("grant_once"):
            self._check(role)
            self._cloud.policies.add(f"{plan.prefix}_doc_loader_grants")

    async def revoke(self, names: Names, role: str) -> bool:
        """Take it back."""
        with self._cloud.call("revoke"):
            there = names.policy in self._cloud.policies
            self._cloud.policies.discard(names.policy)
            return there

    async def found(self, prefix: str, role: str) -> AsyncIterator[FoundResource]:
        """Policies of every batch of an installation."""
        with self._cloud.call("found_policies"):
            for name in sorted(self._cloud.policies):
                key = key_of(prefix, name)
                if key is not None:
                    yield FoundResource(key, Resource.PERMISSIONS, name)

    def _check(self, role: str) -> None:
        if self._cloud.source is None or role != self._cloud.source.role:
            raise Denied(f"there is no role {role}")


@dataclass
class MemoryCloud(CloudState):
    """The ports of a cloud over one state, which tests may read and change.

    Attributes:
        queues: `AwsQueues`.
        topic: `AwsTopic`.
        functions: `AwsFunctions`.
        grants: `AwsGrants`.
    """

    def __post_init__(self) -> None:
        self.queues = MemoryQueues(self)
        self.topic = MemoryTopic(self)
        self.functions = MemoryFunctions(self)
        self.grants = MemoryGrants(self)
