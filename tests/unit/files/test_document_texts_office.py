"""Office files, archives, forms: every place in them that holds words."""

import io
from email.message import EmailMessage
from pathlib import Path

import docx
import psutil
import pytest
from docx.opc.packuri import PackURI
from docx.opc.part import Part

from adapters.files import limits
from adapters.files.texts.pool import FileTexts
from adapters.ports.errors import UnreadableDocument
from stack.compound_file import compound_file
from tests.support.files import office
from tests.support.files.compound_files import xls
from tests.support.files.hostile_documents import word_main, word_with
from tests.support.files.reading import Reading

pytestmark = pytest.mark.asyncio(loop_scope="module")

_RELATIONSHIPS = "http://schemas.openxmlformats.org/officeDocument/2006/relationships"
_DIAGRAM = (
    b'<d:dataModel xmlns:d="http://schemas.openxmlformats.org/drawingml/2006/diagram"'
    b' xmlns:a="http://schemas.openxmlformats.org/drawingml/2006/main"><d:ptLst><d:pt><d:t><a:p>'
    b"<a:r><a:t>site manager</a:t></a:r></a:p></d:t></d:pt></d:ptLst></d:dataModel>"
)


@pytest.mark.parametrize(
    ("content", "media_type", "words"),
    [
        (
            office.presentation(),
            "application/vnd.openxmlformats-officedocument.presentationml.presentation",
            ["Gate 4: Größe", "say it slowly", "is that right?"],
        ),
        (
            office.open_text(),
            "application/vnd.oasis.opendocument.text",
            ["Größe", "prüfen", "at the gate", "by whom?", "a cell", "Confidential", "struck out"],
        ),
        (
            office.workbook(),
            "application/vnd.openxmlformats-officedocument.spreadsheetml.sheet",
            ["Shown", "Größe", "12.5", "Hidden", "out of sight", "in metres", "read me first"],
        ),
        (xls([["Größe", 12.5]]), "application/vnd.ms-excel", ["Data", "Größe", "12.5"]),
        (office.RTF, "application/rtf", ["Confidential", "Größe €", "Привет", "end"]),
        (office.old_word("Größe\rEnde\r"), "application/msword", ["Größe", "Ende"]),
        (office.old_presentation("Größe"), "application/vnd.ms-powerpoint", ["Größe"]),
    ],
    ids=["PPTX", "ODT", "XLSX", "XLS", "RTF", "DOC", "PPT"],
)
async def test_office_files_are_read_in_all_their_places(
    read: Reading, content: bytes, media_type: str, words: list[str]
) -> None:
    found = await read(content, "misleading.pdf")
    assert found.media_type == media_type
    assert [each for each in words if found.text.count(each) != 1] == []


@pytest.mark.parametrize(
    ("content", "title"),
    [(office.open_text(), "Gate 4"), (office.workbook(), "Costs"), (office.RTF, "Gate 4")],
    ids=["ODT", "XLSX", "RTF"],
)
async def test_properties_of_office_files(read: Reading, content: bytes, title: str) -> None:
    found = await read(content)
    assert (found.title, found.author) == (title, "Anna")


async def test_files_embedded_in_office_files_are_taken_out_and_pictures_are_named(
    read: Reading,
) -> None:
    found = await read(office.presentation({"costs.xlsx": office.workbook()}))
    assert [file.filename for file in found.files] == ["costs.xlsx"]
    assert "out of sight" in (await read(found.files[0].path.read_bytes())).text
    found = await read(word_with(word_main(""), {"word/media/a.png": b"a picture"}))
    assert found.notes == ["pictures inside: 1; words in pictures are not read (no OCR)"]


async def test_tracked_deletions_of_word_are_read_as_such(read: Reading) -> None:
    main = word_main(
        "<w:p><w:r><w:t>kept</w:t></w:r><w:del><w:r><w:delText>gone</w:delText></w:r></w:del></w:p>"
    )
    assert (await read(word_with(main))).text == "kept[deleted: gone]"


async def test_a_filled_form_is_read_with_its_notes_and_files(read: Reading) -> None:
    found = await read(office.filled_form())
    assert found.text.splitlines() == [
        "the page",
        "Full name: Anna Keller",
        "agreed: Yes",
        "gate: Gate 4",
        "please check the sum",
        "see inside",
    ]
    assert [(file.filename, file.path.read_bytes()) for file in found.files] == [
        ("costs.txt", b"the costs")
    ]


async def test_files_of_an_archive_are_taken_out_whatever_they_are_called(read: Reading) -> None:
    found = await read(office.archive({"a.txt": "one", "A.txt": "two", "sub/a.txt": "three"}))
    assert (found.media_type, found.text) == ("application/zip", "a.txt\nA.txt\nsub/a.txt")
    assert [file.path.read_bytes() for file in found.files] == [b"one", b"two", b"three"]


async def test_names_in_an_archive_that_are_utf_8_without_saying_so_are_read(
    read: Reading,
) -> None:
    name = "Größe.txt"
    said = office.archive({"x" * len(name.encode()): b"words"})
    found = await read(said.replace(b"x" * len(name.encode()), name.encode()))
    assert (found.text, found.files[0].filename) == (name, name)
    old = office.archive({"x" * len(name): b"words"})
    found = await read(old.replace(b"x" * len(name), name.encode("cp437")))
    assert (found.text, found.files[0].filename) == (name, name)


async def test_remarks_that_are_not_shown_are_counted(read: Reading) -> None:
    damaged = bytearray(office.archive({f"{n}.txt": b"words" for n in range(25)}))
    place = 0
    while (place := damaged.find(b"PK\x01\x02", place) + 1) > 0:
        # The checksum in the directory.
        damaged[place + 15] ^= 0xFF
    found = await read(bytes(damaged))
    assert len(found.notes) == limits.NOTES + 1
    assert found.notes[-1] == "further remarks of this kind that are not shown: 5"


async def test_diagrams_and_inserted_files_of_word_are_read(read: Reading) -> None:
    document = docx.Document()
    document.add_paragraph("the body")
    for name, media_type, kind, content in (
        ("diagrams/data1.xml", "application/xml", "diagramData", _DIAGRAM),
        ("afchunk1.html", "text/html", "aFChunk", b"<html><p>a page</p></html>"),
    ):
        part = Part(PackURI(f"/word/{name}"), media_type, content, document.part.package)
        document.part.relate_to(part, f"{_RELATIONSHIPS}/{kind}")
    written = io.BytesIO()
    document.save(written)
    found = await read(written.getvalue())
    assert found.text.split() == ["the", "body", "site", "manager"]
    assert [(file.filename, file.path.read_bytes()) for file in found.files] == [
        ("afchunk1.html", b"<html><p>a page</p></html>")
    ]


async def test_a_message_with_its_text_as_rtf_alone_is_read(read: Reading) -> None:
    found = await read(office.outlook_rtf_message("Gate 4", office.RTF))
    assert (found.media_type, found.title) == ("application/vnd.ms-outlook", "Gate 4")
    assert "Größe €" in found.text
    assert found.notes == []


async def test_an_attached_item_of_outlook_is_a_mail_with_its_files(read: Reading) -> None:
    files = {"plan.txt": b"the plan"}
    found = await read(office.outlook_message_with_item("inner: Größe", "schöne Grüße", files))
    assert [file.filename for file in found.files] == ["inner_ Größe.eml"]
    inner = await read(found.files[0].path.read_bytes(), found.files[0].filename)
    assert (inner.title, inner.author, inner.text) == ("inner: Größe", "Anna", "schöne Grüße")
    assert [(file.filename, file.path.read_bytes()) for file in inner.files] == [
        ("plan.txt", b"the plan")
    ]


@pytest.mark.parametrize(
    ("content", "media_type", "says"),
    [
        (b"\x89PNG\r\n\x1a\n", "image/png", "it is a PNG image: words in pictures are not read"),
        (b"II*\x00rest", "image/tiff", "it is a TIFF image"),
        (b"\x78\x9f\x3e\x22rest", "application/vnd.ms-tnef", "the TNEF file is damaged"),
        (b"7z\xbc\xaf\x27\x1c", "application/x-7z-compressed", "it is a 7z archive"),
        (
            b"From a@b.example Mon Mar  4 10:30:00 2024\nFrom: a@b.example\n\nhi\n\n" * 2,
            "application/mbox",
            "it is an mbox file",
        ),
        (bytes(range(256)) * 40, "application/octet-stream", "it is of no kind that is known"),
        (compound_file({"Other": b"x"}), "application/octet-stream", "it is an old Office file"),
        (b" \n ", "text/plain", "it holds no words"),
        (office.archive({}), "application/zip", "it holds no words"),
    ],
    ids=["PNG", "TIFF", "TNEF", "7z", "mbox", "unknown", "compound", "blank", "empty archive"],
)
async def test_a_document_without_words_says_why(
    read: Reading, content: bytes, media_type: str, says: str
) -> None:
    found = await read(content)
    assert (found.media_type, found.text) == (media_type, "")
    (note,) = found.notes
    assert note.startswith(says)


async def test_an_encrypted_mail_is_reported(read: Reading) -> None:
    mail = EmailMessage()
    mail["From"], mail["Subject"] = "a@site.example", "secret"
    mail.set_content(b"sealed", maintype="application", subtype="pkcs7-mime", filename="smime.p7m")
    found = await read(mail.as_bytes())
    assert found.text == ""
    assert found.notes == ["the mail is encrypted (S/MIME): its words are not read"]
    assert [file.filename for file in found.files] == ["smime.p7m"]


@pytest.mark.parametrize(
    ("content", "says"),
    [
        (compound_file({"1Table": b"x", "WordDocument": b"junk"}), "the document is damaged"),
        (office.open_text()[:400], "damaged or cut off"),
        (
            office.archive(
                {
                    "mimetype": "application/vnd.oasis.opendocument.text",
                    "META-INF/manifest.xml": "<encryption-data/>",
                }
            ),
            "is protected by a password",
        ),
    ],
    ids=["damaged", "cut off", "protected"],
)
async def test_office_files_that_cannot_be_read_are_refused(
    read: Reading, content: bytes, says: str
) -> None:
    with pytest.raises(UnreadableDocument, match=says):
        await read(content)


async def test_the_library_is_loaded_only_where_an_office_file_is_read(tmp_path: Path) -> None:
    def readers() -> list[str]:
        children = psutil.Process().children()
        return [name for child in children for name in child.cmdline() if "office_child" in name]

    before = len(readers())
    (tmp_path / "inside").mkdir()
    async with FileTexts() as texts:
        for content, more in ((b"plain words", 0), (office.RTF, 1)):
            (tmp_path / "document").write_bytes(content)
            await texts.extract(tmp_path / "document", None, tmp_path / "inside")
            assert len(readers()) == before + more
