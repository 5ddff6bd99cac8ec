"""A folder of this machine, or a file share that is mounted."""

import asyncio
import errno
import io
import os
import stat
import threading
from collections.abc import AsyncGenerator, AsyncIterator, Callable, Generator, Sequence
from concurrent.futures import Executor, ThreadPoolExecutor
from contextlib import asynccontextmanager, contextmanager, suppress
from datetime import UTC, datetime
from pathlib import Path
from typing import Final, TypeVar

from adapters.object_blobs import in_blocks
from adapters.places.base import BasePlace, Pace, probe_name, room_of
from adapters.places.writing import (
    RENAMES,
    Probe,
    RenamedWrites,
    WriteRequest,
    checked,
    checked_pattern,
    no_folder,
    taken,
)
from adapters.ports.errors import Denied, PortError
from adapters.ports.places import Entry, NameRefused, PartnerAway, PlaceError, Written
from workflows.transfers.partners import Partner, Rename, ServerProfile
from workflows.transfers.paths import join, matcher, printable, split

_CREATED: Final = os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_NOFOLLOW


def created(path: Path) -> io.FileIO:
    """A file to be written; what was there is replaced."""
    return io.FileIO(os.open(path, _CREATED, 0o644), "w")


def begun(path: Path, offset: int, size: int) -> tuple[bytes, io.FileIO | None]:
    """The first block of a file, and the file where there may be more: of most it is all.

    Args:
        path: The file.
        offset: Where it begins.
        size: Of the block.
    """
    file = io.FileIO(path)
    try:
        file.seek(offset)
        block = file.read(size)
        while len(block) < size and (more := file.read(size - len(block))):
            block += more
    except BaseException:
        file.close()
        raise
    if len(block) == size:
        return block, file
    file.close()
    return block, None


def write_all(file: io.FileIO, block: bytes) -> None:
    """Write a block, in as many calls as it takes."""
    view = memoryview(block)
    while view:
        view = view[file.write(view) or 0 :]


def remove_same(path: Path, file: io.FileIO) -> None:
    """Remove a file, unless another attempt has made one of that name meanwhile."""
    with suppress(FileNotFoundError):
        if os.path.samestat(os.lstat(path), os.fstat(file.fileno())):
            os.unlink(path)


_BLOCK: Final = 1 << 20
_AWAY: Final = frozenset(
    {errno.EIO, errno.ESTALE, errno.ENOTCONN, errno.ETIMEDOUT, errno.EHOSTDOWN}
)
"""A share that is not there."""
_NAMES: Final = frozenset({errno.ENAMETOOLONG, errno.EINVAL, errno.EILSEQ})

SILENCE_SECONDS: Final = 60.0
_THREADS: Final = 8

T = TypeVar("T")


class FolderThreads:
    """Threads for each partner: those of one that hangs are no other's."""

    def __init__(self) -> None:
        self._pools: dict[str, ThreadPoolExecutor] = {}

    def of(self, partner: str) -> Executor:
        """The threads of a partner."""
        if partner not in self._pools:
            self._pools[partner] = ThreadPoolExecutor(_THREADS, f"folder-{partner}")
        return self._pools[partner]


class FolderPlace(BasePlace):
    """Files below one folder; links are followed as long as they stay below it.

    Whatever touches it runs in threads of the partner's own: a share whose server is gone answers
    nothing, not even that, and may hold up neither the event loop nor other partners.

    Args:
        partner: Whose folder it is.
        root: The folder.
        pace: Of its bytes.
        threads: Of the partner.
        silence: Seconds that the file system may take for one call; five times as many for a list,
            for a flush, and for a file of one block, which is written in one call.
    """

    def __init__(
        self,
        partner: Partner,
        root: Path,
        pace: Pace,
        threads: Executor,
        silence: float = SILENCE_SECONDS,
    ) -> None:
        super().__init__(partner, pace)
        self._root, self._threads, self._silence = root, threads, silence
        self._top: str | None = None
        rename = partner.profile.rename if partner.profile else Rename.ATOMIC_REPLACE
        self._writes = RenamedWrites(self, RENAMES[partner.write] if partner.write else rename)

    async def check(self, folders: Sequence[Path]) -> None:
        """See that the folder is there, and lies below one of those that are permitted.

        Raises:
            Denied: It does not.
            PartnerAway: It is not there.
        """
        partner = self._partner
        top = Path(partner.container or "")

        def look() -> None:
            if not any(top.resolve().is_relative_to(each.resolve()) for each in folders):
                raise Denied(
                    f"the folder of {partner.name} lies in none of DOCFLOW_TRANSFERS_FOLDERS"
                )
            self._require_root()

        await self._run(look, "")

    def _require_root(self) -> None:
        if not self._root.is_dir():
            name = self._partner.name
            raise PartnerAway(name, f"the folder of {name} is not there")

    @property
    def profile(self) -> ServerProfile | None:
        """A rename replaces in one step, as POSIX has it."""
        return self._partner.profile or ServerProfile(rename=Rename.ATOMIC_REPLACE)

    async def probe(self, folder: str = "") -> ServerProfile:
        """Do what a transfer does, with two files of our own."""
        first, second = probe_name(folder, "-a"), probe_name(folder, "-b")
        return await Probe(self, self._probed_rename, first, second).profile()

    async def _probed_rename(self, first: str, second: str) -> Rename:
        try:
            await self.rename(first, second, replaces=True)
        except (Denied, PlaceError):
            return Rename.DIRECT
        return Rename.ATOMIC_REPLACE

    async def room(self) -> int | None:
        """Of its file system; a quota is not reported."""
        facts = await self._run(lambda: os.statvfs(self._root), "")
        return room_of(facts.f_bavail * facts.f_frsize, facts.f_files, facts.f_favail)

    async def list(self, pattern: str, most: int) -> Sequence[Entry]:
        """Files that a pattern names."""
        folder, name = split(checked_pattern(pattern))
        return await self._run(lambda: self._listed(folder, name, most), pattern, self._silence * 5)

    def _listed(self, folder: str, name: str, most: int) -> Sequence[Entry]:
        match, found = matcher(name).match, list[Entry]()
        try:
            with os.scandir(self._below(os.path.join(self._root, folder), folder)) as scanned:
                every = sorted((each for each in scanned if match(each.name)), key=_name)
        except (FileNotFoundError, NotADirectoryError):
            self._require_root()
            raise no_folder(folder, self._partner.name) from None
        for each in every:
            entry = self._listed_entry(each, join(folder, each.name))
            if entry is not None:
                found.append(entry)
            if len(found) > most:
                break
        return found

    def _listed_entry(self, scanned: "os.DirEntry[str]", path: str) -> Entry | None:
        try:
            if scanned.is_symlink():
                return self._entry(path)
            return _entry_of(path, scanned.stat(follow_symlinks=False))
        except (FileNotFoundError, PermissionError, NameRefused):
            # Gone meanwhile, or a link that leads out or to no file that we may see.
            return None

    async def _written(self, chunks: AsyncIterator[bytes], order: WriteRequest) -> Written:
        return await self._writes.write(chunks, order)

    async def move(self, entry: Entry, path: str) -> None:
        """Move a file, if it is still that one."""
        self._check_same(entry, await self.stat(entry.path))
        await self.make_folders(checked(path))
        await self.rename(entry.path, path, replaces=False)

    async def entry(self, path: str) -> Entry | None:
        """A file; None: there is none."""
        return await self._run(lambda: self._entry(path), path)

    def _entry(self, path: str) -> Entry | None:
        try:
            facts = os.stat(self._real(path))
        except (FileNotFoundError, NotADirectoryError):
            self._require_root()
            return None
        except OSError as error:
            if error.errno != errno.ELOOP:
                raise
            # Links that lead to each other lead nowhere.
            return None
        return _entry_of(path, facts)

    async def make_folders(self, path: str) -> None:
        """Make the folders of a path, none of which is a link that leads out."""
        folder, _ = split(path)
        if not folder:
            return

        def make() -> None:
            done = ""
            for part in folder.split("/"):
                done = f"{done}/{part}" if done else part
                self._inside(done).mkdir(exist_ok=True)

        await self._run(make, path)

    async def write_file(self, path: str, chunks: AsyncIterator[bytes]) -> None:
        """Write all bytes, and have them on the disk."""
        blocks = in_blocks(chunks, _BLOCK)
        block = await anext(blocks, b"")
        await self._pace(len(block))
        if len(block) < _BLOCK:
            await self._write_short(path, block)
            return
        async with self._opened(lambda: created(self._inside(path)), path) as file:
            while block:
                await self._run(lambda block=block: write_all(file, block), path)
                block = await anext(blocks, b"")
                await self._pace(len(block))
            await self._run(lambda: os.fsync(file.fileno()), path, self._silence * 5)

    async def _write_short(self, path: str, block: bytes) -> None:
        """Write a file of one block in one call: each call costs more than the bytes."""
        cancelled = threading.Event()

        def write() -> None:
            with created(self._inside(path)) as file:
                write_all(file, block)
                os.fsync(file.fileno())
                if cancelled.is_set():
                    remove_same(self._inside(path), file)

        try:
            await self._run(write, path, self._silence * 5)
        except asyncio.CancelledError:
            # The caller removes the file now, perhaps before it has been created.
            cancelled.set()
            raise

    async def content(self, path: str) -> AsyncGenerator[bytes]:
        """The bytes of a file, as they are now."""
        async for block in self._blocks(Entry(checked(path), 0), 0):
            yield block

    async def _blocks(self, entry: Entry, offset: int) -> AsyncGenerator[bytes]:
        path = entry.path
        block, file = await self._run(lambda: begun(self._real(path), offset, _BLOCK), path)
        if file is None:
            if block:
                await self._pace(len(block))
                yield block
            return
        async with self._closing(file, path):
            while block:
                await self._pace(len(block))
                yield block
                block = await self._run(lambda: file.read(_BLOCK), path)

    @asynccontextmanager
    async def _opened(
        self, open_file: Callable[[], io.FileIO], path: str
    ) -> AsyncGenerator[io.FileIO]:
        """A file for the length of the block.

        Not a descriptor: a call that hung may return when it is closed already, and its number
        belong to another file.
        """
        file = await self._run(open_file, path)
        async with self._closing(file, path):
            yield file

    @asynccontextmanager
    async def _closing(self, file: io.FileIO, path: str) -> AsyncGenerator[None]:
        """Close a file at the end of the block."""
        try:
            yield
        except BaseException:
            # To close a file of a share that hangs may hang as well.
            self._threads.submit(file.close)
            raise
        await self._run(file.close, path)

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
        # Looked up once: a place is opened for one step.
        self._top = root = self._top or os.path.realpath(self._root)
        real = os.path.realpath(place)
        if real != root and not real.startswith(root.rstrip("/") + "/"):
            raise NameRefused(f"{printable(path)} leads out of the folder by a link")
        return real

    async def _run(self, call: Callable[[], T], path: str, seconds: float | None = None) -> T:
        with self._translated(path):
            running = asyncio.get_running_loop().run_in_executor(self._threads, self._judged, call)
            async with asyncio.timeout(seconds or self._silence):
                return await running

    def _judged(self, call: Callable[[], T]) -> T:
        try:
            return call()
        except (FileNotFoundError, NotADirectoryError):
            self._require_root()
            raise

    @contextmanager
    def _translated(self, path: str) -> Generator[None]:
        try:
            yield
        except PortError:
            raise
        except (FileNotFoundError, NotADirectoryError):
            raise self._missing(path) from None
        except TimeoutError:
            name = self._partner.name
            raise PartnerAway(name, f"the folder of {name} does not answer in time") from None
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


def _name(entry: "os.DirEntry[str]") -> str:
    return entry.name


def _entry_of(path: str, facts: os.stat_result) -> Entry | None:
    if not stat.S_ISREG(facts.st_mode):
        return None
    changed = datetime.fromtimestamp(facts.st_mtime_ns // 1_000 / 1_000_000, UTC)
    return Entry(path, facts.st_size, changed)
