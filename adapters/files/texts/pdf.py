"""PDF documents."""

import re
import unicodedata
from collections.abc import Iterator
from datetime import datetime, timedelta, timezone
from pathlib import Path
from typing import cast

from pypdfium2 import PdfBookmark, PdfDocument, PdfiumError
from pypdfium2.raw import FPDF_ERR_PASSWORD, FPDF_ERR_SECURITY

from adapters.files import limits
from adapters.files.texts.findings import Findings
from adapters.files.texts.kinds import LOCKED
from adapters.files.texts.package_words import missing_from
from adapters.files.texts.pdf_forms import Annotations
from adapters.files.texts.pdf_letters import check_letters
from adapters.ports import UnreadableDocument

_DATE = re.compile(r"(?:D:)?(\d{4})(\d\d)?(\d\d)?(\d\d)?(\d\d)?(\d\d)?(?:Z|([+-])(\d\d)'?(\d\d)?)?")
_EVERYWHERE = (-1e6, -1e6, 1e6, 1e6)
"""Left, bottom, right and top in points: pages have at most 14,400."""
_LETTERS = {
    **dict.fromkeys((*range(9), *range(14, 32)), "\ufffd"),
    2: "\x02",
    **{code: unicodedata.normalize("NFKC", chr(code)) for code in range(0xFB00, 0xFB07)},
}
"""Of ligatures, and of glyphs whose fonts do not say which letters they are; U+0002 divides a
word."""
_DESCRIBED = ("Subject", "Keywords", "Creator", "Producer")


def read_pdf(path: Path, into: Findings) -> None:
    """Read pages, document information and embedded files.

    Raises:
        UnreadableDocument: It is damaged or needs a password.
    """
    try:
        document = PdfDocument(path)
    except PdfiumError as error:
        if error.err_code in (FPDF_ERR_PASSWORD, FPDF_ERR_SECURITY):
            raise UnreadableDocument(f"the PDF document {LOCKED}") from error
        raise UnreadableDocument(
            "the PDF document is damaged or cut off; print it to a new PDF and send that"
        ) from error
    with document:
        _describe(document, into)
        check_letters(document, path, into)
        annotations = Annotations(document, into)
        _read_pages(document, annotations, into)
        for value in annotations.of_no_page():
            into.add_text(f"{value}\n")
        _read_outline(document, into)
        _take_out_files(document, into)


def _describe(document: PdfDocument, into: Findings) -> None:
    metadata = document.get_metadata_dict()
    into.title, into.author = metadata["Title"], metadata["Author"]
    into.created_at = pdf_date(metadata["CreationDate"])
    into.modified_at = pdf_date(metadata["ModDate"])
    for name in _DESCRIBED:
        into.describe(name, metadata[name])
    version = document.get_version()
    into.describe("PDF version", f"{version / 10:.1f}" if version else None)


def _read_pages(document: PdfDocument, annotations: Annotations, into: Findings) -> None:
    into.pages = count = len(document)
    blank = unreadable = 0
    for number in range(count):
        if into.is_late:
            into.cut_off(f"only the first {number:,} of {count:,} pages were read: time was over")
        if into.is_cut_off:
            break
        if unreadable == limits.DAMAGED_PAGES:
            # Each costs a walk through the tree of all pages, which a damaged one makes long.
            into.cut_off(
                f"only the first {number:,} of {count:,} pages were read: {unreadable:,} of them"
                " are damaged"
            )
            break
        try:
            text = _page_text(document, number, annotations)
        except PdfiumError:
            unreadable += 1
            continue
        blank += not text.strip()
        into.add_text(f"{text}\n\n")
    if unreadable:
        into.note(f"{unreadable:,} of {count:,} pages are damaged")
    if blank:
        into.note(f"{blank:,} of {count:,} pages hold no text: they are blank, or pictures")


def _page_text(document: PdfDocument, number: int, annotations: Annotations) -> str:
    page = document[number]
    try:
        text = page.get_textpage()
        try:
            # Also what lies outside of the part that is shown.
            found = text.get_text_bounded(*_EVERYWHERE).translate(_LETTERS)
            words = "\n".join((found, *annotations.words(page)))
        finally:
            text.close()
    finally:
        page.close()
    return "\n".join((words, *missing_from(words, annotations.drawn(number))))


def _read_outline(document: PdfDocument, into: Findings) -> None:
    """Titles of bookmarks: of scanned pages often the only words."""
    outline = cast("Iterator[PdfBookmark]", document.get_toc())
    for bookmark in outline:
        if into.is_late:
            into.note("not all bookmarks were read: time was over")
            break
        into.add_text(f"{bookmark.get_title()}\n")


def _take_out_files(document: PdfDocument, into: Findings) -> None:
    for number in range(document.count_attachments()):
        if into.is_late:
            into.note("not all embedded files were taken out: time was over")
            break
        try:
            attached = document.get_attachment(number)
            into.keep(attached.get_name(), bytes(attached.get_data()))
        except PdfiumError:
            into.note(f"embedded file {number + 1:,} is damaged")


def pdf_date(text: str) -> datetime | None:
    """A date of the document information; None where it is not one.

    Source: ISO 32000-1, 7.9.4.
    """
    found = _DATE.match(text.strip())
    if found is None:
        return None
    year, month, day, hour, minute, second = found.groups()[:6]
    sign, hours, minutes = found.groups()[6:]
    try:
        offset = timedelta(hours=int(hours or 0), minutes=int(minutes or 0))
        zone = timezone(-offset if sign == "-" else offset)
        return datetime(
            int(year),
            int(month or 1),
            int(day or 1),
            int(hour or 0),
            int(minute or 0),
            int(second or 0),
            tzinfo=zone,
        )
    except ValueError:
        return None
