"""What a file is, by its structure; names and extensions prove nothing.

The one place where formats are detected. The readers of tables, texts and schedules decide
which of them they read, and how they refuse the others.
"""

import re
from enum import Enum
from itertools import chain
from pathlib import Path
from typing import Final

from adapters.files.compound import COMPOUND_HEAD, DamagedCompound, top_level_names
from adapters.files.package import Package, open_package

HEAD_BYTES: Final = 4096
"""The first bytes of a file, which identify most formats."""
BYTE_ORDER_MARK: Final = b"\xef\xbb\xbf"
_PDF_WITHIN: Final = 1024
"""Bytes that may stand before a PDF, as its readers agree on."""
_PDF_END: Final = 2048
"""Bytes at the end of a PDF that hold its trailer."""
_PDF_HEADER: Final = re.compile(rb"%PDF-\d")
_PDF_TRAILER: Final = re.compile(rb"startxref\s+\d+\s+%%EOF")
_ZIP_HEADS: Final = (b"PK\x03\x04", b"PK\x05\x06")
_OPEN_DOCUMENT: Final = b"application/vnd.oasis.opendocument."
_EPUB: Final = b"application/epub+zip"


class Format(Enum):
    """Formats that are detected; the value is what a person calls them."""

    PDF = "a PDF document"
    PNG = "a PNG image"
    JPEG = "a JPEG image"
    GIF = "a GIF image"
    TIFF = "a TIFF image"
    RTF = "an RTF document"
    GZIP = "a gzip archive"
    SEVEN_ZIP = "a 7z archive"
    RAR = "a RAR archive"
    WINDOWS_PROGRAM = "a Windows program"
    LINUX_PROGRAM = "a Linux program"
    SQLITE = "an SQLite database"
    TNEF = "a TNEF file (winmail.dat)"
    BZIP2 = "a bzip2 archive"
    XZ = "an xz archive"
    ZSTANDARD = "a Zstandard archive"
    CABINET = "a cabinet of Windows"
    TAR = "a tar archive"
    OUTLOOK_STORE = "an Outlook data file (PST or OST)"
    ONE_NOTE = "a section of OneNote"
    WEBP = "a WebP image"
    HEIF = "a HEIF image"
    BITMAP = "a bitmap"
    SOUND_OR_FILM = "a sound or a film"
    XER = "a Primavera schedule (XER)"
    ZIP = "a zip archive"
    XLSX = "a workbook"
    XLSB = "a binary workbook (XLSB)"
    DOCX = "a Word document"
    PPTX = "a presentation"
    OFFICE_PACKAGE = "an Office file"
    """With the directory of one, but none of the folders that show which."""
    ODS = "an OpenDocument spreadsheet"
    ODT = "an OpenDocument text"
    ODP = "an OpenDocument presentation"
    LOCKED_ODS = "a protected OpenDocument spreadsheet"
    LOCKED_OPEN_DOCUMENT = "a protected OpenDocument file"
    OPEN_DOCUMENT = "an OpenDocument file"
    EPUB = "a book (EPUB)"
    XLS = "an old Office file with a workbook"
    DOC = "an old Word document"
    PPT = "an old presentation"
    MSG = "an Outlook message"
    LOCKED_OFFICE = "a protected Office file"
    COMPOUND = "an old Office file"
    DAMAGED_COMPOUND = "a damaged old Office file"
    PLAIN = "a text"
    """Nothing at its beginning shows otherwise: a text, or of no kind that is known."""


_HEADS: Final = {
    b"%PDF": Format.PDF,
    b"\x89PNG": Format.PNG,
    b"\xff\xd8\xff": Format.JPEG,
    b"GIF8": Format.GIF,
    b"II*\x00": Format.TIFF,
    b"MM\x00*": Format.TIFF,
    b"{\\rtf": Format.RTF,
    b"\x1f\x8b": Format.GZIP,
    b"7z\xbc\xaf": Format.SEVEN_ZIP,
    b"Rar!": Format.RAR,
    b"MZ": Format.WINDOWS_PROGRAM,
    b"\x7fELF": Format.LINUX_PROGRAM,
    b"SQLite format 3": Format.SQLITE,
    b"ERMHDR": Format.XER,
    b"\x78\x9f\x3e\x22": Format.TNEF,
    b"\xfd7zXZ\x00": Format.XZ,
    b"\x28\xb5\x2f\xfd": Format.ZSTANDARD,
    b"MSCF\x00\x00\x00\x00": Format.CABINET,
    b"!BDN": Format.OUTLOOK_STORE,
    b"\xe4\x52\x5c\x7b\x8c\xd8\xa7\x4d\xae\xb1": Format.ONE_NOTE,
    b"OggS\x00": Format.SOUND_OR_FILM,
    b"\x1a\x45\xdf\xa3": Format.SOUND_OR_FILM,
}
_INSIDE_HEADS: Final = (
    (re.compile(rb".{257}ustar[\x00 ]", re.DOTALL), Format.TAR),
    (re.compile(rb"RIFF.{4}WEBP", re.DOTALL), Format.WEBP),
    (re.compile(rb"RIFF.{4}(WAVE|AVI )", re.DOTALL), Format.SOUND_OR_FILM),
    (re.compile(rb"BZh[1-9]1AY&SY"), Format.BZIP2),
    (re.compile(rb"ID3[\x02-\x04]"), Format.SOUND_OR_FILM),
    (re.compile(rb"\x00\x00.{2}ftyp(hei[cfsmx]|hev[cx]|mif1|msf1|avif)", re.DOTALL), Format.HEIF),
    (re.compile(rb"\x00\x00.{2}ftyp", re.DOTALL), Format.SOUND_OR_FILM),
    (re.compile(rb"BM.{4}\x00{4}.{4}[\x0c\x28\x38\x40\x6c\x7c]\x00{3}", re.DOTALL), Format.BITMAP),
)
"""Formats whose mark is not at the very beginning, or too short to be one."""
_OPEN_DOCUMENTS: Final = {
    b"spreadsheet": Format.ODS,
    b"text": Format.ODT,
    b"presentation": Format.ODP,
}


def is_container(head: bytes) -> bool:
    """Whether a file is a package or a compound file, by its first bytes.

    Only its directory shows what it is, and its size hardly what it holds.
    """
    return head.startswith((*_ZIP_HEADS, COMPOUND_HEAD))


def is_pdf_after_others(path: Path, head: bytes) -> bool:
    """Whether a file is a PDF with other bytes before it, as its readers allow.

    A file that mentions the header of one is none: it does not end with the way to its objects.

    Args:
        path: The file, which is of no other format.
        head: Its first bytes.
    """
    if not _PDF_HEADER.search(head[:_PDF_WITHIN]):
        return False
    with path.open("rb") as file:
        file.seek(max(path.stat().st_size - _PDF_END, 0))
        return _PDF_TRAILER.search(file.read()) is not None


def format_by_head(head: bytes) -> Format | None:
    """The format that the first bytes prove.

    Args:
        head: The first `HEAD_BYTES` of the file, or all of a shorter one.

    Returns:
        None for packages and compound files: only their directory shows which kind they are.
    """
    if is_container(head):
        return None
    found = (kind for magic, kind in _HEADS.items() if head.startswith(magic))
    further = (kind for pattern, kind in _INSIDE_HEADS if pattern.match(head))
    return next(chain(found, further), Format.PLAIN)


def format_of(path: Path, what: str = "workbook") -> Format:
    """The format of a file.

    Args:
        path: The file.
        what: What people call it, for the message.

    Raises:
        UnreadableDocument: It is a zip file that is damaged or hostile.
    """
    with path.open("rb") as file:
        head = file.read(HEAD_BYTES)
    if (known := format_by_head(head)) is not None:
        return known
    if head.startswith(COMPOUND_HEAD):
        return _compound_format(path)
    with open_package(path, what) as package:
        return _package_format(package)


def _package_format(package: Package) -> Format:
    if "[Content_Types].xml" in package:
        if "xl/workbook.bin" in package:
            return Format.XLSB
        folders = {"word/": Format.DOCX, "ppt/": Format.PPTX, "xl/": Format.XLSX}
        found = (kind for folder, kind in folders.items() if package.has(folder))
        return next(found, Format.OFFICE_PACKAGE)
    if "mimetype" not in package:
        return Format.ZIP
    return _open_document(package)


def _open_document(package: Package) -> Format:
    kind = package.read("mimetype", 1024).strip()
    if kind == _EPUB:
        return Format.EPUB
    if not kind.startswith(_OPEN_DOCUMENT):
        return Format.ZIP
    kind = kind.removeprefix(_OPEN_DOCUMENT)
    # Templates are read like the documents that are made of them.
    found = _OPEN_DOCUMENTS.get(kind.removesuffix(b"-template"), Format.OPEN_DOCUMENT)
    manifest = "META-INF/manifest.xml"
    if manifest in package and b"encryption-data" in package.read(manifest):
        return Format.LOCKED_ODS if found is Format.ODS else Format.LOCKED_OPEN_DOCUMENT
    return found


def _compound_format(path: Path) -> Format:
    try:
        names = top_level_names(path)
    except DamagedCompound:
        return Format.DAMAGED_COMPOUND
    if names & {"encryptedpackage", "encryptioninfo"}:
        return Format.LOCKED_OFFICE
    if names & {"workbook", "book"}:
        return Format.XLS
    if "__properties_version1.0" in names:
        return Format.MSG
    if "powerpoint document" in names:
        return Format.PPT
    return Format.DOC if "worddocument" in names else Format.COMPOUND
