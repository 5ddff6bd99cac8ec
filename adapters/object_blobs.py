"""Blobs of object stores that `obstore` speaks to: what these have in common."""

import asyncio
import hashlib
from abc import ABC, abstractmethod
from collections.abc import AsyncGenerator, AsyncIterator, Callable, Sequence
from contextlib import AbstractContextManager
from io import BytesIO
from pathlib import Path
from typing import TYPE_CHECKING, BinaryIO, Final, Protocol, TypeVar

import obstore
from obstore.store import AzureStore, S3Store

from adapters.ports.errors import PortError, Unavailable
from workflows.shared.contracts import BlobRef

if TYPE_CHECKING:
    from obstore import GetOptions


def refuse_other(name: str, found: str | None, etag: str | None) -> None:
    """Refuse a blob that is not the one that is meant.

    Args:
        name: Its name.
        found: The etag of what is there.
        etag: The one that is meant; None: any.

    Raises:
        PortError: It was replaced.
    """
    if etag and found and etag != found:
        raise PortError(f"blob {name!r} was replaced meanwhile")


T = TypeVar("T")
_SHORT: Final = 1 << 16


async def computed(compute: Callable[[bytes], T], block: bytes) -> T:
    """The result of a block, computed in a thread unless the block is short.

    To hand 64 KB to a thread costs as much as to hash or to encrypt them.
    """
    return compute(block) if len(block) <= _SHORT else await asyncio.to_thread(compute, block)


async def in_blocks(pieces: AsyncIterator[bytes], size: int) -> AsyncIterator[bytes]:
    """Join pieces to blocks of `size` bytes; only the last one is shorter, and none is empty.

    Holds a block and a piece at a time; what is a block already is not copied.
    """
    held = BytesIO()
    async for piece in pieces:
        start = 0
        if held.tell():
            start = min(size - held.tell(), len(piece))
            held.write(memoryview(piece)[:start])
            if held.tell() < size:
                continue
            # Without a copy: nothing else refers to its buffer.
            block, held = held.getvalue(), BytesIO()
            yield block
        if start == 0 and len(piece) == size:
            yield piece
            continue
        while len(piece) - start >= size:
            yield piece[start : start + size]
            start += size
        held.write(memoryview(piece)[start:])
    if held.tell():
        yield held.getvalue()


async def at_least(pieces: AsyncIterator[bytes], size: int) -> AsyncIterator[bytes]:
    """Join short pieces until they have `size` bytes; longer ones are passed on, uncopied.

    For consumers that take blocks of any length, but should not get too many: exact blocks would be
    copied from pieces that are a little longer. Only the last one is shorter, and none is empty.
    """
    held = BytesIO()
    async for piece in pieces:
        if not held.tell() and len(piece) >= size:
            yield piece
            continue
        held.write(piece)
        if held.tell() >= size:
            block, held = held.getvalue(), BytesIO()
            yield block
    if held.tell():
        yield held.getvalue()


_BLOCKS_IN_FLIGHT = 2
_MOST = 1_000_000


class _Digest(Protocol):
    def update(self, data: bytes, /) -> None: ...


class ObjectBlobs(ABC):
    """Blobs of one container.

    Args:
        store: Where they are.
        block: Bytes that are moved at once; a transfer takes some six times as much memory.
    """

    def __init__(self, store: AzureStore | S3Store, block: int) -> None:
        self._store = store
        self._block = block

    @abstractmethod
    def _translated(self, name: str) -> AbstractContextManager[None]:
        """Make errors of the ports of what `obstore` raises about a blob."""

    @abstractmethod
    async def _create_from_blocks(self, name: str, blocks: AsyncIterator[bytes]) -> str | None:
        """Write a blob of many blocks where there is none; its etag."""

    async def stat(self, name: str) -> BlobRef:
        """Size and etag."""
        with self._translated(name):
            found = await obstore.head_async(self._store, name)
        return BlobRef(name=name, size=found["size"], etag=found["e_tag"])

    async def list(self, prefix: str, most: int) -> Sequence[BlobRef]:
        """Blobs of a folder, by name."""
        found: list[BlobRef] = []
        with self._translated(prefix):
            async for page in obstore.list(self._store, prefix.rstrip("/")):
                found += [
                    BlobRef(name=each["path"], size=each["size"], etag=_quoted(each["e_tag"]))
                    for each in page
                ]
                if len(found) >= most:
                    break
        return found[:most]

    async def download(
        self, name: str, target: Path, progress: Callable[[int], None] | None = None
    ) -> BlobRef:
        """Stream a blob into a new file."""
        with self._translated(name):
            result = await obstore.get_async(self._store, name)
        digest = hashlib.sha256()
        written = 0
        with target.open("wb") as file:
            blocks = result.stream(min_chunk_size=self._block)
            while True:
                with self._translated(name):
                    block = await anext(blocks, None)
                if block is None:
                    break
                await asyncio.to_thread(_write, file, block, digest)
                written += len(block)
                if progress is not None:
                    progress(written)
        meta = result.meta
        if written != meta["size"]:
            raise Unavailable(f"blob {name!r} ended after {written:,} of {meta['size']:,} bytes")
        return BlobRef(name=name, size=written, sha256=digest.hexdigest(), etag=meta["e_tag"])

    async def read(
        self, name: str, *, start: int = 0, length: int | None = None, etag: str | None = None
    ) -> AsyncGenerator[bytes]:
        """Stream a blob."""
        asked: GetOptions = {}
        if length is not None:
            asked = {"range": (start, start + length)}
        elif start:
            asked = {"range": {"offset": start}}
        with self._translated(name):
            result = await obstore.get_async(self._store, name, options=asked)
        refuse_other(name, result.meta["e_tag"], etag)
        begin, end = result.range
        size = end - begin
        arrived = 0
        blocks = result.stream(min_chunk_size=self._block)
        while True:
            with self._translated(name):
                block = await anext(blocks, None)
            if block is None:
                break
            arrived += len(block)
            yield bytes(block)
        if arrived != size:
            raise Unavailable(f"blob {name!r} ended after {arrived:,} of {size:,} bytes")

    async def upload(self, source: Path, name: str, *, overwrite: bool = True) -> BlobRef:
        """Stream a file into a blob; it appears when all of its blocks are there."""
        digest = hashlib.sha256()
        with source.open("rb") as file:
            first = await asyncio.to_thread(_read, file, self._block, digest)
            if len(first) < self._block:
                with self._translated(name):
                    put = await obstore.put_async(
                        self._store,
                        name,
                        first,
                        mode="overwrite" if overwrite else "create",
                        use_multipart=False,
                    )
                etag = put["e_tag"]
            elif overwrite:
                with self._translated(name):
                    put = await obstore.put_async(
                        self._store,
                        name,
                        _blocks(first, file, self._block, digest),
                        chunk_size=self._block,
                        max_concurrency=_BLOCKS_IN_FLIGHT,
                    )
                etag = put["e_tag"]
            else:
                etag = await self._create_from_blocks(
                    name, _blocks(first, file, self._block, digest)
                )
            size = file.tell()
        return BlobRef(name=name, size=size, sha256=digest.hexdigest(), etag=etag)

    async def write(
        self, name: str, chunks: AsyncIterator[bytes], *, hashed: bool = True
    ) -> BlobRef:
        """Stream bytes into a new blob; it appears when all of its blocks are there."""
        arriving = _Arriving(chunks, hashed=hashed)
        blocks = in_blocks(arriving.pieces(), self._block)
        first = await anext(blocks, b"")
        if len(first) < self._block:
            with self._translated(name):
                put = await obstore.put_async(
                    self._store, name, first, mode="create", use_multipart=False
                )
            etag = put["e_tag"]
        else:
            etag = await self._create_from_blocks(name, _after(first, blocks))
        return BlobRef(name=name, size=arriving.size, sha256=arriving.sha256, etag=etag)

    async def put(self, name: str, content: bytes) -> BlobRef:
        """Write a short blob in one request."""
        with self._translated(name):
            put = await obstore.put_async(
                self._store, name, content, mode="overwrite", use_multipart=False
            )
        digest = hashlib.sha256(content).hexdigest()
        return BlobRef(name=name, size=len(content), sha256=digest, etag=put["e_tag"])

    @abstractmethod
    async def delete(self, name: str, *, etag: str | None = None) -> bool:
        """Delete a blob."""

    async def remove(self, beginning: str) -> int:
        """Delete blobs; stores list whole folders."""
        folder, _, _ = beginning.rpartition("/")
        listed = await self.list(f"{folder}/", _MOST)
        own = [each.name for each in listed if each.name.startswith(beginning)]
        return sum([await self.delete(name) for name in own])


def _quoted(etag: str | None) -> str | None:
    """As headers write it: lists leave the quotes out."""
    return etag if etag is None or etag.endswith('"') else f'"{etag}"'


class _Arriving:
    """Size and, where it is asked for, hash of bytes that pass by."""

    def __init__(self, chunks: AsyncIterator[bytes], *, hashed: bool) -> None:
        self.size = 0
        self._digest = hashlib.sha256() if hashed else None
        self._chunks = chunks

    @property
    def sha256(self) -> str | None:
        return None if self._digest is None else self._digest.hexdigest()

    async def pieces(self) -> AsyncIterator[bytes]:
        async for chunk in self._chunks:
            self.size += len(chunk)
            if self._digest is not None:
                await computed(self._digest.update, chunk)
            yield chunk


async def _after(first: bytes, blocks: AsyncIterator[bytes]) -> AsyncIterator[bytes]:
    yield first
    async for block in blocks:
        yield block


def _read(file: BinaryIO, size: int, digest: _Digest) -> bytes:
    block = file.read(size)
    digest.update(block)
    return block


def _write(file: BinaryIO, block: bytes, digest: _Digest) -> None:
    file.write(block)
    digest.update(block)


async def _blocks(first: bytes, file: BinaryIO, size: int, digest: _Digest) -> AsyncIterator[bytes]:
    block = first
    while block:
        yield block
        block = await asyncio.to_thread(_read, file, size, digest)
