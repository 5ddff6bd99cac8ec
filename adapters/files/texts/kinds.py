"""What a document is, by what it holds; its name is a hint where nothing else decides."""

import re
from collections.abc import Iterable
from enum import Enum
from pathlib import Path
from typing import Final

from adapters.files.encodings import find_encoding
from adapters.files.formats import BYTE_ORDER_MARK, Format, format_of, holds_pdf
from adapters.files.package import damaged
from adapters.ports import UnreadableDocument


class TextKind(Enum):
    """Documents that text is read from; the value is the media type."""

    PDF = "application/pdf"
    DOCX = "application/vnd.openxmlformats-officedocument.wordprocessingml.document"
    MSG = "application/vnd.ms-outlook"
    MAIL = "message/rfc822"
    HTML = "text/html"
    TEXT = "text/plain"


ADVICE: Final = "send it as PDF, DOCX, EML, MSG or plain text"
LOCKED: Final = "is protected by a password; remove it and send the document again"
_READ: Final = {Format.DOCX: TextKind.DOCX, Format.MSG: TextKind.MSG}
_ZIP: Final = "the document is a zip archive; send each file inside it as a document of its own"
_REASONS: Final = {
    Format.ZIP: _ZIP,
    Format.OFFICE_PACKAGE: _ZIP,
    Format.LOCKED_OFFICE: f"the document {LOCKED}",
    Format.LOCKED_ODS: f"the document {LOCKED}",
    Format.DAMAGED_COMPOUND: damaged("document"),
}
_HEAD_BYTES = 1 << 16
"""Mails may begin with many fields about the way they came."""
_TEXT_BYTES = bytes((*range(7, 14), 26, 27, *range(32, 256)))
_CONTROLS_AT_MOST = 0.05
"""Part of a text that may be control characters."""
_HEADER_LINE = re.compile(rb"[!-9;-~]{1,100}:")
_HEADERS = frozenset(
    {b"from", b"to", b"subject", b"date", b"message-id", b"received", b"mime-version"}
    | {b"return-path", b"content-type", b"delivered-to", b"cc", b"reply-to"}
)


def kind_of(path: Path, filename: str | None) -> TextKind:
    """Find out what a document is.

    Args:
        path: The file.
        filename: The name its owner knows it by.

    Raises:
        UnreadableDocument: It is of no kind that is read; the message says what it seems to be.
    """
    with path.open("rb") as file:
        head = file.read(_HEAD_BYTES)
    if not head:
        raise UnreadableDocument("the document is empty; send it again")
    if holds_pdf(head):
        return TextKind.PDF
    found = format_of(path, "document")
    if found in _READ:
        return _READ[found]
    if found is not Format.PLAIN:
        raise UnreadableDocument(_REASONS.get(found, f"the document is {found.value}; {ADVICE}"))
    start = head.removeprefix(BYTE_ORDER_MARK)
    # The last line may be cut off in the middle of a field's name.
    if _is_mail(start.splitlines()[: -1 if len(head) == _HEAD_BYTES else None], filename):
        return TextKind.MAIL
    encoding = find_encoding(path)
    if encoding is None or (not encoding.startswith("utf-16") and _is_binary(head)):
        raise UnreadableDocument(f"the document is of no kind that is known; {ADVICE}")
    is_page = re.match(rb"\s*<(!doctype\s+html|html)\b", start, re.IGNORECASE)
    return TextKind.HTML if is_page else TextKind.TEXT


def _is_binary(head: bytes) -> bool:
    return len(head.translate(None, _TEXT_BYTES)) > _CONTROLS_AT_MOST * len(head)


def _is_mail(lines: Iterable[bytes], filename: str | None) -> bool:
    """Whether it begins with the header of a mail: one known field for sure, two without a name."""
    found: set[bytes] = set()
    for line in lines:
        if not line:
            break
        if line[:1] in b" \t" and found:
            continue
        if not _HEADER_LINE.match(line):
            return False
        found.add(line.partition(b":")[0].lower())
    needed = 1 if (filename or "").lower().endswith(".eml") else 2
    return len(found & _HEADERS) >= needed
