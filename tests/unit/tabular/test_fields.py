"""Headers and choices, normalised."""

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from workflows.shared.fields import ColumnKind, FieldSpec, normalise


@pytest.mark.parametrize(
    ("written", "meant"),
    [
        ("Commodity Code", "commodity code"),
        ("  COMMODITY_CODE  ", "commodity code"),
        ("Commodity\u00a0Code:", "commodity code"),
        ("Commodity\nCode", "commodity code"),
        ("commodity-code *", "commodity code"),
        ("Größe", "grosse"),
        ("STÜCKZAHL", "stuckzahl"),
        ("Owned/Rented?", "owned rented"),
        ("\uff24rawing", "drawing"),
        ("***", ""),
    ],
)
def test_headers_lose_what_does_not_matter(written: str, meant: str) -> None:
    assert normalise(written) == meant


@settings(deadline=None)
@given(st.text(max_size=50))
def test_normalising_twice_changes_nothing_more(text: str) -> None:
    assert normalise(normalise(text)) == normalise(text)


def test_choices_are_found_by_any_spelling() -> None:
    field = FieldSpec(
        "ownership",
        ColumnKind.CHOICE,
        choices={"owned": ("own", "Eigengerät"), "rented": ("Miete",)},
    )
    assert field.choice_of["eigengerat"] == "owned"
    assert field.choice_of["miete"] == "rented"
    assert field.choice_of["rented"] == "rented"
