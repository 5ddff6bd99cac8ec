"""Queues in a running event loop: who wants messages, and when time changes something."""

import asyncio
import math
from collections import deque
from collections.abc import Callable, Iterable, Iterator
from typing import Final, Protocol
from urllib.parse import urlsplit

from emulators.service_bus.broker import MessageQueue
from emulators.service_bus.hubs import Hubs, HubSettings
from emulators.service_bus.journal import Journal
from emulators.service_bus.settings import QueueSettings

MANAGEMENT_SUFFIX: Final = "/$management"
_DELIVERIES_PER_TURN: Final = 256
"""After so many deliveries of one queue the event loop gets its turn."""


class Consumer(Protocol):
    """A link that delivers a queue's messages."""

    @property
    def ready(self) -> bool:
        """Whether it may deliver a message now."""
        ...

    def deliver(self) -> bool:
        """Deliver the next message; False when there is none."""
        ...

    def finish_drain(self) -> None:
        """Hand back credit that its receiver no longer waits for."""
        ...


class Node:
    """A queue, its consumers in turn, and the timer of its next deadline."""

    def __init__(self, queue: MessageQueue, clock: Callable[[], float]) -> None:
        self.queue = queue
        self.consumers: deque[Consumer] = deque()
        self._clock = clock
        self._loop = asyncio.get_running_loop()
        self._due = False
        self._timer: asyncio.TimerHandle | None = None
        self._timer_for = math.inf
        self._stopped = False
        queue.on_ready = self.touch

    def touch(self) -> None:
        """Deliver what can be delivered, soon; call it whenever that may have changed."""
        if not self._due and not self._stopped:
            self._due = True
            self._loop.call_soon(self._turn)

    def stop(self) -> None:
        """Deliver nothing more."""
        self._stopped = True
        if self._timer is not None:
            self._timer.cancel()

    def _turn(self) -> None:
        self._due = False
        if self._stopped:
            return
        if self._deliver():
            self.touch()
            return
        for consumer in self.consumers:
            consumer.finish_drain()
        self._set_timer()

    def _deliver(self) -> bool:
        """Deliver one message to each ready consumer in turn; True when there is more to do."""
        left, idle = _DELIVERIES_PER_TURN, 0
        while idle < len(self.consumers) and left:
            consumer = self.consumers[0]
            self.consumers.rotate(-1)
            if not consumer.ready:
                idle += 1
                continue
            if not consumer.deliver():
                return False
            left, idle = left - 1, 0
        return left == 0

    def _set_timer(self) -> None:
        deadline = self.queue.next_deadline()
        if deadline is None or deadline >= self._timer_for:
            return
        if self._timer is not None:
            self._timer.cancel()
        self._timer_for = deadline
        self._timer = self._loop.call_later(max(0.0, deadline - self._clock()), self._expire)

    def _expire(self) -> None:
        self._timer, self._timer_for = None, math.inf
        self.queue.advance()
        self.touch()


class Directory:
    """The queues and hubs of this emulator, found by the addresses that clients use."""

    def __init__(
        self,
        queues: Iterable[QueueSettings],
        clock: Callable[[], float],
        journal: Journal | None = None,
        hubs: Iterable[HubSettings] = (),
    ) -> None:
        self.hubs = Hubs({each.name: each for each in hubs}, clock)
        self._nodes: dict[str, Node] = {}
        for settings in queues:
            dead_letters = MessageQueue(settings, clock, journal=journal)
            for queue in (MessageQueue(settings, clock, dead_letters, journal), dead_letters):
                if queue.name.casefold() in self._nodes:
                    raise ValueError(f"queue {settings.name} is given twice")
                self._nodes[queue.name.casefold()] = Node(queue, clock)

    def __iter__(self) -> Iterator[Node]:
        return iter(self._nodes.values())

    def find(self, address: str) -> Node | None:
        """The queue of an address or URL, also one of its management node."""
        name = path_of(address).strip("/").casefold()
        return self._nodes.get(name.removesuffix(MANAGEMENT_SUFFIX))

    def knows(self, address: str) -> bool:
        """Whether an address or URL names a queue or a hub, or anything below a hub."""
        return self.find(address) is not None or self.hubs.knows(path_of(address))


def path_of(address: str) -> str:
    """Of an address or URL; nothing where it is malformed."""
    try:
        return urlsplit(address).path if "://" in address else address
    except ValueError:
        return ""
