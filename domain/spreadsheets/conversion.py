"""Cells of a mapped column to values of a database."""

import re
from collections.abc import Mapping, Sequence
from datetime import date, datetime, timedelta
from decimal import ROUND_HALF_UP, Decimal
from typing import Any, Final

from domain.spreadsheets.blanks import without_blanks
from domain.spreadsheets.fields import CellKind, SheetField
from domain.tabular.conversion import Flaw, Notations, convert_column, settle_notations, transpose
from domain.tabular.fields import normalise
from domain.tabular.habits import plain_cells
from domain.tabular.notations import Notation, Unreadable
from domain.tabular.rows import Cell

HEAD_ROWS: Final = 1_000
"""Rows that settle how the columns of a file write numbers and dates."""
LONGEST_HOURS: Final = 500

_MAIL: Final = re.compile(
    r"[^\s@<>()\[\],;:\"\\]+@[^\s@<>()\[\],;:\"\\.]+(?:\.[^\s@<>()\[\],;:\"\\.]+)+"
)
_CLOCK: Final = re.compile(
    r"(?:([0-9]{1,3}):)?([0-9]{1,3}):([0-5]?[0-9])(?:[.,]([0-9]{1,9}))?", re.ASCII
)
_DOTTED: Final = re.compile(
    r"([0-9]{1,3})[.]([0-5]?[0-9])[.]([0-5][0-9])(?:,([0-9]{1,9}))?", re.ASCII
)
"""Hours, minutes and seconds with dots, as German timekeepers write them."""
_UNITS: Final = re.compile(
    r"(?:([0-9]{1,3})\s*(?:hours?|hrs?|std\.?|h|\u00b0)\s*)?"
    r"(?:([0-9]{1,3})\s*(?:minutes?|mins?\.?|m|'|\u2019|\u2032)\s*)?"
    r"(?:([0-9]{1,5})(?:[.,]([0-9]{1,9}))?\s*(?:seconds?|sec?\.?|sek\.?|s|''|\"|\u201d|\u2033)?)?",
    re.ASCII | re.IGNORECASE,
)
_CLOCK_UNIT: Final = re.compile(r"([0-9:.,]+)\s*(h|hrs?|std\.?|min\.?)", re.ASCII | re.IGNORECASE)
_MAY_BE_MINUTES: Final = re.compile(r"[0-9]{1,2}[.,][0-5][0-9]", re.ASCII)
_SECONDS: Final = re.compile(r"[0-9]{1,9}(?:[.,][0-9]{1,9})?", re.ASCII)
_PLACE: Final = re.compile(
    r"[=T]?\s*-?([0-9]{1,9})(?:\s*(?:st|nd|rd|th|\.|\u00ba|er|e|=|T)|\s*(?:/|of|von)\s*([0-9]{1,9}))?",
    re.ASCII | re.IGNORECASE,
)
_PART_OF_DAY: Final = re.compile(r"0[.,](?=[0-9]*[1-9])[0-9]{4,}", re.ASCII)
_EPOCH: Final = datetime(1899, 12, 31)
"""Day 0 of a spreadsheet's calendar, for a length of time shown as a date."""
_DAY: Final = Decimal(86_400_000)
_DAYS_AND_BLANKS: Final = frozenset({date, type(None)})


_NO_NUMBER: Final = Flaw("is not a number")
_NO_PLACE: Final = Flaw("is not a place, and no status unless the status column says the same")


def notations_of(fields: Mapping[int, SheetField], head: Sequence[Sequence[Cell]]) -> Notations:
    """Decide how each column writes numbers and dates.

    Args:
        fields: Place of each mapped column, and its field.
        head: Cells of the first rows of the file.
    """
    columns = transpose(head, max(fields, default=-1) + 1)
    return settle_notations(
        {each.name: (each.spec, plain(each, columns[index])) for index, each in fields.items()}
    )


def plain(field: SheetField, cells: Sequence[Cell]) -> Sequence[Cell]:
    """The cells of a column without blank words, and numbers and dates in plain notation."""
    cells = without_blanks(field, cells)
    if field.words:
        meant = {normalise(word): value for word, value in field.words.items()}
        cells = [
            meant.get(normalise(cell), cell) if isinstance(cell, str) else cell for cell in cells
        ]
    match field.kind:
        case CellKind.DECIMAL | CellKind.INTEGER | CellKind.DATE:
            return plain_cells(field.spec, cells)
        case CellKind.PLACE:
            return [_plain_place(cell) if isinstance(cell, str) else cell for cell in cells]
        case _:
            return cells


def _plain_place(text: str) -> str:
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


def convert(
    field: SheetField, cells: Sequence[Cell], notation: Notation | None, hours: int | None = None
) -> tuple[list[Any], bool]:
    """Convert the cells of one column; not for columns that refer to other tables.

    Args:
        field: What they mean.
        cells: As read.
        notation: How the column writes numbers or dates.
        hours: The most hours that times of the column write out.

    Returns:
        A value, None for a blank, or a `Flaw`, for each cell; and whether any is refused.
    """
    cells = plain(field, cells)
    match field.kind:
        case CellKind.MAIL:
            return _mails(field, cells)
        case CellKind.DURATION:
            return _durations(field, cells, hours)
        case CellKind.PLACE:
            values, refused = convert_column(field.spec, cells, notation)
            return [_NO_PLACE if value == _NO_NUMBER else value for value in values], refused
        case CellKind.DATE:
            return _dates(field, cells, notation)
        case _:
            return convert_column(field.spec, cells, notation)


def is_mail(text: str) -> bool:
    """Whether a text is written like a mail address."""
    return _MAIL.fullmatch(text) is not None


def _mails(field: SheetField, cells: Sequence[Cell]) -> tuple[list[Any], bool]:
    values, refused = convert_column(field.spec, cells, None)
    implausible = {
        value for value in set(values) if isinstance(value, str) and not _MAIL.fullmatch(value)
    }
    if not implausible:
        return values, refused
    flaw = Flaw("is not a mail address; write one like name@example.org")
    return [flaw if value in implausible else value for value in values], True


def _dates(
    field: SheetField, cells: Sequence[Cell], notation: Notation | None
) -> tuple[list[Any], bool]:
    types = frozenset(map(type, cells))
    if types == frozenset({date}) or (types == _DAYS_AND_BLANKS and not field.required):
        days = [cell for cell in cells if isinstance(cell, date)]
        # What lies between two days that can be kept can be kept as well.
        _, refused = convert_column(field.spec, (min(days), max(days)), notation)
        if not refused:
            return [*cells], False
    return convert_column(field.spec, cells, notation)


def _is_unclear(text: str, hours: int | None) -> bool:
    """Whether `3:45` may be hours and minutes, or `3.45` minutes and seconds, as other times of
    the column write hours."""
    if hours is not None and _MAY_BE_MINUTES.fullmatch(text):
        return True
    parts = _CLOCK.fullmatch(text)
    if hours is None or parts is None or parts[1] is not None or parts[4] is not None:
        return False
    return int(parts[2]) <= hours + 1


def _durations(
    field: SheetField, cells: Sequence[Cell], hours: int | None
) -> tuple[list[Any], bool]:
    def one(cell: Cell) -> int | Flaw | None:
        if isinstance(cell, str):
            cell = cell.strip() or None
        if cell is None:
            return Flaw("is missing") if field.required else None
        if isinstance(cell, str) and _is_unclear(cell, hours):
            return Flaw(
                "can be read in two ways, as other times of this column have hours; "
                "write it with hours, minutes and seconds"
            )
        try:
            return read_duration(cell)
        except Unreadable as problem:
            return Flaw(str(problem))

    values = [one(cell) for cell in cells]
    return values, Flaw in set(map(type, values))


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
        return _milliseconds(*parts.groups(default="0"))
    raise Unreadable(_NO_TIME)


def _milliseconds(hours: str, minutes: str, seconds: str, fraction: str) -> Decimal:
    whole = (int(hours) * 60 + int(minutes)) * 60 + int(seconds)
    return (whole + Decimal(f"0.{fraction}")) * 1000
