"""Reads one document; runs in a process whose time and memory are limited."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from adapters.files.texts.findings import Answer, Findings, ReadRequest
from adapters.files.texts.kinds import NotRead, TextKind, kind_of
from adapters.files.texts.mail import read_mail
from adapters.files.texts.outlook import read_outlook
from adapters.files.texts.packages import read_word
from adapters.files.texts.pdf import read_pdf
from adapters.files.texts.plain import (
    read_archive,
    read_entries,
    read_load_file,
    read_page,
    read_plain,
)
from adapters.files.texts.signed import read_signed
from adapters.files.texts.tnef import read_tnef
from adapters.ports.errors import UnreadableDocument

_READERS: Final[Mapping[TextKind, Callable[[Path, Findings], None]]] = {
    TextKind.PDF: read_pdf,
    TextKind.DOCX: read_word,
    TextKind.MSG: read_outlook,
    TextKind.MAIL: read_mail,
    TextKind.HTML: read_page,
    TextKind.TEXT: read_plain,
    TextKind.ZIP: read_archive,
    TextKind.CALENDAR: read_entries,
    TextKind.CARD: read_entries,
    TextKind.LOAD_FILE: read_load_file,
    TextKind.SIGNED: read_signed,
    TextKind.TNEF: read_tnef,
}
_ENDS_AFTER: Final = 0.75
"""Part of the processor time after which no further page is begun."""


@dataclass(frozen=True, slots=True)
class Library:
    """What the library for Office files reads."""

    read_office: Callable[[Path, TextKind, Findings], None]
    read_message: Callable[[Path, Findings], None]
    """Text of an Outlook message that is there as RTF alone."""


def handle_request(order: ReadRequest, library: Library | None = None) -> Answer:
    """Read a document, whatever it does to the libraries that read it.

    Args:
        order: The document.
        library: None: the answer to an Office file is that it is needed.
    """
    findings = Findings(order.folder, _ENDS_AFTER * order.bounds.cpu_seconds)
    try:
        return _answer(order, findings, library)
    except UnreadableDocument as error:
        return Answer(unreadable=str(error))


def _answer(order: ReadRequest, findings: Findings, library: Library | None) -> Answer:
    kind = kind_of(order.path, order.filename)
    if isinstance(kind, NotRead):
        findings.note(kind.why)
        return Answer(extracted=findings.extracted(kind.media_type))
    if read := _READERS.get(kind):
        read(order.path, findings)
        if findings.has_rtf_alone:
            if library is None:
                return Answer(needs_library=True)
            library.read_message(order.path, findings)
    elif library is None:
        return Answer(needs_library=True)
    else:
        library.read_office(order.path, kind, findings)
    return Answer(extracted=findings.extracted(kind.value))
