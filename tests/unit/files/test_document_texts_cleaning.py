"""Names, texts and dates from outside, made fit to be stored and shown."""

import unicodedata
from datetime import UTC, datetime, timedelta, timezone

from hypothesis import given
from hypothesis import strategies as st

from adapters.files import limits
from adapters.files.texts.html import as_utc, clean_text, html_text, safe_filename
from workflows.shared.contracts import BlobRef


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
    assert safe_filename(None, "file") == "file"
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


def test_moments_are_in_utc() -> None:
    summer = timezone(timedelta(hours=2))
    assert as_utc(datetime(2024, 3, 4, 10, tzinfo=summer)) == datetime(2024, 3, 4, 8, tzinfo=UTC)
    assert as_utc(datetime(2024, 3, 4, 10)) == datetime(2024, 3, 4, 10, tzinfo=UTC)
    assert as_utc(datetime(1, 1, 1, tzinfo=summer)) is None
    assert as_utc(None) is None
