"""What of a document did not become rows, in words: nothing is left out in silence."""

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import groupby
from types import MappingProxyType
from typing import Final

from contracts.imports import Problem
from domain.imports.letter_case import LetterCases
from domain.imports.lines import Left
from domain.imports.survey import UnusedColumn
from domain.tabular.line_ranges import listed_lines
from domain.tabular.rows import Cell, RejectedRow, SkippedTable, is_filled
from domain.tabular.values import readable

VALUE_CHARACTERS: Final = 200
SKIPPED_ROWS: Final = 10_000
"""Rows that are kept with their cells; all are counted."""
_LINES_NAMED: Final = 6
_NAMED: Final = (60, 40, 30, 20, 14, 10, 7, 5, 3, 1)
"""How many names of a kind are listed: as many as there is room for."""
_LONGEST_NAME: Final = 90
_ONE: Final = MappingProxyType(
    {
        Left.TOTAL: "total",
        Left.FOOTER: "page footer",
        Left.HEADER: "repeated header",
        Left.HEADING: "heading or remark without a key",
    }
)


@dataclass(frozen=True, slots=True)
class HiddenParts:
    """What was read of a table although the user's program does not show it.

    Attributes:
        sheet: Its sheet; None: it is the only one that was read.
        rows: Line numbers of rows below the header, rising.
        columns: Titles of columns in use.
    """

    sheet: str | None = None
    rows: Sequence[int] = ()
    columns: Sequence[str] = ()


@dataclass
class Findings:
    """Collects what is found on the way through a document.

    Attributes:
        sheets_read: Sheets whose rows were read, where there are several or one was chosen.
        sheets_left: Sheets that hold something and were not read, each with why.
        unused: Columns that hold data and are not used.
        hidden: What was read of each table and is not shown.
        skipped: Rows that were left out, the first 10,000 of them, with cells and reason.
        left: Lines of the first rows that were left out, by reason.
        counts: All rows that were left out, by reason.
        odd: Lines, with the key, of rows with a doubtful key: a totals word or a footer.
        lone: Lines of rows that hold nothing but their key.
        judged: Rows that were looked at.
        unused_rows: Rows that hold something in columns only that are not used.
        filled_down: Cells filled from the merged cell above, by title.
        repeated: Rows that stand on several sheets with the same values, counted once.
        garbled: Texts that were saved in a wrong encoding, and what was meant.
        parts: Title of each column with years or months without a day, and some of them.
        cases: Codes that differ in the case of letters only.
        left_keys: What stands in the place of the key in rows that were left out.
        kept_lines: Lines of rows that a person keeps, as the message has them.
        titles: Titles of the columns by sheet.
    """

    sheets_read: Sequence[str] = ()
    sheets_left: Sequence[str] = ()
    unused: Sequence[UnusedColumn] = ()
    hidden: Sequence[HiddenParts] = ()
    skipped: list[RejectedRow] = field(default_factory=list[RejectedRow])
    left: dict[Left, list[str]] = field(default_factory=dict[Left, list[str]])
    counts: Counter[Left] = field(default_factory=Counter[Left])
    odd: list[str] = field(default_factory=list[str])
    lone: list[str] = field(default_factory=list[str])
    judged: int = 0
    unused_rows: int = 0
    filled_down: Counter[str] = field(default_factory=Counter[str])
    repeated: int = 0
    garbled: Mapping[str, str] = field(default_factory=dict[str, str])
    parts: Mapping[str, Sequence[str]] = field(default_factory=dict[str, Sequence[str]])
    cases: LetterCases = field(default_factory=LetterCases)
    left_keys: set[str] = field(default_factory=set[str])
    kept_lines: set[str] = field(default_factory=set[str])
    titles: Mapping[str | None, Sequence[str]] = field(
        default_factory=dict[str | None, Sequence[str]]
    )

    def leave_out(
        self, why: Left, sheet: str | None, line: int, cells: Sequence[Cell], key: object
    ) -> None:
        """Keep a row that is left out.

        Args:
            why: The reason.
            sheet: Its sheet; None: the document has only one table.
            line: Line number in it, from 1.
            cells: As read.
            key: What stands in the place of its key, which may be one.
        """
        self.counts[why] += 1
        if isinstance(key, str):
            self.left_keys.add(key)
        if len(self.skipped) < SKIPPED_ROWS:
            values = [readable(cell, VALUE_CHARACTERS) for cell in cells if is_filled(cell)]
            shown = " | ".join(values)[:VALUE_CHARACTERS]
            reason = f"left out: {_ONE[why]}"
            problem = Problem(line=line, sheet=sheet, value=shown, reason=reason)
            kept = [_shortened(cell) for cell in cells]
            self.skipped.append(RejectedRow(line, kept, [problem]))
        lines = self.left.setdefault(why, [])
        if len(lines) < _LINES_NAMED:
            lines.append(place_of(sheet, line))

    def skipped_tables(self) -> Sequence[SkippedTable]:
        """Return the titles of each sheet, and its rows that were left out."""
        by_sheet = groupby(self.skipped, key=lambda row: row.problems[0].sheet)
        return [(self.titles.get(sheet, ()), list(rows)) for sheet, rows in by_sheet]

    def sentences(self, room: int) -> Sequence[str]:
        """Everything that a person has to know, most important first.

        Args:
            room: Characters that they may have; where names do not fit, their number is said.
        """
        every = (list(self._sentences(most)) for most in _NAMED)
        fitting = (found for found in every if len(" ".join(found)) <= room)
        return next(fitting, None) or list(self._sentences(_NAMED[-1]))

    def _sentences(self, most: int) -> Iterable[str]:
        if len(self.sheets_read) > 1:
            yield f"Sheets read: {_listed(map(repr, self.sheets_read), most)}."
        if self.sheets_left:
            yield f"Sheets not read: {_listed(self.sheets_left, most)}."
        yield from self._hidden(most)
        for why, count in self.counts.items():
            what = f"1 {_ONE[why]} was" if count == 1 else f"{count:,} {why.value} were"
            yield f"{what} left out ({_lines(self.left[why], count)})."
        if self.odd:
            what = _taken(len(self.odd), "a doubtful key")
            yield f"{what} ({_lines(self.odd, len(self.odd))})."
        if self.lone and 2 * len(self.lone) < self.judged:
            what = _taken(len(self.lone), "nothing but a key")
            yield f"{what} ({_lines(self.lone, len(self.lone))})."
        for title, parts in self.parts.items():
            texts = _listed(map(repr, parts), most)
            yield f"{title!r} has dates without a day, read as the first or last one: {texts}."
        if self.garbled:
            texts = [f"{text!r} (meant: {said!r})" for text, said in self.garbled.items()]
            yield f"Saved in a wrong encoding and taken as they stand: {_listed(texts, most)}."
        if self.cases.pairs:
            pairs = [f"{first!r} and {other!r}" for first, other in self.cases.pairs]
            listed = _listed(pairs, most)
            yield f"Codes that differ in capital letters only count as different: {listed}."
        if self.repeated:
            yield f"{_rows(self.repeated)} on several sheets with the same values, counted once."
        if self.unused_rows:
            yield f"{_rows(self.unused_rows)} in columns only that are not used."
        if self.filled_down:
            named = [f"{title!r} ({count:,})" for title, count in self.filled_down.items()]
            yield f"Merged cells were filled down, with the number of rows: {_listed(named, most)}."
        if self.unused:
            yield f"Columns not used: {_listed(map(_column, self.unused), most)}."

    def _hidden(self, most: int) -> Iterable[str]:
        for each in self.hidden:
            count = len(each.rows)
            if count:
                what = "1 hidden row was" if count == 1 else f"{count:,} hidden rows were"
                lines = f"line{'' if count == 1 else 's'} {listed_lines(each.rows)}"
                yield f"{what} read too ({lines}{_of(each.sheet)})."
            if each.columns:
                titles = _listed(map(repr, each.columns), most)
                yield f"Hidden columns{_of(each.sheet)} were read too: {titles}."


def _shortened(cell: Cell) -> Cell:
    return readable(cell, VALUE_CHARACTERS) if isinstance(cell, str) else cell


def place_of(sheet: str | None, line: int) -> str:
    """Return a line as a person finds it."""
    return str(line) if sheet is None else f"{line} of {sheet!r}"


def _lines(places: Sequence[str], count: int) -> str:
    more = ", ..." if count > _LINES_NAMED else ""
    return f"line{'' if count == 1 else 's'} {', '.join(places[:_LINES_NAMED])}{more}"


def _taken(count: int, what: str) -> str:
    return (
        f"1 row with {what} was taken" if count == 1 else f"{count:,} rows with {what} were taken"
    )


def _of(sheet: str | None) -> str:
    return f" of {sheet!r}" if sheet else ""


def _column(column: UnusedColumn) -> str:
    values = "1 value" if column.values == 1 else f"{column.values:,} values"
    also = f", fits {column.field} too" if column.field else ""
    return f"{column.name} ({values}{also})"


def _rows(count: int) -> str:
    return "1 row stands" if count == 1 else f"{count:,} rows stand"


def _listed(names: Iterable[str], most: int) -> str:
    every = [name if len(name) <= _LONGEST_NAME else f"{name[:_LONGEST_NAME]}..." for name in names]
    more = len(every) - most
    return ", ".join(every[:most]) + (f" and {more} more" if more > 0 else "")
