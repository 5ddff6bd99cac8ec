"""Numbers and dates as people write them, and what their notation leaves open.

`1,234` is 1234 to one writer and 1.234 to another, `03/04/2025` is in March or in April. Nothing
is guessed: values of the same column, then of the same document, that can be read in one way
only decide; where none does, an open value is a problem of its row.
"""

import re
from collections.abc import Collection, Iterable
from datetime import date
from decimal import ROUND_HALF_UP, Decimal
from enum import Enum
from types import MappingProxyType
from typing import Final, TypeVar

from domain.tabular.fields import DECIMAL_DIGITS, DECIMAL_PLACES

Value = TypeVar("Value", Decimal, date)


class Notation(Enum):
    """A way to write numbers or dates."""

    POINT = "decimal points"
    COMMA = "decimal commas"
    DAY_FIRST = "days before months"
    MONTH_FIRST = "months before days"


_OF_NUMBERS: Final = frozenset({Notation.POINT, Notation.COMMA})
_OF_DATES: Final = frozenset({Notation.DAY_FIRST, Notation.MONTH_FIRST})


class Unreadable(ValueError):
    """A cell does not hold what its column asks for; the message says why, without the value."""


_LONGEST_NUMBER: Final = 60
_GROUPS: Final = r"[1-9][0-9]{{0,2}}(?P<group>[{separators}])[0-9]{{3}}(?:(?P=group)[0-9]{{3}})*"
_NUMBER: Final = (
    r"[+-]?(?:(?:{groups}|[0-9]+)(?:{mark}[0-9]*)?|{mark}[0-9]+)(?:[eE][+-]?[0-9]{{1,2}})?"
)
_SPACES: Final = " \u00a0\u2009\u202f'\u2019"


_LAKHS: Final = "[1-9][0-9]?(?:,[0-9]{2})+,[0-9]{3}"
"""Groups as India writes them: 12,34,567."""


def _number_pattern(mark: str, group: str) -> re.Pattern[str]:
    groups = _GROUPS.format(separators=_SPACES + group)
    if group == ",":
        groups = f"(?:{groups}|{_LAKHS})"
    return re.compile(_NUMBER.format(groups=groups, mark=re.escape(mark)))


_NUMBERS: Final = MappingProxyType(
    {
        Notation.POINT: (_number_pattern(".", ","), ".", ","),
        Notation.COMMA: (_number_pattern(",", "."), ",", "."),
    }
)
_PLAIN_NUMBER: Final = re.compile(r"[+-]?[0-9]{1,30}")
_PLAIN_POINT: Final = re.compile(r"[+-]?[0-9]{1,30}\.[0-9]{1,20}")
_GROUPING: Final = MappingProxyType(str.maketrans("", "", _SPACES))

_NUMBER_REMEDY: Final = (
    "write it without thousands separators, or set the option decimal of an import to . or ,"
)
_DATE_REMEDY: Final = "write 2025-03-04, or set the option date_order of an import to dmy or mdy"

_MIDNIGHT: Final = re.compile(r"[T ]00:00(?::00(?:\.0+)?)?Z?$")
_YEAR_FIRST: Final = re.compile(r"([0-9]{4})([-/.])([0-9]{1,2})\2([0-9]{1,2})")
_YEAR_LAST: Final = re.compile(r"([0-9]{1,2})([-/.])([0-9]{1,2})\2([0-9]{4})")
YEARS: Final = range(1900, 2200)

_LIMIT: Final = Decimal(10) ** DECIMAL_DIGITS
_STEP: Final = Decimal(1).scaleb(-DECIMAL_PLACES)
_UNIT: Final = Decimal(1)


def exact(value: Decimal) -> Decimal:
    """A number as NUMERIC(20, 6) holds it, rounded half up.

    Raises:
        Unreadable: It is not finite or too large.
    """
    if not value.is_finite():
        raise Unreadable("is not a finite number")
    if abs(value) < _LIMIT:
        exponent = value.as_tuple().exponent
        assert isinstance(exponent, int)
        if exponent < -DECIMAL_PLACES:
            value = value.quantize(_STEP, ROUND_HALF_UP)
        elif exponent > 0:
            value = value.quantize(_UNIT)
    # Rounding may have made it too large.
    if abs(value) >= _LIMIT:
        raise Unreadable(f"has more than {DECIMAL_DIGITS} digits before the decimal point")
    # Minus zero and zero are one number.
    return value or Decimal(0)


def number_notations(text: str) -> list[Notation]:
    """Every notation that a text is a number in."""
    if len(text) > _LONGEST_NUMBER:
        return []
    return [notation for notation, (pattern, _, _) in _NUMBERS.items() if pattern.fullmatch(text)]


def number_readings(text: str) -> dict[Notation, Decimal]:
    """Every way to read a number that a text allows; empty when it is not one."""
    readings: dict[Notation, Decimal] = {}
    for notation in number_notations(text):
        _, mark, group = _NUMBERS[notation]
        bare = text.translate(_GROUPING).replace(group, "").replace(mark, ".")
        readings[notation] = Decimal(bare)
    return readings


def read_number(text: str, notation: Notation | None) -> Decimal:
    """Read a number.

    Args:
        text: Without surrounding space.
        notation: How its column writes numbers; None when that is open.

    Raises:
        Unreadable: It is not a number, or open to two readings.
    """
    if _PLAIN_NUMBER.fullmatch(text):
        return Decimal(text)
    if notation is Notation.POINT and _PLAIN_POINT.fullmatch(text):
        return Decimal(text)
    return _choose(number_readings(text), notation, "is not a number", _NUMBER_REMEDY)


def date_readings(text: str) -> dict[Notation, date]:
    """Every way to read a date that a text allows; empty when it is not one."""
    text = _MIDNIGHT.sub("", text)
    if parts := _YEAR_FIRST.fullmatch(text):
        return _dates({None: (parts[1], parts[3], parts[4])})
    if parts := _YEAR_LAST.fullmatch(text):
        day_first = (parts[4], parts[3], parts[1])
        if parts[2] == ".":
            return _dates({None: day_first})
        return _dates(
            {Notation.DAY_FIRST: day_first, Notation.MONTH_FIRST: (parts[4], parts[1], parts[3])}
        )
    return {}


def slashed(text: str) -> str:
    """A date with dots, such as 03.25.2025, with slashes; another text as it is."""
    found = _YEAR_LAST.fullmatch(text)
    return text.replace(".", "/") if found and found[2] == "." else text


def read_date(text: str, notation: Notation | None) -> date:
    """Read a date: 2025-03-04, 04.03.2025, and with slashes where the column defines the order.

    Args:
        text: Without surrounding space.
        notation: Order of day and month in its column; None when that is open.

    Raises:
        Unreadable: It is not a date, or open to two readings.
    """
    return _choose(
        date_readings(text), notation, "is not a date; write it as 2025-03-04", _DATE_REMEDY
    )


def decide(values: Iterable[Collection[Notation]]) -> set[Notation]:
    """The notations that some value can be read in no other way than."""
    return {notation for notations in values if len(notations) == 1 for notation in notations}


def settle(
    own: Collection[Notation], everywhere: Collection[Notation], *, dates: bool
) -> Notation | None:
    """How a column is written; None: that is open.

    Columns of dates in one file are written by one hand, so that all of them have to agree. A
    column of numbers shows it itself, or else the others do.

    Args:
        own: Of `decide`, for this column.
        everywhere: Of `decide`, for all columns.
        dates: The column holds dates.
    """
    of_kind = set(everywhere) & (_OF_DATES if dates else _OF_NUMBERS)
    return only(of_kind if dates else own or of_kind)


def only(found: Collection[Notation]) -> Notation | None:
    """The one notation that was found; None: none was, or several were."""
    if len(found) != 1:
        return None
    [notation] = found
    return notation


def _dates(parts: dict[Notation | None, tuple[str, str, str]]) -> dict[Notation, date]:
    readings: dict[Notation, date] = {}
    for notation, (year, month, day) in parts.items():
        if int(year) not in YEARS:
            continue
        try:
            found = date(int(year), int(month), int(day))
        except ValueError:
            continue
        # A date that is open to no question stands under both, and so decides nothing.
        for each in (Notation.DAY_FIRST, Notation.MONTH_FIRST) if notation is None else (notation,):
            readings[each] = found
    return readings


def _choose(
    readings: dict[Notation, Value], notation: Notation | None, nothing: str, remedy: str
) -> Value:
    if not readings:
        raise Unreadable(nothing)
    if notation is not None:
        if notation in readings:
            return readings[notation]
        raise Unreadable(f"does not fit its column, which is written with {notation.value}")
    values = set(readings.values())
    if len(values) > 1:
        either = " or ".join(str(value) for value in sorted(values))
        raise Unreadable(f"can be read as {either}; {remedy}")
    [value] = values
    return value
