"""Validates the rows of a table: which are written, which are rejected and why."""

from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import compress, repeat
from typing import Any, Final

from contracts.imports import Problem
from domain.imports.header import TableHeader
from domain.imports.tables import SEQUENCE, TableSpec
from domain.tabular.conversion import Flaw, convert_column, settle_notations, transpose
from domain.tabular.fields import ColumnKind, FieldSpec
from domain.tabular.occurrences import KeyOccurrences
from domain.tabular.rows import Cell, RejectedRow
from domain.tabular.values import readable, storable

VALUE_CHARACTERS: Final = 200
_KEY_SEPARATOR: Final = "\x1f"
"""Codes hold no control characters, so joined keys are equal only when their parts are."""

Rows = Sequence[tuple[int, list[Cell]]]
"""Line number and cells of each row."""


@dataclass(frozen=True, slots=True)
class ValidatedRows:
    """Some rows of a table."""

    rows: list[tuple[Any, ...]]
    """Those that go in."""
    lines: list[int]
    cells: list[list[Cell]]
    """As read, when they are asked for."""
    rejected: list[RejectedRow]


class RowValidator:
    """Converts and checks the rows of one table of a file, part by part, in order.

    Every row whose key can be read counts as an occurrence of its key, whether it goes in or
    not: of two rows with the same key neither is chosen because the other has a fault, and the
    number of a line of a numbered table does not hang on the lines above it being right.

    Attributes:
        columns: Columns of the rows that come out.
        titles: Header of the report of rejected rows: the file's own and, where lines are
            numbered, their number, so that corrected lines find their place when the report is
            sent again.

    Args:
        spec: The table.
        scope: Values of the scope columns.
        header: The header row of the file.
        head: The first rows below it, which settle how numbers and dates are written.
        seen: Keys of the file so far.
        keep_cells: Hand out the cells of rows that go in as well.
    """

    def __init__(
        self,
        spec: TableSpec,
        scope: Mapping[str, str],
        header: TableHeader,
        head: Rows,
        seen: KeyOccurrences,
        *,
        keep_cells: bool = False,
    ) -> None:
        self._spec = spec
        self._header = header
        self._seen = seen
        self._keep_cells = keep_cells
        self._scope = [scope[name] for name in spec.scope]
        self._fields = [field for field in spec.fields if field.name in header.positions]
        self._width = max(header.positions.values()) + 1
        # The file has a key field that it lacks a column for: `size` of a take-off, say.
        present = {field.name for field in self._fields}
        self._absent = [
            spec.by_name[name] for name in spec.key if name not in present and name != SEQUENCE
        ]
        self._numbers = spec.numbered and SEQUENCE not in present
        self._counted = [name for name in spec.key if not (self._numbers and name == SEQUENCE)]
        self.columns = (
            *spec.scope,
            *(field.name for field in (*self._fields, *self._absent)),
            *((SEQUENCE,) if self._numbers else ()),
        )
        self.titles = header.titles + ((SEQUENCE,) if self._numbers else ())
        self._notations = settle_notations(self._by_field([cells for _, cells in head]))

    def _by_field(
        self, rows: Sequence[Sequence[Cell]]
    ) -> dict[str, tuple[FieldSpec, Sequence[Cell]]]:
        columns = transpose(rows, self._width)
        return {
            field.name: (field, columns[self._header.positions[field.name]])
            for field in self._fields
        }

    def validate(self, rows: Rows) -> ValidatedRows:
        """Take the next rows of the file."""
        lines = [line for line, _ in rows]
        source = self._by_field([cells for _, cells in rows])
        values: dict[str, Sequence[Any]] = {}
        problems: dict[int, list[Problem]] = defaultdict(list)
        keyless: set[int] = set()
        for name, (field, cells) in source.items():
            values[name], refused = convert_column(field, cells, self._notations[name])
            if refused:
                bad = [i for i, value in enumerate(values[name]) if isinstance(value, Flaw)]
                for i in bad:
                    problems[i].append(self._problem(lines[i], name, cells[i], values[name][i]))
                if name in self._spec.key:
                    keyless.update(bad)
        values.update((field.name, [field.blank] * len(rows)) for field in self._absent)
        blank = {i for i in keyless if not any(_filled(cells[i]) for _, cells in source.values())}
        self._check_period(values, lines, problems)
        numbers = self._count(values, lines, keyless, problems)
        if self._numbers:
            values[SEQUENCE] = numbers
        for i in blank:
            del problems[i]
        return self._part(rows, lines, values, numbers, problems, blank)

    def _check_period(
        self,
        values: Mapping[str, Sequence[Any]],
        lines: Sequence[int],
        problems: dict[int, list[Problem]],
    ) -> None:
        if self._spec.period is None or not set(self._spec.period) <= set(values):
            return
        begin, end = self._spec.period
        for i, (start, stop) in enumerate(zip(values[begin], values[end], strict=True)):
            if isinstance(start, Flaw | None) or isinstance(stop, Flaw | None):
                continue
            if stop < start:
                reason = Flaw(f"is before {self._title(begin)} {start.isoformat()}")
                problems[i].append(self._problem(lines[i], end, stop, reason))

    def _count(
        self,
        values: Mapping[str, Sequence[Any]],
        lines: Sequence[int],
        keyless: set[int],
        problems: dict[int, list[Problem]],
    ) -> list[int | None]:
        """Which occurrence of its key each row is; None for a row whose key cannot be read."""
        parts = (
            values[name]
            if not keyless and self._spec.by_name[name].kind is ColumnKind.CODE
            else map(str, values[name])
            for name in self._counted
        )
        keys = map(_KEY_SEPARATOR.join, zip(*parts, strict=True))
        keyed = [i not in keyless for i in range(len(lines))]
        found = self._seen.add(list(compress(keys, keyed)), list(compress(lines, keyed)))
        numbers: list[int | None] = [None] * len(lines)
        for i, (number, first) in zip(compress(range(len(lines)), keyed), found, strict=True):
            numbers[i] = number
            if number > 1 and not self._numbers:
                name = self._spec.key[0]
                reason = Flaw(f"same {self._spec.row} as line {first}")
                problems[i].append(self._problem(lines[i], name, values[name][i], reason))
        return numbers

    def _part(
        self,
        rows: Rows,
        lines: list[int],
        values: Mapping[str, Sequence[Any]],
        numbers: Sequence[int | None],
        problems: Mapping[int, list[Problem]],
        blank: set[int],
    ) -> ValidatedRows:
        scope = [repeat(value, len(rows)) for value in self._scope]
        tuples = zip(*scope, *(values[name] for name in self.columns[len(scope) :]), strict=True)
        rejected = [
            RejectedRow(lines[i], self._report_cells(rows[i][1], numbers[i]), found)
            for i, found in sorted(problems.items())
        ]
        good = [i not in problems and i not in blank for i in range(len(rows))]
        kept = [
            self._report_cells(cells, numbers[i])
            for i, (_, cells) in enumerate(rows)
            if self._keep_cells and good[i]
        ]
        return ValidatedRows(
            list(compress(tuples, good)), list(compress(lines, good)), kept, rejected
        )

    def _report_cells(self, cells: list[Cell], number: int | None) -> list[Cell]:
        if not self._numbers:
            return storable(cells)
        # The number has a column of its own, right of the last one that has a title.
        titled = len(self._header.titles)
        padding: list[Cell] = [None] * (titled - len(cells))
        return [*storable(cells[:titled]), *padding, number]

    def _title(self, name: str) -> str:
        position = self._header.positions.get(name)
        return self._header.titles[position] if position is not None else name

    def _problem(self, line: int, name: str, cell: Cell, refused: Flaw) -> Problem:
        return Problem(
            line=line,
            column=self._title(name),
            value=readable(cell, VALUE_CHARACTERS) or None,
            reason=refused.reason,
        )


def _filled(cell: Cell) -> bool:
    return bool(cell.strip()) if isinstance(cell, str) else cell is not None
