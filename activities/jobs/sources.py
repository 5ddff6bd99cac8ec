"""Blobs that many tasks of a process read: fetched once, kept while there is room."""

import asyncio
import fcntl
import hashlib
import os
import tempfile
from collections import OrderedDict
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Final

from activities.scratch import HELD
from adapters.ports import Blobs
from contracts.blobs import BlobRef
from domain.errors import RuleViolation

KEPT_BYTES: Final = 20 << 30
"""Of files that are not being read."""


class SourceFiles:
    """Files of this process, by blob and version; those unread for longest are removed first.

    Its folder is locked for as long as the process lives, so that a sweep removes what a killed
    worker left.
    """

    def __init__(self, kept_bytes: int = KEPT_BYTES) -> None:
        self._kept_bytes = kept_bytes
        self._folder: Path | None = None
        self._locks: dict[str, asyncio.Lock] = {}
        self._readers: dict[str, int] = {}
        self._idle: OrderedDict[str, int] = OrderedDict()

    @asynccontextmanager
    async def file(
        self, blobs: Blobs, name: str, etag: str | None, scratch: Path
    ) -> AsyncGenerator[Path]:
        """A blob as a local file, which is only read.

        Args:
            blobs: Where it is.
            name: Of the blob.
            etag: The version that the job was submitted with; None: any.
            scratch: Folder for temporary files.

        Raises:
            BlobNotFound: There is no such blob.
            RuleViolation: It was replaced meanwhile.
        """
        key = hashlib.sha256(f"{id(blobs)} {name} {etag}".encode()).hexdigest()
        self._readers[key] = self._readers.get(key, 0) + 1
        self._idle.pop(key, None)
        try:
            path = self._made(scratch) / key
            async with self._locks.setdefault(key, asyncio.Lock()):
                if not path.exists():
                    await _fetch(blobs, name, etag, path)
            yield path
        finally:
            self._readers[key] -= 1
            if not self._readers[key]:
                self._release(key)

    def _release(self, key: str) -> None:
        del self._readers[key]
        self._locks.pop(key, None)
        if self._folder is None:
            return
        path = self._folder / key
        if path.exists():
            self._idle[key] = path.stat().st_size
        while sum(self._idle.values()) > self._kept_bytes:
            oldest, _ = self._idle.popitem(last=False)
            (self._folder / oldest).unlink(missing_ok=True)

    def _made(self, scratch: Path) -> Path:
        if self._folder is None or not self._folder.exists():
            scratch.mkdir(parents=True, exist_ok=True)
            self._folder = Path(tempfile.mkdtemp(prefix=HELD, dir=scratch))
            fcntl.flock(os.open(self._folder, os.O_RDONLY | os.O_DIRECTORY), fcntl.LOCK_EX)
        return self._folder


async def _fetch(blobs: Blobs, name: str, etag: str | None, path: Path) -> BlobRef:
    part = path.with_suffix(".part")
    try:
        found = await blobs.download(name, part)
        if etag and found.etag and found.etag != etag:
            raise RuleViolation(f"{name} was replaced while its job was running; submit it again")
        part.rename(path)
    finally:
        part.unlink(missing_ok=True)
    return found
