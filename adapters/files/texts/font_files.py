"""Which glyphs a TrueType or OpenType font has for which characters.

Source: OpenType specification 1.9, `cmap`.
"""

import struct
from collections.abc import Iterator
from typing import Final

_TABLES: Final = 12
_TABLE: Final = struct.Struct(">4s4xLL")
_UNICODE: Final = frozenset({(0, 3), (0, 4), (3, 1), (3, 10)})
"""Platforms and encodings of subtables whose codes are Unicode."""
_BY_SEGMENTS, _BY_GROUPS = 4, 12


def glyphs_of(font: bytes) -> Iterator[tuple[int, int]]:
    """Characters and their glyphs; none if the font does not say them, or is damaged there."""
    try:
        (count,) = struct.unpack_from(">H", font, 4)
        for number in range(count):
            name, start, size = _TABLE.unpack_from(font, _TABLES + number * _TABLE.size)
            if name == b"cmap":
                yield from _mapped(font[start : start + size])
    except struct.error:
        return


def _mapped(table: bytes) -> Iterator[tuple[int, int]]:
    (count,) = struct.unpack_from(">H", table, 2)
    for number in range(count):
        platform, encoding, start = struct.unpack_from(">HHL", table, 4 + 8 * number)
        (kind,) = struct.unpack_from(">H", table, start)
        if (platform, encoding) in _UNICODE and kind == _BY_SEGMENTS:
            yield from _segments(table[start:])
        elif (platform, encoding) in _UNICODE and kind == _BY_GROUPS:
            yield from _groups(table[start:])


def _segments(table: bytes) -> Iterator[tuple[int, int]]:
    count = struct.unpack_from(">H", table, 6)[0] // 2
    ends = struct.unpack_from(f">{count}H", table, 14)
    starts = struct.unpack_from(f">{count}H", table, 16 + 2 * count)
    deltas = struct.unpack_from(f">{count}H", table, 16 + 4 * count)
    after = 0
    for number, (start, end, delta) in enumerate(zip(starts, ends, deltas, strict=True)):
        place = 16 + 6 * count + 2 * number
        (offset,) = struct.unpack_from(">H", table, place)
        # They are sorted; a file that repeats them would take hours.
        for code in range(max(start, after), end + 1):
            glyph = code
            if offset:
                (glyph,) = struct.unpack_from(">H", table, place + offset + 2 * (code - start))
            if glyph or not offset:
                yield code, (glyph + delta) & 0xFFFF
        after = max(after, end + 1)


def _groups(table: bytes) -> Iterator[tuple[int, int]]:
    (count,) = struct.unpack_from(">L", table, 12)
    for number in range(count):
        first, last, glyph = struct.unpack_from(">LLL", table, 16 + 12 * number)
        for code in range(first, min(last, 0x10FFFF) + 1):
            yield code, glyph + code - first
