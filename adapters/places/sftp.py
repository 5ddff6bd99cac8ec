"""SFTP servers."""

import asyncio
import secrets
import stat
from collections import deque
from collections.abc import AsyncGenerator, AsyncIterator, Awaitable, Generator, Sequence
from contextlib import contextmanager
from datetime import UTC, datetime
from typing import Final, TypeVar

import asyncssh

from adapters.blocks import in_blocks
from adapters.places.credentials import Credentials
from adapters.places.pace import Pace
from adapters.places.renamed import RenamedWrites
from adapters.places.sftp_session import Timeouts, translated
from adapters.places.writing import WriteOrder, checked, checked_pattern, no_folder, taken
from adapters.ports import Denied, PortError
from adapters.ports.places import (
    Entry,
    FileChanged,
    FileMissing,
    NameRefused,
    Namings,
    PartnerAway,
    Progress,
    Written,
)
from contracts.transfers import Guarantee, Overwrite, Partner, Rename, ServerProfile
from domain.transfers.paths import TEMPORARY_PREFIX, join, matcher, printable, split

_BLOCK: Final = 1 << 20
_IN_FLIGHT: Final = 4
"""Blocks; each of them travels in requests of the size that the server takes."""

T = TypeVar("T")


class SftpPlace:
    """Files of one SFTP session.

    Args:
        partner: Whose server it is.
        sftp: The session.
        credentials: Kept out of what is said of failures.
        pace: Of its bytes.
        timeouts: How long it may keep silent.
    """

    def __init__(
        self,
        partner: Partner,
        sftp: asyncssh.SFTPClient,
        credentials: Credentials,
        pace: Pace,
        timeouts: Timeouts,
    ) -> None:
        self._partner, self._sftp, self._credentials = partner, sftp, credentials
        self._pace, self._timeouts = pace, timeouts
        self._profile = partner.profile
        self._real_root: str | None = None
        self._safe_folders: set[str] = set()
        self._made: set[str] = set()

    @property
    def profile(self) -> ServerProfile | None:
        """As its record says, or as it was probed."""
        return self._profile

    async def probe(self, folder: str = "") -> ServerProfile:
        """Try renames with two empty files of our own."""
        mark = f"{TEMPORARY_PREFIX}probe-{secrets.token_hex(6)}"
        first, second = (join(folder, f"{mark}-{each}") for each in "ab")
        try:
            for path in (first, second):
                await self.write_file(path, _no_bytes())
            rename = await self._probed_rename(first, second)
        finally:
            for path in (first, second):
                await self._quietly_removed(path)
        extensions = ["posix-rename"] if rename is Rename.ATOMIC_REPLACE else []
        extensions += ["copy-data"] if self._sftp.supports_remote_copy else []
        self._profile = ServerProfile(
            rename=rename, extensions=tuple(extensions), probed_at=datetime.now(UTC)
        )
        return self._profile

    async def _probed_rename(self, first: str, second: str) -> Rename:
        try:
            await self._ask(self._sftp.posix_rename(self._at(first), self._at(second)), first)
        except PartnerAway:
            raise
        except PortError:
            pass
        else:
            return Rename.ATOMIC_REPLACE
        try:
            await self.remove(second)
            await self._ask(self._sftp.rename(self._at(first), self._at(second)), first)
        except PartnerAway:
            raise
        except PortError:
            return Rename.DIRECT
        return Rename.NON_ATOMIC

    async def _quietly_removed(self, path: str) -> None:
        try:
            await self.remove(path)
        except PortError:
            return

    async def stat(self, path: str) -> Entry:
        """One file."""
        entry = await self.entry(checked(path))
        if entry is None:
            raise FileMissing(f"there is no file {printable(path)} at {self._partner.name}")
        return entry

    async def list(self, pattern: str, most: int) -> Sequence[Entry]:
        """Files that a pattern names."""
        folder, name = split(checked_pattern(pattern))
        match, names = matcher(name).match, list[str]()
        try:
            async with asyncio.timeout(self._timeouts.answer * 5):
                with self._translated(folder):
                    async for each in self._sftp.scandir(self._at(folder) or "."):
                        names.append(str(each.filename))
        except TimeoutError:
            raise PartnerAway(
                self._partner.name, f"{self._partner.name} does not list {printable(folder)}"
            ) from None
        except FileMissing:
            raise no_folder(folder, self._partner.name) from None
        found: list[Entry] = []
        for each in sorted(filter(match, names)):
            try:
                entry = await self.entry(join(folder, each))
            except NameRefused:
                continue
            if entry is not None:
                found.append(entry)
            if len(found) > most:
                break
        return found

    async def read(self, entry: Entry, offset: int = 0) -> AsyncGenerator[bytes]:
        """The bytes of a file, which stays the same while it is read."""
        self._check_same(entry, await self.stat(entry.path))
        size = offset
        async for block in self._blocks(entry.path, offset, entry.size + 1):
            size += len(block)
            if size > entry.size:
                break
            yield block
        if size != entry.size:
            raise FileChanged(f"{printable(entry.path)} grew or shrank while it was read")
        self._check_same(entry, await self.stat(entry.path))

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
        """Write a file as the server lets it appear whole."""
        order = WriteOrder(
            checked(path), size, sha256, overwrite, verify, owner, mode, changed, progress, namings
        )
        folder, _ = split(path)
        if self._profile is None:
            await self.make_folders(path)
            await self.probe(folder)
        assert self._profile is not None
        return await RenamedWrites(self, self._profile.rename).write(chunks, order)

    async def move(self, entry: Entry, path: str) -> None:
        """Move a file, if it is still that one."""
        self._check_same(entry, await self.stat(entry.path))
        await self.make_folders(checked(path))
        await self.rename(entry.path, path, replaces=False)

    async def delete(self, entry: Entry) -> bool:
        """Delete a file, if it is still that one."""
        now = await self.entry(checked(entry.path))
        if now is None:
            return False
        self._check_same(entry, now)
        return await self.remove(entry.path)

    async def entry(self, path: str) -> Entry | None:
        """A file; None: there is none."""
        await self._check_folder(split(path)[0])
        try:
            facts = await self._ask(self._sftp.lstat(self._at(path)), path)
            if facts.permissions is not None and stat.S_ISLNK(facts.permissions):
                await self._check_inside(path)
                facts = await self._ask(self._sftp.stat(self._at(path)), path)
        except FileMissing:
            return None
        if facts.permissions is not None and not stat.S_ISREG(facts.permissions):
            return None
        changed = None if facts.mtime is None else datetime.fromtimestamp(facts.mtime, UTC)
        return Entry(path, facts.size or 0, changed)

    async def make_folders(self, path: str) -> None:
        """Make what is missing."""
        folder, _ = split(path)
        done = ""
        for part in folder.split("/") if folder else ():
            done = join(done, part)
            if done in self._made:
                continue
            if not await self._is_folder(done):
                try:
                    await self._ask(self._sftp.mkdir(self._at(done)), done)
                except (PartnerAway, Denied):
                    raise
                except PortError:
                    # Another writer was faster.
                    if not await self._is_folder(done):
                        raise
            await self._check_inside(done)
            self._made.add(done)

    async def _is_folder(self, path: str) -> bool:
        return await self._ask(self._sftp.isdir(self._at(path)), path)

    async def write_file(self, path: str, chunks: AsyncIterator[bytes]) -> None:
        """Write all bytes, several blocks at a time."""
        file = await self._ask(self._sftp.open(self._at(path), "wb"), path)
        flying: deque[asyncio.Task[int]] = deque()
        offset = 0
        try:
            async for block in in_blocks(chunks, _BLOCK):
                await self._pace(len(block))
                if len(flying) == _IN_FLIGHT:
                    await self._ask(flying.popleft(), path)
                flying.append(asyncio.create_task(file.write(block, offset)))
                offset += len(block)
            while flying:
                await self._ask(flying.popleft(), path)
            await self._flushed(file, path)
        finally:
            await _ended(flying)
            await self._closed(file)

    async def _flushed(self, file: asyncssh.SFTPClientFile, path: str) -> None:
        try:
            await self._ask(file.fsync(), path)
        except PartnerAway:
            raise
        except PortError:
            # A server without this extension; what was written is compared all the same.
            return

    async def _closed(self, file: asyncssh.SFTPClientFile) -> None:
        try:
            await self._ask(file.close(), "")
        except PartnerAway:
            return

    async def content(self, path: str) -> AsyncGenerator[bytes]:
        """The bytes of a file."""
        entry = await self.stat(path)
        async for block in self._blocks(path, 0, entry.size + 1):
            yield block

    async def _blocks(self, path: str, offset: int, end: int) -> AsyncGenerator[bytes]:
        """Bytes in order, several blocks asked for at a time; fewer where the file ends before."""
        file = await self._ask(self._sftp.open(self._at(path), "rb"), path)
        flying: deque[asyncio.Task[bytes]] = deque()
        try:
            while offset < end or flying:
                while offset < end and len(flying) < _IN_FLIGHT:
                    size = min(_BLOCK, end - offset)
                    flying.append(asyncio.create_task(file.read(size, offset)))
                    offset += size
                block = await self._ask(flying.popleft(), path)
                await self._pace(len(block))
                if block:
                    yield block
        finally:
            await _ended(flying)
            await self._closed(file)

    async def rename(self, path: str, target: str, *, replaces: bool) -> None:
        """Give a file its name."""
        is_atomic = self._profile is not None and self._profile.rename is Rename.ATOMIC_REPLACE
        rename = self._sftp.posix_rename if replaces and is_atomic else self._sftp.rename
        try:
            await self._ask(rename(self._at(path), self._at(target)), target)
        except (FileMissing, PartnerAway, Denied):
            raise
        except PortError:
            if await self.entry(target) is not None:
                raise taken(target) from None
            raise

    async def remove(self, path: str) -> bool:
        """Remove a file."""
        try:
            await self._ask(self._sftp.remove(self._at(path)), path)
        except FileMissing:
            return False
        return True

    async def set_mode(self, path: str, mode: int) -> str | None:
        """Ask for rights."""
        return await self._tried(self._sftp.chmod(self._at(path), mode), f"the rights {mode:o}")

    async def set_time(self, path: str, changed: datetime) -> str | None:
        """Set the time."""
        moment = int(changed.timestamp())
        return await self._tried(self._sftp.utime(self._at(path), (moment, moment)), "the time")

    async def _tried(self, request: Awaitable[None], what: str) -> str | None:
        try:
            await self._ask(request, "")
        except PartnerAway:
            raise
        except PortError as error:
            return f"{what} of the file could not be set: {error}"
        return None

    async def _check_folder(self, folder: str) -> None:
        """See that no link leads out; folders that are not there lead nowhere."""
        if folder and folder not in self._safe_folders and await self._check_inside(folder):
            self._safe_folders.add(folder)

    async def _check_inside(self, path: str) -> bool:
        """Whether there is such a path; a link must not lead out of the root."""
        if self._real_root is None:
            root = self._sftp.realpath(self._partner.root or ".")
            self._real_root = str(await self._ask(root, ""))
        try:
            real = str(await self._ask(self._sftp.realpath(self._at(path)), path))
        except FileMissing:
            return False
        if real != self._real_root and not real.startswith(self._real_root.rstrip("/") + "/"):
            raise NameRefused(f"{printable(path)} leads out of the partner's folder by a link")
        return True

    def _at(self, path: str) -> str:
        """A path as the server knows it."""
        root = (self._partner.root or "").rstrip("/")
        return f"{root}/{path}" if root and path else root or path

    def _check_same(self, entry: Entry, now: Entry) -> None:
        if (entry.size, entry.changed) != (now.size, now.changed):
            raise FileChanged(
                f"{printable(entry.path)} is not the file any more that was listed: "
                f"{now.size:,} bytes instead of {entry.size:,}, or another time"
            )

    async def _ask(self, request: Awaitable[T], path: str) -> T:
        with self._translated(path):
            async with asyncio.timeout(self._timeouts.answer):
                return await request

    @contextmanager
    def _translated(self, path: str) -> Generator[None]:
        with translated(self._partner, self._credentials, path):
            yield


async def _ended(flying: "deque[asyncio.Task[T]]") -> None:
    for task in flying:
        task.cancel()
    await asyncio.gather(*flying, return_exceptions=True)


async def _no_bytes() -> AsyncGenerator[bytes]:
    for block in ():
        yield block
