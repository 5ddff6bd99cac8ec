"""What of a document did not become rows, in words: nothing is left out in silence."""

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from types import MappingProxyType
from typing import Final

from domain.imports.letter_case import LetterCases
from domain.imports.lines import Left
from domain.imports.survey import UnusedColumn
from domain.tabular.line_ranges import listed_lines

_LINES_NAMED: Final = 6
_NAMED: Final = (60, 40, 30, 20, 14, 10, 7, 5, 3, 1)
"""How many names of a kind are listed: as many as there is room for."""
_LONGEST_NAME: Final = 90
_ONE: Final = MappingProxyType(
    {
        Left.TOTAL: "total",
        Left.FOOTER: "page footer",
        Left.HEADER: "repeated header",
        Left.HEADING: "heading of a section",
        Left.REMARK: "heading or remark",
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
        left: Rows that were left out, by reason: lines as a person finds them.
        unused_rows: Rows that hold something in columns only that are not used.
        filled_down: Cells filled from the merged cell above, by title.
        repeated: Rows that stand on several sheets with the same values, counted once.
        garbled: Texts that were saved in a wrong encoding, and what was meant.
        cases: Codes that differ in the case of letters only.
        left_keys: What stands in the place of the key in rows that were left out.
    """

    sheets_read: Sequence[str] = ()
    sheets_left: Sequence[str] = ()
    unused: Sequence[UnusedColumn] = ()
    hidden: Sequence[HiddenParts] = ()
    left: dict[Left, list[str]] = field(default_factory=dict[Left, list[str]])
    counts: Counter[Left] = field(default_factory=Counter[Left])
    unused_rows: int = 0
    filled_down: Counter[str] = field(default_factory=Counter[str])
    repeated: int = 0
    garbled: Mapping[str, str] = field(default_factory=dict[str, str])
    cases: LetterCases = field(default_factory=LetterCases)
    left_keys: set[str] = field(default_factory=set[str])

    def leave_out(self, why: Left, place: str, key: object) -> None:
        """Count a row that is left out; what stands in the place of its key may be one."""
        self.counts[why] += 1
        if isinstance(key, str):
            self.left_keys.add(key)
        lines = self.left.setdefault(why, [])
        if len(lines) < _LINES_NAMED:
            lines.append(place)

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
            lines = ", ".join(self.left[why])
            more = ", ..." if count > len(self.left[why]) else ""
            what = f"1 {_ONE[why]} was" if count == 1 else f"{count:,} {why.value} were"
            yield f"{what} left out (line{'' if count == 1 else 's'} {lines}{more})."
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
