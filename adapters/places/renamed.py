"""Endpoints with folders: written under a temporary name, verified, and renamed."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import suppress
from dataclasses import replace
from datetime import datetime
from typing import Final, Protocol

from adapters.places.write_order import (
    Arriving,
    Found,
    Target,
    WriteOrder,
    picked_up,
    sha256_of,
    taken,
    target_of,
)
from adapters.ports import Denied, PortError
from adapters.ports.places import (
    Entry,
    FileMissing,
    NameTaken,
    Naming,
    PartnerAway,
    PlaceError,
    Written,
)
from contracts.transfers import Guarantee, Overwrite, Rename, WriteMode
from domain.transfers.paths import NUMBERS, numbered, printable, temporary

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

    async def is_unnamed(self, order: WriteOrder) -> bool:
        """It still has its temporary name; where there is none, it is written again."""
        if self._rename is Rename.DIRECT:
            return True
        return await self._folders.entry(temporary(order.path, order.owner)) is not None

    async def write(self, chunks: AsyncIterator[bytes], order: WriteOrder) -> Written:
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
        self, chunks: AsyncIterator[bytes], order: WriteOrder, held: str
    ) -> tuple[str, str | None]:
        """What was compared, in words, and a remark on the flush."""
        arriving = Arriving(order)
        flushed = await self._folders.write_file(held, arriving.of(chunks))
        arriving.check()
        return await self._verified(order, held), flushed

    async def _verified(self, order: WriteOrder, path: str) -> str:
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
        self, order: WriteOrder, path: str, flushed: str | None
    ) -> tuple[str, ...]:
        """Set rights and time; remarks on them, behind that on the flush."""
        remarks = [flushed]
        if order.mode is not None:
            remarks.append(await self._folders.set_mode(path, order.mode))
        if order.changed is not None:
            remarks.append(await self._folders.set_time(path, order.changed))
        return tuple(remark for remark in remarks if remark is not None)

    async def _named(self, order: WriteOrder, target: Target, held: str, guarantee: str) -> Written:
        path = await self._renamed(order, target, held)
        entry = await self._folders.entry(path)
        if entry is None:
            return picked_up(path, order.size)
        how = "atomic rename" if self._rename is Rename.ATOMIC_REPLACE else "rename"
        if target.replaces is not None and self._rename is Rename.NON_ATOMIC:
            how = "rename after the earlier file was removed"
        return Written(entry, f"{guarantee}, {how}")

    async def _renamed(self, order: WriteOrder, target: Target, held: str) -> str:
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
        self, chunks: AsyncIterator[bytes], order: WriteOrder, target: Target
    ) -> Written:
        """Write under the name itself: the partner may see the file before it is whole."""
        await order.note(target.path)
        arriving = Arriving(order)
        flushed = await self._folders.write_file(target.path, arriving.of(chunks))
        entry = await self._folders.entry(target.path)
        if entry is None:
            return picked_up(target.path, order.size)
        if await sha256_of(self._folders.content(target.path)) != order.sha256:
            raise _differs(order, "read back, has other bytes")
        await order.note(target.path, done=True)
        remarks = await self._attributes(order, target.path, flushed)
        return Written(entry, "read back, written under its own name", remarks=remarks)

    async def _unseen(self, chunks: AsyncIterator[bytes], order: WriteOrder) -> Written:
        """Write where nothing can be seen, as in a drop box: the server's word is all there is."""
        last = await order.namings.last() if order.namings is not None else None
        remarks: tuple[str, ...] = ()
        if last != Naming(order.path, order.path, order.sha256, done=True):
            arriving = Arriving(order)
            flushed = await self._folders.write_file(order.path, arriving.of(chunks))
            await order.note(order.path, done=True)
            remarks = await self._attributes(order, order.path, flushed)
        return Written(Entry(order.path, order.size), _UNSEEN, remarks=remarks)


def _differs(order: WriteOrder, how: str) -> PortError:
    return PlaceError(f"{printable(order.path)} {how}: it is not given its name")
