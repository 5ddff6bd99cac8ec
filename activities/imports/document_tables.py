"""The tables of a document before their rows are validated: which, and how they are written."""

import hashlib
from bisect import bisect_right
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack, closing
from dataclasses import dataclass, field, replace
from datetime import date
from itertools import chain, dropwhile, islice
from pathlib import Path
from typing import Any, Final, NamedTuple

from activities.imports.column_table import ColumnTable, KeptRows
from activities.shared.scratch import ScratchDatabase, SeenKeys
from adapters.ports.documents import Book, Table
from adapters.ports.errors import UnreadableDocument
from workflows.imports.column_scan import (
    ReadingOptions,
    Survey,
    Surveyed,
)
from workflows.imports.findings import Findings, HiddenParts, ReportMemory, read_memory
from workflows.imports.header import (
    HEADER_WITHIN,
    TableHeader,
    find_header,
    names_of,
    refuse_unknown_titles,
)
from workflows.imports.messages import EstimationMasterMessage, Strategy, TableMessage
from workflows.imports.row_classification import (
    FoundSheet,
    choose_sheets,
    conflict_between,
    fitting_instead,
    left_sheets,
    sorter_of,
)
from workflows.imports.types import TableSpec, scope_of
from workflows.imports.validation import Place, RowValidator
from workflows.shared.cells import (
    LEFT_OUT_SHEET,
    MEMORY_SHEET,
    Cell,
    Merge,
    column_letters,
    filled_down,
    is_blank,
    is_filled,
    merged_down,
)
from workflows.shared.errors import InvalidDocument
from workflows.shared.fields import NUMBERS, normalise
from workflows.shared.notations import Notation
from workflows.shared.packed_rows import NotPlain

_MASK: Final = (1 << 40) - 1
"""Sums of as many as a million of these fit into SQLite's integers."""
_TABLE: Final = "CREATE TABLE keys (key INTEGER, sheet INTEGER, line INTEGER, value INTEGER)"


class Overlap(NamedTuple):
    """Two sheets that hold keys with different values."""

    first: int
    second: int
    keys: int
    first_line: int
    second_line: int


class SheetKeys:
    """Collects the keys of sheets with a digest of their values; to be closed.

    Args:
        folder: Scratch folder of the step.
    """

    def __init__(self, folder: Path) -> None:
        self._disk = ScratchDatabase.open(folder, "sheet-keys-", _TABLE)
        self._connection = self._disk.connection

    def close(self) -> None:
        """Give the disk back."""
        self._disk.close()

    def add(
        self,
        sheet: int,
        lines: Sequence[int],
        keys: Sequence[tuple[Any, ...]],
        values: Sequence[tuple[Any, ...]],
    ) -> None:
        """Take the next rows of a sheet.

        Args:
            sheet: Number of the sheet.
            lines: Line number of each row.
            keys: Its key.
            values: Everything else of it.
        """
        rows = zip(map(_digest, keys), lines, map(_digest, values), strict=True)
        self._connection.executemany(
            "INSERT INTO keys VALUES (?, ?, ?, ?)",
            ((key, sheet, line, value & _MASK) for key, line, value in rows),
        )

    def overlap(self) -> Overlap | None:
        """The first two sheets that hold keys with different values; None: no sheets do."""
        self._connection.execute(
            "CREATE TEMP TABLE sums AS SELECT key, sheet, min(line) AS line, count(*) AS rows,"
            " sum(value) AS value FROM keys GROUP BY key, sheet"
        )
        self._connection.execute("CREATE INDEX temp.of_key ON sums (key)")
        row = self._connection.execute(
            "SELECT a.sheet, b.sheet, count(*), min(a.line), min(b.line) FROM sums a"
            " JOIN sums b ON a.key = b.key AND a.sheet < b.sheet"
            " WHERE a.value <> b.value OR a.rows <> b.rows"
            " GROUP BY a.sheet, b.sheet ORDER BY a.sheet, b.sheet LIMIT 1"
        ).fetchone()
        return None if row is None else Overlap(*row)


def _digest(parts: tuple[Any, ...]) -> int:
    text = "\x1f".join(map(str, parts)).encode("utf-8", "surrogatepass")
    return int.from_bytes(hashlib.blake2b(text, digest_size=8).digest(), "big", signed=True)


Rows = Iterator[tuple[int, list[Cell]]]


@dataclass(frozen=True, slots=True)
class DocumentTable:
    """One table of a document, looked at as a whole.

    Attributes:
        sheet: The sheet and its header.
        source: Its rows.
        surveyed: How they are written.
        merges: Merged cells of the sheet.
        kept: The rows, where they need not be read again; None: they are read by columns.
        last_line: Line number of the last one.
        place: Where they stand in the document.
        by_columns: Reads the rows by columns, as far as they are plain enough.
        hidden: What of it the user's program does not show.
    """

    sheet: FoundSheet
    source: Table
    surveyed: Surveyed
    merges: Sequence[Merge]
    kept: KeptRows | None
    last_line: int
    place: Place = field(default_factory=Place)
    by_columns: ColumnTable | None = None
    hidden: HiddenParts = field(default_factory=HiddenParts)

    @property
    def header_line(self) -> int:
        """Line of the header's last row."""
        return self.surveyed.header.line

    @property
    def _width(self) -> int:
        """Fields of a text table's header; 0: it is a sheet."""
        return fields_of(self.surveyed.header, self.source)

    def rows(self, spec: TableSpec, filled: Counter[str]) -> Rows:
        """The rows below the header, merged cells filled down."""
        header = self.surveyed.header
        kept = None if self.kept is None else self.kept.rows()
        rows = kept or below(self.source.rows(), header.line)
        begins = merged_down(self.merges, header.line)
        if not begins:
            return iter(rows)
        titles = {
            place: header.titles[place]
            for name, place in header.positions.items()
            if spec.by_name[name].kind not in NUMBERS
        }

        def fills(place: int, value: Cell) -> bool:
            if place in titles:
                filled[titles[place]] += 1
            return place in titles

        return filled_down(rows, begins, fills)

    def validator(
        self,
        message: TableMessage,
        spec: TableSpec,
        seen: SeenKeys,
        findings: Findings,
        *,
        keep_cells: bool = False,
        pack: bool = False,
    ) -> RowValidator:
        """What checks its rows."""
        return RowValidator(
            spec,
            scope_of(message, spec),
            self.surveyed,
            sorter_of(spec, self.surveyed.header, self.surveyed.keys),
            seen,
            findings,
            date1904=self.source.date1904,
            place=replace(self.place, width=self._width),
            keeps=_keeps(message, self.sheet.name, findings),
            keep_cells=keep_cells,
            pack=pack,
            strategy=message.strategy,
        )


def _keeps(message: TableMessage, sheet: str | None, findings: Findings) -> Callable[[int], bool]:
    """Whether a person keeps a row of a sheet that is no data; such lines are noted."""
    wanted = {text.casefold(): text for text in message.keep_lines}

    def keeps(line: int) -> bool:
        names = (str(line), f"{sheet}!{line}".casefold())
        found = {wanted[name] for name in names if name in wanted}
        findings.kept_lines |= found
        return bool(found) or message.left_out == "keep"

    return keeps


def refuse_lines_of_several(lines: Sequence[str], tables: Sequence[DocumentTable]) -> None:
    """Refuse lines to keep that stand on several sheets.

    Raises:
        InvalidDocument: There is one.
    """
    for line in filter(str.isdecimal, lines):
        sheets = [
            f"{table.sheet.name}!{line}"
            for table in tables
            if table.header_line < int(line) <= table.last_line
        ]
        if len(sheets) > 1:
            raise InvalidDocument(
                f"keep_lines: line {line} stands on {len(sheets)} sheets; write {sheets[0]!r} or "
                f"{sheets[1]!r}"
            )


def refuse_keys_alone(
    spec: TableSpec, message: TableMessage, tables: Sequence[DocumentTable]
) -> None:
    """Refuse a document of which no row with a key fills the field that its table needs.

    The rows of a report that comes back were part of such a document.

    Raises:
        InvalidDocument: There are rows, none does, and the message does not permit it.
    """
    needed = spec.needed
    is_permitted = isinstance(message, EstimationMasterMessage) and message.without_quantities
    if needed is None or is_permitted or message.strategy is Strategy.UPDATE_ONLY:
        return
    for table in tables:
        if table.surveyed.header.wrong is not None:
            return
        positions = table.surveyed.header.positions
        places = (positions[spec.item(positions)], positions.get(needed, -1))
        for _, cells in table.rows(spec, Counter()) if places[1] >= 0 else ():
            if max(places) < len(cells) and all(_is_said(cells[place]) for place in places):
                return
    if any(table.surveyed.rows for table in tables):
        raise InvalidDocument(
            f"no row with its {spec.item(spec.key)} has a {needed}. Name the column that holds it "
            "with map, or put figures that stand one row below their item beside it. If the list "
            f"has no {needed}, set without_quantities (--set without_quantities=true)"
        )


def _is_said(cell: Cell) -> bool:
    return is_filled(cell) and not is_blank(cell)


def fields_of(header: TableHeader, source: Table) -> int:
    """Fields of a text table's header; 0: it is a sheet."""
    lines = range(header.line - len(header.rows) + 1, header.line + 1)
    return max((source.widths.get(line, 0) for line in lines), default=0)


def below(rows: Rows, line: int) -> Rows:
    """The rows below a line."""
    return dropwhile(lambda row: row[0] <= line, rows)


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
        today: Day of the import.
        by_columns: Try to read the rows by columns.
    """

    def __init__(
        self,
        book: Book,
        message: TableMessage,
        spec: TableSpec,
        folder: Path,
        findings: Findings,
        held: ExitStack,
        *,
        today: date,
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
        self._options = replace(_options(message, carried), today=today)
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
        refuse_unknown_titles(self._message.map, [each.surveyed.header for each in tables])
        unused = [each for each in self._findings.unused if not each.dropped]
        if self._spec.unmapped == "refuse" and unused:
            listed = ", ".join(each.name for each in unused[:20])
            raise InvalidDocument(
                f"columns that mean no field: {listed}. Say what each means (--map HEADER=FIELD), "
                "or that it is not used (--map HEADER=-)"
            )
        if self._spec.unmapped == "keep":
            self._findings.kept, self._findings.unused = self._findings.unused, []
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

    def _plain(self, sheet: FoundSheet, source: Table) -> DocumentTable | None:
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


def _hidden_parts(header: TableHeader, source: Table) -> HiddenParts:
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
