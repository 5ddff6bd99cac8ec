"""A folder of this machine, or a file share that is mounted."""

import asyncio
import errno
import os
import stat
from collections.abc import AsyncGenerator, AsyncIterator, Callable, Generator, Sequence
from contextlib import contextmanager
from datetime import UTC, datetime
from pathlib import Path
from typing import Final, TypeVar

from adapters.blocks import in_blocks
from adapters.places.pace import Pace
from adapters.places.renamed import RenamedWrites
from adapters.places.writing import WriteOrder, checked, checked_pattern, no_folder, taken
from adapters.ports import Denied, PortError
from adapters.ports.places import (
    Entry,
    FileChanged,
    FileMissing,
    NameRefused,
    Namings,
    PartnerAway,
    PlaceError,
    Progress,
    Written,
)
from contracts.transfers import Guarantee, Overwrite, Partner, Rename, ServerProfile
from domain.transfers.paths import matcher, printable, split

_BLOCK: Final = 1 << 20
_AWAY: Final = frozenset(
    {errno.EIO, errno.ESTALE, errno.ENOTCONN, errno.ETIMEDOUT, errno.EHOSTDOWN}
)
"""A share that is not there."""
_NAMES: Final = frozenset({errno.ENAMETOOLONG, errno.EINVAL, errno.EILSEQ})

T = TypeVar("T")


class FolderPlace:
    """Files below one folder; links are followed as long as they stay below it.

    Args:
        partner: Whose folder it is.
        root: The folder.
        pace: Of its bytes.
    """

    def __init__(self, partner: Partner, root: Path, pace: Pace) -> None:
        self._partner, self._root, self._pace = partner, root, pace
        self._writes = RenamedWrites(self, Rename.ATOMIC_REPLACE)

    @property
    def profile(self) -> ServerProfile | None:
        """A rename replaces in one step, as POSIX has it."""
        return self._partner.profile or ServerProfile(rename=Rename.ATOMIC_REPLACE)

    async def probe(self, folder: str = "") -> ServerProfile:
        """Write a file of our own, and remove it."""
        name = f"{folder}/.docflow-probe" if folder else ".docflow-probe"
        await self.write_file(name, _no_bytes())
        await self.remove(name)
        return ServerProfile(rename=Rename.ATOMIC_REPLACE, probed_at=datetime.now(UTC))

    async def stat(self, path: str) -> Entry:
        """One file."""
        entry = await self.entry(checked(path))
        if entry is None:
            raise FileMissing(f"there is no file {printable(path)} at {self._partner.name}")
        return entry

    async def list(self, pattern: str, most: int) -> Sequence[Entry]:
        """Files that a pattern names."""
        folder, name = split(checked_pattern(pattern))
        return await self._run(lambda: self._listed(folder, name, most), pattern)

    def _listed(self, folder: str, name: str, most: int) -> Sequence[Entry]:
        match, found = matcher(name).match, list[Entry]()
        try:
            names = sorted(os.listdir(self._inside(folder)))
        except (FileNotFoundError, NotADirectoryError):
            raise no_folder(folder, self._partner.name) from None
        for each in names:
            path = f"{folder}/{each}" if folder else each
            if not match(each):
                continue
            try:
                entry = self._entry(path)
            except NameRefused:
                continue
            if entry is not None:
                found.append(entry)
            if len(found) > most:
                break
        return found

    async def read(self, entry: Entry, offset: int = 0) -> AsyncGenerator[bytes]:
        """The bytes of a file, which stays the same while it is read."""
        _check_same(entry, await self.stat(entry.path))
        size = offset
        async for block in self._blocks(entry.path, offset):
            size += len(block)
            if size > entry.size:
                break
            yield block
        if size != entry.size:
            raise FileChanged(f"{printable(entry.path)} grew or shrank while it was read")
        _check_same(entry, await self.stat(entry.path))

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
        """Write a file under a temporary name, verify it, and rename it."""
        order = WriteOrder(
            checked(path), size, sha256, overwrite, verify, owner, mode, changed, progress, namings
        )
        return await self._writes.write(chunks, order)

    async def move(self, entry: Entry, path: str) -> None:
        """Move a file, if it is still that one."""
        _check_same(entry, await self.stat(entry.path))
        await self.make_folders(checked(path))
        await self.rename(entry.path, path, replaces=False)

    async def delete(self, entry: Entry) -> bool:
        """Delete a file, if it is still that one."""
        now = await self.entry(checked(entry.path))
        if now is None:
            return False
        _check_same(entry, now)
        return await self.remove(entry.path)

    async def entry(self, path: str) -> Entry | None:
        """A file; None: there is none."""
        return await self._run(lambda: self._entry(path), path)

    def _entry(self, path: str) -> Entry | None:
        try:
            facts = os.stat(self._real(path))
        except (FileNotFoundError, NotADirectoryError):
            return None
        if not stat.S_ISREG(facts.st_mode):
            return None
        changed = datetime.fromtimestamp(facts.st_mtime_ns // 1_000 / 1_000_000, UTC)
        return Entry(path, facts.st_size, changed)

    async def make_folders(self, path: str) -> None:
        """Make the folders of a path, none of which is a link that leads out."""
        folder, _ = split(path)

        def make() -> None:
            done = ""
            for part in folder.split("/") if folder else ():
                done = f"{done}/{part}" if done else part
                self._inside(done).mkdir(exist_ok=True)

        await self._run(make, path)

    async def write_file(self, path: str, chunks: AsyncIterator[bytes]) -> None:
        """Write all bytes, and have them on the disk."""
        flags = os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_NOFOLLOW
        file = await self._run(lambda: os.open(self._inside(path), flags, 0o644), path)
        try:
            async for block in in_blocks(chunks, _BLOCK):
                await self._pace(len(block))
                await self._run(lambda block=block: _write_all(file, block), path)
            await self._run(lambda: os.fsync(file), path)
        finally:
            os.close(file)

    async def content(self, path: str) -> AsyncGenerator[bytes]:
        """The bytes of a file."""
        async for block in self._blocks(path, 0):
            yield block

    async def _blocks(self, path: str, offset: int) -> AsyncGenerator[bytes]:
        file = await self._run(lambda: os.open(self._real(path), os.O_RDONLY), path)
        try:
            os.lseek(file, offset, os.SEEK_SET)
            while block := await self._run(lambda: os.read(file, _BLOCK), path):
                await self._pace(len(block))
                yield block
        finally:
            os.close(file)

    async def rename(self, path: str, target: str, *, replaces: bool) -> None:
        """Give a file its name, in one step."""
        await self._run(lambda: self._renamed(path, target, replaces), target)

    def _renamed(self, path: str, target: str, replaces: bool) -> None:
        source, to = self._inside(path), self._inside(target)
        if replaces:
            os.replace(source, to)
            return
        try:
            # A link is refused where the name is taken, and a rename is not.
            os.link(source, to)
        except FileExistsError:
            raise taken(target) from None
        except OSError as error:
            if error.errno not in (errno.EPERM, errno.EOPNOTSUPP, errno.ENOSYS, errno.EMLINK):
                raise
            if to.exists():
                raise taken(target) from None
            os.rename(source, to)
        else:
            os.unlink(source)

    async def remove(self, path: str) -> bool:
        """Remove a file."""

        def remove() -> bool:
            try:
                os.unlink(self._inside(path))
            except FileNotFoundError:
                return False
            return True

        return await self._run(remove, path)

    async def set_mode(self, path: str, mode: int) -> str | None:
        """Ask for rights."""
        try:
            await self._run(lambda: os.chmod(self._inside(path), mode), path)
        except PortError as error:
            return f"the rights {mode:o} were refused: {error}"
        return None

    async def set_time(self, path: str, changed: datetime) -> str | None:
        """Set the time."""
        seconds = changed.timestamp()
        try:
            await self._run(lambda: os.utime(self._inside(path), (seconds, seconds)), path)
        except PortError as error:
            return f"the time was refused: {error}"
        return None

    def _inside(self, path: str) -> Path:
        """Where a path is; the folders of it are below the root, links included.

        Raises:
            NameRefused: A link leads out.
        """
        folder, name = os.path.split(path)
        return Path(self._below(os.path.join(self._root, folder), path), name)

    def _real(self, path: str) -> Path:
        """The file that a path names, which is below the root where the path is a link."""
        return Path(self._below(os.path.join(self._root, path), path))

    def _below(self, place: str, path: str) -> str:
        root, real = os.path.realpath(self._root), os.path.realpath(place)
        if real != root and not real.startswith(root.rstrip("/") + "/"):
            raise NameRefused(f"{printable(path)} leads out of the folder by a link")
        return real

    async def _run(self, call: Callable[[], T], path: str) -> T:
        with self._translated(path):
            return await asyncio.to_thread(call)

    @contextmanager
    def _translated(self, path: str) -> Generator[None]:
        try:
            yield
        except PortError:
            raise
        except (FileNotFoundError, NotADirectoryError):
            if not self._root.is_dir():
                raise PartnerAway(
                    self._partner.name, f"the folder of {self._partner.name} is not there"
                ) from None
            raise FileMissing(f"there is no file {printable(path)}") from None
        except PermissionError as error:
            raise Denied(f"{printable(path)}: {error.strerror}") from None
        except ValueError:
            raise NameRefused(f"{printable(path)} cannot be a name here") from None
        except OSError as error:
            raise self._failure(error, path) from None

    def _failure(self, error: OSError, path: str) -> PortError:
        text = f"{printable(path)}: {error.strerror}"
        if error.errno in _AWAY:
            return PartnerAway(self._partner.name, text)
        if error.errno in _NAMES:
            return NameRefused(text)
        return PlaceError(text)


def _check_same(entry: Entry, now: Entry) -> None:
    if (entry.size, entry.changed) != (now.size, now.changed):
        raise FileChanged(
            f"{printable(entry.path)} is not the file any more that was listed: "
            f"{now.size:,} bytes instead of {entry.size:,}, or another time"
        )


def _write_all(file: int, block: bytes) -> None:
    view = memoryview(block)
    while view:
        view = view[os.write(file, view) :]


async def _no_bytes() -> AsyncGenerator[bytes]:
    for block in ():
        yield block
