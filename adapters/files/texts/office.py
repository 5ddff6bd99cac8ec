"""Office files and RTF, read by a library; loaded only by the processes that read these.

What the library leaves out of a package (comments, headers, speaker notes, tracked deletions) is
read from its parts, and follows the text.
"""

import asyncio
import re
import struct
from collections.abc import Iterator
from datetime import datetime
from pathlib import Path
from typing import Final

import xberg

from adapters.files import limits
from adapters.files.compound import DamagedCompound, with_own_workbook
from adapters.files.package import Package, open_package
from adapters.files.texts.findings import Findings
from adapters.files.texts.kinds import TextKind
from adapters.files.texts.old_office import LOCKABLE, old_words, refuse_locked, take_out_of_slides
from adapters.files.texts.packages import (
    take_out_embedded,
    take_out_objects,
    with_all_words,
    words_left_out,
)
from adapters.ports.errors import UnreadableDocument

_ANY_RATIO: Final = 1 << 20
_CONFIG: Final = xberg.ExtractionConfig(
    use_cache=False,
    enable_quality_processing=False,
    disable_ocr=True,
    max_archive_depth=0,
    content_filter=xberg.ContentFilterConfig(
        include_headers=True,
        include_footers=True,
        include_footnotes=True,
        include_watermarks=True,
        strip_repeating_text=False,
    ),
    # Time and memory are bounded by the process.
    security_limits=xberg.SecurityLimits(
        max_content_size=limits.OFFICE_BYTES,
        max_archive_size=limits.OFFICE_BYTES,
        # Packages as a whole are looked at before; a picture of one colour may have any ratio.
        max_compression_ratio=_ANY_RATIO,
        max_table_cells=limits.OFFICE_CELLS,
    ),
    concurrency=xberg.ConcurrencyConfig(max_threads=1),
)
_PACKAGES: Final = frozenset(
    {TextKind.XLSX, TextKind.XLSB, TextKind.ODS, TextKind.PPTX, TextKind.ODP, TextKind.ODT}
    | {TextKind.EPUB}
)
_LEFT_OUT: Final = "not extracted"
_NO_CELLS: Final = "Expecting a worksheet, got chartsheet"
"""Its words are read from the part of the chart."""
_SKIPPED: Final = "Sheet '{}' worksheet range could not be read"
_BINARY_BOOK, _BINARY_RELATIONS = "xl/workbook.bin", "xl/_rels/workbook.bin.rels"
_RELATION: Final = re.compile(rb"<Relationship\s[^>]*>")
_RELATION_ID: Final = re.compile(rb"\sId=[\"']([\w.-]+)[\"']", re.ASCII)
_CHART_SHEET: Final = b"/chartsheet"
_OLD: Final = frozenset({TextKind.DOC, TextKind.XLS})


def read_office(path: Path, kind: TextKind, into: Findings) -> None:
    """Read all text of an Office file, its properties, and the files embedded in it.

    Raises:
        UnreadableDocument: It is damaged, needs a password, or unpacks to more than can be read.
    """
    if kind in LOCKABLE:
        refuse_locked(path, kind)
    content = path.read_bytes()
    if kind is TextKind.RTF:
        take_out_objects(content, into)
        content = with_all_words(content)
    if kind is TextKind.XLS:
        content = _with_own_workbook(path) or content
    found = _extracted(content, kind)
    into.add_text(f"{found.content}\n")
    _describe(found, into)
    for message in _unexpected(found, path, kind):
        into.note(message)
    for words in _left_out(path, kind, found.content, into):
        into.add_text(f"{words}\n")


def _unexpected(found: xberg.ExtractedDocument, path: Path, kind: TextKind) -> list[str]:
    """Warnings of the library, but for those about what is read from other places."""
    expected = [_NO_CELLS]
    if kind is TextKind.DOC:
        expected = [_LEFT_OUT]
    elif kind is TextKind.XLSB:
        with open_package(path, "document") as package:
            expected = [_SKIPPED.format(name) for name in _chart_sheets(package)]
    messages = [warning.message for warning in found.processing_warnings]
    return [each for each in messages if not any(known in each for known in expected)]


def _chart_sheets(package: Package) -> Iterator[str]:
    """Names of the sheets of a binary workbook that hold a chart alone.

    Source: [MS-XLSB] 2.4.301 (BrtBundleSh).
    """
    if _BINARY_RELATIONS not in package:
        return
    book = package.read(_BINARY_BOOK)
    for relation in _RELATION.findall(package.read(_BINARY_RELATIONS)):
        found = _RELATION_ID.search(relation)
        if found and _CHART_SHEET in relation:
            mark = struct.pack("<L", len(found[1])) + found[1].decode().encode("utf-16-le")
            name = book.partition(mark)[2]
            length = int.from_bytes(name[:4], "little")
            yield name[4 : 4 + 2 * length].decode("utf-16-le", "replace")


def _left_out(path: Path, kind: TextKind, text: str, into: Findings) -> Iterator[str]:
    if kind in _OLD:
        yield from old_words(path, kind, text, into)
    if kind is TextKind.PPT:
        take_out_of_slides(path, into)
    if kind not in _PACKAGES:
        return
    with open_package(path, "document") as package:
        yield from words_left_out(package, text, into, has_cells=kind is TextKind.ODS)
        take_out_embedded(package, into)
        if kind is TextKind.XLSB:
            into.note("comments, headers and footers of a binary workbook are not read")


def _with_own_workbook(path: Path) -> bytes | None:
    try:
        return with_own_workbook(path)
    except DamagedCompound:
        # What can be read of it, the library reads; or it says why not.
        return None


def read_message(path: Path, into: Findings) -> None:
    """Read the text of an Outlook message that has it as RTF alone.

    Raises:
        UnreadableDocument: It is damaged.
    """
    into.add_text(_extracted(path.read_bytes(), TextKind.MSG).content)


def _extracted(content: bytes, kind: TextKind) -> xberg.ExtractedDocument:
    # By the path of a file without its usual extension, properties are not found.
    given = xberg.ExtractInput(
        kind=xberg.ExtractInputKind.BYTES, bytes=content, mime_type=kind.value
    )
    try:
        result = asyncio.run(xberg.extract(given, _CONFIG))
    except (RuntimeError, ValueError) as error:
        raise UnreadableDocument(
            f"the document is damaged, or cannot be read as {kind.value} ({error}); save it again"
            " and send the new file"
        ) from error
    if not result.results:
        problems = "; ".join(each.message for each in result.errors)
        raise UnreadableDocument(f"the document cannot be read: {problems}")
    return result.results[0]


def _describe(found: xberg.ExtractedDocument, into: Findings) -> None:
    metadata = found.metadata
    into.title = metadata.title
    into.author = "; ".join(metadata.authors or ()) or metadata.created_by
    into.created_at = _moment(metadata.created_at)
    into.modified_at = _moment(metadata.modified_at)
    into.describe("subject", metadata.subject)
    into.describe("keywords", ", ".join(metadata.keywords or ()))
    into.describe("last modified by", metadata.modified_by)


def _moment(text: str | None) -> datetime | None:
    try:
        return datetime.fromisoformat(text) if text else None
    except ValueError:
        return None
