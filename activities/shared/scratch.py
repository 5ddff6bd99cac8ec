"""What activities keep on the disk of a machine: blobs as files, a database, the keys of a file."""

import errno
import fcntl
import json
import os
import shutil
import sqlite3
import tempfile
import time
from collections.abc import AsyncGenerator, Generator, Iterator, Sequence
from contextlib import ExitStack, asynccontextmanager, contextmanager
from dataclasses import dataclass
from itertools import repeat
from pathlib import Path
from typing import Final, Self

from adapters.ports.blobs import Blobs
from adapters.ports.errors import PortError, Unavailable
from workflows.shared.contracts import BlobRef
from workflows.shared.dependencies import Dependency
from workflows.shared.errors import InvalidDocument, RuleViolation

PREFIX: Final = "docflow-"
HELD: Final = f"{PREFIX}held-"
"""Begins the name of a folder that its process holds locked for as long as it uses it."""
LEFTOVER_SECONDS: Final = 48 * 3600.0
"""No activity runs this long; an older folder belonged to a worker that was killed."""
_MEGABYTE: Final = 1 << 20
_WRONG_FOLDER: Final = frozenset({errno.EACCES, errno.EPERM, errno.EEXIST, errno.ENOTDIR})
"""The disk answers, and the folder is another user's, or none."""


@contextmanager
def scratch_folder(scratch: Path) -> Generator[Path]:
    """A folder of one's own below `scratch`, removed with all it holds.

    Raises:
        Unavailable: No folder can be made, as on a disk that only reads; or the disk is full, for
            whatever works inside the block.
    """
    try:
        with _held_folder(scratch) as own:
            yield own
    except (PortError, RuleViolation, InvalidDocument):
        raise
    except Exception as error:
        # Libraries wrap the reason in errors of their own.
        if any(map(_is_disk_full, _reasons(error))):
            raise disk_full() from error
        raise


@contextmanager
def _held_folder(scratch: Path) -> Generator[Path]:
    try:
        scratch.mkdir(parents=True, exist_ok=True)
        folder, lock = _made(scratch)
    except OSError as error:
        raise disk_full() if _is_disk_full(error) else _unusable(error) from error
    try:
        yield folder
    finally:
        shutil.rmtree(folder, ignore_errors=True)
        os.close(lock)


def _made(scratch: Path) -> tuple[Path, int]:
    """A new folder and the descriptor that holds it, by which a sweep sees that it is in use."""
    while True:
        folder = Path(tempfile.mkdtemp(prefix=HELD, dir=scratch))
        try:
            lock = _open(folder)
        except FileNotFoundError:
            continue
        # A sweep may have found it before it was held.
        if _is_acquired(lock) and folder.exists():
            return folder, lock
        os.close(lock)


def disk_full(room: int = 0) -> Unavailable:
    """The failure of a step that finds no room on the scratch disk.

    Args:
        room: Bytes that it needs; 0: not known.
    """
    needed = f": {_size(room)} are needed" if room else ""
    return Unavailable(f"the scratch disk is full{needed}", Dependency.SCRATCH_DISK, room=room)


def _unusable(error: OSError) -> Unavailable:
    # Its full text names folders of the server, which callers must not see.
    return Unavailable(
        f"no file can be made on the scratch disk: {error.strerror}",
        Dependency.SCRATCH_DISK,
        misconfigured=error.errno in _WRONG_FOLDER,
    )


def _reasons(error: BaseException) -> Iterator[BaseException]:
    reason: BaseException | None = error
    while reason is not None:
        yield reason
        reason = reason.__cause__ or reason.__context__


def _is_disk_full(error: BaseException) -> bool:
    if isinstance(error, OSError):
        return error.errno in (errno.ENOSPC, errno.EDQUOT)
    if not isinstance(error, sqlite3.Error):
        return False
    code: int | None = getattr(error, "sqlite_errorcode", None)
    return code is not None and code & 0xFF == sqlite3.SQLITE_FULL


def _size(count: int) -> str:
    return f"{count:,} bytes" if count < _MEGABYTE else f"{count / _MEGABYTE:,.0f} MB"


@asynccontextmanager
async def fetched(
    blobs: Blobs, name: str, scratch: Path, *, expected: BlobRef | None = None
) -> AsyncGenerator[Path]:
    """Download a blob for the length of the block.

    Args:
        blobs: Where it is.
        name: Blob name.
        scratch: Folder for temporary files; made when it is missing.
        expected: The blob as the run first saw it.

    Yields:
        The file, in a folder of its own that is removed afterwards.

    Raises:
        BlobNotFound: There is no such blob.
        RuleViolation: The blob is not the one that was expected, or larger than the disk.
        Unavailable: The scratch disk is full.
    """
    with scratch_folder(scratch) as folder:
        path = folder / "document"
        found = await _download(blobs, name, path)
        refuse_replaced(found, expected)
        yield path


def refuse_replaced(found: BlobRef, expected: BlobRef | None) -> None:
    """Refuse a blob that is not the one that its run first saw.

    Raises:
        RuleViolation: It was replaced.
    """
    if expected is not None and expected.etag and found.etag and expected.etag != found.etag:
        raise RuleViolation(
            f"{found.name} was replaced while its import was running; "
            "send the new file with a new message"
        )


async def _download(blobs: Blobs, name: str, path: Path) -> BlobRef:
    try:
        return await blobs.download(name, path)
    except OSError as error:
        if not _is_disk_full(error):
            raise
        size = (await blobs.stat(name)).size
        total = shutil.disk_usage(path.parent).total
        if size > total:
            raise RuleViolation(
                f"{name} has {_size(size)}, and the whole scratch disk has {_size(total)}; "
                "split the file, or have the disk enlarged"
            ) from error
        raise disk_full(size) from error


def sweep(scratch: Path, older_than: float = LEFTOVER_SECONDS) -> int:
    """Remove what killed workers left behind, and nothing that a live process uses.

    Args:
        scratch: Folder for temporary files.
        older_than: Age in seconds of a folder of an earlier release, which holds none of its own.

    Returns:
        Folders removed.
    """
    limit = time.time() - older_than
    return sum(_is_removed(folder, limit) for folder in scratch.glob(f"{PREFIX}*"))


def _is_removed(folder: Path, limit: float) -> bool:
    try:
        lock = _open(folder)
    except OSError:
        # Gone meanwhile, no folder, or another user's.
        return False
    try:
        if not folder.name.startswith(HELD):
            return os.fstat(lock).st_mtime < limit and _remove(folder)
        return _is_acquired(lock) and _remove(folder)
    finally:
        os.close(lock)


def _remove(folder: Path) -> bool:
    shutil.rmtree(folder, ignore_errors=True)
    return not folder.exists()


def _open(folder: Path) -> int:
    """A descriptor of a folder, for its lock."""
    return os.open(folder, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW)


def _is_acquired(lock: int) -> bool:
    """Whether no other process holds a folder; the kernel lets go of those of a killed one."""
    try:
        fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError:
        return False
    return True


_SETTINGS = (
    # The file is worth nothing after a crash.
    "synchronous=OFF",
    "journal_mode=OFF",
    "locking_mode=EXCLUSIVE",
    # Else they go to the system's folder.
    "temp_store=MEMORY",
)


@dataclass(frozen=True)
class ScratchDatabase:
    """One connection to one file; may be passed from thread to thread, one at a time."""

    connection: sqlite3.Connection
    file: Path

    @classmethod
    def open(cls, folder: Path, prefix: str, table: str, *, cache_kib: int | None = None) -> Self:
        """Make the database and its table, in a transaction that is never committed.

        Args:
            folder: Scratch folder of the step.
            prefix: Begins the name of the file.
            table: Statement that creates the table.
            cache_kib: Pages kept in memory; None: as many as SQLite keeps by default.

        Raises:
            OSError: No file can be made.
            sqlite3.OperationalError: It cannot be written.
        """
        descriptor, name = tempfile.mkstemp(prefix=prefix, suffix=".db", dir=folder)
        os.close(descriptor)
        file = Path(name)
        cache = () if cache_kib is None else (f"cache_size=-{cache_kib}",)
        with ExitStack() as until_ready:
            until_ready.callback(file.unlink, missing_ok=True)
            connection = sqlite3.connect(file, isolation_level=None, check_same_thread=False)
            until_ready.callback(connection.close)
            for setting in (*cache, *_SETTINGS):
                connection.execute(f"PRAGMA {setting}")
            connection.execute(table)
            connection.execute("BEGIN")
            until_ready.pop_all()
        return cls(connection, file)

    def close(self) -> None:
        """Close it, and remove its file."""
        self.connection.close()
        self.file.unlink(missing_ok=True)


KEYS_IN_MEMORY: Final = 100_000
"""About 20 MB; further keys go to a database in the scratch folder."""
_PAGE_CACHE_KIB: Final = 16_000
_TABLE: Final = (
    "CREATE TABLE seen (key TEXT PRIMARY KEY, first INTEGER, occurrences INTEGER) WITHOUT ROWID"
)


class SeenKeys:
    """Counts the occurrences of keys, batch by batch.

    To be closed; may be passed from thread to thread, one at a time.

    Args:
        folder: Scratch folder of the step, which is held as long as it works and swept after it.
        keys_in_memory: How many keys to keep before the first goes to disk.
    """

    def __init__(self, folder: Path, keys_in_memory: int = KEYS_IN_MEMORY) -> None:
        self._folder = folder
        self._limit = keys_in_memory
        self._first: dict[str, int] = {}
        self._repeats: dict[str, int] = {}
        self._disk: ScratchDatabase | None = None

    def close(self) -> None:
        """Give memory and disk back."""
        self._first.clear()
        self._repeats.clear()
        if self._disk is not None:
            self._disk.close()
            self._disk = None

    def add(self, keys: Sequence[str], lines: Sequence[int]) -> list[tuple[int, int]]:
        """Take the next keys of the file.

        Args:
            keys: Keys in the order of the file; no lone surrogates.
            lines: Line of each, rising within and across calls.

        Returns:
            For each key which occurrence it is, from 1, and the line of the first.
        """
        if len(self._first) >= self._limit and self._disk is None:
            self._disk = ScratchDatabase.open(
                self._folder, "seen-keys-", _TABLE, cache_kib=_PAGE_CACHE_KIB
            )
        if self._disk is None:
            new = dict(zip(keys, lines, strict=True))
            if len(new) == len(keys) and new.keys().isdisjoint(self._first.keys()):
                self._first.update(new)
                return list(zip(repeat(1), lines))
        known = self._on_disk(keys, lines) if self._disk is not None else {}
        found: list[tuple[int, int]] = []
        fresh: dict[str, int] = {}
        repeated: dict[str, int] = {}
        for key, line in zip(keys, lines, strict=True):
            if (first := self._first.get(key)) is not None:
                self._repeats[key] = count = self._repeats.get(key, 1) + 1
            elif self._disk is None:
                self._first[key] = first = line
                count = 1
            elif (earlier := known.get(key)) is not None:
                first = earlier[0]
                repeated[key] = count = repeated.get(key, earlier[1]) + 1
            else:
                first = fresh.setdefault(key, line)
                repeated[key] = count = repeated.get(key, 0) + 1
            found.append((count, first))
        if self._disk is not None:
            self._disk.connection.executemany(
                "UPDATE seen SET occurrences = ? WHERE key = ?",
                [(count, _filed(key)) for key, count in repeated.items() if count > 1],
            )
        return found

    def _on_disk(self, keys: Sequence[str], lines: Sequence[int]) -> dict[str, tuple[int, int]]:
        """File the keys that memory does not know; line and count of those filed before."""
        assert self._disk is not None
        disk, first = self._disk.connection, self._first
        batch = {
            _filed(key): line
            for key, line in zip(reversed(keys), reversed(lines), strict=True)
            if key not in first
        }
        before = disk.total_changes
        disk.executemany("INSERT OR IGNORE INTO seen VALUES (?, ?, 1)", sorted(batch.items()))
        if disk.total_changes - before == len(batch):
            return {}
        rows = disk.execute(
            "SELECT key, first, occurrences FROM seen"
            " WHERE key IN (SELECT value FROM json_each(?)) AND first < ?",
            (json.dumps(list(batch)), lines[0]),
        )
        return {_unfiled(key): (line, occurrences) for key, line, occurrences in rows}


def _filed(key: str) -> str:
    """A key without NUL, which ends a text for SQLite's JSON; no two keys become the same."""
    if "\0" not in key and "\1" not in key:
        return key
    return key.replace("\1", "\1\2").replace("\0", "\1\3")


def _unfiled(text: str) -> str:
    return text.replace("\1\3", "\0").replace("\1\2", "\1") if "\1" in text else text
