"""A test of an endpoint with folders: what a transfer does there, with two files of one byte."""

from collections.abc import AsyncIterator, Awaitable, Callable
from datetime import UTC, datetime
from typing import Final

from adapters.places.renamed import Folders
from adapters.ports import Denied, PortError
from adapters.ports.places import FileMissing, PlaceError
from contracts.transfers import Rename, ServerProfile

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
