"""Archives are made and taken apart file by file, within limits.

ZIP archives, read by their directory.

Source: APPNOTE.TXT of PKWARE; the AES extra field: "AES Encryption Information" of WinZip.
"""

import asyncio
import hashlib
import hmac
import io
import stat
import struct
import tarfile
import zipfile
import zlib
from collections.abc import AsyncGenerator, AsyncIterator, Callable, Iterator, Sequence
from contextlib import aclosing
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, BinaryIO, Final, Protocol, TypeVar

from adapters.files.faults import DAMAGE, is_of_disk
from adapters.files.package import opened_zip
from adapters.ports.errors import UnreadableDocument
from adapters.ports.transfers import ArchiveInput, ArchiveMember, ExtractionLimits
from adapters.threads import PulledBytes, from_iterator
from workflows.shared.errors import RuleViolation
from workflows.transfers.paths import ArchiveNames
from workflows.transfers.settings import ArchiveFormat

RATIO_FREE_BYTES: Final = 64 << 20
"""Archives that unpack to less may have any ratio."""


class Bounds:
    """Counts files and bytes of one archive.

    Args:
        limits: What is allowed.
        packed: Bytes of the archive.
    """

    def __init__(self, limits: ExtractionLimits, packed: int) -> None:
        self._limits = limits
        self._packed = packed
        self._files = 0
        self._bytes = 0

    def file(self) -> None:
        """One more file.

        Raises:
            UnreadableDocument: It is one too many.
        """
        self._files += 1
        if self._files > self._limits.files:
            raise UnreadableDocument(
                f"it holds more than {self._limits.files:,} files (AtMost); it was not unpacked"
            )

    def unpacked(self, size: int) -> None:
        """Some more bytes.

        Raises:
            UnreadableDocument: They are too many, at all or for the archive's size.
        """
        self._bytes += size
        if self._bytes > self._limits.bytes:
            raise UnreadableDocument(
                f"it unpacks to more than {self._limits.bytes:,} bytes (BytesAtMost)"
            )
        allowed = max(RATIO_FREE_BYTES, self._limits.ratio * self._packed)
        if self._bytes > allowed:
            raise UnreadableDocument(
                f"it unpacks to more than {self._limits.ratio:,} times its size (RatioAtMost), as "
                "a bomb does"
            )

    def end(self) -> None:
        """Nothing more comes.

        Raises:
            UnreadableDocument: It held no file.
        """
        if not self._files:
            raise UnreadableDocument("it holds no files")


WBITS: Final = 16 + zlib.MAX_WBITS
_BLOCK: Final = 1 << 18
_PIECE: Final = 1 << 20


def unzipped(file: BinaryIO) -> Iterator[bytes]:
    """The content, in pieces of 1 MB at most.

    Raises:
        UnreadableDocument: It is damaged, cut off, or followed by other bytes.
    """
    pending = file.read(_BLOCK)
    if not pending:
        raise _damaged()
    while pending:
        inflate = zlib.decompressobj(WBITS)
        while not inflate.eof:
            pending = pending or file.read(_BLOCK)
            if not pending:
                raise _damaged()
            try:
                piece = inflate.decompress(pending, _PIECE)
            except zlib.error as error:
                raise _damaged() from error
            pending = inflate.unconsumed_tail
            if piece:
                yield piece
        pending = _after_padding(inflate.unused_data, file)


def _after_padding(pending: bytes, file: BinaryIO) -> bytes:
    """What follows a member, without the zeros that tapes and some programs add."""
    while not (rest := pending.lstrip(b"\0")):
        pending = file.read(_BLOCK)
        if not pending:
            return b""
    return rest


def _damaged() -> UnreadableDocument:
    return UnreadableDocument("it is a damaged gzip file, or cut off")


_EXTENDED: Final = frozenset(
    {
        tarfile.XHDTYPE,
        tarfile.XGLTYPE,
        tarfile.SOLARIS_XHDTYPE,
        tarfile.GNUTYPE_LONGNAME,
        tarfile.GNUTYPE_LONGLINK,
    }
)
_EXTENDED_BYTES: Final = 1 << 20
"""Of a header that is held in memory; names are shorter."""
_MAGIC_AT: Final = 257
_HEADER: Final = 512


class ReadBytes(Protocol):
    """A file of which no more than this is needed."""

    def read(self, size: int = -1, /) -> bytes:
        """The next bytes."""
        ...


class _Header(tarfile.TarInfo):
    """A header; one that would fill the memory is refused before it is read."""

    @classmethod
    def fromtarfile(cls, tarfile: tarfile.TarFile) -> "_Header":
        try:
            return super().fromtarfile(tarfile)
        except _END:
            # The library takes any end for one; only this is how an archive ends.
            tarfile.ended = True  # type: ignore[attr-defined]
            raise

    def _proc_member(self, tarfile: tarfile.TarFile) -> Any:
        if self.type in _EXTENDED and self.size > _EXTENDED_BYTES:
            raise UnreadableDocument("a header in it is too long, as a bomb's is")
        return super()._proc_member(tarfile)  # type: ignore[misc]


_END: Any = tarfile.EOFHeaderError  # type: ignore[attr-defined]


def is_tar(head: bytes) -> bool:
    """Whether a file begins as a tar archive does."""
    if head[_MAGIC_AT : _MAGIC_AT + 5] == b"ustar":
        return True
    try:
        tarfile.TarInfo.frombuf(head[:_HEADER], "utf-8", "surrogateescape")
    except tarfile.HeaderError:
        return False
    return True


def tar_members(file: ReadBytes, names: ArchiveNames) -> Iterator[tuple[str, Iterator[bytes]]]:
    """The files, each to be read to its end before the next.

    Raises:
        UnreadableDocument: It is damaged or cut off, holds more than files and folders, or
            another archive follows it.
    """
    try:
        with _opened(file) as archive:
            while (member := archive.next()) is not None:
                _forget(archive)
                if member.isdir():
                    continue
                raw = member.name.encode("utf-8", "surrogateescape")
                name = names.taken(raw, is_utf8="path" in member.pax_headers)
                _require_file(member, name)
                yield name, _tar_content(archive, member)
            if not getattr(archive, "ended", False):
                raise _damaged_tar()
            _require_last(archive.fileobj)
    except (tarfile.TarError, EOFError, ValueError, OverflowError) as error:
        raise _damaged_tar() from error


def _opened(file: Any) -> tarfile.TarFile:
    """Only `read` of the file is called; the library's types ask for more."""
    return tarfile.open(
        fileobj=file,
        mode="r|",
        tarinfo=_Header,
        bufsize=_BLOCK,
        encoding="utf-8",
        errors="surrogateescape",
    )


def _forget(archive: Any) -> None:
    """The library keeps every header that it has read."""
    archive.members.clear()


def _require_file(member: tarfile.TarInfo, name: str) -> None:
    if member.issym() or member.islnk():
        raise UnreadableDocument(f"{name!r} in it is a link; links are not followed")
    if member.issparse():
        raise UnreadableDocument(f"{name!r} in it is a sparse file; have it archived as a whole")
    if not member.isreg():
        raise UnreadableDocument(f"{name!r} in it is a device or of an unknown kind, and no file")


def _require_last(rest: Any) -> None:
    """Refuse archives that were put one behind the other: only files of the first would be read.

    Reading to the end also shows whether a compressed one is whole.
    """
    while blocks := rest.read(_BLOCK):
        for start in range(0, len(blocks), _HEADER):
            block = blocks[start : start + _HEADER]
            if any(block) and is_tar(block):
                raise UnreadableDocument(
                    "another tar archive follows its end; send each of them by itself"
                )


def _tar_content(archive: tarfile.TarFile, member: tarfile.TarInfo) -> Iterator[bytes]:
    reader = archive.extractfile(member)
    assert reader is not None, "it is a file"
    size = 0
    try:
        while piece := reader.read(_PIECE):
            size += len(piece)
            yield piece
    except tarfile.TarError as error:
        raise _damaged_tar() from error
    if size != member.size:
        raise _damaged_tar()


def _damaged_tar() -> UnreadableDocument:
    return UnreadableDocument("it is a damaged tar archive, or cut off")


_ZIP_PIECE: Final = 1 << 18
_ZIP_END: Final = b"PK\x05\x06"
_TAIL: Final = 22 + 0xFFFF
_SPANNED: Final = b"PK\x07\x08"
_ENCRYPTED: Final = 0x1
_UNREADABLE_FLAGS: Final = 0x20 | 0x40 | 0x2000
"""Patched data, strong encryption, masked headers."""
_UTF8: Final = 0x800
_FIELD: Final = struct.Struct("<HH")
_UNICODE_PATH: Final = 0x7075
_AES: Final = 99
_DEFLATE64: Final = 9
_METHODS: Final = frozenset(
    {zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED, zipfile.ZIP_BZIP2, _DEFLATE64, _AES}
)
_LOCAL_HEADER: Final = 30
_DAMAGED: Final = "it is a damaged ZIP archive, or cut off"


@dataclass(frozen=True, slots=True)
class ZipMember:
    """One file of an archive, checked by the directory."""

    name: str
    raw: bytes
    info: zipfile.ZipInfo

    @property
    def encrypted(self) -> bool:
        """It has a password."""
        return bool(self.info.flag_bits & _ENCRYPTED)


def zip_members(
    path: Path, names: ArchiveNames, limits: ExtractionLimits, password: str | None
) -> Iterator[tuple[ZipMember, Iterator[bytes]]]:
    """The files; all of them are checked before the first is unpacked.

    Raises:
        UnreadableDocument: It is damaged, hostile, or encrypted and there is no password.
    """
    with path.open("rb") as file:
        _require_one_part(file)
        with opened_zip(file, "archive") as archive:
            _require_first(file, archive.infolist())
            found = _checked(archive.infolist(), names, password)
            _require_bounds(found, archive.start_dir, limits)
            for member in found:
                yield member, _zip_content(archive, file, member, password)


def _require_one_part(file: BinaryIO) -> None:
    head = file.read(4)
    size = file.seek(0, 2)
    file.seek(max(size - _TAIL, 0))
    tail = file.read()
    end = tail.rfind(_ZIP_END)
    disks = struct.unpack_from("<HH", tail, end + 4) if 0 <= end <= len(tail) - 8 else (0, 0)
    if head == _SPANNED or any(number not in (0, 0xFFFF) for number in disks):
        raise UnreadableDocument("it is one part of an archive that was split into several")
    file.seek(0)


def _require_first(file: BinaryIO, infos: Sequence[zipfile.ZipInfo]) -> None:
    """Refuse archives that were put one behind the other: only files of the last would be read."""
    first = min((info.header_offset for info in infos), default=0)
    if first <= 0:
        return
    start = max(first - _TAIL, 0)
    file.seek(start)
    if _ZIP_END in file.read(first - start):
        raise UnreadableDocument(
            "another ZIP archive stands before it; send each of them by itself"
        )


def _checked(
    infos: Sequence[zipfile.ZipInfo], names: ArchiveNames, password: str | None
) -> Sequence[ZipMember]:
    found: list[ZipMember] = []
    unsaid = [info for info in infos if _utf8_name(info) is None]
    names.guess(b"\n".join(map(_raw_name, unsaid)), _encoding)
    for info in infos:
        mode, raw, utf8 = info.external_attr >> 16, _raw_name(info), _utf8_name(info)
        if raw.endswith((b"/", b"\\")) or stat.S_ISDIR(mode):
            continue
        own = names.taken(raw if utf8 is None else utf8, is_utf8=utf8 is not None)
        member = ZipMember(own, raw, info)
        if stat.S_ISLNK(mode):
            raise UnreadableDocument(f"{member.name!r} in it is a link; links are not followed")
        if stat.S_IFMT(mode) not in (0, stat.S_IFREG):
            raise UnreadableDocument(f"{member.name!r} in it is a device, and no file")
        if info.flag_bits & _UNREADABLE_FLAGS:
            raise UnreadableDocument(
                f"{member.name!r} in it is encrypted or packed in a way of PKWARE's that is not "
                "read; have it encrypted with AES"
            )
        if info.compress_type not in _METHODS:
            raise UnreadableDocument(
                f"{member.name!r} in it is packed by method {info.compress_type}, which is not read"
            )
        if member.encrypted and password is None:
            raise UnreadableDocument("it is encrypted, and no password is set (Password)")
        found.append(member)
    return found


def _raw_name(info: zipfile.ZipInfo) -> bytes:
    return info.orig_filename.encode("utf-8" if info.flag_bits & _UTF8 else "cp437")


def _utf8_name(info: zipfile.ZipInfo) -> bytes | None:
    """The name in UTF-8, which a flag or a field of Info-ZIP says it is; None: neither does."""
    raw, rest = _raw_name(info), info.extra
    if info.flag_bits & _UTF8:
        return raw
    while len(rest) >= _FIELD.size:
        kind, size = _FIELD.unpack_from(rest)
        field, rest = rest[_FIELD.size :][:size], rest[_FIELD.size + size :]
        if kind == _UNICODE_PATH and field[1:5] == zlib.crc32(raw).to_bytes(4, "little"):
            return field[5:]
    return None


def _encoding(names: bytes) -> str:
    # It takes memory that most processes have no use for.
    from adapters.files.encodings import name_encoding

    return name_encoding(names)


def _require_bounds(found: Sequence[ZipMember], directory: int, limits: ExtractionLimits) -> None:
    """Refuse what the directory already says to be too much, or to lie in two files at once."""
    stated = sum(member.info.file_size for member in found)
    if stated > limits.bytes:
        raise UnreadableDocument(
            f"it unpacks to {stated:,} bytes, and {limits.bytes:,} are allowed (BytesAtMost)"
        )
    ordered = sorted((member.info for member in found), key=lambda info: info.header_offset)
    ends = [*(info.header_offset for info in ordered[1:]), directory][: len(ordered)]
    for info, end in zip(ordered, ends, strict=True):
        if info.header_offset < 0:
            raise UnreadableDocument(_DAMAGED)
        if info.header_offset + _LOCAL_HEADER + info.compress_size > end:
            raise UnreadableDocument("files in it lie upon each other, as only in a bomb")


def _zip_content(
    archive: zipfile.ZipFile, file: BinaryIO, member: ZipMember, password: str | None
) -> Iterator[bytes]:
    size = 0
    if member.encrypted or member.info.compress_type == _DEFLATE64:
        pieces = _streamed(file, member, password)
    else:
        pieces = _read(archive, member)
    for piece in pieces:
        size += len(piece)
        if size > member.info.file_size:
            break
        yield piece
    if size != member.info.file_size:
        raise UnreadableDocument(f"{_DAMAGED}: {member.name!r} has another size than it states")


def _read(archive: zipfile.ZipFile, member: ZipMember) -> Iterator[bytes]:
    try:
        with archive.open(member.info) as part:
            while piece := part.read(_ZIP_PIECE):
                yield piece
    except DAMAGE as error:
        if is_of_disk(error):
            raise
        raise UnreadableDocument(f"{_DAMAGED} ({member.name!r})") from error


def _streamed(file: BinaryIO, member: ZipMember, password: str | None) -> Iterator[bytes]:
    """Unpack one file from its place on; what the library does not know of is not asked for."""
    # With its ciphers it takes 4 MB of memory, which few workers need.
    from stream_unzip import (
        IncorrectPasswordError,
        NotStreamUnzippable,
        UnzipError,
        stream_unzip,
    )

    secret = None if password is None else password.encode()
    try:
        found = stream_unzip(_from(file, member.info.header_offset), secret, _ZIP_PIECE)
        name, _, pieces = next(found)
        if name != member.raw:
            raise UnreadableDocument(f"{_DAMAGED}: {member.name!r} has another name in its place")
        yield from pieces
    except IncorrectPasswordError as error:
        raise UnreadableDocument("the password does not open it") from error
    except NotStreamUnzippable as error:
        raise UnreadableDocument(
            f"{member.name!r} in it is encrypted, not packed, and of unknown size; have it packed"
        ) from error
    except (UnzipError, StopIteration, ValueError, struct.error) as error:
        reason = "; or the password is another one" if member.encrypted else ""
        raise UnreadableDocument(f"{_DAMAGED}{reason} ({member.name!r})") from error


def _from(file: BinaryIO, place: int) -> Iterator[bytes]:
    while True:
        file.seek(place)
        piece = file.read(_ZIP_PIECE)
        if not piece:
            return
        place += len(piece)
        yield piece


T = TypeVar("T")
Found = tuple[str, bool, Iterator[bytes]]
"""Name, whether it was encrypted, content."""
_LEVEL: Final = 6
_HEAD: Final = 512
_MODE: Final = 0o100644
_EPOCH: Final = datetime(1980, 1, 1, tzinfo=UTC)
"""The earliest time in a ZIP archive, for files without one."""
_LATEST: Final = datetime(2107, 12, 31, tzinfo=UTC)
_ZIP: Final = (b"PK\x03\x04", b"PK\x05\x06", b"PK\x07\x08")
_GZIP: Final = b"\x1f\x8b"
_SUFFIXES: Final = (".gz", ".gzip", ".z")


class ArchiveFiles:
    """Makes archives and takes them apart, one file at a time."""

    def compress(
        self, format: ArchiveFormat, files: Sequence[ArchiveInput], password: str | None = None
    ) -> AsyncGenerator[bytes]:
        """Make an archive of files; the same bytes for the same files.

        Args:
            format: GZIP takes one file.
            files: In the order in which they stand in the archive.
            password: Of a ZIP archive, whose files are AES-256 then.
        """
        match format:
            case ArchiveFormat.ZIP:
                return _zipped(files, password)
            case ArchiveFormat.GZIP:
                if len(files) != 1:
                    raise RuleViolation("a gzip file holds one file; use tar.gz or zip for several")
                return _deflated(_checked_name(files[0]))
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
        """Yield the files of an archive; archives among them stay archives.

        Args:
            source: The archive.
            name: What it is called: a gzip file's content is called so, without the suffix.
            limits: What it may ask for.
            format: None: by structure.
            password: Of encrypted files.
            encoding: Of names that are not marked as UTF-8. Those of ZIP archives that are not
                UTF-8 either are read in the encoding that is found for them.
            flatten: Folders are dropped from names.

        Raises:
            UnreadableDocument: It is damaged, encrypted without a password, or hostile: it holds
                links or devices, or unpacks to too much.
            InvalidDocument: A name in it leaves its folder, or is there twice.
        """
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
    for member, pieces in zip_members(source, names, limits, password):
        yield member.name, member.encrypted, pieces


def _of_stream(
    source: Path, name: str, kind: ArchiveFormat, names: ArchiveNames, bounds: Bounds
) -> Iterator[Found]:
    with source.open("rb") as file:
        if kind is ArchiveFormat.TAR:
            for own, pieces in tar_members(file, names):
                yield own, False, pieces
            return
        content = _counted(unzipped(file), bounds)
        if kind is ArchiveFormat.GZIP:
            yield names.taken(_unzipped_name(name).encode(), is_utf8=True), False, content
            return
        for own, pieces in tar_members(_Unzipped(content), names):
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
        if is_tar(head):
            return ArchiveFormat.TAR
    raise UnreadableDocument("it is not an archive that is read (ZIP, gzip or tar)")


def _holds_tar(file: BinaryIO) -> bool:
    return is_tar(_Unzipped(unzipped(file)).read(_HEAD))


def _unzipped_name(name: str) -> str:
    lower = name.lower()
    if lower.endswith(".tgz"):
        return f"{name[:-4]}.tar"
    for suffix in _SUFFIXES:
        if lower.endswith(suffix) and len(lower) > len(suffix):
            return name[: -len(suffix)]
    return name


async def _checked_name(file: ArchiveInput) -> AsyncIterator[bytes]:
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
        async for chunk in _checked_name(file):
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
            pulled.append(PulledBytes(_checked_name(file), loop))
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
