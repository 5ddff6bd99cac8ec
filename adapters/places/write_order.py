"""What writing a file has in common at all endpoints: its name, its bytes, what is said of it."""

import hashlib
from collections.abc import AsyncGenerator, AsyncIterator
from dataclasses import dataclass, field
from datetime import datetime
from typing import Protocol

from adapters.ports import Denied
from adapters.ports.places import (
    Entry,
    FileMissing,
    NameRefused,
    NameTaken,
    Naming,
    Namings,
    PlaceError,
    Progress,
    Written,
)
from contracts.transfers import Guarantee, Overwrite
from domain.transfers.paths import NUMBERS, numbered, path_problem, pattern_problem, printable

PICKED_UP = "picked up by the partner after it had its name"


@dataclass(frozen=True)
class WriteOrder:
    """One file that is to be written; fields as the arguments of `Place.write`."""

    path: str
    size: int
    sha256: str
    overwrite: Overwrite
    verify: Guarantee
    owner: str
    mode: int | None = None
    changed: datetime | None = None
    progress: Progress | None = None
    namings: Namings | None = None

    async def note(self, path: str, *, done: bool = False) -> None:
        """Note that the file is about to get its name, or has it."""
        if self.namings is not None:
            await self.namings.note(Naming(self.path, path, self.sha256, done))

    async def not_named(self) -> None:
        """Note that it did not get the name after all."""
        if self.namings is not None:
            await self.namings.note(None)


class Found(Protocol):
    """What an endpoint says about names."""

    @property
    def writes_in_place(self) -> bool:
        """Whether files are written under their own names: a broken one may be our own."""
        ...

    async def entry(self, path: str) -> Entry | None:
        """The file of a name; None: there is none."""
        ...

    async def digest(self, entry: Entry) -> str:
        """SHA-256 of a file, read back."""
        ...

    async def is_unnamed(self, order: WriteOrder) -> bool:
        """Whether a file that was about to get its name surely has not got it."""
        ...


@dataclass(frozen=True)
class Target:
    """The name that a file is to get."""

    path: str
    replaces: Entry | None = None
    """The file that has the name now."""


async def target_of(far: Found, order: WriteOrder) -> Target | Written:
    """Find the name for a file, or that it is there already.

    Raises:
        NameTaken: By other bytes, and they may not be replaced.
        Denied: Every number is taken.
    """
    last = await order.namings.last() if order.namings is not None else None
    if last is not None and (last.wanted, last.sha256) == (order.path, order.sha256):
        return await _after(far, order, last)
    for path in _candidates(order):
        entry = await far.entry(path)
        if entry is None:
            return Target(path)
        if await _is_same(far, entry, order):
            return existing(entry)
        if order.overwrite is Overwrite.REPLACE:
            return Target(path, entry)
        if order.overwrite is Overwrite.REFUSE:
            raise taken(path)
    raise Denied(f"{printable(order.path)} and {NUMBERS} names with a number are taken")


async def _after(far: Found, order: WriteOrder, last: Naming) -> Target | Written:
    """What an earlier attempt left that got as far as giving the name."""
    entry = await far.entry(last.path)
    if entry is not None and await _is_same(far, entry, order):
        return existing(entry)
    if last.done or not await far.is_unnamed(order):
        return picked_up(last.path, order.size)
    # What this attempt does to the temporary file must not look like a name that was given.
    await order.not_named()
    if entry is not None and not (far.writes_in_place or order.overwrite is Overwrite.REPLACE):
        raise taken(last.path)
    return Target(last.path, entry)


def _candidates(order: WriteOrder) -> list[str]:
    if order.overwrite is not Overwrite.NUMBER:
        return [order.path]
    return [order.path, *(numbered(order.path, each) for each in range(2, NUMBERS + 2))]


async def _is_same(far: Found, entry: Entry, order: WriteOrder) -> bool:
    # A server may state 0 for every file: only reading tells.
    return entry.size in (order.size, 0) and await far.digest(entry) == order.sha256


def existing(entry: Entry) -> Written:
    """The same bytes are there."""
    return Written(entry, "read back: the same bytes were there", existed=True)


def picked_up(path: str, size: int) -> Written:
    """The file had its name, and the partner has taken it."""
    return Written(Entry(path, size), PICKED_UP, picked_up=True)


def taken(path: str) -> NameTaken:
    """The failure of a file that may not replace another."""
    return NameTaken(f"{printable(path)} holds another file, which may not be replaced")


def no_folder(folder: str, partner: str) -> FileMissing:
    """The failure of a list whose folder is not there: it is not an empty one."""
    shown = printable(folder) if folder else "its root"
    return FileMissing(f"there is no folder {shown} at {partner}")


class Digest(Protocol):
    """A hash that is being computed."""

    def update(self, data: bytes, /) -> None:
        """Add bytes."""
        ...

    def hexdigest(self) -> str:
        """Of all bytes so far."""
        ...


@dataclass
class Arriving:
    """Bytes on their way to an endpoint: counted, hashed, and checked at their end."""

    order: WriteOrder
    size: int = 0
    _digest: Digest = field(default_factory=hashlib.sha256)

    async def of(self, chunks: AsyncIterator[bytes]) -> AsyncGenerator[bytes]:
        """The same chunks.

        Raises:
            PortError: They are not those that were promised.
        """
        async for chunk in chunks:
            self.size += len(chunk)
            self._digest.update(chunk)
            if self.order.progress is not None:
                self.order.progress(self.size)
            yield chunk
        self.check()

    def check(self) -> None:
        """See that all bytes have passed, and no others.

        Raises:
            PortError: They have not.
        """
        if (self.size, self._digest.hexdigest()) != (self.order.size, self.order.sha256):
            raise PlaceError(
                f"{self.size:,} bytes came for {printable(self.order.path)} instead of "
                f"{self.order.size:,}, or other ones: they are not written"
            )


async def sha256_of(chunks: AsyncIterator[bytes], progress: Progress | None = None) -> str:
    """The hash of bytes that are read back."""
    digest, size = hashlib.sha256(), 0
    async for chunk in chunks:
        digest.update(chunk)
        size += len(chunk)
        if progress is not None:
            progress(size)
    return digest.hexdigest()


def checked(path: str) -> str:
    """A path that is safe.

    Raises:
        NameRefused: It is not.
    """
    if problem := path_problem(path):
        raise NameRefused(problem)
    return path


def checked_pattern(pattern: str) -> str:
    """A pattern that is safe.

    Raises:
        NameRefused: It is not.
    """
    if problem := pattern_problem(pattern):
        raise NameRefused(problem)
    return pattern
