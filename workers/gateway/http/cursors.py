"""Cursors of lists as parameters of an address."""

from typing import Annotated, Final

from fastapi import Query
from pydantic import AfterValidator

from workers.services.cursors import Cursor

_LONGEST: Final = 200


def _checked(text: str) -> str:
    try:
        Cursor.read(text)
    except ValueError as error:
        raise ValueError("must be `next` of a page before, or a moment") from error
    return text


Before = Annotated[
    str | None,
    AfterValidator(lambda text: None if text is None else _checked(text)),
    Query(
        max_length=_LONGEST,
        description="Those behind this cursor; a moment alone: those that changed before.",
    ),
]


def cursor_of(before: str | None) -> Cursor | None:
    """The cursor that a parameter names; None: the first page is asked for."""
    return None if before is None else Cursor.read(before)
