"""Which values a page shows, and what its form answers for all of them."""

from dataclasses import dataclass
from typing import Final
from urllib.parse import urlencode

from adapters.database.spreadsheets.views import ValueFilter
from contracts.spreadsheets import CellRule, MappingStatus
from workers.gateway.pages.forms import Form
from workers.gateway.pages.language import gettext
from workers.gateway.spreadsheets.pages.forms import meaning
from workers.services.errors import Refused

SHOWS: Final = ("open", "all")
LEAST: Final = 90
"""Percent that a suggestion has at least, unless a person says otherwise."""


@dataclass(frozen=True, slots=True)
class ValuePlace:
    """A page of the values, or of those that match."""

    show: str = "open"
    """`open` or `all`."""
    page: int = 0
    field: str = ""
    """"": of every field."""
    text: str = ""
    """Part of the value."""

    @property
    def status(self) -> MappingStatus | None:
        """What is decided about the values; None: whatever it is."""
        return MappingStatus.UNMATCHED if self.show == "open" else None

    @property
    def wanted(self) -> ValueFilter:
        """The values that match, of all pages."""
        return ValueFilter(self.field or None, self.status, None, self.text)

    @property
    def query(self) -> str:
        """Of its address."""
        return urlencode(
            {"show": self.show, "page": self.page, "field": self.field, "text": self.text}
        )


FIRST: Final = ValuePlace()


def shown(form: Form) -> ValuePlace:
    """What the form showed when it was sent."""
    show, page = form.text("show"), form.text("page")
    if show not in SHOWS or not page.isascii() or not page.isdecimal():
        return ValuePlace()
    return ValuePlace(show, int(page), form.text("shownField", 64), form.text("shownText", 200))


def turned(form: Form) -> ValuePlace:
    """What is wanted next: another page, other values, or the same.

    Raises:
        Refused: The page to jump to is not a number.
    """
    now = shown(form)
    field, text = form.text("field", 64), form.text("text", 200)
    button, _, page = form.text("turn").partition(":")
    match button:
        case "clear":
            return ValuePlace(now.show)
        case "jump":
            wanted = ValuePlace(now.show, max((form.whole("jump") or 1) - 1, 0), field, text)
        case "open" | "all" if page.isascii() and page.isdecimal():
            wanted = ValuePlace(button, int(page), field, text)
        case "filter":
            wanted = ValuePlace(now.show, 0, field, text)
        case _:
            return now
    is_other = (field, text) != (now.field, now.text)
    return ValuePlace(wanted.show, 0, field, text) if is_other else wanted


def rule_of(form: Form) -> CellRule | None:
    """The answer of the form for all values that it shows, of all pages: `each:ignore`.

    Raises:
        Refused: It lacks what the answer needs.
    """
    word, _, answer = form.text("do").partition(":")
    if word != "each":
        return None
    place = shown(form)
    field = form.text("eachField", 64) or None
    rule = {"field": field, "text": place.text, "status": place.status}
    match answer:
        case "confirm":
            least = form.whole("least")
            if least is None or least > 100:
                raise Refused(gettext("say from which percentage on: a number from 0 to 100"))
            rule |= {"confirm": True, "min_score": least / 100}
        case "ignore" | "create" | "reset":
            rule |= {answer: True}
        case "target":
            chosen = meaning(form.text("value-0"))
            if not chosen.isascii() or not chosen.isdecimal():
                raise Refused(gettext("search for what all of them mean, and choose it"))
            rule |= {"target_id": int(chosen)}
        case _:
            return None
    return CellRule.model_validate(rule)
