"""What is done with the files of transfers: scans, OpenPGP, archives."""

from collections.abc import AsyncGenerator, AsyncIterator, Awaitable, Callable, Sequence
from contextlib import AbstractAsyncContextManager
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path
from typing import Protocol, TypeVar

from adapters.ports.errors import Denied
from workflows.transfers.partners import OpenPgpKey

T = TypeVar("T")


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
    decrypts: bool = False
    """We have the private part of it, or of a sub-key, for encryption, expired or not."""
    lacking: tuple[str, ...] = ()
    """Ids of parts for encryption whose private part its text should hold, and does not."""


class WrongKey(Denied):
    """The text of a key could be read, and is not that key."""


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

    async def read_signed(
        self, source: AsyncIterator[bytes], sink: Sink[T], signers: Sequence[str], *, most: int
    ) -> tuple[T, Signature]:
        """Read a message that is signed and not encrypted, also one that is clear-signed.

        Args:
            source: Binary, armoured or clear-signed.
            sink: Takes what was signed.
            signers: Fingerprints of those who may have signed it.
            most: Bytes of it that are allowed.

        Raises:
            Denied: None of them signed it.
        """
        ...

    async def verify(self, source: Path, signature: bytes, signers: Sequence[str]) -> Signature:
        """Require a good detached signature of one of the signers.

        Raises:
            Denied: None of them signed it.
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
    guessed: str | None = None
    """The encoding that was found for names of its archive; None: they are as is stated."""
