"""Office files and forms of PDF, written by hand: the smallest that hold words in every place."""

import io
import struct
import zipfile
import zlib
from collections.abc import Mapping
from typing import Final

import xlsxwriter

from stack import compound_file as nested
from stack.sample_files import outlook_properties
from tests.support.files.compound_files import compound_file
from tests.support.files.hostile_documents import pdf_of

_RELATIONS: Final = "http://schemas.openxmlformats.org/officeDocument/2006/relationships"
_SHAPES: Final = (
    'xmlns:p="http://schemas.openxmlformats.org/presentationml/2006/main"'
    ' xmlns:a="http://schemas.openxmlformats.org/drawingml/2006/main"'
    f' xmlns:r="{_RELATIONS}"'
)
_OPEN: Final = " ".join(
    f'xmlns:{name}="urn:oasis:names:tc:opendocument:xmlns:{space}:1.0"'
    for name, space in (
        *(("office", "office"), ("text", "text"), ("table", "table"), ("style", "style")),
        *(("draw", "drawing"), ("presentation", "presentation"), ("meta", "meta")),
    )
)
_TEXT, _NUMBER, _BYTES = 0x001F, 0x0003, 0x0102
_UNICODE_STORE: Final = 0x00040000
_DUBLIN: Final = 'xmlns:dc="http://purl.org/dc/elements/1.1/"'


def archive(parts: Mapping[str, str | bytes]) -> bytes:
    """A zip file of these."""
    written = io.BytesIO()
    with zipfile.ZipFile(written, "w", zipfile.ZIP_DEFLATED) as target:
        for name, content in parts.items():
            target.writestr(name, content)
    return written.getvalue()


def presentation(embedded: Mapping[str, bytes] | None = None) -> bytes:
    """A slide with a table, speaker notes and a comment."""
    return archive(
        {
            "[Content_Types].xml": _types(),
            "_rels/.rels": _relations("officeDocument", "ppt/presentation.xml"),
            "ppt/presentation.xml": f'<p:presentation {_SHAPES}><p:sldIdLst><p:sldId id="256"'
            ' r:id="rId1"/></p:sldIdLst></p:presentation>',
            "ppt/_rels/presentation.xml.rels": _relations("slide", "slides/slide1.xml"),
            "ppt/slides/slide1.xml": _slide("sld", "Gate 4: Größe"),
            "ppt/slides/_rels/slide1.xml.rels": _relations(
                "notesSlide", "../notesSlides/notesSlide1.xml"
            ),
            "ppt/notesSlides/notesSlide1.xml": _slide("notes", "say it slowly"),
            "ppt/comments/comment1.xml": f'<p:cmLst {_SHAPES}><p:cm authorId="0" idx="1">'
            "<p:text>is that right?</p:text></p:cm></p:cmLst>",
            **{f"ppt/embeddings/{name}": content for name, content in (embedded or {}).items()},
        }
    )


def _types() -> str:
    kind = "application/vnd.openxmlformats-officedocument.presentationml"
    return (
        '<Types xmlns="http://schemas.openxmlformats.org/package/2006/content-types">'
        '<Default Extension="rels"'
        ' ContentType="application/vnd.openxmlformats-package.relationships+xml"/>'
        '<Default Extension="xml" ContentType="application/xml"/>'
        f'<Override PartName="/ppt/presentation.xml" ContentType="{kind}.presentation.main+xml"/>'
        f'<Override PartName="/ppt/slides/slide1.xml" ContentType="{kind}.slide+xml"/></Types>'
    )


def _relations(kind: str, target: str) -> str:
    return (
        '<Relationships xmlns="http://schemas.openxmlformats.org/package/2006/relationships">'
        f'<Relationship Id="rId1" Type="{_RELATIONS}/{kind}" Target="{target}"/></Relationships>'
    )


def _slide(root: str, words: str) -> str:
    return (
        f"<p:{root} {_SHAPES}><p:cSld><p:spTree><p:nvGrpSpPr>"
        '<p:cNvPr id="1" name=""/><p:cNvGrpSpPr/><p:nvPr/></p:nvGrpSpPr><p:grpSpPr/>'
        '<p:sp><p:nvSpPr><p:cNvPr id="2" name="t"/><p:cNvSpPr/><p:nvPr/></p:nvSpPr><p:spPr/>'
        f"<p:txBody><a:bodyPr/><a:p><a:r><a:t>{words}</a:t></a:r></a:p></p:txBody></p:sp>"
        f"</p:spTree></p:cSld></p:{root}>"
    )


def open_text() -> bytes:
    """An OpenDocument text with a header, a footnote, a remark and a tracked deletion."""
    body = (
        "<text:tracked-changes><text:changed-region><text:deletion><text:p>struck out</text:p>"
        "</text:deletion></text:changed-region></text:tracked-changes>"
        "<text:p>Größe<text:tab/>prüfen<text:note><text:note-citation>1</text:note-citation>"
        "<text:note-body><text:p>at the gate</text:p></text:note-body></text:note>"
        "<office:annotation><text:p>by whom?</text:p></office:annotation>.</text:p>"
        "<table:table><table:table-row><table:table-cell><text:p>a cell</text:p>"
        "</table:table-cell></table:table-row></table:table>"
    )
    header = "<style:header><text:p>Confidential</text:p></style:header>"
    return archive(
        {
            "mimetype": "application/vnd.oasis.opendocument.text",
            "META-INF/manifest.xml": "<manifest/>",
            "content.xml": f"<office:document-content {_OPEN}><office:body><office:text>{body}"
            "</office:text></office:body></office:document-content>",
            "styles.xml": f"<office:document-styles {_OPEN}><office:master-styles>"
            f"<style:master-page>{header}</style:master-page></office:master-styles>"
            "</office:document-styles>",
            "meta.xml": f"<office:document-meta {_OPEN} {_DUBLIN}><office:meta>"
            "<dc:title>Gate 4</dc:title><dc:creator>Anna</dc:creator></office:meta>"
            "</office:document-meta>",
        }
    )


def workbook() -> bytes:
    """A workbook with a hidden sheet, a comment and a text box."""
    written = io.BytesIO()
    with xlsxwriter.Workbook(written) as book:
        shown = book.add_worksheet("Shown")
        shown.write_row(0, 0, ["Größe", 12.5])
        shown.write_comment(0, 0, "in metres")
        shown.insert_textbox(5, 5, "read me first")
        hidden = book.add_worksheet("Hidden")
        hidden.write(0, 0, "out of sight")
        hidden.hide()
        book.set_properties({"title": "Costs", "author": "Anna"})
    return written.getvalue()


RTF: Final = (
    rb"{\rtf1\ansi\ansicpg1252\deff0{\fonttbl{\f0 Arial;}{\f1\fcharset204 Times;}}"
    rb"{\info{\title Gate 4}{\author Anna}}{\header Confidential\par}"
    rb"\f0 Gr\'f6\'dfe \u8364? \f1\'cf\'f0\'e8\'e2\'e5\'f2\f0\par{\*\generator x;}end\par}"
)
"""A text with a header, a character of Unicode, and a font of another code page."""


def old_word(
    text: str,
    header: str = "",
    end_note: str = "",
    *,
    more: Mapping[str, bytes] | None = None,
) -> bytes:
    """A Word document of 1997 to 2003 with one piece of text, a header, an end note, more streams.

    Source: [MS-DOC] of Microsoft's open specifications, 2.5 and 2.9.38.
    """
    beside = f"{header}{end_note}\r" if header or end_note else ""
    content, start = f"{text}{beside}".encode("utf-16-le"), 0x400
    head = bytearray(start)
    struct.pack_into("<HHHHHH", head, 0, 0xA5EC, 0xC1, 0, 0x407, 0, 0x1200)
    struct.pack_into("<LL", head, 24, start, start + len(content))
    struct.pack_into("<H", head, 32, 14)
    struct.pack_into("<H", head, 62, 22)
    for place, part in ((3, text), (5, header), (8, end_note)):
        struct.pack_into("<L", head, 64 + place * 4, len(part))
    struct.pack_into("<H", head, 152, 93)
    pieces = struct.pack("<LLHLH", 0, len(text) + len(beside), 0, start, 0)
    table = bytes(4) + b"\x02" + struct.pack("<L", len(pieces)) + pieces
    struct.pack_into("<LL", head, 154 + 33 * 8, 4, len(table) - 4)
    return compound_file({"1Table": table, **(more or {}), "WordDocument": bytes(head) + content})


def old_presentation(text: str, *objects: bytes) -> bytes:
    """A presentation of 1997 to 2003 with one slide.

    Source: [MS-PPT] of Microsoft's open specifications, 2.5.1 and 2.9.42.

    Args:
        text: Of the slide.
        objects: Records of embedded objects.
    """
    words = text.encode("utf-16-le")
    atom = struct.pack("<HHL", 0, 0x0FA0, len(words)) + words
    slide = struct.pack("<HHL", 0xF, 1006, len(atom)) + atom
    return compound_file(
        {"Current User": bytes(40), "PowerPoint Document": slide + b"".join(objects)}
    )


def slide_object(content: bytes, *, compressed: bool = True, size: int | None = None) -> bytes:
    """The record of an object in a presentation, [MS-PPT] 2.10.34 and 2.10.35.

    Args:
        content: The object.
        compressed: As PowerPoint writes it.
        size: What the record says that it has, uncompressed; None: what it has.
    """
    stored = content
    if compressed:
        stored = struct.pack("<L", len(content) if size is None else size) + zlib.compress(content)
    return struct.pack("<HHL", compressed << 4, 0x1011, len(stored)) + stored


def outlook_rtf_message(subject: str, rtf: bytes) -> bytes:
    """A message of Outlook that has its text as RTF alone, stored without compression.

    Source: [MS-OXRTFCP] of Microsoft's open specifications, 2.1.3.1.
    """
    stored = struct.pack("<LL4sL", len(rtf) + 12, len(rtf), b"MELA", 0) + rtf
    return nested.compound_file(
        outlook_properties(struct.pack("<8xLLLL8x", 0, 0, 0, 0), _item(subject, (0x1009, stored)))
    )


def outlook_message_with_item(subject: str, text: str, files: Mapping[str, bytes]) -> bytes:
    """A message of Outlook that another one is attached to, which has files itself."""
    attached = {
        f"__attach_version1.0_#{number:08X}": outlook_properties(
            bytes(8), {(0x3701, _BYTES): content, (0x3707, _TEXT): name}
        )
        for number, (name, content) in enumerate(files.items())
    }
    header = struct.pack("<8xLLLL", 0, len(files), 0, len(files))
    item = {**outlook_properties(header, _item(subject, (0x1000, text))), **attached}
    outer = outlook_properties(struct.pack("<8xLLLL8x", 0, 1, 0, 1), _item("outer", (0x1000, "x")))
    place = {**outlook_properties(bytes(8), {}), "__substg1.0_3701000D": item}
    return nested.compound_file({**outer, "__attach_version1.0_#00000000": place})


def outlook_item(message_class: str) -> bytes:
    """An item of Outlook of any class."""
    values = {**_item("Anna", (0x1000, "words")), (0x001A, _TEXT): message_class}
    return nested.compound_file(outlook_properties(struct.pack("<8xLLLL8x", 0, 0, 0, 0), values))


def _item(subject: str, body: tuple[int, str | bytes]) -> dict[tuple[int, int], str | bytes | int]:
    number, words = body
    return {
        (0x001A, _TEXT): "IPM.Note",
        (0x0037, _TEXT): subject,
        (0x0C1A, _TEXT): "Anna",
        (number, _TEXT if isinstance(words, str) else _BYTES): words,
        (0x340D, _NUMBER): _UNICODE_STORE,
    }


def filled_form(attached: bytes = b"the costs") -> bytes:
    """A PDF with a filled field, a ticked box, a choice, a note, and a file at its page."""
    rect = b"/Rect [10 10 90 30] /P 3 0 R"
    stream = b"BT /F1 11 Tf 60 780 Td (the page) Tj ET"
    return pdf_of(
        [
            b"<< /Type /Catalog /Pages 2 0 R /AcroForm << /Fields [6 0 R 7 0 R 8 0 R]"
            b" /DA (/F1 0 Tf) /DR << /Font << /F1 5 0 R >> >> >> >>",
            b"<< /Type /Pages /Kids [3 0 R] /Count 1 >>",
            b"<< /Type /Page /Parent 2 0 R /MediaBox [0 0 595 842] /Contents 4 0 R"
            b" /Annots [6 0 R 7 0 R 8 0 R 9 0 R 10 0 R]"
            b" /Resources << /Font << /F1 5 0 R >> >> >>",
            b"<< /Length %d >>\nstream\n%b\nendstream" % (len(stream), stream),
            b"<< /Type /Font /Subtype /Type1 /BaseFont /Helvetica >>",
            b"<< /Type /Annot /Subtype /Widget /FT /Tx /T (name) /TU (Full name)"
            b" /V (Anna Keller) %b >>" % rect,
            b"<< /Type /Annot /Subtype /Widget /FT /Btn /T (agreed) /V /Yes /AS /Yes"
            b" /AP << /N << /Yes 4 0 R /Off 4 0 R >> >> %b >>" % rect,
            b"<< /Type /Annot /Subtype /Widget /FT /Ch /Ff 131072 /T (gate)"
            b" /Opt [(Gate 3) (Gate 4)] /V (Gate 4) %b >>" % rect,
            b"<< /Type /Annot /Subtype /Text /Contents (please check the sum) %b >>" % rect,
            b"<< /Type /Annot /Subtype /FileAttachment /Contents (see inside) /FS 11 0 R %b >>"
            % rect,
            b"<< /Type /Filespec /F (costs.txt) /UF (costs.txt) /EF << /F 12 0 R >> >>",
            b"<< /Type /EmbeddedFile /Length %d >>\nstream\n%b\nendstream"
            % (len(attached), attached),
        ]
    )


def packed_object(name: str, content: bytes) -> bytes:
    """A file as the Object Packager of Windows packs it."""
    path = f"C:\\{name}".encode() + b"\0"
    return (
        struct.pack("<H", 2)
        + name.encode()
        + b"\0"
        + path
        + struct.pack("<HHL", 0, 3, len(path))
        + path
        + struct.pack("<L", len(content))
        + content
    )


def object_in_office(name: str, content: bytes) -> bytes:
    """The same as Office keeps it in a document."""
    packed = packed_object(name, content)
    return compound_file({"\x01Ole10Native": struct.pack("<L", len(packed)) + packed})
