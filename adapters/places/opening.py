"""Opens far ends, within what their partners bear."""

import ssl
from collections.abc import AsyncGenerator, Callable
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path
from typing import Final

from adapters.places.credentials import Credentials
from adapters.places.egress import Egress
from adapters.places.folder import FolderPlace
from adapters.places.https import https
from adapters.places.object_stores import azure_blob, s3
from adapters.places.pace import Pace
from adapters.places.sessions import Sessions
from adapters.places.sftp import SftpPlace
from adapters.places.sftp_session import Timeouts, connected
from adapters.ports import Denied, NotYet
from adapters.ports.places import PartnerAway, Place
from adapters.ports.transfers import Secrets
from contracts.transfers import Partner, PlaceKind
from domain.errors import RuleViolation
from domain.transfers.partner_rules import check_record, valid_host_keys
from domain.transfers.windows import opens_at

LOOK_AGAIN_SECONDS: Final = 3_600.0
"""A window is looked up anew after so long, for a person may have changed it."""


def now_utc() -> datetime:
    """The time."""
    return datetime.now(UTC)


@dataclass(frozen=True)
class PartnerPlaces:
    """Far ends by the records of their partners.

    Args:
        secrets: Finds what records refer to.
        sessions: Counts what is open.
        egress: What may be connected to.
        now: The time.
        timeouts: How long a partner may keep silent.
        tls: Certificates that are trusted; None: those of the machine.
    """

    secrets: Secrets
    sessions: Sessions
    egress: Egress = field(default_factory=Egress)
    now: Callable[[], datetime] = now_utc
    timeouts: Timeouts = field(default_factory=Timeouts)
    tls: ssl.SSLContext | None = None

    @asynccontextmanager
    async def open(self, partner: Partner) -> AsyncGenerator[Place]:
        """Connect, once the partner may be used and has a session free."""
        self._check(partner)
        credentials = await self._credentials(partner)
        limits = partner.limits
        # Each session has its part: so all of them together never pass the limit.
        rate = limits.bytes_per_second
        pace = Pace(None if rate is None else rate / limits.sessions)
        async with self.sessions.session(partner), self._opened(partner, credentials, pace) as at:
            yield at

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
            case PlaceKind.SFTP:
                return self._sftp(partner, credentials, pace)
            case PlaceKind.AZURE_BLOB:
                return azure_blob(partner, credentials, self.egress, pace, silence)
            case PlaceKind.S3:
                return s3(partner, credentials, self.egress, pace, silence)
            case PlaceKind.HTTPS:
                return https(partner, credentials, self.egress, pace, silence, self.tls)

    @asynccontextmanager
    async def _folder(self, partner: Partner, pace: Pace) -> AsyncGenerator[Place]:
        folder = Path(partner.container or "")
        if not any(folder.resolve().is_relative_to(each.resolve()) for each in self.egress.folders):
            raise Denied(f"the folder of {partner.name} lies in none of DOCFLOW_TRANSFERS_FOLDERS")
        root = folder / partner.root if partner.root else folder
        if not root.is_dir():
            raise PartnerAway(partner.name, f"the folder of {partner.name} is not there")
        yield FolderPlace(partner, root, pace)

    @asynccontextmanager
    async def _sftp(
        self, partner: Partner, credentials: Credentials, pace: Pace
    ) -> AsyncGenerator[Place]:
        pinned = valid_host_keys(partner, self.now().date())
        async with connected(partner, credentials, pinned, self.egress, self.timeouts) as session:
            yield SftpPlace(partner, session, credentials, pace, self.timeouts)

    async def _credentials(self, partner: Partner) -> Credentials:
        async def found(reference: str | None) -> str | None:
            return None if reference is None else await self.secrets.secret(reference)

        return Credentials(
            password=await found(partner.password),
            private_key=await found(partner.private_key),
            passphrase=await found(partner.passphrase),
            token=await found(partner.token),
        )
