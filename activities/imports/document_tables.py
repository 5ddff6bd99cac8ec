"""The tables of a document before their rows are validated: which, and how they are written."""

from bisect import bisect_right
from collections import Counter
from collections.abc import Mapping, Sequence
from contextlib import ExitStack, closing
from dataclasses import replace
from itertools import chain, islice
from pathlib import Path
from typing import Final

from activities.imports.column_table import ColumnTable
from activities.imports.document_table import (
    DocumentTable,
    Rows,
    below,
    fields_of,
    refuse_keys_alone,
    refuse_lines_of_several,
)
from activities.imports.kept_rows import KeptRows
from activities.imports.sheet_keys import SheetKeys
from activities.seen_keys import SeenKeys
from adapters.ports import TableBook, TableSource, UnreadableDocument
from contracts.imports import TableMessage
from domain.errors import InvalidDocument
from domain.imports.findings import Findings, HiddenParts
from domain.imports.header import HEADER_WITHIN, TableHeader, find_header, names_of
from domain.imports.memory import ReportMemory, read_memory
from domain.imports.sheets import (
    FoundSheet,
    choose_sheets,
    conflict_between,
    fitting_instead,
    left_sheets,
)
from domain.imports.survey import ReadingOptions, Survey
from domain.imports.tables import TableSpec
from domain.imports.validation import Place
from domain.tabular.columns import NotPlain
from domain.tabular.fields import normalise
from domain.tabular.notations import Notation
from domain.tabular.rows import LEFT_OUT_SHEET, MEMORY_SHEET
from domain.tabular.values import column_letters

PART_ROWS: Final = 5_000
"""Rows that are looked at together."""


class DocumentTables:
    """Finds the tables that a message means and looks at all of their rows.

    Attributes:
        memory: What is to be remembered in a report about this document.

    Args:
        book: The document.
        message: What to import.
        spec: What the table holds.
        folder: Scratch folder of the step.
        findings: Told what is left out.
        held: Closes what is opened for the reading.
        by_columns: Try to read the rows by columns.
    """

    def __init__(
        self,
        book: TableBook,
        message: TableMessage,
        spec: TableSpec,
        folder: Path,
        findings: Findings,
        held: ExitStack,
        *,
        by_columns: bool = False,
    ) -> None:
        self._held = held
        self._by_columns = by_columns
        self._book = book
        self._message = message
        self._spec = spec
        self._folder = folder
        self._findings = findings
        carried = self._carried()
        self._columns = {**carried.columns, **message.map}
        self._names: Mapping[str, str] = names_of(self._columns, spec)
        self._options = _options(message, carried)
        self._rest: Rows | None = None
        self.memory = ReportMemory()

    def tables(self) -> list[DocumentTable]:
        """The tables to read, in their order.

        Raises:
            UnreadableDocument: There is no sheet of the name that the message gives.
            InvalidDocument: No sheet holds the table, or it is for a person to say which.
        """
        found = self._found()
        chosen = choose_sheets(found) if self._message.sheet is None else self._named(found)
        self._findings.sheets_left = left_sheets(found, chosen)
        self._findings.sheets_read = [sheet.name or "" for sheet in chosen]
        tables = _placed([self._survey(sheet, len(chosen) == 1) for sheet in chosen])
        if sum(sheet.header is not None and not sheet.hidden for sheet in found) > 1:
            tables = [
                replace(each, place=replace(each.place, section=each.sheet.name or ""))
                for each in tables
            ]
        refuse_keys_alone(self._spec, self._message, tables)
        if len(tables) > 1:
            refuse_lines_of_several(self._message.keep_lines, tables)
            self._compare(tables)
        self._findings.titles = {each.place.sheet: each.surveyed.header.titles for each in tables}
        self._findings.unused = [unused for each in tables for unused in each.surveyed.unused]
        self._findings.hidden = [
            replace(each.hidden, sheet=each.sheet.name if len(tables) > 1 else None)
            for each in tables
        ]
        self._findings.garbled = {
            text: said for each in tables for text, said in each.surveyed.garbled.items()
        }
        self._findings.parts = {
            title: parts for each in tables for title, parts in each.surveyed.parts.items()
        }
        first = tables[0].surveyed
        self.memory = ReportMemory(first.notations, self._columns, first.percentages, first.dotted)
        return tables

    def _carried(self) -> ReportMemory:
        """What a report remembers of the document that it is about."""
        for sheet in self._book.sheets:
            if sheet.hidden and sheet.name == MEMORY_SHEET:
                return read_memory(cells for _, cells in self._book.table(sheet.name).rows())
        return ReportMemory()

    def _found(self) -> list[FoundSheet]:
        if not self._book.sheets:
            return [self._look(None, hidden=False)]
        is_report = any(sheet.hidden and sheet.name == MEMORY_SHEET for sheet in self._book.sheets)
        return [
            self._look(sheet.name, hidden=sheet.hidden)
            for sheet in self._book.sheets
            if not (sheet.hidden and sheet.name == MEMORY_SHEET)
            and not (is_report and sheet.name == LEFT_OUT_SHEET)
        ]

    def _look(self, name: str | None, *, hidden: bool) -> FoundSheet:
        rows = self._book.table(name).rows()
        top = list(islice(rows, HEADER_WITHIN))
        if not self._book.sheets:
            # The only table of a text: the second look continues with these records.
            self._rest = rows
        try:
            header = find_header(top, self._spec, name, self._names)
        except InvalidDocument as error:
            return FoundSheet(name, hidden, top, why_not=str(error))
        return FoundSheet(name, hidden, top, header)

    def _named(self, found: Sequence[FoundSheet]) -> list[FoundSheet]:
        wanted = (self._message.sheet or "").strip().casefold()
        for sheet in found:
            if sheet.name is None or sheet.name.casefold() == wanted:
                if sheet.header is None:
                    others = [other for other in found if other is not sheet and other.header]
                    raise InvalidDocument(f"{sheet.why_not}{fitting_instead(others)}")
                return [sheet]
        names = ", ".join(repr(sheet.name) for sheet in found[:20])
        raise UnreadableDocument(
            f"the workbook has no sheet {self._message.sheet!r}; it has {names}"
        )

    def _survey(self, sheet: FoundSheet, keep: bool) -> DocumentTable:
        """Look at all rows of a sheet; `keep` few rows in memory for the reading."""
        assert sheet.header is not None
        source = self._book.table(sheet.name)
        if self._by_columns and (table := self._plain(sheet, source)) is not None:
            return table
        survey = Survey(self._spec, sheet.header, date1904=source.date1904)
        every = source.rows() if self._rest is None else chain(sheet.top, self._rest)
        rows = below(every, sheet.header.line)
        is_workbook = bool(self._book.sheets)
        kept = KeptRows(self._folder, self._held, memory=keep, aside=is_workbook)
        last_line = sheet.header.line
        while part := list(islice(rows, PART_ROWS)):
            survey.add(part)
            last_line = part[-1][0]
            kept.add(part)
        surveyed = survey.finish(self._options, source.hidden_columns)
        hidden = _hidden_parts(surveyed.header, source)
        merges = list(source.merges)
        return DocumentTable(sheet, source, surveyed, merges, kept, last_line, hidden=hidden)

    def _plain(self, sheet: FoundSheet, source: TableSource) -> DocumentTable | None:
        """Look at the columns of a text; None: its rows have to be looked at."""
        assert sheet.header is not None
        width = fields_of(sheet.header, source)
        spec, options = self._spec, self._options
        try:
            columns = ColumnTable(
                *(source, sheet, width, self._message, spec, options, self._folder),
                self._findings.cases,
            )
        except NotPlain:
            return None
        self._held.callback(columns.close)
        surveyed = columns.surveyed
        last_line = sheet.header.line + surveyed.rows
        return DocumentTable(*(sheet, source, surveyed, (), None, last_line), by_columns=columns)

    def _compare(self, tables: Sequence[DocumentTable]) -> None:
        """Sheets may share keys only with the same values.

        Raises:
            InvalidDocument: They do with different ones.
        """
        with closing(SheetKeys(self._folder)) as keys:
            for number, table in enumerate(tables):
                self._collect(number, table, keys)
            overlap = keys.overlap()
        if overlap is None:
            return
        first, second = tables[overlap.first], tables[overlap.second]
        lines = (
            overlap.first_line - first.place.offset,
            overlap.second_line - second.place.offset,
        )
        raise conflict_between(first.sheet.name or "", second.sheet.name or "", overlap.keys, lines)

    def _collect(self, number: int, table: DocumentTable, keys: SheetKeys) -> None:
        spec = self._spec
        with closing(SeenKeys(self._folder)) as seen:
            validator = table.validator(self._message, spec, seen, Findings())
            own = [validator.columns.index(name) for name in validator.counted]
            rest = [i for i, n in enumerate(validator.columns) if n not in spec.natural_key]
            rows = table.rows(spec, Counter())
            while part := list(islice(rows, PART_ROWS)):
                good = validator.validate(part)
                keys.add(
                    number,
                    good.lines,
                    [tuple(row[i] for i in own) for row in good.rows],
                    [tuple(row[i] for i in rest) for row in good.rows],
                )


def _hidden_parts(header: TableHeader, source: TableSource) -> HiddenParts:
    used = sorted({*header.positions.values()} & source.hidden_columns)
    first = bisect_right(source.hidden_rows, header.line)
    return HiddenParts(
        rows=source.hidden_rows[first:],
        columns=[header.titles[place] or f"column {column_letters(place)}" for place in used],
    )


def _placed(tables: Sequence[DocumentTable]) -> list[DocumentTable]:
    """Several tables of a document with the places of their rows in it."""
    if len(tables) == 1:
        return list(tables)
    titles = tables[0].surveyed.header.titles
    offset = 0
    placed: list[DocumentTable] = []
    for table in tables:
        layout = _layout(tables[0].surveyed.header, table.surveyed.header)
        place = Place(table.sheet.name, offset, layout, titles)
        placed.append(replace(table, place=place))
        offset += table.last_line
    return placed


def _layout(first: TableHeader, other: TableHeader) -> list[int | None] | None:
    """Where another sheet has each column of the first: by field, then by title."""
    if first.titles == other.titles and first.positions == other.positions:
        return None
    fields = {position: name for name, position in first.positions.items()}
    taken = set(other.positions.values())
    by_title = {
        normalise(title): position
        for position, title in reversed([*enumerate(other.titles)])
        if position not in taken
    }
    return [
        other.positions[fields[position]] if position in fields else by_title.get(normalise(title))
        for position, title in enumerate(first.titles)
    ]


def _options(message: TableMessage, carried: ReportMemory) -> ReadingOptions:
    numbers = {".": Notation.POINT, ",": Notation.COMMA, None: None}[message.decimal]
    dates = {"dmy": Notation.DAY_FIRST, "mdy": Notation.MONTH_FIRST, None: None}
    return ReadingOptions(
        numbers,
        dates[message.date_order],
        carried.notations,
        carried.percentages,
        carried.dotted,
    )
