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
_WBITS: Final = 16 + zlib.MAX_WBITS


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
    """A gzip file of about a thousandth that unpacks to `size` bytes."""
    deflate = zlib.compressobj(9, zlib.DEFLATED, _WBITS)
    block = bytes(_PIECE)
    for start in range(0, size, _PIECE):
        if piece := deflate.compress(block[: size - start]):
            yield piece
    yield deflate.flush()


def _zip(content: bytes) -> bytes:
    sink = io.BytesIO()
    with zipfile.ZipFile(sink, "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr(zipfile.ZipInfo("a"), content)
    return sink.getvalue()
