"""Finds out what an SFTP server can do, by doing what a transfer does with one byte."""

from collections.abc import AsyncIterator, Awaitable, Mapping
from datetime import UTC, datetime
from types import MappingProxyType
from typing import Final, Protocol

from adapters.ports import PortError
from adapters.ports.places import Entry, FileMissing, PartnerAway
from contracts.transfers import ProbedStep, Rename, ServerProfile, WriteMode

WRITES: Final[Mapping[WriteMode | None, Rename]] = MappingProxyType(
    {
        WriteMode.DIRECT: Rename.DIRECT,
        WriteMode.RENAME: Rename.ATOMIC_REPLACE,
        WriteMode.RENAME_AFTER: Rename.NON_ATOMIC,
    }
)
"""What a person has decided, in place of what was found out."""
_BYTE: Final = b"\n"


class Probed(Protocol):
    """What a probe does at a server; errors are those of `Place`."""

    @property
    def copies(self) -> bool:
        """Whether the server copies files by itself."""
        ...

    async def write_file(self, path: str, chunks: AsyncIterator[bytes]) -> str | None:
        """Write a file under its own name."""
        ...

    async def entry(self, path: str) -> Entry | None:
        """A file; None: there is none."""
        ...

    def content(self, path: str) -> AsyncIterator[bytes]:
        """The bytes of a file."""
        ...

    async def rename_as(self, path: str, target: str, *, posix: bool) -> None:
        """Rename a file, with OpenSSH's extension or without it."""
        ...

    async def remove(self, path: str) -> bool:
        """Remove a file; False: it was gone."""
        ...


class SftpProbe:
    """One probe of a server.

    Args:
        server: Where.
    """

    def __init__(self, server: Probed) -> None:
        self._server = server
        self._steps: list[ProbedStep] = []

    async def profile(self, first: str, second: str) -> ServerProfile:
        """Write two files of one byte, look at them, read, rename and remove them.

        Args:
            first: Path of a file of our own.
            second: Another one.

        Raises:
            PortError: No file can be written.
        """
        left: list[str] = []
        takes = False
        rename = Rename.DIRECT
        try:
            await self._server.write_file(first, _one_byte())
            self._steps.append(ProbedStep(name="write"))
            takes = await self._is_taken(first)
            if not takes:
                await self._step("read", self._read(first))
                await self._server.write_file(second, _one_byte())
                rename = await self._rename(first, second)
        finally:
            for path in (first,) if takes else (first, second):
                if not await self._removed(path):
                    left.append(path)
        if not takes:
            failure = f"{', '.join(left)} could not be removed" if left else None
            self._steps.append(ProbedStep(name="delete", failure=failure))
        extensions = ["posix-rename"] if rename is Rename.ATOMIC_REPLACE else []
        extensions += ["copy-data"] if self._server.copies else []
        return ServerProfile(
            rename=rename,
            extensions=tuple(extensions),
            probed_at=datetime.now(UTC),
            probed_with=(first,) if takes else (first, second),
            left_behind=tuple(left),
            takes_files=takes,
            steps=tuple(self._steps),
        )

    async def _is_taken(self, path: str) -> bool:
        """Whether a file is gone right after it was written."""
        entry: Entry | None = None
        try:
            entry = await self._server.entry(path)
        except PartnerAway:
            raise
        except PortError as error:
            self._steps.append(ProbedStep(name="stat", failure=str(error)[:500]))
            return False
        self._steps.append(ProbedStep(name="stat"))
        return entry is None

    async def _read(self, path: str) -> None:
        content = b"".join([bytes(block) async for block in self._server.content(path)])
        if content != _BYTE:
            raise PortError(f"{len(content)} bytes were read instead of the one that was written")

    async def _rename(self, first: str, second: str) -> Rename:
        if await self._tried(self._server.rename_as(first, second, posix=True)) is None:
            self._steps.append(ProbedStep(name="rename"))
            return Rename.ATOMIC_REPLACE
        await self._removed(second)
        failure = await self._tried(self._server.rename_as(first, second, posix=False))
        self._steps.append(ProbedStep(name="rename", failure=failure))
        return Rename.NON_ATOMIC if failure is None else Rename.DIRECT

    async def _step(self, name: str, work: Awaitable[None]) -> None:
        self._steps.append(ProbedStep(name=name, failure=await self._tried(work)))

    async def _tried(self, work: Awaitable[None]) -> str | None:
        """What the server said against something; None: it worked."""
        try:
            await work
        except PartnerAway:
            raise
        except PortError as error:
            return str(error)[:500]
        return None

    async def _removed(self, path: str) -> bool:
        """Remove a file; False: it may still be there."""
        try:
            await self._server.remove(path)
        except FileMissing:
            return True
        except PortError:
            return False
        return True


async def _one_byte() -> AsyncIterator[bytes]:
    yield _BYTE
