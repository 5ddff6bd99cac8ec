"""Lengths of time and places as timekeepers write them."""

import re
from collections.abc import Sequence
from datetime import date, datetime, timedelta
from decimal import ROUND_HALF_UP, Decimal
from typing import Final

from domain.tabular.notations import Unreadable
from domain.tabular.rows import Cell

LONGEST_HOURS: Final = 500

_CLOCK: Final = re.compile(
    r"(?:([0-9]{1,3}):)?([0-9]{1,3}):([0-5]?[0-9])(?:[.,]([0-9]{1,9}))?", re.ASCII
)
_DOTTED: Final = re.compile(
    r"([0-9]{1,3})[.]([0-5]?[0-9])[.]([0-5][0-9])(?:,([0-9]{1,9}))?", re.ASCII
)
"""Hours, minutes and seconds with dots, as German timekeepers write them."""
_UNITS: Final = re.compile(
    r"(?:PT)?(?:([0-9]{1,3})\s*(?:hours?|hrs?|std\.?|h|\u00b0)\s*)?"
    r"(?:([0-9]{1,3})\s*(?:minutes?|mins?\.?|m|'|\u2019|\u2032)\s*)?"
    r"(?:([0-9]{1,5})(?:[.,]([0-9]{1,9}))?\s*(seconds?|sec?\.?|sek\.?|s|''|\"|\u201d|\u2033)?)?",
    re.ASCII | re.IGNORECASE,
)
_CLOCK_UNIT: Final = re.compile(r"([0-9:.,]+)\s*(h|hrs?|std\.?|min\.?)", re.ASCII | re.IGNORECASE)
_MAY_BE_MINUTES: Final = re.compile(r"[0-9]{1,2}[.,][0-5][0-9]", re.ASCII)
_SECONDS: Final = re.compile(r"[0-9]{1,9}(?:[.,][0-9]{1,9})?", re.ASCII)
_PLACE: Final = re.compile(
    r"(?:[=T#P]\s*-?)?([0-9]{1,9})(?:\s*(?:st|nd|rd|th|\.|\u00ba|er|e|=|T)|\s*(?:/|of|von)\s*([0-9]{1,9}))?",
    re.ASCII | re.IGNORECASE,
)
_PART_OF_DAY: Final = re.compile(r"0[.,](?=[0-9]*[1-9])[0-9]{4,}", re.ASCII)
_EPOCH: Final = datetime(1899, 12, 31)
"""Day 0 of a spreadsheet's calendar, for a length of time shown as a date."""
_DAY: Final = Decimal(86_400_000)


def plain_place(text: str) -> str:
    """A place without what marks ties, ordinals and how many there were."""
    found = _PLACE.fullmatch(text.strip())
    if found is None or (found[2] and int(found[1]) > int(found[2])):
        return text
    return found[1]


def hours_of(cells: Sequence[Cell]) -> int | None:
    """The most hours that times of a column write out; None: none writes hours."""
    texts = dict.fromkeys(cell.strip() for cell in cells if isinstance(cell, str))
    found = (_CLOCK.fullmatch(text) or _DOTTED.fullmatch(text) for text in texts)
    return max((int(each[1]) for each in found if each and each[1] is not None), default=None)


def refuse_unclear(text: str, hours: int | None) -> None:
    """Refuse a time of a column that may be read in two ways.

    `3:45` may be hours and minutes, or `3.45` minutes and seconds, if other times of the column
    write hours.

    Args:
        text: The time.
        hours: Of `hours_of`.

    Raises:
        Unreadable: It is one.
    """
    if hours is None:
        return
    parts = _CLOCK.fullmatch(text)
    is_short = parts is not None and parts[1] is None and parts[4] is None
    if _MAY_BE_MINUTES.fullmatch(text) or (parts and is_short and int(parts[2]) <= hours + 1):
        raise Unreadable(
            "can be read in two ways, as other times of this column have hours; "
            "write it with hours, minutes and seconds"
        )


def read_duration(cell: str | int | float | bool | date) -> int:
    """A length of time in milliseconds, rounded half up.

    Hours:minutes:seconds, minutes:seconds as timekeepers write it, or seconds. A number below 1
    is a fraction of a day, as spreadsheets keep times.

    Raises:
        Unreadable: It is none of these, or longer than `LONGEST_HOURS`.
    """
    match cell:
        case bool():
            raise Unreadable(_NO_TIME)
        case int() | float():
            milliseconds = _of_number(cell)
        case datetime():
            milliseconds = Decimal((cell - _EPOCH) // timedelta(milliseconds=1))
        case date():
            raise Unreadable(_NO_TIME)
        case _:
            milliseconds = _of_text(cell)
    if not 0 <= milliseconds <= LONGEST_HOURS * 3_600_000:
        raise Unreadable(f"is not between 0 and {LONGEST_HOURS} hours")
    return int(milliseconds.quantize(Decimal(1), ROUND_HALF_UP))


_NO_TIME: Final = "is not a time; write it as 01:23:45"


def _of_number(value: int | float) -> Decimal:
    exact = Decimal(repr(value))
    if not exact.is_finite():
        raise Unreadable(_NO_TIME)
    return exact * (_DAY if exact < 1 else 1000)


def _of_text(text: str) -> Decimal:
    if parts := _CLOCK.fullmatch(text):
        hours, minutes, seconds, fraction = parts.groups(default="0")
        if parts[1] is not None and int(minutes) > 59:
            raise Unreadable("has more than 59 minutes to the hour")
        return _milliseconds(hours, minutes, seconds, fraction)
    if parts := _DOTTED.fullmatch(text):
        return _milliseconds(*parts.groups(default="0"))
    if (parts := _CLOCK_UNIT.fullmatch(text)) and (clock := _CLOCK.fullmatch(parts[1])):
        if clock[1] is None and parts[2][0] in "hHsS":
            return _milliseconds(clock[2], clock[3], "0", "0")
        return _of_text(parts[1])
    if _PART_OF_DAY.fullmatch(text):
        raise Unreadable(
            "may be a part of a day, as spreadsheet programs keep times, or of a second; write it "
            "as 01:23:45"
        )
    if _SECONDS.fullmatch(text):
        return Decimal(text.replace(",", ".")) * 1000
    if parts := _UNITS.fullmatch(text):
        hours, minutes, seconds, fraction, unit = parts.groups()
        if hours is not None and minutes is None and unit is None:
            # What follows hours without a unit is minutes: `1h02`.
            minutes, seconds = seconds, None
        return _milliseconds(hours or "0", minutes or "0", seconds or "0", fraction or "0")
    raise Unreadable(_NO_TIME)


def _milliseconds(hours: str, minutes: str, seconds: str, fraction: str) -> Decimal:
    whole = (int(hours) * 60 + int(minutes)) * 60 + int(seconds)
    return (whole + Decimal(f"0.{fraction}")) * 1000
