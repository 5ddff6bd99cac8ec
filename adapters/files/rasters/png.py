"""Whether a PNG is whole: GDAL passes over damage, and gives pixels that the file does not hold.

Source: https://www.w3.org/TR/png-3/, sections 5 (chunks), 8 (passes) and 10 (compression).
"""

import struct
import zlib
from pathlib import Path
from typing import IO, Any, Final

from adapters.ports import UnreadableDocument

_SIGNATURE: Final = b"\x89PNG\r\n\x1a\n"
_CHUNK: Final = struct.Struct(">L4s")
_CRC: Final = struct.Struct(">L")
_HEADER: Final = struct.Struct(">LLBBBBB")
_SAMPLES: Final = {0: 1, 2: 3, 3: 1, 4: 2, 6: 4}
"""Type of colour to the samples of a pixel."""
_PASSES: Final = (
    (0, 0, 8, 8),
    (4, 0, 8, 8),
    (0, 4, 4, 8),
    (2, 0, 4, 4),
    (0, 2, 2, 4),
    (1, 0, 2, 2),
    (0, 1, 1, 2),
)
"""Of an interlaced picture: first column, first row, and the steps of both."""
_PIECE: Final = 1 << 20


def check_png(path: Path) -> None:
    """Check every chunk, and that the pixels are all there; memory stays bounded.

    Raises:
        UnreadableDocument: The file is damaged.
    """
    try:
        with path.open("rb") as file:
            _check(file)
    except (zlib.error, struct.error, ValueError) as error:
        raise UnreadableDocument(f"the raster is damaged: {error}; send the file again") from error


def _check(file: IO[bytes]) -> None:
    if file.read(len(_SIGNATURE)) != _SIGNATURE:
        raise ValueError("it does not begin as a PNG")
    expected, found, kind = 0, 0, b""
    inflating = zlib.decompressobj()
    while kind != b"IEND":
        length, kind = _CHUNK.unpack(file.read(_CHUNK.size))
        checksum, left = zlib.crc32(kind), length
        header = b""
        while left:
            piece = file.read(min(left, _PIECE))
            if not piece:
                raise ValueError("it is cut off")
            checksum, left = zlib.crc32(piece, checksum), left - len(piece)
            if kind == b"IHDR":
                header += piece
            elif kind == b"IDAT":
                found += _inflated(inflating, piece, expected - found)
        if checksum != _CRC.unpack(file.read(_CRC.size))[0]:
            raise ValueError(f"the checksum of its part {kind.decode('latin-1')} is wrong")
        if kind == b"IHDR":
            expected = _bytes(*_HEADER.unpack(header))
    if not inflating.eof or found != expected:
        raise ValueError("its pixels are not all there")


def _inflated(inflating: Any, piece: bytes, most: int) -> int:
    """How many bytes a piece unpacks to; no more than these are expected."""
    found = 0
    while piece and not inflating.eof:
        found += len(inflating.decompress(piece, _PIECE))
        if found > most:
            raise ValueError("it holds more pixels than it says")
        piece = inflating.unconsumed_tail
    return found


def _bytes(
    width: int, height: int, depth: int, colour: int, packing: int, filters: int, interlaced: int
) -> int:
    """What the pixels unpack to: every row begins with the byte of its filter."""
    bits = depth * _SAMPLES.get(colour, 0)
    if not bits or packing or filters or interlaced > 1:
        raise ValueError("its header is wrong")
    whole = ((0, 0, 1, 1),)
    total = 0
    for column, row, across, down in _PASSES if interlaced else whole:
        columns = -(-max(0, width - column) // across)
        rows = -(-max(0, height - row) // down)
        if columns:
            total += rows * (1 + -(-columns * bits // 8))
    return total
