"""Rows of transfers, routes and partners; bytes between actions; what actions use.

Every method of the stores raises `Unavailable` when the database does not answer.
"""

from collections.abc import AsyncGenerator, AsyncIterator, Awaitable, Callable, Sequence
from contextlib import AbstractAsyncContextManager
from dataclasses import dataclass
from datetime import date, datetime
from pathlib import Path
from typing import Protocol, TypeVar

from contracts.blobs import BlobRef
from contracts.transfers import (
    ArchiveFormat,
    KeptTransfer,
    OpenPgpKey,
    Partner,
    RouteRemark,
    RouteRule,
    TransferStatus,
)

T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class StatusRow:
    """One row of `jobstatus`: a transfer entered a state."""

    transfer_id: str
    status: TransferStatus
    at: datetime
    source: str
    event_id: str
    account_id: str | None = None
    type: str | None = None
    subject: str | None = None
    queue: str | None = None
    job: str | None = None
    file: str | None = None
    reason: str | None = None
    by: str | None = None
    run: str | None = None
    """Workflow id of the run that closes it; None: that of the row before."""
    digest: str | None = None
    """Of the event; kept as it was first recorded."""
    receipt: BlobRef | None = None
    kept: KeptTransfer | None = None


class TransferStore(Protocol):
    """`jobstatus`: the newest state of every transfer, and every state that it was in."""

    async def record(self, row: StatusRow) -> None:
        """Add a state; the same one twice is one. What it leaves out stays as it was."""
        ...

    async def get(self, transfer_id: str) -> StatusRow | None:
        """The state of a transfer now; None: there is none."""
        ...

    async def find(self, beginning: str) -> Sequence[StatusRow]:
        """Transfers whose id begins so (8 hex digits and more), the newest first; at most 10."""
        ...

    async def trail(self, transfer_id: str) -> Sequence[StatusRow]:
        """States of a transfer, the oldest first."""
        ...

    async def newest(
        self,
        *,
        limit: int,
        status: TransferStatus | None = None,
        queue: str | None = None,
        account_id: str | None = None,
        before: datetime | None = None,
    ) -> Sequence[StatusRow]:
        """The state of each transfer now, the newest change first."""
        ...


class Turns(Protocol):
    """Who may work on a sequence key, in the order of arrival."""

    async def take(self, key: str, run: str, arrived: datetime) -> Sequence[str]:
        """Stand in line, or see how far one is.

        Args:
            key: What runs write one after the other.
            run: Workflow id; it stands in line once.
            arrived: Of its event: the earlier one comes first, unless another has begun.

        Returns:
            Workflow ids of those before it, the one whose turn it is first; none: it is its turn.
        """
        ...

    async def give_back(self, key: str, run: str) -> None:
        """Leave the line; it may be done twice."""
        ...


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

    async def put(self, rule: RouteRule) -> None:
        """Insert or replace a rule; key: (queue, rule). The change stands in the trail."""
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


class Staging(Protocol):
    """Bytes of runs between two actions; encrypted at rest when a key is set.

    References carry size and sha256 of the plain bytes.
    """

    async def write(self, run: str, name: str, chunks: AsyncIterator[bytes]) -> BlobRef:
        """Stream bytes in; there is no file when `chunks` raises. The same name is replaced.

        Args:
            run: Folder of the run: transfer id, and resend.
            name: Unique in the run: index of the action, round, number of the file.
            chunks: Pieces of any size.
        """
        ...

    def read(self, ref: BlobRef) -> AsyncIterator[bytes]:
        """Stream bytes out; damaged ones raise before the end.

        Raises:
            BlobNotFound: They are gone.
        """
        ...

    async def discard(self, ref: BlobRef) -> None:
        """Remove one file, as of an attempt that failed; one that is gone is no error."""
        ...

    async def remove(self, run: str) -> int:
        """Remove everything of a run; how many files there were."""
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


class KeptCopies(Protocol):
    """Copies of what was written, encrypted, to be sent again."""

    async def keep(self, run: str, name: str, until: date, chunks: AsyncIterator[bytes]) -> BlobRef:
        """Stream a file in, kept up to and with a day.

        Raises:
            Denied: No key is set to encrypt it with.
        """
        ...

    def read(self, ref: BlobRef) -> AsyncIterator[bytes]:
        """Stream bytes out.

        Raises:
            BlobNotFound: They are not kept any more.
        """
        ...

    async def remove_before(self, day: date) -> int:
        """Remove what was kept up to earlier days; how many files there were."""
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
class KeyFacts:
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


Sink = Callable[[AsyncGenerator[bytes]], Awaitable[T]]
"""Takes bytes; there is nothing when they raise before their end, as with `Staging.write`."""


class Keyring(Protocol):
    """Keys for the length of one step.

    Everything is streamed. What is read is neither complete nor authentic before the end, so the
    sink sees an error instead of the end where it is not. Every method raises `UnreadableDocument`
    for what is damaged, tampered with or no OpenPGP message, `Denied` for keys that may not be
    used.
    """

    @property
    def keys(self) -> Sequence[KeyFacts]:
        """Those in it."""
        ...

    async def encrypt(
        self,
        source: AsyncIterator[bytes],
        sink: Sink[T],
        recipients: Sequence[str],
        signer: str | None = None,
        *,
        armour: bool = False,
    ) -> T:
        """Encrypt to keys, by fingerprint; nothing is compressed.

        Raises:
            Denied: A recipient has expired or was revoked.
        """
        ...

    async def decrypt(
        self,
        source: AsyncIterator[bytes],
        sink: Sink[T],
        signers: Sequence[str],
        *,
        most: int,
        signed: bool = True,
    ) -> tuple[T, Signature | None]:
        """Decrypt a message that is encrypted to a key of ours; None: none of `signers` signed it.

        Args:
            source: Binary or armoured.
            sink: Takes the plain bytes.
            signers: Fingerprints of those who may have signed it.
            most: Plain bytes that are allowed.
            signed: One of them must have.

        Raises:
            UnreadableDocument: It is not encrypted with integrity protection, is damaged, or
                unpacks to more than `most` bytes.
            Denied: It must be signed, and is by none of `signers` with a valid key.
        """
        ...

    async def sign(
        self, source: AsyncIterator[bytes], sink: Sink[T], signer: str, *, armour: bool
    ) -> T:
        """Make a detached signature."""
        ...

    async def verify(self, source: Path, signature: bytes, signers: Sequence[str]) -> Signature:
        """Require a good detached signature of one of the signers.

        Raises:
            Denied: It is of nobody of them.
        """
        ...


class OpenPgp(Protocol):
    """Opens keyrings; errors name neither passphrases nor plaintext."""

    def open(self, keys: Sequence[OpenPgpKey]) -> AbstractAsyncContextManager[Keyring]:
        """A keyring of its own with these keys, removed at the end of the block.

        Raises:
            Denied: A key is not the one that its fingerprint names.
        """
        ...


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


class Archives(Protocol):
    """Makes archives and takes them apart, one file at a time."""

    def compress(
        self, format: ArchiveFormat, files: Sequence[ArchiveInput], password: str | None = None
    ) -> AsyncGenerator[bytes]:
        """An archive of files; the same bytes for the same files.

        Args:
            format: GZIP takes one file.
            files: In the order in which they stand in the archive.
            password: Of a ZIP archive, whose files are AES-256 then.
        """
        ...

    def extract(
        self,
        source: Path,
        name: str,
        limits: ExtractionLimits,
        *,
        format: ArchiveFormat | None = None,
        password: str | None = None,
        encoding: str = "utf-8",
        flatten: bool = False,
    ) -> AsyncGenerator[ArchiveMember]:
        """The files of an archive; archives among them stay archives.

        Args:
            source: The archive.
            name: What it is called: a gzip file's content is called so, without the suffix.
            limits: What it may ask for.
            format: None: by structure.
            password: Of encrypted files.
            encoding: Of names that are not marked as UTF-8.
            flatten: Folders are dropped from names.

        Raises:
            UnreadableDocument: It is damaged, encrypted without a password, or hostile: it holds
                links or devices, or unpacks to too much.
            InvalidDocument: A name in it leaves its folder, or is there twice.
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
