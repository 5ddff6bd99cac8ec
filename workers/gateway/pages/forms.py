"""Forms that pages send, of bounded size."""

from collections.abc import Mapping
from typing import Final
from urllib.parse import parse_qsl

from fastapi import Request

from workers.gateway.pages.language import gettext
from workers.services.errors import Refused, TooLarge

_LARGEST: Final = 1_000_000
"""Bytes of a form; one with 256 columns has about 30,000."""
_MOST_FIELDS: Final = 2_000
_FORM: Final = "application/x-www-form-urlencoded"


class Form:
    """A submitted form; the last of several values of a name counts."""

    def __init__(self, fields: Mapping[str, str]) -> None:
        self.fields = fields

    def text(self, name: str, most: int = 300) -> str:
        """A value without surrounding blanks.

        Raises:
            Refused: It is longer than any that a page sends.
        """
        value = self.fields.get(name, "").strip()
        if len(value) > most:
            raise Refused(
                gettext("“%(name)s” is too long: at most %(most)s characters", name=name, most=most)
            )
        return value

    def whole(self, name: str) -> int | None:
        """A whole number; None when it was left blank.

        Raises:
            Refused: It is not one.
        """
        value = self.text(name, 20)
        if not value:
            return None
        if not value.isascii() or not value.isdecimal():
            raise Refused(gettext("“%(value)s” is not a whole number", value=value))
        return int(value)


async def read_form(request: Request) -> Form:
    """Read a submitted form, of bounded size.

    Raises:
        Refused: It is not a form.
        TooLarge: It is larger than any of ours.
    """
    if request.headers.get("Content-Type", "").partition(";")[0].strip().lower() != _FORM:
        raise Refused(gettext("this page takes forms only"))
    body = bytearray()
    async for chunk in request.stream():
        body += chunk
        if len(body) > _LARGEST:
            raise TooLarge(gettext("the form is too large"))
    try:
        pairs = parse_qsl(
            body.decode(), keep_blank_values=True, errors="strict", max_num_fields=_MOST_FIELDS
        )
    except ValueError as error:
        raise Refused(gettext("the form cannot be read")) from error
    return Form(dict(pairs))
