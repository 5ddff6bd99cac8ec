"""How files are written at endpoints: under a temporary name or whole, verified, and tried."""

import asyncio
import hashlib
from collections.abc import AsyncGenerator, AsyncIterator, Awaitable, Callable
from contextlib import suppress
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from typing import Final, Protocol

from adapters.object_blobs import in_blocks
from adapters.ports.errors import Denied, PortError
from adapters.ports.places import (
    Entry,
    FileMissing,
    NameRefused,
    NameTaken,
    Naming,
    Namings,
    PartnerAway,
    PlaceError,
    Progress,
    Written,
)
from workflows.transfers.partners import Rename, ServerProfile, WriteMode
from workflows.transfers.paths import (
    NUMBERS,
    numbered,
    path_problem,
    pattern_problem,
    printable,
    temporary,
)
from workflows.transfers.settings import Guarantee, Overwrite

PICKED_UP = "picked up by the partner after it had its name"


@dataclass(frozen=True)
class WriteRequest:
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

    async def is_unnamed(self, order: WriteRequest) -> bool:
        """Whether a file that was about to get its name surely has not got it."""
        ...


@dataclass(frozen=True)
class Target:
    """The name that a file is to get."""

    path: str
    replaces: Entry | None = None
    """The file that has the name now."""


async def target_of(far: Found, order: WriteRequest) -> Target | Written:
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


async def _after(far: Found, order: WriteRequest, last: Naming) -> Target | Written:
    """What an earlier attempt left that got as far as giving the name."""
    entry = await far.entry(last.path)
    if entry is not None and await _is_same(far, entry, order):
        return existing(entry)
    if last.done or not await far.is_unnamed(order):
        return consumed_after_write(last.path, order.size)
    # What this attempt does to the temporary file must not look like a name that was given.
    await order.not_named()
    if entry is not None and not (far.writes_in_place or order.overwrite is Overwrite.REPLACE):
        raise taken(last.path)
    return Target(last.path, entry)


def _candidates(order: WriteRequest) -> list[str]:
    if order.overwrite is not Overwrite.NUMBER:
        return [order.path]
    return [order.path, *(numbered(order.path, each) for each in range(2, NUMBERS + 2))]


async def _is_same(far: Found, entry: Entry, order: WriteRequest) -> bool:
    # A server may state 0 for every file: only reading tells.
    return entry.size in (order.size, 0) and await far.digest(entry) == order.sha256


def existing(entry: Entry) -> Written:
    """The same bytes are there."""
    return Written(entry, "read back: the same bytes were there", existed=True)


def consumed_after_write(path: str, size: int) -> Written:
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

    order: WriteRequest
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


RENAMES: Final = {
    WriteMode.DIRECT: Rename.DIRECT,
    WriteMode.RENAME: Rename.ATOMIC_REPLACE,
    WriteMode.RENAME_AFTER: Rename.NON_ATOMIC,
}
"""How files appear that are written as a record says."""
_UNSEEN: Final = "accepted by the server, which lets nothing be seen there"
_LAST_SECONDS: Final = 5.0
"""A write that is cancelled takes so long at most to remove its file."""


class Folders(Protocol):
    """What an endpoint with folders does; errors are those of `Place`."""

    async def entry(self, path: str) -> Entry | None:
        """A file; None: there is none."""
        ...

    async def make_folders(self, path: str) -> None:
        """Make what is missing of the folders that a path stands in."""
        ...

    async def write_file(self, path: str, chunks: AsyncIterator[bytes]) -> str | None:
        """Write all bytes and flush them; what was there is replaced. A remark where the endpoint
        failed to flush them."""
        ...

    def content(self, path: str) -> AsyncIterator[bytes]:
        """The bytes of a file, as they are now."""
        ...

    async def rename(self, path: str, target: str, *, replaces: bool) -> None:
        """Give a file its name.

        Raises:
            NameTaken: There is one of that name, and `replaces` is false.
        """
        ...

    async def remove(self, path: str) -> bool:
        """Remove a file; False: it was gone."""
        ...

    async def set_mode(self, path: str, mode: int) -> str | None:
        """Ask for rights; a remark where they are refused."""
        ...

    async def set_time(self, path: str, changed: datetime) -> str | None:
        """Set the time; a remark where that is refused."""
        ...


class RenamedWrites(Found):
    """Writes files to an endpoint with folders.

    Args:
        folders: The endpoint.
        rename: How a file appears whole there.
    """

    def __init__(self, folders: Folders, rename: Rename) -> None:
        self._folders, self._rename = folders, rename

    @property
    def writes_in_place(self) -> bool:
        """Where nothing can be renamed."""
        return self._rename is Rename.DIRECT

    async def entry(self, path: str) -> Entry | None:
        """A file; None: there is none."""
        return await self._folders.entry(path)

    async def digest(self, entry: Entry) -> str:
        """Its hash, read back."""
        return await sha256_of(self._folders.content(entry.path))

    async def is_unnamed(self, order: WriteRequest) -> bool:
        """It still has its temporary name; where there is none, it is written again."""
        if self._rename is Rename.DIRECT:
            return True
        return await self._folders.entry(temporary(order.path, order.owner)) is not None

    async def write(self, chunks: AsyncIterator[bytes], order: WriteRequest) -> Written:
        """Write one file."""
        try:
            target = await target_of(self, order)
        except Denied:
            if not (self.writes_in_place and order.overwrite is Overwrite.REPLACE):
                raise
            return await self._unseen(chunks, order)
        if isinstance(target, Written):
            await self._folders.remove(temporary(order.path, order.owner))
            return target
        await self._folders.make_folders(order.path)
        if self._rename is Rename.DIRECT:
            return await self._direct(chunks, order, target)
        held = temporary(order.path, order.owner)
        try:
            guarantee, flushed = await self._written(chunks, order, held)
            remarks = await self._attributes(order, held, flushed)
        except PortError:
            await self._forget(held)
            raise
        except asyncio.CancelledError:
            # By a person, most likely: no other attempt would find the file.
            with suppress(TimeoutError):
                async with asyncio.timeout(_LAST_SECONDS):
                    await self._forget(held)
            raise
        written = await self._named(order, target, held, guarantee)
        return replace(written, remarks=remarks)

    async def _forget(self, held: str) -> None:
        try:
            await self._folders.remove(held)
        except PortError:
            # The failure that is being raised says more than this one; the next try finds the file.
            return

    async def _written(
        self, chunks: AsyncIterator[bytes], order: WriteRequest, held: str
    ) -> tuple[str, str | None]:
        """What was compared, in words, and a remark on the flush."""
        arriving = Arriving(order)
        flushed = await self._folders.write_file(held, arriving.of(chunks))
        arriving.check()
        return await self._verified(order, held), flushed

    async def _verified(self, order: WriteRequest, path: str) -> str:
        """Compare what stands at the endpoint; what was compared, in words."""
        if order.verify is Guarantee.SIZE:
            entry = await self._folders.entry(path)
            size = None if entry is None else entry.size
            if size == order.size:
                return "size"
            # A size of 0 may mean that the server does not know it: only reading tells.
            if size != 0:
                raise _differs(order, f"has {size} bytes instead of {order.size:,}")
        if await sha256_of(self._folders.content(path), order.progress) != order.sha256:
            raise _differs(order, "read back, has other bytes")
        return "read back"

    async def _attributes(
        self, order: WriteRequest, path: str, flushed: str | None
    ) -> tuple[str, ...]:
        """Set rights and time; remarks on them, behind that on the flush."""
        remarks = [flushed]
        if order.mode is not None:
            remarks.append(await self._folders.set_mode(path, order.mode))
        if order.changed is not None:
            remarks.append(await self._folders.set_time(path, order.changed))
        return tuple(remark for remark in remarks if remark is not None)

    async def _named(
        self, order: WriteRequest, target: Target, held: str, guarantee: str
    ) -> Written:
        path = await self._renamed(order, target, held)
        entry = await self._folders.entry(path)
        if entry is None:
            return consumed_after_write(path, order.size)
        how = "atomic rename" if self._rename is Rename.ATOMIC_REPLACE else "rename"
        if target.replaces is not None and self._rename is Rename.NON_ATOMIC:
            how = "rename after the earlier file was removed"
        return Written(entry, f"{guarantee}, {how}")

    async def _renamed(self, order: WriteRequest, target: Target, held: str) -> str:
        """Give the file its name; which one it got."""
        path, replaces = target.path, target.replaces is not None
        for number in range(2, NUMBERS + 2):
            await order.note(path)
            try:
                if replaces and self._rename is Rename.NON_ATOMIC:
                    await self._folders.remove(path)
                await self._folders.rename(held, path, replaces=replaces)
            except NameTaken:
                # Another writer was faster.
                await order.not_named()
                if order.overwrite is Overwrite.NUMBER:
                    path = numbered(order.path, number)
                elif order.overwrite is Overwrite.REPLACE and not replaces:
                    replaces = True
                else:
                    await self._forget(held)
                    raise
            except (PartnerAway, FileMissing):
                # Whether it has the name is not known.
                raise
            except PortError:
                if not (replaces and self._rename is Rename.NON_ATOMIC):
                    await order.not_named()
                    await self._forget(held)
                raise
            else:
                return path
        raise taken(path)

    async def _direct(
        self, chunks: AsyncIterator[bytes], order: WriteRequest, target: Target
    ) -> Written:
        """Write under the name itself: the partner may see the file before it is whole."""
        await order.note(target.path)
        arriving = Arriving(order)
        flushed = await self._folders.write_file(target.path, arriving.of(chunks))
        entry = await self._folders.entry(target.path)
        if entry is None:
            return consumed_after_write(target.path, order.size)
        if await sha256_of(self._folders.content(target.path)) != order.sha256:
            raise _differs(order, "read back, has other bytes")
        await order.note(target.path, done=True)
        remarks = await self._attributes(order, target.path, flushed)
        return Written(entry, "read back, written under its own name", remarks=remarks)

    async def _unseen(self, chunks: AsyncIterator[bytes], order: WriteRequest) -> Written:
        """Write where nothing can be seen, as in a drop box: the server's word is all there is."""
        last = await order.namings.last() if order.namings is not None else None
        remarks: tuple[str, ...] = ()
        if last != Naming(order.path, order.path, order.sha256, done=True):
            arriving = Arriving(order)
            flushed = await self._folders.write_file(order.path, arriving.of(chunks))
            await order.note(order.path, done=True)
            remarks = await self._attributes(order, order.path, flushed)
        return Written(Entry(order.path, order.size), _UNSEEN, remarks=remarks)


def _differs(order: WriteRequest, how: str) -> PortError:
    return PlaceError(f"{printable(order.path)} {how}: it is not given its name")


BLOCK = 5 << 20
"""Of an upload in parts: the least that S3 takes."""
_PIECE = 1 << 20
"""Of what is passed on; who uploads in parts collects one itself."""


class Wholes(Protocol):
    """What such an endpoint does; errors are those of `Place`."""

    @property
    def server_hash(self) -> str | None:
        """The hash by which it checks what it is sent, in words; None: it does not."""
        ...

    async def entry(self, path: str) -> Entry | None:
        """A file; None: there is none."""
        ...

    def content(self, path: str) -> AsyncIterator[bytes]:
        """The bytes of a file."""
        ...

    async def put(
        self, path: str, blocks: AsyncIterator[bytes], size: int, *, replaces: bool
    ) -> None:
        """Store a file, which appears when all of its bytes are there.

        Raises:
            NameTaken: There is one of that name, and `replaces` is false.
        """
        ...

    async def remove(self, path: str) -> bool:
        """Remove a file; False: it was gone."""
        ...


class WholeWrites(Found):
    """Writes files to such an endpoint."""

    def __init__(self, wholes: Wholes) -> None:
        self._wholes = wholes

    @property
    def writes_in_place(self) -> bool:
        """A file that is not whole is never seen."""
        return False

    async def entry(self, path: str) -> Entry | None:
        """A file; None: there is none."""
        return await self._wholes.entry(path)

    async def digest(self, entry: Entry) -> str:
        """Its hash, read back."""
        return await sha256_of(self._wholes.content(entry.path))

    async def is_unnamed(self, order: WriteRequest) -> bool:
        """Nothing tells; it is written again, unless the endpoint had confirmed it."""
        return True

    async def write(self, chunks: AsyncIterator[bytes], order: WriteRequest) -> Written:
        """Write one file."""
        target = await target_of(self, order)
        if isinstance(target, Written):
            return target
        written = await self._written(chunks, order, target)
        remarks = [
            f"{what} of the file cannot be set at this endpoint"
            for what, asked in (("the rights", order.mode), ("the time", order.changed))
            if asked is not None
        ]
        return replace(written, remarks=(*written.remarks, *remarks))

    async def _written(
        self, chunks: AsyncIterator[bytes], order: WriteRequest, target: Target
    ) -> Written:
        await order.note(target.path)
        arriving = Arriving(order)
        replaces = target.replaces is not None or order.overwrite is Overwrite.REPLACE
        try:
            await self._wholes.put(
                target.path,
                self._guarded(in_blocks(arriving.of(chunks), _PIECE), arriving, target, replaces),
                order.size,
                replaces=replaces,
            )
        except NameTaken:
            await order.not_named()
            raise
        await order.note(target.path, done=True)
        return await self._verified(order, target.path)

    async def _guarded(
        self, blocks: AsyncIterator[bytes], arriving: Arriving, target: Target, replaces: bool
    ) -> AsyncIterator[bytes]:
        """Hold the last block back until all bytes are known to be right, and the name free."""
        held: bytes | None = None
        async for block in blocks:
            if held is not None:
                yield held
            held = block
        arriving.check()
        is_large = arriving.size > BLOCK
        if is_large and not replaces and await self._wholes.entry(target.path) is not None:
            raise taken(target.path)
        if held is not None:
            yield held

    async def _verified(self, order: WriteRequest, path: str) -> Written:
        entry = await self._wholes.entry(path)
        if entry is None:
            return consumed_after_write(path, order.size)
        # A size of 0 may mean that the server does not know it: only reading tells.
        if order.verify is not Guarantee.READ_BACK and entry.size not in (order.size, 0):
            raise await self._removed(order, path, f"has {entry.size:,} bytes")
        if order.verify is Guarantee.SIZE and entry.size == order.size:
            return Written(entry, "size, appeared whole")
        if order.verify is Guarantee.HASH and self._wholes.server_hash is not None:
            return Written(entry, f"{self._wholes.server_hash}, appeared whole")
        if await sha256_of(self._wholes.content(path), order.progress) != order.sha256:
            raise await self._removed(order, path, "read back, has other bytes")
        return Written(entry, "read back, appeared whole")

    async def _removed(self, order: WriteRequest, path: str, how: str) -> PortError:
        await self._wholes.remove(path)
        await order.not_named()
        return PlaceError(f"{printable(path)} {how} instead of those sent; it was removed")


_BYTE: Final = b"\n"

Renames = Callable[[str, str], Awaitable[Rename]]
"""Renames the first file onto the second one; how that went."""


class Probe:
    """Writes, looks again, reads, renames and deletes.

    Args:
        folders: The endpoint.
        renames: How it renames a file onto another.
        first: Path of a file of our own.
        second: Of another one.
    """

    def __init__(self, folders: Folders, renames: Renames, first: str, second: str) -> None:
        self._folders, self._renames = folders, renames
        self._paths = first, second
        self._failed: list[str] = []

    async def profile(self, extensions: tuple[str, ...] = ()) -> ServerProfile:
        """What was seen.

        Raises:
            PortError: Nothing can be written.
        """
        first, second = self._paths
        is_taken, left, rename = False, list[str](), Rename.DIRECT
        try:
            for path in self._paths:
                await self._folders.write_file(path, _one_byte())
                # A server that takes files when they are closed would take the second one too.
                if is_taken := await self._is_taken(path):
                    break
            if not is_taken:
                await self._tried("read", self._read(first))
                rename = await self._renames(first, second)
                if rename is Rename.DIRECT:
                    self._failed.append("rename: it renames nothing")
        finally:
            for path in () if is_taken else self._paths:
                if not await self._is_removed(path):
                    left.append(path)
        return ServerProfile(
            rename=rename,
            extensions=extensions,
            probed_at=datetime.now(UTC),
            probed_with=self._paths[:1] if is_taken else self._paths,
            left_behind=tuple(left),
            takes_at_close=is_taken,
            failed=tuple(self._failed),
        )

    async def _is_taken(self, path: str) -> bool:
        try:
            return await self._folders.entry(path) is None
        except (Denied, PlaceError) as error:
            self._failed.append(f"stat: {error}"[:500])
            return False

    async def _read(self, path: str) -> None:
        found = b"".join([block async for block in self._folders.content(path)])
        if found != _BYTE:
            raise PlaceError(f"{len(found):,} bytes came instead of the byte that was written")

    async def _tried(self, what: str, step: Awaitable[None]) -> None:
        try:
            await step
        except (Denied, PlaceError) as error:
            self._failed.append(f"{what}: {error}"[:500])

    async def _is_removed(self, path: str) -> bool:
        try:
            await self._folders.remove(path)
        except FileMissing:
            return True
        except PortError as error:
            self._failed.append(f"delete: {error}"[:500])
            return False
        return True


async def _one_byte() -> AsyncIterator[bytes]:
    yield _BYTE
