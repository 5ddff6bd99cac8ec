"""Notes of attempts, beside the staged bytes of their run: they are removed together."""

import asyncio
import hashlib
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Final

from adapters.ports import BlobNotFound, Blobs, Unavailable
from adapters.staging.store import stem_of
from contracts.dependencies import Dependency

_FILE: Final = "note"
_PREFIX: Final = "docflow-note-"
"""As folders of the scratch disk begin that a sweep removes when they are old."""


class BlobNotes:
    """Texts in the blob store, as `Notes`.

    Args:
        blobs: Where they are.
        scratch: Folder for temporary files.
    """

    def __init__(self, blobs: Blobs, scratch: Path) -> None:
        self._blobs, self._scratch = blobs, scratch

    async def read(self, run: str, name: str) -> bytes | None:
        """The newest text of a name."""
        try:
            return b"".join([piece async for piece in self._blobs.read(_blob(run, name))])
        except BlobNotFound:
            return None

    async def write(self, run: str, name: str, text: bytes) -> None:
        """Insert or replace a text.

        Raises:
            Unavailable: There is no room for it on the scratch disk.
        """
        folder = await asyncio.to_thread(_on_disk, self._scratch, text)
        try:
            await self._blobs.upload(Path(folder.name, _FILE), _blob(run, name))
        finally:
            await asyncio.to_thread(folder.cleanup)


def _on_disk(scratch: Path, text: bytes) -> TemporaryDirectory[str]:
    try:
        scratch.mkdir(parents=True, exist_ok=True)
        folder = TemporaryDirectory(dir=scratch, prefix=_PREFIX, ignore_cleanup_errors=True)
        try:
            Path(folder.name, _FILE).write_bytes(text)
        except OSError:
            folder.cleanup()
            raise
    except OSError as error:
        # Its full text names folders of the server.
        raise Unavailable(
            f"no note can be written on the scratch disk: {error.strerror}",
            Dependency.SCRATCH_DISK,
        ) from error
    return folder


def _blob(run: str, name: str) -> str:
    return f"{stem_of(run)}-note-{hashlib.sha256(name.encode()).hexdigest()[:32]}"
