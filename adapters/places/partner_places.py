"""Opens endpoints, within what their partners bear."""

import ssl
from collections.abc import AsyncGenerator, Callable
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Final

from adapters.places.credentials import Credentials
from adapters.places.egress import Egress
from adapters.places.folder import FolderPlace, FolderThreads
from adapters.places.object_stores import azure_blob, s3
from adapters.places.pace import Pace, Paces
from adapters.places.pool import SessionPool
from adapters.places.sessions import Sessions
from adapters.places.timeouts import Timeouts
from adapters.ports import Denied, NotYet
from adapters.ports.places import PartnerAway, Place
from adapters.ports.transfers import Secrets
from contracts.transfers import Partner, PlaceKind
from domain.errors import RuleViolation
from domain.transfers.partner_rules import check_record
from domain.transfers.windows import opens_at

if TYPE_CHECKING:
    from adapters.places.sftp_session import SftpSession

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
            raise PartnerAway(
                name, f"{name} is disabled; `docflow partners enable {name}` lets its runs continue"
            )
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
