"""Reads one document; runs in a process whose time and memory are limited."""

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Final

from adapters.files import limits
from adapters.files.texts.findings import Findings
from adapters.files.texts.kinds import TextKind, kind_of
from adapters.files.texts.mail import read_mail
from adapters.files.texts.outlook import read_outlook
from adapters.files.texts.pdf import read_pdf
from adapters.files.texts.plain import read_page, read_plain
from adapters.files.texts.protocol import Answer, ReadOrder
from adapters.files.texts.word import read_word
from adapters.ports import Unavailable, UnreadableDocument

_READERS: Final[Mapping[TextKind, Callable[[Path, Findings], None]]] = {
    TextKind.PDF: read_pdf,
    TextKind.DOCX: read_word,
    TextKind.MSG: read_outlook,
    TextKind.MAIL: read_mail,
    TextKind.HTML: read_page,
    TextKind.TEXT: read_plain,
}
_ENDS_AFTER: Final = 0.75
"""Part of the processor time after which no further page is begun."""


def answer_to(order: ReadOrder) -> Answer:
    """Read a document, whatever it does to the libraries that read it."""
    findings = Findings(order.folder, _ENDS_AFTER * order.bounds.cpu_seconds)
    try:
        kind = kind_of(order.path, order.filename)
        _READERS[kind](order.path, findings)
        return Answer(extracted=findings.extracted(kind.value))
    except UnreadableDocument as error:
        return Answer(unreadable=str(error))
    except Unavailable as error:
        return Answer(unavailable=str(error), dependency=error.dependency)
    except MemoryError:
        return Answer(
            unreadable="reading the document needs more than"
            f" {order.bounds.memory_bytes // limits.MB:,} MB of memory; split it"
        )
    except Exception as error:
        # Libraries raise anything at hostile files, and this process ends here anyway: the name
        # of the failure distinguishes a fault of ours from one of the file.
        return Answer(
            unreadable="the document is damaged or cut off"
            f" ({type(error).__name__}); save it again and send the new file"
        )
