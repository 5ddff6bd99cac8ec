"""Names, texts and dates from outside, made fit to be stored and shown."""

import unicodedata
from datetime import UTC, datetime, timedelta, timezone

import pytest
from hypothesis import given
from hypothesis import strategies as st

from adapters.files import limits
from adapters.files.texts.html import as_utc, clean_text, html_text, safe_filename
from adapters.files.texts.pdf import pdf_date
from workflows.shared.contracts import BlobRef


@pytest.mark.parametrize(
    ("given_name", "safe"),
    [
        ("plan.pdf", "plan.pdf"),
        ("../../etc/passwd", "passwd"),
        ("C:\\Temp\\Größe.docx", "Größe.docx"),
        ("a/b/", "file"),
        ("..", "file"),
        (".", "file"),
        ("", "file"),
        (None, "file"),
        ("  .hidden. ", "hidden"),
        ("CON.txt", "_CON.txt"),
        ("what?*<is>|this:.txt", "what___is__this_.txt"),
        ("line\nbreak\ttab\0.txt", "line break tab.txt"),
        ("invoice\u202efdp.exe", "invoicefdp.exe"),
        ("archive.tar.gz", "archive.tar.gz"),
        (
            "no extension at all but. a sentence follows",
            "no extension at all but. a sentence follows",
        ),
        ("a \u202e b.pdf", "a b.pdf"),
    ],
)
def test_names_that_are_known_to_do_harm(given_name: str | None, safe: str) -> None:
    assert safe_filename(given_name, "file") == safe


@given(st.text(max_size=400))
def test_every_name_is_safe(name: str) -> None:
    safe = safe_filename(name, "file")
    assert safe
    assert safe not in (".", "..")
    assert len(safe.encode()) <= limits.FILENAME_BYTES
    assert not set(safe) & set('<>:"|?*\\/')
    assert all(unicodedata.category(character)[0] != "C" for character in safe)
    assert safe_filename(safe, "other") == safe
    BlobRef.model_validate({"name": f"batches/1/1/x/attachments/0001-{safe}", "size": 0})


def test_long_names_keep_their_extension() -> None:
    safe = safe_filename("ä" * 500 + ".pdf", "file")
    assert safe.endswith("ä.pdf")
    assert limits.FILENAME_BYTES - 2 < len(safe.encode()) <= limits.FILENAME_BYTES


@given(st.text(st.characters()))
def test_every_text_can_be_stored(text: str) -> None:
    clean = clean_text(text)
    assert clean.encode().decode() == clean
    assert all(
        character in "\n\t" or unicodedata.category(character) != "Cc" for character in clean
    )
    assert clean_text(clean) == clean


def test_lone_surrogates_are_replaced() -> None:
    assert clean_text("a\ud800b") == "a?b"


@given(st.text())
def test_no_page_is_too_strange_to_be_read(html: str) -> None:
    assert "\0" not in clean_text(html_text(html))


@pytest.mark.parametrize(
    ("text", "moment"),
    [
        ("D:20240304103000Z", datetime(2024, 3, 4, 10, 30, tzinfo=UTC)),
        ("D:20240304103000+02'00'", datetime(2024, 3, 4, 8, 30, tzinfo=UTC)),
        ("D:20240304103000-05'30", datetime(2024, 3, 4, 16, 0, tzinfo=UTC)),
        ("20240304", datetime(2024, 3, 4, tzinfo=UTC)),
        ("D:2024", datetime(2024, 1, 1, tzinfo=UTC)),
        ("D:20241304", None),
        ("D:20240304103000+99'00'", None),
        ("yesterday", None),
        ("", None),
    ],
)
def test_dates_of_pdf(text: str, moment: datetime | None) -> None:
    assert pdf_date(text) == moment


def test_moments_are_in_utc() -> None:
    summer = timezone(timedelta(hours=2))
    assert as_utc(datetime(2024, 3, 4, 10, tzinfo=summer)) == datetime(2024, 3, 4, 8, tzinfo=UTC)
    assert as_utc(datetime(2024, 3, 4, 10)) == datetime(2024, 3, 4, 10, tzinfo=UTC)
    assert as_utc(datetime(1, 1, 1, tzinfo=summer)) is None
    assert as_utc(None) is None
