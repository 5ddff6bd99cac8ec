"""One container of blobs."""

from collections.abc import AsyncGenerator, AsyncIterator, Callable, Sequence
from pathlib import Path
from typing import Protocol

from workflows.shared.contracts import BlobRef


class Blobs(Protocol):
    """One container of blobs."""

    async def probe(self) -> None:
        """See at little cost whether the store can be used.

        Raises:
            Unavailable: It cannot.
        """
        ...

    async def stat(self, name: str) -> BlobRef:
        """Size and etag, without the bytes.

        Raises:
            BlobNotFound: There is no such blob.
        """
        ...

    async def list(self, prefix: str, most: int) -> Sequence[BlobRef]:
        """Blobs in a folder and in those below it, by name, without their bytes.

        Args:
            prefix: Folder, which ends with `/`.
            most: No more are listed.
        """
        ...

    async def download(
        self, name: str, target: Path, progress: Callable[[int], None] | None = None
    ) -> BlobRef:
        """Stream a blob into a new file; the returned reference carries its sha256.

        Args:
            name: Blob name.
            target: File to write; its folder exists.
            progress: Called with the bytes written so far, at least once per 8 MB. What it raises
                ends the download.

        Raises:
            BlobNotFound: There is no such blob.
            OSError: `target` cannot be written.
        """
        ...

    def read(
        self, name: str, *, start: int = 0, length: int | None = None, etag: str | None = None
    ) -> AsyncGenerator[bytes]:
        """Stream a blob in pieces of bounded size; close it where it is left before the end.

        Args:
            name: Blob name.
            start: The first byte, within the blob.
            length: Bytes, 1 or more; None, or more than there are: to the end.
            etag: That of the blob that is meant; None: whichever is there.

        Raises:
            BlobNotFound: There is no such blob.
            PortError: It was replaced by one of another etag.
            Unavailable: It ended early.
        """
        ...

    async def upload(self, source: Path, name: str, *, overwrite: bool = True) -> BlobRef:
        """Stream a file into a blob; readers see the old bytes or all of the new ones.

        Raises:
            FileExistsError: `overwrite` is false and the blob exists.
        """
        ...

    async def write(
        self, name: str, chunks: AsyncIterator[bytes], *, hashed: bool = True
    ) -> BlobRef:
        """Stream bytes into a new blob as they arrive; it appears when all of them are there.

        The returned reference carries the size of what was written, and its sha256.

        When `chunks` raises, there is no blob and the error passes through. Memory stays bounded.

        Args:
            name: Blob name.
            chunks: Pieces of any size.
            hashed: False: the sha256 is not asked for, and may be missing.

        Raises:
            FileExistsError: There is a blob of that name.
        """
        ...

    async def put(self, name: str, content: bytes) -> BlobRef:
        """Insert or replace a short blob; readers see the old bytes or all of the new ones."""
        ...

    async def remove(self, beginning: str) -> int:
        """Delete the blobs whose names begin so, in one folder; returns how many there were.

        Args:
            beginning: A folder, `/`, and what the names begin with there.
        """
        ...

    async def copy(self, source: str, target: str) -> BlobRef:
        """Copy within the container, replacing `target`.

        Raises:
            BlobNotFound: There is no `source`.
        """
        ...

    async def delete(self, name: str, *, etag: str | None = None) -> bool:
        """Delete a blob; False when it was gone already, or is not at `etag` any more."""
        ...
