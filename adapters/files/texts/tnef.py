"""Mails that Outlook has packed into one file, `winmail.dat` (TNEF).

Source: [MS-OXTNEF] 2.1 (attributes and properties), [MS-OXRTFCP] 2.1.3 (compressed RTF), of
Microsoft's open specifications.
"""

import struct
from collections.abc import Iterator
from pathlib import Path
from typing import Final

from adapters.files import limits
from adapters.files.encodings import encoding_of
from adapters.files.texts.findings import Findings
from adapters.files.texts.html import html_text
from adapters.ports.errors import UnreadableDocument

_SIGNATURE: Final = b"\x78\x9f\x3e\x22"
_ATTRIBUTE: Final = struct.Struct("<BHHL")
_SUBJECT, _BODY, _PROPERTIES, _CODE_PAGE = 0x8004, 0x800C, 0x9003, 0x9007
_NEXT_FILE, _FILE_DATA, _FILE_NAME, _FILE_PROPERTIES = 0x9002, 0x800F, 0x8010, 0x9005
_TEXT, _RTF, _HTML, _DATA = 0x1000, 0x1009, 0x1013, 0x3701
_LONG_NAME, _SHORT_NAME, _SHOWN_NAME = 0x3707, 0x3704, 0x3001
_WIDE: Final = 0x1F
_VARIABLE: Final = frozenset({0x0D, 0x1E, _WIDE, 0x102})
_SIZES: Final = {0x05: 8, 0x06: 8, 0x07: 8, 0x14: 8, 0x40: 8, 0x48: 16}
"""Bytes of values that have other than 4."""
_SEVERAL, _NAMED, _BY_TEXT, _OF_CLASS = 0x1000, 0x8000, 1, 16
_DICTIONARY: Final = (
    b"{\\rtf1\\ansi\\mac\\deff0\\deftab720{\\fonttbl;}{\\f0\\fnil \\froman \\fswiss \\fmodern"
    b" \\fscript \\fdecor MS Sans SerifSymbolArialTimes New RomanCourier{\\colortbl\\red0\\green0"
    b"\\blue0\r\n\\par \\pard\\plain\\f0\\fs20\\b\\i\\u\\tab\\tx"
)
"""What compressed RTF may repeat from its beginning."""
_COMPRESSED: Final = b"LZFu"
_WINDOW: Final = 4096


def read_tnef(path: Path, into: Findings) -> None:
    """Read subject and text, and take out the attached files; text as RTF is a file as well.

    Raises:
        UnreadableDocument: It is too large.
    """
    if path.stat().st_size > limits.MAIL_BYTES:
        raise UnreadableDocument(
            f"the TNEF file has more than {limits.MAIL_BYTES:,} bytes; send its files as documents"
            " of their own"
        )
    page: str | None = None
    mail: dict[int, bytes | str] = {}
    file: dict[int, bytes | str] | None = None
    try:
        for kind, value in _attributes(path.read_bytes()):
            if kind == _CODE_PAGE:
                page = f"cp{struct.unpack_from('<L', value)[0]}"
            elif kind == _NEXT_FILE:
                _keep(file, page, into)
                file = {}
            elif kind in (_SUBJECT, _BODY):
                mail.setdefault(_TEXT if kind == _BODY else _SUBJECT, value.rstrip(b"\0"))
            elif kind == _PROPERTIES:
                mail |= dict(_properties(value))
            elif file is not None and kind == _FILE_PROPERTIES:
                file |= dict(_properties(value))
            elif file is not None and kind in (_FILE_NAME, _FILE_DATA):
                file.setdefault(_SHORT_NAME if kind == _FILE_NAME else _DATA, value)
    except struct.error:
        into.note("the TNEF file is damaged or cut off: something in it may be missing")
    into.title = _letters(mail.get(_SUBJECT, ""), page)
    text = _letters(mail.get(_TEXT, ""), page) or html_text(_letters(mail.get(_HTML, ""), page))
    into.add_text(text)
    rtf = mail.get(_RTF)
    if isinstance(rtf, bytes) and not text.strip():
        into.note("its text is in the file text.rtf that is inside")
        into.keep("text.rtf", _unpacked(rtf))
    _keep(file, page, into)


def _keep(file: dict[int, bytes | str] | None, page: str | None, into: Findings) -> None:
    content = (file or {}).get(_DATA)
    if file is None or not isinstance(content, bytes):
        return
    # An attached mail stands behind the class of its object.
    if content[_OF_CLASS:].startswith(_SIGNATURE):
        content = content[_OF_CLASS:]
    name = file.get(_LONG_NAME) or file.get(_SHORT_NAME) or file.get(_SHOWN_NAME, "")
    into.keep(_letters(name, page).rstrip("\0"), content)


def _letters(value: bytes | str, page: str | None) -> str:
    if isinstance(value, str):
        return value
    return value.decode(encoding_of(value, page)[0], "replace")


def _attributes(content: bytes) -> Iterator[tuple[int, bytes]]:
    place = 6
    while place < len(content):
        _, kind, _, size = _ATTRIBUTE.unpack_from(content, place)
        place += _ATTRIBUTE.size
        if place + size > len(content):
            raise struct.error
        yield kind, content[place : place + size]
        # A checksum follows.
        place += size + 2


def _properties(content: bytes) -> Iterator[tuple[int, bytes | str]]:
    (count,) = struct.unpack_from("<L", content)
    place = 4
    for _ in range(count):
        kind, number = struct.unpack_from("<HH", content, place)
        place += 4
        if number >= _NAMED:
            by, size = struct.unpack_from("<LL", content, place + 16)
            place += 24 + (size + -size % 4 if by == _BY_TEXT else 0)
        values, is_variable = 1, kind & ~_SEVERAL in _VARIABLE
        if kind & _SEVERAL or is_variable:
            (values,) = struct.unpack_from("<L", content, place)
            place += 4
        for _ in range(values):
            size = _SIZES.get(kind & ~_SEVERAL, 4)
            if is_variable:
                (size,) = struct.unpack_from("<L", content, place)
                place += 4
            if place + size > len(content):
                raise struct.error
            value = content[place : place + size]
            place += size + -size % 4
            if is_variable:
                yield number, value.decode("utf-16-le", "replace") if kind == _WIDE else value


def _unpacked(content: bytes) -> bytes:
    """RTF, which repeats parts of itself by their place and length."""
    if content[8:12] != _COMPRESSED:
        return content[16:]
    found = bytearray(_DICTIONARY)
    place = 16
    while place < len(content) and len(found) < limits.TEXT_BYTES:
        flags = content[place]
        place += 1
        for bit in range(8):
            piece = content[place : place + 1 + (flags >> bit & 1)]
            place += len(piece)
            if len(piece) < 2:
                found += piece
                continue
            start, size = (piece[0] << 4) | (piece[1] >> 4), (piece[1] & 15) + 2
            # Places count within a window that is written round and round.
            back = (len(found) - start) % _WINDOW
            if not back or back > len(found):
                return bytes(found[len(_DICTIONARY) :])
            for _ in range(size):
                found.append(found[-back])
    return bytes(found[len(_DICTIONARY) :])
