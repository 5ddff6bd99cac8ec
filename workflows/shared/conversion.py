"""Cells to values of a database: one by one, by column, and as the text that databases take.

Cells to values of a database, column by column.

A column of a chunk is looked at as a whole first, which costs some 50 ns a cell; only where that
does not settle it is each distinct cell looked at by itself.
"""

import math
import re
import unicodedata
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, date, datetime, time, timedelta
from decimal import Decimal
from itertools import chain, islice, zip_longest
from types import MappingProxyType
from typing import Any, Final, cast
from zoneinfo import ZoneInfo

from workflows.shared.cells import FORBIDDEN, Cell, Uncalculated, cell_text, number_text
from workflows.shared.currencies import currency_of
from workflows.shared.durations import (
    LONGEST,
    duration_text,
    hours_of,
    is_short_clock,
    read_duration,
    refuse_unclear,
    time_units_of,
)
from workflows.shared.fields import (
    DAYS,
    INTEGER_MAX,
    NUMBERS,
    YEARS,
    Bound,
    ColumnKind,
    FieldSpec,
    normalise,
)
from workflows.shared.notations import (
    EVERY_YEAR,
    Notation,
    Unreadable,
    beyond_years,
    column_notation,
    date_readings,
    days_of,
    decide,
    exact,
    is_percentage,
    number_notations,
    plain_cells,
    read_date,
    read_number,
    single_notation,
    unit_behind,
)
from workflows.shared.patterns import compiled_pattern
from workflows.shared.shares import OddShares
from workflows.shared.timestamps import in_zone, local_time, read_clock

_ERRORS: Final = frozenset(
    (
        *("#N/A", "#NAME?", "#REF!", "#VALUE!", "#DIV/0!", "#NULL!", "#NUM!", "#SPILL!", "#CALC!"),
        *("#FIELD!", "#BLOCKED!", "#CONNECT!", "#BUSY!", "#UNKNOWN!", "#GETTING_DATA", "#ERROR!"),
        *("#NV", "#BEZUG!", "#WERT!", "#ZAHL!", "#\u00dcBERLAUF!"),
        *("#VALEUR!", "#NOM?", "#NOMBRE!", "#NUL!"),
        *("Err:502", "Err:504", "Err:508", "Err:509", "Err:511", "Err:519", "Err:522"),
    )
)
"""What a spreadsheet shows in the place of a formula's result; in German and French as well."""
_SCIENTIFIC: Final = re.compile(r"[0-9](?:[.,][0-9]+)?[eE]\+[0-9]{2,3}")
"""How a spreadsheet shows, and writes into text files, a long number: without its last digits."""
_MONTH: Final = (
    "Jan|Feb|Mar|Mrz|Apr|May|Mai|Jun|Jul|Aug|Sep|Oct|Okt|Nov|Dec|Dez"
    "|janv|f\u00e9vr|mars|avr|juin|juil|ao\u00fbt|sept|d\u00e9c"
)
_MONTHS: Final = tuple(_MONTH.split("|"))
_DAY: Final = re.compile(rf"[0-9]{{1,2}}(?:-|\. )(?:{_MONTH})|(?:{_MONTH})[- ][0-9]{{2}}")
"""What a spreadsheet makes of a code that looks like a date, `3/4` or `2-1`, in text files."""
_DITTO: Final = frozenset(
    spelling
    for mark in (
        *('"', "''", "\u201c", "\u201d", "\u201e", "\u2033", "\u3003", "\u00bb", "\u00ab"),
        *('-"-', '- " -', '\u2013"\u2013', "-\u201d-", "-''-", '--"--'),
        *("dto", "dto.", "dito", "ditto", "do.", "idem", "as above", "same as above"),
        *("s.o.", "s. o.", "siehe oben", "wie oben", "wie vor"),
    )
    for spelling in (mark, mark.upper(), mark.capitalize())
)
"""What people write for the code of the row above."""
_TOO_NARROW: Final = re.compile(r"#{3,}")
"""What a spreadsheet shows, and writes into text files, where a column is too narrow."""


_ENTERED: Final = (ColumnKind.CODE, ColumnKind.PHONE)
"""Kinds of digits that are no number."""


def may_be_error(texts: Sequence[str], joined: str, kind: ColumnKind) -> bool:
    """Whether one of many texts may be such a text; quick if none is.

    Args:
        texts: The texts.
        joined: All of them in one.
        kind: Kind of their column.
    """
    if "#" in joined or "Err:" in joined or "+" in joined:
        return True
    if kind is not ColumnKind.CODE:
        return False
    # Most codes name no month, and to search for words is quicker than for a pattern.
    names_month = not joined.isupper() and any(month in joined for month in _MONTHS)
    return (names_month and _DAY.search(joined) is not None) or not _DITTO.isdisjoint(texts)


def conversion_error(text: str, kind: ColumnKind) -> str | None:
    """What is wrong with a text that stands for a value that could not be shown."""
    if text in _ERRORS:
        what = "code" if kind is ColumnKind.CODE else "value"
        return f"is an error, not a {what}; correct its formula"
    if kind in _ENTERED and _SCIENTIFIC.fullmatch(text):
        return "is a number without its last digits; format the cell as text and enter it again"
    if kind is ColumnKind.CODE and _DAY.fullmatch(text):
        return "is a date that a spreadsheet has made of a code; format the cell as text"
    if kind is ColumnKind.CODE and text in _DITTO:
        return "stands for the code of the row above; write that code"
    if _TOO_NARROW.fullmatch(text):
        return "is not the value: the column was too narrow to show it when the file was written"
    return None


Written = Notation | int | None
"""How a column writes numbers or dates, or the most hours that its times write out."""
Notations = Mapping[str, Written]
"""How the columns of a document are written, by field."""

_NONE: Final = type(None)
_TEXT: Final = frozenset({str, _NONE})
_CODES: Final = (ColumnKind.CODE, ColumnKind.MAIL)
_MAIL: Final = re.compile(
    r"[^\s@<>()\[\],;:\"\\]+@[^\s@<>()\[\],;:\"\\.]+(?:\.[^\s@<>()\[\],;:\"\\.]+)+"
)
_BREAKS: Final = ("\t", "\n", "\r")
_LONGEST_INTEGER_BITS: Final = 128
_INVISIBLE: Final = re.compile("[\u00ad\u200b-\u200f\u202a-\u202e\u2060-\u2064\ufeff]")
_BLANKS: Final = re.compile("[\u00a0\u1680\u2000-\u200a\u202f\u205f\u3000]")
_HYPHENS: Final = re.compile("[\u2010\u2011]")
_PLAIN_POINTS: Final = re.compile(r"(?:[0-9]{1,14}(?:\.[0-9]{1,6})?\n)*")
_PLAIN_DIGITS: Final = re.compile(r"(?:[0-9]{1,14}\n)*")
_PLAIN_INTEGERS: Final = re.compile(r"(?:[0-9]{1,9}\n)*")
"""Lines of which each is a number that needs neither rounding nor a limit."""


@dataclass(frozen=True, slots=True)
class Flaw:
    """Stands in a converted column where a cell could not be converted.

    Attributes:
        reason: What is wrong.
        returns: Other rows of the document are needed to see it: the row is to be recognised when
            it comes back without them.
    """

    reason: str
    returns: bool = False


def transpose(rows: Sequence[Sequence[Cell]], width: int) -> list[Sequence[Cell]]:
    """Rows of any length as `width` columns; what is not there is None."""
    longest = max(map(len, rows), default=0)
    columns: list[Sequence[Cell]]
    if longest and min(map(len, rows)) == longest:
        # Slices of all cells in one list take a third of the time.
        cells = list(chain.from_iterable(rows))
        columns = [cells[place::longest] for place in range(min(longest, width))]
    else:
        columns = list(islice(zip_longest(*rows), width))
    columns.extend([(None,) * len(rows)] * (width - len(columns)))
    return columns


def settle_notations(columns: Mapping[str, tuple[FieldSpec, Sequence[Cell]]]) -> Notations:
    """Decide from the first rows how each column is written.

    Args:
        columns: Field and cells of the document's head, by name.
    """
    found = {
        name: _evidence(field.kind, plain_cells(field, cells))
        for name, (field, cells) in columns.items()
    }
    everywhere = set[Notation]().union(*found.values())
    return {
        name: hours_of(cells)
        if field.kind is ColumnKind.DURATION
        else single_notation(found[name])
        if field.kind is ColumnKind.BOOLEAN
        else column_notation(found[name], everywhere, dates=field.kind in DAYS)
        for name, (field, cells) in columns.items()
    }


def _evidence(kind: ColumnKind, cells: Iterable[Cell]) -> set[Notation]:
    if kind in DAYS:
        return decide(map(date_readings, dict.fromkeys(days_of(kind, cells))))
    if kind in NUMBERS or kind is ColumnKind.PLACE:
        texts = (cell.strip() for cell in cells if isinstance(cell, str))
        return decide(map(number_notations, dict.fromkeys(texts)))
    return ticks_of(cells) if kind is ColumnKind.BOOLEAN else set()


def ticks_of(cells: Iterable[Cell]) -> set[Notation]:
    """Return that a column is written in ticks, if a cell is one: there, an `x` may be a cross."""
    texts = (cell.strip() for cell in cells if isinstance(cell, str))
    return {Notation.TICKS} if any(text in _TICKS or text in _CROSSES for text in texts) else set()


def read_cells(
    field: FieldSpec,
    cells: Sequence[Cell],
    written: Written,
    *,
    is_key: bool = False,
    date1904: bool = False,
    today: date | None = None,
) -> tuple[list[Any], bool]:
    """Read the cells of one column as people and programs write them.

    Args:
        field: What the column holds.
        cells: As read.
        written: How the column is written.
        is_key: See `plain_cells`, as for the other arguments.

    Returns:
        A value, None for a blank, or a `Flaw`, for each cell; and whether any is refused.
    """
    plain = plain_cells(field, cells, is_key=is_key, date1904=date1904, today=today)
    return convert_column(field, plain, written)


_NO_SIGN: Final = Flaw(
    "has no percent sign, and others of its column have: write 10 % as 10% or 0.1 everywhere"
)
_SIGN: Final = Flaw(
    "has a percent sign, and most of its column have none: write 10 % as 10 or 0.1, as they are "
    "meant there",
    returns=True,
)


def refuse_shares(cells: Sequence[Cell], values: Sequence[Any], odd: OddShares) -> list[Any]:
    """Refuse numbers that are percentages, unlike most of their column, or that are none.

    Args:
        cells: Of the column, as read.
        values: What they were converted to.
        odd: Which cells.
    """
    flaw = _SIGN if odd == "signed" else _NO_SIGN
    return [
        flaw
        if isinstance(value, Decimal | int)
        and (is_percentage(cell) if odd == "signed" else abs(value) > 1 and not is_percentage(cell))
        else value
        for value, cell in zip(values, cells, strict=True)
    ]


def convert_column(
    field: FieldSpec, cells: Sequence[Cell], written: Written
) -> tuple[list[Any], bool]:
    """Convert the cells of one column.

    Args:
        field: What the column holds.
        cells: In plain notation.
        written: How the column is written.

    Returns:
        See `read_cells`.
    """
    types = set(map(type, cells))
    if field.kind in (ColumnKind.TEXT, *_CODES) and types <= _TEXT:
        if _NONE in types:
            texts = [cell.strip() if cell else "" for cell in cast("Sequence[str | None]", cells)]
        else:
            texts = list(map(str.strip, cast("Sequence[str]", cells)))
        if field.kind in _CODES and not "".join(texts).isascii():
            texts = list(map(_visible, texts))
        if _all_clean(field, texts):
            return [text or field.blank for text in texts] if "" in texts else texts, False

    distinct = dict.fromkeys(cells)
    if types == {str} and (plain := _plain_numbers(field, distinct, written)) is not None:
        return list(map(plain.__getitem__, cells)), False
    read = _READERS[field.kind]

    def one(cell: Cell) -> Any:
        try:
            if isinstance(cell, Uncalculated):
                raise Unreadable(_UNCALCULATED)
            if isinstance(cell, str):
                cell = (_visible(cell) if field.kind in _CODES else cell.strip()) or None
            if cell is None:
                return _blank(field)
            if isinstance(cell, str) and (wrong := conversion_error(cell, field.kind)):
                raise Unreadable(wrong)
            value = read(field, cell, written)
            if field.is_limited:
                _refuse_beyond(field, value)
            return value
        except Unreadable as problem:
            return Flaw(str(problem))

    if bool in types or Uncalculated in types:
        # True equals 1, a formula the text that looks like it: one dictionary cannot hold both.
        values = [one(cell) for cell in cells]
        return values, Flaw in set(map(type, values))
    answers = {cell: one(cell) for cell in distinct}
    refused = Flaw in set(map(type, answers.values()))
    return list(map(answers.__getitem__, cells)), refused


def _plain_numbers(
    field: FieldSpec, distinct: Collection[Cell], notation: Written
) -> dict[Cell, Any] | None:
    """The numbers that texts mean, where they hold digits and at most a decimal point; quick.

    None: each has to be looked at by itself.
    """
    if field.kind not in NUMBERS or field.maximum is not None or field.minimum not in (None, 0):
        return None
    if field.kind is ColumnKind.INTEGER:
        pattern = _PLAIN_INTEGERS
    else:
        pattern = _PLAIN_POINTS if notation is Notation.POINT else _PLAIN_DIGITS
    texts = cast("Collection[str]", distinct)
    joined = "\n".join(texts) + "\n"
    if joined.count("\n") != len(texts) or not pattern.fullmatch(joined):
        return None
    if field.kind is ColumnKind.INTEGER:
        return dict(zip(distinct, map(int, texts), strict=True))
    # Zeros with and without places are one number.
    return {text: Decimal(text) or Decimal(0) for text in texts}


def _visible(code: str) -> str:
    """A code by what it looks like: two that look the same are the same.

    Letters with accents may be two characters each, and hyphens of documents forbid a line break.
    """
    if code.isascii():
        return code.strip()
    shown = _HYPHENS.sub("-", _BLANKS.sub(" ", _INVISIBLE.sub("", code)))
    return unicodedata.normalize("NFC", shown).strip()


def _all_clean(field: FieldSpec, texts: Sequence[str]) -> bool:
    if field.pattern is not None:
        return False
    if (field.is_needed or field.filled) and "" in texts:
        return False
    if field.kind is ColumnKind.MAIL and not all(is_mail(text) for text in set(texts) if text):
        return False
    joined = "".join(texts)
    if may_be_error(texts, joined, field.kind) and any(
        conversion_error(text, field.kind) for text in texts
    ):
        return False
    return (joined.isprintable() or _permitted(field, joined)) and (
        len(joined) <= field.characters or max(map(len, texts)) <= field.characters
    )


def _permitted(field: FieldSpec, text: str) -> bool:
    if FORBIDDEN.search(text):
        return False
    return field.kind is not ColumnKind.CODE or not any(mark in text for mark in _BREAKS)


_NO_NUMBER: Final = "is not a number"
_MEASURES: Final = (ColumnKind.DECIMAL, ColumnKind.INTEGER)
"""Kinds of numbers behind which a unit may stand."""
_UNCALCULATED: Final = (
    "is a formula without a result; open the file in a spreadsheet, save it and send it again"
)


def _blank(field: FieldSpec) -> str | None:
    if field.is_needed:
        raise Unreadable("is missing")
    if field.filled:
        is_number = field.name == "sequence"
        cure = "; number the lines of the same key from 1" if is_number else ""
        raise Unreadable(f"is missing{cure}")
    return field.blank


def _text(field: FieldSpec, cell: Cell, notation: Written) -> str:
    text = cell_text(cell)
    if not _permitted(field, text):
        raise Unreadable("holds a control character; is the encoding right?")
    if len(text) > field.characters:
        raise Unreadable(f"has {len(text)} characters, at most {field.characters} are allowed")
    return text


def _code(field: FieldSpec, cell: Cell, notation: Written) -> str:
    if isinstance(cell, bool):
        raise Unreadable("is a truth value, not a code; format the cell as text")
    if isinstance(cell, date):
        raise Unreadable("is a date, not a code; format the cell as text")
    if isinstance(cell, int | float):
        cell = number_text(cell)
        if cell.strip("-.0123456789"):
            raise Unreadable("is too long a number for a spreadsheet; format the cell as text")
    return _text(field, cell, notation)


def _decimal(field: FieldSpec, cell: Cell, notation: Written) -> Decimal:
    match cell:
        case bool() | date():
            raise Unreadable(_NO_NUMBER)
        case int():
            value = Decimal(cell if cell.bit_length() < _LONGEST_INTEGER_BITS else "Infinity")
        case float():
            # repr is the shortest text that means this float: what its user typed.
            value = Decimal(repr(cell))
        case _:
            value = _number_of(field, cell_text(cell), _notation(notation))
    return exact(value)


def _number_of(field: FieldSpec, text: str, notation: Notation | None) -> Decimal:
    try:
        return read_number(text, notation)
    except Unreadable as problem:
        unit = unit_behind(text) if field.kind in _MEASURES else None
        if unit is None:
            raise
        own = field.units or ()
        wanted = f", and this column is in {', '.join(own)}" if own else ""
        cure = f"the number in {own[0]}" if own else "the number alone"
        raise Unreadable(f"has {unit!r} behind its number{wanted}; write {cure}") from problem


def _integer(field: FieldSpec, cell: Cell, notation: Written) -> int:
    if isinstance(cell, float) and not math.isfinite(cell):
        raise Unreadable("is not a finite number")
    value = _decimal(field, cell, notation)
    if value != value.to_integral_value():
        raise Unreadable("is not a whole number")
    bounds = [each for each in (field.minimum, field.maximum) if isinstance(each, int)]
    least, most = min([-INTEGER_MAX, *bounds]), max([INTEGER_MAX, *bounds])
    if not least <= value <= most:
        word, said = ("minimum", f"less than {least}")
        if value > most:
            word, said = ("maximum", f"more than {most}")
        raise Unreadable(
            f"is {said}; correct it, or have its type declare a '{word}' that allows it"
        )
    return int(value)


def _refuse_beyond(field: FieldSpec, value: Any) -> None:
    if field.minimum is not None and _comparable(field, value, field.minimum) < field.minimum:
        is_sign = field.minimum == 0
        raise Unreadable(
            "is negative" if is_sign else f"is less than {_bound(field.minimum, field)}"
        )
    if field.maximum is not None and _comparable(field, value, field.maximum) > field.maximum:
        raise Unreadable(f"is more than {_bound(field.maximum, field)}")
    if (
        field.pattern is not None
        and isinstance(value, str)
        and not compiled_pattern(field.pattern)(value)
    ):
        raise Unreadable(f"does not match the pattern {field.pattern}")


def _comparable(field: FieldSpec, value: Any, bound: Bound) -> Any:
    """A value as its bound is: a moment as local time, and as a day if the bound is a day."""
    if not isinstance(value, datetime):
        return value
    if field.zone is not None:
        value = local_time(value, field.zone)
    return value if isinstance(bound, datetime) else value.date()


def _bound(bound: Bound, field: FieldSpec) -> str:
    if field.kind is ColumnKind.DURATION and isinstance(bound, int):
        return duration_text(bound)
    return f"{bound:f}" if isinstance(bound, Decimal) else str(bound)


def _date(field: FieldSpec, cell: Cell, notation: Written) -> date:
    match cell:
        case datetime():
            if (cell.hour, cell.minute, cell.second, cell.microsecond) != (0, 0, 0, 0):
                raise Unreadable("has a time of day; a date is expected")
            return _known_day(field, cell.date())
        case date():
            return _known_day(field, cell)
        case int() if cell in YEARS:
            raise Unreadable("is a year without month and day; write it as 2025-03-04")
        case bool() | int() | float():
            raise Unreadable("is not a date; format the cell as a date or write 2025-03-04")
        case _:
            return read_date(cell_text(cell), _notation(notation), field.years)


def _known_day(field: FieldSpec, day: date) -> date:
    if day.year not in field.years:
        raise Unreadable(beyond_years(field.years))
    return day


def _notation(written: Written) -> Notation | None:
    return written if isinstance(written, Notation) else None


def is_mail(text: str) -> bool:
    """Whether a text is written like a mail address."""
    return _MAIL.fullmatch(text) is not None


def _mail(field: FieldSpec, cell: Cell, notation: Written) -> str:
    text = _code(field, cell, notation)
    if not is_mail(text):
        raise Unreadable("is not a mail address; write one like name@example.org")
    return text


def _place(field: FieldSpec, cell: Cell, notation: Written) -> int:
    try:
        return _integer(field, cell, notation)
    except Unreadable as problem:
        if str(problem) != _NO_NUMBER:
            raise
        raise Unreadable(
            "is not a place, and no status unless the status column says the same"
        ) from problem


def _duration(field: FieldSpec, cell: Cell, hours: Written) -> int:
    if isinstance(cell, str) and field.clock != "mm:ss" and is_short_clock(cell):
        if field.clock is None:
            raise Unreadable(
                "may be hours and minutes, or minutes and seconds: write 01:23:45, or say in the "
                "header which, as in Duration (hh:mm) or (mm:ss)"
            )
        return read_duration(f"{cell.strip()}:00", longest=_longest(field))
    if isinstance(cell, str):
        refuse_unclear(cell, hours if isinstance(hours, int) else None)
    value = cell_text(cell) if cell is None else cell
    return read_duration(value, time_units_of(field), longest=_longest(field))


def _longest(field: FieldSpec) -> int:
    """The most milliseconds of a length of time, unless its bound is lower."""
    return max(LONGEST, field.maximum if isinstance(field.maximum, int) else 0)


_CHOICES: Final = 20
"""Choices that a problem lists."""


def _choice(field: FieldSpec, cell: Cell, notation: Written) -> str:
    value = field.choice_of.get(normalise(cell_text(cell)))
    if value is None:
        known = list(field.choices)
        more = f" and {len(known) - _CHOICES} more" if len(known) > _CHOICES else ""
        raise Unreadable(f"is not one of {', '.join(known[:_CHOICES])}{more}")
    return value


_TRUE: Final = frozenset(
    ("yes", "y", "true", "1", "x", "on", "ja", "j", "wahr", "oui", "vrai", "si", "verdadero")
)
_FALSE: Final = frozenset(
    ("no", "n", "false", "0", "off", "nein", "falsch", "non", "faux", "falso")
)


_TICKS: Final = frozenset("\u2713\u2714\u2611\u2705") | {"\u2714\ufe0f"}
_CROSSES: Final = frozenset("\u2717\u2718\u274c")


def _boolean(field: FieldSpec, cell: Cell, notation: Written) -> bool:
    if cell in _TICKS or cell in _CROSSES:
        return cell in _TICKS
    word = normalise(cell_text(cell))
    if word == "x" and notation is Notation.TICKS:
        raise Unreadable("may be a tick or a cross beside those of its column; write yes or no")
    if isinstance(cell, bool) or word in _TRUE or word in _FALSE:
        return word in _TRUE
    raise Unreadable("is neither yes nor no; write yes, no, true, false, 1, 0 or x")


_NO_CLOCK: Final = "is not a time of day; write it as 14:30, and midnight as 00:00"
_SPREADSHEETS_FIRST_DAYS: Final = frozenset(
    (date(1899, 12, 30), date(1899, 12, 31), date(1904, 1, 1))
)
"""What programs write as the day of a time without one."""


def _time(field: FieldSpec, cell: Cell, notation: Written) -> time:
    match cell:
        case datetime() if cell.date() in _SPREADSHEETS_FIRST_DAYS:
            return cell.time()
        case date():
            raise Unreadable("has a day; a time of day is expected")
        case bool():
            raise Unreadable(_NO_CLOCK)
        case int() | float():
            milliseconds = round(cell * 86_400_000) if 0 <= cell < 1 else -1
            if not 0 <= milliseconds < 86_400_000:
                raise Unreadable(_NO_CLOCK)
            return (datetime.min + timedelta(milliseconds=milliseconds)).time()
        case _:
            found = read_clock(cell_text(cell))
    if found is None:
        raise Unreadable(_NO_CLOCK)
    if found[1] is not None:
        raise Unreadable("has an offset from UTC; write the time of day alone")
    return found[0]


_NO_MOMENT: Final = "is not a day with a time; write it as 2025-03-04 14:30"


def _timestamp(field: FieldSpec, cell: Cell, notation: Written) -> datetime:
    offset = None
    match cell:
        case datetime():
            local = datetime.combine(_known_day(field, cell.date()), cell.time())
        case date():
            # A cell of a spreadsheet that shows no time is midnight; a text leaves its time open.
            local = datetime.combine(_known_day(field, cell), time())
        case bool() | int() | float() | None:
            raise Unreadable(_NO_MOMENT)
        case _:
            day, _, rest = cell.partition(" ")
            found = read_clock(rest)
            is_day = bool(date_readings(day, EVERY_YEAR))
            if found is None and not rest and is_day:
                raise Unreadable("has no time of day; write it as 2025-03-04 14:30")
            if found is None or not is_day:
                raise Unreadable(_NO_MOMENT)
            clock, offset = found
            own = read_date(day, _notation(notation), field.years)
            local = datetime.combine(own, clock)
    if field.zone is None:
        if offset is not None:
            raise Unreadable("has an offset from UTC, and times of this column have none")
        return local
    if offset is not None:
        return local.replace(tzinfo=offset).astimezone(UTC)
    moments = in_zone(local, field.zone)
    if len(moments) == 1:
        return moments[0]
    if not moments:
        raise Unreadable(f"does not exist: clocks of {field.zone} go forward then")
    raise Unreadable(
        f"happens twice, as clocks of {field.zone} go back then; write it with its offset, as "
        f"{moments[0].astimezone(ZoneInfo(field.zone)).isoformat(' ', 'minutes')}"
    )


def _money(field: FieldSpec, cell: Cell, notation: Written) -> Decimal:
    try:
        return _decimal(field, cell, notation)
    except Unreadable as problem:
        if str(problem) != _NO_NUMBER:
            raise
        named = currency_of(cell_text(cell), field.currency)
        if named is not None and field.currency is not None:
            raise Unreadable(f"is in {named}, and this column is in {field.currency}") from problem
        raise Unreadable("is not an amount of money; write it as 1250.00") from problem


_PHONE_MARKS: Final = MappingProxyType(str.maketrans("", "", " .-\u2013/()[]"))
_TRUNK_ZERO: Final = re.compile(r"((?:\+|00)[1-9][0-9]{0,2}[ .-]*)\(0\)")
_PHONE: Final = re.compile(r"\+?[0-9]{5,15}")
_EXTENSION: Final = re.compile(
    r"(?:#|\bext|[0-9 ]x|durchwahl|\bdw|poste|\bapp)[. :]*[0-9]", re.IGNORECASE
)


def _phone(field: FieldSpec, cell: Cell, notation: Written) -> str:
    if isinstance(cell, bool | date):
        raise Unreadable("is not a phone number; format the cell as text")
    if isinstance(cell, int | float):
        raise Unreadable("is a number, which may have lost a leading zero; format the cell as text")
    text = _visible(cell_text(cell))
    if _EXTENSION.search(text):
        raise Unreadable("has an extension; write the number alone")
    bare = _TRUNK_ZERO.sub(r"\1", text, count=1)
    digits = bare.translate(_PHONE_MARKS)
    if digits.startswith("00"):
        digits = f"+{digits[2:]}"
    # A zero in brackets is part of the number at its beginning alone.
    is_unclear = "(0)" in bare[1:] or digits.startswith("+0")
    if is_unclear or _PHONE.fullmatch(digits) is None:
        raise Unreadable("is not a phone number; write it like +49 30 123456, with 5 to 15 digits")
    return digits


_READERS: Final[Mapping[ColumnKind, Callable[[FieldSpec, Cell, Written], Any]]] = MappingProxyType(
    {
        ColumnKind.TEXT: _text,
        ColumnKind.CODE: _code,
        ColumnKind.DECIMAL: _decimal,
        ColumnKind.INTEGER: _integer,
        ColumnKind.DATE: _date,
        ColumnKind.CHOICE: _choice,
        ColumnKind.MAIL: _mail,
        ColumnKind.PLACE: _place,
        ColumnKind.DURATION: _duration,
        ColumnKind.ENTITY: _text,
        ColumnKind.BOOLEAN: _boolean,
        ColumnKind.TIME: _time,
        ColumnKind.TIMESTAMP: _timestamp,
        ColumnKind.MONEY: _money,
        ColumnKind.PHONE: _phone,
    }
)
