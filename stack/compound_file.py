"""Compound files, which messages of Outlook are kept in.

Source: [MS-CFB] of Microsoft's open specifications.
"""

import struct
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Final

Content = Mapping[str, "bytes | Content"]
"""Streams, and storages with what is in them."""

_SECTOR = 512
_MINI_SECTOR = 64
_SMALLEST_STREAM = 4096
"""Shorter ones are kept in mini sectors."""
_ENTRY = 128
_FREE, _END, _FAT = 0xFFFFFFFF, 0xFFFFFFFE, 0xFFFFFFFD
_STORAGE, _STREAM, _ROOT = 1, 2, 5
_HEADER_FAT_SECTORS = 109
_MAGIC: Final = b"\xd0\xcf\x11\xe0\xa1\xb1\x1a\xe1"


@dataclass
class _Entry:
    name: str
    kind: int
    right: int = _FREE
    child: int = _FREE
    start: int = _END
    size: int = 0

    def pack(self) -> bytes:
        name = self.name.encode("utf-16-le")
        return struct.pack(
            "<64sHBBLLL36xLLL",
            *(name, len(name) + 2, self.kind, 1, _FREE, self.right, self.child),
            *(self.start, self.size, 0),
        )


@dataclass
class _Chains:
    """Sectors of one size, and which follows which."""

    size: int
    body: bytearray = field(default_factory=bytearray)
    following: list[int] = field(default_factory=list[int])

    def add(self, content: bytes) -> int:
        """Keep some bytes; their first sector."""
        if not content:
            return _END
        start = len(self.following)
        count = -(-len(content) // self.size)
        self.following += [*range(start + 1, start + count), _END]
        self.body += content.ljust(count * self.size, b"\0")
        return start


def compound_file(content: Content) -> bytes:
    """A compound file, the same for the same content.

    Raises:
        ValueError: It would have more than 7 MB, and need another kind of sectors.
    """
    sectors, mini = _Chains(_SECTOR), _Chains(_MINI_SECTOR)
    entries = [_Entry("Root Entry", _ROOT)]
    _place(entries[0], content, entries, sectors, mini)
    mini_start = sectors.add(_numbers(mini.following, _SECTOR))
    mini_sectors = -(-len(mini.following) * 4 // _SECTOR)
    entries[0].start, entries[0].size = sectors.add(bytes(mini.body)), len(mini.body)
    blank = struct.pack("<68xLLL48x", _FREE, _FREE, _FREE)
    directory = b"".join(entry.pack() for entry in entries)
    directory += blank * (-len(entries) % (_SECTOR // _ENTRY))
    directory_start = sectors.add(directory)
    fat_start = len(sectors.following)
    fat_count = 1
    while fat_count * (_SECTOR // 4) < fat_start + fat_count:
        fat_count += 1
    if fat_count > _HEADER_FAT_SECTORS:
        raise ValueError("the compound file would be too large to be written so simply")
    fat = _numbers([*sectors.following, *[_FAT] * fat_count], _SECTOR)
    header = struct.pack(
        "<8s16xHHHHH6xLLLLLLLLL",
        *(_MAGIC, 0x3E, 3, 0xFFFE, 9, 6, 0, fat_count, directory_start, 0, _SMALLEST_STREAM),
        *(mini_start, mini_sectors, _END, 0),
    )
    listed = [*range(fat_start, fat_start + fat_count)]
    header += struct.pack("<109L", *listed, *[_FREE] * (_HEADER_FAT_SECTORS - fat_count))
    return header + bytes(sectors.body) + fat


def _place(
    parent: _Entry, content: Content, entries: list[_Entry], sectors: _Chains, mini: _Chains
) -> None:
    """Add entries for all that a storage holds; siblings hang on each other's right."""
    before: _Entry | None = None
    # The order in which readers look names up.
    for name in sorted(content, key=lambda name: (len(name), name.upper())):
        held = content[name]
        number = len(entries)
        entry = _Entry(name, _STREAM if isinstance(held, bytes) else _STORAGE)
        entries.append(entry)
        if before is None:
            parent.child = number
        else:
            before.right = number
        before = entry
        if isinstance(held, bytes):
            chains = mini if len(held) < _SMALLEST_STREAM else sectors
            entry.start, entry.size = chains.add(held), len(held)
        else:
            _place(entry, held, entries, sectors, mini)


def _numbers(following: list[int], size: int) -> bytes:
    """A table of sectors, filled up."""
    table = struct.pack(f"<{len(following)}L", *following)
    return table + b"\xff" * (-len(table) % size)
