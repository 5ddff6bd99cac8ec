"""Validates rows of a spreadsheet: which are written, which wait, which are rejected and why.

Rows of a list that are no people: repeated headers, totals and footers.

A row with a name, a bib or a member number is a row. It is skipped in three cases only, and a
person sees each, and can have it imported all the same.
"""

import json
from collections import defaultdict
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import compress, islice
from types import MappingProxyType
from typing import Any, Final, NamedTuple

from activities.spreadsheets.entities import ImportContext, key_id
from activities.spreadsheets.shown_columns import ShownColumns
from activities.spreadsheets.types.base import SheetRows, SheetType
from activities.spreadsheets.types.people import IDENTIFYING, identities
from activities.spreadsheets.value_mapping import (
    IGNORED,
    OPEN,
    REFUSED,
    TO_CREATE,
    ValueBook,
    value_text,
)
from adapters.types.checks import checks_of
from workflows.shared.amounts import CURRENCY, conflicts, usual_currency
from workflows.shared.cells import (
    Cell,
    KeyOccurrences,
    is_filled,
    kept_cells,
    readable,
    same_as,
)
from workflows.shared.contracts import Problem
from workflows.shared.conversion import (
    Flaw,
    Notations,
    read_cells,
    refuse_shares,
    settle_notations,
    transpose,
)
from workflows.shared.declared_types import OTHER
from workflows.shared.durations import hours_of, under_title
from workflows.shared.fields import ColumnKind, FieldSpec
from workflows.shared.left_out import (
    KeyWords,
    KeyWordSearch,
    Left,
    RowSorter,
    footer_of,
    is_text,
)
from workflows.shared.notations import Notation
from workflows.shared.row_rules import failed_checks
from workflows.shared.sections import SECTION, SEQUENCE, Sections
from workflows.shared.shares import OddShares
from workflows.spreadsheets.fields import (
    FoundValue,
    ParkedRow,
    SkippedRow,
    TargetRows,
)
from workflows.spreadsheets.mappings import ColumnMapping, MappingStatus
from workflows.spreadsheets.names import BIB, NAMES, BibMatcher, bearers_of, remark_on_name
from workflows.spreadsheets.people import (
    IDENTITY,
    LEFT_OUT,
    PERSON,
    Identity,
    KnownPerson,
    PeopleMatcher,
    PeopleQuery,
    Resolved,
)


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


class CheckedRows:
    """Rows as far as they are checked without the database."""

    def __init__(self, source: Sequence[SourceRow]) -> None:
        self.source = source
        self.identities: Sequence[Identity | None] = ()
        """Who each row is about, where its type is about people; None: it cannot be read."""
        self.people: dict[int, Resolved] = {}
        """The person of each row that has one."""
        self.left_out: set[int] = set()
        """Rows that a person decided to leave out."""
        self.values: dict[str, Sequence[Any]] = {}
        self.problems: dict[int, list[Problem]] = defaultdict(list)
        self.blank: set[int] = set()
        self.waiting: set[int] = set()
        """Rows with a value without a known meaning."""
        self.unclear: set[tuple[int, str]] = set()
        """Cells that a row rule cannot check."""
        self.open: dict[int, list[tuple[str, str | None]]] = defaultdict(list)
        """Header and text of cells without a known meaning."""
        self.same_bib: dict[int, tuple[str, str]] = {}
        """Header and text of bibs that another person has too, of rows that wait for an answer."""
        self.flaws: dict[int, list[tuple[str, str | None, str]]] | None = None
        """Header, text and fault of cells, in the place of problems where only cells are checked:
        a review may have as many of them as cells, and a problem for each takes half a second."""

    @property
    def bad(self) -> set[int]:
        """Rows that are not written, whatever is answered."""
        return self.problems.keys() | self.blank

    def note(self, found: Iterable[Problem], headers: Mapping[str, str]) -> None:
        """Take down problems of fields, under the headers that their columns have."""
        places = {row.line: i for i, row in enumerate(self.source)}
        for each in found:
            header = headers.get(each.column or "") or each.column
            place = places[each.line or 0]
            self.problems[place].append(each.model_copy(update={"column": header}))

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


VALUE_CHARACTERS: Final = 200
REASON_CHARACTERS: Final = 500
_GIVEN: Final = (SECTION, SEQUENCE)
"""Parts of a key that rows have of those above them."""
NOTHING_MAPPED: Final = "holds nothing in the mapped columns"

_MISSING: Final = Flaw("is missing")
_UNREAD: Final = Flaw("is not clear yet")
_GONE: Final = Flaw("refers to a row that is not there any more; map the value again")
_LEFT_OUT: Final = Flaw("is required, but its value is ignored; choose one or correct the cell")


class RowValidator:
    """Converts and checks the rows of one spreadsheet, part by part, in order.

    A row counts as an occurrence of its natural key when it is written or waits for a value; one
    with an error does not, so that a right row further down still goes in.

    Args:
        sheet_type: What the rows are.
        fields: Every field, as `SheetType.fields_for` gives them.
        columns: What each column means.
        context: Context of the import.
        book: The meaning of values.
        seen: Keys of the file so far; None: they were looked at in an earlier round.
        head: The first rows of the file, which settle how numbers and dates are written.
        people: Finds the person of each row; None: everyone is another person.
        bibs: Finds bibs that two people have; None: nothing is asked about bibs.
        shown: What the columns show in all rows; None: `head` tells.
        notations: Of fields whose notation a person has chosen; `head` tells of the others.
    """

    def __init__(
        self,
        sheet_type: SheetType,
        fields: Sequence[FieldSpec],
        columns: Sequence[ColumnMapping],
        context: ImportContext,
        book: ValueBook,
        seen: KeyOccurrences | None,
        head: Sequence[SourceRow],
        people: PeopleMatcher | None = None,
        bibs: BibMatcher | None = None,
        shown: ShownColumns | None = None,
        notations: Mapping[str, Notation] | None = None,
    ) -> None:
        known = {each.name: each for each in fields}
        mapped = [
            column
            for column in columns
            if column.target in known and column.status is not MappingStatus.IGNORED
        ]
        headers = {str(column.target): column.header for column in mapped}
        by_name = {name: under_title(each, headers.get(name, "")) for name, each in known.items()}
        self._type = sheet_type
        self._fields = fields
        self._by_name = by_name
        self._mapped = {column.index: by_name[str(column.target)] for column in mapped}
        self._headers = headers
        self._titles = {each.name: each.title for each in fields}
        self._context = context
        self._book = book
        self._seen = seen
        self._people = people if sheet_type.is_about_people else None
        bib = by_name.get(BIB)
        has_bibs = bib is not None and bib.target == f"{sheet_type.main}.bib"
        is_mapped = self._people is not None and has_bibs and BIB in self._headers
        self._bibs = bibs if is_mapped else None
        self._sections: Sections | None = None
        if sheet_type.has_sections and SECTION not in self._headers:
            assert sheet_type.declared is not None
            places = {each.name: place for place, each in self._mapped.items()}
            self._sections = Sections(fields, sheet_type.declared.key, places)
        self._width = max(self._mapped, default=-1) + 1
        declared = sheet_type.declared
        self._checks = () if declared is None else checks_of(declared)
        self._kept: Mapping[int, str] = {}
        if declared is not None and declared.unmapped == "keep":
            titles = {column.index: column.header for column in columns}
            self._kept = {i: title for i, title in titles.items() if i not in self._mapped}
        first = transpose([row.cells for row in head], self._width)
        found = settle_notations({e.name: (e, first[i]) for i, e in self._mapped.items()})
        if shown is None:
            shown = ShownColumns(self._mapped)
            shown.add([row.cells for row in head])
        self._written: Notations = {**found, **shown.hours, **shown.ticks, **(notations or {})}
        self._odd_shares: dict[str, OddShares] = {
            name: odd for name, each in shown.shares.items() if (odd := each.odd) is not None
        }
        self._currencies: dict[str, str] = {
            name: usual
            for name, each in shown.currencies.items()
            if (usual := usual_currency(each)) is not None
        }

    def validate(self, rows: Sequence[SourceRow]) -> ValidatedRows:
        """Take the next rows, of people who are in no database."""
        return self.settle(self.check(rows))

    def check(
        self,
        rows: Sequence[SourceRow],
        *,
        counted: bool = False,
        headings: Sequence[Sequence[Sequence[Cell]]] | None = None,
    ) -> CheckedRows:
        """Convert and check the next rows, as far as that needs no database.

        Args:
            rows: The rows.
            counted: They were taken before a restart: their values are not counted again.
            headings: Cells of the skipped headings right above each row; None: the rows are no
                continuation of those before.
        """
        checked = CheckedRows(rows)
        cells = self._convert(checked, self._mapped, counted=counted)
        if self._kept:
            checked.values[OTHER] = [kept_cells(self._kept, row.cells) for row in rows]
        if self._sections is not None and headings is not None:
            checked.values[SECTION] = self._paths(self._sections, checked, headings)
        self._note_missing(checked)
        self._apply_rule(cells, checked)
        self._set_blank_aside(cells, checked)
        self._apply_checks(cells, checked)
        if self._people is not None:
            checked.identities = self._identities(checked)
            checked.values[IDENTITY] = checked.identities
        return checked

    def _paths(
        self,
        sections: Sections,
        checked: CheckedRows,
        headings: Sequence[Sequence[Sequence[Cell]]],
    ) -> Sequence[str]:
        """The section of each row; '' of one whose key cannot be read."""
        names = self._type.row_keys & checked.values.keys()
        keys = [(name, checked.values[name]) for name in names]
        found: list[str] = []
        for i, (row, above) in enumerate(zip(checked.source, headings, strict=True)):
            for cells in above:
                sections.skip(cells)

            def value(name: str, i: int = i) -> Any:
                return _UNREAD if (i, name) in checked.unclear else checked.values[name][i]

            is_keyless = any(values[i] is None for _, values in keys)
            found.append("" if is_keyless else sections.path(row.line, row.cells, value))
        return found

    def check_cells(self, rows: Sequence[SourceRow], places: Collection[int]) -> CheckedRows:
        """Convert the cells of some columns, by place, and look at nothing beyond them."""
        checked = CheckedRows(rows)
        checked.flaws = defaultdict(list)
        mapped = {index: each for index, each in self._mapped.items() if index in places}
        self._convert(checked, mapped, counted=True)
        return checked

    def _convert(
        self, checked: CheckedRows, mapped: Mapping[int, FieldSpec], *, counted: bool
    ) -> Mapping[str, Sequence[Cell]]:
        """Convert columns; their cells as read."""
        source: Mapping[int, Sequence[Cell]]
        rows = [row.cells for row in checked.source]
        if len(mapped) < len(self._mapped):
            source = {i: [row[i] if i < len(row) else None for row in rows] for i in mapped}
        else:
            source = dict(enumerate(transpose(rows, self._width)))
        given = {each.name: source[index] for index, each in mapped.items()}
        cells = self._type.arrange(given, self._context)
        for name, column in cells.items():
            each = self._by_name[name]
            if each.resolver is None:
                written, today = self._written.get(name), self._context.today
                values, flawed = read_cells(each, column, written, today=today)
                if (odd := self._odd_shares.get(name)) is not None:
                    values, flawed = refuse_shares(column, values, odd), True
            else:
                values, flawed = self._refer(each, column, checked, counted)
            if flawed:
                self._note_flaws(each, values, column, checked)
            checked.values[name] = values
        self._refuse_currencies(given, checked)
        return given

    def _refuse_currencies(self, cells: Mapping[str, Sequence[Cell]], checked: CheckedRows) -> None:
        """Refuse amounts in another currency than their row or most of their column."""
        of_rows = checked.values.get(CURRENCY)
        if of_rows is None and CURRENCY in self._headers:
            # The currencies of rows are not among the columns that are looked at.
            return
        for name in self._currencies.keys() & cells.keys():
            values = list(checked.values[name])
            for i, flaw in conflicts(cells[name], self._currencies[name], of_rows):
                values[i] = flaw
            if any(isinstance(value, Flaw) for value in values):
                self._note_flaws(self._by_name[name], values, cells[name], checked)
                checked.values[name] = values

    def query(self, checked: CheckedRows) -> PeopleQuery | None:
        """What to look up before rows are settled; None: nothing."""
        if self._people is None:
            return None
        query = self._people.query(checked.identities)
        if self._bibs is None or self._context.context_id is None:
            return query
        bibs = sorted({bib for bib in checked.values[BIB] if isinstance(bib, str)})
        return replace(query, bibs=bibs, bibs_of=(self._type.main, self._context.context_id))

    def settle(
        self,
        checked: CheckedRows,
        known: Sequence[KnownPerson] = (),
        parked: Mapping[int, ParkedRow] | None = None,
    ) -> ValidatedRows:
        """Find out whom checked rows are about, and what they become.

        Args:
            checked: The next rows.
            known: The people that `query` asks for.
            parked: The rows as they were parked, by line; None: they are read for the first time.
        """
        rows = checked.source
        self._find_people(checked, known, parked)
        self._note_duplicates(checked, parked)
        self._find_bibs(checked, known)
        problems, blank = checked.problems, checked.blank
        waiting = checked.waiting - problems.keys() - blank - checked.left_out
        good, places = checked.without(problems, blank, waiting, checked.left_out)
        left_out = checked.left_out - problems.keys() - blank
        skipped = [(rows[i].line, NOTHING_MAPPED) for i in blank]
        skipped += [(rows[i].line, LEFT_OUT) for i in sorted(left_out)]
        found = self._book.take_found()
        if self._people is not None:
            found += self._people.take_found()
        if self._bibs is not None:
            found += self._bibs.take_found()
        return ValidatedRows(
            lines=[rows[i].line for i in places],
            main=self._type.main,
            targets=self._type.rows_of_targets(self._fields, good, self._context),
            errors=[(rows[i].line, problems[i]) for i in sorted(problems)],
            skipped=sorted(skipped),
            parked=[self._parked(checked, i) for i in sorted(waiting)],
            found=found,
        )

    def pass_over(self, rows: Sequence[SourceRow]) -> None:
        """Learn the natural keys of rows that were taken before a restart, and nothing else."""
        self.pass_checked(self.check(rows, counted=True))

    def pass_checked(self, checked: CheckedRows, known: Sequence[KnownPerson] = ()) -> None:
        """As `pass_over`, for checked rows and the people that `query` asks for."""
        self._find_people(checked, known, None, counted=True)
        self._note_duplicates(checked, None)
        self._find_bibs(checked, known, counted=True)

    def _identities(self, checked: CheckedRows) -> Sequence[Identity | None]:
        unclear = {i for i, name in checked.unclear if name in IDENTIFYING}
        return [
            None if i in unclear or i in checked.blank else each
            for i, each in enumerate(identities(checked.rows))
        ]

    def _find_people(
        self,
        checked: CheckedRows,
        known: Sequence[KnownPerson],
        parked: Mapping[int, ParkedRow] | None,
        *,
        counted: bool = False,
    ) -> None:
        if self._people is None:
            return
        lines = [row.line for row in checked.source]
        resolved: Sequence[Resolved | None]
        if parked is None:
            counts = [i not in checked.problems for i in range(len(lines))]
            resolved = self._people.resolve(
                checked.identities, lines, counts, known, counted=counted
            )
        else:
            resolved = [
                None if each is None else self._people_of(each, parked[line], known)
                for each, line in zip(checked.identities, lines, strict=True)
            ]
        for i, one in enumerate(resolved):
            if one is not None:
                self._note_person(checked, i, one)
        checked.values[PERSON.name] = [
            checked.people[i].key or f"?{line}" if i in checked.people else f"?{line}"
            for i, line in enumerate(lines)
        ]

    def _people_of(
        self, identity: Identity, row: ParkedRow, known: Sequence[KnownPerson]
    ) -> Resolved:
        assert self._people is not None
        one = self._people.parked(identity, row.line, row.person, row.person_key)
        if one is None:
            # It was parked by a release that did not ask about people.
            (one,) = self._people.resolve([identity], [row.line], [True], known)
            assert one is not None
        return one

    def _note_person(self, checked: CheckedRows, i: int, one: Resolved) -> None:
        checked.people[i] = one
        if one.problem is not None:
            line = checked.source[i].line
            checked.problems[i].append(Problem(line=line, reason=one.problem[:REASON_CHARACTERS]))
        elif one.left_out:
            checked.left_out.add(i)
        elif one.key is None:
            checked.waiting.add(i)

    def _parked(self, checked: CheckedRows, i: int) -> ParkedRow:
        row, one = checked.source[i], checked.people.get(i)
        if self._type.is_numbered or self._type.has_sections:
            part = {name: checked.values[name][i] for name in _GIVEN if name in checked.values}
            return ParkedRow(row.line, row.offset, None, json.dumps(part))
        if one is None:
            return ParkedRow(row.line, row.offset)
        return ParkedRow(row.line, row.offset, None if one.key else one.question, one.key)

    def _refer(
        self, field: FieldSpec, cells: Sequence[Cell], checked: CheckedRows, counted: bool
    ) -> tuple[list[Any], bool]:
        """Ids of the rows that cells refer to, None for those without, or a `Flaw`."""
        values: list[Any] = [*self._book.meanings(field.name, cells, counted=counted)]
        is_keyed = self._book.is_keyed(field.name)
        if set(map(type, values)) == {int} and not is_keyed:
            return values, False
        flawed = field.required
        referred = self._type.referred.get(field.resolver or "")
        absent = Flaw(f"is not in {field.title if referred is None else referred.title}")
        for i, meaning in enumerate(values):
            if is_keyed and isinstance(meaning, int):
                key = self._book.key(field.name, meaning, cells[i])
                is_own = meaning == key_id(value_text(cells[i]))
                values[i] = key or (absent if is_own else _GONE)
                flawed = flawed or key is None
            elif meaning is REFUSED:
                values[i], flawed = absent, True
            elif meaning is None:
                values[i] = _MISSING if field.required else None
            elif meaning is IGNORED:
                values[i] = _LEFT_OUT if field.required else None
            elif meaning is OPEN or meaning is TO_CREATE:
                values[i] = None
                checked.unclear.add((i, field.name))
                if meaning is OPEN:
                    checked.waiting.add(i)
                    text = readable(cells[i], VALUE_CHARACTERS) or None
                    checked.open[i].append((self._headers[field.name], text))
        return values, flawed

    def _note_flaws(
        self, field: FieldSpec, values: list[Any], cells: Sequence[Cell], checked: CheckedRows
    ) -> None:
        flaws, header = checked.flaws, self._headers.get(field.name) or self._titles[field.name]
        for i, value in enumerate(values):
            if isinstance(value, Flaw):
                values[i] = None
                if flaws is not None:
                    text = readable(cells[i], VALUE_CHARACTERS) or None
                    flaws[i].append((header, text, value.reason[:REASON_CHARACTERS]))
                    continue
                checked.unclear.add((i, field.name))
                checked.problems[i].append(
                    self._problem(checked.source[i].line, field.name, cells[i], value.reason)
                )

    def _note_missing(self, checked: CheckedRows) -> None:
        """A row needs either of two fields: the last of them is reported."""
        done: set[str] = set()
        for each in reversed(self._fields):
            other = each.either
            if not each.required or other is None or each.name in done:
                continue
            done.add(other)
            values = zip(checked.rows[each.name], checked.rows[other], strict=True)
            for i, pair in enumerate(values):
                unclear = {(i, each.name), (i, other)} & checked.unclear
                if pair == (None, None) and not unclear:
                    line = checked.source[i].line
                    checked.problems[i].append(self._problem(line, each.name, None, "is missing"))

    def _apply_rule(self, cells: Mapping[str, Sequence[Cell]], checked: CheckedRows) -> None:
        for fault in self._type.check(checked.rows, self._context):
            i, name = fault.row, fault.field
            if (i, name) not in checked.unclear:
                cell = cells[name][i] if name in cells else None
                problem = self._problem(checked.source[i].line, name, cell, fault.reason)
                checked.problems[i].append(problem)

    def _apply_checks(self, cells: Mapping[str, Sequence[Cell]], checked: CheckedRows) -> None:
        """Rows whose other problems are corrected, or that are answered, are checked then."""
        declared = self._type.declared
        if declared is None or not self._checks:
            return
        scope = {name: self._context.scope[name] for name in declared.scope}
        aside = {*checked.bad, *(i for i, _ in checked.unclear)}
        values, checks = checked.values, self._checks
        for i, name, reason in failed_checks(declared, checks, values, scope, aside):
            cell = cells[name][i] if name in cells else None
            problem = self._problem(checked.source[i].line, name, cell, reason)
            checked.problems[i].append(problem)

    def _set_blank_aside(self, cells: Mapping[str, Sequence[Cell]], checked: CheckedRows) -> None:
        """A row that holds something in other columns only is not an error."""
        demanding = any(each.required for each in self._mapped.values())
        for i in list(checked.problems) if demanding else range(len(checked.source)):
            if not any(is_filled(column[i]) for column in cells.values()):
                checked.blank.add(i)
                checked.problems.pop(i, None)

    def _note_duplicates(
        self, checked: CheckedRows, parked: Mapping[int, ParkedRow] | None
    ) -> None:
        if parked is not None and (self._type.is_numbered or self._type.has_sections):
            self._take_given(checked, parked)
        if self._seen is None:
            return
        counting, places = checked.without(checked.problems, checked.blank, checked.left_out)
        lines = [checked.source[i].line for i in places]
        occurrences = self._seen.add(self._type.keys(counting), lines)
        if self._type.is_numbered and SEQUENCE not in self._headers:
            numbers: list[int | None] = [None] * len(checked.source)
            for i, (number, _) in zip(places, occurrences, strict=True):
                numbers[i] = number
            checked.values[SEQUENCE] = numbers
            return
        for i, line, (number, first) in zip(places, lines, occurrences, strict=True):
            if number > 1:
                checked.problems[i].append(
                    Problem(line=line, reason=same_as(self._type.row, first))
                )

    def _take_given(self, checked: CheckedRows, parked: Mapping[int, ParkedRow]) -> None:
        """Take what the first reading of parked rows found above them."""
        given = [json.loads(parked[row.line].person_key or "{}") for row in checked.source]
        for name in _GIVEN:
            if any(name in each for each in given) and name not in self._headers:
                checked.values[name] = [each.get(name) for each in given]

    def _find_bibs(
        self, checked: CheckedRows, known: Sequence[KnownPerson], *, counted: bool = False
    ) -> None:
        """Find the rows with a bib that another person has, and what was answered about it."""
        if self._bibs is None:
            return
        _, places = checked.without(checked.problems, checked.blank, checked.left_out)
        bibs = list(checked.values[BIB])
        lines = [row.line for row in checked.source]
        keys = {i: each.key for i, each in checked.people.items()}
        bearers = bearers_of(lines, bibs, checked.identities, keys, places)
        answers = self._bibs.match(list(bearers.values()), known, counted=counted)
        for i, answer in zip(bearers, answers, strict=True):
            if answer.waits:
                checked.waiting.add(i)
                checked.same_bib[i] = self._headers[BIB], bibs[i]
            elif answer.empty:
                bibs[i] = None
        checked.values[BIB] = bibs

    def _problem(self, line: int, name: str, cell: Cell, reason: str) -> Problem:
        return Problem(
            line=line,
            column=self._headers.get(name) or self._titles[name],
            value=readable(cell, VALUE_CHARACTERS) or None,
            reason=reason[:REASON_CHARACTERS],
        )


DOCFLOW: Final = "docflow"
"""Who leaves rows out that no person has looked at."""
REPEATED: Final = "repeats the header"
TOTAL: Final = "is a total: a word for totals in place of a name, and sums of the rows above"
FOOTER: Final = "is the footer of a printed page, as on other pages"
NO_NAME: Final = "holds one cell and no name; it is taken for a note"
NO_NAME_TOTAL: Final = "holds no name; it is taken for a total"
SUSPECT: Final = "looks like a total or a note; it is imported unless you leave it out"
ODD_NAME: Final = "holds an odd name; it is imported unless you leave it out"
NAME_ALONE: Final = "holds nothing but a name; it is imported unless you leave it out"
KEY_ALONE: Final = "holds nothing but a key; it is imported unless you leave it out"
REASONS: Final = (
    *(REPEATED, TOTAL, FOOTER, NO_NAME, NO_NAME_TOTAL, SUSPECT, ODD_NAME, NAME_ALONE, KEY_ALONE),
)
SHOWN: Final = 200
"""Rows whose cells are kept for a person to see; of further ones the line and the reason."""
_REMARKS: Final = 1_000
"""Rows with a remark that are kept."""
_CELLS: Final = 8
_CHARACTERS: Final = 60
_TOGETHER: Final = 1_000
"""Rows that are looked at together."""
_SAID: Final = MappingProxyType(
    {Left.HEADER: REPEATED, Left.TOTAL: TOTAL, Left.FOOTER: FOOTER, Left.HEADING: NO_NAME}
)

_Row = tuple[int, Sequence[Cell]]


class SkippedRows:
    """Finds the rows of a file that are no data, and those that may be none.

    Args:
        columns: What the columns of the file mean.
        row_keys: Fields that make a line a row, whatever else it holds, the first part first.
        is_list: The rows are a list of people: one of the fields is enough.
        keep: All rows are imported, unless a person leaves some out.
        fields: Fields of the import type.
    """

    def __init__(
        self,
        columns: Sequence[ColumnMapping],
        row_keys: Sequence[str],
        *,
        is_list: bool,
        keep: bool = False,
        fields: Sequence[FieldSpec] = (),
    ) -> None:
        self._is_list = is_list
        self._keep = keep
        titles = {column.index: column.header for column in columns}
        self._width = max(titles, default=-1) + 1
        self._titles = [titles.get(i) for i in range(self._width)]
        mapped = [each for each in columns if each.target and each.status != MappingStatus.IGNORED]
        places = {str(column.target): column.index for column in mapped}
        self._keys = [places[name] for name in row_keys if name in places]
        known = {each.name: each for each in fields}
        self._read = {
            place: under_title(known[name], titles[place])
            for name, place in places.items()
            if name in known and (known[name].words or known[name].kind is ColumnKind.DURATION)
        }
        self._names = frozenset(column.index for column in mapped if column.target in NAMES)
        self._used = frozenset(range(self._width) if is_list else places.values())
        self._lone = KEY_ALONE, frozenset(self._keys[:1])
        if is_list:
            self._lone = NAME_ALONE, self._names
        first = self._keys if is_list else self._keys[:1]
        self._search = KeyWordSearch(self._keys, first, either=is_list)
        self._sorter = self._sorter_of(KeyWords())
        self._next: list[_Row] = []
        self._rows = 0
        self._remarks: dict[str, list[_Row]] = {SUSPECT: [], self._lone[0]: [], ODD_NAME: []}
        self._found: dict[int, SkippedRow] = {}

    def _sorter_of(self, words: KeyWords) -> RowSorter:
        return RowSorter(
            *(self._keys, range(self._width), [self._titles], words),
            numbers={place: each.name for place, each in self._read.items()},
            is_list=self._is_list,
        )

    def add(self, line: int, cells: Sequence[Cell]) -> None:
        """Look at the next row."""
        self._next.append((line, cells))
        if len(self._next) >= _TOGETHER:
            self._look()

    def _look(self) -> None:
        some, self._next = self._next, []
        self._rows += len(some)
        columns = transpose([cells for _, cells in some], self._width)
        if self._keys:
            self._search.add([cells for _, cells in some], columns)
            self._sort(self._sorter, some, columns)
            odd = (some[i] for i in self._sorter.odd_keys(columns))
            suspect = (row for row in odd if not self._is_list or self._is_suspect(row[1]))
            self._remarks[SUSPECT] += islice(suspect, _REMARKS - len(self._remarks[SUSPECT]))
        reason, lone = self._lone
        for row in some:
            filled = {i for i, cell in enumerate(row[1]) if is_filled(cell)}
            used = filled & self._used
            if len(self._remarks[reason]) < _REMARKS and used and used <= lone:
                self._remarks[reason].append(row)
            names = (str(row[1][i]) for i in sorted(self._names & filled))
            if len(self._remarks[ODD_NAME]) < _REMARKS and any(map(remark_on_name, names)):
                self._remarks[ODD_NAME].append(row)

    def _is_suspect(self, cells: Sequence[Cell]) -> bool:
        """Whether a word for totals or a footer is the only key, and no text stands beside it."""
        filled = [i for i, cell in enumerate(cells) if is_filled(cell)]
        keys = [i for i in filled if i in self._keys]
        if len(keys) > 1 or (footer_of(str(cells[keys[0]])) is not None and len(filled) > 1):
            return False
        return not any(is_text(cells[i]) for i in filled if i not in self._keys)

    def _sort(
        self, sorter: RowSorter, rows: Sequence[_Row], columns: Sequence[Sequence[Cell]]
    ) -> None:
        values = {
            each.name: read_cells(each, columns[place], hours_of(columns[place]))[0]
            for place, each in self._read.items()
        }
        for i, left in sorter.sort(rows, columns, values).items():
            cells = rows[i][1]
            is_named = any(is_filled(cells[place]) for place in self._keys if place < len(cells))
            is_nameless_total = left is Left.TOTAL and not is_named
            self._note(rows[i], NO_NAME_TOTAL if is_nameless_total else _SAID[left])

    def found(self, rows: Iterable[_Row]) -> Sequence[SkippedRow]:
        """What was found, by line.

        Args:
            rows: Line and cells of all rows again, from the first.
        """
        self._look()
        if words := self._search.found():
            sorter, all_rows = self._sorter_of(words), iter(rows)
            while some := list(islice(all_rows, _TOGETHER)):
                self._sort(sorter, some, transpose([cells for _, cells in some], self._width))
        if 2 * len(lone := self._remarks[self._lone[0]]) >= self._rows:
            lone.clear()
        for reason, noted in self._remarks.items():
            for row in noted:
                self._note(row, reason, is_skipped=False)
        return [self._found[line] for line in sorted(self._found)]

    def _note(self, row: _Row, reason: str, *, is_skipped: bool = True) -> None:
        line, cells = row
        if line in self._found:
            return
        shown: list[str] = []
        if len(self._found) < SHOWN:
            texts = (readable(cell, _CHARACTERS) for cell in cells)
            shown = [text for text in texts if text][:_CELLS]
        self._found[line] = SkippedRow(line, reason, is_skipped and not self._keep, shown)
