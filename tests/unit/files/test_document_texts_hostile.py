"""Documents that are damaged or made to do harm: one clear sentence, or what can be read."""

import io
import sys
import time
import zipfile
from collections.abc import AsyncIterator, Callable
from pathlib import Path

import pytest
import pytest_asyncio
from docx.opc.constants import NAMESPACE
from docx.opc.constants import RELATIONSHIP_TYPE as RT

from adapters.files import limits
from adapters.files.forks import Bounds
from adapters.files.texts.findings import Findings
from adapters.files.texts.mail import read_mail
from adapters.files.texts.pool import FileTexts
from adapters.ports.documents import Extracted
from adapters.ports.errors import UnreadableDocument
from stack.sample_files import Letter, locked_word, mail, outlook_message, pdf, word
from tests.support.files import hostile_documents as hostile

pytestmark = pytest.mark.asyncio(loop_scope="module")

_LETTER = Letter("id", "a@b", "c@d", "subject", hostile.WRITTEN_AT, ["text " * 2_000])
_READABLE = pdf("Title", "Author", hostile.WRITTEN_AT, [["text"]])
_WORD = word("Title", "Author", hostile.WRITTEN_AT, ["text"])


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def texts() -> AsyncIterator[FileTexts]:
    async with FileTexts() as texts:
        yield texts


async def _read(texts: FileTexts, folder: Path, content: bytes, name: str = "x") -> Extracted:
    path, inside = folder / "document", folder / "inside"
    inside.mkdir(exist_ok=True)
    path.write_bytes(content)
    return await texts.extract(path, name, inside)


def _package(*names: str) -> bytes:
    written = io.BytesIO()
    with zipfile.ZipFile(written, "w") as target:
        for name in names:
            target.writestr(name, "<x/>")
    return written.getvalue()


@pytest.mark.parametrize(
    ("make", "says"),
    [
        (lambda: b"", "is empty"),
        (lambda: _package("[Content_Types].xml", "word/document.xml"), "damaged or cut off"),
        (lambda: _READABLE[:600], "PDF document is damaged or cut off; print it"),
        (lambda: _WORD[:20_000], "damaged or cut off"),
        (lambda: outlook_message(_LETTER)[:4_000], "damaged or cut off"),
        (hostile.locked_pdf, "is protected by a password; remove it"),
        (locked_word, "is protected by a password; remove it"),
        (hostile.zip_bomb, "as only a zip bomb does"),
        (hostile.word_of_entities, "damaged or cut off"),
        (lambda: hostile.word_with(hostile.word_main("<w:p>" * 5_000)), "damaged or cut off"),
        (lambda: hostile.nested_mail(1_000), "nests mails and parts so deeply"),
        (lambda: hostile.nested_mail(500), "nests mails and parts so deeply"),
        (lambda: hostile.nested_parts(1_000), "nests mails and parts so deeply"),
        (hostile.outlook_with_a_loop, "Outlook message is damaged"),
    ],
)
async def test_refused_with_one_sentence(
    texts: FileTexts, tmp_path: Path, make: Callable[[], bytes], says: str
) -> None:
    with pytest.raises(UnreadableDocument, match=says) as refused:
        await _read(texts, tmp_path, make())
    assert len(str(refused.value)) < 300
    assert "\n" not in str(refused.value)
    assert (await _read(texts, tmp_path, _READABLE)).text == "text"


@pytest.mark.parametrize(
    "content",
    [
        b"<html><body>" + b"<!--" * 200_000,
        b"<html><body>" + b"<a " * 200_000,
        b"From: a@b.example\nSubject: x\n\n\n\nFrom a " + b"1:1111" * 100_000,
    ],
    ids=["comments", "elements", "a line of digits"],
)
async def test_what_never_closes_is_read_at_once(tmp_path: Path, content: bytes) -> None:
    async with FileTexts(Bounds(cpu_seconds=10)) as texts:
        assert await _read(texts, tmp_path, content)


async def test_a_hundred_thousand_pages(texts: FileTexts, tmp_path: Path) -> None:
    found = await _read(texts, tmp_path, hostile.pdf_of_many_pages(100_000))
    assert found.pages == 100_000
    assert found.truncated or found.text.count("the same page") == 100_000


async def test_pages_that_take_too_long_are_left_out_and_noted(tmp_path: Path) -> None:
    async with FileTexts(Bounds(cpu_seconds=1)) as texts:
        found = await _read(texts, tmp_path, hostile.pdf_of_many_pages(100_000))
    assert found.pages == 100_000
    assert found.truncated
    (note,) = found.notes
    assert note.startswith("only the first ")
    assert note.endswith(" of 100,000 pages were read: time was over")


async def test_huge_pictures_are_not_unpacked(texts: FileTexts, tmp_path: Path) -> None:
    assert (await _read(texts, tmp_path, hostile.pdf_with_a_huge_picture())).text == "below it"


async def test_memory_is_bounded(tmp_path: Path) -> None:
    async with FileTexts(Bounds(memory_bytes=256 * limits.MB)) as texts:
        with pytest.raises(UnreadableDocument, match=r"crashed with signal 6 \(SIGABRT\)|256 MB"):
            await _read(texts, tmp_path, hostile.pdf_whose_page_unpacks(200_000_000))
        assert (await _read(texts, tmp_path, _READABLE)).text == "text"


@pytest.mark.parametrize(
    ("bounds", "says"),
    [
        (Bounds(cpu_seconds=1), "more than 1 s of processor time, or 300 s in all"),
        (Bounds(seconds=1), "more than 60 s of processor time, or 1 s in all"),
    ],
)
async def test_time_is_bounded(tmp_path: Path, bounds: Bounds, says: str) -> None:
    # Millions of tags take several seconds, with every version of Python's parser.
    slow = b"From: a@b\nTo: c@d\nContent-Type: text/html\n\n" + b"<p>a" * 3_000_000
    async with FileTexts(bounds) as texts:
        with pytest.raises(UnreadableDocument, match=says):
            await _read(texts, tmp_path, slow)
        assert (await _read(texts, tmp_path, _READABLE)).text == "text"


async def test_entities_read_no_files(texts: FileTexts, tmp_path: Path) -> None:
    secret = tmp_path / "secret"
    secret.write_text("the secret")
    found = await _read(texts, tmp_path, hostile.word_that_names_a_file(str(secret)))
    assert "secret" not in found.text


async def test_a_word_file_that_refers_to_missing_parts_is_read(
    texts: FileTexts, tmp_path: Path
) -> None:
    main = hostile.word_main("<w:p><w:r><w:t>words</w:t></w:r></w:p>")
    relation = f'<Relationship Id="%s" Type="{RT.IMAGE}" Target="%s"/>'
    relations = relation % ("rId1", "NULL") + relation % ("rId2", "#_top")
    relations += '<Relationship Id="rId3" Target="document.xml"/>'
    listed = f'<Relationships xmlns="{NAMESPACE.OPC_RELATIONSHIPS}">{relations}</Relationships>'
    found = await _read(
        texts,
        tmp_path,
        hostile.word_with(main, {"word/_rels/document.xml.rels": listed.encode()}),
    )
    assert found.text == "words"
    assert found.notes == [
        "a part that the document refers to is not in it: word/NULL",
        "a reference to word/document.xml has no type; it was skipped",
    ]


async def test_ten_thousand_attachments(texts: FileTexts, tmp_path: Path) -> None:
    found = await _read(texts, tmp_path, hostile.mail_of_many_files(10_000))
    assert found.text == "the text"
    assert len(found.files) == len(list((tmp_path / "inside").iterdir())) == limits.ATTACHED_FILES
    assert found.notes == [
        "9,000 of its files are not taken out: at most 1,000 of together 512 MB are"
    ]


@pytest.mark.parametrize(
    "part",
    [
        b"",
        b"\nwords",
        b"Content-Type: text/html\n\n<p>words",
        b"Content-Type: message/rfc822\n\nSubject: inner\n\nwords",
        b"Content-Type: multipart/mixed; boundary=c\n\n--c\n\nwords",
        b'Content-Disposition: attachment; filename="f.bin"\n\nx',
        b'Content-Disposition: attachment; filename="\xfc.bin"\n\nx',
    ],
)
async def test_a_mail_costs_as_much_as_it_has_parts(tmp_path: Path, part: bytes) -> None:
    fewer, more = (_calls(tmp_path, hostile.mail_of_parts(count, part)) for count in (500, 1_000))
    assert more < 2.1 * fewer


def _calls(folder: Path, content: bytes) -> int:
    """How many functions are called to read a mail."""
    count = 0

    def counted(frame: object, event: str, argument: object) -> None:
        nonlocal count
        count += 1

    inside = folder / str(len(content))
    inside.mkdir()
    path = inside / "mail"
    path.write_bytes(content)
    sys.setprofile(counted)
    try:
        read_mail(path, Findings(inside, cpu_seconds=float("inf")))
    finally:
        sys.setprofile(None)
    return count


async def test_pages_that_hold_themselves_are_given_up(texts: FileTexts, tmp_path: Path) -> None:
    found = await _read(texts, tmp_path, hostile.pdf_whose_pages_hold_themselves(20_000))
    assert found.pages == 20_000
    assert found.notes[0] == (
        "only the first 1,000 of 20,000 pages were read: 1,000 of them are damaged"
    )


async def test_a_mail_that_is_cut_off_is_read_as_far_as_it_goes(
    texts: FileTexts, tmp_path: Path
) -> None:
    letter = Letter(
        "id", "a@b", "c@d", "s", hostile.WRITTEN_AT, ["text"], files={"x.bin": bytes(3_000)}
    )
    found = await _read(texts, tmp_path, mail(letter)[:-1_000])
    assert found.text == "text"
    assert found.files[0].size < 3_000
    assert found.notes == [
        "the mail is cut off: its last part does not end",
        "an attached file is damaged, not all of it is base64: x.bin",
    ]


async def test_endless_header_fields_are_kept_as_they_stand(
    texts: FileTexts, tmp_path: Path
) -> None:
    begun = time.monotonic()
    people = b", ".join(b"p%d@site.example" % number for number in range(100_000))
    found = await _read(texts, tmp_path, b"From: a@b\nSubject: s\nTo: " + people + b"\n\ntext")
    assert found.text.endswith("p99999@site.example\n\ntext")
    assert len(found.metadata["To"]) == limits.METADATA_CHARACTERS
    assert time.monotonic() - begun < 10


async def test_the_metadata_of_a_document_is_bounded(texts: FileTexts, tmp_path: Path) -> None:
    head = b"From: a@b\nSubject: " + b"s" * 5_000 + b"\nTo: " + b"t" * 5_000
    answered = b" ".join(b"<m%d@x>" % number for number in range(5_000))
    found = await _read(texts, tmp_path, head + b"\nReferences: " + answered + b"\n\ntext")
    assert len(found.title or "") == limits.METADATA_CHARACTERS
    assert all(len(said) <= limits.METADATA_CHARACTERS for said in found.metadata.values())
    assert len(found.thread) == limits.THREAD_IDS
