"""Routes, partners and watches; bytes between actions; events; secrets.

Every method of the stores raises `Unavailable` when the database does not answer.

What watches saw, what came on queues, and what was recorded of the days of expectations.

Every method raises `Unavailable` when the database does not answer.
"""

from collections.abc import AsyncGenerator, AsyncIterator, Awaitable, Callable, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Protocol, TypeVar

from adapters.ports.errors import Denied
from workflows.shared.contracts import BlobRef
from workflows.transfers.events import RouteKey
from workflows.transfers.partners import Partner
from workflows.transfers.routes import RouteRemark, RouteRule

T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class SettingsFile:
    """`jobsettings.json`, as it is now."""

    text: bytes
    ref: BlobRef
    """Its name, size and sha256."""


class SettingsSource(Protocol):
    """Where `jobsettings.json` is kept."""

    async def read(self) -> SettingsFile:
        """The file as it is now.

        Raises:
            RuleViolation: There is none, or it is too long.
            Unavailable: It cannot be read at the moment.
        """
        ...


class RouteStore(Protocol):
    """`jobconfig`, in the database or in Azure Tables."""

    async def version(self) -> str:
        """Changes whenever a rule does: what is kept in memory holds as long as it is the same."""
        ...

    async def rules(self) -> Sequence[RouteRule]:
        """All of them, those that are disabled included."""
        ...

    async def unusable(self) -> Sequence[RouteRemark]:
        """Rows that others wrote and of which no rule can be made, with the reason."""
        ...

    async def put(self, rule: RouteRule, *, expected: RouteRule | None = None) -> None:
        """Insert or replace a rule; key: (queue, rule). The change stands in the trail.

        Args:
            rule: As it is from now on.
            expected: As it was; None: whatever it was.

        Raises:
            RuleViolation: Another person has changed it meanwhile.
        """
        ...

    async def remove(self, queue: str, rule: str, by: str | None) -> bool:
        """Remove a rule; False: there is none."""
        ...

    async def trail(self, limit: int = 200) -> Sequence[tuple[RouteRule, str]]:
        """Changes, the newest first, each with what was done: `added`, `changed`, `removed`."""
        ...


class PartnerStore(Protocol):
    """Records of partners."""

    async def get(self, name: str) -> Partner | None:
        """One; None: there is none."""
        ...

    async def all(self) -> Sequence[Partner]:
        """All, by name."""
        ...

    async def put(self, partner: Partner, *, expected: int | None = None) -> Partner:
        """Insert or replace; it is given the next revision.

        Args:
            partner: The record.
            expected: The revision that it replaces; None: whichever.

        Raises:
            RuleViolation: Another person has changed it meanwhile.
        """
        ...

    async def remove(self, name: str) -> bool:
        """Remove a record; False: there is none."""
        ...

    async def lease(self, name: str, owner: str, slots: int, seconds: float) -> bool:
        """Take or prolong one of a partner's sessions; False: all are taken."""
        ...

    async def release(self, name: str, owner: str) -> None:
        """Give a session back."""
        ...


class Notes(Protocol):
    """What attempts at an action leave for the next one, beside the staged bytes of the run.

    It survives a killed worker, and is removed with them. Texts of a few kilobytes.
    """

    async def read(self, run: str, name: str) -> bytes | None:
        """The newest text of that name; None: there is none."""
        ...

    async def write(self, run: str, name: str, text: bytes) -> None:
        """Insert or replace a text."""
        ...


class EventSender(Protocol):
    """Has events carried out; the same event sent again changes nothing."""

    async def send(self, body: str, queue: str | None) -> str:
        """Send an event.

        Args:
            body: JSON in structured mode.
            queue: It goes to this queue, routed already; None: it is routed.

        Returns:
            Its transfer id.

        Raises:
            RuleViolation: There is no such queue, or another event has its source and id.
            Unavailable: It was not accepted.
        """
        ...


class StartedJobs(Protocol):
    """Jobs that Temporal has, however they were started."""

    async def job_digest(self, transfer_id: str) -> str | None:
        """Digest of the event that the job of a transfer was started by; None: it is not known.

        Raises:
            Unavailable: Temporal does not answer.
        """
        ...


class Secrets(Protocol):
    """Secrets by reference (`env:`, `file:`, `aws:`)."""

    async def secret(self, reference: str) -> str:
        """The secret.

        Raises:
            Denied: There is none; the message names the reference, never a value.
            Unavailable: The service that keeps it does not answer.
        """
        ...


@dataclass(frozen=True, slots=True)
class Arrival:
    """A transfer that came on a queue."""

    transfer_id: str
    at: datetime
    key: RouteKey | None
    """None: it was recorded without."""
    file: str | None


@dataclass(frozen=True, slots=True)
class ScanVerdict:
    """What a scanner says about a file; neither `clean` nor `infected`: it was not scanned."""

    clean: bool
    infected: str | None = None
    """Name of the signature."""
    reason: str | None = None
    """Why it was not scanned."""
    signatures: datetime | None = None
    """Age of the signatures."""


class Scanner(Protocol):
    """Looks for viruses."""

    async def scan(self, chunks: AsyncIterator[bytes], size: int) -> ScanVerdict:
        """Scan one file.

        Raises:
            Unavailable: The scanner does not answer.
        """
        ...


@dataclass(frozen=True, slots=True)
class Signature:
    """Who signed a message."""

    fingerprint: str
    """Of the primary key."""
    signed_at: datetime | None = None


@dataclass(frozen=True, slots=True)
class KeyInfo:
    """What an OpenPGP key says of itself."""

    fingerprint: str
    """Of the primary key."""
    encrypts: bool
    """It, or a sub-key, can be encrypted to now."""
    expires: datetime | None = None
    """When the last part that can be encrypted to expires, or the primary key before it."""
    revoked: bool = False
    secret: bool = False
    """We have its private part."""
    decrypts: bool = False
    """We have the private part of it, or of a sub-key, for encryption, expired or not."""
    lacking: tuple[str, ...] = ()
    """Ids of parts for encryption whose private part its text should hold, and does not."""


class WrongKey(Denied):
    """The text of a key could be read, and is not that key."""


Sink = Callable[[AsyncGenerator[bytes]], Awaitable[T]]
"""Takes bytes; there is nothing when they raise before their end, as with `Staging.write`."""


@dataclass(frozen=True, slots=True)
class ArchiveInput:
    """A file for an archive."""

    name: str
    size: int
    sha256: str
    chunks: Callable[[], AsyncIterator[bytes]]
    changed: datetime | None = None


@dataclass(frozen=True, slots=True)
class ExtractionLimits:
    """What an archive may ask for."""

    files: int
    bytes: int
    ratio: int
    """Unpacked to packed bytes, of archives that unpack to more than 64 MB."""


@dataclass(frozen=True, slots=True)
class ArchiveMember:
    """A file of an archive, named as a relative path that leaves no folder."""

    name: str
    chunks: AsyncGenerator[bytes]
    """Has to be read to its end before the next member is asked for."""
    encrypted: bool = False
    guessed: str | None = None
    """The encoding that was found for names of its archive; None: they are as is stated."""
