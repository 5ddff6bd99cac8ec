"""Validates rows of a spreadsheet: which are written, which wait, which are rejected and why."""

from collections import defaultdict
from collections.abc import Collection, Mapping, Sequence
from dataclasses import replace
from typing import Any, Final

from contracts.problems import Problem
from contracts.spreadsheets import ColumnMapping, MappingStatus
from domain.spreadsheets.bibs import BIB, BibMatcher, bearers_of
from domain.spreadsheets.checked_rows import CheckedRows, SourceRow, ValidatedRows
from domain.spreadsheets.entities import ImportContext
from domain.spreadsheets.fields import SheetField
from domain.spreadsheets.people import IDENTITY, PERSON, Identity, KnownPerson, PeopleQuery
from domain.spreadsheets.people_matching import LEFT_OUT, PeopleMatcher, Resolved
from domain.spreadsheets.records import ParkedRow
from domain.spreadsheets.types.base import SheetType
from domain.spreadsheets.types.people import IDENTIFYING, identities
from domain.spreadsheets.value_book import IGNORED, OPEN, TO_CREATE, ValueBook
from domain.tabular.conversion import Flaw, Notations, read_cells, settle_notations, transpose
from domain.tabular.notations import Notation
from domain.tabular.occurrences import KeyOccurrences
from domain.tabular.rows import Cell, is_filled
from domain.tabular.values import readable

__all__ = ["CheckedRows", "RowValidator", "SourceRow", "ValidatedRows"]

VALUE_CHARACTERS: Final = 200
REASON_CHARACTERS: Final = 500
NOTHING_MAPPED: Final = "holds nothing in the mapped columns"

_MISSING: Final = Flaw("is missing")
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
        hours: The most hours that times of each field write out, in any row; None: `head` tells.
        notations: Of fields whose notation a person has chosen; `head` tells of the others.
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
        people: PeopleMatcher | None = None,
        bibs: BibMatcher | None = None,
        hours: Mapping[str, int] | None = None,
        notations: Mapping[str, Notation] | None = None,
    ) -> None:
        by_name = {each.name: each for each in fields}
        mapped = [
            column
            for column in columns
            if column.target in by_name and column.status is not MappingStatus.IGNORED
        ]
        self._type = sheet_type
        self._fields = fields
        self._by_name = by_name
        self._mapped = {column.index: by_name[str(column.target)] for column in mapped}
        self._headers = {str(column.target): column.header for column in mapped}
        self._titles = {each.name: each.title for each in fields}
        self._context = context
        self._book = book
        self._seen = seen
        self._people = people if sheet_type.is_about_people else None
        bib = by_name.get(BIB)
        has_bibs = bib is not None and bib.target == f"{sheet_type.main}.bib"
        is_mapped = self._people is not None and has_bibs and BIB in self._headers
        self._bibs = bibs if is_mapped else None
        self._width = max(self._mapped, default=-1) + 1
        first = transpose([row.cells for row in head], self._width)
        found = settle_notations({e.name: (e.spec, first[i]) for i, e in self._mapped.items()})
        self._written: Notations = {**found, **(hours or {}), **(notations or {})}

    def validate(self, rows: Sequence[SourceRow]) -> ValidatedRows:
        """Take the next rows, of people who are in no database."""
        return self.settle(self.check(rows))

    def check(self, rows: Sequence[SourceRow], *, counted: bool = False) -> CheckedRows:
        """Convert and check the next rows, as far as that needs no database.

        Args:
            rows: The rows.
            counted: They were taken before a restart: their values are not counted again.
        """
        checked = CheckedRows(rows)
        cells = self._convert(checked, self._mapped, counted=counted)
        self._note_missing(checked)
        self._apply_rule(cells, checked)
        self._set_blank_aside(cells, checked)
        if self._people is not None:
            checked.identities = self._identities(checked)
            checked.values[IDENTITY] = checked.identities
        return checked

    def check_cells(self, rows: Sequence[SourceRow], places: Collection[int]) -> CheckedRows:
        """Convert the cells of some columns, by place, and look at nothing beyond them."""
        checked = CheckedRows(rows)
        checked.flaws = defaultdict(list)
        mapped = {index: each for index, each in self._mapped.items() if index in places}
        self._convert(checked, mapped, counted=True)
        return checked

    def _convert(
        self, checked: CheckedRows, mapped: Mapping[int, SheetField], *, counted: bool
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
                values, flawed = read_cells(each.spec, column, written, today=today)
            else:
                values, flawed = self._refer(each, column, checked, counted)
            if flawed:
                self._note_flaws(each, values, column, checked)
            checked.values[name] = values
        return given

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
        self._note_duplicates(checked)
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
        self._note_duplicates(checked)
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
        if one is None:
            return ParkedRow(row.line, row.offset)
        return ParkedRow(row.line, row.offset, None if one.key else one.question, one.key)

    def _refer(
        self, field: SheetField, cells: Sequence[Cell], checked: CheckedRows, counted: bool
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
                    text = readable(cells[i], VALUE_CHARACTERS) or None
                    checked.open[i].append((self._headers[field.name], text))
        return values, field.required

    def _note_flaws(
        self, field: SheetField, values: list[Any], cells: Sequence[Cell], checked: CheckedRows
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

    def _set_blank_aside(self, cells: Mapping[str, Sequence[Cell]], checked: CheckedRows) -> None:
        """A row that holds something in other columns only is not an error."""
        demanding = any(each.required for each in self._mapped.values())
        for i in list(checked.problems) if demanding else range(len(checked.source)):
            if not any(is_filled(column[i]) for column in cells.values()):
                checked.blank.add(i)
                checked.problems.pop(i, None)

    def _note_duplicates(self, checked: CheckedRows) -> None:
        if self._seen is None:
            return
        counting, places = checked.without(checked.problems, checked.blank, checked.left_out)
        lines = [checked.source[i].line for i in places]
        occurrences = self._seen.add(self._type.keys(counting), lines)
        for i, line, (number, first) in zip(places, lines, occurrences, strict=True):
            if number > 1:
                checked.problems[i].append(Problem(line=line, reason=f"duplicate of row {first}"))

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
