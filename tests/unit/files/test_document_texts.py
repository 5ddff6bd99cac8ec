"""Real documents, read by the real libraries in processes of their own."""

import asyncio
import base64
import email.policy
import hashlib
import io
import zipfile
from datetime import UTC, datetime
from email.message import EmailMessage
from email.mime.multipart import MIMEMultipart
from email.mime.text import MIMEText
from email.parser import BytesParser
from pathlib import Path

import docx
import psutil
import pytest
from pypdfium2 import PdfDocument

from adapters.files import limits
from adapters.files.texts.pool import FileTexts
from adapters.ports.documents import Extracted
from stack.sample_files import Letter, mail, outlook_message, pdf, word
from tests.support.files.hostile_documents import word_main, word_with
from tests.support.files.reading import Reading

pytestmark = pytest.mark.asyncio(loop_scope="module")

WRITTEN_AT = datetime(2024, 3, 4, 10, 30, tzinfo=UTC)
WORD = "application/vnd.openxmlformats-officedocument.wordprocessingml.document"
LETTER = Letter(
    message_id="second@site.example",
    sender="Anna Keller <anna@site.example>",
    recipient="Ben Núñez <ben@site.example>",
    subject="Gate 4: Größe prüfen",
    sent_at=WRITTEN_AT,
    lines=["Lieber Ben,", "das Tor ist zu groß."],
    answers=("oldest@site.example", "first@site.example"),
    files={"plan.pdf": b"%PDF-1.7 and so on", "../../etc/notes.txt": b"notes"},
)


def _zip_with_a_pdf() -> bytes:
    written = io.BytesIO()
    with zipfile.ZipFile(written, "w") as target:
        target.writestr("plan.pdf", pdf("Plan", "Anna", WRITTEN_AT, [["the plan"]]))
    return written.getvalue()


async def test_a_package_with_a_pdf_inside_is_not_that_pdf(read: Reading) -> None:
    found = await read(_zip_with_a_pdf(), "plan.pdf")
    assert (found.media_type, found.text) == ("application/zip", "plan.pdf")


@pytest.mark.parametrize(
    ("content", "media_type"),
    [
        (b"From: a@x.example\nTo: b@x.example\n\nIt begins with %PDF-1.7", "message/rfc822"),
        (b"A file that begins with\n%PDF-1.7\nis a PDF.", "text/plain"),
        (b"<html><p>%PDF-1.7</p></html>", "text/html"),
        (b"junk\n" + pdf("Plan", "Anna", WRITTEN_AT, [["the plan"]]), "application/pdf"),
    ],
    ids=["mail", "text", "page", "PDF after other bytes"],
)
async def test_a_kind_is_no_byte_found_somewhere(
    read: Reading, content: bytes, media_type: str
) -> None:
    assert (await read(content)).media_type == media_type


async def test_pdf(read: Reading) -> None:
    pages = [["Größe (1)", "second line"], [], [r"a \ b"]]
    found = await read(pdf("Plan €, ñ", "Anna Keller", WRITTEN_AT, pages))
    assert found.media_type == "application/pdf"
    assert found.text.split() == ["Größe", "(1)", "second", "line", "a", "\\", "b"]
    assert (found.title, found.author, found.pages) == ("Plan €, ñ", "Anna Keller", 3)
    assert found.created_at == found.modified_at == WRITTEN_AT
    assert found.metadata["Producer"] == "docflow samples"
    assert not found.truncated
    assert found.notes == ["1 of 3 pages hold no text: they are blank, or pictures"]


async def test_files_inside_a_pdf_are_extracted(read: Reading) -> None:
    document = PdfDocument(pdf("Portfolio", "Anna", WRITTEN_AT, [["see inside"]]))
    document.new_attachment("costs/2024.csv").set_data(b"item;amount\n")
    written = io.BytesIO()
    document.save(written)
    document.close()
    found = await read(written.getvalue())
    assert [(file.filename, file.path.read_bytes()) for file in found.files] == [
        ("2024.csv", b"item;amount\n")
    ]


async def test_word(read: Reading) -> None:
    content = word("Change order", "Carla", WRITTEN_AT, ["Größe", "Ende"], [("Item", "Amount")])
    found = await read(content, "misleading.pdf")
    assert found.media_type == WORD
    assert found.text.split("\n") == ["Change order", "Größe", "Ende", "Item", "Amount"]
    assert (found.title, found.author) == ("Change order", "Carla")
    assert found.created_at == found.modified_at == WRITTEN_AT
    assert found.metadata["last modified by"] == "Carla"


async def test_word_is_read_where_its_text_is_hidden_from_the_usual_paragraphs(
    read: Reading,
) -> None:
    def run(text: str) -> str:
        return f"<w:p><w:r><w:t>{text}</w:t><w:tab/><w:noBreakHyphen/><w:br/></w:r></w:p>"

    compatibility = "http://schemas.openxmlformats.org/markup-compatibility/2006"
    main = word_main(
        "<w:p><w:pPr><w:tabs><w:tab/></w:tabs></w:pPr></w:p>"
        f"<w:sdt><w:sdtContent>{run('in a control')}</w:sdtContent></w:sdt>"
        f'<mc:AlternateContent xmlns:mc="{compatibility}"><mc:Choice>{run("in a box")}</mc:Choice>'
        f"<mc:Fallback>{run('shown by old programs')}</mc:Fallback></mc:AlternateContent>"
        "<w:p><w:ins><w:r><w:t>added</w:t></w:r></w:ins>"
        "<w:del><w:r><w:delText>struck out</w:delText></w:r></w:del></w:p>"
    )
    found = await read(word_with(main))
    assert found.text == "in a control\t-\n\nin a box\t-\n\nadded[deleted: struck out]"


async def test_word_headers_follow_the_text(read: Reading) -> None:
    document = docx.Document()
    document.add_paragraph("the body")
    document.sections[0].header.paragraphs[0].text = "Confidential"
    written = io.BytesIO()
    document.save(written)
    found = await read(written.getvalue())
    assert found.text.split() == ["the", "body", "Confidential"]


async def test_mail(read: Reading) -> None:
    found = await read(mail(LETTER))
    assert found.media_type == "message/rfc822"
    assert found.text == "Lieber Ben,\ndas Tor ist zu groß."
    assert (found.title, found.author) == ("Gate 4: Größe prüfen", LETTER.sender)
    assert found.created_at == WRITTEN_AT
    assert found.thread == ["second@site.example", "first@site.example", "oldest@site.example"]
    assert found.metadata["To"] == LETTER.recipient
    _check_files(found)


async def test_outlook_message(read: Reading) -> None:
    found = await read(outlook_message(LETTER))
    assert found.media_type == "application/vnd.ms-outlook"
    assert found.text == "Lieber Ben,\ndas Tor ist zu groß."
    assert (found.title, found.author) == ("Gate 4: Größe prüfen", LETTER.sender)
    assert found.created_at == WRITTEN_AT
    assert found.thread == ["second@site.example", "first@site.example", "oldest@site.example"]
    assert found.metadata["To"] == LETTER.recipient
    _check_files(found)


def _check_files(found: Extracted) -> None:
    assert [file.filename for file in found.files] == ["plan.pdf", "notes.txt"]
    for file, content in zip(found.files, LETTER.files.values(), strict=True):
        assert file.path.read_bytes() == content
        assert (file.size, file.sha256) == (len(content), hashlib.sha256(content).hexdigest())


async def test_a_mail_that_is_a_page_is_read_as_one_sees_it(read: Reading) -> None:
    message = EmailMessage()
    message["From"], message["Subject"] = "a@site.example", "page"
    message.set_content(
        "<html><head><title>no</title><style>p {}</style></head><body><p>Hello<br>there"
        "<p>5&nbsp;&euro;<table><tr><td>a</td><td>b</td></tr></table></body></html>",
        subtype="html",
    )
    found = await read(message.as_bytes())
    assert found.text.split("\n") == ["Hello", "there", "5 €", "a\tb"]
    assert not found.files


@pytest.mark.parametrize(
    ("page", "text"),
    [
        ("<p><b>plain</b> words", "plain words"),
        ("<p>The gate is too large", "plain words\n\nThe gate is too large"),
    ],
    ids=["the same words", "others"],
)
@pytest.mark.parametrize("kind", ["alternative", "mixed"])
async def test_a_page_beside_the_text_of_a_mail_is_read_where_it_has_words_of_its_own(
    read: Reading, kind: str, page: str, text: str
) -> None:
    message = MIMEMultipart(kind)
    message["From"], message["Subject"] = "a@site.example", "both"
    message.attach(MIMEText("plain words\n"))
    message.attach(MIMEText(page, "html"))
    found = await read(message.as_bytes())
    assert (found.text, found.files) == (text, [])


async def test_pictures_of_a_page_beside_the_text_are_kept(read: Reading) -> None:
    message = EmailMessage()
    message["From"], message["Subject"] = "a@site.example", "both"
    message.set_content("plain words")
    message.add_alternative("<p>plain words</p>", subtype="html")
    page = message.get_payload(1)
    page.add_related(b"picture", "image", "png", cid="<logo>")  # type: ignore[union-attr]
    found = await read(message.as_bytes())
    assert found.text == "plain words"
    assert [(file.filename, file.path.read_bytes()) for file in found.files] == [
        ("part", b"picture")
    ]


async def test_an_attached_mail_is_a_file_of_its_own(read: Reading) -> None:
    outer = EmailMessage()
    outer["From"], outer["Subject"] = "a@site.example", "outer"
    outer.set_content("see below")
    outer.add_attachment(BytesParser(policy=email.policy.default).parsebytes(mail(LETTER)))
    found = await read(outer.as_bytes())
    assert found.text == "see below"
    assert [file.filename for file in found.files] == ["Gate 4_ Größe prüfen.eml"]
    inner = await read(found.files[0].path.read_bytes())
    assert inner.text == "Lieber Ben,\ndas Tor ist zu groß."
    assert [file.filename for file in inner.files] == ["plan.pdf", "notes.txt"]


async def test_an_attached_mail_that_was_encoded_is_a_mail(read: Reading) -> None:
    outer = (
        b"From: a@site.example\nSubject: outer\nMIME-Version: 1.0\n"
        b"Content-Type: multipart/mixed; boundary=B\n\n--B\nContent-Type: message/rfc822\n"
        b"Content-Transfer-Encoding: base64\n\n" + base64.encodebytes(mail(LETTER)) + b"\n--B--\n"
    )
    (file,) = (await read(outer)).files
    assert file.path.read_bytes() == mail(LETTER)
    plain = outer.replace(base64.encodebytes(mail(LETTER)), b"From: b@site.example\n\nhello\n")
    (file,) = (await read(plain)).files
    assert file.path.read_bytes() == b"From: b@site.example\n\nhello\n"


@pytest.mark.parametrize("encoding", ["utf-8", "cp1252"])
async def test_letters_that_are_not_encoded_in_a_header_are_read(
    read: Reading, encoding: str
) -> None:
    found = await read(
        (
            "From: Jürgen <a@site.example>\nSubject: Größe prüfen\nMIME-Version: 1.0\n"
            "Content-Type: multipart/mixed; boundary=B\n\n--B\n"
            'Content-Type: text/plain; name="Türen.txt"\n\nhello\n--B\n'
            'Content-Disposition: attachment; filename="Pläne.txt"\n\nplans\n--B--\n'
        ).encode(encoding)
    )
    assert (found.title, found.author) == ("Größe prüfen", "Jürgen <a@site.example>")
    assert [file.filename for file in found.files] == ["Pläne.txt"]


async def test_a_mail_without_an_id_begins_a_thread_of_its_own(read: Reading) -> None:
    anonymous = b"From: a@site.example\nSubject: x\nIn-Reply-To: <first@site.example>\n\nhello\n"
    found = await read(anonymous)
    digest = hashlib.sha256(anonymous).hexdigest()
    assert found.thread == [f"sha256-{digest}", "first@site.example"]


async def test_what_is_wrong_in_a_header_does_not_hide_the_mail(read: Reading) -> None:
    found = await read(
        b"From: =?utf-8?q?broken\nTo: <>,;:@\nDate: the day before\nSubject: =?nope?q?x?=\n"
        b"Content-Type: text/plain; charset=martian\n\nGr\xfc\xdfe\n"
    )
    assert found.text == "Grüße"
    assert found.created_at is None
    assert found.notes == [
        "the mail's text is not in the encoding that it names: read as windows-1252"
    ]


@pytest.mark.parametrize(
    "encoding", ["utf-8", "utf-8-sig", "utf-16", "utf-16-le", "utf-16-be", "utf-32", "cp1252"]
)
async def test_text_in_every_encoding(read: Reading, encoding: str) -> None:
    text = "Größe geprüft, für Türen über 2 m gilt: schöne Grüße aus Köln\n" * 3
    found = await read(text.encode(encoding))
    assert (found.media_type, found.text) == ("text/plain", text.strip())


async def test_a_page_in_utf_16_is_a_page(read: Reading) -> None:
    found = await read("<html><body><p>Größe</p></body></html>".encode("utf-16"))
    assert (found.media_type, found.text) == ("text/html", "Größe")


async def test_text_of_other_scripts(read: Reading) -> None:
    text = "Протокол совещания на строительной площадке: бетон доставлен в срок.\n" * 5
    assert (await read(text.encode("cp1251"))).text == text.strip()


async def test_text_is_made_fit_to_be_stored(read: Reading) -> None:
    found = await read(b"a\r\nb\rc\x0cd\x07\x1b e\t\xc2\x85f")
    assert found.text == "a\nb\nc\nd e\t\nf"


async def test_page_of_html(read: Reading) -> None:
    found = await read(b"<!DOCTYPE html>\n<html><script>no()</script><h1>A</h1>b</html>", "x.txt")
    assert (found.media_type, found.text) == ("text/html", "A\nb")


async def test_what_looks_like_a_header_is_a_mail_only_with_a_name_or_two_fields(
    read: Reading,
) -> None:
    assert (await read(b"Subject: hello\n\ntext")).media_type == "text/plain"
    assert (await read(b"Subject: hello\n\ntext", "x.EML")).media_type == "message/rfc822"
    assert (await read(b"Note: a\nFrom here on: b\n\ntext")).media_type == "text/plain"
    assert (await read(b"From: a@b\nX-Y: z\n q\nTo: c\n\ntext")).media_type == "message/rfc822"


async def test_text_beyond_the_limit_is_cut_off_and_noted(read: Reading) -> None:
    found = await read("ä".encode() * (limits.TEXT_BYTES // 2 + 10))
    assert len(found.text.encode()) == limits.TEXT_BYTES
    assert found.truncated
    assert found.notes == ["only the first 20 MB of its text are kept"]


async def test_many_at_once_share_few_processes(tmp_path: Path) -> None:
    def readers() -> set[psutil.Process]:
        children = psutil.Process().children()
        return {child for child in children if "adapters.files.texts.child" in child.cmdline()}

    before = readers()
    async with FileTexts(at_once=2) as texts:

        async def read_one(number: int) -> str:
            folder = tmp_path / str(number)
            folder.mkdir()
            path = folder / "document"
            path.write_bytes(b"text %d" % number)
            return (await texts.extract(path, None, folder)).text

        found = await asyncio.gather(*map(read_one, range(20)))
        assert found == [f"text {number}" for number in range(20)]
        assert len(readers() - before) == 2
    assert readers() == before
