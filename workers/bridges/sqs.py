"""SQS queue -> workflow: receive by long polls, have accepted, settle.

A message is settled only after Temporal has accepted it, so a bridge that dies at any moment loses
nothing: what it had not settled is seen again when its time in hiding ends, and what was accepted
already is met as a duplicate then.
"""

import asyncio
import logging
from collections.abc import AsyncGenerator, Awaitable, Callable, Hashable, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from functools import partial
from typing import Final

from adapters.aws.errors import Missing
from adapters.ports import Denied, PortError
from workers.bridges.retry import Accept, Retry
from workers.bridges.sqs_queue import Received, SqsQueue
from workers.bridges.stop import Stop
from workers.bridges.totals import BridgeError, BridgeTotals
from workers.health import Health
from workers.services.verdicts import Abandon, DeadLetter, Verdict

logger = logging.getLogger(__name__)

WriteDeadLetter = Callable[[Received, DeadLetter], Awaitable[bool]]
"""Puts a message among dead letters; False: it may not be deleted, the queue does it in time."""

LONGEST_PAUSE: Final = 300
"""Seconds that a message is given back for at most."""
LONGEST_HOLD: Final = 11 * 3600
"""Seconds in flight; SQS keeps no message hidden for longer than 12 hours."""
SETTLE_SECONDS: Final = 60
"""How long it is tried to delete a message that was taken in."""
_STOP_HANDLING: Final = 6.0
"""Seconds from the wish to stop until what is in hand is left to come back by itself."""


@dataclass(frozen=True)
class Polling:
    """How a queue is received from."""

    at_once: int = 10
    """Messages in hand."""
    ask: int = 10
    """Messages that one receive brings at most."""
    wait: int = 20
    """Seconds that a receive waits for the first message."""
    quiet: float = 20
    """Seconds that a queue stays empty before a drain ends."""
    visibility_timeout: int = 60
    """Seconds that a message in hand stays hidden from others; extended while it is in flight."""


@dataclass(frozen=True)
class SqsBridge:
    """Receives messages of one queue, has them accepted, carries out the verdicts."""

    queue: SqsQueue
    accept: Accept
    """Decides about a message; may be called again with the same one."""
    dead_letter: WriteDeadLetter
    """Takes messages that can never be accepted."""
    ordering_key: Callable[[bytes], Hashable | None] | None = None
    """Which messages must not overtake each other, by their body: those of one lane are decided
    about one after the other, in the order in which they came."""
    ready: Callable[[], Awaitable[bool]] | None = None
    """Tells whether what `accept` needs is there. As long as it is not, messages stay in hand:
    giving them back would use up their receives."""
    polling: Polling = Polling()
    retry: Retry = field(default_factory=Retry)
    """How long a message that cannot be taken in is held otherwise."""
    health: Health = field(default_factory=Health)
    """Told whether messages are received and taken in."""

    async def run(
        self, stop: asyncio.Event, *, drain: bool = False, ends_with_queue: bool = False
    ) -> BridgeTotals:
        """Work until `stop` is set.

        Args:
            stop: Stop receiving, finish what is in hand or give it back: within 10 s.
            drain: End when the queue has stayed empty for a while, or when messages had to be
                given back because Temporal is away.
            ends_with_queue: End when the queue is gone, instead of waiting for it to come back.

        Raises:
            BridgeError: The queue does not exist, or does not let us in, from the beginning.
        """
        session = _Session(self, Stop(stop), drain, ends_with_queue)
        await session.work()
        return session.totals


@dataclass(frozen=True)
class _GivenBack:
    """A message that is to come again."""

    first: str
    """The message of its lane that could not be taken in; its own id, or of one before it."""
    pause: int
    """Seconds that it is hidden for."""


class _Session:
    """One run of the bridge."""

    def __init__(self, bridge: SqsBridge, stop: Stop, drain: bool, ends_with_queue: bool) -> None:
        self.totals = BridgeTotals()
        self._bridge = bridge
        self._queue = bridge.queue
        self._polling = bridge.polling
        self._stop = stop
        self._drain = drain
        self._ends_with_queue = ends_with_queue
        self._pauses = bridge.retry.pauses()
        self._opened = False
        self._away = False
        self._in_flight: set[asyncio.Task[_GivenBack | None]] = set()
        self._freed = asyncio.Event()
        self._lanes: dict[Hashable, asyncio.Task[_GivenBack | None]] = {}
        """The last message of each lane that is in hand."""

    async def work(self) -> None:
        watch = asyncio.create_task(self._stop.watch())
        trouble: BridgeError | None = None
        try:
            async with (
                self._stop.deadline_after_stop(_STOP_HANDLING) as limit,
                asyncio.TaskGroup() as in_flight,
            ):
                try:
                    await self._serve(in_flight)
                except BridgeError as error:
                    trouble = error
            if limit.expired():
                logger.warning("stopped before everything was settled; the rest comes back")
        finally:
            self._bridge.health.ready = False
            watch.cancel()
        if trouble is not None:
            raise trouble

    async def _serve(self, in_flight: asyncio.TaskGroup) -> None:
        clock = asyncio.get_running_loop().time
        quiet_since = clock()
        while not self._stop.is_set and not (self._drain and self._away):
            room = self._polling.at_once - len(self._in_flight)
            if room <= 0:
                self._freed.clear()
                async with self._stop.deadline_after_stop(0):
                    await self._freed.wait()
                continue
            wait = self._polling.wait
            if self._drain:
                left = self._polling.quiet - (clock() - quiet_since)
                if left <= 0 and not self._in_flight:
                    return
                wait = max(1, min(wait, int(left)))
            messages = await self._receive(min(room, self._polling.ask), wait)
            if messages is None:
                return
            for message in messages:
                self._take(message, in_flight)
            if messages or self._in_flight:
                quiet_since = clock()

    async def _receive(self, most: int, wait: int) -> Sequence[Received] | None:
        """Messages; None when there will never be any more."""
        try:
            async with self._stop.deadline_after_stop(0):
                messages = await self._queue.receive(most, wait, self._polling.visibility_timeout)
                self._pauses = self._bridge.retry.pauses()
                self._opened = self._bridge.health.ready = True
                self.totals = self.totals.plus(received=len(messages))
                return messages
        except Missing as error:
            if self._ends_with_queue:
                return None
            self._complain(error)
        except Denied as error:
            self._complain(error)
        except PortError as error:
            logger.warning("%s; trying again", error)
        self._bridge.health.ready = False
        await self._stop.pause(next(self._pauses))
        return ()

    def _complain(self, error: PortError) -> None:
        if not self._opened:
            raise BridgeError(
                f"cannot receive from {self._queue.url}: {error}; "
                "check the queue's URL, the region and the rights"
            ) from error
        logger.warning("%s; trying again", error)

    def _take(self, message: Received, in_flight: asyncio.TaskGroup) -> None:
        lane = self._bridge.ordering_key(message.body) if self._bridge.ordering_key else None
        before = None if lane is None else self._lanes.get(lane)
        hand = in_flight.create_task(self._handle(message, before))
        self._in_flight.add(hand)
        if lane is not None:
            self._lanes[lane] = hand
        hand.add_done_callback(partial(self._done, lane))

    def _done(self, lane: Hashable | None, hand: asyncio.Task[_GivenBack | None]) -> None:
        self._in_flight.discard(hand)
        self._freed.set()
        if self._lanes.get(lane) is hand:
            del self._lanes[lane]

    async def _handle(
        self, message: Received, before: asyncio.Task[_GivenBack | None] | None
    ) -> _GivenBack | None:
        """Take a message in, after the one before it; None: it is settled."""
        async with self._extended(message):
            behind = None if before is None else await before
            # What all of them wait for may be back before the last of them is given back.
            if behind is None or behind.first == message.message_id:
                behind = None
                verdict = await self._decide(message)
                if await self._settle(message, verdict):
                    return None
        # It must not be seen again before the one that it has to wait for.
        pause = 0 if self._stop.is_set else _pause(message) if behind is None else behind.pause + 1
        await self._give_back(message, pause)
        return _GivenBack(message.message_id if behind is None else behind.first, pause)

    async def _decide(self, message: Received) -> Verdict:
        bridge, clock = self._bridge, asyncio.get_running_loop().time
        until, was_ready = clock() + LONGEST_HOLD, False
        while True:
            verdict = await bridge.retry.run(
                bridge.accept,
                message.body,
                message.receives - 1,
                message.message_id,
                self._stop.pause,
            )
            if not isinstance(verdict, Abandon) or self._stop.is_set:
                return verdict
            is_ready = bridge.ready is None or await bridge.ready()
            if is_ready and (was_ready or bridge.ready is None):
                # Everything answered before it was tried and after: the trouble is its own.
                return verdict
            if not is_ready:
                bridge.health.ready = False
            if clock() > until or (self._drain and not is_ready):
                self._away = True
                return verdict
            was_ready = is_ready

    async def _settle(self, message: Received, verdict: Verdict) -> bool:
        """Take a message off the queue; False: give it back."""
        if isinstance(verdict, Abandon):
            logger.warning(
                "message %r of %s cannot be taken in now, at receive %d: %s",
                message.message_id,
                self._queue.name,
                message.receives,
                verdict.reason,
            )
            return False
        if isinstance(verdict, DeadLetter):
            try:
                if not await self._bridge.dead_letter(message, verdict):
                    return False
            except PortError as error:
                logger.warning("message %r is no dead letter yet: %s", message.message_id, error)
                return False
        if await self._delete(message):
            dead = isinstance(verdict, DeadLetter)
            self.totals = self.totals.plus(settled=not dead, dead_lettered=dead)
        return True

    async def _delete(self, message: Received) -> bool:
        clock = asyncio.get_running_loop().time
        until = clock() + SETTLE_SECONDS
        for pause in self._bridge.retry.pauses():
            try:
                await self._queue.delete(message)
                return True
            except PortError as error:
                if isinstance(error, Denied) or clock() + pause > until:
                    logger.warning("message %r comes back: %s", message.message_id, error)
                    return False
            await asyncio.sleep(pause)
        raise AssertionError("pauses have no end")

    async def _give_back(self, message: Received, seconds: int) -> None:
        try:
            await self._queue.change_visibility(message, seconds)
        except PortError as error:
            logger.warning("message %r comes back later: %s", message.message_id, error)
        self.totals = self.totals.plus(abandoned=1)

    @asynccontextmanager
    async def _extended(self, message: Received) -> AsyncGenerator[None]:
        """Hide a message from others as long as the block takes."""
        keeper = asyncio.create_task(self._hide(message))
        try:
            yield
        finally:
            keeper.cancel()

    async def _hide(self, message: Received) -> None:
        while True:
            await asyncio.sleep(self._polling.visibility_timeout / 2)
            try:
                await self._queue.change_visibility(message, self._polling.visibility_timeout)
            except Denied as error:
                logger.warning("message %r is not in hand any more: %s", message.message_id, error)
                return
            except PortError as error:
                logger.info("message %r: %s", message.message_id, error)


def _pause(message: Received) -> int:
    """Seconds that a message is given back for: at once the first time, then for longer."""
    return min(2 ** min(message.receives - 1, 10) - 1, LONGEST_PAUSE)
