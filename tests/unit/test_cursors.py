"""Cursors of lists, as text in addresses."""

from datetime import UTC, datetime
from urllib.parse import quote

import pytest

from workers.shared.services.lists import Cursor

MOMENT = datetime(2026, 3, 2, 12, 0, 0, 123456, tzinfo=UTC)


@pytest.mark.parametrize("cursor", [Cursor(MOMENT), Cursor(MOMENT, "803-7"), Cursor(MOMENT, "a_b")])
def test_a_cursor_is_read_as_it_was_written(cursor: Cursor) -> None:
    assert Cursor.read(str(cursor)) == cursor
    assert quote(str(cursor), safe=":") == str(cursor)


@pytest.mark.parametrize("text", ["2026-03-02T12:00:00.123456+00:00", "2026-03-02T12:00:00.123456"])
def test_a_moment_alone_is_a_cursor(text: str) -> None:
    assert Cursor.read(text) == Cursor(MOMENT)


@pytest.mark.parametrize("text", ["", "_", "soon_1", "x", "9999-12-31T23:59:59-12:00"])
def test_what_names_no_moment_is_no_cursor(text: str) -> None:
    with pytest.raises(ValueError):
        Cursor.read(text)
