"""What is done with the files of transfers: scans, OpenPGP, archives."""

from collections.abc import AsyncGenerator, AsyncIterator, Awaitable, Callable
from dataclasses import dataclass
from datetime import datetime
from typing import Protocol, TypeVar

from adapters.ports.errors import Denied

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
