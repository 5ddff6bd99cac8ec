"""Blobs as files of this machine, for as long as an activity needs them."""

import errno
import fcntl
import os
import shutil
import sqlite3
import tempfile
import time
from collections.abc import AsyncGenerator, Generator, Iterator
from contextlib import asynccontextmanager, contextmanager
from pathlib import Path
from typing import Final

from adapters.ports import Blobs, PortError, Unavailable
from contracts.blobs import BlobRef
from contracts.dependencies import Dependency
from domain.errors import InvalidDocument, RuleViolation

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
