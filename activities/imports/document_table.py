"""One table of a document: its rows, and what must be so about several of them."""

from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from itertools import dropwhile

from activities.imports.column_table import ColumnTable
from activities.imports.kept_rows import KeptRows
from activities.seen_keys import SeenKeys
from adapters.ports import TableSource
from contracts.imports import EstimationMasterMessage, Strategy, TableMessage
from domain.errors import InvalidDocument
from domain.imports.findings import Findings, HiddenParts
from domain.imports.header import TableHeader
from domain.imports.lines import LineSorter
from domain.imports.sheets import FoundSheet
from domain.imports.survey import Surveyed
from domain.imports.tables import TableSpec, scope_of
from domain.imports.validation import Place, RowValidator
from domain.tabular.blanks import is_blank
from domain.tabular.fields import ColumnKind
from domain.tabular.merged import filled_down, merged_down
from domain.tabular.rows import Cell, Merge, is_filled

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
    source: TableSource
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
            if spec.by_name[name].kind not in (ColumnKind.DECIMAL, ColumnKind.INTEGER)
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
            scope_of(message),
            self.surveyed,
            LineSorter(spec, self.surveyed.header, self.surveyed.keys),
            seen,
            findings,
            date1904=self.source.date1904,
            place=replace(self.place, width=self._width),
            keeps=_keeps(message, self.sheet.name, findings),
            keep_cells=keep_cells,
            pack=pack,
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
        places = (positions[spec.key[0]], positions.get(needed, -1))
        for _, cells in table.rows(spec, Counter()) if places[1] >= 0 else ():
            if max(places) < len(cells) and all(_is_said(cells[place]) for place in places):
                return
    if any(table.surveyed.rows for table in tables):
        raise InvalidDocument(
            f"no row with its {spec.key[0]} has a {needed}. Name the column that holds it with "
            "map, or put figures that stand one row below their item beside it. If the list has "
            f"no {needed}, set without_quantities (--set without_quantities=true)"
        )


def _is_said(cell: Cell) -> bool:
    return is_filled(cell) and not is_blank(cell)


def fields_of(header: TableHeader, source: TableSource) -> int:
    """Fields of a text table's header; 0: it is a sheet."""
    lines = range(header.line - len(header.rows) + 1, header.line + 1)
    return max((source.widths.get(line, 0) for line in lines), default=0)


def below(rows: Rows, line: int) -> Rows:
    """The rows below a line."""
    return dropwhile(lambda row: row[0] <= line, rows)
