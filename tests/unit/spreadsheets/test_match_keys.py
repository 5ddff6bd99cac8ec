"""Keys by which headers and values are matched and remembered."""

import unicodedata

from hypothesis import given, settings
from hypothesis import strategies as st

from workflows.shared.fields import unit_signs
from workflows.spreadsheets.fields import header_key, value_key

TEXTS = st.text(max_size=12) | st.text(alphabet="anUS1 +-#)(\u2212<.é°%$€", max_size=8)


def older_header_key(header: str) -> str:
    """The key under which an earlier release stored headers."""
    plain = unicodedata.normalize("NFKD", header.casefold())
    return "".join(filter(str.isalnum, plain)) or older_value_key(header)


def older_value_key(value: str) -> str:
    """The key under which an earlier release stored values."""
    return " ".join(value.split()).casefold()


@settings(deadline=None)
@given(TEXTS)
def test_a_key_is_its_own_key(text: str) -> None:
    assert header_key(header_key(text)) == header_key(text)
    assert value_key(value_key(text)) == value_key(text)


@settings(deadline=None)
@given(TEXTS)
def test_keys_of_earlier_releases_lead_to_the_key_of_today(text: str) -> None:
    signs = unit_signs(text)
    assert signs or header_key(older_header_key(text)) == header_key(text)
    assert value_key(older_value_key(text)) == value_key(text)
