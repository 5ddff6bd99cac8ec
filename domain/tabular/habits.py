"""Numbers, dates and blanks as people and programs write them, in plain notation.

`$12,000.00`, `(500.00)`, `10%`, `5-Mar-2025`, `3/5/25`, `20250305`, day numbers, dates with a time,
`n/a`: what a cell says is kept, and only how it says it is changed. What its notation leaves open
stays open: `domain.tabular.notations` decides that.
"""

import re
from collections.abc import Callable, Mapping, Sequence
from datetime import date, datetime, timedelta
from decimal import Decimal
from functools import partial
from types import MappingProxyType
from typing import Final, cast

from domain.tabular.blanks import BLANKS, LONGEST, SPELLINGS
from domain.tabular.fields import ColumnKind, FieldSpec, normalise
from domain.tabular.notations import number_readings
from domain.tabular.rows import Cell

_NUMBER_BLANKS: Final = re.compile(
    r"[$\u20ac\u00a3\u00a5\s]*[-\u2013\u2014]+[$\u20ac\u00a3\u00a5\s]*"
)
"""How a spreadsheet shows zero or nothing in a column of money."""

_LONGEST: Final = 60
"""Characters of a number or date, with all that stands around it."""

CURRENCIES: Final = frozenset(
    (
        *("usd", "eur", "gbp", "chf", "cad", "aud", "nzd", "jpy", "cny", "inr", "aed", "sar"),
        *("qar", "kwd", "omr", "bhd", "nok", "sek", "dkk", "pln", "czk", "huf", "ron", "try"),
        *("zar", "brl", "mxn", "sgd", "hkd", "krw", "thb", "myr", "idr", "rub", "uah", "ils"),
        *("egp", "ngn", "kes"),
    )
)
_SIGN: Final = r"(?:[A-Z]{2,3})?[$\u20ac\u00a3\u00a5\u20b9\u20bd]|[A-Z]{3}\b|SFr\.?|Fr\.|kr\.?"
_MONEY: Final = re.compile(
    rf"(?P<minus>[-\u2212+]?)\s*(?P<before>{_SIGN})?\s*(?P<inner>[-\u2212]?)\s*"
    rf"(?P<number>[0-9.,][0-9.,'\u2019\s]*?)(?P<cents>[.,][-\u2013\u2014]+)?\s*(?P<after>{_SIGN})?(?P<trailing>-?)"
)
NAMES_CURRENCY: Final = re.compile(r"[^\W\d_]|[$\u20ac\u00a3\u00a5\u20b9\u20bd]")
"""What a text holds that names a currency, and a bare number does not."""
_PLAIN: Final = re.compile(r"-?[0-9.,]+")
_MINUS: Final = "\u2212"

_SERIALS: Final = range(10_000, 110_000)
"""Day numbers of the years 1927 to 2201; smaller ones are as likely counts."""
_EPOCH: Final = date(1899, 12, 30)
_EPOCH_1904: Final = date(1904, 1, 1)
_YEARS: Final = range(1900, 2200)
_OPEN_FROM: Final = 2200
"""Years from which on a last day means that there is none."""
_CENTURY: Final = 69
"""Two digits from here on are years of the last century."""

_TIME: Final = re.compile(
    r"[T\s]+[0-9]{1,2}[:h][0-9]{2}(?::[0-9]{2}(?:[.,][0-9]+)?)?\s*(?:[AaPp]\.?[Mm]\.?|Uhr)?"
    r"\s*(?:Z|UTC|[+-][0-9]{2}:?[0-9]{2})?$"
)
_MARKED: Final = re.compile(r"(?:\s+A|\s*\*)+$")
"""What Primavera sets behind actual and constrained dates."""
_WEEKDAY: Final = re.compile(
    r"(?:mon|tue|wed|thu|fri|sat|sun|mo|di|mi|do|fr|sa|so|tu|we|th|su|lun|mar|mer|jeu|ven|sam|dim)"
    r"[a-z]*\.?,?\s+(?=[0-9])",
    re.IGNORECASE,
)
_NUMERIC: Final = re.compile(r"([0-9]{1,2})([/.])([0-9]{1,2})\2([0-9]{2})")
_COMPACT: Final = re.compile(r"(19|20|21)[0-9]{2}(0[1-9]|1[0-2])(0[1-9]|[12][0-9]|3[01])")
_DAY_MONTH: Final = re.compile(
    r"([0-9]{1,2})(?:st|nd|rd|th)?[\s./-]*([^\W\d_]{3,10})\.?[\s./,-]*([0-9]{4}|[0-9]{2})"
)
_MONTH_DAY: Final = re.compile(r"([^\W\d_]{3,10})\.?\s*([0-9]{1,2})(?:st|nd|rd|th)?,?\s+([0-9]{4})")
_YEAR_MONTH: Final = re.compile(r"([0-9]{4})[\s./-]+([^\W\d_]{3,10})\.?[\s./-]+([0-9]{1,2})")
_LATE: Final = re.compile(
    r"([2-9][0-9]{3})[-/.]?(?:12[-/.]?31|01[-/.]?01)|(?:31[-/.]12|12[-/.]31|01[-/.]01)[-/.]([2-9][0-9]{3})"
)
_NO_DATE: Final = re.compile(r"0{4}([-/.]?)0{2}\1?0{2}|0{1,2}([-/.])0{1,2}\2(?:0{2}|0{4}|1900)")

_MONTHS: Final[Mapping[str, int]] = MappingProxyType(
    {
        name: month
        for month, names in enumerate(
            (
                "jan january januar janner janv janvier",
                "feb february februar fev fevr fevrier",
                "mar march marz mrz maerz mars",
                "apr april avr avril",
                "may mai",
                "jun june juni juin",
                "jul july juli juil juillet",
                "aug august aou aout",
                "sep sept september septembre",
                "oct october okt oktober octobre",
                "nov november novembre",
                "dec december dez dezember decembre",
            ),
            start=1,
        )
        for name in names.split()
    }
)


def plain_cells(
    field: FieldSpec, cells: Sequence[Cell], *, is_key: bool = False, date1904: bool = False
) -> Sequence[Cell]:
    """The cells of a column with what they say in plain notation; the same cells where they are.

    Args:
        field: What the column holds.
        cells: As read.
        is_key: A blank of this column names a row: texts that mean one are left as they stand.
        date1904: Day numbers count from 1904.
    """
    match field.kind:
        case ColumnKind.DECIMAL | ColumnKind.INTEGER:
            if _are_plain(cells):
                return cells
            return _mapped(cells, _number, {str})
        case ColumnKind.DATE:
            read = partial(_date, open_ended=not field.required, date1904=date1904)
            return _mapped(cells, read, {str, int, float, datetime, date})
        case ColumnKind.CODE | ColumnKind.CHOICE:
            if (is_key and not field.required) or _are_long(cells) or SPELLINGS.isdisjoint(cells):
                return cells
            return [None if cell in SPELLINGS else cell for cell in cells]
        case ColumnKind.TEXT:
            return cells


def _mapped(
    cells: Sequence[Cell], plain: Callable[[Cell], Cell], types: set[type]
) -> Sequence[Cell]:
    if types.isdisjoint(map(type, cells)):
        return cells
    changed = {
        cell: new
        for cell in dict.fromkeys(each for each in cells if type(each) in types)
        if (new := plain(cell)) is not cell
    }
    if not changed:
        return cells
    return [changed.get(cell, cell) if type(cell) in types else cell for cell in cells]


def _are_plain(cells: Sequence[Cell]) -> bool:
    """Whether texts of numbers hold nothing but digits and marks, and none a blank; quick."""
    try:
        joined = "".join(cast("Sequence[str]", cells))
    except TypeError:  # a cell that is not text
        joined = "".join(cell for cell in cells if isinstance(cell, str))
    return not joined.strip("0123456789.,") and "." not in cells


def _are_long(cells: Sequence[Cell]) -> bool:
    """Whether all cells are texts longer than any that means a blank; quick."""
    try:
        return min(map(len, cast("Sequence[str]", cells)), default=0) > LONGEST
    except TypeError:  # a cell that is not text
        return False


def _number(cell: Cell) -> Cell:
    """Text of a number without currency, brackets and percent sign; percent as an exponent."""
    assert isinstance(cell, str)
    if _PLAIN.fullmatch(cell) and cell not in BLANKS:
        return cell
    text = cell.strip()
    if len(text) > _LONGEST:
        return cell
    if text.lower() in BLANKS or _NUMBER_BLANKS.fullmatch(text):
        return None
    negative = text.startswith("(") and text.endswith(")")
    bare = text[1:-1].strip() if negative else text
    percent = bare.endswith("%")
    found = _MONEY.fullmatch(bare.removesuffix("%").rstrip() if percent else bare)
    if found is None or not _is_money(found):
        return cell
    minus = negative or any(
        found[group] in ("-", _MINUS) for group in ("minus", "inner", "trailing")
    )
    number = found["number"].strip()
    if found["cents"] and not number.isdecimal():
        # `1.250,-`: what stands before the dash is the decimal mark.
        number += f"{found['cents'][0]}00"
    return f"{'-' if minus else ''}{number}{'e-2' if percent else ''}"


def _is_money(found: re.Match[str]) -> bool:
    signs = [sign for sign in (found["before"], found["after"]) if sign]
    return len(signs) <= 1 and all(
        not sign.isalpha() or sign.lower() in CURRENCIES or len(sign) == 2 or sign == "SFr"
        for sign in signs
    )


def currency_of(cell: str) -> str | None:
    """The currency that a text of an amount names, in capitals; None: it names none."""
    if not NAMES_CURRENCY.search(cell) or len(cell) > _LONGEST:
        return None
    found = _MONEY.fullmatch(cell.strip().strip("()").strip())
    if found is None or not _is_money(found):
        return None
    sign = found["before"] or found["after"]
    return sign.rstrip(".").upper() if sign else None


def number_readings_of(cell: Cell) -> Sequence[Decimal]:
    """Return every number that a cell may mean by itself; empty if it is no number."""
    if isinstance(cell, bool):
        return ()
    if isinstance(cell, int | float):
        value = Decimal(str(cell))
        return (value,) if value.is_finite() else ()
    if not isinstance(cell, str):
        return ()
    plain = _number(cell)
    readings = number_readings(plain.strip()) if isinstance(plain, str) else {}
    return tuple(dict.fromkeys(readings.values()))


def is_percentage(cell: Cell) -> bool:
    """Whether a cell is text with a percent sign."""
    return isinstance(cell, str) and cell.rstrip(") \u00a0").endswith("%")


def _date(cell: Cell, *, open_ended: bool, date1904: bool) -> Cell:
    match cell:
        case datetime():
            return _bounded(cell.date(), cell, open_ended=open_ended)
        case date():
            return _bounded(cell, cell, open_ended=open_ended)
        case bool() | None:
            return cell
        case int() | float():
            return _of_number(cell, date1904=date1904)
        case _:
            return _of_text(cell, open_ended=open_ended, date1904=date1904)


def _bounded(day: date, cell: Cell, *, open_ended: bool) -> Cell:
    if day.year >= _OPEN_FROM and open_ended:
        return None
    return day if day is not cell else cell


def _of_number(cell: int | float, *, date1904: bool) -> Cell:
    if isinstance(cell, int) and _COMPACT.fullmatch(str(cell)):
        return _compact(str(cell)) or cell
    if int(cell) in _SERIALS if abs(cell) < 1e6 else False:
        return (_EPOCH_1904 if date1904 else _EPOCH) + timedelta(days=int(cell))
    return cell


def _of_text(cell: str, *, open_ended: bool, date1904: bool) -> Cell:
    text = cell.strip()
    if len(text) > _LONGEST:
        return cell
    if text.lower() in BLANKS or _NO_DATE.fullmatch(text):
        return None
    bare = _MARKED.sub("", _TIME.sub("", _MARKED.sub("", text))).strip()
    if (named := _named_month(bare)) is not None:
        return named
    if weekday := _WEEKDAY.match(bare):
        bare = bare[weekday.end() :]
    if open_ended and (late := _LATE.fullmatch(bare)) and int(late[1] or late[2]) >= _OPEN_FROM:
        return None
    if bare.isdecimal():
        return _compact(bare) or _of_number(int(bare), date1904=date1904)
    if found := _NUMERIC.fullmatch(bare):
        first, mark, second, year = found.groups()
        return f"{first}{mark}{second}{mark}{_whole_year(year)}"
    named = _named_month(bare)
    return cell if named is None and bare == text else (named or bare)


def _named_month(text: str) -> date | None:
    if found := _DAY_MONTH.fullmatch(text):
        day, month, year = found.groups()
    elif found := _MONTH_DAY.fullmatch(text):
        month, day, year = found.groups()
    elif found := _YEAR_MONTH.fullmatch(text):
        year, month, day = found.groups()
    else:
        return None
    number = _MONTHS.get(normalise(month))
    return None if number is None else _day(_whole_year(year), number, int(day))


def _compact(text: str) -> date | None:
    if _COMPACT.fullmatch(text) is None:
        return None
    return _day(int(text[:4]), int(text[4:6]), int(text[6:]))


def _whole_year(text: str) -> int:
    year = int(text)
    if len(text) > 2:
        return year
    return year + (1900 if year >= _CENTURY else 2000)


def _day(year: int, month: int, day: int) -> date | None:
    if year not in _YEARS:
        return None
    try:
        return date(year, month, day)
    except ValueError:
        return None
