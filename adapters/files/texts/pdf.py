"""PDF documents, and what people wrote into them."""

import ctypes
import re
import unicodedata
from collections.abc import Callable, Iterator
from datetime import datetime, timedelta, timezone
from pathlib import Path
from typing import Any, Final, cast

import pypdfium2.raw as pdfium
from pypdfium2 import PdfAttachment, PdfBookmark, PdfDocument, PdfiumError, PdfPage
from pypdfium2.raw import FPDF_ERR_PASSWORD, FPDF_ERR_SECURITY

from adapters.files import limits
from adapters.files.package import XmlStream
from adapters.files.texts.findings import Findings
from adapters.files.texts.kinds import LOCKED
from adapters.files.texts.packages import missing_from
from adapters.files.texts.pdf_letters import check_letters
from adapters.ports.errors import UnreadableDocument

_LONGEST: Final = 1 << 20
"""Bytes of one value."""
_CHECKED: Final = (pdfium.FPDF_FORMFIELD_CHECKBOX, pdfium.FPDF_FORMFIELD_RADIOBUTTON)
_CHOICES: Final = (pdfium.FPDF_FORMFIELD_COMBOBOX, pdfium.FPDF_FORMFIELD_LISTBOX)
_NO_NOTES: Final = (pdfium.FPDF_ANNOT_POPUP, pdfium.FPDF_ANNOT_LINK)
"""A popup repeats what the note holds that it belongs to."""
_XFA: Final = (pdfium.FORMTYPE_XFA_FULL, pdfium.FORMTYPE_XFA_FOREGROUND)
_XFA_VALUES: Final = "datasets"
_KEYS: Final = (b"T", b"V")
_OFF: Final = "Off"
_DEPTH: Final = 5
"""Drawings within drawings that are looked at."""


class Annotations:
    """Annotations of a document's pages.

    Args:
        document: Open; none of its pages is.
        into: Takes files and notes.
    """

    def __init__(self, document: PdfDocument, into: Findings) -> None:
        self._document = document
        self._into = into
        self._are_drawn = False
        self._known: set[str] = set()
        # Values are known to the form alone, which a document without fields has not.
        document.init_forms()
        self._form: Any = None if document.formenv is None else document.formenv.raw
        if document.get_formtype() in _XFA:
            into.note("the form is one of XFA: of it, values are read, and no fixed texts")

    def words(self, page: PdfPage) -> Iterator[str]:
        """Lines with the values and notes of a page; files that are attached to it are kept."""
        self._are_drawn = False
        for number in range(pdfium.FPDFPage_GetAnnotCount(page.raw)):
            annotation = pdfium.FPDFPage_GetAnnot(page.raw, number)
            if not annotation:
                continue
            try:
                self._are_drawn |= bool(pdfium.FPDFAnnot_HasKey(annotation, b"AP"))
                yield from filter(None, self._words_of(annotation))
            finally:
                pdfium.FPDFPage_CloseAnnot(annotation)

    def drawn(self, number: int) -> Iterator[str]:
        """What those of the page draw that was read last: stamps, signatures, values as shown.

        Their drawings become a part of the page, in memory.
        """
        if not self._are_drawn:
            return
        page = self._document[number]
        before = pdfium.FPDFPage_CountObjects(page.raw)
        outcome = pdfium.FPDFPage_Flatten(page.raw, pdfium.FLAT_NORMALDISPLAY)
        page.close()
        if outcome != pdfium.FLATTEN_SUCCESS:
            return
        page = self._document[number]
        text = page.get_textpage()
        for place in range(before, pdfium.FPDFPage_CountObjects(page.raw)):
            yield from _drawn(pdfium.FPDFPage_GetObject(page.raw, place), text.raw)
        text.close()
        page.close()

    def of_no_page(self) -> Iterator[str]:
        """Values of a form of XFA that were on no page that was read."""
        values = _XfaValues()
        try:
            for content in _packets(self._document):
                values.read(content)
        except UnreadableDocument as error:
            self._into.note(f"not all values of the form were read: {error}")
        yield from (f"{name}: {value}" for name, value in values.found if value not in self._known)

    def _words_of(self, annotation: Any) -> Iterator[str]:
        kind = pdfium.FPDFAnnot_GetSubtype(annotation)
        if kind == pdfium.FPDF_ANNOT_WIDGET:
            yield self._field(annotation)
            return
        if kind == pdfium.FPDF_ANNOT_FILEATTACHMENT:
            self._keep(annotation)
        if kind not in _NO_NOTES:
            yield _text(pdfium.FPDFAnnot_GetStringValue, annotation, b"Contents")

    def _field(self, annotation: Any) -> str:
        if self._form is None:
            # Programs that take pages out of a document leave its form behind.
            name, value = (_text(pdfium.FPDFAnnot_GetStringValue, annotation, key) for key in _KEYS)
            return f"{name}: {value}" if value not in ("", _OFF) else ""
        kind = pdfium.FPDFAnnot_GetFormFieldType(self._form, annotation)
        name = self._of_field(pdfium.FPDFAnnot_GetFormFieldAlternateName, annotation)
        name = name or self._of_field(pdfium.FPDFAnnot_GetFormFieldName, annotation)
        if kind in _CHECKED:
            is_on = pdfium.FPDFAnnot_IsChecked(self._form, annotation)
            get = pdfium.FPDFAnnot_GetFormFieldExportValue
            value = self._of_field(get, annotation) if is_on else ""
        else:
            value = self._of_field(pdfium.FPDFAnnot_GetFormFieldValue, annotation)
            if kind in _CHOICES:
                value = "; ".join(self._chosen(annotation)) or value
        self._known.add(value)
        return f"{name}: {value}" if value else ""

    def _chosen(self, annotation: Any) -> Iterator[str]:
        for number in range(pdfium.FPDFAnnot_GetOptionCount(self._form, annotation)):
            if pdfium.FPDFAnnot_IsOptionSelected(self._form, annotation, number):
                yield _text(pdfium.FPDFAnnot_GetOptionLabel, self._form, annotation, number)

    def _of_field(self, get: Callable[..., int], annotation: Any) -> str:
        return _text(get, self._form, annotation)

    def _keep(self, annotation: Any) -> None:
        raw = pdfium.FPDFAnnot_GetFileAttachment(annotation)
        if not raw:
            self._into.note("a file that is attached to a page is damaged")
            return
        attached = PdfAttachment(raw, self._document)
        self._into.keep(attached.get_name(), bytes(attached.get_data()))


def _drawn(drawing: Any, text: Any, depth: int = _DEPTH) -> Iterator[str]:
    """Texts of a drawing, and of each one within it."""
    words: list[str] = []
    for number in range(max(pdfium.FPDFFormObj_CountObjects(drawing), 0)):
        thing = pdfium.FPDFFormObj_GetObject(drawing, number)
        if pdfium.FPDFPageObj_GetType(thing) == pdfium.FPDF_PAGEOBJ_TEXT:
            words.append(_text(pdfium.FPDFTextObj_GetText, thing, text))
        elif depth:
            yield from _drawn(thing, text, depth - 1)
    yield " ".join(words)


class _XfaValues:
    """Values of a form of XFA, with the names of their fields."""

    def __init__(self) -> None:
        self.found: list[tuple[str, str]] = []
        self._open: list[str] = []
        self._piece: list[str] = []

    def read(self, content: bytes) -> None:
        """Take the values of a packet of the form, or of the form as a whole.

        Raises:
            UnreadableDocument: It is damaged.
        """
        XmlStream(self._start, self._end, self._piece.append, what="form").feed(content, final=True)

    def _start(self, name: str, _: dict[str, str]) -> None:
        self._open.append(name)
        self._piece.clear()

    def _end(self, name: str) -> None:
        value = "".join(self._piece).strip()
        if value and _XFA_VALUES in self._open:
            self.found.append((name, value))
        self._open.pop()
        self._piece.clear()


def _packets(document: PdfDocument) -> Iterator[bytes]:
    size = ctypes.c_ulong()
    for number in range(pdfium.FPDF_GetXFAPacketCount(document.raw)):
        pdfium.FPDF_GetXFAPacketContent(document.raw, number, None, 0, size)
        content = ctypes.create_string_buffer(size.value)
        pdfium.FPDF_GetXFAPacketContent(document.raw, number, content, size.value, size)
        if _XFA_VALUES.encode() in content.raw:
            yield content.raw


def _text(get: Callable[..., int], *arguments: Any) -> str:
    """A text that PDFium writes as UTF-16 with a NUL at its end."""
    size = get(*arguments, None, 0)
    if not 2 < size <= _LONGEST:
        return ""
    buffer = ctypes.create_string_buffer(size)
    get(*arguments, ctypes.cast(buffer, ctypes.POINTER(ctypes.c_ushort)), size)
    return buffer.raw[: size - 2].decode("utf-16-le", "replace")


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
