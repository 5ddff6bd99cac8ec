"""ZIP archives, read by their directory.

Source: APPNOTE.TXT of PKWARE; the AES extra field: "AES Encryption Information" of WinZip.
"""

import stat
import struct
import zipfile
import zlib
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import BinaryIO, Final

from adapters.files.faults import DAMAGE, is_of_disk
from adapters.files.package import opened_zip
from adapters.ports import UnreadableDocument
from adapters.ports.transfer_files import ExtractionLimits
from domain.transfers.archive_names import ArchiveNames

_PIECE: Final = 1 << 18
_END: Final = b"PK\x05\x06"
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


def members(
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
                yield member, _content(archive, file, member, password)


def _require_one_part(file: BinaryIO) -> None:
    head = file.read(4)
    size = file.seek(0, 2)
    file.seek(max(size - _TAIL, 0))
    tail = file.read()
    end = tail.rfind(_END)
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
    if _END in file.read(first - start):
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


def _content(
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
            while piece := part.read(_PIECE):
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
        found = stream_unzip(_from(file, member.info.header_offset), secret, _PIECE)
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
        piece = file.read(_PIECE)
        if not piece:
            return
        place += len(piece)
        yield piece
