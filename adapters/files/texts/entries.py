"""Calendars and business cards: their lines are folded in the middle of words.

Source: RFC 5545 3.1 and 3.3.11, RFC 6350 3.2, vCard 2.1.
"""

import quopri
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Final

from adapters.files import limits
from adapters.files.encodings import encoding_of
from adapters.files.texts.findings import Findings

_FOLD: Final = re.compile(rb"\r?\n[ \t]")
_SOFT_BREAK: Final = re.compile(rb"=\r?\n")
_ESCAPED: Final = re.compile(r"\\([\\;,nN])")
_CHARSET: Final = re.compile(r";CHARSET=([\w-]+)", re.IGNORECASE)
_QUOTED: Final = "QUOTED-PRINTABLE"
_TITLES: Final = ("SUMMARY", "FN")
_BINARY: Final = re.compile(r";ENCODING=(B|BASE64)\b", re.IGNORECASE)


def read_entries(path: Path, into: Findings) -> None:
    """Read each line as a whole; files inside are only named."""
    with path.open("rb") as file:
        content = file.read(limits.TEXT_BYTES)
        if file.read(1):
            into.cut_off("only the beginning of the entries was read")
    if content.startswith((b"\xff\xfe", b"\xfe\xff")):
        content = content.decode("utf-16", "replace").encode()
    for line in entry_lines(content, into):
        into.add_text(f"{line}\n")


def entry_lines(content: bytes, into: Findings) -> Iterator[str]:
    """Lines of a calendar or of business cards, each as a whole."""
    lines = _FOLD.sub(b"", content).replace(b"\r\n", b"\n")
    held = 0
    for line in _joined(lines).split(b"\n"):
        name, _, value = line.partition(b":")
        field = name.decode("latin-1")
        if _BINARY.search(field):
            held += 1
            continue
        text = _value(field, value)
        if field.partition(";")[0].upper() in _TITLES and into.title is None:
            into.title = text
        yield f"{field}:{text}" if value else field
    if held:
        into.note(f"pictures and files inside that are not taken out: {held:,}")


def _joined(content: bytes) -> bytes:
    """Lines of vCard 2.1, which go on behind an equals sign."""
    return _SOFT_BREAK.sub(b"", content) if _QUOTED.encode() in content.upper() else content


def _value(field: str, value: bytes) -> str:
    if _QUOTED in field.upper():
        value = quopri.decodestring(value)
    charset = _CHARSET.search(field)
    encoding, _ = encoding_of(value, charset[1] if charset else None)
    text = value.decode(encoding, "replace")
    return _ESCAPED.sub(lambda found: "\n" if found[1] in "nN" else found[1], text)
