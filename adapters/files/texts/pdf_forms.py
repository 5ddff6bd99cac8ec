"""What people wrote into a PDF: values of forms, notes, and files attached to pages."""

import ctypes
from collections.abc import Callable, Iterator
from typing import Any, Final

import pypdfium2.raw as pdfium
from pypdfium2 import PdfAttachment, PdfDocument, PdfPage

from adapters.files.texts.findings import Findings

_LONGEST: Final = 1 << 20
"""Bytes of one value."""
_CHECKED: Final = (pdfium.FPDF_FORMFIELD_CHECKBOX, pdfium.FPDF_FORMFIELD_RADIOBUTTON)
_CHOICES: Final = (pdfium.FPDF_FORMFIELD_COMBOBOX, pdfium.FPDF_FORMFIELD_LISTBOX)
_NO_NOTES: Final = (pdfium.FPDF_ANNOT_POPUP, pdfium.FPDF_ANNOT_LINK)
"""A popup repeats what the note holds that it belongs to."""
_XFA: Final = (pdfium.FORMTYPE_XFA_FULL, pdfium.FORMTYPE_XFA_FOREGROUND)


class Annotations:
    """Annotations of a document's pages.

    Args:
        document: Open; none of its pages is.
        into: Takes files and notes.
    """

    def __init__(self, document: PdfDocument, into: Findings) -> None:
        self._document = document
        self._into = into
        # Values are known to the form alone, which a document without fields has not.
        document.init_forms()
        self._form: Any = None if document.formenv is None else document.formenv.raw
        if document.get_formtype() in _XFA:
            into.note("the form is one of XFA: of its values, those are read that PDF readers show")

    def words(self, page: PdfPage) -> Iterator[str]:
        """Lines with the values and notes of a page; files that are attached to it are kept."""
        for number in range(pdfium.FPDFPage_GetAnnotCount(page.raw)):
            annotation = pdfium.FPDFPage_GetAnnot(page.raw, number)
            if not annotation:
                continue
            try:
                yield from filter(None, self._words_of(annotation))
            finally:
                pdfium.FPDFPage_CloseAnnot(annotation)

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
            return ""
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


def _text(get: Callable[..., int], *arguments: Any) -> str:
    """A text that PDFium writes as UTF-16 with a NUL at its end."""
    size = get(*arguments, None, 0)
    if not 2 < size <= _LONGEST:
        return ""
    buffer = ctypes.create_string_buffer(size)
    get(*arguments, ctypes.cast(buffer, ctypes.POINTER(ctypes.c_ushort)), size)
    return buffer.raw[: size - 2].decode("utf-16-le", "replace")
