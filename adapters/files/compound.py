"""Names, streams and objects of a compound file, the container of old Office files and mails.

Source: MS-CFB, 2.2 (header), 2.3 to 2.5 (chains of sectors), 2.6 (directory).
"""

import re
import struct
from collections.abc import Iterator, Mapping, Sequence
from functools import lru_cache
from pathlib import Path
from typing import BinaryIO, Final

from adapters.files import limits

COMPOUND_HEAD: Final = b"\xd0\xcf\x11\xe0\xa1\xb1\x1a\xe1"
_HEADER: Final = 512
_ENTRY: Final = 128
_SMALL: Final = 64
"""Bytes of a sector of a small stream."""
_HEADER_SECTORS: Final = 109
"""Sectors of the allocation table that the header names itself."""
_LAST_SECTOR: Final = 0xFFFFFFFA
_LAST_ENTRY: Final = 0xFFFFFFFA
_MOST_ENTRIES: Final = 20_000
"""Entries of a directory that are looked at; an Outlook message with many files holds some
thousand."""


class DamagedCompound(Exception):
    """The directory of the compound file cannot be read."""


def top_level_names(path: Path) -> frozenset[str]:
    """Names of the streams and storages at the top, in lower case.

    Names further down, of documents embedded in this one, are left out. Memory and time are
    bounded, however the file's chains are tied.

    Raises:
        DamagedCompound: The directory is cut off or contradicts itself.
    """
    with path.open("rb") as file:
        try:
            return _Directory(file).top_level_names()
        except (struct.error, IndexError, UnicodeDecodeError) as error:
            raise DamagedCompound(str(error)) from error


def holds_top_level(file: BinaryIO, name: str) -> bool:
    """Whether a file that is open has a stream or storage of that name, in lower case, at its top.

    Raises:
        DamagedCompound: The directory is cut off or contradicts itself.
    """
    try:
        return name in _Directory(file).top_level_names()
    except (struct.error, IndexError, UnicodeDecodeError) as error:
        raise DamagedCompound(str(error)) from error


def read_stream(path: Path, names: Sequence[str]) -> Iterator[bytes]:
    """A stream at the top, sector by sector.

    Args:
        path: The file.
        names: What it may be called, in lower case; the first that is there counts.

    Raises:
        DamagedCompound: The file is cut off or contradicts itself, or has no such stream.
    """
    with path.open("rb") as file:
        yield from read_open_stream(file, names)


def read_open_stream(file: BinaryIO, names: Sequence[str]) -> Iterator[bytes]:
    """The same of a file that is open."""
    try:
        yield from _Directory(file).stream(names)
    except (struct.error, IndexError, UnicodeDecodeError) as error:
        raise DamagedCompound(str(error)) from error


def whole_stream(path: Path, *names: str) -> bytes:
    """A stream at the top of an old Office file.

    Raises:
        DamagedCompound: It is not there, or is damaged.
    """
    found = bytearray()
    for sector in read_stream(path, names):
        found += sector
        if len(found) > limits.OFFICE_BYTES:
            raise DamagedCompound("a stream does not end")
    return bytes(found)


Streams = Mapping[str, bytes]
"""Directory entries of the streams and storages in a storage, by name, in lower case."""


class CompoundObjects:
    """Objects of other programs in an old Office file: each is a storage with streams.

    Args:
        file: Open for reading; it stays open as long as objects are read.

    Raises:
        DamagedCompound: The directory is cut off or contradicts itself.
    """

    def __init__(self, file: BinaryIO) -> None:
        try:
            self._directory = _Directory(file)
            self._top = self._directory.children()
        except (struct.error, IndexError, UnicodeDecodeError) as error:
            raise DamagedCompound(str(error)) from error

    def within(self, pool: str | None, name: re.Pattern[str]) -> Iterator[Streams]:
        """What is in each storage of such a name.

        Args:
            pool: The storage at the top that holds them; None: they are at the top themselves.
            name: Matches all of a name, in lower case.

        Raises:
            DamagedCompound: The directory is cut off or contradicts itself.
        """
        try:
            held = self._top
            if pool is not None:
                held = self._directory.children(held[pool]) if pool in held else {}
            for called, entry in held.items():
                if name.fullmatch(called):
                    yield self._directory.children(entry)
        except (struct.error, IndexError, UnicodeDecodeError) as error:
            raise DamagedCompound(str(error)) from error

    def content(self, entry: bytes, most: int) -> bytes:
        """The bytes of a stream.

        Raises:
            DamagedCompound: It is cut off, or has more bytes than may be read.
        """
        try:
            return self._directory.content(entry, most)
        except (struct.error, IndexError) as error:
            raise DamagedCompound(str(error)) from error


def with_own_workbook(path: Path) -> bytes | None:
    """An old workbook whose cells a reader finds that takes the first stream of their name.

    Such a reader takes those of a workbook that is embedded in it, where these come first.

    Returns:
        The file, with the streams of embedded workbooks under other names; None: it finds its own
        cells as it is.

    Raises:
        DamagedCompound: The directory is cut off or contradicts itself.
    """
    with path.open("rb") as file:
        try:
            inner = _Directory(file).in_front_of(("workbook", "book"))
        except (struct.error, IndexError, UnicodeDecodeError) as error:
            raise DamagedCompound(str(error)) from error
    if not inner:
        return None
    content = bytearray(path.read_bytes())
    for place in inner:
        content[place : place + 1] = b"_"
    return bytes(content)


class _Directory:
    def __init__(self, file: BinaryIO) -> None:
        self._file = file
        self._table_of = lru_cache(maxsize=4)(self._read_table)
        header = file.read(_HEADER)
        (shift,) = struct.unpack_from("<H", header, 30)
        if shift not in (9, 12):
            raise DamagedCompound(f"sectors of 2**{shift} bytes")
        self._sector_bytes = 1 << shift
        (self._start,) = struct.unpack_from("<L", header, 48)
        self._small_bytes, self._small_table = struct.unpack_from("<2L", header, 56)
        (self._more_sectors,) = struct.unpack_from("<L", header, 68)
        self._table_sectors = struct.unpack_from(f"<{_HEADER_SECTORS}L", header, 76)
        self._entries: list[bytes] = []
        self._places: list[int] = []
        """Of the entries in the file."""

    def top_level_names(self) -> frozenset[str]:
        return frozenset(self.children())

    def stream(self, names: Sequence[str]) -> Iterator[bytes]:
        found = self.children()
        entry = next((found[name] for name in names if name in found), None)
        if entry is None:
            raise DamagedCompound("the stream is missing")
        yield from self._sectors(entry)

    def content(self, entry: bytes, most: int) -> bytes:
        (size,) = struct.unpack_from("<L", entry, 120)
        if size > most:
            raise DamagedCompound(f"a stream of {size:,} bytes")
        found = b"".join(self._sectors(entry))
        if len(found) < size:
            raise DamagedCompound("a stream is cut off")
        return found

    def _sectors(self, entry: bytes) -> Iterator[bytes]:
        start, size = struct.unpack_from("<2L", entry, 116)
        sectors = self._small(start) if size < self._small_bytes else self._chain(start)
        for content in sectors:
            yield content[:size]
            size -= len(content)
            if size <= 0:
                return

    def _chain(self, sector: int) -> Iterator[bytes]:
        steps = self._file.seek(0, 2) // self._sector_bytes
        while sector < _LAST_SECTOR:
            yield self._sector(sector)
            sector = self._next(sector)
            steps -= 1
            if steps < 0:
                raise DamagedCompound("a chain of sectors does not end")

    def _small(self, sector: int) -> Iterator[bytes]:
        """Sectors of 64 bytes, which all lie in one stream of the file."""
        (start,) = struct.unpack_from("<L", self._entries[0], 116)
        table = b"".join(self._chain(self._small_table))
        content = b"".join(self._chain(start))
        for _ in range(self._small_bytes // _SMALL + 1):
            if sector >= _LAST_SECTOR:
                return
            yield content[sector * _SMALL : (sector + 1) * _SMALL]
            (sector,) = struct.unpack_from("<L", table, sector * 4)

    def in_front_of(self, names: Sequence[str]) -> Sequence[int]:
        """Where in the file the names of inner streams are that come before the one at the top."""
        top = self.children()
        own = next((top[name] for name in names if name in top), None)
        inner: list[int] = []
        for name in names:
            for entry, place in zip(self._entries, self._places, strict=True):
                if entry is own:
                    return inner
                if _name(entry) == name:
                    inner.append(place)
        return ()

    def children(self, storage: bytes | None = None) -> dict[str, bytes]:
        """Directory entries in a storage, or at the top, by name, in lower case."""
        if not self._entries:
            self._read_entries()
        (child,) = struct.unpack_from("<L", storage or self._entries[0], 76)
        names: dict[str, bytes] = {}
        seen: set[int] = set()
        waiting = [child]
        while waiting:
            number = waiting.pop()
            if number >= _LAST_ENTRY or number in seen:
                continue
            seen.add(number)
            entry = self._entries[number]
            names[_name(entry)] = entry
            waiting += struct.unpack_from("<2L", entry, 68)
        return names

    def _read_entries(self) -> None:
        sector = self._start
        while sector < _LAST_SECTOR:
            content = self._sector(sector)
            starts = range(0, len(content), _ENTRY)
            self._entries += [content[at : at + _ENTRY] for at in starts]
            self._places += [(sector + 1) * self._sector_bytes + at for at in starts]
            if len(self._entries) > _MOST_ENTRIES:
                raise DamagedCompound("the directory does not end")
            sector = self._next(sector)

    def _next(self, sector: int) -> int:
        """The sector that follows in its chain, by the allocation table."""
        table, place = divmod(sector, self._sector_bytes // 4)
        return struct.unpack_from("<L", self._table_of(table), place * 4)[0]

    def _read_table(self, number: int) -> bytes:
        return self._sector(self._table_sector(number))

    def _table_sector(self, number: int) -> int:
        """Where a part of the allocation table is: in the header, or in a chain of lists."""
        if number < _HEADER_SECTORS:
            return self._table_sectors[number]
        listed = self._sector_bytes // 4 - 1
        steps, place = divmod(number - _HEADER_SECTORS, listed)
        sector = self._more_sectors
        for _ in range(steps):
            (sector,) = struct.unpack_from("<L", self._sector(sector), listed * 4)
        return struct.unpack_from("<L", self._sector(sector), place * 4)[0]

    def _sector(self, number: int) -> bytes:
        if number >= _LAST_SECTOR:
            raise DamagedCompound("a chain of sectors leads nowhere")
        self._file.seek((number + 1) * self._sector_bytes)
        content = self._file.read(self._sector_bytes)
        if not content:
            raise DamagedCompound("a sector lies behind the end of the file")
        return content


def _name(entry: bytes) -> str:
    """Of a directory entry, in lower case."""
    (length,) = struct.unpack_from("<H", entry, 64)
    return entry[: max(min(length, 64) - 2, 0)].decode("utf-16-le").casefold()
