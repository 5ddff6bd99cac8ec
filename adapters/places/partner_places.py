"""Opens endpoints, within what their partners bear, and keeps sessions for the next step."""

import asyncio
import logging
import math
import random
import ssl
import time
import uuid
from collections import Counter
from collections.abc import AsyncGenerator, Awaitable, Callable, Hashable
from contextlib import AbstractAsyncContextManager, AsyncExitStack, asynccontextmanager, suppress
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Final, Generic, Self, TypeVar

from adapters.places.base import Credentials, Pace, Paces, Timeouts
from adapters.places.custom import custom
from adapters.places.egress import Egress
from adapters.places.folder import FolderPlace, FolderThreads
from adapters.places.objects import azure_blob, s3
from adapters.ports.errors import Denied, NotYet, Unavailable
from adapters.ports.places import Busy, PartnerAway, Place, PlaceError
from adapters.ports.transfers import PartnerStore, Secrets
from workflows.shared.errors import RuleViolation
from workflows.transfers.partners import Limits, Partner, PlaceKind, check_record, opens_at

if TYPE_CHECKING:
    from adapters.places.sftp_session import SftpSession


LEASE_SECONDS: Final = 60.0
"""After so long a killed worker's session is free."""
WAIT_SECONDS: Final = 10.0
"""A step waits so long itself; then its run does, and the slot of the worker is free."""
_PAUSE_SECONDS: Final = 0.25

logger = logging.getLogger(__name__)


def connections_of(partner: str) -> str:
    """Name of the leases that stand for new connections, beside those of sessions."""
    return f"{partner}/connections"


def _is_limited(partner: Partner) -> bool:
    """Servers have the limits of a record or the default ones; folders and object stores, which
    know of no sessions, have them only where the record says so."""
    servers = (PlaceKind.SFTP, PlaceKind.HTTPS)
    return partner.kind in servers or partner.limits != Limits()


class Sessions:
    """Takes sessions.

    Args:
        store: Keeps the leases.
        wait: Seconds that a step waits itself.
    """

    def __init__(self, store: PartnerStore, wait: float = WAIT_SECONDS) -> None:
        self._store, self._wait = store, wait

    @asynccontextmanager
    async def session(self, partner: Partner) -> AsyncGenerator[None]:
        """Hold one of a partner's sessions for the length of the block.

        Raises:
            Busy: All are in use, for longer than a step waits.
        """
        if not _is_limited(partner):
            yield
            return
        owner, limits = uuid.uuid4().hex, partner.limits
        await self._taken(partner.name, owner, limits.sessions, LEASE_SECONDS, "sessions")
        keeping = asyncio.create_task(self._keep(partner, owner))
        try:
            # No more leases than whole connections fit into their length: they end by themselves.
            slots = max(1, math.floor(limits.connections_per_second))
            seconds = slots / limits.connections_per_second
            name = connections_of(partner.name)
            await self._taken(name, owner, slots, seconds, "new connections")
            yield
        finally:
            keeping.cancel()
            await asyncio.gather(keeping, return_exceptions=True)
            with suppress(Unavailable):
                # It ends by itself.
                await self._store.release(partner.name, owner)

    async def _taken(self, name: str, owner: str, slots: int, seconds: float, what: str) -> None:
        end = time.monotonic() + self._wait
        while not await self._store.lease(name, owner, slots, seconds):
            if time.monotonic() >= end:
                partner = name.partition("/")[0]
                # Spread, so that not all of those who wait come back at once.
                raise Busy(f"all {what} of {partner} are in use", random.uniform(5.0, 15.0))
            await asyncio.sleep(random.uniform(0.5, 1.5) * _PAUSE_SECONDS)

    async def _keep(self, partner: Partner, owner: str) -> None:
        while True:
            await asyncio.sleep(LEASE_SECONDS / 3)
            try:
                held = await self._store.lease(
                    partner.name, owner, partner.limits.sessions, LEASE_SECONDS
                )
            except Unavailable as error:
                logger.info("a session of %s was not prolonged: %s", partner.name, error)
                continue
            if not held:
                logger.warning("a session of %s ran out, and another took it", partner.name)


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


LOOK_AGAIN_SECONDS: Final = 3_600.0
"""A window is looked up anew after so long, for a person may have changed it."""


_NOT_OF_SESSIONS: Final = {
    "probe_folder",
    "profile",
    "revision",
    "by",
    "changed_at",
    "contact",
    "keys",
    "stopped",
}
"""Fields of a record that may change, and its sessions stay the same."""


def now_utc() -> datetime:
    """The time."""
    return datetime.now(UTC)


@dataclass(frozen=True)
class PartnerPlaces:
    """Endpoints by the records of their partners.

    Args:
        secrets: Finds what records refer to.
        sessions: Counts what is open.
        egress: What may be connected to.
        now: The time.
        timeouts: How long a partner may keep silent.
        threads: In which folders are used.
        paces: Of the bytes of sessions.
        pool: Reuses sessions of SFTP servers; None: each step opens one of its own.
        tls: Certificates that are trusted; None: those of the machine.
    """

    secrets: Secrets
    sessions: Sessions
    egress: Egress = field(default_factory=Egress)
    now: Callable[[], datetime] = now_utc
    timeouts: Timeouts = field(default_factory=Timeouts)
    threads: FolderThreads = field(default_factory=FolderThreads)
    paces: Paces = field(default_factory=Paces)
    tls: ssl.SSLContext | None = None
    pool: "SessionPool[SftpSession] | None" = None

    @asynccontextmanager
    async def open(self, partner: Partner) -> AsyncGenerator[Place]:
        """Connect, once the partner may be used and has a session free."""
        self._check(partner)
        credentials = await self._credentials(partner)
        if partner.kind is PlaceKind.SFTP:
            # The SSH library takes 14 MB of memory, for workers that have such partners alone.
            from adapters.places.sftp import SftpPlace

            async with self._sftp_session(partner, credentials) as own:
                yield SftpPlace(partner, own.client, credentials, own.pace, self.timeouts)
            return
        async with self.sessions.session(partner):
            with self.paces.of(partner.name, partner.limits) as pace:
                async with self._opened(partner, credentials, pace) as place:
                    yield place

    def _check(self, partner: Partner) -> None:
        name = partner.name
        if partner.stopped is not None:
            raise PartnerAway(name, f"{name} is stopped: {partner.stopped}")
        if not partner.enabled:
            cure = f"`docflow partner change {name} --enable` lets its runs continue"
            raise PartnerAway(name, f"{name} is disabled; {cure}")
        try:
            check_record(partner)
            opens = opens_at(partner, now := self.now())
        except RuleViolation as problem:
            raise Denied(f"the record of {name}: {problem}") from None
        if opens is not None:
            seconds = min((opens - now).total_seconds(), LOOK_AGAIN_SECONDS)
            when = f"{opens:%Y-%m-%d %H:%M} UTC"
            raise NotYet(f"{name} may be used again from {when}", max(seconds, 1.0))

    def _opened(
        self, partner: Partner, credentials: Credentials, pace: Pace
    ) -> AbstractAsyncContextManager[Place]:
        silence = self.timeouts.answer
        match partner.kind:
            case PlaceKind.FOLDER:
                return self._folder(partner, pace)
            case PlaceKind.AZURE_BLOB:
                return azure_blob(partner, credentials, self.egress, pace, silence)
            case PlaceKind.S3:
                return s3(partner, credentials, self.egress, pace, silence)
            case PlaceKind.HTTPS:
                # The HTTP client takes 7 MB, likewise.
                from adapters.places.https import https

                return https(partner, credentials, self.egress, pace, silence, self.tls)
            case PlaceKind.CUSTOM:
                return custom(partner, credentials, pace)
            case PlaceKind.SFTP:
                raise AssertionError("its sessions are handed on")

    @asynccontextmanager
    async def _folder(self, partner: Partner, pace: Pace) -> AsyncGenerator[Place]:
        folder = Path(partner.container or "")
        root = folder / partner.root if partner.root else folder
        threads = self.threads.of(partner.name)
        place = FolderPlace(partner, root, pace, threads, self.timeouts.answer)
        await place.check(self.egress.folders)
        yield place

    def _sftp_session(
        self, partner: Partner, credentials: Credentials
    ) -> "AbstractAsyncContextManager[SftpSession]":
        """One that is open already, where there is one; else a new one."""

        def open_session() -> "AbstractAsyncContextManager[SftpSession]":
            return self._new_sftp_session(partner, credentials)

        if self.pool is None:
            return open_session()
        key = (partner.model_dump_json(exclude=_NOT_OF_SESSIONS), credentials)
        most = partner.limits.sessions
        return self.pool.session(key, most, open_session, lambda session: session.is_alive())

    @asynccontextmanager
    async def _new_sftp_session(
        self, partner: Partner, credentials: Credentials
    ) -> "AsyncGenerator[SftpSession]":
        from adapters.places.sftp_session import SftpSession, connected

        today = self.now().date()
        async with (
            self.sessions.session(partner),
            connected(partner, credentials, today, self.egress, self.timeouts) as client,
        ):
            with self.paces.of(partner.name, partner.limits) as pace:
                yield SftpSession(client, pace)

    async def _credentials(self, partner: Partner) -> Credentials:
        async def found(reference: str | None) -> str | None:
            return None if reference is None else await self.secrets.secret(reference)

        return Credentials(
            password=await found(partner.password),
            private_key=await found(partner.private_key),
            passphrase=await found(partner.passphrase),
            token=await found(partner.token),
        )
