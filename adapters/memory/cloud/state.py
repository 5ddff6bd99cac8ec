"""What exists in a cloud in memory, and what is to go wrong in it."""

from collections import Counter, defaultdict
from collections.abc import Awaitable, Callable, Generator
from contextlib import contextmanager
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from typing import Final

from adapters.ports import Denied, SourceFunction, Throttled
from contracts.batches import BatchKey, Publication, QueueDepth
from contracts.dependencies import Dependency

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
