"""Files that are embedded in Office files of 1997 to 2003.

Source: [MS-DOC] 2.1.10 (object pool), [MS-XLS] 2.1.7.4 (embedding storages), [MS-PPT] 2.3.1 (record
header) and 2.10.34 (objects), of Microsoft's open specifications.
"""

import io
import re
import struct
import zlib
from collections.abc import Iterator
from pathlib import Path
from types import MappingProxyType
from typing import Final

from adapters.files import limits
from adapters.files.compound import (
    COMPOUND_HEAD,
    CompoundObjects,
    DamagedCompound,
    Streams,
    holds_top_level,
    whole_stream,
)
from adapters.files.texts.embedded import NATIVE, WHOLE_FILES, keep_native, keep_object
from adapters.files.texts.findings import Findings
from adapters.files.texts.kinds import TextKind

_PLACES: Final = MappingProxyType(
    {
        TextKind.DOC: ("objectpool", re.compile(".*")),
        TextKind.XLS: (None, re.compile("mbd.*")),
    }
)
"""The storage that holds the objects, and how theirs are called."""
_NOT_TAKEN: Final = "not taken out: send them as documents"
_HEADER: Final = struct.Struct("<HHL")
_OBJECT: Final = 0x1011
_COMPRESSED: Final = 1
"""Instance of such a record, in the upper twelve bits of its first two bytes."""
_MACROS: Final = "vba"


def take_out_of_old_office(path: Path, kind: TextKind, into: Findings) -> None:
    """Keep the files that are embedded; how many cannot be taken out is noted.

    What an object of another program is made of is taken out where it is one file: that of a
    package, or the one that the program has written. An object that is spread over several streams,
    as those of old Office programs are, is a part of this file and no file of its own.
    """
    left = damaged = 0
    pool, name = _PLACES[kind]
    with path.open("rb") as file:
        try:
            objects = CompoundObjects(file)
            for number, streams in enumerate(objects.within(pool, name), start=1):
                try:
                    left += not _take_out(objects, streams, f"oleObject{number}.bin", into)
                except DamagedCompound:
                    damaged += 1
        except DamagedCompound:
            into.note(f"files that are embedded in it are {_NOT_TAKEN}: it is damaged there")
    if damaged:
        into.note(f"{damaged:,} files that are embedded in it are damaged, and {_NOT_TAKEN}")
    if left:
        into.note(f"{left:,} objects of other programs that are embedded in it are {_NOT_TAKEN}")


def _take_out(objects: CompoundObjects, streams: Streams, name: str, into: Findings) -> bool:
    """Whether the object was one file."""
    if NATIVE in streams:
        keep_native(name, objects.content(streams[NATIVE], limits.ATTACHED_BYTES), into)
        return True
    whole = next((streams[each] for each in WHOLE_FILES if each in streams), None)
    if whole is not None:
        into.keep(name, objects.content(whole, limits.ATTACHED_BYTES))
    return whole is not None


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
        into.note(
            f"files that are embedded in it were {_NOT_TAKEN}: the presentation is damaged there"
        )
    if damaged:
        into.note(f"{damaged:,} files that are embedded in it are damaged, and were {_NOT_TAKEN}")
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
