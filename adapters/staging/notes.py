"""Notes of attempts, beside the staged bytes of their run: they are removed together."""

import asyncio
import hashlib
from pathlib import Path
from tempfile import TemporaryDirectory

from adapters.ports import BlobNotFound, Blobs
from adapters.staging.store import stem_of


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
        """Insert or replace a text."""
        await asyncio.to_thread(self._scratch.mkdir, parents=True, exist_ok=True)
        with TemporaryDirectory(dir=self._scratch) as folder:
            path = Path(folder, "note")
            path.write_bytes(text)
            await self._blobs.upload(path, _blob(run, name))


def _blob(run: str, name: str) -> str:
    return f"{stem_of(run)}-note-{hashlib.sha256(name.encode()).hexdigest()[:32]}"
