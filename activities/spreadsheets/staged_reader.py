"""Staged rows on their way into chunks; blocking."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import ExitStack, closing
from dataclasses import dataclass, field
from itertools import islice
from pathlib import Path
from typing import Final

from activities.seen_keys import SeenKeys
from activities.spreadsheets.file_people import FilePeople
from activities.spreadsheets.staged_rows import StagedRows
from contracts.spreadsheets import ColumnMapping
from domain.spreadsheets.bibs import BibMatcher
from domain.spreadsheets.edits import Edits
from domain.spreadsheets.entities import ImportContext
from domain.spreadsheets.fields import SheetField
from domain.spreadsheets.people import KnownPerson, PeopleQuery
from domain.spreadsheets.people_matching import PeopleAnswers, PeopleMatcher
from domain.spreadsheets.records import ParkedRow, SheetChunk, SheetMark
from domain.spreadsheets.skipped_rows import DOCFLOW
from domain.spreadsheets.types.base import SheetType
from domain.spreadsheets.validation import (
    CheckedRows,
    RowValidator,
    SourceRow,
    ValidatedRows,
)
from domain.spreadsheets.value_book import ValueBook
from domain.tabular.fields import ColumnKind
from domain.tabular.notations import Notation
from domain.tabular.times import hours_of

CHUNK_ROWS: Final = 5_000
"""Rows of one transaction."""
HEAD_ROWS: Final = 1_000
"""Rows that settle how the columns of a file write numbers and dates."""


@dataclass(frozen=True, slots=True)
class Plan:
    """How the rows of an import are understood.

    Attributes:
        sheet_type: What they are.
        fields: Every field, for this organisation.
        columns: What each column means.
        context: Context of the import.
        book: The meaning of values.
        people: What is decided about people.
        edits: Corrections of a review; None: there was none.
    """

    sheet_type: SheetType
    fields: Sequence[SheetField]
    columns: Sequence[ColumnMapping]
    context: ImportContext
    book: ValueBook
    people: PeopleAnswers = field(default_factory=PeopleAnswers)
    edits: Edits | None = None

    def edited(self, rows: Iterator[SourceRow]) -> Iterator[SourceRow]:
        """Rows with the corrections of the review."""
        if not self.edits:
            return rows
        cells = self.edits.cells
        return (row._replace(cells=cells(row.line, row.cells)) for row in rows)

    def excluded(self, line: int) -> str | None:
        """Why a row is left out; None: it is not."""
        if self.edits is None or line not in self.edits.excluded:
            return None
        reason, by = self.edits.reasons.get(line, ""), self.edits.excluded[line]
        return reason if by == DOCFLOW else f"left out in the review by {by}"

    @property
    def _notations(self) -> Mapping[str, Notation]:
        """Field of each column whose notation a person has chosen."""
        chosen = {} if self.edits is None else self.edits.notations
        return {str(each.target): chosen[each.id] for each in self.columns if each.id in chosen}

    @property
    def times(self) -> Mapping[str, int]:
        """Field and place of each column of times."""
        kinds = {each.name: each.kind for each in self.fields}
        return {
            str(each.target): each.index
            for each in self.columns
            if kinds.get(str(each.target)) is ColumnKind.DURATION
        }

    def hours(self, rows: Iterable[SourceRow]) -> Mapping[str, int]:
        """The most hours that times of each column write out, in all rows as they are edited.

        The first rows do not tell: whether 3:45 is in question depends on any other row.
        """
        found: dict[str, int] = {}
        times, rows = self.times, self.edited(iter(rows))
        while times and (some := list(islice(rows, CHUNK_ROWS))):
            for name, place in times.items():
                cells = [row.cells[place] for row in some if place < len(row.cells)]
                if (hours := hours_of(cells)) is not None:
                    found[name] = max(hours, found.get(name, hours))
        return found

    def validator(
        self,
        seen: SeenKeys | None,
        head: Sequence[SourceRow],
        file: FilePeople | None,
        bibs: SeenKeys | None = None,
        hours: Mapping[str, int] | None = None,
    ) -> RowValidator:
        """A validator for these rows.

        Args:
            seen: The natural keys of the rows before.
            head: The first rows.
            file: The people of the rows before.
            bibs: The bibs of the rows before; None: nothing is asked about bibs.
            hours: Of `hours`; None: the first rows tell.
        """
        return RowValidator(
            self.sheet_type,
            self.fields,
            self.columns,
            self.context,
            self.book,
            seen,
            head,
            PeopleMatcher(self.people, file),
            None if bibs is None else BibMatcher(self.people.bibs, bibs),
            hours,
            self._notations,
        )


@dataclass(frozen=True, slots=True)
class ReadRows:
    """Rows that are read and checked, but not settled: their people have to be looked up.

    Attributes:
        checked: The rows.
        query: What to look up; None: nothing.
        cursor: Rows consumed once they are in.
        offset: Bytes of the staged file consumed; in later rounds line of the last row.
        parked: The rows as they were parked; None: they are read for the first time.
        excluded: Rows that are left out, and why.
    """

    checked: CheckedRows
    query: PeopleQuery | None
    cursor: int
    offset: int
    parked: Mapping[int, ParkedRow] | None
    excluded: Sequence[tuple[int, str]] = ()


class SheetReader:
    """Reads the rows of one round, chunk by chunk.

    In round 0 every row of the file, behind those that are in; later the rows that were parked.
    The same rows give the same chunks whenever they are read.

    Args:
        path: The staged file.
        plan: How rows are understood.
        mark: How far this round has come.
        parked: Rows to read; None: all of the file.
        chunk_rows: Rows of a chunk.
    """

    def __init__(
        self,
        path: Path,
        plan: Plan,
        mark: SheetMark,
        parked: Iterator[ParkedRow] | None = None,
        chunk_rows: int = CHUNK_ROWS,
    ) -> None:
        self._path = path
        self._plan = plan
        self._round = mark.round
        self._number = mark.chunk
        self._wanted = mark.cursor
        self._cursor = 0 if parked is None else mark.cursor
        self._parked = parked
        self._chunk_rows = chunk_rows
        self._waited: dict[int, ParkedRow] = {}
        self._held = ExitStack()
        self._rows: Iterator[SourceRow] = iter(())

    def open(self) -> None:
        """Open the file, and settle how it is written."""
        self._staged = self._held.enter_context(closing(StagedRows(self._path)))
        head = list(islice(self._plan.edited(self._staged.read()), HEAD_ROWS))
        # Of two parked rows of one key the second was refused when it was read first.
        seen = SeenKeys(self._path.parent) if self._parked is None else None
        file = FilePeople(self._path.parent) if self._parked is None else None
        # Of parked rows too: those that went in before are in the database.
        bibs = SeenKeys(self._path.parent)
        for each in filter(None, (seen, file, bibs)):
            self._held.callback(each.close)
        hours = self._plan.hours(self._staged.read())
        self._validator = self._plan.validator(seen, head, file, bibs, hours)
        if self._parked is None:
            self._rows = self._plan.edited(self._staged.read())
        else:
            waited = self._staged.at(row.offset for row in self._noted(self._parked))
            self._rows = self._plan.edited(waited)

    def close(self) -> None:
        """Close the file."""
        self._held.close()

    def pass_over(self) -> ReadRows | None:
        """The next rows that went in before, to be passed; None when there are no more."""
        left = min(self._chunk_rows, self._wanted - self._cursor)
        rows = list(islice(self._rows, left)) if left > 0 else []
        return self._read(rows, counted=True) if rows else None

    def passed(self, read: ReadRows, known: Sequence[KnownPerson]) -> None:
        """Learn what later rows can be duplicates of."""
        self._validator.pass_checked(read.checked, known)

    def read(self) -> ReadRows | None:
        """The next rows, or None when there are none."""
        rows = list(islice(self._rows, self._chunk_rows))
        return self._read(rows) if rows else None

    def chunk(self, read: ReadRows, known: Sequence[KnownPerson] = ()) -> SheetChunk:
        """What rows become, given the people that their query found."""
        validated = self.settle(read, known)
        chunk = SheetChunk(
            number=self._number,
            round=self._round,
            cursor=read.cursor,
            offset=read.offset,
            lines=validated.lines,
            main=validated.main,
            targets=validated.targets,
            errors=validated.errors,
            skipped=sorted([*validated.skipped, *read.excluded]),
            parked=validated.parked,
            found=validated.found,
        )
        self._number += 1
        return chunk

    def settle(self, read: ReadRows, known: Sequence[KnownPerson]) -> ValidatedRows:
        """Find out whom rows are about, and what they become."""
        return self._validator.settle(read.checked, known, read.parked)

    def _read(self, rows: Sequence[SourceRow], *, counted: bool = False) -> ReadRows:
        self._cursor += len(rows)
        last = rows[-1].line
        reasons = ((row.line, self._plan.excluded(row.line)) for row in rows)
        excluded = {line: reason for line, reason in reasons if reason is not None}
        if excluded:
            rows = [row for row in rows if row.line not in excluded]
        checked = self._validator.check(rows, counted=counted)
        is_first = self._parked is None
        return ReadRows(
            checked,
            self._validator.query(checked),
            self._cursor,
            self._staged.position if is_first else last,
            None if is_first else {row.line: self._waited.pop(row.line) for row in rows},
            sorted(excluded.items()),
        )

    def _noted(self, parked: Iterator[ParkedRow]) -> Iterator[ParkedRow]:
        for row in parked:
            self._waited[row.line] = row
            yield row
