"""Numbers and dates as people and programs write them, and what their notation leaves open.

Numbers and dates as people write them, and what their notation leaves open.

`1,234` is 1234 to one writer and 1.234 to another, `03/04/2025` is in March or in April. Nothing
is guessed: values of the same column, then of the same document, that can be read in one way
only decide; where none does, an open value is a problem of its row.

Numbers, dates and blanks as people and programs write them, in plain notation.

`$12,000.00`, `(500.00)`, `10%`, `5-Mar-2025`, `3/5/25`, `20250305`, day numbers, dates with a time,
`n/a`: what a cell says is kept, and only how it says it is changed. What its notation leaves open
stays open: `workflows.shared.notations` decides that.
"""

import re
from calendar import monthrange
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence, Set
from datetime import date, datetime, timedelta
from decimal import ROUND_HALF_UP, Decimal
from enum import Enum
from functools import partial
from types import MappingProxyType
from typing import Final, TypeVar, cast

from workflows.shared.cells import (
    BLANKS,
    PERCENT_SIGN,
    Cell,
    Length,
    Signed,
    cell_text,
    is_common_blank,
    is_own_blank,
)
from workflows.shared.currencies import (
    LONGEST,
    MONEY,
    currency_of,
    is_money,
    same_currency,
)
from workflows.shared.fields import (
    DECIMAL_DIGITS,
    DECIMAL_PLACES,
    YEARS,
    ColumnKind,
    FieldSpec,
    normalise,
)
from workflows.shared.timestamps import split_moment

Value = TypeVar("Value", Decimal, date)


class Notation(Enum):
    """A way to write numbers or dates."""

    POINT = "decimal points"
    COMMA = "decimal commas"
    DAY_FIRST = "days before months"
    MONTH_FIRST = "months before days"
    TICKS = "ticks and crosses"


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

_CHOOSE: Final = "in the review of an upload, choose how the column is read"
_NUMBER_REMEDY: Final = (
    "write it without thousands separators, or set the option decimal of a message to . or ,; "
    + _CHOOSE
)
_DATE_REMEDY: Final = (
    f"write 2025-03-04, or set the option date_order of a message to dmy or mdy; {_CHOOSE}"
)

_MIDNIGHT: Final = re.compile(r"[T ]00:00(?::00(?:\.0+)?)?Z?$")
_YEAR_FIRST: Final = re.compile(r"([0-9]{4})([-/.])([0-9]{1,2})\2([0-9]{1,2})")
_YEAR_LAST: Final = re.compile(r"([0-9]{1,2})([-/.])([0-9]{1,2})\2([0-9]{4})")
EVERY_YEAR: Final = range(1, 10_000)
"""Years that a date can have."""

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


def date_readings(text: str, years: range = YEARS) -> dict[Notation, date]:
    """Every way to read a date of some years that a text allows; empty when it is not one."""
    return _dates(_parts_of_date(text), years)


def _parts_of_date(text: str) -> dict[Notation | None, tuple[str, str, str]]:
    """Year, month and day of a text by notation, None if it is open to no question."""
    text = _MIDNIGHT.sub("", text)
    if parts := _YEAR_FIRST.fullmatch(text):
        return {None: (parts[1], parts[3], parts[4])}
    if parts := _YEAR_LAST.fullmatch(text):
        day_first = (parts[4], parts[3], parts[1])
        if parts[2] == ".":
            return {None: day_first}
        month_first = (parts[4], parts[1], parts[3])
        return {Notation.DAY_FIRST: day_first, Notation.MONTH_FIRST: month_first}
    return {}


def slashed(text: str) -> str:
    """A date with dots, such as 03.25.2025, with slashes; another text as it is.

    What stands behind a space is left alone: a time of day.
    """
    day, *rest = text.split(" ", 1)
    found = _YEAR_LAST.fullmatch(day)
    return " ".join((day.replace(".", "/"), *rest)) if found and found[2] == "." else text


def days_of(kind: ColumnKind, cells: Iterable[Cell]) -> list[str]:
    """The texts of days in plain cells of a column of days, without their times of day."""
    texts = [cell.strip() for cell in cells if isinstance(cell, str)]
    return [text.partition(" ")[0] for text in texts] if kind is ColumnKind.TIMESTAMP else texts


def read_date(text: str, notation: Notation | None, years: range = YEARS) -> date:
    """Read a date: 2025-03-04, 04.03.2025, and with slashes where the column defines the order.

    Args:
        text: Without surrounding space.
        notation: Order of day and month in its column; None when that is open.
        years: In which it is.

    Raises:
        Unreadable: It is not a date, or open to two readings.
    """
    readings = date_readings(text, years)
    if not readings and date_readings(text, EVERY_YEAR):
        raise Unreadable(beyond_years(years))
    nothing = _beyond_month(text, notation) or "is not a date; write it as 2025-03-04"
    return _choose(readings, notation, nothing, _DATE_REMEDY)


_MONTH_TITLES: Final = (
    *("January", "February", "March", "April", "May", "June", "July", "August", "September"),
    *("October", "November", "December"),
)


def _beyond_month(text: str, notation: Notation | None) -> str | None:
    """What is said of a day that its month does not have; None: the text names no such day."""
    parts = _parts_of_date(text)
    for year, month, day in [parts[each] for each in parts if notation in (None, each) or not each]:
        if int(year) and 1 <= int(month) <= 12 < int(day) <= 31:
            last = monthrange(int(year), int(month))[1]
            return f"is not a date: {_MONTH_TITLES[int(month) - 1]} {year} has {last} days"
    return None


def beyond_years(years: range) -> str:
    """Return what is said of a day in none of some years."""
    return (
        f"is not in the years {years.start} to {years[-1]}; correct it, or have its type declare "
        "another 'minimum' or 'maximum'"
    )


def decide(values: Iterable[Collection[Notation]]) -> set[Notation]:
    """The notations that some value can be read in no other way than."""
    return {notation for notations in values if len(notations) == 1 for notation in notations}


def column_notation(
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
    return single_notation(of_kind if dates else own or of_kind)


def single_notation(found: Collection[Notation]) -> Notation | None:
    """The one notation that was found; None: none was, or several were."""
    if len(found) != 1:
        return None
    [notation] = found
    return notation


def _dates(
    parts: dict[Notation | None, tuple[str, str, str]], years: range
) -> dict[Notation, date]:
    readings: dict[Notation, date] = {}
    for notation, (year, month, day) in parts.items():
        if int(year) not in years:
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


_PLACE: Final = re.compile(
    r"(?:[=T#P]\s*-?)?([0-9]{1,9})(?:\s*(?:st|nd|rd|th|\.|\u00ba|er|e|=|T)|\s*(?:/|of|von)\s*([0-9]{1,9}))?",
    re.ASCII | re.IGNORECASE,
)


def plain_place(text: str) -> str:
    """A place without what marks ties, ordinals and how many there were."""
    found = _PLACE.fullmatch(text.strip())
    if found is None or (found[2] and int(found[1]) > int(found[2])):
        return text
    return found[1]


_NUMBER_BLANKS: Final = re.compile(
    r"[$\u20ac\u00a3\u00a5\s]*[-\u2013\u2014]+[$\u20ac\u00a3\u00a5\s]*"
)
"""How a spreadsheet shows zero or nothing in a column of money."""

_PLAIN: Final = re.compile(r"-?[0-9.,]+")
_MEASURED: Final = re.compile(
    rf"([+-]?[0-9][0-9.,{_SPACES}]*)((?:[^\W0-9_]|\u00b0)[^\W_]*(?:[./][^\W_]*)*)"
)
"""A number and its unit."""
_MINUS: Final = "\u2212"

_SERIALS: Final = range(10_000, 110_000)
"""Day numbers of the years 1927 to 2201; smaller ones are as likely counts."""
_EPOCH_1900: Final = date(1899, 12, 30)
_EPOCH_1904: Final = date(1904, 1, 1)
_OPEN_YEARS: Final = (2999, 9999)
"""Years whose first or last day means that there is no last day."""
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
    r"(2999|9999)[-/.]?(?:12[-/.]?31|01[-/.]?01)|(?:31[-/.]12|12[-/.]31|01[-/.]01)[-/.](2999|9999)"
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
    if field.blanks:
        cells = _mapped(cells, partial(_unless_listed, field), _ALL_TYPES)
    match field.kind:
        case ColumnKind.TEXT:
            return cells
        case ColumnKind.DECIMAL | ColumnKind.INTEGER | ColumnKind.MONEY:
            if Signed in set(map(type, cells)):
                cells = [_unsigned(field, c) if isinstance(c, Signed) else c for c in cells]
            if _are_plain(cells):
                return cells
            is_money = field.kind is ColumnKind.MONEY
            plain = partial(_amount, field) if is_money else partial(_number_of, field)
        case ColumnKind.DATE | ColumnKind.TIMESTAMP:
            latest = today.year if field.past and today is not None else _LATEST
            reader = _Dates if field.kind is ColumnKind.DATE else _Moments
            return _mapped(cells, reader(field, latest, date1904=date1904), _ALL_TYPES)
        case ColumnKind.PLACE:
            plain = _place
        case _:
            if is_key and not field.is_needed:
                return cells
            plain = partial(_unless_blank, field)
    if field.words:
        plain = partial(_meant, field.meaning_of, plain)
    return _mapped(cells, plain, {str})


_ALL_TYPES: Final = frozenset({str, Length, int, float, Signed, datetime, date})
"""Of cells that are something; a truth value is read as it is."""


def _unless_listed(field: FieldSpec, cell: Cell) -> Cell:
    return None if is_own_blank(cell, field) else cell


def _unless_blank(field: FieldSpec, cell: Cell) -> Cell:
    return None if is_common_blank(cell, field) else cell


def _meant(
    meaning_of: Mapping[str, int | float], plain: Callable[[Cell], Cell], cell: Cell
) -> Cell:
    found = meaning_of.get(normalise(str(cell)))
    return plain(cell) if found is None else found


def _place(cell: Cell) -> Cell:
    return None if is_common_blank(cell) else plain_place(str(cell))


def _mapped(
    cells: Sequence[Cell], plain: Callable[[Cell], Cell], types: Set[type]
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


def _unsigned(field: FieldSpec, cell: Signed) -> Cell:
    """A number as a text with its sign would be read; that text if it is to be refused."""
    is_money, own = field.kind is ColumnKind.MONEY, field.currency
    if cell.sign == PERCENT_SIGN:
        return cell.text if is_money else cell.number if field.is_percent else float(cell)
    is_other = is_money and own is not None and not same_currency(cell.sign, own)
    return cell.text if is_other else cell.number


def _amount(field: FieldSpec, cell: Cell) -> Cell:
    """Text of an amount without its currency; with it if it is another one than the field's."""
    assert isinstance(cell, str)
    own = field.currency
    text = re.sub(own, own, cell, flags=re.IGNORECASE) if own else cell
    named = currency_of(text, own)
    is_other = own is not None and named is not None and not same_currency(named, own)
    return cell if is_other or is_percentage(cell) else _number(text, own)


def _number_of(field: FieldSpec, cell: Cell) -> Cell:
    """Text of a number without a unit of its field; of a percentage in such a field, its sign."""
    if field.is_percent and is_percentage(cell):
        cell = str(cell).replace("%", "", 1)
    elif field.units:
        cell = _without_unit(str(cell), field.units)
    return _number(cell)


def _without_unit(cell: str, units: Sequence[str]) -> str:
    text = cell.strip()
    numbers = (text.removesuffix(unit).rstrip() for unit in units if text.endswith(unit))
    return next((number for number in numbers if number[-1:].isdecimal()), cell)


def unit_behind(text: str) -> str | None:
    """Return what stands behind the number of a text, such as `kg`; None: it is no such text."""
    found = _MEASURED.fullmatch(text) if len(text) <= LONGEST else None
    return found[2] if found and number_notations(found[1].rstrip()) else None


def _number(cell: Cell, own: str | None = None) -> Cell:
    """Text of a number without currency, brackets and percent sign; percent as an exponent."""
    assert isinstance(cell, str)
    if _PLAIN.fullmatch(cell) and cell not in BLANKS:
        return cell
    text = cell.strip()
    if len(text) > LONGEST:
        return cell
    if text.lower() in BLANKS or _NUMBER_BLANKS.fullmatch(text):
        return None
    negative = text.startswith("(") and text.endswith(")")
    bare = text[1:-1].strip() if negative else text
    percent = bare.endswith("%")
    found = MONEY.fullmatch(bare.removesuffix("%").rstrip() if percent else bare)
    if found is None or not is_money(found, own):
        return cell
    minus = negative or any(
        found[group] in ("-", _MINUS) for group in ("minus", "inner", "trailing")
    )
    number = found["number"].strip()
    if found["cents"] and found["cents"][0] in ".," and not number.isdecimal():
        # `1.250,-`: what stands before the dash is the decimal mark.
        number += f"{found['cents'][0]}00"
    return f"{'-' if minus else ''}{number}{'e-2' if percent else ''}"


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
    """Whether a cell has a percent sign."""
    if isinstance(cell, Signed):
        return cell.sign == PERCENT_SIGN
    return isinstance(cell, str) and cell.rstrip(") \u00a0").endswith("%")


def currency_named(cell: Cell) -> str | None:
    """Return the currency that an amount names, in capitals; None: it names none."""
    if isinstance(cell, Signed):
        return cell.sign if cell.sign != PERCENT_SIGN else None
    return currency_of(cell) if isinstance(cell, str) else None


def date_readings_of(field: FieldSpec, cell: str) -> Sequence[date]:
    """Return every day that a text may mean by itself; empty if it is no date."""
    (plain,) = plain_cells(field, [cell])
    if isinstance(plain, str):
        return tuple(dict.fromkeys(date_readings(plain.strip(), field.years).values()))
    return (plain,) if isinstance(plain, date) and plain.year in field.years else ()


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
        return _day(year, 1 if is_year else month, 1, field.years)
    if is_year:
        return _day(year, 12, 31, field.years)
    if not 1 <= month <= 12:
        return None
    return _day(year, month, monthrange(year, month)[1], field.years) if year else None


class _Dates:
    """Dates of one column in plain notation.

    Args:
        field: What the column holds.
        latest: Two digits mean a year of the hundred up to this one.
        date1904: Day numbers count from 1904.
    """

    def __init__(self, field: FieldSpec, latest: int, *, date1904: bool) -> None:
        self._field = field
        self._open_ended = not field.is_needed
        self._latest = latest
        self._epoch = _EPOCH_1904 if date1904 else _EPOCH_1900

    def __call__(self, cell: Cell) -> Cell:
        match cell:
            case datetime():
                return self._bounded(cell.date(), cell)
            case date():
                return self._bounded(cell, cell)
            case bool() | None:
                return cell
            case int() | float():
                found = self._of_number(cell)
            case _:
                found = self._of_text(cell)
        return self._bounded(found, found) if isinstance(found, date) else found

    def _bounded(self, day: date, cell: Cell) -> Cell:
        is_open = day.year in _OPEN_YEARS and (day.month, day.day) in ((1, 1), (12, 31))
        if is_open and self._open_ended and day.year not in self._field.years:
            return None
        return day if day is not cell else cell

    def _of_number(self, cell: int | float) -> Cell:
        if isinstance(cell, int) and _COMPACT.fullmatch(str(cell)):
            return _compact(str(cell)) or cell
        return part_of_date(self._field, cell) or self._of_serial(cell)

    def _of_serial(self, cell: int | float) -> Cell:
        return self._epoch + timedelta(days=int(cell)) if _is_serial(cell) else cell

    def _of_text(self, cell: str) -> Cell:
        text = cell.strip()
        if len(text) > LONGEST:
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
        if late and int(late[1] or late[2]) not in self._field.years:
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


class _Moments(_Dates):
    """Days with a time in plain notation: the day, a space, and the time of day as it stands."""

    def __call__(self, cell: Cell) -> Cell:
        match cell:
            case datetime():
                return None if self._bounded(cell.date(), cell) is None else cell
            case date():
                return self._bounded(cell, cell)
            case bool() | None:
                return cell
            case int() | float() if _is_serial(cell):
                midnight = datetime(self._epoch.year, self._epoch.month, self._epoch.day)
                return midnight + timedelta(milliseconds=round(cell * 86_400_000))
            case int() | float():
                return cell
            case _:
                return self._of_moment(cell)

    def _of_moment(self, cell: str) -> Cell:
        found = split_moment(cell.strip())
        if found is None:
            return None if self._of_text(cell) is None else cell
        day = self._of_text(found[0])
        return None if day is None else f"{cell_text(day)} {found[1]}"


def _is_serial(cell: int | float) -> bool:
    return abs(cell) < 1e6 and int(cell) in _SERIALS


def _compact(text: str) -> date | None:
    if _COMPACT.fullmatch(text) is None:
        return None
    return _day(int(text[:4]), int(text[4:6]), int(text[6:]))


def _day(year: int, month: int, day: int, years: range = EVERY_YEAR) -> date | None:
    if year not in years:
        return None
    try:
        return date(year, month, day)
    except ValueError:
        return None
