"""Validates rows of a spreadsheet: which are written, which wait, which are rejected and why."""

from collections import defaultdict
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from itertools import compress
from typing import Any, Final, NamedTuple

from contracts.problems import Problem
from contracts.spreadsheets import ColumnMapping, MappingStatus
from domain.spreadsheets.conversion import convert, notations_of
from domain.spreadsheets.entities import ImportContext
from domain.spreadsheets.fields import SheetField
from domain.spreadsheets.records import FoundValue, ParkedRow, TargetRows
from domain.spreadsheets.types.base import SheetRows, SheetType
from domain.spreadsheets.value_book import IGNORED, OPEN, TO_CREATE, ValueBook
from domain.tabular.conversion import Flaw, transpose
from domain.tabular.occurrences import KeyOccurrences
from domain.tabular.rows import Cell
from domain.tabular.values import readable

VALUE_CHARACTERS: Final = 200
REASON_CHARACTERS: Final = 500
NOTHING_MAPPED: Final = "holds nothing in the mapped columns"

_MISSING: Final = Flaw("is missing")
_LEFT_OUT: Final = Flaw("is required, but its value is ignored; choose one or correct the cell")


class SourceRow(NamedTuple):
    """A row of the staged file."""

    line: int
    """As the user's program shows it, from 1."""
    offset: int
    """Byte of the staged file where the row begins."""
    cells: Sequence[Cell]


@dataclass(frozen=True, slots=True)
class ValidatedRows:
    """Some rows of a spreadsheet; the fields are those of a chunk."""

    lines: Sequence[int]
    main: str
    targets: Sequence[TargetRows]
    errors: Sequence[tuple[int, Sequence[Problem]]]
    skipped: Sequence[tuple[int, str]]
    parked: Sequence[ParkedRow]
    found: Sequence[FoundValue]


class _Checked:
    """Rows as far as they are judged."""

    def __init__(self, source: Sequence[SourceRow]) -> None:
        self.source = source
        self.values: dict[str, Sequence[Any]] = {}
        self.problems: dict[int, list[Problem]] = defaultdict(list)
        self.blank: set[int] = set()
        self.waiting: set[int] = set()
        """Rows with a value without a known meaning."""
        self.unclear: set[tuple[int, str]] = set()
        """Cells that a row rule cannot judge."""

    @property
    def rows(self) -> SheetRows:
        """All of them, whatever is wrong with them."""
        return SheetRows(len(self.source), self.values)

    def without(self, *left_out: Collection[int]) -> tuple[SheetRows, list[int]]:
        """Some of the rows, and their places."""
        places = range(len(self.source))
        if not any(left_out):
            return self.rows, list(places)
        kept = [not any(i in some for some in left_out) for i in places]
        return self.rows.only(kept), list(compress(places, kept))


class RowValidator:
    """Converts and checks the rows of one spreadsheet, part by part, in order.

    A row counts as an occurrence of its natural key when it is written or waits for a value; one
    with an error does not, so that a right row further down still goes in.

    Args:
        sheet_type: What the rows are.
        fields: Every field, as `SheetType.fields_for` gives them.
        columns: What each column means.
        context: Of the import: what its rows belong to.
        book: The meaning of values.
        seen: Keys of the file so far; None: they were looked at in an earlier round.
        head: The first rows of the file, which settle how numbers and dates are written.
    """

    def __init__(
        self,
        sheet_type: SheetType,
        fields: Sequence[SheetField],
        columns: Sequence[ColumnMapping],
        context: ImportContext,
        book: ValueBook,
        seen: KeyOccurrences | None,
        head: Sequence[SourceRow],
    ) -> None:
        by_name = {each.name: each for each in fields}
        mapped = [
            column
            for column in columns
            if column.target in by_name and column.status is not MappingStatus.IGNORED
        ]
        self._type = sheet_type
        self._fields = fields
        self._mapped = {column.index: by_name[str(column.target)] for column in mapped}
        self._headers = {str(column.target): column.header for column in mapped}
        self._titles = {each.name: each.title for each in fields}
        self._context = context
        self._book = book
        self._seen = seen
        self._width = max(self._mapped, default=-1) + 1
        self._notations = notations_of(self._mapped, [row.cells for row in head])

    def validate(self, rows: Sequence[SourceRow]) -> ValidatedRows:
        """Take the next rows."""
        judged = self._judge(rows, counted=False)
        problems, blank = judged.problems, judged.blank
        waiting = judged.waiting - problems.keys() - blank
        good, places = judged.without(problems, blank, waiting)
        return ValidatedRows(
            lines=[rows[i].line for i in places],
            main=self._type.main,
            targets=self._type.rows_of_targets(self._fields, good, self._context),
            errors=[(rows[i].line, problems[i]) for i in sorted(problems)],
            skipped=[(rows[i].line, NOTHING_MAPPED) for i in sorted(blank)],
            parked=[ParkedRow(rows[i].line, rows[i].offset) for i in sorted(waiting)],
            found=self._book.take_found(),
        )

    def pass_over(self, rows: Sequence[SourceRow]) -> None:
        """Learn the natural keys of rows that were taken before a restart, and nothing else."""
        self._judge(rows, counted=True)

    def _judge(self, rows: Sequence[SourceRow], *, counted: bool) -> _Checked:
        source = transpose([row.cells for row in rows], self._width)
        cells = {each.name: source[index] for index, each in self._mapped.items()}
        checked = _Checked(rows)
        for each in self._mapped.values():
            column = cells[each.name]
            if each.resolver is None:
                values, flawed = convert(each, column, self._notations[each.name])
            else:
                values, flawed = self._refer(each, column, checked, counted)
            if flawed:
                self._note_flaws(each, values, column, checked)
            checked.values[each.name] = values
        self._apply_rule(cells, checked)
        self._set_blank_aside(cells, checked)
        self._note_duplicates(checked)
        return checked

    def _refer(
        self, field: SheetField, cells: Sequence[Cell], checked: _Checked, counted: bool
    ) -> tuple[list[Any], bool]:
        """Ids of the rows that cells refer to, None for those without, or a `Flaw`."""
        values: list[Any] = [*self._book.meanings(field.name, cells, counted=counted)]
        if set(map(type, values)) == {int}:
            return values, False
        for i, meaning in enumerate(values):
            if meaning is None:
                values[i] = _MISSING if field.required else None
            elif meaning is IGNORED:
                values[i] = _LEFT_OUT if field.required else None
            elif meaning is OPEN or meaning is TO_CREATE:
                values[i] = None
                checked.unclear.add((i, field.name))
                if meaning is OPEN:
                    checked.waiting.add(i)
        return values, field.required

    def _note_flaws(
        self, field: SheetField, values: list[Any], cells: Sequence[Cell], checked: _Checked
    ) -> None:
        for i, value in enumerate(values):
            if isinstance(value, Flaw):
                values[i] = None
                checked.unclear.add((i, field.name))
                checked.problems[i].append(
                    self._problem(checked.source[i].line, field.name, cells[i], value.reason)
                )

    def _apply_rule(self, cells: Mapping[str, Sequence[Cell]], checked: _Checked) -> None:
        for fault in self._type.check(checked.rows, self._context):
            i, name = fault.row, fault.field
            if (i, name) not in checked.unclear:
                cell = cells[name][i] if name in cells else None
                problem = self._problem(checked.source[i].line, name, cell, fault.reason)
                checked.problems[i].append(problem)

    def _set_blank_aside(self, cells: Mapping[str, Sequence[Cell]], checked: _Checked) -> None:
        """A row that holds something in other columns only is no error."""
        demanding = any(each.required for each in self._mapped.values())
        for i in list(checked.problems) if demanding else range(len(checked.source)):
            if not any(_filled(column[i]) for column in cells.values()):
                checked.blank.add(i)
                checked.problems.pop(i, None)

    def _note_duplicates(self, checked: _Checked) -> None:
        if self._seen is None:
            return
        counting, places = checked.without(checked.problems, checked.blank)
        lines = [checked.source[i].line for i in places]
        occurrences = self._seen.add(self._type.keys(counting), lines)
        for i, line, (number, first) in zip(places, lines, occurrences, strict=True):
            if number > 1:
                checked.problems[i].append(Problem(line=line, reason=f"duplicate of row {first}"))

    def _problem(self, line: int, name: str, cell: Cell, reason: str) -> Problem:
        return Problem(
            line=line,
            column=self._headers.get(name) or self._titles[name],
            value=readable(cell, VALUE_CHARACTERS) or None,
            reason=reason[:REASON_CHARACTERS],
        )


def _filled(cell: Cell) -> bool:
    return bool(cell.strip()) if isinstance(cell, str) else cell is not None
