"""Archives as streams of files, as the port `Archives`."""

import asyncio
import hashlib
import hmac
import io
import tarfile
import zlib
from collections.abc import AsyncGenerator, AsyncIterator, Callable, Iterator, Sequence
from contextlib import aclosing
from datetime import UTC, datetime
from pathlib import Path
from typing import BinaryIO, Final, TypeVar

from adapters.files.archives import tars, zips
from adapters.files.archives.bounds import Bounds
from adapters.files.archives.gzips import WBITS, unzipped
from adapters.ports import UnreadableDocument
from adapters.ports.transfer_files import ArchiveInput, ArchiveMember, ExtractionLimits
from adapters.threads import PulledBytes, from_iterator
from contracts.transfers import ArchiveFormat
from domain.errors import RuleViolation
from domain.transfers.archive_names import ArchiveNames

T = TypeVar("T")
Found = tuple[str, bool, Iterator[bytes]]
"""Name, whether it was encrypted, content."""
_LEVEL: Final = 6
_PIECE: Final = 1 << 20
_HEAD: Final = 512
_MODE: Final = 0o100644
_EPOCH: Final = datetime(1980, 1, 1, tzinfo=UTC)
"""The earliest time in a ZIP archive, for files without one."""
_LATEST: Final = datetime(2107, 12, 31, tzinfo=UTC)
_ZIP: Final = (b"PK\x03\x04", b"PK\x05\x06", b"PK\x07\x08")
_GZIP: Final = b"\x1f\x8b"
_SUFFIXES: Final = (".gz", ".gzip", ".z")


class ArchiveFiles:
    """Makes archives and takes them apart."""

    def compress(
        self, format: ArchiveFormat, files: Sequence[ArchiveInput], password: str | None = None
    ) -> AsyncGenerator[bytes]:
        """An archive of files; the same bytes for the same files."""
        match format:
            case ArchiveFormat.ZIP:
                return _zipped(files, password)
            case ArchiveFormat.GZIP:
                if len(files) != 1:
                    raise RuleViolation("a gzip file holds one file; use tar.gz or zip for several")
                return _deflated(_checked(files[0]))
            case ArchiveFormat.TAR:
                return _tar(files)
            case ArchiveFormat.TAR_GZ:
                return _deflated(_tar(files))

    async def extract(
        self,
        source: Path,
        name: str,
        limits: ExtractionLimits,
        *,
        format: ArchiveFormat | None = None,
        password: str | None = None,
        encoding: str = "utf-8",
        flatten: bool = False,
    ) -> AsyncGenerator[ArchiveMember]:
        """The files of an archive."""
        kind = format or await asyncio.to_thread(_format, source)
        bounds = Bounds(limits, source.stat().st_size)
        names = ArchiveNames(encoding, flatten=flatten)
        if kind is ArchiveFormat.ZIP:
            found = _of_zip(source, names, limits, password)
        else:
            found = _of_stream(source, name, kind, names, bounds)
        try:
            while (member := await asyncio.to_thread(next, found, None)) is not None:
                bounds.file()
                file_name, encrypted, pieces = member
                counts = kind in (ArchiveFormat.ZIP, ArchiveFormat.TAR)
                chunks = _stepped(pieces, bounds.unpacked if counts else _nothing)
                yield ArchiveMember(file_name, chunks, encrypted=encrypted, guessed=names.guessed)
                async for _ in chunks:
                    raise AssertionError("a file of the archive was not read to its end")
            bounds.end()
        finally:
            await asyncio.to_thread(_close, found)


def _nothing(size: int) -> None:
    """The bytes of the whole stream are counted."""


def _close(found: Iterator[Found]) -> None:
    close = getattr(found, "close", None)
    if close is not None:
        close()


async def _stepped(pieces: Iterator[bytes], count: Callable[[int], None]) -> AsyncGenerator[bytes]:
    while piece := await asyncio.to_thread(next, pieces, b""):
        count(len(piece))
        yield piece


def _of_zip(
    source: Path, names: ArchiveNames, limits: ExtractionLimits, password: str | None
) -> Iterator[Found]:
    for member, pieces in zips.members(source, names, limits, password):
        yield member.name, member.encrypted, pieces


def _of_stream(
    source: Path, name: str, kind: ArchiveFormat, names: ArchiveNames, bounds: Bounds
) -> Iterator[Found]:
    with source.open("rb") as file:
        if kind is ArchiveFormat.TAR:
            for own, pieces in tars.members(file, names):
                yield own, False, pieces
            return
        content = _counted(unzipped(file), bounds)
        if kind is ArchiveFormat.GZIP:
            yield names.taken(_unzipped_name(name).encode(), is_utf8=True), False, content
            return
        for own, pieces in tars.members(_Unzipped(content), names):
            yield own, False, pieces


def _counted(pieces: Iterator[bytes], bounds: Bounds) -> Iterator[bytes]:
    for piece in pieces:
        bounds.unpacked(len(piece))
        yield piece


class _Unzipped(io.RawIOBase):
    """An iterator of bytes as a file."""

    def __init__(self, pieces: Iterator[bytes]) -> None:
        super().__init__()
        self._pieces = pieces
        self._held = b""

    def readable(self) -> bool:
        return True

    def read(self, size: int = -1, /) -> bytes:
        while len(self._held) < size and (piece := next(self._pieces, b"")):
            self._held += piece
        taken, self._held = self._held[:size], self._held[size:]
        return taken


def _format(source: Path) -> ArchiveFormat:
    with source.open("rb") as file:
        head = file.read(_HEAD)
        if head.startswith(_ZIP):
            return ArchiveFormat.ZIP
        if head.startswith(_GZIP):
            file.seek(0)
            return ArchiveFormat.TAR_GZ if _holds_tar(file) else ArchiveFormat.GZIP
        if tars.is_tar(head):
            return ArchiveFormat.TAR
    raise UnreadableDocument("it is not an archive that is read (ZIP, gzip or tar)")


def _holds_tar(file: BinaryIO) -> bool:
    return tars.is_tar(_Unzipped(unzipped(file)).read(_HEAD))


def _unzipped_name(name: str) -> str:
    lower = name.lower()
    if lower.endswith(".tgz"):
        return f"{name[:-4]}.tar"
    for suffix in _SUFFIXES:
        if lower.endswith(suffix) and len(lower) > len(suffix):
            return name[: -len(suffix)]
    return name


async def _checked(file: ArchiveInput) -> AsyncIterator[bytes]:
    """The bytes of a file, which are as many as were said."""
    size = 0
    async for chunk in file.chunks():
        size += len(chunk)
        yield chunk
    if size != file.size:
        raise RuleViolation(f"{file.name} has {size:,} bytes, and {file.size:,} were expected")


async def _deflated(chunks: AsyncIterator[bytes]) -> AsyncGenerator[bytes]:
    """A gzip file without a time or a name in it."""
    deflate = zlib.compressobj(_LEVEL, zlib.DEFLATED, WBITS)
    async for chunk in chunks:
        packed = await asyncio.to_thread(deflate.compress, chunk)
        if packed:
            yield packed
    yield await asyncio.to_thread(deflate.flush)


async def _tar(files: Sequence[ArchiveInput]) -> AsyncGenerator[bytes]:
    for file in files:
        header = tarfile.TarInfo(file.name)
        header.size = file.size
        header.mtime = int((file.changed or _EPOCH).timestamp())
        yield header.tobuf(tarfile.PAX_FORMAT, "utf-8", "strict")
        async for chunk in _checked(file):
            yield chunk
        if padding := -file.size % tarfile.BLOCKSIZE:
            yield bytes(padding)
    yield bytes(2 * tarfile.BLOCKSIZE)


async def _zipped(files: Sequence[ArchiveInput], password: str | None) -> AsyncGenerator[bytes]:
    salts = _Salts(files, password)
    pulled: list[PulledBytes] = []

    def content(file: ArchiveInput) -> Iterator[bytes]:
        while piece := pulled[-1].read():
            yield piece
        if (failure := pulled[-1].failure) is not None:
            raise failure

    from stream_zip import ZIP_AUTO, stream_zip

    def entries() -> Iterator[tuple[str, datetime, int, object, Iterator[bytes]]]:
        for file in files:
            pulled.append(PulledBytes(_checked(file), loop))
            salts.current = file
            changed = min(max(file.changed or _EPOCH, _EPOCH), _LATEST)
            method = ZIP_AUTO(file.size, level=_LEVEL)
            yield file.name, changed.astimezone(UTC), _MODE, method, content(file)

    loop = asyncio.get_running_loop()
    archive = stream_zip(
        entries(),  # type: ignore[arg-type]
        chunk_size=_PIECE,
        extended_timestamps=False,
        # The library writes it as Latin-1; other programs expect UTF-8.
        password=None if password is None else password.encode().decode("latin-1"),
        get_crypto_random=salts.salt,
    )
    async with aclosing(from_iterator(iter(archive))) as pieces:
        async for piece in pieces:
            yield piece


class _Salts:
    """Salts of encrypted files: others for other content, the same when it is done again."""

    def __init__(self, files: Sequence[ArchiveInput], password: str | None) -> None:
        self._key = (password or "").encode()
        self._places = {id(file): place for place, file in enumerate(files)}
        self.current: ArchiveInput | None = None

    def salt(self, size: int) -> bytes:
        file = self.current
        assert file is not None, "a file is being written"
        text = f"{self._places[id(file)]}\0{file.name}\0{file.size}\0{file.sha256}"
        return hmac.digest(self._key, text.encode(), hashlib.sha256)[:size]
