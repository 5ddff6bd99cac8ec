"""Names at the top of a compound file, the container of old Office files and Outlook messages.

Source: MS-CFB, 2.2 (header), 2.3 and 2.5 (chains of sectors), 2.6 (directory).
"""

import struct
from pathlib import Path
from typing import BinaryIO, Final

COMPOUND_HEAD: Final = b"\xd0\xcf\x11\xe0\xa1\xb1\x1a\xe1"
_HEADER: Final = 512
_ENTRY: Final = 128
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


class _Directory:
    def __init__(self, file: BinaryIO) -> None:
        self._file = file
        header = file.read(_HEADER)
        (shift,) = struct.unpack_from("<H", header, 30)
        if shift not in (9, 12):
            raise DamagedCompound(f"sectors of 2**{shift} bytes")
        self._sector_bytes = 1 << shift
        (self._start,) = struct.unpack_from("<L", header, 48)
        (self._more_sectors,) = struct.unpack_from("<L", header, 68)
        self._table_sectors = struct.unpack_from(f"<{_HEADER_SECTORS}L", header, 76)
        self._entries: list[bytes] = []

    def top_level_names(self) -> frozenset[str]:
        self._read_entries()
        (child,) = struct.unpack_from("<L", self._entries[0], 76)
        names: set[str] = set()
        seen: set[int] = set()
        waiting = [child]
        while waiting:
            number = waiting.pop()
            if number >= _LAST_ENTRY or number in seen:
                continue
            seen.add(number)
            entry = self._entries[number]
            (length,) = struct.unpack_from("<H", entry, 64)
            names.add(entry[: max(min(length, 64) - 2, 0)].decode("utf-16-le").casefold())
            waiting += struct.unpack_from("<2L", entry, 68)
        return frozenset(names)

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
        return struct.unpack_from("<L", self._sector(self._table_sector(table)), place * 4)[0]

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
