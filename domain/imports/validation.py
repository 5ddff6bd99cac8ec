"""Validates the rows of a table: which are written, which are rejected and why."""

from collections import defaultdict
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass
from itertools import compress, repeat
from typing import Any, Final

from contracts.imports import Problem
from domain.imports.cells import convert_cells
from domain.imports.currencies import CURRENCY, conflicts
from domain.imports.findings import VALUE_CHARACTERS, Findings, place_of
from domain.imports.lines import LineSorter, odd_keys
from domain.imports.packing import RowPacker
from domain.imports.refusals import mark_of, marked, unreadable_as_text
from domain.imports.sections import Sections
from domain.imports.survey import Surveyed
from domain.imports.tables import SECTION, SEQUENCE, TableSpec
from domain.tabular.conversion import Flaw, transpose
from domain.tabular.fields import ColumnKind, FieldSpec
from domain.tabular.occurrences import KeyOccurrences
from domain.tabular.packed import PackedLines
from domain.tabular.rows import Cell, RejectedRow, is_filled
from domain.tabular.values import column_letters, readable, storable

SHOWN_CELLS: Final = 20
"""Cells of a row that was left out that are shown to a person."""
_KEY_SEPARATOR: Final = "\x1f"
"""Codes hold no control characters, so joined keys are equal only when their parts are."""
_TOO_MANY: Final = Flaw(
    "stands behind the last column of the header: put a value that holds the delimiter into quotes"
)

Rows = Sequence[tuple[int, list[Cell]]]
"""Line number and cells of each row."""
Source = Mapping[str, tuple[FieldSpec, Sequence[Cell]]]
"""Field and cells of each column in use, by name."""
Problems = dict[int, list[Problem]]
"""Problems by index of the row."""


@dataclass(frozen=True, slots=True)
class ValidatedRows:
    """Some rows of a table."""

    columns: tuple[str, ...]
    rows: Sequence[tuple[Any, ...]]
    """Those that go in, in the order of `columns`."""
    lines: Sequence[int]
    cells: list[list[Cell]]
    """As read, when they are asked for."""
    rejected: list[RejectedRow]


@dataclass(frozen=True, slots=True)
class Place:
    """Where the rows of a table stand in a document of several sheets.

    Attributes:
        sheet: Name of the sheet; None: there is only this one.
        offset: What its line numbers are raised by, so that they rise through the document.
        layout: Position in this sheet of each column of the report; None: the same ones.
        titles: Titles of the report; None: those of this sheet.
        width: Fields of a text table's header; 0: a sheet has no such limit.
        section: Name of the sheet, if others of the document hold such a table too.
    """

    sheet: str | None = None
    offset: int = 0
    layout: Sequence[int | None] | None = None
    titles: tuple[str, ...] | None = None
    width: int = 0
    section: str = ""


def _keeps_none(line: int) -> bool:
    return False


class RowValidator:
    """Converts and checks the rows of one table of a file, part by part, in order.

    Every row whose key can be read counts as an occurrence of its key, whether it goes in or
    not: of two rows with the same key neither is chosen because the other has a fault, and the
    number of a line of a numbered table does not hang on the lines above it being right. Rows
    that are not data, and refused ones that come back as they were, do not count.

    Attributes:
        columns: Columns of the rows that come out.
        titles: Header of the report of rejected rows: the file's own and, if lines are numbered,
            their number, so that corrected lines find their place when it is sent again.
        counted: Fields of the file that distinguish its rows.

    Args:
        spec: The table.
        scope: Values of the scope columns.
        surveyed: The header of the file, and how its columns are written.
        sorter: Finds the rows that are not data.
        seen: Keys of the document so far.
        findings: Collects what is left out.
        date1904: Day numbers count from 1904.
        place: Where the rows stand in the document.
        keeps: Whether a person keeps a row that would be left out, by its line.
        keep_cells: Hand out the cells of rows that go in as well.
        pack: Hand out rows as lines of text where nothing speaks against it.
    """

    def __init__(
        self,
        spec: TableSpec,
        scope: Mapping[str, str],
        surveyed: Surveyed,
        sorter: LineSorter,
        seen: KeyOccurrences,
        findings: Findings,
        *,
        date1904: bool = False,
        place: Place | None = None,
        keeps: Callable[[int], bool] = _keeps_none,
        keep_cells: bool = False,
        pack: bool = False,
    ) -> None:
        self._spec = spec
        self._surveyed = surveyed
        self._header = header = surveyed.header
        self._sorter = sorter
        self._keeps = keeps
        self._seen = seen
        self._findings = findings
        self._date1904 = date1904
        self._place = place = place or Place()
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
        made = {SECTION, SEQUENCE} - present
        self._made = tuple(name for name in spec.key if name in made)
        self._sections = Sections(spec, header, place.section) if SECTION in self._made else None
        self.counted = [name for name in spec.key if not (self._numbers and name == SEQUENCE)]
        self.columns = (
            *spec.scope,
            *(field.name for field in (*self._fields, *self._absent)),
            *((SEQUENCE,) if self._numbers else ()),
        )
        own = self.columns[len(spec.scope) :]
        self._packer = RowPacker(spec, self._scope, own) if pack and not keep_cells else None
        self._titles = header.titles if self._place.titles is None else self._place.titles
        self.titles = self._titles + self._made

    def validate(self, rows: Rows) -> ValidatedRows:
        """Take the next rows of the file."""
        every = [cells for _, cells in rows]
        longest = max(map(len, every), default=0)
        columns = transpose(every, max(self._width, longest))
        source = {
            field.name: (field, columns[self._header.positions[field.name]])
            for field in self._fields
        }
        lines = [line + self._place.offset for line, _ in rows]
        values: dict[str, Sequence[Any]] = {}
        problems: Problems = defaultdict(list)
        keyless: set[int] = set()
        returning: set[int] = set()
        for name, (field, cells) in source.items():
            values[name], refused = convert_cells(
                self._spec, self._surveyed, field, cells, date1904=self._date1904
            )
            if refused:
                bad = [i for i, value in enumerate(values[name]) if isinstance(value, Flaw)]
                for i in bad:
                    problems[i].append(self._problem(lines[i], name, cells[i], values[name][i]))
                returning.update(i for i in bad if values[name][i].returns)
                if name in self._spec.key:
                    keyless.update(bad)
        for name, usual in self._surveyed.currencies.items():
            for i, flaw in conflicts(source[name][1], usual, values.get(CURRENCY)):
                problems[i].append(self._problem(lines[i], name, source[name][1][i], flaw))
                returning.update([i] if flaw.returns else [])
        for i in sorted(returning):
            mark = self._mark(source, values, i)
            problems[i][-1] = problems[i][-1].model_copy(update={"mark": mark})
        values.update((field.name, [field.blank] * len(rows)) for field in self._absent)
        aside = {i for i in keyless if not any(is_filled(cells[i]) for _, cells in source.values())}
        aside |= self._left_out(rows, columns, values, keyless, aside)
        if self._sections is not None:
            values[SECTION] = self._sections.paths(rows, values, keyless, aside)
        self._check_period(values, lines, problems)
        if 0 < self._place.width < longest:
            self._check_width(rows, source, values, problems)
        again = self._refuse_again(columns, source, values, lines, problems)
        uncounted = keyless | aside | again
        numbers, repeated = self._count(source, values, lines, uncounted, problems)
        aside |= repeated
        if self._numbers:
            values[SEQUENCE] = numbers
        return self._part(rows, lines, values, problems, aside)

    def _left_out(
        self,
        rows: Rows,
        columns: Sequence[Sequence[Cell]],
        values: Mapping[str, Sequence[Any]],
        keyless: Collection[int],
        blank: Collection[int],
    ) -> set[int]:
        """Rows that are not data; what looks odd and is data is told to the findings."""
        left: set[int] = set()
        keys, sheet = values[self._spec.key[0]], self._place.sheet
        for i, verdict in self._sorter.sort(rows, columns, values).items():
            line, cells = rows[i]
            if self._keeps(line):
                continue
            left.add(i)
            self._findings.leave_out(verdict, sheet, line, storable(cells[:SHOWN_CELLS]), keys[i])
        self._findings.judged += len(rows)
        skipped = left | set(keyless)
        self._findings.odd.extend(
            f"{place_of(sheet, rows[i][0])} {str(keys[i])[:SHOWN_CELLS]!r}"
            for i in odd_keys(keys)
            if i not in skipped
        )
        self._findings.lone.extend(
            place_of(sheet, rows[i][0]) for i in self._sorter.lone_keys(columns) if i not in skipped
        )
        self._findings.unused_rows += sum(
            1 for i in blank if i not in left and self._holds_more(rows[i][1])
        )
        return left

    def _holds_more(self, cells: Sequence[Cell]) -> bool:
        return any(is_filled(cell) for i, cell in enumerate(cells) if i != self._header.wrong)

    def _check_period(
        self, values: Mapping[str, Sequence[Any]], lines: Sequence[int], problems: Problems
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

    def _check_width(
        self, rows: Rows, source: Source, values: Mapping[str, Sequence[Any]], problems: Problems
    ) -> None:
        """A record of more fields than the header was cut in the wrong places."""
        width = self._place.width
        for i, (line, cells) in enumerate(rows):
            if len(cells) > width:
                found = Problem(
                    line=line,
                    column=self._title_at(width),
                    value=readable(cells[width], VALUE_CHARACTERS) or None,
                    reason=_TOO_MANY.reason,
                    mark=self._mark(source, values, i),
                )
                problems[i].append(found)

    def _refuse_again(
        self,
        columns: Sequence[Sequence[Cell]],
        source: Source,
        values: Mapping[str, Sequence[Any]],
        lines: Sequence[int],
        problems: Problems,
    ) -> set[int]:
        """Rows of a report that lost to another row and come back as they were."""
        if self._header.wrong is None:
            return set()
        refused: set[int] = set()
        name = self._spec.key[0]
        for i, (mark, why) in marked(columns[self._header.wrong]).items():
            if self._mark(source, values, i) == mark:
                refused.add(i)
                problem = self._problem(lines[i], name, source[name][1][i], Flaw(why))
                problems[i].append(problem.model_copy(update={"mark": mark}))
        return refused

    def _mark(self, source: Source, values: Mapping[str, Sequence[Any]], i: int) -> str:
        return mark_of(
            {
                name: unreadable_as_text(values[name][i], cells[i])
                for name, (_, cells) in source.items()
            }
        )

    def _count(
        self,
        source: Source,
        values: Mapping[str, Sequence[Any]],
        lines: Sequence[int],
        uncounted: Collection[int],
        problems: Problems,
    ) -> tuple[list[int | None], set[int]]:
        """Which occurrence of its key each row is, None for one that does not count; and the rows
        that stand with the same values on an earlier sheet."""
        parts = (
            values[name]
            if not uncounted and self._spec.by_name[name].kind is ColumnKind.CODE
            else map(str, values[name])
            for name in self.counted
        )
        keys = map(_KEY_SEPARATOR.join, zip(*parts, strict=True))
        keyed = [i not in uncounted for i in range(len(lines))]
        codes = values[self._spec.key[0]]
        self._findings.cases.add(list(compress(codes, keyed)) if uncounted else codes)
        found = self._seen.add(list(compress(keys, keyed)), list(compress(lines, keyed)))
        if not uncounted and all(number == 1 for number, _ in found):
            return [1] * len(lines), set()
        numbers: list[int | None] = [None] * len(lines)
        repeated: set[int] = set()
        for i, (number, first) in zip(compress(range(len(lines)), keyed), found, strict=True):
            numbers[i] = number
            if number == 1:
                continue
            if first <= self._place.offset and i not in problems:
                repeated.add(i)
            elif not self._numbers:
                name = self._spec.key[0]
                reason = Flaw(f"same {self._spec.row} as line {self._line(first)}")
                problem = self._problem(lines[i], name, values[name][i], reason)
                mark = self._mark(source, values, i)
                problems[i].append(problem.model_copy(update={"mark": mark}))
        self._findings.repeated += len(repeated)
        return numbers, repeated

    def _line(self, line: int) -> str:
        own = line - self._place.offset
        return str(own) if own > 0 else "of an earlier sheet"

    def _part(
        self,
        rows: Rows,
        lines: list[int],
        values: Mapping[str, Sequence[Any]],
        problems: Problems,
        aside: Collection[int],
    ) -> ValidatedRows:
        made = [[values[name][i] for name in self._made] for i in range(len(rows))]
        rejected = [
            RejectedRow(lines[i], self._report_cells(rows[i][1], made[i]), found)
            for i, found in sorted(problems.items())
            if i not in aside
        ]
        good = [i not in problems and i not in aside for i in range(len(rows))]
        if not all(good):
            values = {name: list(compress(cells, good)) for name, cells in values.items()}
        written = lines if all(good) else list(compress(lines, good))
        packed = self._packer.pack(values, written) if self._packer is not None else None
        if self._packer is not None and packed is not None:
            return ValidatedRows(self._packer.columns, packed, PackedLines(packed), [], rejected)
        scope = [repeat(value, len(written)) for value in self._scope]
        tuples = list(
            zip(*scope, *(values[name] for name in self.columns[len(scope) :]), strict=True)
        )
        kept = [
            self._report_cells(cells, made[i])
            for i, (_, cells) in enumerate(rows)
            if self._keep_cells and good[i]
        ]
        return ValidatedRows(self.columns, tuples, written, kept, rejected)

    def _report_cells(self, cells: list[Cell], made: list[Cell]) -> list[Cell]:
        if self._place.layout is not None:
            cells = [
                cells[place] if place is not None and place < len(cells) else None
                for place in self._place.layout
            ]
        if not self._made:
            return storable(cells)
        # What docflow makes has columns of its own, right of the last one that has a title.
        titled = len(self._titles)
        padding: list[Cell] = [None] * (titled - len(cells))
        return [*storable(cells[:titled]), *padding, *made]

    def _title(self, name: str) -> str:
        return self._title_at(p) if (p := self._header.positions.get(name)) is not None else name

    def _title_at(self, position: int) -> str:
        titles = self._header.titles
        title = titles[position] if position < len(titles) else ""
        return title or f"column {column_letters(position)}"

    def _problem(self, line: int, name: str, cell: Cell, refused: Flaw) -> Problem:
        return Problem(
            line=line - self._place.offset,
            sheet=self._place.sheet,
            column=self._title(name),
            value=readable(cell, VALUE_CHARACTERS) or None,
            reason=refused.reason,
        )
