"""Documents made by code: the same bytes every time, and real enough for any reader."""

import io
import struct
import zipfile
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from email.message import EmailMessage
from email.utils import format_datetime, parseaddr
from typing import Final

import docx

from stack.compound_file import compound_file

_EPOCH_OF_OUTLOOK: Final = datetime(1601, 1, 1, tzinfo=UTC)
_UNICODE_STORE: Final = 0x00040000
_TEXT, _NUMBER, _TIME, _BYTES = 0x001F, 0x0003, 0x0040, 0x0102
_READ_AND_WRITE: Final = 6
_BY_VALUE: Final = 1


@dataclass(frozen=True, slots=True)
class Letter:
    """A mail."""

    message_id: str
    sender: str
    recipient: str
    subject: str
    sent_at: datetime
    lines: Sequence[str]
    answers: Sequence[str] = ()
    """Message ids of its thread, the oldest first."""
    files: Mapping[str, bytes] = field(default_factory=dict[str, bytes])


def pdf(title: str, author: str, written_at: datetime, pages: Sequence[Sequence[str]]) -> bytes:
    """A PDF document with a line of text for each string; characters of cp1252.

    Source: ISO 32000-1, 7.5.
    """
    first_page = 5
    kids = " ".join(f"{first_page + 2 * number} 0 R" for number in range(len(pages)))
    written = f"(D:{written_at:%Y%m%d%H%M%S}Z)".encode()
    objects = [
        b"<< /Type /Catalog /Pages 2 0 R >>",
        f"<< /Type /Pages /Kids [{kids}] /Count {len(pages)} >>".encode(),
        b"<< /Type /Font /Subtype /Type1 /BaseFont /Helvetica /Encoding /WinAnsiEncoding >>",
        b"<< /Title %b /Author %b /CreationDate %b /ModDate %b /Producer (docflow samples) >>"
        % (_pdf_text(title), _pdf_text(author), written, written),
    ]
    for number, lines in enumerate(pages):
        objects.append(
            b"<< /Type /Page /Parent 2 0 R /MediaBox [0 0 595 842] /Contents %d 0 R"
            b" /Resources << /Font << /F1 3 0 R >> >> >>" % (first_page + 2 * number + 1)
        )
        shown = b"".join(b"(%b) Tj T*\n" % _escaped(line.encode("cp1252")) for line in lines)
        stream = b"BT /F1 11 Tf 15 TL 60 780 Td\n" + shown + b"ET"
        objects.append(b"<< /Length %d >>\nstream\n%b\nendstream" % (len(stream), stream))
    return _pdf_file(objects)


def _pdf_file(objects: Sequence[bytes]) -> bytes:
    body = bytearray(b"%PDF-1.7\n%\xe2\xe3\xcf\xd3\n")
    places: list[int] = []
    for number, held in enumerate(objects, start=1):
        places.append(len(body))
        body += b"%d 0 obj\n%b\nendobj\n" % (number, held)
    table = len(body)
    body += b"xref\n0 %d\n0000000000 65535 f \n" % (len(objects) + 1)
    body += b"".join(b"%010d 00000 n \n" % place for place in places)
    body += b"trailer\n<< /Size %d /Root 1 0 R /Info 4 0 R >>\n" % (len(objects) + 1)
    body += b"startxref\n%d\n%%%%EOF\n" % table
    return bytes(body)


def _pdf_text(text: str) -> bytes:
    return b"(%b)" % _escaped(b"\xfe\xff" + text.encode("utf-16-be"))


def _escaped(text: bytes) -> bytes:
    for special in (b"\\", b"(", b")"):
        text = text.replace(special, b"\\" + special)
    return text.replace(b"\r", b"\\r").replace(b"\n", b"\\n")


def word(
    title: str,
    author: str,
    written_at: datetime,
    paragraphs: Sequence[str],
    rows: Sequence[Sequence[str]] = (),
) -> bytes:
    """A Word document with a heading, paragraphs and a table."""
    document = docx.Document()
    core = document.core_properties
    core.title, core.author, core.last_modified_by = title, author, author
    core.comments = ""
    core.created = core.modified = written_at.replace(tzinfo=None)
    document.add_heading(title)
    for paragraph in paragraphs:
        document.add_paragraph(paragraph)
    if rows:
        table = document.add_table(rows=0, cols=len(rows[0]))
        for row in rows:
            for cell, text in zip(table.add_row().cells, row, strict=True):
                cell.text = text
    written = io.BytesIO()
    document.save(written)
    return _with_fixed_times(written.getvalue())


def _with_fixed_times(package: bytes) -> bytes:
    """Zip files carry the moment of their making."""
    written = io.BytesIO()
    with (
        zipfile.ZipFile(io.BytesIO(package)) as source,
        zipfile.ZipFile(written, "w", zipfile.ZIP_DEFLATED) as target,
    ):
        for name in source.namelist():
            target.writestr(
                zipfile.ZipInfo(name), source.read(name), compress_type=zipfile.ZIP_DEFLATED
            )
    return written.getvalue()


def locked_word() -> bytes:
    """What Word makes of a document with a password: a compound file around noise."""
    noise = bytes((7 * place * place + place // 3) % 256 for place in range(6_000))
    return compound_file({"EncryptionInfo": noise[:1_024], "EncryptedPackage": noise})


def mail(letter: Letter) -> bytes:
    """A mail as it travels."""
    message = EmailMessage()
    message["Message-ID"] = f"<{letter.message_id}>"
    message["From"], message["To"] = letter.sender, letter.recipient
    message["Subject"] = letter.subject
    message["Date"] = format_datetime(letter.sent_at)
    if letter.answers:
        message["In-Reply-To"] = f"<{letter.answers[-1]}>"
        message["References"] = " ".join(f"<{name}>" for name in letter.answers)
    message.set_content("\n".join(letter.lines) + "\n")
    for name, content in letter.files.items():
        message.add_attachment(
            content, maintype="application", subtype="octet-stream", filename=name
        )
    if message.is_multipart():
        message.set_boundary(f"=={letter.message_id.partition('@')[0]}==")
    return message.as_bytes()


def outlook_message(letter: Letter) -> bytes:
    """A mail as Outlook keeps it.

    Source: [MS-OXMSG] of Microsoft's open specifications.
    """
    properties = {
        (0x001A, _TEXT): "IPM.Note",
        (0x0037, _TEXT): letter.subject,
        (0x0039, _TIME): letter.sent_at,
        (0x007D, _TEXT): f"From: {letter.sender}\r\nTo: {letter.recipient}\r\n",
        (0x0C1F, _TEXT): letter.sender,
        (0x0E04, _TEXT): letter.recipient,
        (0x1000, _TEXT): "\r\n".join(letter.lines),
        (0x1035, _TEXT): f"<{letter.message_id}>",
        (0x340D, _NUMBER): _UNICODE_STORE,
    }
    if letter.answers:
        properties[0x1042, _TEXT] = f"<{letter.answers[-1]}>"
        properties[0x1039, _TEXT] = " ".join(f"<{name}>" for name in letter.answers)
    count = len(letter.files)
    name, address = parseaddr(letter.recipient)
    recipient = {(0x3001, _TEXT): name, (0x39FE, _TEXT): address}
    attached = {
        f"__attach_version1.0_#{number:08X}": outlook_properties(
            bytes(8),
            {
                (0x3701, _BYTES): content,
                (0x3705, _NUMBER): _BY_VALUE,
                (0x3707, _TEXT): name,
            },
        )
        for number, (name, content) in enumerate(letter.files.items())
    }
    return compound_file(
        {
            **outlook_properties(struct.pack("<8xLLLL8x", 1, count, 1, count), properties),
            "__recip_version1.0_#00000000": outlook_properties(bytes(8), recipient),
            **attached,
        }
    )


def outlook_properties(
    header: bytes, values: Mapping[tuple[int, int], str | bytes | int | datetime]
) -> dict[str, bytes]:
    """The streams of one object: a list of its properties, and the long ones of them."""
    streams: dict[str, bytes] = {}
    listed = bytearray(header)
    for (number, kind), value in sorted(values.items()):
        match value:
            case int():
                short = struct.pack("<LL", value, 0)
            case datetime():
                short = struct.pack("<Q", _ticks(value))
            case _:
                held = value.encode("utf-16-le") if isinstance(value, str) else value
                streams[f"__substg1.0_{number:04X}{kind:04X}"] = held
                short = struct.pack("<LL", len(held) + (2 if kind == _TEXT else 0), 0)
        listed += struct.pack("<HHL", kind, number, _READ_AND_WRITE) + short
    return {"__properties_version1.0": bytes(listed), **streams}


def _ticks(moment: datetime) -> int:
    """Steps of 100 ns since the beginning of time."""
    return int((moment - _EPOCH_OF_OUTLOOK).total_seconds()) * 10_000_000
