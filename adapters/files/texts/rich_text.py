"""What RTF holds that a reader of it leaves out: remarks, hidden text, embedded files.

Source: Rich Text Format Specification 1.9.1; [MS-OLEDS] 2.2.5 (embedded objects).
"""

import re
import struct
from typing import Final

from adapters.files.texts.embedded import keep_object
from adapters.files.texts.findings import Findings

_REMARK: Final = re.compile(rb"\\\*\s*\\annotation(?![a-z])")
_HIDDEN: Final = re.compile(rb"\\(?:v|webhidden)(?![a-z0-9-])")
_SYMBOL: Final = re.compile(rb"\\(?:([~_])|.)", re.DOTALL)
"""A backslash and the sign behind it, which may be another backslash."""
_SYMBOLS: Final = {b"~": rb"\'20", b"_": rb"\'2d"}
_OF_MAC: Final = re.compile(rb"(\{\\rtf1?\s*)\\mac(?![a-z])(?!.{0,40}\\ansicpg)", re.DOTALL)
_OBJECT: Final = re.compile(rb"\\objdata(?![a-z])([0-9A-Fa-f\s]+)")


def with_all_words(content: bytes) -> bytes:
    """The document with remarks as footnotes, nothing hidden, and signs that the library knows."""
    content = _HIDDEN.sub(b"", _REMARK.sub(rb"\\footnote", content))
    content = _OF_MAC.sub(rb"\1\\mac\\ansicpg10000", content)
    return _SYMBOL.sub(lambda found: _SYMBOLS.get(found[1], found[0]), content)


def take_out_objects(content: bytes, into: Findings) -> None:
    """Keep the files that are embedded."""
    for found in _OBJECT.finditer(content):
        digits = b"".join(found[1].split())
        held = bytes.fromhex(digits[: len(digits) // 2 * 2].decode())
        try:
            keep_object("object.bin", _native(held), into)
        except struct.error:
            into.note("an embedded file was not taken out: it is damaged or only linked")


def _native(held: bytes) -> bytes:
    """The bytes of an embedded object: behind its versions and three names."""
    place = 8
    for _ in range(3):
        (length,) = struct.unpack_from("<L", held, place)
        place += 4 + length
    (size,) = struct.unpack_from("<L", held, place)
    return held[place + 4 : place + 4 + size]
