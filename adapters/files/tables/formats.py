"""Which files are read as tables, and the messages about the others."""

from enum import Enum
from pathlib import Path
from typing import Final

from adapters.files.encodings import Content, opened
from adapters.files.formats import (
    BYTE_ORDER_MARK,
    HEAD_BYTES,
    Format,
    format_by_head,
    format_of,
)
from adapters.files.tables.custom import CustomFormat, custom_format
from adapters.ports.errors import UnreadableDocument


class TableFormat(Enum):
    """Formats that a table can be read from."""

    XLSX = "xlsx"
    XLS = "xls"
    ODS = "ods"
    TEXT = "csv"


_READ: Final = {
    Format.XLSX: TableFormat.XLSX,
    Format.OFFICE_PACKAGE: TableFormat.XLSX,
    Format.XLS: TableFormat.XLS,
    Format.ODS: TableFormat.ODS,
    Format.PLAIN: TableFormat.TEXT,
}
_BOOKS: Final = frozenset({Format.XLSX, Format.XLS, Format.ODS})
"""What is read as such, whatever the file is called."""
_ADVICE: Final = "send a table as XLSX, XLS, ODS or CSV"
_LOCKED: Final = "is protected by a password; remove it and send again"
_REASONS: Final = {
    Format.PPTX: f"is a PowerPoint presentation, not a table; {_ADVICE}",
    Format.ZIP: "is a zip archive, not a table; send the file inside it",
    Format.LOCKED_ODS: _LOCKED,
    Format.LOCKED_OFFICE: _LOCKED,
    Format.OPEN_DOCUMENT: f"is an OpenDocument file, but not a spreadsheet; {_ADVICE}",
    Format.COMPOUND: f"is an old Office file without a workbook, not a table; {_ADVICE}",
    Format.DAMAGED_COMPOUND: "is an old Office file without a workbook, or a damaged one; "
    "save it again as XLSX and send the new file",
}


def table_format(content: Content, filename: str | None = None) -> TableFormat | CustomFormat:
    """Find out a table's format.

    Args:
        content: The file; in memory it is no package and of no custom format.
        filename: The name its owner knows it by, for the message and for formats of packages.

    Raises:
        UnreadableDocument: It is not a table; the message says what it seems to be.
    """
    with opened(content) as file:
        head = file.read(HEAD_BYTES)
    refuse_head(head, filename)
    found = format_of(content) if isinstance(content, Path) else format_by_head(head)
    if found is None:
        raise ValueError("packages are read from files")
    if found not in _BOOKS and (custom := custom_format(filename)) is not None:
        return custom
    if (kind := _READ.get(found)) is not None:
        return kind
    raise _refused(found, filename)


def refuse_head(head: bytes, filename: str | None = None) -> None:
    """Refuse what is not a table by its first bytes.

    Packages and old Office files pass: only all of their bytes show which kind they are.

    Args:
        head: The first `HEAD_BYTES` of the file, or all of a shorter one.
        filename: The name its owner knows it by, for the message and for formats of packages.

    Raises:
        UnreadableDocument: It is not a table; the message says what it seems to be.
    """
    if not head:
        raise UnreadableDocument(f"{_named(filename)} is empty; upload it again")
    if custom_format(filename) is not None:
        return
    found = format_by_head(head)
    if found is not None and found not in _READ:
        raise _refused(found, filename)
    start = head.removeprefix(BYTE_ORDER_MARK).lstrip()
    if start.startswith(b"<"):
        raise UnreadableDocument(
            f"{_named(filename)} is an XML or HTML document, not a table; "
            "open it in Excel, save it as XLSX"
        )


def _refused(found: Format, filename: str | None) -> UnreadableDocument:
    reason = _REASONS.get(found, f"is {found.value}, not a table; {_ADVICE}")
    return UnreadableDocument(f"{_named(filename)} {reason}")


def _named(filename: str | None) -> str:
    return repr(filename) if filename else "the file"
