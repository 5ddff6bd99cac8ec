"""Blobs in memory: the fake that tests share."""

import hashlib
from collections.abc import AsyncGenerator, AsyncIterator, Callable, Sequence
from itertools import count
from pathlib import Path

from adapters.object_blobs import refuse_other
from adapters.ports.errors import BlobNotFound
from adapters.threads import to_end
from workflows.shared.contracts import BlobRef

_PIECE = 1 << 20


class MemoryBlobs:
    """A container of blobs that lasts as long as the object."""

    def __init__(self) -> None:
        self._blobs: dict[str, tuple[bytes, str]] = {}
        self._versions = count(1)

    async def probe(self) -> None:
        """Memory always answers."""

    async def stat(self, name: str) -> BlobRef:
        """Size and etag."""
        content, etag = self._find(name)
        return BlobRef(name=name, size=len(content), etag=etag)

    async def list(self, prefix: str, most: int) -> Sequence[BlobRef]:
        """Blobs of a folder, by name."""
        names = sorted(name for name in self._blobs if name.startswith(prefix))
        return [await self.stat(name) for name in names[:most]]

    async def download(
        self, name: str, target: Path, progress: Callable[[int], None] | None = None
    ) -> BlobRef:
        """Write a blob into a new file."""
        content, etag = self._find(name)
        await to_end(target.write_bytes, content)
        if progress is not None:
            progress(len(content))
        return _reference(name, content, etag)

    async def read(
        self, name: str, *, start: int = 0, length: int | None = None, etag: str | None = None
    ) -> AsyncGenerator[bytes]:
        """The bytes of a blob, in pieces."""
        content, found = self._find(name)
        refuse_other(name, found, etag)
        content = content[start : None if length is None else start + length]
        for at in range(0, len(content), _PIECE):
            yield content[at : at + _PIECE]

    async def upload(self, source: Path, name: str, *, overwrite: bool = True) -> BlobRef:
        """Keep the bytes of a file."""
        content = await to_end(source.read_bytes)
        if not overwrite and name in self._blobs:
            raise FileExistsError(f"there is a blob {name!r} already")
        return self._put(name, content)

    async def write(
        self, name: str, chunks: AsyncIterator[bytes], *, hashed: bool = True
    ) -> BlobRef:
        """Keep bytes as they arrive, once all of them are there."""
        if name in self._blobs:
            raise FileExistsError(f"there is a blob {name!r} already")
        content = b"".join([chunk async for chunk in chunks])
        if name in self._blobs:
            raise FileExistsError(f"there is a blob {name!r} already")
        return self._put(name, content)

    async def put(self, name: str, content: bytes) -> BlobRef:
        """Keep bytes."""
        return self._put(name, content)

    async def remove(self, beginning: str) -> int:
        """Forget blobs."""
        own = [name for name in self._blobs if name.startswith(beginning)]
        return sum([await self.delete(name) for name in own])

    async def copy(self, source: str, target: str) -> BlobRef:
        """Copy a blob onto another."""
        return self._put(target, self._find(source)[0])

    async def delete(self, name: str, *, etag: str | None = None) -> bool:
        """Forget a blob."""
        if name not in self._blobs or (etag is not None and self._blobs[name][1] != etag):
            return False
        del self._blobs[name]
        return True

    def _find(self, name: str) -> tuple[bytes, str]:
        try:
            return self._blobs[name]
        except KeyError:
            raise BlobNotFound(f"there is no blob {name!r}") from None

    def _put(self, name: str, content: bytes) -> BlobRef:
        reference = _reference(name, content, f'"{next(self._versions)}"')
        self._blobs[name] = (content, reference.etag or "")
        return reference


def _reference(name: str, content: bytes, etag: str) -> BlobRef:
    digest = hashlib.sha256(content).hexdigest()
    return BlobRef(name=name, size=len(content), sha256=digest, etag=etag)
