"""What a document is, by what it holds; its name is a hint where nothing else decides."""

import re
from dataclasses import dataclass
from enum import Enum
from pathlib import Path
from typing import Final

from adapters.files.encodings import find_encoding
from adapters.files.formats import BYTE_ORDER_MARK, Format, format_of, is_pdf_after_others
from adapters.files.package import damaged
from adapters.files.texts import mail
from adapters.files.texts.plain import load_file_of
from adapters.files.texts.signed import is_encrypted, is_signed
from adapters.ports.errors import UnreadableDocument


class TextKind(Enum):
    """Documents that text is read from; the value is the media type."""

    PDF = "application/pdf"
    DOCX = "application/vnd.openxmlformats-officedocument.wordprocessingml.document"
    MSG = "application/vnd.ms-outlook"
    MAIL = "message/rfc822"
    HTML = "text/html"
    TEXT = "text/plain"
    ZIP = "application/zip"
    XLSX = "application/vnd.openxmlformats-officedocument.spreadsheetml.sheet"
    XLSB = "application/vnd.ms-excel.sheet.binary.macroEnabled.12"
    XLS = "application/vnd.ms-excel"
    ODS = "application/vnd.oasis.opendocument.spreadsheet"
    PPTX = "application/vnd.openxmlformats-officedocument.presentationml.presentation"
    PPT = "application/vnd.ms-powerpoint"
    ODP = "application/vnd.oasis.opendocument.presentation"
    DOC = "application/msword"
    ODT = "application/vnd.oasis.opendocument.text"
    RTF = "application/rtf"
    EPUB = "application/epub+zip"
    CALENDAR = "text/calendar"
    CARD = "text/vcard"
    LOAD_FILE = "text/x-concordance-dat"
    SIGNED = "application/pkcs7-mime"
    TNEF = "application/vnd.ms-tnef"


@dataclass(frozen=True, slots=True)
class NotRead:
    """A document of a kind whose words are not read."""

    media_type: str
    why: str
    """For people: what it is, and what to do to have its words."""


LOCKED: Final = "is protected by a password; remove it and send the document again"
NO_OCR: Final = "words in pictures are not read (no OCR)"
_ADVICE: Final = "its words are not read; send them as PDF, an Office file, mail or plain text"
_READ: Final = {
    Format.PDF: TextKind.PDF,
    Format.DOCX: TextKind.DOCX,
    Format.MSG: TextKind.MSG,
    Format.ZIP: TextKind.ZIP,
    Format.XLSX: TextKind.XLSX,
    Format.XLSB: TextKind.XLSB,
    Format.XLS: TextKind.XLS,
    Format.ODS: TextKind.ODS,
    Format.PPTX: TextKind.PPTX,
    Format.PPT: TextKind.PPT,
    Format.ODP: TextKind.ODP,
    Format.DOC: TextKind.DOC,
    Format.ODT: TextKind.ODT,
    Format.RTF: TextKind.RTF,
    Format.EPUB: TextKind.EPUB,
    Format.TNEF: TextKind.TNEF,
    Format.XER: TextKind.TEXT,
}
_REFUSED: Final = {
    Format.LOCKED_OFFICE: f"the document {LOCKED}",
    Format.LOCKED_ODS: f"the document {LOCKED}",
    Format.LOCKED_OPEN_DOCUMENT: f"the document {LOCKED}",
    Format.DAMAGED_COMPOUND: damaged("document"),
}
_ANYTHING: Final = "application/octet-stream"
_PICTURES: Final = {
    Format.PNG: "image/png",
    Format.JPEG: "image/jpeg",
    Format.GIF: "image/gif",
    Format.TIFF: "image/tiff",
    Format.WEBP: "image/webp",
    Format.HEIF: "image/heif",
    Format.BITMAP: "image/bmp",
}
_OTHERS: Final = {
    Format.GZIP: "application/gzip",
    Format.SEVEN_ZIP: "application/x-7z-compressed",
    Format.RAR: "application/vnd.rar",
    Format.BZIP2: "application/x-bzip2",
    Format.XZ: "application/x-xz",
    Format.ZSTANDARD: "application/zstd",
    Format.CABINET: "application/vnd.ms-cab-compressed",
    Format.TAR: "application/x-tar",
    Format.OUTLOOK_STORE: "application/vnd.ms-outlook-pst",
    Format.ONE_NOTE: "application/onenote",
    Format.SQLITE: "application/vnd.sqlite3",
}
_ARCHIVES: Final = frozenset(
    {Format.GZIP, Format.BZIP2, Format.XZ, Format.ZSTANDARD, Format.TAR, Format.SEVEN_ZIP}
    | {Format.RAR, Format.CABINET}
)
_UNPACK: Final = "its files are not read; send them as documents, or as ZIP"
_ENCRYPTED: Final = NotRead(
    "application/pkcs7-mime",
    "it is encrypted (S/MIME): its words are not read; decrypt it and send the mail",
)
_UNKNOWN: Final = NotRead(_ANYTHING, f"it is of no kind that is known: {_ADVICE}")
_MBOX: Final = NotRead(
    "application/mbox", "it is an mbox file with many mails: send each of them as a document"
)
_TEXT_BYTES = bytes((*range(7, 14), 26, 27, *range(32, 256)))
_CONTROLS_AT_MOST = 0.05
"""Part of a text that may be control characters."""
_BEFORE_PAGE = re.compile(r"\s*(<\?xml\b[^>]{0,200}>|<!--.{0,2000}?-->)", re.DOTALL)
"""What programs write before a page that they save."""
_ENTRIES = re.compile(r"\s*BEGIN:(VCALENDAR|VCARD)\s", re.IGNORECASE)
_PAGES: Final = (".html", ".htm", ".xhtml")
_TAG = re.compile(r"\s*<[a-z!?]", re.IGNORECASE)
_PAGE = re.compile(r"\s*<(!doctype\s+html|html)\b", re.IGNORECASE)


def kind_of(path: Path, filename: str | None) -> TextKind | NotRead:
    """Find out what a document is.

    Args:
        path: The file.
        filename: The name its owner knows it by.

    Raises:
        UnreadableDocument: It is empty, damaged, hostile or protected; the message says which.
    """
    with path.open("rb") as file:
        head = file.read(mail.HEAD_BYTES)
    if not head:
        raise UnreadableDocument("the document is empty; send it again")
    found = format_of(path, "document")
    if found in _READ:
        return _READ[found]
    if found in _REFUSED:
        raise UnreadableDocument(_REFUSED[found])
    if found is not Format.PLAIN:
        return _not_read(found)
    start = head.removeprefix(BYTE_ORDER_MARK).lstrip(b"\r\n")
    bounds = mail.bounds_of(path)
    if mail.is_mail(head, bounds, filename):
        return _MBOX if mail.holds_many(path, bounds.start) else TextKind.MAIL
    if is_pdf_after_others(path, head):
        return TextKind.PDF
    if load_file_of(head) is not None:
        return TextKind.LOAD_FILE
    if is_signed(head):
        return TextKind.SIGNED
    if is_encrypted(head):
        return _ENCRYPTED
    encoding = find_encoding(path)
    is_wide = encoding is not None and encoding.startswith(("utf-16", "utf-32"))
    if encoding is None or (not is_wide and _is_binary(head)):
        return _UNKNOWN
    is_named_page = (filename or "").lower().endswith(_PAGES)
    beginning = head.decode(encoding, "replace") if is_wide else start.decode("latin-1")
    if entries := _ENTRIES.match(beginning):
        return TextKind.CALENDAR if entries[1].upper() == "VCALENDAR" else TextKind.CARD
    if _is_page(beginning) or (is_named_page and _TAG.match(beginning)):
        return TextKind.HTML
    return TextKind.TEXT


def _is_page(beginning: str) -> bool:
    place = 0
    while before := _BEFORE_PAGE.match(beginning, place):
        place = before.end()
    return _PAGE.match(beginning, place) is not None


def _not_read(found: Format) -> NotRead:
    if found in _PICTURES:
        return NotRead(_PICTURES[found], f"it is {found.value}: {NO_OCR}")
    what_to_do = _UNPACK if found in _ARCHIVES else _ADVICE
    return NotRead(_OTHERS.get(found, _ANYTHING), f"it is {found.value}: {what_to_do}")


def _is_binary(head: bytes) -> bool:
    return len(head.translate(None, _TEXT_BYTES)) > _CONTROLS_AT_MOST * len(head)
