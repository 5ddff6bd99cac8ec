"""SFTP servers."""

import asyncio
import re
import stat
from collections import deque
from collections.abc import AsyncGenerator, AsyncIterator, Awaitable, Generator, Sequence
from contextlib import contextmanager, suppress
from datetime import UTC, datetime
from typing import Final, TypeVar, cast

import asyncssh

from adapters.object_blobs import in_blocks
from adapters.places.base import BasePlace, Credentials, Pace, Timeouts, probe_name, room_of
from adapters.places.sftp_session import translated
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
from adapters.ports.errors import Denied
from adapters.ports.places import Entry, FileMissing, NameRefused, PartnerAway, PlaceError, Written
from workflows.transfers.partners import Partner, Rename, ServerProfile
from workflows.transfers.paths import join, matcher, printable, split, temporary

T = TypeVar("T")


async def flush(file: asyncssh.SFTPClientFile) -> str | None:
    """Flush a file; why the server failed. One without this extension is asked for nothing."""
    try:
        await file.fsync()
    except asyncssh.SFTPOpUnsupported:
        return None
    except (asyncssh.SFTPFailure, asyncssh.SFTPPermissionDenied) as failure:
        return failure.reason
    return None


async def piece(file: asyncssh.SFTPClientFile, size: int, offset: int) -> bytes:
    """Bytes of a file that was opened as such; fewer at its end."""
    return cast(bytes, await file.read(size, offset))


async def ended(flying: "deque[asyncio.Task[T]]") -> None:
    """Cancel requests that are under way."""
    for task in flying:
        task.cancel()
    await asyncio.gather(*flying, return_exceptions=True)


def is_link(facts: asyncssh.SFTPAttrs) -> bool:
    """Whether it is a symbolic link, as far as the server tells."""
    return stat.S_ISLNK(facts.permissions or 0)


def is_folder(facts: asyncssh.SFTPAttrs) -> bool:
    """Whether it is a folder, as far as the server tells."""
    return stat.S_ISDIR(facts.permissions or 0)


def entry_of(path: str, facts: asyncssh.SFTPAttrs) -> Entry | None:
    """A file by what its server says of it; None: it is none."""
    # Some servers state the rights alone.
    if stat.S_IFMT(facts.permissions or 0) not in (0, stat.S_IFREG):
        return None
    changed = None if facts.mtime is None else datetime.fromtimestamp(facts.mtime, UTC)
    return Entry(path, facts.size or 0, changed)


def text_of(name: str | bytes) -> str:
    """A name as text; bytes that are not UTF-8 stay what they are."""
    return name.decode(errors="surrogateescape") if isinstance(name, bytes) else name


_BLOCK: Final = 1 << 20
_IN_FLIGHT: Final = 3
"""Blocks; each of them travels in requests of the size that the server takes. The window of a
channel of `asyncssh` has 2 MB: more blocks would only wait for each other, in memory."""


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
        self._real_root: str | None = None
        self._safe_folders: set[str] = set()
        self._made: set[str] = set()

    @property
    def profile(self) -> ServerProfile | None:
        """As its record says, or as it was probed."""
        return self._profile

    async def probe(self, folder: str = "") -> ServerProfile:
        """Do what a transfer does, with two files of our own."""
        return await self._probe(probe_name(folder, "-a"), probe_name(folder, "-b"))

    async def _probe(self, first: str, second: str) -> ServerProfile:
        extensions = ("copy-data",) if self._sftp.supports_remote_copy else ()
        found = await Probe(self, self._probed_rename, first, second).profile(extensions)
        if found.rename is Rename.ATOMIC_REPLACE:
            more = ("posix-rename", *found.extensions)
            found = found.model_copy(update={"extensions": more})
        self._profile = found
        return found

    async def _probed_rename(self, first: str, second: str) -> Rename:
        try:
            await self._ask(self._sftp.posix_rename(self._at(first), self._at(second)), first)
        except (Denied, PlaceError):
            pass
        else:
            return Rename.ATOMIC_REPLACE
        try:
            await self.remove(second)
            await self._ask(self._sftp.rename(self._at(first), self._at(second)), first)
        except (Denied, PlaceError):
            return Rename.DIRECT
        return Rename.NON_ATOMIC

    async def room(self) -> int | None:
        """Of the root's file system, by OpenSSH's extension `statvfs`; a quota is not reported."""
        try:
            facts = await self._ask(self._sftp.statvfs(self._at("") or "."), "")
        except (Denied, PlaceError):
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
        silence = self._timeouts.answer * 5
        try:
            with self._translated(folder):
                async with asyncio.timeout(silence) as limit:
                    # As bytes: one name that is not UTF-8 would hide all others.
                    async for each in self._sftp.scandir((self._at(folder) or ".").encode()):
                        # However many there are: as long as they come, it answers.
                        limit.reschedule(asyncio.get_running_loop().time() + silence)
                        name = text_of(each.filename)
                        if wanted.match(name):
                            scanned.append((join(folder, name), each.attrs))
        except FileMissing:
            raise no_folder(folder, self._partner.name) from None
        return sorted(scanned, key=lambda each: each[0])

    async def _listed(self, path: str, facts: asyncssh.SFTPAttrs) -> Entry | None:
        """A file that was listed; None: it is none, or a link that leads out or to no file."""
        known = None not in (facts.permissions, facts.size, facts.mtime)
        if known and not is_link(facts):
            return entry_of(path, facts)
        try:
            return await self.entry(path)
        except (Denied, PlaceError) as refused:
            if is_link(facts) or isinstance(refused, NameRefused):
                return None
            raise

    async def _written(self, chunks: AsyncIterator[bytes], order: WriteRequest) -> Written:
        if self._rename is None:
            await self.make_folders(order.path)
            # By names of this write: the next attempt removes what a killed worker leaves.
            first, second = (temporary(order.path, f"{order.owner}\0{each}") for each in "ab")
            await self._probe(first, second)
        assert self._rename is not None
        return await RenamedWrites(self, self._rename).write(chunks, order)

    @property
    def _rename(self) -> Rename | None:
        """As its record says; else as it was probed; None: it was not."""
        if self._partner.write is not None:
            return RENAMES[self._partner.write]
        return None if self._profile is None else self._profile.rename

    async def move(self, entry: Entry, path: str) -> None:
        """Move a file, if it is still that one."""
        self._check_same(entry, await self.stat(entry.path))
        await self.make_folders(checked(path))
        await self.rename(entry.path, path, replaces=False)

    async def entry(self, path: str) -> Entry | None:
        """A file; None: there is none."""
        await self._check_folder(split(path)[0])
        facts = await self._facts(path)
        if facts is not None and is_link(facts):
            await self._check_inside(path)
            facts = None
            with suppress(FileMissing):
                facts = await self._ask(self._sftp.stat(self._at(path)), path)
        return None if facts is None else entry_of(path, facts)

    async def _facts(self, path: str) -> asyncssh.SFTPAttrs | None:
        """What the server says of a path; None: nothing has that name.

        Some servers cannot be asked about one file, and some refuse with another reason what is
        missing: then the list of its folder tells.
        """
        try:
            return await self._ask(self._sftp.lstat(self._at(path)), path)
        except FileMissing:
            return None
        except NameRefused:
            raise
        except (Denied, PlaceError) as refused:
            if not path:
                raise
            folder, name = split(path)
            try:
                listed = await self._scanned(folder, re.compile(re.escape(name) + r"\Z"))
            except FileMissing:
                return None
            except (Denied, PlaceError):
                # The folder may be one of those that are missing.
                if folder and await self._facts(folder) is None:
                    return None
                raise refused from None
        return listed[0][1] if listed else None

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
                except PlaceError:
                    # Another writer was faster.
                    if not await self._is_folder(done):
                        raise
            await self._check_inside(done)
            self._made.add(done)

    async def _is_folder(self, path: str) -> bool:
        facts = await self._facts(path)
        if facts is not None and is_link(facts):
            return await self._ask(self._sftp.isdir(self._at(path)), path)
        return facts is not None and is_folder(facts)

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
            await ended(flying)
            await self._closed(file)

    async def _flushed(self, file: asyncssh.SFTPClientFile) -> str | None:
        """Have the server flush a file to its disk; a remark where that failed.

        What was written is compared all the same, but the server may answer from its memory. Some
        servers refuse every flush, so it fails the file only where the bytes have no room.
        """
        if (refused := await self._ask(flush(file), "")) is None:
            return None
        reason = self._credentials.hide(refused)[:200]
        return f"the server did not flush the file to its disk: {reason}"

    async def _closed(self, file: asyncssh.SFTPClientFile) -> None:
        with suppress(PartnerAway):
            await self._ask(file.close(), "")

    async def _blocks(self, entry: Entry, offset: int) -> AsyncGenerator[bytes]:
        """Bytes in order, several blocks asked for at a time; fewer where the file ends before."""
        path, end = entry.path, entry.size + 1 if entry.size else 0
        file = await self._ask(self._sftp.open(self._at(path), "rb"), path)
        flying: deque[asyncio.Task[bytes]] = deque()
        try:
            # Where no size is known, the end is where no bytes come.
            while not entry.size and (block := await self._ask(piece(file, _BLOCK, offset), path)):
                await self._pace(len(block))
                yield block
                offset += len(block)
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
            await ended(flying)
            await self._closed(file)

    async def rename(self, path: str, target: str, *, replaces: bool) -> None:
        """Give a file its name."""
        # Some servers replace what has the name, whatever they are asked.
        if not replaces and await self.entry(target) is not None:
            raise taken(target)
        is_atomic = self._rename is Rename.ATOMIC_REPLACE
        rename = self._sftp.posix_rename if replaces and is_atomic else self._sftp.rename
        try:
            await self._ask(rename(self._at(path), self._at(target)), target)
        except FileMissing:
            raise
        except PlaceError:
            if await self.entry(target) is not None:
                raise taken(target) from None
            raise

    async def remove(self, path: str) -> bool:
        """Remove a file."""
        try:
            await self._ask(self._sftp.remove(self._at(path)), path)
        except FileMissing:
            return False
        except (Denied, PlaceError):
            if await self._facts(path) is None:
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
        except (Denied, PlaceError) as error:
            return f"{what} of the file could not be set: {error}"
        return None

    async def _check_folder(self, folder: str) -> None:
        """See that no link leads out; folders that are not there lead nowhere."""
        if folder and folder not in self._safe_folders and await self._check_inside(folder):
            self._safe_folders.add(folder)

    async def _check_inside(self, path: str) -> bool:
        """Whether there is such a path; a link must not lead out of the root."""
        try:
            if self._real_root is None:
                root = self._sftp.realpath(self._partner.root or ".")
                self._real_root = str(await self._ask(root, ""))
            real = str(await self._ask(self._sftp.realpath(self._at(path)), path))
        except FileMissing:
            return False
        except (Denied, PlaceError):
            return await self._has_no_link(path)
        if real != self._real_root and not real.startswith(self._real_root.rstrip("/") + "/"):
            raise NameRefused(f"{printable(path)} leads out of the partner's folder by a link")
        return True

    async def _has_no_link(self, path: str) -> bool:
        """Whether there is such a path, at a server that does not say where links lead."""
        done = ""
        for part in path.split("/"):
            done = join(done, part)
            facts = await self._facts(done)
            if facts is None:
                return False
            if is_link(facts):
                raise NameRefused(
                    f"{printable(done)} is a link, and {self._partner.name} does not say where it "
                    "leads; name the folder itself"
                )
        return True

    def _at(self, path: str) -> str:
        """A path as the server knows it."""
        root = (self._partner.root or "").rstrip("/")
        return f"{root}/{path}" if root and path else root or path

    async def _ask(self, request: Awaitable[T], path: str) -> T:
        with self._translated(path):
            async with asyncio.timeout(self._timeouts.answer):
                return await request

    @contextmanager
    def _translated(self, path: str) -> Generator[None]:
        with translated(self._partner, self._credentials, path):
            yield
