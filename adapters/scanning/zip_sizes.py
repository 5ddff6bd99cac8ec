"""How large the files in a ZIP archive are that passes by.

clamd unpacks files of a ZIP archive up to its limit, scans that much, and says nothing of the rest.

Source: APPNOTE.TXT of PKWARE, 4.3.12 and 4.3.16.
"""

import struct
from typing import Final

_HEAD: Final = b"PK"
_ENTRY: Final = b"PK\x01\x02"
_END: Final = b"PK\x05\x06"
_END_BYTES: Final = 22
_ENTRY_BYTES: Final = 46
_KEPT: Final = 8 << 20
_UNKNOWN: Final = 0xFFFFFFFF


class ZipSizes:
    """Keeps the end of a stream, where the directory of a ZIP archive stands."""

    def __init__(self) -> None:
        self._head = b""
        self._tail = bytearray()

    def take(self, piece: bytes) -> None:
        """The next bytes."""
        if len(self._head) < len(_HEAD):
            self._head += piece[: len(_HEAD)]
        if self._head.startswith(_HEAD):
            self._tail += piece
            if len(self._tail) > 2 * _KEPT:
                del self._tail[:-_KEPT]

    def largest(self) -> int | None:
        """Bytes of the largest file as the directory states them; None: that is not known.

        0 where it is not a ZIP archive.
        """
        if not self._head.startswith(_HEAD):
            return 0
        end = self._tail.rfind(_END)
        if end < 0 or end + _END_BYTES > len(self._tail):
            return None
        (size,) = struct.unpack_from("<I", self._tail, end + 12)
        place = end - size
        if place < 0 or size == _UNKNOWN:
            return None
        return self._largest_from(place, end)

    def _largest_from(self, place: int, end: int) -> int | None:
        largest = 0
        while place < end:
            if not self._tail.startswith(_ENTRY, place) or place + _ENTRY_BYTES > end:
                # With ZIP64, its own end of the directory stands here.
                break
            (size,) = struct.unpack_from("<I", self._tail, place + 24)
            lengths = struct.unpack_from("<HHH", self._tail, place + 28)
            largest = max(largest, size)
            place += _ENTRY_BYTES + sum(lengths)
        return largest
