"""Words of old Office files that a reader of them leaves out, and whether they are protected.

Source: [MS-DOC] 2.5 (Fib) and 2.8.35 (pieces), [MS-XLS] 2.4, [MS-PPT] 2.3.2 and 2.3.3 (current user
and edits), of Microsoft's open specifications.
"""

import re
import struct
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Final

from adapters.files.compound import DamagedCompound, whole_stream
from adapters.files.texts.findings import Findings
from adapters.files.texts.kinds import LOCKED, TextKind
from adapters.files.texts.old_objects import take_out_of_old_office
from adapters.files.texts.package_words import missing_from, without_codes
from adapters.ports import UnreadableDocument

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
