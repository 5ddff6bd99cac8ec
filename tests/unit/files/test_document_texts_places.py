"""Words in places that readers of documents like to leave out."""

import binascii
import io
import struct
import zipfile
from collections.abc import Callable, Mapping

import pytest
import xlsxwriter

from stack.sample_files import pdf
from tests.support.files import office
from tests.support.files.compound_files import compound_file, text, xls_of
from tests.support.files.hostile_documents import WRITTEN_AT, pdf_of, word_main, word_with
from tests.support.files.open_documents import ods_of
from tests.support.files.reading import Reading

pytestmark = pytest.mark.asyncio(loop_scope="module")

_STRICT = "http://purl.oclc.org/ooxml/"
_OFFICE = "http://schemas.openxmlformats.org/"
_HEAD = b"From: a@site.example\r\nTo: b@site.example\r\n"


def _changed(content: bytes, change: Callable[[str, bytes], Mapping[str, bytes]]) -> bytes:
    """A package, its parts changed one by one."""
    with zipfile.ZipFile(io.BytesIO(content)) as source:
        parts: dict[str, str | bytes] = {}
        for name in source.namelist():
            parts.update(change(name, source.read(name)))
    return office.archive(parts)


def _sheets(header: str) -> bytes:
    written = io.BytesIO()
    with xlsxwriter.Workbook(written) as book:
        sheet = book.add_worksheet("Data")
        sheet.write(0, 0, "a cell")
        sheet.write_comment(0, 0, "in metres")
        sheet.set_header(header)
    return written.getvalue()


async def test_word_in_its_strict_variant_is_read(read: Reading) -> None:
    def strict(name: str, content: bytes) -> Mapping[str, bytes]:
        for space in ("wordprocessingml/2006/main", "officeDocument/2006/relationships"):
            short = space.replace("/2006", "")
            content = content.replace(f"{_OFFICE}{space}".encode(), f"{_STRICT}{short}".encode())
        return {name: content}

    content = word_with(word_main("<w:p><w:r><w:t>strict words</w:t></w:r></w:p>"))
    assert (await read(_changed(content, strict))).text == "strict words"


async def test_watermarks_pictures_and_lists_of_word_hold_words(read: Reading) -> None:
    body = (
        '<w:p><w:r><w:pict><v:textpath xmlns:v="urn:schemas-microsoft-com:vml" string="DRAFT"/>'
        '</w:pict></w:r><w:r><wp:docPr xmlns:wp="urn:wp" id="1" name="x" descr="the plan"/></w:r>'
        '<w:r><w:fldChar><w:ffData><w:ddList><w:result w:val="1"/><w:listEntry w:val="Gate 3"/>'
        '<w:listEntry w:val="Gate 4"/></w:ddList></w:ffData></w:fldChar></w:r></w:p>'
    )
    assert (await read(word_with(word_main(body)))).text.split("\n") == [
        "DRAFT",
        "",
        "the plan",
        "Gate 4",
    ]


async def test_properties_that_people_gave_a_word_document_are_read(read: Reading) -> None:
    def with_property(name: str, content: bytes) -> Mapping[str, bytes]:
        if name != "_rels/.rels":
            return {name: content}
        more = (
            f'<Relationship Id="own" Target="docProps/custom.xml" Type="{_OFFICE}officeDocument'
            '/2006/relationships/custom-properties"/></Relationships>'
        )
        return {
            name: content.replace(b"</Relationships>", more.encode()),
            "docProps/custom.xml": b'<Properties><property name="Matter"><lpwstr>4711</lpwstr>'
            b"</property></Properties>",
        }

    found = await read(_changed(word_with(word_main("")), with_property))
    assert found.metadata["Matter"] == "4711"


async def test_comments_of_a_workbook_are_read_wherever_they_lie(read: Reading) -> None:
    def moved(name: str, content: bytes) -> Mapping[str, bytes]:
        return {name.replace("xl/comments1.xml", "xl/comments/comment1.xml"): content}

    assert (await read(_changed(_sheets(""), moved))).text.count("in metres") == 1


async def test_headers_of_worksheets_are_read_without_their_codes(read: Reading) -> None:
    found = await read(_sheets('&L&"Arial,Bold"&12Fish && Sons&R&Kff0000Confidential &P'))
    assert "Fish & Sons" in found.text
    assert found.text.endswith("Confidential")


async def test_old_workbooks_are_read_beside_their_cells(read: Reading) -> None:
    def record(kind: int, content: bytes) -> bytes:
        return struct.pack("<HH", kind, len(content)) + content

    remark = struct.pack("<HH6xHHL", 0x212, 0, 9, 16, 0)
    beside = [
        record(0x14, struct.pack("<HB", 8, 0) + b"&CSecret"),
        record(0x1B6, remark) + record(0x3C, b"\0in metre") + record(0x3C, b"\0s"),
        record(0x100D, struct.pack("<HBB", 0, 4, 1) + "Größ".encode("utf-16-le")),
    ]
    found = await read(xls_of([text(0, 0, "a cell"), *beside]))
    assert [each for each in ("Secret", "in metre", "Größ") if each not in found.text] == []


async def test_headers_and_end_notes_of_old_word_are_read(read: Reading) -> None:
    found = await read(office.old_word("Größe\r", "Confidential\r", "by whom?\r"))
    assert [each for each in ("Größe", "Confidential", "by whom?") if each not in found.text] == []
    assert not any("not extracted" in note for note in found.notes)


async def test_cells_without_a_type_and_drawings_of_an_open_workbook_are_read(
    read: Reading,
) -> None:
    found = await read(
        ods_of(
            '<table:table table:name="Data"><table:shapes><draw:frame><draw:text-box>'
            "<text:p>in a box</text:p></draw:text-box></draw:frame></table:shapes><table:table-row>"
            "<table:table-cell><text:p>no type</text:p></table:table-cell></table:table-row>"
            "</table:table>"
        )
    )
    assert sorted(found.text.split("\n")) == ["in a box", "no type"]


async def test_what_stands_on_the_master_of_slides_is_read_and_no_placeholder(
    read: Reading,
) -> None:
    shape = "<p:sp><p:nvSpPr><p:nvPr>{}</p:nvPr></p:nvSpPr><a:p><a:t>{}</a:t></a:p></p:sp>"
    master = (
        f'<p:sldMaster xmlns:p="{_OFFICE}p" xmlns:a="{_OFFICE}a">'
        + shape.format('<p:ph type="title"/>', "Click to edit")
        + shape.format("", "Fish Ltd")
        + "</p:sldMaster>"
    )

    def with_master(name: str, content: bytes) -> Mapping[str, bytes]:
        return {name: content, "ppt/slideMasters/slideMaster1.xml": master.encode()}

    found = await read(_changed(office.presentation(), with_master))
    assert "Fish Ltd" in found.text
    assert "Click to edit" not in found.text


async def test_remarks_and_hidden_text_of_rtf_are_read(read: Reading) -> None:
    found = await read(rb"{\rtf1\ansi shown{\*\annotation{\*\atnref 1} a remark}{\v  hidden}\par}")
    assert [each for each in ("shown", "a remark", "hidden") if each not in found.text] == []


def _rich_text(held: bytes) -> bytes:
    head = struct.pack("<LLL", 0x501, 2, 8) + b"Package\0" + bytes(8)
    digits = (head + struct.pack("<L", len(held)) + held).hex()
    return (
        rb"{\rtf1\ansi outer{\object\objemb{\*\objclass Package}{\*\objdata "
        + "\n".join(digits[place : place + 64] for place in range(0, len(digits), 64)).encode()
        + rb"}{\result shown}}\par}"
    )


@pytest.mark.parametrize(
    "outer",
    [
        word_with("", {}),
        office.presentation(),
        _sheets(""),
        office.open_text(),
        _rich_text(office.packed_object("costs.txt", b"the costs")),
    ],
    ids=["DOCX", "PPTX", "XLSX", "ODT", "RTF"],
)
async def test_files_of_other_programs_are_taken_out_of_their_wrapping(
    read: Reading, outer: bytes
) -> None:
    if outer.startswith(b"PK"):
        with zipfile.ZipFile(io.BytesIO(outer)) as source:
            parts: dict[str, str | bytes] = {name: source.read(name) for name in source.namelist()}
        if "word/document.xml" in parts:
            parts["word/document.xml"] = word_main("")
        place = "Object 1" if "mimetype" in parts else "xl/embeddings/oleObject1.bin"
        parts[place] = office.object_in_office("costs.txt", b"the costs")
        outer = office.archive(parts)
    found = await read(outer)
    assert [(each.filename, each.path.read_bytes()) for each in found.files] == [
        ("costs.txt", b"the costs")
    ]


async def test_a_pdf_in_a_word_document_is_a_pdf(read: Reading) -> None:
    plan = pdf("Plan", "Anna", WRITTEN_AT, [["the plan"]])
    held = compound_file({"CONTENTS": plan})
    found = await read(word_with(word_main(""), {"word/embeddings/oleObject1.bin": held}))
    assert (await read(found.files[0].path.read_bytes())).text == "the plan"


async def test_an_object_that_is_damaged_is_kept_as_it_is(read: Reading) -> None:
    held = office.object_in_office("costs.txt", b"the costs")[:700]
    found = await read(word_with(word_main(""), {"word/embeddings/oleObject1.bin": held}))
    assert [each.path.read_bytes() for each in found.files] == [held]


async def test_bookmarks_and_what_lies_outside_of_the_page_of_a_pdf_are_read(read: Reading) -> None:
    stream = b"BT /F1 11 Tf 60 780 Td (cropped) Tj ET BT /F1 11 Tf 60 30 Td (shown) Tj ET"
    found = await read(
        pdf_of(
            [
                b"<< /Type /Catalog /Pages 2 0 R /Outlines 6 0 R >>",
                b"<< /Type /Pages /Kids [3 0 R] /Count 1 >>",
                b"<< /Type /Page /Parent 2 0 R /MediaBox [0 0 595 842] /CropBox [0 0 595 100]"
                b" /Contents 4 0 R /Resources << /Font << /F1 5 0 R >> >> >>",
                b"<< /Length %d >>\nstream\n%b\nendstream" % (len(stream), stream),
                b"<< /Type /Font /Subtype /Type1 /BaseFont /Helvetica >>",
                b"<< /First 7 0 R /Last 7 0 R /Count 1 >>",
                b"<< /Title (Exhibit A) /Parent 6 0 R /Dest [3 0 R /Fit] >>",
            ]
        )
    )
    assert found.text.split() == ["cropped", "shown", "Exhibit", "A"]


async def test_calendars_and_cards_are_read_line_by_line(read: Reading) -> None:
    found = await read(
        b"BEGIN:VCALENDAR\r\nBEGIN:VEVENT\r\nSUMMARY:The extraor\r\n dinary meeting\\, at 4\r\n"
        b"ATTACH;ENCODING=BASE64;VALUE=BINARY:AAAA\r\nEND:VEVENT\r\nEND:VCALENDAR\r\n"
    )
    assert (found.media_type, found.title) == ("text/calendar", "The extraordinary meeting, at 4")
    assert "SUMMARY:The extraordinary meeting, at 4" in found.text
    assert found.notes == ["pictures and files inside that are not taken out: 1"]
    card = await read(
        b"BEGIN:VCARD\r\nVERSION:2.1\r\nN;CHARSET=UTF-8;ENCODING=QUOTED-PRINTABLE:M=C3=BC=\r\n"
        b"ller;Anna\r\nFN:Anna\r\nEND:VCARD\r\n"
    )
    assert (card.media_type, card.title) == ("text/vcard", "Anna")
    assert ":Müller;Anna" in card.text


async def test_files_written_into_the_text_of_a_mail_are_taken_out(read: Reading) -> None:
    content = b"the costs of the gate, item by item, and all of them twice"
    lines = b"".join(binascii.b2a_uu(content[at : at + 45]) for at in range(0, len(content), 45))
    found = await read(_HEAD + b"\r\nsee below\nbegin 644 costs.txt\n" + lines + b"`\nend\nbye\n")
    assert found.text == "see below\nbye"
    assert [(each.filename, each.path.read_bytes()) for each in found.files] == [
        ("costs.txt", content)
    ]
    prose = "begin 644 words\nthat are no file at all\nend"
    assert (await read(_HEAD + b"\r\n" + prose.encode())).text == prose


async def test_an_encrypted_part_of_a_text_is_named(read: Reading) -> None:
    found = await read(_HEAD + b"\r\nhello\n-----BEGIN PGP MESSAGE-----\nhQEM\n")
    assert found.notes == ["a part of the text is encrypted (OpenPGP): its words are not read"]


@pytest.mark.parametrize(
    ("name", "notes"),
    [
        ("IPM.Note", []),
        ("IPM.Note.SMIME.MultipartSigned", []),
        (
            "IPM.Note.SMIME",
            [
                "the mail is encrypted or signed as a whole (S/MIME):"
                " its words are in the file inside"
            ],
        ),
        (
            "IPM.Contact",
            ["it is an item of Outlook (IPM.Contact): of its fields, title and text are read"],
        ),
    ],
)
async def test_what_is_not_read_of_an_item_of_outlook_is_named(
    read: Reading, name: str, notes: list[str]
) -> None:
    found = await read(office.outlook_item(name))
    assert (found.title, found.text, found.notes) == ("Anna", "words", notes)


async def test_books_are_read(read: Reading) -> None:
    found = await read(
        office.archive(
            {
                "mimetype": "application/epub+zip",
                "META-INF/container.xml": '<container xmlns="urn:oasis:names:tc:opendocument:xmlns'
                ':container"><rootfiles><rootfile full-path="o.opf" media-type="application/'
                'oebps-package+xml"/></rootfiles></container>',
                "o.opf": '<package xmlns="http://www.idpf.org/2007/opf" version="2.0"><metadata/>'
                '<manifest><item id="c" href="c.xhtml" media-type="application/xhtml+xml"/>'
                '</manifest><spine><itemref idref="c"/></spine></package>',
                "c.xhtml": '<html xmlns="http://www.w3.org/1999/xhtml"><body>a book</body></html>',
            }
        )
    )
    assert (found.media_type, found.text) == ("application/epub+zip", "a book")


@pytest.mark.parametrize(
    ("content", "says"),
    [
        (b"a.txt".ljust(257, b"\0") + b"ustar\0" + bytes(600), "a tar archive"),
        (b"BZh91AY&SY" + bytes(80), "a bzip2 archive"),
        (b"!BDN" + bytes(80), "an Outlook data file"),
        (b"\0\0\0\x18ftypheic" + bytes(80), "a HEIF image"),
        (b"RIFF\x24\0\0\0WEBPVP8 " + bytes(80), "a WebP image"),
        (b"BM" + struct.pack("<LLLL", 200, 0, 54, 40) + bytes(80), "a bitmap"),
        (b"\0\0\0\x18ftypisom" + bytes(80), "a sound or a film"),
    ],
    ids=["TAR", "BZ2", "PST", "HEIC", "WebP", "BMP", "MP4"],
)
async def test_what_is_not_read_is_called_by_its_name(
    read: Reading, content: bytes, says: str
) -> None:
    (note,) = (await read(content)).notes
    assert note.startswith(f"it is {says}")


@pytest.mark.parametrize("content", [b"BMW;4711\n", b"ID3;name\n", b"BZhou\n", b"OggSon\n"])
async def test_a_text_that_begins_like_another_format_is_a_text(
    read: Reading, content: bytes
) -> None:
    assert (await read(content)).media_type == "text/plain"
