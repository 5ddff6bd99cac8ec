"""Old Office files, written by hand: a compound file around the smallest XLS workbook.

Sources: [MS-CFB] and [MS-XLS] of Microsoft's open specifications.
"""

import struct
from collections.abc import Mapping, Sequence

_SECTOR = 512
_FREE, _END, _FAT = 0xFFFFFFFF, 0xFFFFFFFE, 0xFFFFFFFD
_SMALLEST_STREAM = 4096  # shorter ones would need the mini stream


def compound_file(streams: Mapping[str, bytes]) -> bytes:
    """A compound file of one FAT sector, one directory sector and up to three streams."""
    fat = [_FAT, _END]
    entries = [_entry("Root Entry", kind=5, child=1, size=0, start=_END)]
    body = b""
    for n, (name, content) in enumerate(streams.items(), start=1):
        content = content.ljust(_SMALLEST_STREAM, b"\0")
        content = content.ljust(-(-len(content) // _SECTOR) * _SECTOR, b"\0")
        sibling = n + 1 if n < len(streams) else _FREE
        entries.append(_entry(name, kind=2, right=sibling, start=len(fat), size=len(content)))
        count = len(content) // _SECTOR
        fat += [*range(len(fat) + 1, len(fat) + count), _END]
        body += content
    fat_sector = struct.pack("<128L", *fat, *[_FREE] * (128 - len(fat)))
    header = struct.pack(
        "<8s16xHHHHH6xLLLLLLLLL",
        *(b"\xd0\xcf\x11\xe0\xa1\xb1\x1a\xe1", 0x3E, 3, 0xFFFE, 9, 6),
        *(0, 1, 1, 0, _SMALLEST_STREAM, _END, 0, _END, 0),
    )
    header += struct.pack("<109L", 0, *[_FREE] * 108)
    return header + fat_sector + b"".join(entries).ljust(_SECTOR, b"\0") + body


def _entry(
    name: str, *, kind: int, start: int, size: int, child: int = _FREE, right: int = _FREE
) -> bytes:
    encoded = name.encode("utf-16-le")
    return struct.pack(
        "<64sHBBLLL36xLLL",
        *(encoded, len(encoded) + 2, kind, 1, _FREE, right, child, start, size, 0),
    )


def xls(rows: Sequence[Sequence[str | float]]) -> bytes:
    """An XLS workbook (BIFF8) of one sheet, called Data."""
    name = b"\x04\x00Data"
    cells = b"".join(
        _cell(line, column, value)
        for line, row in enumerate(rows)
        for column, value in enumerate(row)
    )
    sheet = _record(0x809, struct.pack("<HHHHLL", 0x600, 0x10, 0, 0, 0, 6)) + cells + _record(0x0A)
    opening = _record(0x809, struct.pack("<HHHHLL", 0x600, 5, 0, 0, 0, 6))
    opening += _record(0x42, struct.pack("<H", 1200))
    length = len(opening) + 4 + 6 + len(name) + 4
    listed = _record(0x85, struct.pack("<LBB", length, 0, 0) + name)
    return compound_file({"Workbook": opening + listed + _record(0x0A) + sheet})


def xls_of(
    cells: Sequence[bytes],
    formats: Sequence[str] = (),
    *,
    date1904: bool = False,
    calculated: bool = False,
) -> bytes:
    """An XLS workbook (BIFF8) of one sheet, called Data.

    Args:
        cells: What `text`, `number`, `rk`, `mulrk`, `error` and `formula` return, by rows.
        formats: Number formats; cell format 0 is General, the next ones are these.
        date1904: Days count from 1904.
        calculated: A program that calculates has saved it.
    """
    opening = _record(0x809, struct.pack("<HHHHLL", 0x600, 5, 0, 0, 0, 6))
    opening += _record(0x42, struct.pack("<H", 1200)) + _record(0x22, bytes([date1904, 0]))
    for n, pattern in enumerate(formats):
        name = struct.pack("<HHB", 164 + n, len(pattern), 1) + pattern.encode("utf-16-le")
        opening += _record(0x41E, name)
    for code in (0, *range(164, 164 + len(formats))):
        opening += _record(0xE0, struct.pack("<HH", 0, code).ljust(20, b"\0"))
    if calculated:
        opening += _record(0x1C1, bytes(8))
    listed = struct.pack("<LBB", len(opening) + 4 + 12 + 4, 0, 0) + b"\x04\x00Data"
    opening += _record(0x85, listed) + _record(0x0A)
    sheet = _record(0x809, struct.pack("<HHHHLL", 0x600, 0x10, 0, 0, 0, 6))
    return compound_file({"Workbook": opening + sheet + b"".join(cells) + _record(0x0A)})


def text(line: int, column: int, value: str) -> bytes:
    """A cell of text; line and column from 0, as in the others."""
    return _cell(line, column, value)


def number(line: int, column: int, value: float, style: int = 0) -> bytes:
    """A cell with a number."""
    return _record(0x203, struct.pack("<HHHd", line, column, style, value))


def rk(line: int, column: int, raw: int, style: int = 0) -> bytes:
    """A cell with a packed number."""
    return _record(0x27E, struct.pack("<HHHL", line, column, style, raw))


def mulrk(line: int, column: int, raws: Sequence[int], style: int = 0) -> bytes:
    """Several cells of a row with packed numbers."""
    packed = b"".join(struct.pack("<HL", style, raw) for raw in raws)
    last = struct.pack("<H", column + len(raws) - 1)
    return _record(0xBD, struct.pack("<HH", line, column) + packed + last)


def error(line: int, column: int, code: int) -> bytes:
    """A cell with an error."""
    return _record(0x205, struct.pack("<HHHBB", line, column, 0, code, 1))


def formula(line: int, column: int, result: bytes, style: int = 0) -> bytes:
    """A cell with a formula and the eight bytes of its result."""
    where = struct.pack("<HHH", line, column, style)
    return _record(0x06, where + result + bytes(6) + struct.pack("<HB", 3, 0x1E) + b"\0\0")


def colinfo(first: int, last: int, *, hidden: bool) -> bytes:
    """What a range of columns looks like."""
    return _record(0x7D, struct.pack("<HHHHHH", first, last, 2_560, 0, int(hidden), 0))


def _cell(line: int, column: int, value: str | float) -> bytes:
    where = struct.pack("<HHH", line, column, 0)
    if isinstance(value, str):
        text = struct.pack("<HB", len(value), 1) + value.encode("utf-16-le")
        return _record(0x204, where + text)
    return _record(0x203, where + struct.pack("<d", value))


def _record(kind: int, content: bytes = b"") -> bytes:
    return struct.pack("<HH", kind, len(content)) + content
