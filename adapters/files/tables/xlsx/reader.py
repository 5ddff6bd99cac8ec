"""XLSX workbooks, read as a stream: memory does not grow with the sheet.

Source: ECMA-376 part 1, SpreadsheetML, transitional and strict.
"""

import posixpath
from collections.abc import Generator, Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from itertools import chain
from pathlib import Path

from adapters.files import limits
from adapters.files.package import DAMAGED, Package, open_package
from adapters.files.tables.table import Row, Table
from adapters.files.tables.xlsx.cells import CellParser, LineNumbers, Workbook
from adapters.files.tables.xlsx.grammar import Grammar
from adapters.files.tables.xlsx.strings import SharedStrings
from adapters.files.tables.xlsx.styles import read_formats
from adapters.files.xml import XmlStream, parse
from adapters.ports import UnreadableDocument

_ROOT_RELATIONS = "_rels/.rels"
_LONGEST_ROW = limits.MB  # beyond it a row goes to the XML parser piece by piece


@contextmanager
def open_xlsx(path: Path, sheet: str | None = None) -> Generator[Table]:
    """Open one sheet of a workbook.

    Args:
        path: The file.
        sheet: Sheet name; the first sheet that holds anything when absent.

    Raises:
        UnreadableDocument: The workbook is damaged or hostile, or has no such sheet.
    """
    with open_package(path) as package, SharedStrings() as strings:
        parts = _Parts.read(package)
        if parts.strings is not None:
            strings.load(package.stream(parts.strings, limits.STRINGS_BYTES))
        styles = parts.styles
        workbook = Workbook(
            strings,
            read_formats(package.stream(styles, limits.SMALL_PART_BYTES)) if styles else [],
            parts.date1904,
        )
        name, rows = _choose(package, parts.sheets, workbook, sheet)
        yield Table("xlsx", name, None, rows)


def xlsx_sheets(path: Path) -> list[str]:
    """Names of a workbook's worksheets in its order.

    Raises:
        UnreadableDocument: The workbook is damaged or hostile.
    """
    with open_package(path) as package:
        return list(_Parts.read(package).sheets)


def read_rows(
    blocks: Iterable[bytes], workbook: Workbook, *, use_grammar: bool = True
) -> Iterator[Row]:
    """Rows of a worksheet part that hold anything, in order.

    Args:
        blocks: The XML, in blocks of any size.
        workbook: Strings and formats.
        use_grammar: False leaves every row to the XML parser, with the same outcome.

    Raises:
        UnreadableDocument: The part is damaged or hostile.
    """
    lines = LineNumbers()
    parser = CellParser(workbook, lines)
    grammar = Grammar(workbook, lines)
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
    package: Package, sheets: dict[str, str], workbook: Workbook, wanted: str | None
) -> tuple[str, Iterator[Row]]:
    def rows_of(name: str) -> Iterator[Row]:
        return read_rows(package.stream(sheets[name], limits.SHEET_BYTES), workbook)

    if wanted is not None:
        for name in sheets:
            if name.casefold() == wanted.strip().casefold():
                return name, rows_of(name)
        names = ", ".join(repr(name) for name in list(sheets)[:20])
        raise UnreadableDocument(f"the workbook has no sheet {wanted!r}; it has {names}")
    for name in sheets:
        rows = rows_of(name)
        first = next(rows, None)
        if first is not None:
            return name, chain([first], rows)
    name = next(iter(sheets))
    return name, iter(())


@dataclass
class _Parts:
    """Where the parts of a workbook are."""

    sheets: dict[str, str]
    """Worksheets by name, in the workbook's order; chart sheets and the like are left out."""
    strings: str | None
    styles: str | None
    date1904: bool

    @classmethod
    def read(cls, package: Package) -> "_Parts":
        roots = _relations(package, _ROOT_RELATIONS, "")
        workbook = next((r.target for r in roots.values() if r.type == "officeDocument"), None)
        if workbook is None:
            raise UnreadableDocument(f"{DAMAGED} (it names no workbook part)")
        folder, name = posixpath.split(workbook)
        relations = _relations(package, f"{folder}/_rels/{name}.rels".lstrip("/"), folder)
        by_type = {relation.type: relation.target for relation in relations.values()}
        listed, date1904 = _sheets(package, workbook)
        sheets = {
            title: relations[id].target
            for title, id in listed
            if id in relations and relations[id].type == "worksheet"
        }
        if not sheets:
            raise UnreadableDocument("the workbook has no worksheet")
        return cls(
            sheets,
            _present(package, by_type.get("sharedStrings")),
            _present(package, by_type.get("styles")),
            date1904,
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


def _sheets(package: Package, part: str) -> tuple[list[tuple[str, str]], bool]:
    """Sheet names with their relation ids, and whether days count from 1904."""
    sheets: list[tuple[str, str]] = []
    date1904 = False

    def start(name: str, attributes: dict[str, str]) -> None:
        nonlocal date1904
        if name == "sheet":
            if len(sheets) >= limits.SHEETS:
                raise UnreadableDocument(f"the workbook has more than {limits.SHEETS:,} sheets")
            ids = (value for key, value in attributes.items() if key.rpartition(":")[2] == "id")
            sheets.append((attributes.get("name", ""), next(ids, "")))
        elif name == "workbookPr":
            date1904 = attributes.get("date1904", "0") in ("1", "true")

    parse(package.stream(part, limits.SMALL_PART_BYTES), XmlStream(start, _ignore))
    return sheets, date1904


def _ignore(name: str) -> None:
    """Ends of elements that matter only by their start."""
