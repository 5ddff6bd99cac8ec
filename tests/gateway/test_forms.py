"""Forms of the pages are taken from our own pages only."""

import pytest

from workers.shared.gateway.http.requests import csrf_token, csrf_valid


def test_a_token_belongs_to_its_session() -> None:
    token = csrf_token("session of anna")
    assert csrf_valid("session of anna", token)
    assert not csrf_valid("session of ben", token)


def test_tokens_differ_from_page_to_page() -> None:
    first, second = csrf_token("s"), csrf_token("s")
    assert first != second
    assert csrf_valid("s", first)
    assert csrf_valid("s", second)


@pytest.mark.parametrize(
    "change", [str.upper, lambda t: t[:-1], lambda t: t + "0", lambda t: "." + t]
)
def test_a_changed_token_is_invalid(change) -> None:
    assert not csrf_valid("s", change(csrf_token("s")))


@pytest.mark.parametrize("token", [None, "", ".", "x", "x.", ".x", "\u0660.\u0661", "\udc80.x"])
def test_malformed_tokens_are_invalid(token: str | None) -> None:
    assert not csrf_valid("s", token)
