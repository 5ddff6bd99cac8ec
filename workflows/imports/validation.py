"""Validates the rows of a table: which are written, which are rejected and why."""

import re
from collections import defaultdict
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import compress, repeat
from operator import itemgetter
from typing import Any, Final

from workflows.imports.column_scan import (
    NUMBER_DIGITS,
    Surveyed,
    convert_cells,
)
from workflows.imports.findings import (
    VALUE_CHARACTERS,
    Findings,
    cell_fingerprint,
    mark_of,
    marked,
    place_of,
)
from workflows.imports.messages import Strategy
from workflows.imports.runs import RowChunk
from workflows.imports.types import TableSpec
from workflows.shared.amounts import CURRENCY, conflicts
from workflows.shared.cells import (
    Cell,
    KeyOccurrences,
    RejectedRow,
    beyond_header,
    column_letters,
    is_filled,
    kept_cells,
    readable,
    same_as,
    storable,
)
from workflows.shared.contracts import Problem
from workflows.shared.conversion import Flaw, transpose
from workflows.shared.declared_types import OTHER
from workflows.shared.errors import InvalidDocument
from workflows.shared.fields import ColumnKind, FieldSpec
from workflows.shared.left_out import RowSorter
from workflows.shared.packed_rows import NULL, PackedLines, PackedRows, text_of
from workflows.shared.row_rules import KEPT, broken_rules, failed_checks
from workflows.shared.sections import SECTION, SEQUENCE, Sections

QUESTION: Final = "leading_zeros"
"""What the answer is remembered as."""
DISTINCT: Final = "distinct"
"""The answer that codes which differ in leading zeros only are different ones."""
_ZEROS: Final = re.compile(r"^0+(?=[0-9])")

Codes = tuple[str, ...]
"""The codes of a natural key, in the order of the table."""


def code_fields(spec: TableSpec) -> tuple[str, ...]:
    """The fields of a key that hold codes; the headings above a row last."""
    codes = (name for name in spec.key if spec.by_name[name].kind is ColumnKind.CODE)
    return tuple(sorted(codes, key=SECTION.__eq__))


def folded(codes: Codes) -> Codes:
    """The same for codes that differ only in leading zeros."""
    return tuple(_ZEROS.sub("", code) for code in codes)


def code_columns(chunk: RowChunk, names: Sequence[str]) -> list[list[str]]:
    """The codes of a chunk by column."""
    places = [chunk.columns.index(name) for name in names]
    return [list(map(str, map(itemgetter(place), chunk.rows))) for place in places]


def codes_of(chunk: RowChunk, names: Sequence[str]) -> list[Codes]:
    """The codes of each row of a chunk."""
    return list(zip(*code_columns(chunk, names), strict=True))


def spellings(codes: Iterable[Codes], lengths: Iterable[int]) -> list[str]:
    """First codes under which the known ones may stand that differ in leading zeros only.

    Args:
        codes: Codes of a file.
        lengths: Of first codes of the table, where some code has leading zeros.
    """
    found: set[str] = set()
    for first in dict.fromkeys(each[0] for each in codes):
        (plain,) = folded((first,))
        found |= {first, plain}
        if plain[:1].isdigit():
            found.update(plain.zfill(length) for length in lengths)
    return sorted(found)


def lookalikes(found: Iterable[Codes], known: Mapping[Codes, bool]) -> dict[Codes, Codes]:
    """Codes of a file to the known ones that differ from them only in leading zeros.

    Args:
        found: Codes of the file.
        known: Codes of the table, and whether this load has written each; a code of the file that
            is among them is not a question.
    """
    candidates = sorted((codes for codes, is_own in known.items() if not is_own), reverse=True)
    by_fold = {folded(codes): codes for codes in candidates}
    return {
        codes: other
        for codes in dict.fromkeys(found)
        if codes not in known and (other := by_fold.get(folded(codes))) is not None
    }


def may_differ(columns: Iterable[Sequence[str]], lengths: Collection[int]) -> bool:
    """Whether codes of a file and of its table may differ in leading zeros only.

    Args:
        columns: Codes of the file by column.
        lengths: See `spellings`.
    """
    # Codes hold no line breaks, and one search in all of a column is quick.
    return bool(lengths) or any("\n0" in "\n" + "\n".join(column) for column in columns)


def settled(
    chunk: RowChunk, names: Sequence[str], known: Mapping[Codes, bool], answer: str | None
) -> RowChunk:
    """A chunk with its codes as they are known.

    Args:
        chunk: Rows of the file.
        names: Columns of the codes.
        known: See `lookalikes`.
        answer: What a person said about codes that differ in leading zeros only.

    Raises:
        InvalidDocument: There are some, and no person has said whether they are the same.
    """
    alike = lookalikes(codes_of(chunk, names), known)
    if not alike:
        return chunk
    if answer is None:
        raise InvalidDocument(_question(chunk, names, alike))
    return _with_known_codes(chunk, names, alike)


def _with_known_codes(
    chunk: RowChunk, names: Sequence[str], same: Mapping[Codes, Codes]
) -> RowChunk:
    """A chunk whose codes are spelled as the known ones.

    Raises:
        InvalidDocument: It holds several spellings of one.
    """
    places = [chunk.columns.index(name) for name in names]
    found = codes_of(chunk, names)
    _refuse_both(found, same)
    rows: list[tuple[Any, ...]] = []
    for row, codes in zip(chunk.rows, found, strict=True):
        known = same.get(codes)
        if known is not None:
            spelled = dict(zip(places, known, strict=True))
            row = tuple(spelled.get(place, value) for place, value in enumerate(row))
        rows.append(row)
    return replace(chunk, rows=rows)


def _refuse_both(found: Collection[Codes], same: Mapping[Codes, Codes]) -> None:
    spelled: dict[Codes, Codes] = {}
    for codes in sorted(set(found), reverse=True):
        other = spelled.setdefault(same.get(codes, codes), codes)
        if other != codes:
            raise InvalidDocument(
                f"the document holds both {_shown(other)} and {_shown(codes)}, which are "
                "the same here; keep one of them"
            )


def _question(chunk: RowChunk, names: Sequence[str], alike: Mapping[Codes, Codes]) -> str:
    """What a person is asked."""
    lines = zip(chunk.lines, codes_of(chunk, names), strict=True)
    line, codes = next(each for each in lines if each[1] in alike)
    more = f", as do {len(alike) - 1:,} more" if len(alike) > 1 else ""
    return (
        f"{_shown(codes)} on line {line} and the known {_shown(alike[codes])} differ only in "
        f"leading zeros{more}: retry with `leading_zeros` 'same' or 'distinct' "
        "(--leading-zeros same); the answer is remembered for the project and type"
    )


def _shown(codes: Codes) -> str:
    return " ".join(repr(code) for code in codes if code)


KEY_CHARACTERS: Final = 500
"""Keys up to this length fit into an index, whatever their letters."""
FEWEST_ROWS: Final = 1_000
"""Rows from which on lines are worth their making: fewer go with the statement that writes them."""
_KNOWN: Final = 50_000
"""Texts of numbers and days of one column that are kept for the next rows."""
_BREAKS: Final = ("\t", "\r", NULL)
_TEXTS: Final = frozenset(
    {ColumnKind.TEXT, ColumnKind.CODE, ColumnKind.CHOICE, ColumnKind.MAIL, ColumnKind.PHONE}
)


class RowPacker:
    """Packs converted columns, where a database can hold every value of them.

    Attributes:
        columns: Columns of the rows that come out: scope, natural key, all others.

    Args:
        spec: The table.
        scope: Values of the columns that all rows share, in their order.
        names: Columns that the rows have beside these.
    """

    def __init__(self, spec: TableSpec, scope: Sequence[str], names: Sequence[str]) -> None:
        self._scope = tuple(scope)
        self._key = spec.key
        self._codes = frozenset(code_fields(spec))
        self._own = (*spec.key, *(name for name in names if name not in spec.key))
        self._kinds = tuple(spec.by_name[name].kind for name in self._own)
        self.columns = (*spec.scope, *self._own)
        self._known: dict[str, dict[Any, str]] = {name: {} for name in self._own}

    def pack(self, values: Mapping[str, Sequence[Any]], lines: Sequence[int]) -> PackedRows | None:
        """Pack some rows.

        Args:
            values: Their columns by name, without refused cells.
            lines: Line of each.

        Returns:
            None where they are better written value by value.
        """
        if len(lines) < FEWEST_ROWS:
            return None
        columns: list[Sequence[str]] = []
        longest = sum(map(len, self._scope))
        for name, kind in zip(self._own, self._kinds, strict=True):
            if kind in _TEXTS:
                texts = self._texts(name, values[name])
                if texts is None:
                    return None
                longest += max(map(len, texts)) if name in self._key else 0
            else:
                texts = self._made(name, values[name])
            columns.append(texts)
        if longest > KEY_CHARACTERS:
            return None
        made = list(map("\t".join, zip(*columns, map(str, lines), strict=True)))
        made.sort()
        return PackedRows(self._scope, self._kinds, made, zero_led=False)

    def _texts(self, name: str, values: Sequence[str | None]) -> Sequence[str] | None:
        """Texts as they are; None: a line cannot hold one, or a code begins with a zero.

        Whether such a code is that of another row is asked of values.
        """
        absent = None in values
        joined = "\n".join(filter(None, values) if absent else values)  # type: ignore[arg-type]
        count = sum(map(bool, values)) if absent else len(values)
        if joined.count("\n") > max(count - 1, 0) or any(mark in joined for mark in _BREAKS):
            return None
        if name in self._codes and ("\n0" in joined or joined.startswith("0")):
            return None
        return [NULL if text is None else text for text in values] if absent else values  # type: ignore[return-value]

    def _made(self, name: str, values: Sequence[Any]) -> Sequence[str]:
        """The texts of numbers and days, which repeat."""
        known = self._known[name]
        if len(known) > _KNOWN:
            known.clear()
        digits = NUMBER_DIGITS if name == SEQUENCE else 0
        known.update((each, text_of(each).zfill(digits)) for each in set(values) - known.keys())
        return list(map(known.__getitem__, values))


SHOWN_CELLS: Final = 20
"""Cells of a row that was left out that are shown to a person."""
_KEY_SHOWN: Final = 40
_KEY_SEPARATOR: Final = "\x1f"
"""Codes hold no control characters, so joined keys are equal only when their parts are."""

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
        strategy: How the rows meet stored ones; None: they meet none.
    """

    def __init__(
        self,
        spec: TableSpec,
        scope: Mapping[str, str],
        surveyed: Surveyed,
        sorter: RowSorter,
        seen: KeyOccurrences,
        findings: Findings,
        *,
        date1904: bool = False,
        place: Place | None = None,
        keeps: Callable[[int], bool] = _keeps_none,
        keep_cells: bool = False,
        pack: bool = False,
        strategy: Strategy | None = None,
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
        self._scope = [scope[name] for name in spec.scope]
        self._fields = [field for field in spec.fields if field.name in header.positions]
        self._width = max(header.positions.values()) + 1
        self._item = spec.item(header.positions)
        # The file has a key field that it lacks a column for: `size` of a take-off, say.
        present = {field.name for field in self._fields}
        self._absent = [
            spec.by_name[name] for name in spec.key if name not in present and name != SEQUENCE
        ]
        self._numbers = spec.numbered and SEQUENCE not in present
        made = {SECTION, SEQUENCE} - present
        self._made = tuple(name for name in spec.key if name in made)
        self._sections: Sections | None = None
        if SECTION in self._made:
            self._sections = Sections(
                *(spec.fields, spec.key, header.positions),
                wrong=header.wrong,
                sheet=place.section,
            )
        self.counted = [name for name in spec.key if not (self._numbers and name == SEQUENCE)]
        # Of a file without such columns, stored cells stay as they are.
        self._keeps_others = spec.unmapped == "keep" and bool(surveyed.unused)
        self.columns = (
            *spec.scope,
            *(field.name for field in (*self._fields, *self._absent)),
            *((SEQUENCE,) if self._numbers else ()),
            *((OTHER,) if self._keeps_others else ()),
        )
        # Rules that need a stored value are left to those who read stored rows.
        self._kept_fields = spec.kept_fields(strategy, self.columns)
        self._keep_cells = keep_cells or bool(self._kept_fields)
        own = self.columns[len(spec.scope) :]
        may_pack = pack and not self._keep_cells and not self._keeps_others
        self._packer = RowPacker(spec, self._scope, own) if may_pack else None
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
        for name, (declared, cells) in source.items():
            values[name], refused = convert_cells(
                self._spec, self._surveyed, declared, cells, date1904=self._date1904
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
            sheet = self._place.sheet
            self._findings.headings.extend(place_of(sheet, n) for n in self._sections.lines)
            self._sections.lines.clear()
        declared = self._spec.declared
        if declared is not None:
            judged = values | {name: [KEPT] * len(rows) for name in self._kept_fields}
            found = broken_rules(declared, judged, title=self.title)
            self._note(found, source, lines, problems)
            scope = dict(zip(self._spec.scope, self._scope, strict=True))
            wrong = {*problems, *aside}
            found = failed_checks(declared, self._spec.checks, values, scope, wrong)
            self._note(found, source, lines, problems)
        if 0 < self._place.width < longest:
            for i, (line, cells) in enumerate(rows):
                if cut := beyond_header(line, cells, self._place.width):
                    mark = self._mark(source, values, i)
                    problems[i].append(cut.model_copy(update={"mark": mark}))
        again = self._refuse_again(columns, source, values, lines, problems)
        uncounted = keyless | aside | again
        numbers, repeated = self._count(source, values, lines, uncounted, problems)
        aside |= repeated
        taken_keys = values[self._item]
        self._note_taken(rows, columns, taken_keys, {*problems, *aside, *keyless})
        if self._numbers:
            values[SEQUENCE] = numbers
        if self._keeps_others:
            values[OTHER] = [self._kept(cells) for cells in every]
        return self._part(rows, lines, values, problems, aside)

    def _note(
        self,
        wrong: Iterable[tuple[int, str, str]],
        source: Source,
        lines: Sequence[int],
        problems: Problems,
    ) -> None:
        """Take down what is wrong with rows: index, field and reason."""
        for i, name, reason in wrong:
            cell = source[name][1][i] if name in source else None
            problems[i].append(self._problem(lines[i], name, cell, Flaw(reason)))

    def _kept(self, cells: Sequence[Cell]) -> str | None:
        """The cells of a row that mean no field, by header, as JSON.

        If a column has no header, or that of another column, its letters name it.
        """
        used = {*self._header.positions.values(), self._header.wrong}
        others = (i for i in range(len(cells)) if i not in used)
        return kept_cells({i: self._title_at(i) for i in others}, cells)

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
        keys, sheet = values[self._item], self._place.sheet
        for i, verdict in self._sorter.sort(rows, columns, values).items():
            line, cells = rows[i]
            if self._keeps(line):
                continue
            left.add(i)
            self._findings.leave_out(verdict, sheet, line, storable(cells[:SHOWN_CELLS]), keys[i])
        self._findings.judged += len(rows)
        self._findings.unused_rows += sum(
            1 for i in blank if i not in left and self._holds_more(rows[i][1])
        )
        return left

    def _note_taken(
        self,
        rows: Rows,
        columns: Sequence[Sequence[Cell]],
        keys: Sequence[Any],
        skipped: Collection[int],
    ) -> None:
        """Tell the findings of rows that look odd and go in."""
        sheet = self._place.sheet
        self._findings.odd.extend(
            f"{place_of(sheet, rows[i][0])} {readable(key, _KEY_SHOWN)!r}"
            for i, key in self._sorter.odd_keys(columns).items()
            if i not in skipped
        )
        self._findings.lone.extend(
            place_of(sheet, rows[i][0]) for i in self._sorter.lone_keys(columns) if i not in skipped
        )

    def _holds_more(self, cells: Sequence[Cell]) -> bool:
        return any(is_filled(cell) for i, cell in enumerate(cells) if i != self._header.wrong)

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
        name = self._item
        for i, (mark, why) in marked(columns[self._header.wrong]).items():
            if self._mark(source, values, i) == mark:
                refused.add(i)
                problem = self._problem(lines[i], name, source[name][1][i], Flaw(why))
                problems[i].append(problem.model_copy(update={"mark": mark}))
        return refused

    def _mark(self, source: Source, values: Mapping[str, Sequence[Any]], i: int) -> str:
        return mark_of(
            {
                name: cell_fingerprint(values[name][i], cells[i])
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
        codes = values[self._item]
        if self._spec.by_name[self._item].kind in _TEXTS:
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
                name = self._item
                reason = Flaw(same_as(self._spec.row, self._line(first)))
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

    def title(self, name: str) -> str:
        """Return the title of the column of a field; its name if there is no column."""
        return self._title_at(p) if (p := self._header.positions.get(name)) is not None else name

    def _title_at(self, position: int) -> str:
        titles = self._header.titles
        title = titles[position] if position < len(titles) else ""
        return title or f"column {column_letters(position)}"

    def _problem(self, line: int, name: str, cell: Cell, refused: Flaw) -> Problem:
        return Problem(
            line=line - self._place.offset,
            sheet=self._place.sheet,
            column=self.title(name),
            value=readable(cell, VALUE_CHARACTERS) or None,
            reason=refused.reason,
        )
