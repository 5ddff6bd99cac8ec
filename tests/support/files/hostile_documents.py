"""Documents made to harm their reader."""

import io
import struct
import zipfile
import zlib
from collections.abc import Mapping, Sequence
from datetime import UTC, datetime

from stack.compound_file import compound_file
from stack.sample_files import pdf, word

WRITTEN_AT = datetime(2024, 3, 4, 10, 30, tzinfo=UTC)
_MAIN = "http://schemas.openxmlformats.org/wordprocessingml/2006/main"
_MAIL = b"From: a@site.example\nTo: b@site.example\nSubject: %b\nMIME-Version: 1.0\n"


def pdf_of(objects: Sequence[bytes]) -> bytes:
    """A PDF file of these objects; the first is its catalogue."""
    body = bytearray(b"%PDF-1.7\n")
    places: list[int] = []
    for number, held in enumerate(objects, start=1):
        places.append(len(body))
        body += b"%d 0 obj\n%b\nendobj\n" % (number, held)
    table = len(body)
    body += b"xref\n0 %d\n0000000000 65535 f \n" % (len(objects) + 1)
    body += b"".join(b"%010d 00000 n \n" % place for place in places)
    body += b"trailer\n<< /Size %d /Root 1 0 R >>\nstartxref\n%d\n%%%%EOF\n" % (
        len(objects) + 1,
        table,
    )
    return bytes(body)


def _one_page_pdf(
    content: bytes, *, kids: int = 1, filters: bytes = b"", more: bytes = b""
) -> bytes:
    return pdf_of(
        [
            b"<< /Type /Catalog /Pages 2 0 R >>",
            b"<< /Type /Pages /Kids [%b] /Count %d >>" % (b"4 0 R " * kids, kids),
            b"<< /Type /Font /Subtype /Type1 /BaseFont /Helvetica >>",
            b"<< /Type /Page /Parent 2 0 R /MediaBox [0 0 595 842] /Contents 5 0 R"
            b" /Resources << /Font << /F1 3 0 R >> /XObject << /I 6 0 R >> >> >>",
            b"<< /Length %d %b >>\nstream\n%b\nendstream" % (len(content), filters, content),
            more or b"<< >>",
        ]
    )


def pdf_of_many_pages(pages: int) -> bytes:
    """A small file that shows one page very often."""
    return _one_page_pdf(b"BT /F1 11 Tf 60 780 Td (the same page) Tj ET", kids=pages)


def pdf_whose_pages_hold_themselves(pages: int) -> bytes:
    """A list of pages each of which is the list."""
    kids = b"2 0 R " * pages
    return pdf_of(
        [
            b"<< /Type /Catalog /Pages 2 0 R >>",
            b"<< /Type /Pages /Kids [%b] /Count %d >>" % (kids, pages),
        ]
    )


def mail_of_parts(count: int, part: bytes) -> bytes:
    """A mail with that many equal parts."""
    head = _MAIL % b"many" + b"Content-Type: multipart/mixed; boundary=b\n\n"
    return head + (b"--b\n" + part + b"\n") * count + b"--b--\n"


def pdf_with_a_huge_picture() -> bytes:
    """A picture of 10 gigapixels in some kilobytes."""
    picture = zlib.compress(bytes(10_000_000), 9)
    return _one_page_pdf(
        b"q 500 0 0 500 0 0 cm /I Do Q BT /F1 11 Tf 60 780 Td (below it) Tj ET",
        more=b"<< /Type /XObject /Subtype /Image /Width 100000 /Height 100000"
        b" /ColorSpace /DeviceGray /BitsPerComponent 8 /Filter /FlateDecode /Length %d >>"
        b"\nstream\n%b\nendstream" % (len(picture), picture),
    )


def pdf_whose_page_unpacks(size: int) -> bytes:
    """A page whose drawing unpacks to that many bytes."""
    drawing = b"BT /F1 1 Tf (aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa) Tj ET\n"
    packed = zlib.compress(drawing * (size // len(drawing)), 9)
    return _one_page_pdf(packed, filters=b"/Filter /FlateDecode")


def locked_pdf() -> bytes:
    """A PDF that says it is encrypted with a password."""
    plain = pdf("Locked", "Nobody", WRITTEN_AT, [["secret"]])
    locked = (
        b"/Encrypt << /Filter /Standard /V 2 /R 3 /Length 128 /P -44 /O <%b> /U <%b> >>"
        b" /ID [<00112233445566778899aabbccddeeff> <00112233445566778899aabbccddeeff>]"
    ) % (b"ab" * 32, b"cd" * 32)
    return plain.replace(b"/Info 4 0 R", b"/Info 4 0 R " + locked)


def word_with(main: str, more: Mapping[str, bytes] | None = None) -> bytes:
    """A Word document with another main part, and more parts."""
    written = io.BytesIO()
    with (
        zipfile.ZipFile(io.BytesIO(word("Title", "Author", WRITTEN_AT, ["text"]))) as source,
        zipfile.ZipFile(written, "w", zipfile.ZIP_DEFLATED) as target,
    ):
        parts = {name: source.read(name) for name in source.namelist()}
        for name, content in {**parts, "word/document.xml": main, **(more or {})}.items():
            target.writestr(name, content)
    return written.getvalue()


def word_main(body: str, before: str = "") -> str:
    """XML of a main part."""
    return f'{before}<w:document xmlns:w="{_MAIN}"><w:body>{body}</w:body></w:document>'


def word_of_entities() -> bytes:
    """Entities that multiply each other: a billion words when they are taken at their word."""
    entities = '<!ENTITY e0 "lol ">' + "".join(
        f'<!ENTITY e{n} "{f"&e{n - 1};" * 10}">' for n in range(1, 10)
    )
    return word_with(
        word_main("<w:p><w:r><w:t>&e9;</w:t></w:r></w:p>", f"<!DOCTYPE w:document [{entities}]>")
    )


def word_that_names_a_file(path: str) -> bytes:
    """An entity that stands for a file of its reader."""
    entity = f'<!DOCTYPE w:document [<!ENTITY file SYSTEM "file://{path}">]>'
    return word_with(word_main("<w:p><w:r><w:t>seen &file; so far</w:t></w:r></w:p>", entity))


def zip_bomb() -> bytes:
    """A Word document that unpacks to 100 MB of nothing."""
    written = io.BytesIO()
    with zipfile.ZipFile(written, "w", zipfile.ZIP_DEFLATED) as target:
        target.writestr("[Content_Types].xml", "<Types/>")
        target.writestr("word/document.xml", bytes(100_000_000))
    return written.getvalue()


def nested_mail(depth: int) -> bytes:
    """A mail in a mail in a mail."""
    inner = b"".join(
        b"Content-Type: message/rfc822\n\nSubject: mail %d\n" % level for level in range(depth)
    )
    return _MAIL % b"outermost" + inner + b"\nthe innermost text\n"


def nested_parts(depth: int) -> bytes:
    """Parts within parts."""
    parts = b"".join(
        b'Content-Type: multipart/mixed; boundary="b%d"\n\n--b%d\n' % (level, level)
        for level in range(depth)
    )
    return _MAIL % b"parts" + parts + b"\nthe innermost text\n"


def mail_of_many_files(count: int) -> bytes:
    """A mail with that many attachments."""
    head = _MAIL % b"many" + b"Content-Type: multipart/mixed; boundary=b\n\n--b\n\nthe text\n"
    files = b"".join(
        b"--b\nContent-Disposition: attachment; filename=f%d.bin\n\n%d\n" % (number, number)
        for number in range(count)
    )
    return head + files + b"--b--\n"


def outlook_with_a_loop() -> bytes:
    """A compound file whose streams never end: each sector leads back to an earlier one."""
    file = bytearray(compound_file({"__properties_version1.0": bytes(5_000), "a": bytes(9_000)}))
    (first_fat,) = struct.unpack_from("<L", file, 76)
    for sector in range(20):
        struct.pack_into("<L", file, 512 * (first_fat + 1) + 4 * sector, (sector + 1) % 20)
    return bytes(file)
