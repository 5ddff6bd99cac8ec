"""The one loop of all bridges: receive, decide, settle.

The one loop of all bridges: receive, decide, settle.

A message is settled only after its handler has accepted it, which is after Temporal has accepted
its start. So a consumer that dies at any moment loses nothing: what it had not settled is
delivered again when its lease ends, and what was accepted already is met as a duplicate then.

Messages of one ordering key are decided about one after the other. When one is given back, all
those behind it that are in flight are given back too, and none of them overtakes it.
"""

import asyncio
import logging
import math
import random
from collections.abc import (
    AsyncGenerator,
    Awaitable,
    Callable,
    Coroutine,
    Hashable,
    Iterator,
    Sequence,
)
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from functools import partial
from typing import Any, Final, Generic, TypeVar

from workers.shared import metrics
from workers.shared.bridges.transport import (
    LeaseLost,
    NotDeadLettered,
    QueueMissing,
    QueueRefused,
    Received,
    Transport,
    TransportError,
)
from workers.shared.errors import SettingsError
from workers.shared.health import Health
from workers.shared.logs import about
from workers.shared.services.bodies import Abandon, DeadLetter, Verdict


@dataclass(frozen=True)
class GivenBack:
    """A message that is to come again."""

    first: str | None
    """The message of its ordering key that was not accepted: itself, or one before it."""
    delay: int
    """Seconds until it comes again."""


Deciding = asyncio.Task[GivenBack | None]


@dataclass(eq=False, slots=True)
class InFlight(Generic[Received]):
    """A message that is being decided about or settled."""

    message: Received
    key: Hashable | None
    before: Deciding | None
    """The message of the same key that was received before this one."""
    task: Deciding = field(init=False)
    lock: asyncio.Lock = field(default_factory=asyncio.Lock)
    """Keeps calls that concern this message apart."""
    is_settled: bool = False
    timer: asyncio.TimerHandle | None = None
    extension: asyncio.Task[None] | None = None


@dataclass(frozen=True)
class Limits:
    """How much is received, and how long is waited for it."""

    concurrency: int = 10
    """Messages that are decided about at once."""
    in_flight: int = 10
    """Messages that are received and not yet settled."""
    refill: int = 1
    """Messages that there must be room for before more are received. With as many as
    `concurrency`, nothing is received while anything is being decided about."""
    wait: float = 20
    """Seconds that a receive waits for the first message."""
    quiet: float = 20
    """Seconds that a queue stays empty before a drain ends."""


class Stop:
    """An event that ends a run, and the deadlines that count from it."""

    def __init__(self, event: asyncio.Event) -> None:
        """Listen to `event`; `watch` must run as long as limits are to work."""
        self._event = event
        self._since: float | None = None
        self._limits: dict[asyncio.Timeout, float] = {}

    @property
    def is_set(self) -> bool:
        """Whether the stop was requested."""
        return self._event.is_set()

    async def watch(self) -> None:
        """Start the deadlines when the event is set."""
        await self._event.wait()
        self._since = asyncio.get_running_loop().time()
        for limit, grace in self._limits.items():
            limit.reschedule(self._since + grace)

    async def pause(self, seconds: float) -> bool:
        """Wait, but not beyond a stop; True: it is set."""
        try:
            await asyncio.wait_for(self._event.wait(), seconds)
        except TimeoutError:
            return False
        return True

    async def elapsed(self, grace: float) -> None:
        """Wait until `grace` seconds have passed since the stop."""
        await self._event.wait()
        await asyncio.sleep(grace)

    @asynccontextmanager
    async def deadline_after_stop(self, grace: float) -> AsyncGenerator[asyncio.Timeout]:
        """Leave the block, without an error, when `grace` seconds have passed since the stop."""
        limit = asyncio.timeout(None)
        try:
            async with limit:
                self._limits[limit] = grace
                if self._since is not None:
                    limit.reschedule(self._since + grace)
                try:
                    yield limit
                finally:
                    del self._limits[limit]
        except TimeoutError:
            if not limit.expired():
                raise


Accept = Callable[[bytes, int, str | None], Awaitable[Verdict]]
"""Body, deliveries before this one, message id -> what becomes of the message."""
GiveUp = Callable[[bytes, int, str | None, str], Awaitable[Verdict]]
"""Body, deliveries before this one, message id, why it is not accepted -> what becomes of it."""

LONGEST_DELAY: Final = 300
"""Seconds after which a message that is given back comes again, at most."""


async def sleep(seconds: float) -> bool:
    """A pause that nothing ends early."""
    await asyncio.sleep(seconds)
    return False


@dataclass(frozen=True)
class Retry:
    """Pauses between attempts, in seconds, and how long they continue."""

    first_pause: float = 0.5
    longest_pause: float = 30.0
    hold: float = 60.0
    """A message is held for so long before it is given back."""

    def pauses(self) -> Iterator[float]:
        """Growing pauses with jitter, without end."""
        pause = self.first_pause
        while True:
            yield pause * random.uniform(0.5, 1.0)
            pause = min(pause * 2, self.longest_pause)

    async def run(
        self,
        accept: Accept,
        raw: bytes,
        delivery_count: int,
        message_id: str | None,
        pause: Callable[[float], Awaitable[bool]] = sleep,
    ) -> Verdict:
        """The verdict on a message; while it is to abandon it, `accept` is called again.

        Every message that is given back uses up a delivery, and after ten the queue dead-letters
        it, so it is held for a while first. Its lease must be extended meanwhile.

        Args:
            accept: Decides.
            raw: The body.
            delivery_count: Deliveries before this one.
            message_id: As the sender set it.
            pause: Waits for so many seconds; True ends the retries.
        """
        clock = asyncio.get_running_loop().time
        until, pauses = clock() + self.hold, self.pauses()
        while True:
            verdict = await accept(raw, delivery_count, message_id)
            if not isinstance(verdict, Abandon):
                return verdict
            seconds = next(pauses)
            if clock() + seconds > until or await pause(seconds):
                return verdict


def redelivery_delay(deliveries: int) -> int:
    """Seconds until a message comes again: at once the first time, then later and later."""
    return min(2 ** min(deliveries, 10) - 1, LONGEST_DELAY)


class BridgeError(SettingsError):
    """The queue cannot be opened at all; the message says what to check."""


class QueueUnusable(BridgeError):
    """There is no such queue, or it does not let us in; that may be put right meanwhile."""


@dataclass(frozen=True)
class BridgeTotals:
    """Messages of one run; received ones that are none of the others come back by themselves."""

    received: int = 0
    settled: int = 0
    dead_lettered: int = 0
    abandoned: int = 0

    def plus(
        self, *, received: int = 0, settled: int = 0, dead_lettered: int = 0, abandoned: int = 0
    ) -> "BridgeTotals":
        """These and more."""
        return BridgeTotals(
            received=self.received + received,
            settled=self.settled + settled,
            dead_lettered=self.dead_lettered + dead_lettered,
            abandoned=self.abandoned + abandoned,
        )


T = TypeVar("T")
logger = logging.getLogger(__name__)

SETTLE_SECONDS: Final = 60
"""How long a settlement is tried; longer as long as the lease holds."""
_SETTLE_RETRY: Final = Retry(first_pause=0.2, longest_pause=1.0)
_SHORTEST_EXTENSION: Final = 0.2
_SHORTEST_WAIT: Final = 0.1
_BLOCKED_POLL: Final = 0.5
# Seconds from the stop until each is cut off: together they keep a stop within 10 s.
_STOP_DECIDING: Final = 4.0
_STOP_SETTLING: Final = 6.0
_STOP_CLOSING: Final = 8.0


@dataclass(frozen=True)
class Consumer(Generic[Received]):
    """Receives the messages of one queue, has them accepted, and settles them."""

    transport: Transport[Received]
    accept: Accept
    """Decides about a message; may be called again with the same one."""
    limits: Limits = field(default_factory=Limits)
    ordering_key: Callable[[bytes], Hashable | None] | None = None
    """Which messages must not overtake each other, by their bodies; None: any may."""
    accept_of: Callable[[Received], Accept] | None = None
    """What decides about a message where more of it counts than its body; None: `accept`."""
    ready: Callable[[], Awaitable[bool]] | None = None
    """Whether what `accept` depends on is available."""
    retry: Retry = field(default_factory=Retry)
    """How long a message that is not accepted is held, and the pauses before trying again."""
    hold_while_unavailable: float = 0
    """Seconds in flight of a message while what `accept` depends on is unavailable. 0: messages
    are given back when `retry` has ended, and none is received until it is available again."""
    give_up: GiveUp | None = None
    """Decides about a message that is refused although everything is available; None: it is given
    back, and the queue itself counts its deliveries."""
    health: Health = field(default_factory=Health)
    """Shows whether messages are received and accepted; none is while it is blocked."""

    async def run(
        self, stop: asyncio.Event, *, drain: bool = False, ends_with_queue: bool = False
    ) -> BridgeTotals:
        """Work until `stop` is set.

        Args:
            stop: Stop receiving, settle what is in flight or leave it to come back: within 10 s.
            drain: End when the queue has stayed empty for `limits.quiet` seconds, or when messages
                had to be given back because what `accept` depends on is unavailable.
            ends_with_queue: End when the queue is gone, instead of waiting for it to come back.

        Raises:
            QueueUnusable: The queue does not exist, or does not let us in, from the beginning.
        """
        session = _Session(self, Stop(stop), drain, ends_with_queue)
        await session.run()
        return session.totals


class _Session(Generic[Received]):
    """One run of a consumer."""

    def __init__(
        self, consumer: Consumer[Received], stop: Stop, drain: bool, ends_with_queue: bool
    ) -> None:
        self.totals = BridgeTotals()
        self._consumer = consumer
        self._transport = consumer.transport
        self._limits = consumer.limits
        self._stop = stop
        self._drain = drain
        self._ends_with_queue = ends_with_queue
        self._loop = asyncio.get_running_loop()
        self._tasks = asyncio.TaskGroup()
        self._pauses = consumer.retry.pauses()
        self._opened = False
        self._unavailable = False
        self._quiet_since = self._loop.time()
        self._in_flight: set[InFlight[Received]] = set()
        self._undecided: set[InFlight[Received]] = set()
        self._freed = asyncio.Event()
        self._last: dict[Hashable, Deciding] = {}
        """The last message in flight of each ordering key."""

    async def run(self) -> None:
        watch = asyncio.create_task(self._stop.watch())
        leave = asyncio.create_task(self._leave_undecided())
        refused: BridgeError | None = None
        try:
            async with self._stop.deadline_after_stop(_STOP_SETTLING) as limit, self._tasks:
                try:
                    await self._consume()
                except BridgeError as error:
                    refused = error
            if limit.expired():
                logger.warning("stopped before everything was settled; the rest comes back")
        finally:
            self._consumer.health.ready = False
            leave.cancel()
            async with self._stop.deadline_after_stop(_STOP_CLOSING):
                await self._transport.close()
            watch.cancel()
        if refused is not None:
            raise refused

    async def _leave_undecided(self) -> None:
        """Leave messages to come back by themselves, in time to settle the others."""
        await self._stop.elapsed(_STOP_DECIDING)
        for item in self._undecided:
            item.task.cancel()

    async def _consume(self) -> None:
        while await self._room_and_dependencies():
            wait = self._limits.wait
            if self._drain and not self._opened:
                # What opening takes is not a quiet time.
                wait = _SHORTEST_WAIT
            elif self._drain:
                left = self._limits.quiet - (self._loop.time() - self._quiet_since)
                if left <= 0 and not self._in_flight:
                    return
                wait = min(wait, max(left, _SHORTEST_WAIT))
            messages = await self._receive(wait)
            if messages is None:
                return
            for message in messages:
                self._take(message)
            if messages or self._in_flight:
                self._quiet_since = self._loop.time()

    def _room(self) -> int:
        deciding = self._limits.concurrency - len(self._undecided)
        return min(deciding, self._limits.in_flight - len(self._in_flight))

    async def _room_and_dependencies(self) -> bool:
        """Wait until messages can be received and decided about; False: the run ends."""
        while not self._stop.is_set and self._room() < self._limits.refill:
            self._freed.clear()
            async with self._stop.deadline_after_stop(0):
                await self._freed.wait()
        if self._unavailable and not self._stop.is_set:
            return not self._drain and await self._is_available_again()
        while self._consumer.health.is_blocked and not self._stop.is_set:
            if self._drain or await self._stop.pause(_BLOCKED_POLL):
                return False
        return not self._stop.is_set

    async def _is_available_again(self) -> bool:
        """Wait for what messages were given back for; False: the stop was first."""
        ready = self._consumer.ready
        for pause in self._consumer.retry.pauses():
            if await self._stop.pause(pause):
                return False
            if ready is None or await ready():
                self._unavailable = False
                return True
        raise AssertionError("pauses have no end")

    async def _receive(self, wait: float) -> Sequence[Received] | None:
        """Messages; None when there will never be any more."""
        try:
            async with self._stop.deadline_after_stop(0):
                messages = await self._transport.receive(self._room(), wait)
                self._pauses = self._consumer.retry.pauses()
                if not self._opened:
                    self._opened, self._quiet_since = True, self._loop.time()
                self._consumer.health.take()
                self.totals = self.totals.plus(received=len(messages))
                return messages
        except TransportError as error:
            if self._ends_with_queue and isinstance(error, QueueMissing):
                return None
            if isinstance(error, QueueRefused) and not self._opened:
                raise QueueUnusable(str(error)) from error
            logger.warning("%s; trying again", error)
            self._consumer.health.refuse(str(error))
        await self._stop.pause(next(self._pauses))
        # A queue that does not answer is not known to be empty.
        self._quiet_since = self._loop.time()
        return ()

    def _take(self, message: Received) -> None:
        order = self._consumer.ordering_key
        key = None if order is None else order(message.body)
        item = InFlight(message, key, None if key is None else self._last.get(key))
        self._in_flight.add(item)
        self._undecided.add(item)
        item.task = self._tasks.create_task(self._named(item, self._handle))
        item.task.add_done_callback(partial(self._done, item))
        if key is not None:
            self._last[key] = item.task
        self._schedule_extension(item)

    def _named(
        self, item: InFlight[Received], work: Callable[[InFlight[Received]], Awaitable[T]]
    ) -> Coroutine[Any, Any, T]:
        """Work on a message, named in the log."""
        message_id = item.message.message_id
        return about(partial(work, item), queue=self._transport.name, message_id=message_id)

    def _done(self, item: InFlight[Received], task: Deciding) -> None:
        self._in_flight.discard(item)
        self._undecided.discard(item)
        if item.timer is not None:
            item.timer.cancel()
        if item.extension is not None:
            item.extension.cancel()
        if item.key is not None and self._last.get(item.key) is task:
            del self._last[item.key]
        self._quiet_since = self._loop.time()
        self._freed.set()

    async def _handle(self, item: InFlight[Received]) -> GivenBack | None:
        """Decide about a message, after the one before it, and settle it; None: it is settled."""
        message = item.message
        # Shielded: what is left undecided at a stop must not take what is before it along.
        behind = None if item.before is None else await asyncio.shield(item.before)
        # What all of them wait for may be back before the last of them is given back.
        if behind is None or behind.first == message.message_id:
            behind = None
            verdict = await self._decide(message)
            self._decided(item)
            if await self._accepted(item, verdict):
                return None
        self._decided(item)
        # It must not come again before the one that it has to wait for.
        delay = (
            0
            if self._stop.is_set
            else redelivery_delay(message.delivery_count)
            if behind is None
            else behind.delay + 1
        )
        if await self._settle(item, partial(self._transport.abandon, message, delay)):
            self._count(abandoned=1)
        return GivenBack(message.message_id if behind is None else behind.first, delay)

    def _decided(self, item: InFlight[Received]) -> None:
        self._undecided.discard(item)
        self._freed.set()

    async def _decide(self, message: Received) -> Verdict:
        consumer, time = self._consumer, self._loop.time
        until, was_ready = time() + consumer.hold_while_unavailable, False
        accept = consumer.accept if consumer.accept_of is None else consumer.accept_of(message)
        while True:
            verdict = await consumer.retry.run(
                accept,
                message.body,
                message.delivery_count,
                message.message_id,
                self._stop.pause,
            )
            if not isinstance(verdict, Abandon) or self._stop.is_set:
                return verdict
            if consumer.hold_while_unavailable <= 0:
                self._unavailable = True
                consumer.health.refuse(verdict.reason)
                return verdict
            is_ready = consumer.ready is None or await consumer.ready()
            if is_ready and (was_ready or consumer.ready is None):
                # Available before it was tried and after: the message itself is the reason.
                return await self._given_up(message, verdict)
            if not is_ready:
                consumer.health.refuse(verdict.reason)
            if time() > until or (self._drain and not is_ready):
                self._unavailable = True
                return verdict
            was_ready = is_ready

    async def _given_up(self, message: Received, verdict: Abandon) -> Verdict:
        give_up = self._consumer.give_up
        if give_up is None or verdict.passes:
            return verdict
        return await give_up(
            message.body, message.delivery_count, message.message_id, verdict.reason
        )

    async def _accepted(self, item: InFlight[Received], verdict: Verdict) -> bool:
        """Settle a message by its verdict; False: it has to be given back."""
        message, transport = item.message, self._transport
        if isinstance(verdict, Abandon):
            logger.warning(
                "message %r of %s is not accepted now, at delivery %d: %s",
                message.message_id,
                transport.name,
                message.delivery_count + 1,
                verdict.reason,
            )
            return False
        if isinstance(verdict, DeadLetter):
            try:
                done = await self._settle(item, partial(transport.dead_letter, message, verdict))
            except NotDeadLettered as error:
                logger.warning(
                    "message %r could not be dead-lettered yet: %s", message.message_id, error
                )
                return False
            self._count(dead_lettered=done)
        else:
            done = await self._settle(item, partial(transport.complete, message))
            self._count(settled=done)
        return True

    def _count(self, **outcome: int) -> None:
        self.totals = self.totals.plus(**outcome)
        for name, number in outcome.items():
            if number:
                labels = {"queue": self._transport.name, "outcome": name}
                metrics.count(metrics.MESSAGES, labels)

    async def _settle(
        self, item: InFlight[Received], settlement: Callable[[], Awaitable[None]]
    ) -> bool:
        """Settle a message, however often that takes; False: it comes back by itself."""
        lease = self._transport.lease_seconds(item.message)
        until = self._loop.time() + max(SETTLE_SECONDS, lease)
        for pause in _SETTLE_RETRY.pauses():
            try:
                async with item.lock:
                    await settlement()
                    item.is_settled = True
                return True
            except NotDeadLettered:
                raise
            except TransportError as error:
                name = item.message.message_id
                if isinstance(error, LeaseLost) or self._loop.time() + pause > until:
                    logger.warning("message %r comes back: %s", name, error)
                    return False
                logger.info("message %r is not settled yet: %s", name, error)
            await asyncio.sleep(pause)
        raise AssertionError("pauses have no end")

    def _schedule_extension(self, item: InFlight[Received], share: float = 0.5) -> None:
        lease = self._transport.lease_seconds(item.message)
        if lease < math.inf:
            seconds = max(_SHORTEST_EXTENSION, lease * share)
            item.timer = self._loop.call_later(seconds, self._start_extension, item)

    def _start_extension(self, item: InFlight[Received]) -> None:
        if not item.task.cancelling():
            item.extension = self._tasks.create_task(self._named(item, self._extend))

    async def _extend(self, item: InFlight[Received]) -> None:
        async with item.lock:
            if item.is_settled:
                return
            try:
                await self._transport.extend(item.message)
                share = 0.5
            except LeaseLost as error:
                logger.warning(
                    "the lease of message %r is lost: %s", item.message.message_id, error
                )
                return
            except TransportError as error:
                logger.info(
                    "the lease of message %r is not extended: %s", item.message.message_id, error
                )
                share = 0.1
        self._schedule_extension(item, share)
