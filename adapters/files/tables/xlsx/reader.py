"""XLSX workbooks, read as a stream: memory does not grow with the sheet.

Source: ECMA-376 part 1, SpreadsheetML, transitional and strict.
"""

import posixpath
from array import array
from collections.abc import Generator, Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from itertools import chain
from pathlib import Path

from adapters.files import limits
from adapters.files.package import DAMAGED, Package, XmlStream, open_package, parse
from adapters.files.tables.xlsx.cells import CellParser, Grammar, LineNumbers, Workbook
from adapters.files.tables.xlsx.values import SharedStrings, read_formats
from adapters.ports.documents import Book, Row, Table
from adapters.ports.errors import UnreadableDocument
from workflows.shared.cells import Merge, SheetInfo

_ROOT_RELATIONS = "_rels/.rels"
_TRUE = ("1", "true")
_LONGEST_ROW = limits.MB  # beyond it a row goes to the XML parser piece by piece


@contextmanager
def open_xlsx(path: Path, sheet: str | None = None) -> Generator[Table]:
    """Open one sheet of a workbook.

    Args:
        path: The file.
        sheet: Sheet name; when absent the first sheet that holds anything, a hidden one only
            where no visible one does.

    Raises:
        UnreadableDocument: The workbook is damaged or hostile, or has no such sheet.
    """
    with _opened(path) as (package, parts, workbook):
        name, used = _choose(package, parts, workbook, sheet)
        yield _table(package, parts, name, workbook, used)


@contextmanager
def open_xlsx_book(path: Path) -> Generator[Book]:
    """Open a workbook with all of its sheets.

    Raises:
        UnreadableDocument: The workbook is damaged or hostile.
    """
    with _opened(path) as (package, parts, workbook):
        sheets = [SheetInfo(name, name in parts.hidden) for name in parts.sheets]
        yield Book(sheets, lambda name: _table(package, parts, name, workbook))


@contextmanager
def _opened(path: Path) -> Generator[tuple[Package, "_Parts", Workbook]]:
    with open_package(path) as package, SharedStrings() as strings:
        parts = _Parts.read(package)
        if parts.strings is not None:
            strings.load(package.stream(parts.strings, limits.STRINGS_BYTES))
        styles = parts.styles
        workbook = Workbook(
            strings,
            read_formats(package.stream(styles, limits.SMALL_PART_BYTES)) if styles else [],
            parts.date1904,
            parts.calculates_on_load,
        )
        yield package, parts, workbook


def _table(
    package: Package,
    parts: "_Parts",
    name: str,
    workbook: Workbook,
    begun: "_Begun | None" = None,
) -> Table:
    """A sheet as a table; `begun`: a reading of it whose first row was looked at."""
    first = [] if begun is None else [begun]

    def rows() -> Iterator[Row]:
        if first:
            return first.pop().rest(table)
        return read_rows(
            package.stream(parts.sheets[name], limits.SHEET_BYTES),
            workbook,
            merges=table.merges,
            hidden=table.hidden_columns,
            hidden_rows=table.hidden_rows,
        )

    table = Table("xlsx", name, None, rows, date1904=workbook.date1904)
    table.is_hidden = name in parts.hidden
    return table


def xlsx_sheets(path: Path) -> list[SheetInfo]:
    """A workbook's worksheets in its order.

    Raises:
        UnreadableDocument: The workbook is damaged or hostile.
    """
    with open_package(path) as package:
        parts = _Parts.read(package)
        return [SheetInfo(name, name in parts.hidden) for name in parts.sheets]


def read_rows(
    blocks: Iterable[bytes],
    workbook: Workbook,
    *,
    use_grammar: bool = True,
    merges: list[Merge] | None = None,
    hidden: set[int] | None = None,
    hidden_rows: "array[int] | None" = None,
) -> Iterator[Row]:
    """Rows of a worksheet part that hold anything, in order.

    Args:
        blocks: The XML, in blocks of any size.
        workbook: Strings and formats.
        use_grammar: False leaves every row to the XML parser, with the same outcome.
        merges: Filled with the sheet's merged cells, which stand behind its rows.
        hidden: Filled with the positions of its hidden columns.
        hidden_rows: Filled with the line numbers of hidden rows among them.

    Raises:
        UnreadableDocument: The part is damaged or hostile.
    """
    lines = LineNumbers()
    parser = CellParser(workbook, lines, merges, hidden, hidden_rows)
    grammar = Grammar(workbook, lines, hidden_rows)
    buffer = b""
    for block in blocks:
        buffer = buffer + block if buffer else block
        position = 0
        while True:
            if use_grammar and parser.between_rows and parser.stream.encoding == "utf-8":
                position, rows = grammar.take(buffer, position)
                yield from rows
            end = _end_of_step(buffer, position, parser)
            if end < 0:
                break
            was_between_rows = parser.between_rows
            parser.stream.feed(buffer[position:end])
            if was_between_rows and parser.between_rows:
                grammar.learn(buffer[position:end])
            position = end
            yield from parser.take()
        buffer = buffer[position:]
        if len(buffer) > _LONGEST_ROW:
            parser.stream.feed(buffer)
            buffer = b""
            yield from parser.take()
    parser.stream.feed(buffer, final=True)
    yield from parser.take()


def _end_of_step(buffer: bytes, position: int, parser: CellParser) -> int:
    """Where to stop next to see whether the parser stands between rows; -1: unknown."""
    tag = b"</row>" if parser.started else b"<sheetData>"
    found = buffer.find(tag, position)
    return -1 if found < 0 else found + len(tag)


def _choose(
    package: Package,
    parts: "_Parts",
    workbook: Workbook,
    wanted: str | None,
) -> tuple[str, "_Begun | None"]:
    """The sheet that is asked for, or the first that holds anything, with its rows."""
    sheets = parts.sheets

    if wanted is not None:
        for name in sheets:
            if name.casefold() == wanted.strip().casefold():
                return name, None
        names = ", ".join(repr(name) for name in list(sheets)[:20])
        raise UnreadableDocument(f"the workbook has no sheet {wanted!r}; it has {names}")
    visible_first = sorted(sheets, key=parts.hidden.__contains__)
    for name in visible_first:
        begun = _Begun()
        rows = read_rows(
            package.stream(sheets[name], limits.SHEET_BYTES),
            workbook,
            merges=begun.merges,
            hidden=begun.hidden,
            hidden_rows=begun.hidden_rows,
        )
        first = next(rows, None)
        if first is not None:
            begun.rows = chain([first], rows)
            return name, begun
    return visible_first[0], None


@dataclass
class _Begun:
    """A reading of a sheet that has begun, and what it has found of the sheet."""

    rows: Iterator[Row] = field(default_factory=lambda: iter(()))
    merges: list[Merge] = field(default_factory=list[Merge])
    hidden: set[int] = field(default_factory=set[int])
    hidden_rows: "array[int]" = field(default_factory=lambda: array("I"))

    def rest(self, table: Table) -> Iterator[Row]:
        """Its rows; the table then knows of the sheet what any other reading tells it."""
        # Columns stand before the rows, merged cells behind them.
        table.hidden_columns |= self.hidden
        table.hidden_rows = self.hidden_rows
        yield from self.rows
        table.merges.extend(self.merges)


@dataclass
class _Parts:
    """Where the parts of a workbook are."""

    sheets: dict[str, str]
    """Worksheets by name, in the workbook's order; chart sheets and the like are left out."""
    strings: str | None
    styles: str | None
    date1904: bool
    hidden: frozenset[str]
    """Worksheets that the user's program does not show."""
    calculates_on_load: bool
    """The workbook asks for full calculation when it is opened: its zeros may be none."""

    @classmethod
    def read(cls, package: Package) -> "_Parts":
        roots = _relations(package, _ROOT_RELATIONS, "")
        workbook = next((r.target for r in roots.values() if r.type == "officeDocument"), None)
        if workbook is None:
            raise UnreadableDocument(f"{DAMAGED} (it names no workbook part)")
        folder, name = posixpath.split(workbook)
        relations = _relations(package, f"{folder}/_rels/{name}.rels".lstrip("/"), folder)
        by_type = {relation.type: relation.target for relation in relations.values()}
        listed = _sheets(package, workbook)
        sheets = {
            title: relations[id].target
            for title, id, _ in listed.sheets
            if id in relations and relations[id].type == "worksheet"
        }
        if not sheets:
            raise UnreadableDocument("the workbook has no worksheet")
        return cls(
            sheets,
            _present(package, by_type.get("sharedStrings")),
            _present(package, by_type.get("styles")),
            listed.date1904,
            frozenset(title for title, _, hidden in listed.sheets if hidden),
            listed.calculates_on_load,
        )


@dataclass(frozen=True)
class _Relation:
    type: str
    """Last segment of the type's URI: the same in transitional and strict files."""
    target: str


def _present(package: Package, part: str | None) -> str | None:
    return part if part is not None and part in package else None


def _relations(package: Package, part: str, folder: str) -> dict[str, _Relation]:
    relations: dict[str, _Relation] = {}

    def start(name: str, attributes: dict[str, str]) -> None:
        if name == "Relationship" and attributes.get("TargetMode") != "External":
            target = posixpath.normpath(posixpath.join("/", folder, attributes.get("Target", "")))
            relations[attributes.get("Id", "")] = _Relation(
                attributes.get("Type", "").rpartition("/")[2], target.lstrip("/")
            )

    parse(package.stream(part, limits.SMALL_PART_BYTES), XmlStream(start, _ignore))
    return relations


@dataclass
class _Listed:
    """What the workbook part says."""

    sheets: list[tuple[str, str, bool]] = field(default_factory=list[tuple[str, str, bool]])
    """Name, relation id, and whether it is hidden."""
    date1904: bool = False
    calculates_on_load: bool = False


def _sheets(package: Package, part: str) -> _Listed:
    found = _Listed()

    def start(name: str, attributes: dict[str, str]) -> None:
        if name == "sheet":
            if len(found.sheets) >= limits.SHEETS:
                raise UnreadableDocument(f"the workbook has more than {limits.SHEETS:,} sheets")
            ids = (value for key, value in attributes.items() if key.rpartition(":")[2] == "id")
            hidden = attributes.get("state", "visible") != "visible"
            found.sheets.append((attributes.get("name", ""), next(ids, ""), hidden))
        elif name == "workbookPr":
            found.date1904 = attributes.get("date1904", "0") in _TRUE
        elif name == "calcPr":
            found.calculates_on_load = attributes.get("fullCalcOnLoad", "0") in _TRUE

    parse(package.stream(part, limits.SMALL_PART_BYTES), XmlStream(start, _ignore))
    return found


def _ignore(name: str) -> None:
    """Ends of elements that matter only by their start."""
