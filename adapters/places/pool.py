"""Sessions that were used a moment ago, kept open for the next step that needs the same."""

import asyncio
import random
from collections import Counter
from collections.abc import AsyncGenerator, Awaitable, Callable, Hashable
from contextlib import AbstractAsyncContextManager, AsyncExitStack, asynccontextmanager
from dataclasses import dataclass, field
from typing import Final, Generic, Self, TypeVar

from adapters.ports import NotYet
from adapters.ports.places import Busy, PlaceError
from domain.errors import RuleViolation

S = TypeVar("S")
IDLE_SECONDS: Final = 5.0
"""Shorter than a step waits for a free session: one that is kept here delays another worker, and
sends none of its runs away."""
AGE_SECONDS: Final = 60.0
TURN_SECONDS: Final = 0.5
"""A session that has reached its age is left to other workers for so long, which ask for a free one
more often than that."""


@dataclass
class _Held(Generic[S]):
    """A session that is open.

    Attributes:
        since: When it was opened, by the clock of the event loop.
        expiry: Ends it where it is not used again.
    """

    session: S
    stack: AsyncExitStack
    since: float
    expiry: asyncio.TimerHandle | None = None


@dataclass
class _Sessions(Generic[S]):
    """Those of one key.

    Attributes:
        slots: How many of this process may have one, or open one.
        idle: The last one is that which was used last.
    """

    slots: asyncio.Semaphore
    idle: list[_Held[S]] = field(default_factory=list["_Held[S]"])


class SessionPool(Generic[S]):
    """Reuses open sessions; a context manager, at whose end all of them are closed.

    A session counts among its partner's until it is closed, so that those of other workers wait
    for it. Therefore none stays here unused for longer than `idle` seconds, none while another
    step of this process waits for one to be opened, and none is handed on for longer than `age`.

    Args:
        idle: Seconds.
        age: Seconds.
        wait: Seconds that a step waits for one to become free.
    """

    def __init__(
        self, idle: float = IDLE_SECONDS, age: float = AGE_SECONDS, wait: float = 10.0
    ) -> None:
        self._idle, self._age, self._wait = idle, age, wait
        self._known: dict[Hashable, _Sessions[S]] = {}
        self._opening = Counter[Hashable]()
        self._closing: set[asyncio.Task[None]] = set()
        self._is_closed = False

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *_: object) -> None:
        self._is_closed = True
        for sessions in self._known.values():
            while sessions.idle:
                await _close(sessions.idle.pop())
        await asyncio.gather(*self._closing)

    @asynccontextmanager
    async def session(
        self,
        key: Hashable,
        most: int,
        open_session: Callable[[], AbstractAsyncContextManager[S]],
        is_alive: Callable[[S], Awaitable[bool]],
    ) -> AsyncGenerator[S]:
        """One that was used a moment ago, or else a new one, for the length of the block.

        Args:
            key: What makes two sessions the same: whose they are, and who asks.
            most: So many there may be at a time.
            open_session: Opens a new one.
            is_alive: Whether one that was kept can still be used.

        Raises:
            Busy: All of them are in use, for longer than a step waits.
        """
        if key not in self._known:
            self._known[key] = _Sessions(asyncio.Semaphore(most))
        sessions = self._known[key]
        await self._slot(sessions)
        pause = 0.0
        try:
            held = await self._kept(sessions, is_alive) or await self._opened(key, open_session)
            is_usable = False
            try:
                yield held.session
                is_usable = True
            except (PlaceError, NotYet, RuleViolation):
                # Not of the session.
                is_usable = True
                raise
            finally:
                if is_usable and self._is_kept(key, held):
                    self._keep(sessions, held)
                else:
                    pause = TURN_SECONDS if is_usable and self._is_old(held) else 0.0
                    await _close(held)
        finally:
            asyncio.get_running_loop().call_later(pause, sessions.slots.release)

    async def _slot(self, sessions: _Sessions[S]) -> None:
        try:
            async with asyncio.timeout(self._wait):
                await sessions.slots.acquire()
        except TimeoutError:
            raise Busy(
                "all sessions of the partner are in use", random.uniform(5.0, 15.0)
            ) from None

    async def _kept(
        self, sessions: _Sessions[S], is_alive: Callable[[S], Awaitable[bool]]
    ) -> _Held[S] | None:
        while sessions.idle:
            held = sessions.idle.pop()
            if held.expiry is not None:
                held.expiry.cancel()
            is_used = False
            try:
                is_used = await is_alive(held.session)
            finally:
                if not is_used:
                    await _close(held)
            if is_used:
                return held
        return None

    async def _opened(
        self, key: Hashable, open_session: Callable[[], AbstractAsyncContextManager[S]]
    ) -> _Held[S]:
        self._opening[key] += 1
        try:
            async with AsyncExitStack() as stack:
                session = await stack.enter_async_context(open_session())
                return _Held(session, stack.pop_all(), asyncio.get_running_loop().time())
        finally:
            self._opening[key] -= 1

    def _is_kept(self, key: Hashable, held: _Held[S]) -> bool:
        return not (self._is_closed or self._opening[key] or self._is_old(held))

    def _is_old(self, held: _Held[S]) -> bool:
        return asyncio.get_running_loop().time() - held.since >= self._age

    def _keep(self, sessions: _Sessions[S], held: _Held[S]) -> None:
        def expire() -> None:
            if held in sessions.idle:
                sessions.idle.remove(held)
                task = asyncio.create_task(_close(held))
                self._closing.add(task)
                task.add_done_callback(self._closing.discard)

        held.expiry = asyncio.get_running_loop().call_later(self._idle, expire)
        sessions.idle.append(held)


async def _close(held: _Held[S]) -> None:
    if held.expiry is not None:
        held.expiry.cancel()
    await held.stack.aclose()
