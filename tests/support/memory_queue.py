"""A queue in memory with leases, delays and dead letters, and its transport with faults."""

import asyncio
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace

from workers.shared.bridges.transport import LeaseLost, QueueMissing
from workers.shared.services.bodies import DeadLetter


@dataclass(frozen=True)
class Letter:
    """One delivery of a message."""

    number: int
    body: bytes
    delivery_count: int = 0

    @property
    def message_id(self) -> str:
        return f"m{self.number}"


@dataclass
class _Stored:
    letter: Letter
    visible_at: float = 0


@dataclass
class MemoryQueue:
    """Messages by the order in which they were sent, each hidden until some moment."""

    lease: float = 0.5
    second: float = 1.0
    """How long a second of delay lasts."""
    is_there: bool = True
    dead: list[tuple[bytes, str, str]] = field(default_factory=list[tuple[bytes, str, str]])
    _stored: dict[int, _Stored] = field(default_factory=dict[int, _Stored])
    _sent: int = 0

    def send(self, *bodies: str) -> None:
        for body in bodies:
            self._sent += 1
            letter = Letter(self._sent, body.encode())
            self._stored[letter.number] = _Stored(letter)

    @property
    def left(self) -> int:
        """Messages, visible or leased."""
        return len(self._stored)

    def receive(self, most: int) -> list[Letter]:
        now = asyncio.get_running_loop().time()
        visible = [stored for stored in self._stored.values() if stored.visible_at <= now][:most]
        letters = [stored.letter for stored in visible]
        for stored in visible:
            stored.visible_at = now + self.lease
            count = stored.letter.delivery_count + 1
            stored.letter = replace(stored.letter, delivery_count=count)
        return letters

    def hide(self, letter: Letter, seconds: float) -> None:
        self._leased(letter).visible_at = asyncio.get_running_loop().time() + seconds

    def remove(self, letter: Letter) -> None:
        self._leased(letter)
        del self._stored[letter.number]

    def _leased(self, letter: Letter) -> _Stored:
        stored = self._stored.get(letter.number)
        if stored is None or stored.letter.delivery_count != letter.delivery_count + 1:
            raise LeaseLost(f"{letter.message_id} is another's")
        return stored


@dataclass
class MemoryTransport:
    """A `MemoryQueue` as the consumer needs it.

    Every call is counted by its name, and `fails` may raise before it has any effect. Calls that
    concern one message and overlap are noted in `overlaps`.
    """

    queue: MemoryQueue
    fails: Callable[[str], None] = lambda call: None
    """Raises what a call is to fail with."""
    pause: float = 0
    """Seconds that a call about a message takes."""
    name: str = "memory"
    calls: Counter[str] = field(default_factory=Counter[str])
    overlaps: list[str] = field(default_factory=list[str])
    delays: list[tuple[str, int]] = field(default_factory=list[tuple[str, int]])
    """Messages that were given back, and for how many seconds."""
    _busy: set[int] = field(default_factory=set[int])

    async def receive(self, most: int, wait: float) -> Sequence[Letter]:
        loop = asyncio.get_running_loop()
        until = loop.time() + wait
        self._called("receive")
        if not self.queue.is_there:
            raise QueueMissing("there is no queue 'memory'; check its name")
        while not (letters := self.queue.receive(most)) and loop.time() < until:
            await asyncio.sleep(0.005)
        return letters

    def lease_seconds(self, message: Letter) -> float:
        return self.queue.lease

    async def extend(self, message: Letter) -> None:
        await self._call("extend", message)
        self.queue.hide(message, self.queue.lease)

    async def complete(self, message: Letter) -> None:
        await self._call("complete", message)
        self.queue.remove(message)

    async def abandon(self, message: Letter, delay: int) -> None:
        await self._call("abandon", message)
        self.delays.append((message.message_id, delay))
        self.queue.hide(message, delay * self.queue.second)

    async def dead_letter(self, message: Letter, verdict: DeadLetter) -> None:
        await self._call("dead_letter", message)
        self.queue.remove(message)
        self.queue.dead.append((message.body, verdict.reason, verdict.description))

    async def close(self) -> None:
        self._called("close")

    def _called(self, call: str) -> None:
        self.calls[call] += 1
        self.fails(call)

    async def _call(self, call: str, message: Letter) -> None:
        if message.number in self._busy:
            self.overlaps.append(f"{call} of {message.message_id}")
        self._busy.add(message.number)
        try:
            await asyncio.sleep(self.pause)
            self._called(call)
        finally:
            self._busy.discard(message.number)
