"""Endpoints without renames at which a file appears whole: object stores and HTTPS servers."""

from collections.abc import AsyncIterator
from dataclasses import replace
from typing import Protocol

from adapters.blocks import in_blocks
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
from adapters.ports import PortError
from adapters.ports.places import Entry, NameTaken, PlaceError, Written
from contracts.transfers import Guarantee, Overwrite
from domain.transfers.paths import printable

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

    async def is_unnamed(self, order: WriteOrder) -> bool:
        """Nothing tells; it is written again, unless the endpoint had confirmed it."""
        return True

    async def write(self, chunks: AsyncIterator[bytes], order: WriteOrder) -> Written:
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
        self, chunks: AsyncIterator[bytes], order: WriteOrder, target: Target
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

    async def _verified(self, order: WriteOrder, path: str) -> Written:
        entry = await self._wholes.entry(path)
        if entry is None:
            return picked_up(path, order.size)
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

    async def _removed(self, order: WriteOrder, path: str, how: str) -> PortError:
        await self._wholes.remove(path)
        await order.not_named()
        return PlaceError(f"{printable(path)} {how} instead of those sent; it was removed")
