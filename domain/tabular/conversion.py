"""Cells to values of a database, column by column.

A column of a chunk is looked at as a whole first, which costs some 50 ns a cell; only where that
does not settle it is each distinct cell looked at by itself.
"""

import math
import re
import unicodedata
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import date, datetime
from decimal import Decimal
from itertools import chain, islice, zip_longest
from types import MappingProxyType
from typing import Any, Final, cast

from domain.tabular.fields import INTEGER_MAX, ColumnKind, FieldSpec, normalise
from domain.tabular.notations import (
    Notation,
    Unreadable,
    date_readings,
    decide,
    exact,
    number_notations,
    only,
    read_date,
    read_number,
)
from domain.tabular.rows import Cell, Uncalculated
from domain.tabular.values import FORBIDDEN, cell_text, number_text

Notations = Mapping[str, Notation | None]
"""How the columns of a document write numbers and dates, by field."""

_NONE: Final = type(None)
_TEXT: Final = frozenset({str, _NONE})
_BREAKS: Final = ("\t", "\n", "\r")
_LONGEST_INTEGER_BITS: Final = 128
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
_INVISIBLE: Final = re.compile("[\u00ad\u200b-\u200f\u202a-\u202e\u2060-\u2064\ufeff]")
_BLANKS: Final = re.compile("[\u00a0\u1680\u2000-\u200a\u202f\u205f\u3000]")
_HYPHENS: Final = re.compile("[\u2010\u2011]")
_PLAIN_POINTS: Final = re.compile(r"(?:[0-9]{1,14}(?:\.[0-9]{1,6})?\n)*")
_PLAIN_DIGITS: Final = re.compile(r"(?:[0-9]{1,14}\n)*")
_PLAIN_INTEGERS: Final = re.compile(r"(?:[0-9]{1,9}\n)*")
"""Lines of which each is a number that needs neither rounding nor a limit."""
_TOO_NARROW: Final = re.compile(r"#{3,}")
"""What a spreadsheet shows, and writes into text files, where a column is too narrow."""


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
    """Decide from the first rows how each column writes numbers and dates.

    Its own unmistakable values decide; a column without any follows the others of its kind,
    where these agree.

    Args:
        columns: Field and cells of the document's head, by name.
    """
    evidence = {name: _evidence(field.kind, cells) for name, (field, cells) in columns.items()}
    numbers = {n for found in evidence.values() for n in found if n in _OF_NUMBERS}
    dates = {n for found in evidence.values() for n in found if n not in _OF_NUMBERS}
    return {
        name: only(evidence[name] or (dates if field.kind is ColumnKind.DATE else numbers))
        for name, (field, _) in columns.items()
    }


_OF_NUMBERS: Final = frozenset({Notation.POINT, Notation.COMMA})


def _evidence(kind: ColumnKind, cells: Iterable[Cell]) -> set[Notation]:
    texts = (cell.strip() for cell in cells if isinstance(cell, str))
    match kind:
        case ColumnKind.DECIMAL | ColumnKind.INTEGER:
            return decide(map(number_notations, dict.fromkeys(texts)))
        case ColumnKind.DATE:
            return decide(map(date_readings, dict.fromkeys(texts)))
        case _:
            return set()


def convert_column(
    field: FieldSpec, cells: Sequence[Cell], notation: Notation | None
) -> tuple[list[Any], bool]:
    """Convert the cells of one column.

    Args:
        field: What the column holds.
        cells: As read.
        notation: How the column writes numbers or dates.

    Returns:
        A value, None for a blank, or a `Flaw`, for each cell; and whether any is refused.
    """
    types = set(map(type, cells))
    if field.kind in (ColumnKind.TEXT, ColumnKind.CODE) and types <= _TEXT:
        if _NONE in types:
            texts = [cell.strip() if cell else "" for cell in cast("Sequence[str | None]", cells)]
        else:
            texts = list(map(str.strip, cast("Sequence[str]", cells)))
        if field.kind is ColumnKind.CODE and not "".join(texts).isascii():
            texts = list(map(_visible, texts))
        if _all_clean(field, texts):
            return [text or field.blank for text in texts] if "" in texts else texts, False

    distinct = dict.fromkeys(cells)
    if types == {str} and (plain := _plain_numbers(field, distinct, notation)) is not None:
        return list(map(plain.__getitem__, cells)), False
    read = _READERS[field.kind]

    def one(cell: Cell) -> Any:
        try:
            if isinstance(cell, Uncalculated):
                raise Unreadable(_UNCALCULATED)
            if isinstance(cell, str):
                cell = (_visible(cell) if field.kind is ColumnKind.CODE else cell.strip()) or None
            if cell is None:
                return _blank(field)
            if isinstance(cell, str) and (wrong := error_of(cell, field.kind)):
                raise Unreadable(wrong)
            return read(field, cell, notation)
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
    field: FieldSpec, distinct: Collection[Cell], notation: Notation | None
) -> dict[Cell, Any] | None:
    """The numbers that texts mean, where they hold digits and at most a decimal point; quick.

    None: each has to be looked at by itself.
    """
    if field.minimum is not None and field.minimum > 0:
        return None
    if field.kind is ColumnKind.INTEGER:
        pattern = _PLAIN_INTEGERS
    elif field.kind is ColumnKind.DECIMAL:
        pattern = _PLAIN_POINTS if notation is Notation.POINT else _PLAIN_DIGITS
    else:
        return None
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


def _all_clean(field: FieldSpec, texts: list[str]) -> bool:
    if (field.required or field.filled) and "" in texts:
        return False
    joined = "".join(texts)
    may_be_wrong = "#" in joined or "Err:" in joined or "+" in joined
    if field.kind is ColumnKind.CODE:
        # Most codes name no month, and to search for words is quicker than for a pattern.
        names_month = not joined.isupper() and any(month in joined for month in _MONTHS)
        may_be_wrong = may_be_wrong or (names_month and _DAY.search(joined) is not None)
        may_be_wrong = may_be_wrong or not _DITTO.isdisjoint(texts)
    if may_be_wrong and any(error_of(text, field.kind) for text in texts):
        return False
    return (joined.isprintable() or _permitted(field, joined)) and (
        len(joined) <= field.max_length or max(map(len, texts)) <= field.max_length
    )


def error_of(text: str, kind: ColumnKind) -> str | None:
    """What is wrong with a text that stands for a value that could not be shown."""
    if text in _ERRORS:
        what = "code" if kind is ColumnKind.CODE else "value"
        return f"is an error, not a {what}; correct its formula"
    if kind is ColumnKind.CODE and _SCIENTIFIC.fullmatch(text):
        return "is a number without its last digits; format the cell as text and enter it again"
    if kind is ColumnKind.CODE and _DAY.fullmatch(text):
        return "is a date that a spreadsheet has made of a code; format the cell as text"
    if kind is ColumnKind.CODE and text in _DITTO:
        return "stands for the code of the row above; write that code"
    if _TOO_NARROW.fullmatch(text):
        return "is not the value: the column was too narrow to show it when the file was written"
    return None


def _permitted(field: FieldSpec, text: str) -> bool:
    if FORBIDDEN.search(text):
        return False
    return field.kind is not ColumnKind.CODE or not any(mark in text for mark in _BREAKS)


_UNCALCULATED: Final = (
    "is a formula without a result; open the file in a spreadsheet, save it and send it again"
)


def _blank(field: FieldSpec) -> str | None:
    if field.required:
        raise Unreadable("is missing")
    if field.filled:
        raise Unreadable("is missing; number the lines of the same key from 1")
    return field.blank


def _text(field: FieldSpec, cell: Cell, notation: Notation | None) -> str:
    text = cell_text(cell)
    if not _permitted(field, text):
        raise Unreadable("holds a control character; is the encoding right?")
    if len(text) > field.max_length:
        raise Unreadable(f"has {len(text)} characters, at most {field.max_length} are allowed")
    return text


def _code(field: FieldSpec, cell: Cell, notation: Notation | None) -> str:
    if isinstance(cell, bool):
        raise Unreadable("is a truth value, not a code; format the cell as text")
    if isinstance(cell, date):
        raise Unreadable("is a date, not a code; format the cell as text")
    if isinstance(cell, int | float):
        cell = number_text(cell)
        if cell.strip("-.0123456789"):
            raise Unreadable("is too long a number for a spreadsheet; format the cell as text")
    return _text(field, cell, notation)


def _decimal(field: FieldSpec, cell: Cell, notation: Notation | None) -> Decimal:
    match cell:
        case bool() | date():
            raise Unreadable("is not a number")
        case int():
            value = Decimal(cell if cell.bit_length() < _LONGEST_INTEGER_BITS else "Infinity")
        case float():
            # repr is the shortest text that means this float: what its user typed.
            value = Decimal(repr(cell))
        case _:
            value = read_number(cell_text(cell), notation)
    value = exact(value)
    if field.minimum is not None and value < field.minimum:
        raise Unreadable(_too_small(field.minimum))
    return value


def _integer(field: FieldSpec, cell: Cell, notation: Notation | None) -> int:
    if isinstance(cell, float) and not math.isfinite(cell):
        raise Unreadable("is not a finite number")
    value = _decimal(field, cell, notation)
    if value != value.to_integral_value():
        raise Unreadable("is not a whole number")
    if abs(value) > INTEGER_MAX:
        raise Unreadable(f"is larger than {INTEGER_MAX}")
    return int(value)


def _too_small(minimum: int) -> str:
    return "is negative" if minimum == 0 else f"is less than {minimum}"


def _date(field: FieldSpec, cell: Cell, notation: Notation | None) -> date:
    match cell:
        case datetime():
            if (cell.hour, cell.minute, cell.second, cell.microsecond) != (0, 0, 0, 0):
                raise Unreadable("has a time of day; a date is expected")
            return read_date(cell.date().isoformat(), None)
        case date():
            return read_date(cell.isoformat(), None)
        case bool() | int() | float():
            raise Unreadable("is not a date; format the cell as a date or write 2025-03-04")
        case _:
            return read_date(cell_text(cell), notation)


def _choice(field: FieldSpec, cell: Cell, notation: Notation | None) -> str:
    value = field.choice_of.get(normalise(cell_text(cell)))
    if value is None:
        raise Unreadable(f"is not one of {', '.join(field.choices)}")
    return value


_READERS: Final[Mapping[ColumnKind, Callable[[FieldSpec, Cell, Notation | None], Any]]] = (
    MappingProxyType(
        {
            ColumnKind.TEXT: _text,
            ColumnKind.CODE: _code,
            ColumnKind.DECIMAL: _decimal,
            ColumnKind.INTEGER: _integer,
            ColumnKind.DATE: _date,
            ColumnKind.CHOICE: _choice,
        }
    )
)
