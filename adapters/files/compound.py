"""Names and streams at the top of a compound file, the container of old Office files and mails.

Source: MS-CFB, 2.2 (header), 2.3 to 2.5 (chains of sectors), 2.6 (directory).
"""

import struct
from collections.abc import Iterator, Sequence
from functools import lru_cache
from pathlib import Path
from typing import BinaryIO, Final

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


def stream(path: Path, names: Sequence[str]) -> Iterator[bytes]:
    """A stream at the top, sector by sector.

    Args:
        path: The file.
        names: What it may be called, in lower case; the first that is there counts.

    Raises:
        DamagedCompound: The file is cut off or contradicts itself, or has no such stream.
    """
    with path.open("rb") as file:
        yield from stream_of(file, names)


def stream_of(file: BinaryIO, names: Sequence[str]) -> Iterator[bytes]:
    """The same of a file that is open."""
    try:
        yield from _Directory(file).stream(names)
    except (struct.error, IndexError, UnicodeDecodeError) as error:
        raise DamagedCompound(str(error)) from error


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

    def top_level_names(self) -> frozenset[str]:
        return frozenset(self._top_level())

    def stream(self, names: Sequence[str]) -> Iterator[bytes]:
        found = self._top_level()
        entry = next((found[name] for name in names if name in found), None)
        if entry is None:
            raise DamagedCompound("the stream is missing")
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

    def _top_level(self) -> dict[str, bytes]:
        """Directory entries by name, in lower case."""
        self._read_entries()
        (child,) = struct.unpack_from("<L", self._entries[0], 76)
        names: dict[str, bytes] = {}
        seen: set[int] = set()
        waiting = [child]
        while waiting:
            number = waiting.pop()
            if number >= _LAST_ENTRY or number in seen:
                continue
            seen.add(number)
            entry = self._entries[number]
            (length,) = struct.unpack_from("<H", entry, 64)
            name = entry[: max(min(length, 64) - 2, 0)].decode("utf-16-le").casefold()
            names[name] = entry
            waiting += struct.unpack_from("<2L", entry, 68)
        return names

    def _read_entries(self) -> None:
        sector = self._start
        while sector < _LAST_SECTOR:
            content = self._sector(sector)
            self._entries += [content[at : at + _ENTRY] for at in range(0, len(content), _ENTRY)]
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
