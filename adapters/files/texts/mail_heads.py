"""How files of mails begin and end: what programs write around a mail, and lines that are no field.

Source: RFC 4155 (mbox); the files of Apple Mail (EMLX) are described nowhere.
"""

import re
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from adapters.files.formats import BYTE_ORDER_MARK

HEAD_BYTES: Final = 1 << 16
"""Mails may begin with many fields about the way they came."""
_BEFORE: Final = 1024
"""Bytes in which the header has to begin."""
_COUNT: Final = re.compile(rb"\s*(\d{1,12})[ \t]*\r?\n")
"""Of the bytes of a mail, which Apple Mail writes before it."""
_APPLE_END: Final = re.compile(rb"\s*(<\?xml\b|<plist\b|\Z)")
_FROM_LINE: Final = re.compile(rb">?From [^\n]*\n(?=[!-9;-~]{1,100}:)")
"""What programs that keep mails in one file write before each."""
_ANOTHER: Final = re.compile(
    rb"\n\r?\nFrom \S{1,320} [^\n]{0,60}\d:\d\d[^\n]{0,40}\d{4}[^\n]{0,12}\r?\n[!-9;-~]{1,100}:"
)
_BLOCK: Final = 1 << 20
_OVERLAP: Final = 1 << 12
_FIELD: Final = re.compile(rb"([!-9;-~]{1,100})([ \t]*):")
_PARTS_LINE: Final = re.compile(rb"content-type:\s*multipart/", re.IGNORECASE)
_HEADERS: Final = frozenset(
    {b"from", b"to", b"subject", b"date", b"message-id", b"received", b"mime-version"}
    | {b"return-path", b"content-type", b"delivered-to", b"cc", b"reply-to"}
)
_NAMES: Final = (".eml", ".emlx")


@dataclass(frozen=True, slots=True)
class MailBounds:
    """Where in its file a mail is."""

    start: int
    end: int | None
    """None: the file ends with it."""
    is_wrapped: bool
    """A program has written before it what only stands before mails."""


@dataclass(frozen=True, slots=True)
class Header:
    """The header of a mail."""

    fields: bytes
    """Without the lines that are no field."""
    size: int
    """Bytes in the file."""
    known: frozenset[bytes]
    """Names of usual fields, in lower case."""
    others: tuple[bytes, ...] = ()
    """Lines between fields that are no field."""
    has_parts: bool = False
    runs_into_text: bool = False
    """No empty line ends it."""


def bounds_of(path: Path) -> MailBounds:
    """Where a mail begins and ends in its file."""
    with path.open("rb") as file:
        head = file.read(HEAD_BYTES)
        start = len(head) - len(head.removeprefix(BYTE_ORDER_MARK).lstrip(b"\r\n"))
        begin, end = start, None
        if counted := _COUNT.match(head):
            file.seek(counted.end() + int(counted[1]))
            if _APPLE_END.match(file.read(_BEFORE)):
                start, end = counted.end(), counted.end() + int(counted[1])
        if line := _FROM_LINE.match(head, start):
            start = line.end()
    return MailBounds(start, end, start > begin)


def holds_many(path: Path, start: int) -> bool:
    """Whether a file holds mails one after the other.

    Args:
        path: The file.
        start: Where its first mail begins.
    """
    with path.open("rb") as file:
        before = file.read(start)[-_BEFORE:]
        if b"From " not in before:
            return False
        while block := file.read(_BLOCK):
            if _ANOTHER.search(before + block):
                return True
            before = (before + block)[-_OVERLAP:]
    return False


def header_of(content: bytes) -> Header:
    """The header at the beginning of a mail, as far as it is there.

    Lines that are no field belong to the header when a usual field follows; else the text begins.
    """
    lines = _lines(content)
    names = [_name(line) for line in lines]
    last = max((place for place, name in enumerate(names) if name in _HEADERS), default=-1)
    fields: list[bytes] = []
    others: list[bytes] = []
    size = 0
    is_field, runs_into_text = False, False
    for place, (line, name) in enumerate(zip(lines, names, strict=True)):
        if not (line[:1] in b" \t" and fields):
            is_field = name is not None
        if not is_field and place > last:
            runs_into_text = True
            break
        size += len(line)
        if not is_field:
            others.append(line.strip())
        else:
            fields.append(line if name is None else _FIELD.sub(rb"\1:", line, count=1))
    return Header(
        b"".join(fields),
        size,
        frozenset(name for name in names[: last + 1] if name in _HEADERS),
        tuple(filter(None, others)),
        any(map(_PARTS_LINE.match, fields)),
        runs_into_text,
    )


def is_mail(head: bytes, bounds: MailBounds, filename: str | None) -> bool:
    """Whether a file begins with the header of a mail.

    Args:
        head: Its first bytes.
        bounds: Where the mail is, if it is one.
        filename: With the name of a mail one usual field is enough, else two are.
    """
    header = header_of(head[bounds.start :])
    is_named = bounds.is_wrapped or (filename or "").lower().endswith(_NAMES)
    if len(header.others) >= max(len(header.known), 1) or (header.runs_into_text and not is_named):
        return False
    if header.has_parts and not header.others:
        # A mail that was signed, as programs keep it, without the header that was not.
        return True
    return len(header.known) >= (1 if is_named else 2)


def _lines(content: bytes) -> list[bytes]:
    """Lines up to one that is empty or begins a part; the last one may be cut off."""
    lines = content.splitlines(keepends=True)
    if len(content) >= HEAD_BYTES - _BEFORE:
        lines.pop()
    # Some programs leave out the empty line before the first part.
    ends = (
        place
        for place, line in enumerate(lines)
        if not line.strip(b"\r\n") or line.startswith(b"--")
    )
    return lines[: next(ends, len(lines))]


def _name(line: bytes) -> bytes | None:
    """The name of a field, in lower case; None: the line is none, or continues one."""
    found = _FIELD.match(line)
    return found[1].lower() if found else None
