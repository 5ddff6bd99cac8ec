"""Texts whose encoding is not the one that they name, and words that only a page holds."""

import base64

import pytest

from tests.support.files.hostile_documents import pdf_of
from tests.support.files.reading import Reading

pytestmark = pytest.mark.asyncio(loop_scope="module")

_HEAD = "From: a@site.example\r\nTo: b@site.example\r\nSubject: hello\r\nMIME-Version: 1.0\r\n"
_GERMAN = "Größe prüfen am Tor, über die Straße"


def _mail(content: bytes, kind: str = "text/plain", encoding: str | None = None) -> bytes:
    named = "" if encoding is None else f"; charset={encoding}"
    head = f"{_HEAD}Content-Type: {kind}{named}\r\nContent-Transfer-Encoding: 8bit\r\n\r\n"
    return head.encode() + content


@pytest.mark.parametrize(
    ("named", "encoding", "text"),
    [
        ("iso-8859-1", "cp1252", "don\u2019t pay 5 € “now”"),
        (None, "utf-8", _GERMAN),
        (None, "cp1252", _GERMAN),
        ("x-sjis", "cp932", "日本語のテキスト①"),
        ("shift_jis", "cp932", "日本語のテキスト①"),
        ("gb2312", "gbk", "朱镕基測試"),
        ("ks_c_5601-1987", "cp949", "똠방각하"),
        ("iso-8859-8-i", "iso8859-8", "שלום עולם"),
        ("koi8-r", "koi8-r", "Привет из Москвы"),
        (None, "iso2022_jp", "日本語のテキスト"),
    ],
)
async def test_a_mail_is_read_by_what_its_encoding_means(
    read: Reading, named: str | None, encoding: str, text: str
) -> None:
    found = await read(_mail(text.encode(encoding), encoding=named))
    assert (found.text, found.notes) == (text, [])


@pytest.mark.parametrize(
    ("named", "encoding"),
    [
        ("utf-8", "windows-1252"),
        ("martian", "windows-1252"),
        ("us-ascii", "utf-8"),
        ("iso-8859-1", "utf-8"),
        ("koi8-r", "utf-8"),
    ],
)
async def test_a_mail_that_is_not_in_the_encoding_that_it_names_is_reported(
    read: Reading, named: str, encoding: str
) -> None:
    found = await read(_mail(_GERMAN.encode(encoding), encoding=named))
    assert found.text == _GERMAN
    assert found.notes == [
        f"the mail's text is not in the encoding that it names: read as {encoding}"
    ]


async def test_a_page_says_its_encoding_itself(read: Reading) -> None:
    page = '<html><head><meta charset="windows-1251"></head><body>Цех</body></html>'
    content = page.encode("cp1251")
    assert (await read(_mail(content, "text/html"))).text == "Цех"
    assert (await read(content)).text == "Цех"
    in_utf8 = page.replace("windows-1251", "utf-16").encode()
    assert (await read(_mail(in_utf8, "text/html"))).text == "Цех"


async def test_letters_of_windows_in_a_header_are_read(read: Reading) -> None:
    found = await read(b"Subject: =?iso-8859-1?q?don=92t?=\r\nFrom: a@site.example\r\n\r\nhello")
    assert found.title == "don\u2019t"


@pytest.mark.parametrize(
    ("named", "encoding", "title"),
    [("shift_jis", "cp932", "日本①"), ("gb2312", "gbk", "朱镕基"), ("x-sjis", "cp932", "日本")],
)
async def test_a_header_is_read_by_what_its_encoding_means(
    read: Reading, named: str, encoding: str, title: str
) -> None:
    word = f"=?{named}?B?{base64.b64encode(title.encode(encoding)).decode()}?="
    found = await read(f"Subject: {word}\r\nFrom: a@site.example\r\n\r\nhello".encode())
    assert found.title == title


async def test_a_text_that_is_shifted_between_alphabets_is_read(read: Reading) -> None:
    assert (await read("日本語のテキスト".encode("iso2022_jp"))).text == "日本語のテキスト"


async def test_text_behind_the_end_of_what_is_encoded_is_named(read: Reading) -> None:
    content = base64.b64encode(b"the costs of the gate").decode()
    head = f"{_HEAD}Content-Transfer-Encoding: base64\r\n\r\n"
    found = await read(f"{head}{content}\r\n-- \r\nsent by a list\r\n".encode())
    assert found.text.startswith("the costs")
    assert found.notes == [
        "the mail's text is damaged: not all of it is the base64 that it should be"
    ]


async def test_a_soft_hyphen_divides_no_word(read: Reading) -> None:
    assert (await read(b"<html><body>con&shy;tract</body></html>")).text == "contract"


@pytest.mark.parametrize("before", [b"\r\n", b"\xef\xbb\xbf", b"\xef\xbb\xbf\n\n"])
async def test_a_mail_may_begin_late(read: Reading, before: bytes) -> None:
    content = base64.b64encode(b"the costs").decode()
    mail = f"{_HEAD}Content-Transfer-Encoding: base64\r\n\r\n{content}\r\n".encode()
    found = await read(before + mail)
    assert (found.media_type, found.title, found.text) == ("message/rfc822", "hello", "the costs")


async def test_parts_of_a_mail_without_its_header_are_a_mail(read: Reading) -> None:
    found = await read(
        b'Content-Type: multipart/signed; boundary="B"\r\n\r\n--B\r\n'
        b"Content-Transfer-Encoding: base64\r\n\r\n" + base64.b64encode(b"signed words") + b"\r\n"
        b"--B\r\nContent-Type: application/pkcs7-signature\r\n\r\n...\r\n--B--\r\n",
        "smime.p7m",
    )
    assert (found.media_type, found.text) == ("message/rfc822", "signed words")


async def test_all_recipients_of_a_mail_are_kept(read: Reading) -> None:
    names = ", ".join(f"person {n} <{n}@site.example>" for n in range(200))
    found = await read(f"From: a@site.example\r\nTo: {names}\r\n\r\nhello".encode())
    assert len(found.metadata["To"]) == 1_000
    assert found.text == f"To: {names}\n\nhello"


@pytest.mark.parametrize(
    "before",
    [
        "<!-- saved from url=(0014)about:internet -->\n",
        '<?xml version="1.0"?>\n<!-- a --> <!-- b -->',
    ],
)
async def test_a_page_is_one_whatever_a_program_wrote_before_it(read: Reading, before: str) -> None:
    found = await read(f"{before}<!DOCTYPE html><html>caf&eacute;</html>".encode(), "letter.doc")
    assert (found.media_type, found.text) == ("text/html", "café")


async def test_title_form_and_pictures_of_a_page_hold_words(read: Reading) -> None:
    found = await read(
        b"<html><head><title>Gate 4</title></head><body><img src=a alt='the plan'>"
        b"<input value=Anna><input type=hidden value=token><textarea>by hand</textarea></body>"
    )
    assert (found.title, found.text) == ("Gate 4", "the plan  Anna\nby hand")
    picture = await read(b"<html><title>Gate 4</title><svg><title>a plan</title></svg></html>")
    assert (picture.title, picture.text) == ("Gate 4", "a plan")
    open_title = await read(b"<html><head><title>Gate 4<body><p>words</p></body></html>")
    assert "words" in (open_title.title or "") + open_title.text


@pytest.mark.parametrize(
    ("code", "text", "notes"),
    [
        ("FB03", "ffi" * 4, 0),
        ("E041", "", 1),
    ],
    ids=["ligatures", "no letters"],
)
async def test_letters_of_a_pdf_are_those_of_its_font(
    read: Reading, code: str, text: str, notes: int
) -> None:
    shown = b"BT /F1 11 Tf 60 780 Td (AAAA) Tj ET"
    letters = (
        "/CIDInit /ProcSet findresource begin 12 dict begin begincmap\n1 begincodespacerange\n"
        f"<00> <FF>\nendcodespacerange\n1 beginbfchar\n<41> <{code}>\nendbfchar\nendcmap end end"
    ).encode()
    found = await read(
        pdf_of(
            [
                b"<< /Type /Catalog /Pages 2 0 R >>",
                b"<< /Type /Pages /Kids [4 0 R] /Count 1 >>",
                b"<< /Type /Font /Subtype /Type1 /BaseFont /Helvetica /ToUnicode 6 0 R >>",
                b"<< /Type /Page /Parent 2 0 R /MediaBox [0 0 595 842] /Contents 5 0 R"
                b" /Resources << /Font << /F1 3 0 R >> >> >>",
                b"<< /Length %d >>\nstream\n%b\nendstream" % (len(shown), shown),
                b"<< /Length %d >>\nstream\n%b\nendstream" % (len(letters), letters),
            ]
        )
    )
    assert text in found.text
    assert len(found.notes) == notes


@pytest.mark.parametrize("encoding", ["cp1252", "utf-8", "utf-8-sig", "utf-16", "utf-16-le"])
async def test_a_load_file_is_read_as_the_table_that_it_is(read: Reading, encoding: str) -> None:
    rows = [("BEGDOC", "TEXT"), ("A1", "Zürich®two"), ("A2", "")]
    lines = ("\x14".join(f"þ{value}þ" for value in row) for row in rows)
    found = await read("\r\n".join(lines).encode(encoding))
    assert found.text == "BEGDOC: A1\nTEXT: Zürich\ntwo\n\nBEGDOC: A2"
    assert found.metadata["rows"] == "2"


async def test_a_text_in_utf_8_with_a_damaged_byte_stays_one(read: Reading) -> None:
    found = await read("Grüße aus Köln\n".encode() * 20 + b"one \xff byte\n")
    assert found.text.startswith("Grüße aus Köln")
    assert "one \ufffd byte" in found.text
    assert found.notes == [
        "some bytes of the text are not UTF-8, as the rest is; they became U+FFFD"
    ]
