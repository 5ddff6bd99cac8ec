"""What a file is, by what it holds; names and extensions prove nothing."""

from enum import Enum
from pathlib import Path
from typing import Final

from adapters.files.package import Package, open_package
from adapters.ports import UnreadableDocument


class Kind(Enum):
    """Formats that a table can be read from."""

    XLSX = "xlsx"
    XLS = "xls"
    ODS = "ods"
    TEXT = "csv"


HEAD_BYTES: Final = 4096
"""The first bytes of a file, which tell most formats apart."""
ZIP_HEADS: Final = (b"PK\x03\x04", b"PK\x05\x06")
COMPOUND_HEAD: Final = b"\xd0\xcf\x11\xe0\xa1\xb1\x1a\xe1"
_BYTE_ORDER_MARK = b"\xef\xbb\xbf"

_OTHERS = {
    b"%PDF": "a PDF document",
    b"\x89PNG": "a PNG image",
    b"\xff\xd8\xff": "a JPEG image",
    b"GIF8": "a GIF image",
    b"II*\x00": "a TIFF image",
    b"MM\x00*": "a TIFF image",
    b"{\\rtf": "an RTF document",
    b"\x1f\x8b": "a gzip archive",
    b"7z\xbc\xaf": "a 7z archive",
    b"Rar!": "a RAR archive",
    b"MZ": "a Windows program",
    b"\x7fELF": "a Linux program",
    b"SQLite format 3": "an SQLite database",
    b"ERMHDR": "a Primavera schedule (XER)",
}
_ADVICE = "send a table as XLSX, XLS, ODS or CSV"


def sniff(path: Path, filename: str | None = None) -> Kind:
    """Find out a table's format.

    Args:
        path: The file.
        filename: The name its owner knows it by, for the message.

    Raises:
        UnreadableDocument: It is no table; the message says what it seems to be.
    """
    name = _named(filename)
    with path.open("rb") as file:
        head = file.read(HEAD_BYTES)
    refuse_head(head, filename)
    if head.startswith(ZIP_HEADS):
        return _package_kind(path, name)
    if head.startswith(COMPOUND_HEAD):
        return _compound_kind(path, name)
    return Kind.TEXT


def refuse_head(head: bytes, filename: str | None = None) -> None:
    """Refuse what is no table by its first bytes.

    Packages and old Office files pass: only all of their bytes tell which kind they are.

    Args:
        head: The first `HEAD_BYTES` of the file, or all of a shorter one.
        filename: The name its owner knows it by, for the message.

    Raises:
        UnreadableDocument: It is no table; the message says what it seems to be.
    """
    name = _named(filename)
    if not head:
        raise UnreadableDocument(f"{name} is empty; upload it again")
    if what := named_by_head(head):
        raise UnreadableDocument(f"{name} is {what}, not a table; {_ADVICE}")
    start = head.removeprefix(_BYTE_ORDER_MARK).lstrip()
    if start.startswith(b"<"):
        raise UnreadableDocument(
            f"{name} is an XML or HTML document, not a table; open it in Excel, save it as XLSX"
        )


def named_by_head(head: bytes) -> str | None:
    """What a file is by its first bytes, for a person; None: they do not tell."""
    return next((what for magic, what in _OTHERS.items() if head.startswith(magic)), None)


def _named(filename: str | None) -> str:
    return repr(filename) if filename else "the file"


def _package_kind(path: Path, name: str) -> Kind:
    with open_package(path) as package:
        if "[Content_Types].xml" in package:
            return _office_kind(package, name)
        if "mimetype" in package:
            mimetype = package.read("mimetype", 1024)
            if mimetype.startswith(b"application/vnd.oasis.opendocument.spreadsheet"):
                _refuse_encrypted_ods(package, name)
                return Kind.ODS
            raise UnreadableDocument(
                f"{name} is an OpenDocument file, but not a spreadsheet; {_ADVICE}"
            )
        raise UnreadableDocument(f"{name} is a zip archive, not a table; send the file inside it")


def _office_kind(package: Package, name: str) -> Kind:
    for part, what in {
        "word/document.xml": "a Word document",
        "ppt/presentation.xml": "a PowerPoint presentation",
        "xl/workbook.bin": "a binary workbook (XLSB)",
    }.items():
        if part in package:
            raise UnreadableDocument(f"{name} is {what}, which is not read; {_ADVICE}")
    return Kind.XLSX


def _refuse_encrypted_ods(package: Package, name: str) -> None:
    manifest = "META-INF/manifest.xml"
    if manifest in package and b"encryption-data" in package.read(manifest):
        raise UnreadableDocument(f"{name} is protected by a password; remove it and send again")


def _compound_kind(path: Path, name: str) -> Kind:
    """Tell old Office files apart by the names in their directory, which are UTF-16."""
    streams = {
        stream: stream.encode("utf-16-le")
        for stream in ("EncryptedPackage", "EncryptionInfo", "Workbook", "Book", "WordDocument")
    }
    found: set[str] = set()
    longest = max(map(len, streams.values()))
    with path.open("rb") as file:
        tail = b""
        while block := file.read(1 << 20):
            window = tail + block
            found |= {stream for stream, marker in streams.items() if marker in window}
            tail = window[-longest:]
    if found & {"EncryptedPackage", "EncryptionInfo"}:
        raise UnreadableDocument(f"{name} is protected by a password; remove it and send again")
    if found & {"Workbook", "Book"}:
        return Kind.XLS
    what = "a Word document" if "WordDocument" in found else "an old Office file without a workbook"
    raise UnreadableDocument(f"{name} is {what}, not a table; {_ADVICE}")
