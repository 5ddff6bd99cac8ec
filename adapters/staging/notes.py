"""Notes of attempts, beside the staged bytes of their run: they are removed together."""

import hashlib

from adapters.ports import BlobNotFound, Blobs
from adapters.staging.store import stem_of


class BlobNotes:
    """Texts in the blob store, as `Notes`.

    Args:
        blobs: Where they are.
    """

    def __init__(self, blobs: Blobs) -> None:
        self._blobs = blobs

    async def read(self, run: str, name: str) -> bytes | None:
        """The newest text of a name."""
        try:
            return b"".join([piece async for piece in self._blobs.read(_blob(run, name))])
        except BlobNotFound:
            return None

    async def write(self, run: str, name: str, text: bytes) -> None:
        """Insert or replace a text."""
        await self._blobs.put(_blob(run, name), text)


def _blob(run: str, name: str) -> str:
    return f"{stem_of(run)}-note-{hashlib.sha256(name.encode()).hexdigest()[:32]}"
