"""Small files whose verdicts show what a scanner's limits and settings are."""

import io
import struct
import zipfile
import zlib
from collections.abc import Iterator
from typing import Final

_DEEP: Final = 110
"""Archives in each other: more than clamd follows, whatever is set (100)."""
_PIECE: Final = 1 << 20


def eicar() -> bytes:
    """What every scanner takes for a virus, and is none; put together so that this file is none."""
    return b"X5O!P%@AP[4\\PZX54(P^)7CC)7}$" + b"EICAR-STANDARD-ANTIVIRUS" + b"-TEST-FILE!$H+H*"


def nested_archive() -> bytes:
    """Archives in each other, deeper than any scanner looks."""
    content = b"nothing"
    for _ in range(_DEEP):
        content = _zip(content)
    return content


def encrypted_archive() -> bytes:
    """A ZIP archive whose file is marked as encrypted."""
    content = bytearray(_zip(bytes(64)))
    directory = content.index(b"PK\x01\x02")
    struct.pack_into("<H", content, 6, 1)
    struct.pack_into("<H", content, directory + 8, 1)
    return bytes(content)


def zeros(size: int) -> Iterator[bytes]:
    """A gzip file of about a thousandth that unpacks to `size` bytes.

    Its pieces are one and the same, as far as they are equally long: nothing is compressed twice.
    """
    yield b"\x1f\x8b\x08" + bytes(6) + b"\xff"
    block, checksum = bytes(_PIECE), 0
    packed = _flushed(block)
    for start in range(0, size, _PIECE):
        piece = block[: size - start]
        checksum = zlib.crc32(piece, checksum)
        yield packed if len(piece) == _PIECE else _flushed(piece)
    yield b"\x03\x00" + struct.pack("<II", checksum, size & 0xFFFFFFFF)


def _flushed(piece: bytes) -> bytes:
    """Blocks of a deflate stream that may stand behind any others (RFC 1951)."""
    deflate = zlib.compressobj(9, zlib.DEFLATED, -zlib.MAX_WBITS)
    return deflate.compress(piece) + deflate.flush(zlib.Z_FULL_FLUSH)


def _zip(content: bytes) -> bytes:
    sink = io.BytesIO()
    with zipfile.ZipFile(sink, "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr(zipfile.ZipInfo("a"), content)
    return sink.getvalue()
