"""Cells and rows of a table, as readers deliver them.

What people and programs write into a cell that has no value: one closed list.

These texts count as blank in columns of numbers, dates and codes. They never do in names and free
texts: `Null`, `None` and `N/A` may be what their writer means there. An error of a formula
(`#N/A`, `NaN`) and a value that is still to come (`tbd`) are no blanks: they are rejected.

Text in delimited files that a spreadsheet program would take for a formula.

A program that opens such a file would run what another person has typed. An apostrophe in front
keeps it text; reading takes that off again, so that a table that goes out comes back as it was.
"""

import json
import math
import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import date, datetime
from itertools import islice
from typing import Final, Protocol, cast

from workflows.shared.contracts import Problem
from workflows.shared.fields import ColumnKind, FieldSpec, normalise

Cell = str | int | float | bool | date | datetime | None
"""A cell as a reader returns it; dates and times are naive, as they stand in the file."""


MEMORY_SHEET: Final = "docflow"
"""Hidden sheet of a report that keeps what was settled about its columns."""
LEFT_OUT_SHEET: Final = "left out"
"""Sheet of a report that lists the rows that are no data."""


class Uncalculated(str):
    """A formula without a result: text as it stands in the file, not a value of its cell."""

    __slots__ = ()


class Length(str):
    """A length of time as a spreadsheet shows it, in the format `[h]:mm`: `26:30:00`."""

    __slots__ = ()


class Signed(float):
    """A number that a spreadsheet shows with a percent sign or a currency.

    Attributes:
        sign: `%`, or the currency in capitals: `CHF`, `$`.
    """

    __slots__ = ("sign",)

    def __new__(cls, value: float, sign: str) -> "Signed":
        """Keep a number and its sign."""
        made = super().__new__(cls, value)
        made.sign = sign
        return made

    sign: str

    @property
    def number(self) -> int | float:
        """The number that is shown: 5 of `5 %`."""
        value = shown_number(100 * self) if self.sign == PERCENT_SIGN else float(self)
        return int(value) if value.is_integer() else value

    @property
    def text(self) -> str:
        """What is shown, for whoever reads it as a text."""
        number = number_text(self.number)
        # Three places would look like thousands where commas are decimal marks.
        whole, mark, places = number.partition(".")
        if mark and len(places) == 3:
            number = f"{whole}.{places}0"
        return f"{number}%" if self.sign == PERCENT_SIGN else f"{number} {self.sign}"


PERCENT_SIGN: Final = "%"


@dataclass(frozen=True, slots=True)
class SheetInfo:
    """One worksheet of a workbook."""

    name: str
    hidden: bool = False


@dataclass(frozen=True, slots=True)
class Merge:
    """Cells that a worksheet shows as one; only the first holds a value.

    Attributes:
        first_line: Line number, from 1.
        last_line: The same as the first where only columns are merged.
        first_column: From 0.
        last_column: Included.
    """

    first_line: int
    last_line: int
    first_column: int
    last_column: int


@dataclass(frozen=True, slots=True)
class RejectedRow:
    """A row that did not go in."""

    line: int
    cells: Sequence[Cell]
    """As read."""
    problems: Sequence[Problem]


SkippedTable = tuple[Sequence[str], Sequence[RejectedRow]]
"""Titles of a table, and its rows that are no data."""


def is_filled(cell: Cell) -> bool:
    """Whether a cell holds anything but blanks."""
    return bool(cell.strip()) if isinstance(cell, str) else cell is not None


def kept_cells(titles: Mapping[int, str], cells: Sequence[Cell]) -> str | None:
    """Write the cells of a row that mean no field as JSON, by header; None: all are blank.

    If two columns have one header, the letters of the second name it too.

    Args:
        titles: Place of each such column to its header.
        cells: The row.
    """
    found: dict[str, str] = {}
    taken: set[str] = set()
    for place, title in titles.items():
        # Whatever this row holds: a column has one name in all rows.
        while title in taken:
            title = f"{title} ({column_letters(place)})"
        taken.add(title)
        if place < len(cells) and is_filled(cells[place]):
            found[title] = readable(cells[place], CELL_CHARACTERS)
    return json.dumps(found, ensure_ascii=False) if found else None


def count_filled(cells: Iterable[Cell]) -> int:
    """Return how many cells hold anything but blanks."""
    return sum(map(is_filled, cells))


_SHOWN: Final = 200
_BEYOND: Final = (
    "stands behind the last column of the header: put a value that holds the delimiter into quotes"
)


def beyond_header(line: int, cells: Sequence[Cell], width: int) -> Problem | None:
    """Say what is wrong with a record of more fields than its header; None: it has no more.

    Such a record was cut in the wrong places.

    Args:
        line: Its line number.
        cells: The record.
        width: Fields of the header of a text table; 0: a sheet has no such limit.
    """
    if not 0 < width < len(cells):
        return None
    place = next((i for i in range(width, len(cells)) if is_filled(cells[i])), None)
    if place is None:
        return None
    value = readable(cells[place], _SHOWN)
    return Problem(line=line, column=f"column {column_letters(place)}", value=value, reason=_BEYOND)


CELL_CHARACTERS: Final = 32_767
"""What a cell of a spreadsheet can hold."""

FORBIDDEN: Final = re.compile(r"[\x00-\x08\x0b\x0c\x0e-\x1f\x7f-\x9f\ud800-\udfff\ufffe\uffff]")
"""No database text and no spreadsheet holds these; tabs and line breaks are not among them."""
_DIGITS_BEFORE_EXPONENT: Final = 15
_LARGEST_INTEGER: Final = 10**40


def shown_number(value: float) -> float:
    """A float with the 15 digits that spreadsheet programs show: 2.3, not 2.3000000000000003."""
    shown = float(f"{value:.15g}")
    return shown if math.isfinite(shown) else value


def number_text(value: int | float) -> str:
    """A number cell as its user sees it: 1200.0 is `1200`; at most 40 digits."""
    if isinstance(value, int):
        return str(value) if abs(value) < _LARGEST_INTEGER else "a number of over 40 digits"
    if value.is_integer() and abs(value) < 10**_DIGITS_BEFORE_EXPONENT:
        return str(int(value))
    return repr(value)


def cell_text(cell: Cell) -> str:
    """A cell as text, nothing left out."""
    match cell:
        case None:
            return ""
        case str():
            return cell
        case bool():
            return "TRUE" if cell else "FALSE"
        case int() | float():
            return number_text(cell)
        case datetime():
            return cell.isoformat(" ")
        case date():
            return cell.isoformat()


def readable(cell: Cell, characters: int) -> str:
    """A cell in one line of at most so many characters, safe to store and to show."""
    if type(cell) is str and len(cell) <= characters and cell.isprintable():
        # What can be shown is safe to store as well.
        return " ".join(cell.split())
    words = FORBIDDEN.sub("\ufffd", cell_text(cell)[: 4 * characters]).split()
    line = " ".join(words)
    return line if len(line) <= characters else line[: characters - 1] + "\u2026"


def storable(cells: Sequence[Cell]) -> list[Cell]:
    """A row as read, except for what no database and no spreadsheet can hold.

    Forbidden characters are replaced by U+FFFD, texts cut to `CELL_CHARACTERS`, and numbers that
    are not finite, beyond 40 digits, or shown with a sign, become text.
    """
    return [_storable(cell) for cell in cells]


def _storable(cell: Cell) -> Cell:
    match cell:
        case Signed():
            return cell.text
        case str():
            return cell if cell.isprintable() and len(cell) <= CELL_CHARACTERS else _mended(cell)
        case float() if not math.isfinite(cell):
            return repr(cell)
        case int() if abs(cell) >= _LARGEST_INTEGER:
            return number_text(cell)
        case _:
            return cell


def _mended(text: str) -> str:
    return FORBIDDEN.sub("\ufffd", text[:CELL_CHARACTERS])


def column_letters(position: int) -> str:
    """What a spreadsheet calls a column: A for 0, AA for 26."""
    letters = ""
    position += 1
    while position:
        position, rest = divmod(position - 1, 26)
        letters = chr(ord("A") + rest) + letters
    return letters


BLANKS: Final = frozenset(
    (
        *("-", "--", "---", "\u2013", "\u2014", "\u2212", ".", "\u2026", "/", "\\"),
        *("?", "??", "???", "*", "_"),
        *("n/a", "na", "n.a.", "n. a.", "n.v.", "n.v.t.", "k.a.", "k. a.", "k/a"),
        *("nil", "none", "(none)", "null", "(null)", "<null>", "\\n", "(blank)", "(leer)"),
        *("not available", "not applicable", "not known", "not given", "unknown", "undefined"),
        *("keine angabe", "ohne angabe", "unbekannt", "nicht bekannt"),
        *("nicht angegeben", "nicht vorhanden", "inconnu", "sans objet", "sconosciuto"),
        *("desconocido", "onbekend"),
    )
)
"""In lower case."""
_LONGEST: Final = max(map(len, BLANKS))


def is_own_blank(cell: Cell, field: FieldSpec) -> bool:
    """Return whether a cell holds a text that its field lists as a blank."""
    return bool(field.blanks) and cell_text(cell).strip().lower() in field.blank_texts


def is_blank(cell: Cell, field: FieldSpec | None = None) -> bool:
    """Return whether a cell holds a text that means "no value".

    Args:
        cell: The cell.
        field: Field of its column; None: that is not known.
    """
    return is_common_blank(cell, field) or (field is not None and is_own_blank(cell, field))


def is_common_blank(cell: Cell, field: FieldSpec | None = None) -> bool:
    """Return whether a cell holds one of the texts that mean "no value" in every table.

    Args:
        cell: The cell.
        field: Field of its column. A name or a free text is never blank, nor is a text that the
            field knows as one of its values, as `NA` is Namibia; None: that is not known.
    """
    if not isinstance(cell, str) or len(cell) > 2 * _LONGEST or cell.strip().lower() not in BLANKS:
        return False
    if field is None:
        return True
    return field.kind is not ColumnKind.TEXT and normalise(cell) not in field.choice_of


TITLE_CHARACTERS: Final = 80
"""Of a title, as far as it is looked at."""
_TITLE_COLUMNS: Final = 3
"""Columns that may hold the titles of a table on its side."""
_TITLES: Final = 2


def titles_in_columns(
    rows: Sequence[Sequence[Cell]], field_of: Callable[[str], str | None], fields: int = 0
) -> Iterator[tuple[int, Mapping[str, str]]]:
    """Yield each column that most titles of a table stand in, beside values, and what they mean.

    Args:
        rows: Cells of the first rows of a sheet.
        field_of: The field that a title names.
        fields: How many fields the best header row names.
    """
    for place in range(_TITLE_COLUMNS):
        held = [cells for cells in rows if place < len(cells) and is_filled(cells[place])]
        titles = (readable(cells[place], TITLE_CHARACTERS) for cells in held)
        known = {title: name for title in titles if (name := field_of(title)) is not None}
        beside = sum(any(map(is_filled, cells[place + 1 :])) for cells in held)
        enough = len(set(known.values())) >= max(_TITLES, fields + 1)
        if enough and 2 * min(len(known), beside) > len(held):
            yield place, known


Begins = Mapping[int, Sequence[Merge]]
"""Line to the merged cells that begin in it."""
Rows = Iterable[tuple[int, list[Cell]]]
"""Line number and cells of each row, in order."""


def merged_down(merges: Iterable[Merge], header_line: int) -> Begins:
    """The cells that are merged down to rows below a header."""
    found: dict[int, list[Merge]] = {}
    for merge in merges:
        if merge.last_line > merge.first_line and merge.last_line > header_line:
            found.setdefault(merge.first_line, []).append(merge)
    return found


def filled_down(
    rows: Rows, begins: Begins, fills: Callable[[int, Cell], bool]
) -> Iterator[tuple[int, list[Cell]]]:
    """Rows with the values of cells that are merged down to them.

    Args:
        rows: The rows below a header.
        begins: Of `merged_down`.
        fills: Whether a value counts for all rows of its cell, by place and value. A number does
            not: a fee of three rows is not the fee of each.
    """
    first_lines = sorted(begins, reverse=True)
    under_way: list[tuple[Merge, Cell]] = []
    for line, cells in rows:
        while first_lines and first_lines[-1] <= line:
            for merge in begins[first_lines.pop()]:
                place = merge.first_column
                if merge.first_line == line and place < len(cells) and is_filled(cells[place]):
                    under_way.append((merge, cells[place]))
        under_way = [each for each in under_way if each[0].last_line >= line]
        for merge, value in under_way:
            place = merge.first_column
            held = cells[place] if place < len(cells) else None
            if not is_filled(held) and fills(place, value):
                cells.extend([None] * (place + 1 - len(cells)))
                cells[place] = value
        yield line, cells


_SIGNS: Final = re.compile("[\u00c2-\u00c5\u00d0\u00d1\u00d8\u00d9\u00e2][^a-zA-Z \\t\\n]")

_KEPT: Final = 1_000
"""Texts of which it is said what was meant."""


def may_be_garbled(text: str) -> bool:
    """Whether a text, or one of many in it, may be such a one; quick where none is."""
    return not text.isascii() and _SIGNS.search(text) is not None


def repair_garbled(text: str) -> str | None:
    """A garbled text as it was meant; None: it is not garbled.

    Correct text in one of these encodings is valid UTF-8 only by rare chance.
    """
    if not may_be_garbled(text):
        return None
    for encoding in ("cp1252", "latin-1"):
        try:
            return text.encode(encoding).decode("utf-8")
        except UnicodeError:
            continue
    return None


class GarbledTexts:
    """Collects garbled texts of a table.

    Attributes:
        found: Each of them once, and what was meant; as many as are kept.
    """

    def __init__(self) -> None:
        self.found: dict[str, str] = {}

    def add(self, cells: Sequence[Cell]) -> None:
        """Look at the next cells of a column."""
        try:
            joined = "\n".join(cast("Sequence[str]", cells))
        except TypeError:  # a cell that is not text
            joined = "\n".join(cell for cell in cells if isinstance(cell, str))
        if not may_be_garbled(joined):
            return
        for text in dict.fromkeys(cell for cell in cells if isinstance(cell, str)):
            if len(self.found) < _KEPT and (said := repair_garbled(text)) is not None:
                self.found[text] = said


GUARD: Final = "'"
MARKS: Final = (GUARD, '="')
"""How a cell begins that is not shown as it stands: guarded, or a formula that yields its text."""
_STARTS: Final = ("=", "+", "-", "@", "\uff1d", "\uff0b", "\uff0d", "\uff20")
"""The last four are the first four in full width, as East Asian programs take them."""
_CONTROLS: Final = ("\t", "\r", "\n")
_SKIPPED: Final = f"{GUARD} \t\r\n\v\f\xa0\u3000\ufeff"
"""What programs take off the beginning of a cell before they look at it."""


def escape_formula(text: str) -> str:
    """Text that begins like a formula, or as if it were guarded, with an apostrophe in front."""
    return f"{GUARD}{text}" if _is_formula(text) else text


def unescape_formula(text: str) -> str:
    """The text that was guarded."""
    is_guarded = text.startswith(GUARD) and _is_formula(text)
    return text[len(GUARD) :] if is_guarded else text


def _is_formula(text: str) -> bool:
    """Whether it is one, with or without guards; another guard changes nothing."""
    return text.lstrip(GUARD).startswith(_CONTROLS) or text.lstrip(_SKIPPED).startswith(_STARTS)


RANGES_NAMED: Final = 6


def listed_lines(lines: Iterable[int]) -> str:
    """Rising line numbers as a person reads them: `5-9, 14, ...`."""
    named = [_named(first, last) for first, last in islice(_runs(lines), RANGES_NAMED + 1)]
    return ", ".join(named[:RANGES_NAMED] + ["..."] * (len(named) > RANGES_NAMED))


LINES_NAMED: Final = 10


def first_lines(lines: Sequence[int]) -> str:
    """The first of some lines, and how many more there are: `line 5`, `lines 5, 7 and 12 more`."""
    named, more = ", ".join(map(str, lines[:LINES_NAMED])), len(lines) - LINES_NAMED
    return f"line{'' if len(lines) == 1 else 's'} {named}" + (f" and {more:,} more" * (more > 0))


def _runs(lines: Iterable[int]) -> Iterator[tuple[int, int]]:
    first = last = -1
    for line in lines:
        if line != last + 1:
            if last > 0:
                yield first, last
            first = line
        last = line
    if last > 0:
        yield first, last


def _named(first: int, last: int) -> str:
    return str(first) if first == last else f"{first}-{last}"


def same_as(row: str, line: int | str) -> str:
    """Say that a row has the key of an earlier one.

    Args:
        row: What a person calls the key of a row.
        line: Line of the earlier row.
    """
    return f"same {row} as line {line}"


class KeyOccurrences(Protocol):
    """Counts the occurrences of keys in the order of a file."""

    def add(self, keys: Sequence[str], lines: Sequence[int]) -> list[tuple[int, int]]:
        """Take the next keys of the file.

        Args:
            keys: Keys in the order of the file; no lone surrogates.
            lines: Line of each, rising within and across calls.

        Returns:
            For each key which occurrence it is, from 1, and the line of the first.
        """
        ...

    def close(self) -> None:
        """Release what the keys occupy; a second call does nothing."""
        ...
