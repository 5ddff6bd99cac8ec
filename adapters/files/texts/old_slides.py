"""Files that are embedded in presentations of 1997 to 2003.

Source: [MS-PPT] 2.3.1 (record header) and 2.10.34 (objects), of Microsoft's open specifications.
"""

import io
import struct
import zlib
from collections.abc import Iterator
from pathlib import Path
from typing import Final

from adapters.files import limits
from adapters.files.compound import COMPOUND_HEAD, DamagedCompound, holds_top_level
from adapters.files.texts.embedded import keep_object
from adapters.files.texts.findings import Findings
from adapters.files.texts.old_office import whole_stream

_HEADER: Final = struct.Struct("<HHL")
_OBJECT: Final = 0x1011
_COMPRESSED: Final = 1
"""Instance of such a record, in the upper twelve bits of its first two bytes."""
_MACROS: Final = "vba"
_NOT_TAKEN: Final = "were not taken out: send them as documents"


def take_out_of_slides(path: Path, into: Findings) -> None:
    """Keep the files that are embedded in slides; what cannot be taken out is noted.

    A presentation that was saved again and again may hold an object several times: once is enough.
    """
    seen: set[bytes] = set()
    damaged = macros = 0
    try:
        for content in _objects(whole_stream(path, "powerpoint document")):
            if content is None:
                damaged += 1
            elif _is_macros(content):
                macros += 1
            elif content not in seen:
                seen.add(content)
                keep_object(f"oleObject{len(seen)}.bin", content, into)
    except (DamagedCompound, struct.error):
        into.note(f"files that are embedded in it {_NOT_TAKEN}: the presentation is damaged there")
    if damaged:
        into.note(f"{damaged:,} files that are embedded in it are damaged, and {_NOT_TAKEN}")
    if macros:
        into.note("its macros are not read")


def _objects(content: bytes) -> Iterator[bytes | None]:
    """Objects of other programs; None: one that is damaged, or larger than may be taken out."""
    place = 0
    while place + _HEADER.size <= len(content):
        version, kind, size = _HEADER.unpack_from(content, place)
        place += _HEADER.size
        if kind == _OBJECT:
            stored = content[place : place + size]
            whole = len(stored) == size
            yield (_unpacked(stored) if version >> 4 == _COMPRESSED else stored) if whole else None
        place += size


def _unpacked(stored: bytes) -> bytes | None:
    """An object that was compressed, behind the size that it has then."""
    (size,) = struct.unpack_from("<L", stored)
    if size > limits.ATTACHED_BYTES:
        return None
    try:
        content = zlib.decompressobj().decompress(stored[4:], size)
    except zlib.error:
        return None
    return content if len(content) == size else None


def _is_macros(content: bytes) -> bool:
    if not content.startswith(COMPOUND_HEAD):
        return False
    try:
        return holds_top_level(io.BytesIO(content), _MACROS)
    except DamagedCompound:
        return False
