"""What endpoints of all kinds have in common, and the bandwidth that a partner bears."""

import asyncio
import secrets
import time
from abc import ABC, abstractmethod
from collections import defaultdict
from collections.abc import AsyncGenerator, AsyncIterator, Generator
from contextlib import contextmanager
from dataclasses import dataclass, field
from datetime import datetime
from typing import ClassVar, Final

from adapters.places.writing import WriteRequest, checked
from adapters.ports.errors import PortError
from adapters.ports.places import (
    Entry,
    FileChanged,
    FileMissing,
    Namings,
    PartnerAway,
    PartnerFull,
    PlaceError,
    Progress,
    Written,
)
from workflows.transfers.partners import Limits, Partner
from workflows.transfers.paths import TEMPORARY_PREFIX, join, printable
from workflows.transfers.settings import Guarantee, Overwrite

LOGIN_SECONDS: Final = 20.0
ANSWER_SECONDS: Final = 60.0
"""A request that has no answer for so long means that the partner is unavailable."""
KEEPALIVE_SECONDS: Final = 10.0


@dataclass(frozen=True)
class Timeouts:
    """How long a server may keep silent; seconds."""

    login: float = LOGIN_SECONDS
    answer: float = ANSWER_SECONDS
    keepalive: float = KEEPALIVE_SECONDS


@dataclass(frozen=True)
class Credentials:
    """Who asks, with secrets that were looked up."""

    password: str | None = field(default=None, repr=False)
    private_key: str | None = field(default=None, repr=False)
    passphrase: str | None = field(default=None, repr=False)
    token: str | None = field(default=None, repr=False)

    def hide(self, text: str) -> str:
        """A text of a library or of a server, without the secrets."""
        for secret in (self.password, self.private_key, self.passphrase, self.token):
            for part in {secret, *(secret or "").splitlines()}:
                if part and len(part) > 3:
                    text = text.replace(part, "***")
        return text


_BURST_SECONDS = 0.25


class Pace:
    """Lets bytes of one session pass at a steady rate.

    Args:
        bytes_per_second: Of this session; None: no limit.
    """

    def __init__(self, bytes_per_second: float | None = None) -> None:
        self._rate = bytes_per_second
        self._due = 0.0

    async def __call__(self, size: int) -> None:
        """Account for bytes that have passed, and wait until more of them may."""
        if self._rate is None:
            return
        now = time.monotonic()
        self._due = max(self._due, now - _BURST_SECONDS) + size / self._rate
        if self._due > now:
            await asyncio.sleep(self._due - now)

    async def of(self, chunks: AsyncIterator[bytes]) -> AsyncGenerator[bytes]:
        """The same chunks, paced."""
        async for chunk in chunks:
            await self(len(chunk))
            yield chunk


class Paces:
    """The paces of a partner's sessions.

    They outlive the sessions: many small files, each in a session of its own, pass no faster than
    one large file.
    """

    def __init__(self) -> None:
        self._free: defaultdict[tuple[str, Limits], list[Pace]] = defaultdict(list)

    @contextmanager
    def of(self, partner: str, limits: Limits) -> Generator[Pace]:
        """That of one session, for the length of the block."""
        rate = limits.bytes_per_second
        if rate is None:
            yield Pace()
            return
        free = self._free[partner, limits]
        # Each session has its part: so all of them together never pass the limit.
        pace = free.pop() if free else Pace(rate / limits.sessions)
        try:
            yield pace
        finally:
            free.append(pace)


SHORT_BYTES: Final = 1 << 20
"""To read so many bytes in vain costs less than to ask for the file once more."""


class BasePlace(ABC):
    """An endpoint by what its protocol does with one file; errors are those of `Place`.

    Args:
        partner: Whose it is.
        pace: Of its bytes.
    """

    reads_one_version: ClassVar[bool] = False
    """The protocol itself refuses to read another version than the one that was listed."""

    def __init__(self, partner: Partner, pace: Pace) -> None:
        self._partner, self._pace = partner, pace

    @abstractmethod
    async def entry(self, path: str) -> Entry | None:
        """A file; None: there is none."""

    @abstractmethod
    async def remove(self, path: str) -> bool:
        """Remove a file, whichever it is; False: it was gone."""

    @abstractmethod
    def _blocks(self, entry: Entry, offset: int) -> AsyncGenerator[bytes]:
        """The bytes of a file from an offset, to its end, paced.

        They may be more than the file is known to have. A size of 0 means nothing: some servers
        state it for every file.
        """

    @abstractmethod
    async def _written(self, chunks: AsyncIterator[bytes], order: WriteRequest) -> Written:
        """Write one file."""

    async def ping(self) -> None:
        """Ask for a file that does not exist."""
        try:
            await self.entry(probe_name())
        except PartnerAway:
            raise
        except PortError:
            # It refuses something, so it answers.
            return

    async def room(self) -> int | None:
        """Most protocols do not report it."""
        return None

    async def stat(self, path: str) -> Entry:
        """One file."""
        entry = await self.entry(checked(path))
        if entry is None:
            raise self._missing(path)
        return entry

    async def read(self, entry: Entry, offset: int = 0) -> AsyncGenerator[bytes]:
        """The bytes of a file, which stays the same while it is read."""
        # What is read in one block is compared behind it alone.
        if not self.reads_one_version and entry.size > SHORT_BYTES:
            self._check_same(entry, await self.stat(entry.path))
        checked(entry.path)
        size = offset
        # A size of 0 may mean that the server does not know it: only reading tells.
        is_known = entry.size > 0
        # No range of no bytes can be asked for.
        is_left = offset < entry.size or not is_known
        async for block in self._blocks(entry, offset) if is_left else no_bytes():
            size += len(block)
            if is_known and size > entry.size:
                break
            yield block
        if is_known and size != entry.size:
            raise FileChanged(f"{printable(entry.path)} grew or shrank while it was read")
        self._check_same(entry, await self.stat(entry.path))

    async def content(self, path: str) -> AsyncGenerator[bytes]:
        """The bytes of a file, as they are now."""
        entry = await self.stat(path)
        async for block in self._blocks(entry, 0):
            yield block

    async def write(
        self,
        chunks: AsyncIterator[bytes],
        path: str,
        *,
        size: int,
        sha256: str,
        overwrite: Overwrite,
        verify: Guarantee,
        owner: str,
        mode: int | None = None,
        changed: datetime | None = None,
        progress: Progress | None = None,
        namings: Namings | None = None,
    ) -> Written:
        """Write a file so that it appears whole, as far as the protocol allows."""
        order = WriteRequest(
            checked(path), size, sha256, overwrite, verify, owner, mode, changed, progress, namings
        )
        try:
            return await self._written(chunks, order)
        except PlaceError as error:
            # A full disk has no name of its own in SFTP, and servers word it as they like.
            if type(error) is PlaceError:
                await self._require_room(size, error)
            raise

    async def _require_room(self, size: int, error: PlaceError) -> None:
        room = await self.room()
        if room is not None and room < max(size, 1):
            name = self._partner.name
            text = f"{name} has no room for {size:,} bytes: {error}"
            raise PartnerFull(name, text, max(size, 1)) from error

    async def delete(self, entry: Entry) -> bool:
        """Delete a file, if it is still that one."""
        now = await self.entry(checked(entry.path))
        if now is None:
            return False
        self._check_same(entry, now)
        return await self._remove_same(now)

    async def _remove_same(self, entry: Entry) -> bool:
        """Remove a file that was just looked at; False: it was gone.

        Protocols that can refuse do so where another one has its name by now.

        Raises:
            FileChanged: One has.
        """
        return await self.remove(entry.path)

    def _missing(self, path: str) -> FileMissing:
        return FileMissing(f"there is no file {printable(path)} at {self._partner.name}")

    def _check_same(self, entry: Entry, now: Entry) -> None:
        if not is_same(entry, now):
            raise FileChanged(
                f"{printable(entry.path)} is not the file any more that was listed: "
                f"{now.size:,} bytes instead of {entry.size:,}, or another time or tag"
            )


def is_same(entry: Entry, now: Entry) -> bool:
    """Whether a file is still the one that it was, as far as the endpoint tells."""
    if entry.size != now.size:
        return False
    if is_strong(entry.tag):
        return entry.tag == now.tag
    return entry.changed == now.changed and entry.tag in (None, now.tag)


def is_strong(tag: str | None) -> bool:
    """Whether equal tags mean equal bytes (RFC 9110, 8.8.1)."""
    return bool(tag) and not str(tag).startswith("W/")


def probe_name(folder: str = "", suffix: str = "") -> str:
    """The path of a file of our own that is there for a probe at most."""
    return join(folder, f"{TEMPORARY_PREFIX}probe-{secrets.token_hex(6)}{suffix}")


def room_of(free: int, files: int, free_files: int) -> int:
    """Bytes that can be written to a file system, which may be out of files before (statvfs)."""
    return 0 if files and not free_files else free


async def no_bytes() -> AsyncGenerator[bytes]:
    """The content of an empty file."""
    for block in ():
        yield block
