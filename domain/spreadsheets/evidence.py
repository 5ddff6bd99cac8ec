"""What the values of a column say about its field, whatever its header is."""

import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import partial
from typing import Final, NamedTuple

from domain.spreadsheets.countries import names_country
from domain.spreadsheets.fields import SheetField
from domain.tabular.blanks import is_blank
from domain.tabular.conversion import is_mail
from domain.tabular.fields import ColumnKind, FieldSpec, normalise
from domain.tabular.habits import date_readings_of, number_readings_of
from domain.tabular.notations import Unreadable
from domain.tabular.times import read_duration

_MOSTLY: Final = 0.8
_SEVERAL: Final = 2

_PHONE: Final = re.compile(r"(?:\+|0)[\d\s()/.\-]{7,20}")
_NUMBER: Final = re.compile(r"[\d\s.,:/\-]+")


class Evidence(NamedTuple):
    """What speaks for a field, or against it."""

    share: float
    """Values that the field can take, of those looked at."""
    telling: bool
    """Hardly any other field has values like these."""
    words: str
    """For people: `5 of 5 values are mail addresses`; "" where nothing speaks for the field."""


def evidence(field: SheetField, samples: Sequence[str]) -> Evidence | None:
    """What values say about a field; None: nothing.

    Args:
        field: The field.
        samples: Distinct values of the column, as a person sees them.
    """
    values = [text for text in samples if not is_blank(text)]
    if not values:
        return None
    for kind in _kinds(field):
        count = sum(map(kind.fits, values))
        share = count / len(values)
        telling = kind.telling and share >= _MOSTLY and len(values) >= kind.values
        words = f"{count} of {len(values)} values are {kind.title}" if share >= _MOSTLY else ""
        return Evidence(share, telling, words)
    if field.kind in (ColumnKind.TEXT, ColumnKind.ENTITY):
        # Names are neither addresses nor numbers.
        odd = sum(map(_is_no_name, values))
        return Evidence(1 - odd / len(values), False, "")
    return None


class _Kind(NamedTuple):
    """Values of one kind.

    Attributes:
        title: For people.
        fits: Whether a text is one.
        telling: Hardly any other field has values like these.
        values: How many different ones tell something.
    """

    title: str
    fits: Callable[[str], bool]
    telling: bool = False
    values: int = _SEVERAL


def _kinds(field: SheetField) -> Iterator[_Kind]:
    match field.kind:
        case ColumnKind.MAIL:
            yield _Kind("mail addresses", is_mail, True, 1)
        case ColumnKind.DATE:
            yield _Kind("dates", partial(_is_date, field.spec))
        case ColumnKind.DURATION:
            yield _Kind("times", _is_duration)
        case ColumnKind.INTEGER | ColumnKind.DECIMAL | ColumnKind.PLACE:
            yield _Kind("numbers", _is_number)
        case ColumnKind.CHOICE:
            known = field.spec.choice_of
            title = f"a {field.title.lower()}"
            yield _Kind(title, partial(_is_choice, known), True)
        case ColumnKind.ENTITY if field.resolver == "countries":
            yield _Kind("countries", names_country, True, 3)
        case ColumnKind.CODE if field.column == "phone":
            yield _Kind("phone numbers", _is_phone, True)
        case _:
            pass


def _is_choice(known: Mapping[str, str], text: str) -> bool:
    return normalise(text) in known


def _is_date(spec: FieldSpec, text: str) -> bool:
    return bool(date_readings_of(spec, text))


def _is_number(text: str) -> bool:
    return bool(number_readings_of(text))


def _is_duration(text: str) -> bool:
    try:
        return read_duration(text) > 0
    except Unreadable:
        return False


def _is_phone(text: str) -> bool:
    return _PHONE.fullmatch(text) is not None


def _is_no_name(text: str) -> bool:
    return "@" in text or _NUMBER.fullmatch(text) is not None
