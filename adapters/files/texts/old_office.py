"""Old Office files: words that a reader of them leaves out, and files inside them.

Files that are embedded in Office files of 1997 to 2003.

Source: [MS-DOC] 2.1.10 (object pool), [MS-XLS] 2.1.7.4 (embedding storages), [MS-PPT] 2.3.1 (record
header) and 2.10.34 (objects), of Microsoft's open specifications.

Words of old Office files that a reader of them leaves out, and whether they are protected.

Source: [MS-DOC] 2.5 (Fib) and 2.8.35 (pieces), [MS-XLS] 2.4, [MS-PPT] 2.3.2 and 2.3.3 (current user
and edits), of Microsoft's open specifications.
"""

import io
import re
import struct
import zlib
from collections.abc import Callable, Iterator, Mapping
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
from adapters.files.texts.findings import Findings
from adapters.files.texts.kinds import LOCKED, TextKind
from adapters.files.texts.packages import (
    NATIVE,
    WHOLE_FILES,
    keep_native,
    keep_object,
    missing_from,
    without_codes,
)
from adapters.ports.errors import UnreadableDocument

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


_FIB_FLAGS, _FIB_CLX = 10, 154 + 33 * 8
_ENCRYPTED, _TABLE_1 = 0x0100, 0x0200
_PROPERTIES, _PIECES = b"\x01", b"\x02"
_EIGHT_BITS: Final = 0x40000000
_FIELD: Final = re.compile("\x13[^\x13-\x15]*\x14?|\x15")
"""What a field does; its result follows."""
_DIVIDED: Final = re.compile("[\x00-\x08\x0a-\x1f]+")
_BIFF8: Final = 0x600
_EOF: Final = 0x0A
_ENCRYPTED_SLIDES: Final = 0xF3D1C4DF
_EDIT_WITH_KEYS: Final = (0x0FF5, 0x20)
"""Kind and size of a record."""
_BOF, _FILEPASS, _CONTINUE, _TEXT_OBJECT = 0x809, 0x2F, 0x3C, 0x1B6
_PAGE_TEXTS: Final = (0x14, 0x15)
"""Header and footer of a sheet."""
_CHART_TEXT: Final = 0x100D


def refuse_locked(path: Path, kind: TextKind) -> None:
    """Refuse an old Office file that needs a password, before anything of it looks damaged.

    Raises:
        UnreadableDocument: It does.
    """
    try:
        is_locked = _LOCKED_KINDS[kind](path)
    except (DamagedCompound, struct.error, IndexError):
        # Who reads it finds the damage.
        return
    if is_locked:
        raise UnreadableDocument(f"the document {LOCKED}")


def _is_locked_document(path: Path) -> bool:
    (flags,) = struct.unpack_from("<H", whole_stream(path, "worddocument"), _FIB_FLAGS)
    return bool(flags & _ENCRYPTED)


def _is_locked_workbook(path: Path) -> bool:
    for kind, _ in _records(whole_stream(path, "workbook", "book")):
        if kind == _FILEPASS:
            return True
        if kind == _EOF:
            break
    return False


def _is_locked_presentation(path: Path) -> bool:
    token, place = struct.unpack_from("<LL", whole_stream(path, "current user"), 12)
    if token == _ENCRYPTED_SLIDES:
        return True
    # Some programs say it only where the last edit refers to its keys.
    kind, size = struct.unpack_from("<2xHL", whole_stream(path, "powerpoint document"), place)
    return (kind, size) == _EDIT_WITH_KEYS


_LOCKED_KINDS: Final[Mapping[TextKind, Callable[[Path], bool]]] = {
    TextKind.DOC: _is_locked_document,
    TextKind.XLS: _is_locked_workbook,
    TextKind.PPT: _is_locked_presentation,
}
LOCKABLE: Final = frozenset(_LOCKED_KINDS)


def old_words(path: Path, kind: TextKind, text: str, into: Findings) -> Iterator[str]:
    """Words of an old Word document or workbook that are not in the text that was read of it."""
    try:
        found = list(_document(path) if kind is TextKind.DOC else _workbook(path))
    except (DamagedCompound, struct.error, IndexError):
        into.note("headers and remarks were not read: the document is damaged there")
        return
    take_out_of_old_office(path, kind, into)
    yield from missing_from(text, found)


def _document(path: Path) -> Iterator[str]:
    """Paragraphs of all parts: text, notes, headers, remarks, text boxes."""
    main = whole_stream(path, "worddocument")
    (flags,) = struct.unpack_from("<H", main, _FIB_FLAGS)
    table = whole_stream(path, "1table" if flags & _TABLE_1 else "0table")
    start, size = struct.unpack_from("<LL", main, _FIB_CLX)
    pieces = _pieces(table[start : start + size])
    count = (len(pieces) - 4) // 12
    ends = struct.unpack_from(f"<{count + 1}L", pieces)
    texts: list[str] = []
    for number in range(count):
        (place,) = struct.unpack_from("<L", pieces, 4 * (count + 1) + 8 * number + 2)
        length = ends[number + 1] - ends[number]
        if place & _EIGHT_BITS:
            place = (place & ~_EIGHT_BITS) // 2
            texts.append(main[place : place + length].decode("cp1252", "replace"))
        else:
            texts.append(main[place : place + 2 * length].decode("utf-16-le", "replace"))
    yield from _DIVIDED.split(_FIELD.sub("", "".join(texts)))


def _pieces(table: bytes) -> bytes:
    """Where the pieces of text are, behind the properties that they share."""
    while table.startswith(_PROPERTIES):
        (size,) = struct.unpack_from("<H", table, 1)
        table = table[3 + size :]
    if not table.startswith(_PIECES):
        raise DamagedCompound("the pieces of the text are missing")
    (size,) = struct.unpack_from("<L", table, 1)
    return table[5 : 5 + size]


def _workbook(path: Path) -> Iterator[str]:
    """Headers and footers of sheets, comments, text boxes, titles of charts."""
    version, missing = _BIFF8, 0
    for kind, content in _records(whole_stream(path, "workbook", "book")):
        if kind == _BOF:
            (version,) = struct.unpack_from("<H", content)
        elif version == _BIFF8 and kind in _PAGE_TEXTS and content:
            yield without_codes(_characters(content[2:]))
        elif version == _BIFF8 and kind == _CHART_TEXT:
            yield _characters(content[3:])
        elif kind == _TEXT_OBJECT:
            (missing,) = struct.unpack_from("<H", content, 10)
        elif kind == _CONTINUE and missing:
            text = _characters(content)[:missing]
            missing -= len(text)
            yield text
        else:
            missing = 0


def _records(content: bytes) -> Iterator[tuple[int, bytes]]:
    place = 0
    while place + 4 <= len(content):
        kind, size = struct.unpack_from("<HH", content, place)
        if not kind and not size:
            return
        yield kind, content[place + 4 : place + 4 + size]
        place += 4 + size


def _characters(content: bytes) -> str:
    """Characters behind the byte that says how wide they are."""
    return content[1:].decode("utf-16-le" if content[:1] == b"\x01" else "latin-1", "replace")
