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

from domain.tabular.blanks import BLANKS, is_blank
from domain.tabular.fields import ColumnKind, FieldSpec, normalise
from domain.tabular.notations import date_readings, number_readings
from domain.tabular.rows import Cell
from domain.tabular.times import plain_place
from domain.tabular.values import cell_text

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
_SIGN: Final = (
    r"(?:[A-Z]{2,3})?[$\u20ac\u00a3\u00a5\u20b9\u20bd]|[A-Z]{3}\b|SFr\.?|Fr\.|kr\.?|Rs\.?"
)
_MONEY: Final = re.compile(
    rf"(?P<minus>[-\u2212+]?)\s*(?P<before>{_SIGN})?\s*(?P<inner>[-\u2212]?)\s*"
    rf"(?P<number>[0-9.,][0-9.,'\u2019\s]*?)(?P<cents>[.,][-\u2013\u2014]+|/-)?\s*(?P<after>{_SIGN})?(?P<trailing>-?)"
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
_LATEST: Final = 2068
"""Two digits mean a year of the hundred up to this one."""

_TIME: Final = re.compile(
    r"[T\s]+[0-9]{1,2}[:h][0-9]{2}(?::[0-9]{2}(?:[.,][0-9]+)?)?\s*(?:[AaPp]\.?[Mm]\.?|Uhr)?"
    r"\s*(?:Z|UTC|[+-][0-9]{2}:?[0-9]{2})?$"
)
_MARKED: Final = re.compile(r"(?:\s+A|\s*\*)+$")
"""What Primavera sets behind actual and constrained dates."""
_WEEKDAY: Final = re.compile(
    r"(?:mon(?:day)?|tue(?:s|sday)?|wed(?:nesday)?|thu(?:r|rs|rsday)?|fri(?:day)?|sat(?:urday)?"
    r"|sun(?:day)?|tu|we|th|su|mo(?:ntag)?|di(?:enstag)?|mi(?:ttwoch)?|do(?:nnerstag)?"
    r"|fr(?:eitag)?|sa(?:mstag)?|sonnabend|so(?:nntag)?|lun(?:di|es|ed[i\u00ec])?"
    r"|mar(?:di|tes|ted[i\u00ec])?|mer(?:credi|coled[i\u00ec])?|mi[e\u00e9]rcoles"
    r"|jeu(?:di)?|jueves|gioved[i\u00ec]|ven(?:dredi|erd[i\u00ec])?|viernes|sam(?:edi)?"
    r"|s[a\u00e1]bado|sabato|dim(?:anche)?|domingo|domenica"
    r"|(?:maan|dins|woens|donder|vrij|zater|zon)dag)\.?,?\s+(?=[0-9])",
    re.IGNORECASE,
)
_NUMERIC: Final = re.compile(r"([0-9]{1,2})([/.])([0-9]{1,2})\2([0-9]{2})")
_COMPACT: Final = re.compile(r"(19|20|21)[0-9]{2}(0[1-9]|1[0-2])(0[1-9]|[12][0-9]|3[01])")
_DAY_MONTH: Final = re.compile(
    r"([0-9]{1,2})(?:st|nd|rd|th|er|\u00ba)?(?:\s+(?:de|of)\s+|[\s./-]*)([^\W\d_]{3,10})\.?(?:\s+de\s+|[\s./,-]*)([0-9]{4}|[0-9]{2})",
    re.IGNORECASE,
)
_MONTH_DAY: Final = re.compile(
    r"([^\W\d_]{3,10})\.?\s*([0-9]{1,2})(?:st|nd|rd|th)?,?\s+([0-9]{4})", re.IGNORECASE
)
_YEAR_MONTH: Final = re.compile(r"([0-9]{4})[\s./-]+([^\W\d_]{3,10})\.?[\s./-]+([0-9]{1,2})")
_PART: Final = re.compile(
    r"(?:(?P<m1>[0-9]{1,2})[./-](?P<y1>[0-9]{4})|(?P<y2>[0-9]{4})[./-](?P<m2>[0-9]{1,2})"
    r"|(?P<name>[^\W\d_]{3,10})\.?[\s./-]*(?P<y3>[0-9]{4})|(?P<y4>[0-9]{4}))"
)
"""A month and a year, or a year."""
_LATE: Final = re.compile(
    r"([2-9][0-9]{3})[-/.]?(?:12[-/.]?31|01[-/.]?01)|(?:31[-/.]12|12[-/.]31|01[-/.]01)[-/.]([2-9][0-9]{3})"
)
_NO_DATE: Final = re.compile(r"0{4}([-/.]?)0{2}\1?0{2}|0{1,2}([-/.])0{1,2}\2(?:0{2}|0{4}|1900)")

_MONTHS: Final[Mapping[str, int]] = MappingProxyType(
    {
        name: month
        for month, names in enumerate(
            (
                "jan january januar janner janv janvier ene enero gennaio gen januari",
                "feb february februar fev fevr fevrier febrero febbraio februari",
                "mar march marz mrz maerz mars marzo maart mrt",
                "apr april avr avril abr abril aprile",
                "may mai mayo maggio mag mei",
                "jun june juni juin junio giugno giu",
                "jul july juli juil juillet julio luglio lug",
                "aug august aou aout ago agosto augustus",
                "sep sept september septembre septiembre settembre",
                "oct october okt oktober octobre octubre ottobre ott",
                "nov november novembre noviembre",
                "dec december dez dezember decembre dic diciembre dicembre",
            ),
            start=1,
        )
        for name in names.split()
    }
)


def plain_cells(
    field: FieldSpec,
    cells: Sequence[Cell],
    *,
    is_key: bool = False,
    date1904: bool = False,
    today: date | None = None,
) -> Sequence[Cell]:
    """The cells of a column with what they say in plain notation; the same cells where they are.

    Args:
        field: What the column holds.
        cells: As read.
        is_key: A blank of this column names a row: texts that mean one are left as they stand.
        date1904: Day numbers count from 1904.
        today: Day of the import; a field of the past has no year behind it.
    """
    match field.kind:
        case ColumnKind.TEXT:
            return cells
        case ColumnKind.DECIMAL | ColumnKind.INTEGER:
            if _are_plain(cells):
                return cells
            plain = _number
        case ColumnKind.DATE:
            latest = today.year if field.past and today is not None else _LATEST
            plain = _Dates(field, latest, date1904=date1904)
            return _mapped(cells, plain, {str, int, float, datetime, date})
        case ColumnKind.PLACE:
            plain = _place
        case _:
            if is_key and not field.required:
                return cells
            plain = partial(_unless_blank, field)
    if field.words:
        plain = partial(_meant, field.meaning_of, plain)
    return _mapped(cells, plain, {str})


def _unless_blank(field: FieldSpec, cell: Cell) -> Cell:
    return None if is_blank(cell, field) else cell


def _meant(meaning_of: Mapping[str, str], plain: Callable[[Cell], Cell], cell: Cell) -> Cell:
    return meaning_of.get(normalise(str(cell))) or plain(cell)


def _place(cell: Cell) -> Cell:
    return None if is_blank(cell) else plain_place(str(cell))


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
    if found["cents"] and found["cents"][0] in ".," and not number.isdecimal():
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


def date_readings_of(field: FieldSpec, cell: str) -> Sequence[date]:
    """Return every day that a text may mean by itself; empty if it is no date."""
    (plain,) = plain_cells(field, [cell])
    if isinstance(plain, str):
        return tuple(dict.fromkeys(date_readings(plain.strip()).values()))
    return (plain,) if isinstance(plain, date) else ()


def part_of_date(field: FieldSpec, cell: Cell) -> date | None:
    """Return the day that a year alone, or a month and a year, means in a column; None: it is
    something else, or no such thing is read there."""
    if field.part is None or isinstance(cell, bool | date | None):
        return None
    found = _PART.fullmatch(cell_text(cell).strip())
    if found is None:
        return None
    year = int(found["y1"] or found["y2"] or found["y3"] or found["y4"])
    is_year = found["y4"] is not None
    named = _MONTHS.get(normalise(found["name"])) if found["name"] else None
    month = named or int(found["m1"] or found["m2"] or 0)
    if field.part == "first":
        return _day(year, 1 if is_year else month, 1)
    if is_year:
        return _day(year, 12, 31)
    next_month = _day(year + month // 12, month % 12 + 1, 1) if 1 <= month <= 12 else None
    return next_month and next_month - timedelta(days=1)


class _Dates:
    """Dates of one column in plain notation.

    Args:
        field: What the column holds.
        latest: Two digits mean a year of the hundred up to this one.
        date1904: Day numbers count from 1904.
    """

    def __init__(self, field: FieldSpec, latest: int, *, date1904: bool) -> None:
        self._field = field
        self._open_ended = not field.required
        self._latest = latest
        self._epoch = _EPOCH_1904 if date1904 else _EPOCH

    def __call__(self, cell: Cell) -> Cell:
        match cell:
            case datetime():
                return self._bounded(cell.date(), cell)
            case date():
                return self._bounded(cell, cell)
            case bool() | None:
                return cell
            case int() | float():
                return self._of_number(cell)
            case _:
                return self._of_text(cell)

    def _bounded(self, day: date, cell: Cell) -> Cell:
        if day.year >= _OPEN_FROM and self._open_ended:
            return None
        return day if day is not cell else cell

    def _of_number(self, cell: int | float) -> Cell:
        if isinstance(cell, int) and _COMPACT.fullmatch(str(cell)):
            return _compact(str(cell)) or cell
        return part_of_date(self._field, cell) or self._of_serial(cell)

    def _of_serial(self, cell: int | float) -> Cell:
        is_day = abs(cell) < 1e6 and int(cell) in _SERIALS
        return self._epoch + timedelta(days=int(cell)) if is_day else cell

    def _of_text(self, cell: str) -> Cell:
        text = cell.strip()
        if len(text) > _LONGEST:
            return cell
        if text.lower() in BLANKS or _NO_DATE.fullmatch(text):
            return None
        bare = _MARKED.sub("", _TIME.sub("", _MARKED.sub("", text))).strip()
        if (named := self._named_month(bare)) is not None:
            return named
        if (part := part_of_date(self._field, bare)) is not None:
            return part
        if weekday := _WEEKDAY.match(bare):
            bare = bare[weekday.end() :]
        late = _LATE.fullmatch(bare) if self._open_ended else None
        if late and int(late[1] or late[2]) >= _OPEN_FROM:
            return None
        if bare.isdecimal():
            return _compact(bare) or self._of_serial(int(bare))
        if found := _NUMERIC.fullmatch(bare):
            first, mark, second, year = found.groups()
            return f"{first}{mark}{second}{mark}{self._whole_year(year)}"
        named = self._named_month(bare)
        return cell if named is None and bare == text else (named or bare)

    def _named_month(self, text: str) -> date | None:
        if found := _DAY_MONTH.fullmatch(text):
            day, month, year = found.groups()
        elif found := _MONTH_DAY.fullmatch(text):
            month, day, year = found.groups()
        elif found := _YEAR_MONTH.fullmatch(text):
            year, month, day = found.groups()
        else:
            return None
        number = _MONTHS.get(normalise(month))
        return None if number is None else _day(self._whole_year(year), number, int(day))

    def _whole_year(self, text: str) -> int:
        year = int(text)
        return year if len(text) > 2 else self._latest - (self._latest - year) % 100


def _compact(text: str) -> date | None:
    if _COMPACT.fullmatch(text) is None:
        return None
    return _day(int(text[:4]), int(text[4:6]), int(text[6:]))


def _day(year: int, month: int, day: int) -> date | None:
    if year not in _YEARS:
        return None
    try:
        return date(year, month, day)
    except ValueError:
        return None
