"""SFTP servers."""

import asyncio
import re
import stat
from collections import deque
from collections.abc import AsyncGenerator, AsyncIterator, Awaitable, Generator, Sequence
from contextlib import contextmanager
from datetime import UTC, datetime
from typing import Final, TypeVar

import asyncssh

from adapters.blocks import in_blocks
from adapters.places.base import BasePlace, probe_name, room_of
from adapters.places.credentials import Credentials
from adapters.places.pace import Pace
from adapters.places.renamed import RenamedWrites
from adapters.places.sftp_names import SftpNames, is_link, text_of
from adapters.places.sftp_probe import WRITES, SftpProbe
from adapters.places.sftp_session import translated
from adapters.places.timeouts import Timeouts
from adapters.places.write_order import WriteOrder, checked, checked_pattern, no_folder, taken
from adapters.ports import Denied, PortError
from adapters.ports.places import Entry, FileMissing, NameRefused, PartnerAway, Written
from contracts.transfers import Partner, Rename, ServerProfile
from domain.transfers.paths import join, matcher, printable, split, temporary

_BLOCK: Final = 1 << 20
_LARGEST: Final = 1 << 62
"""Bytes that a file of unknown size may have."""
_IN_FLIGHT: Final = 3
"""Blocks; each of them travels in requests of the size that the server takes. The window of a
channel of `asyncssh` has 2 MB: more blocks would only wait for each other, in memory."""

T = TypeVar("T")


class SftpPlace(BasePlace):
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
        super().__init__(partner, pace)
        self._sftp, self._credentials, self._timeouts = sftp, credentials, timeouts
        self._profile = partner.profile
        self._names = SftpNames(sftp, partner.root or "", self._ask)
        self._safe_folders: set[str] = set()
        self._made: set[str] = set()

    @property
    def profile(self) -> ServerProfile | None:
        """As its record says, or as it was probed."""
        return self._profile

    async def probe(self, folder: str = "") -> ServerProfile:
        """Try renames with two files of one byte of our own."""
        return await self._probe(probe_name(folder, "-a"), probe_name(folder, "-b"))

    async def _probe(self, first: str, second: str) -> ServerProfile:
        self._profile = await SftpProbe(self).profile(first, second)
        return self._profile

    async def room(self) -> int | None:
        """Of the root's file system, by OpenSSH's extension `statvfs`; a quota is not reported."""
        try:
            facts = await self._ask(self._sftp.statvfs(self._at("") or "."), "")
        except PartnerAway:
            raise
        except PortError:
            return None
        return room_of(facts.bavail * facts.frsize, facts.files, facts.favail)

    async def list(self, pattern: str, most: int) -> Sequence[Entry]:
        """Files that a pattern names, by the facts that the server lists with their names."""
        folder, name = split(checked_pattern(pattern))
        await self._check_folder(folder)
        found: list[Entry] = []
        for path, facts in await self._scanned(folder, matcher(name)):
            entry = await self._listed(path, facts)
            if entry is not None:
                found.append(entry)
            if len(found) > most:
                break
        return found

    async def _scanned(
        self, folder: str, wanted: re.Pattern[str]
    ) -> Sequence[tuple[str, asyncssh.SFTPAttrs]]:
        """What a folder holds, by path."""
        scanned: list[tuple[str, asyncssh.SFTPAttrs]] = []
        try:
            async with asyncio.timeout(self._timeouts.answer * 5):
                with self._translated(folder):
                    # As bytes: one name that is not UTF-8 would hide all others.
                    async for each in self._sftp.scandir((self._at(folder) or ".").encode()):
                        name = text_of(each.filename)
                        if wanted.match(name):
                            scanned.append((join(folder, name), each.attrs))
        except TimeoutError:
            raise PartnerAway(
                self._partner.name, f"{self._partner.name} does not list {printable(folder)}"
            ) from None
        except FileMissing:
            raise no_folder(folder, self._partner.name) from None
        return sorted(scanned, key=lambda each: each[0])

    async def _listed(self, path: str, facts: asyncssh.SFTPAttrs) -> Entry | None:
        """A file that was listed; None: it is none, or a link that leads out."""
        known = None not in (facts.permissions, facts.size, facts.mtime)
        if known and not is_link(facts):
            return _entry_of(path, facts)
        try:
            return await self.entry(path)
        except NameRefused:
            return None

    async def _written(self, chunks: AsyncIterator[bytes], order: WriteOrder) -> Written:
        if self._profile is None and self._partner.write in WRITES:
            self._profile = ServerProfile(rename=WRITES[self._partner.write])
        if self._profile is None:
            await self.make_folders(order.path)
            # By names of this write: the next attempt removes what a killed worker leaves.
            first, second = (temporary(order.path, f"{order.owner}\0{each}") for each in "ab")
            await self._probe(first, second)
        assert self._profile is not None
        rename = WRITES.get(self._partner.write, self._profile.rename)
        return await RenamedWrites(self, rename).write(chunks, order)

    async def move(self, entry: Entry, path: str) -> None:
        """Move a file, if it is still that one."""
        self._check_same(entry, await self.stat(entry.path))
        await self.make_folders(checked(path))
        await self.rename(entry.path, path, replaces=False)

    async def entry(self, path: str) -> Entry | None:
        """A file; None: there is none."""
        await self._check_folder(split(path)[0])
        try:
            facts = await self._names.facts(path)
            if facts is not None:
                facts = await self._names.followed(path, facts)
        except FileMissing:
            return None
        return None if facts is None else _entry_of(path, facts)

    async def make_folders(self, path: str) -> None:
        """Make what is missing."""
        folder, _ = split(path)
        done = ""
        for part in folder.split("/") if folder else ():
            done = join(done, part)
            if done in self._made:
                continue
            if not await self._names.is_folder(done):
                try:
                    await self._ask(self._sftp.mkdir(self._at(done)), done)
                except (PartnerAway, Denied):
                    raise
                except PortError:
                    # Another writer was faster.
                    if not await self._names.is_folder(done):
                        raise
            await self._names.check_inside(done)
            self._made.add(done)

    async def write_file(self, path: str, chunks: AsyncIterator[bytes]) -> str | None:
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
            return await self._flushed(file)
        finally:
            await _ended(flying)
            await self._closed(file)

    async def _flushed(self, file: asyncssh.SFTPClientFile) -> str | None:
        """Have the server flush a file to its disk; a remark where that failed.

        What was written is compared all the same, but the server may answer from its memory. Some
        servers refuse every flush, so it fails the file only where the bytes have no room.
        """
        try:
            with self._translated(""):
                async with asyncio.timeout(self._timeouts.answer):
                    await _flush(file)
        except _NotFlushed as failure:
            reason = self._credentials.hide(failure.reason)[:200]
            return f"the server did not flush the file to its disk: {reason}"
        return None

    async def _closed(self, file: asyncssh.SFTPClientFile) -> None:
        try:
            await self._ask(file.close(), "")
        except PartnerAway:
            return

    async def _blocks(self, entry: Entry, offset: int) -> AsyncGenerator[bytes]:
        """Bytes in order, several blocks asked for at a time; fewer where the file ends before."""
        path, end = entry.path, entry.size + 1 if entry.size else _LARGEST
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
                elif not entry.size:
                    return
        finally:
            await _ended(flying)
            await self._closed(file)

    async def rename(self, path: str, target: str, *, replaces: bool) -> None:
        """Give a file its name."""
        # Some servers replace what has the name, whatever they are asked.
        if not replaces and await self.entry(target) is not None:
            raise taken(target)
        wanted = WRITES.get(self._partner.write, self._profile and self._profile.rename)
        is_atomic = wanted is Rename.ATOMIC_REPLACE
        rename = self._sftp.posix_rename if replaces and is_atomic else self._sftp.rename
        try:
            await self._ask(rename(self._at(path), self._at(target)), target)
        except (FileMissing, PartnerAway, Denied):
            raise
        except PortError:
            if await self.entry(target) is not None:
                raise taken(target) from None
            raise

    @property
    def copies(self) -> bool:
        """Whether the server copies files by itself."""
        return self._sftp.supports_remote_copy

    async def rename_as(self, path: str, target: str, *, posix: bool) -> None:
        """Rename a file, with OpenSSH's extension or without it."""
        rename = self._sftp.posix_rename if posix else self._sftp.rename
        await self._ask(rename(self._at(path), self._at(target)), path)

    async def remove(self, path: str) -> bool:
        """Remove a file."""
        try:
            await self._ask(self._sftp.remove(self._at(path)), path)
        except FileMissing:
            return False
        except PartnerAway:
            raise
        except PortError:
            # Some servers have no answer of its own for a file that does not exist.
            if await self._names.facts(path) is None:
                return False
            raise
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
        known = self._safe_folders
        if folder and folder not in known and await self._names.check_inside(folder):
            known.add(folder)

    def _at(self, path: str) -> str:
        """A path as the server knows it."""
        return self._names.at(path)

    async def _ask(self, request: Awaitable[T], path: str) -> T:
        with self._translated(path):
            async with asyncio.timeout(self._timeouts.answer):
                return await request

    @contextmanager
    def _translated(self, path: str) -> Generator[None]:
        with translated(self._partner, self._credentials, path):
            yield


class _NotFlushed(Exception):
    """A server failed to flush a file."""

    def __init__(self, reason: str) -> None:
        super().__init__(reason)
        self.reason = reason


async def _flush(file: asyncssh.SFTPClientFile) -> None:
    """Flush a file; a server without this extension is asked for nothing."""
    try:
        await file.fsync()
    except asyncssh.SFTPOpUnsupported:
        return
    except (asyncssh.SFTPFailure, asyncssh.SFTPPermissionDenied) as failure:
        raise _NotFlushed(failure.reason) from failure


async def _ended(flying: "deque[asyncio.Task[T]]") -> None:
    for task in flying:
        task.cancel()
    await asyncio.gather(*flying, return_exceptions=True)


def _entry_of(path: str, facts: asyncssh.SFTPAttrs) -> Entry | None:
    """A file by what its server says of it; None: it is none."""
    # Some servers state the rights alone.
    if stat.S_IFMT(facts.permissions or 0) not in (0, stat.S_IFREG):
        return None
    changed = None if facts.mtime is None else datetime.fromtimestamp(facts.mtime, UTC)
    return Entry(path, facts.size or 0, changed)
