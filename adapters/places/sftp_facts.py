"""What SFTP servers say of files, and how files of theirs are flushed and closed."""

import asyncio
import stat
from collections import deque
from datetime import UTC, datetime
from typing import TypeVar, cast

import asyncssh

from adapters.ports.places import Entry

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
