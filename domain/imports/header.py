"""Finds the header row of a table and what each of its columns means."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Final

from domain.errors import InvalidDocument
from domain.imports.tables import TableSpec
from domain.tabular.fields import normalise
from domain.tabular.rows import Cell
from domain.tabular.values import readable

HEADER_WITHIN: Final = 50
"""Rows that may stand above the header: titles, logos, revision blocks."""
WRONG: Final = "what is wrong"
"""First header of the report of rejected rows, which may be sent again as it is."""
_HEADER_CHARACTERS: Final = 80
_HEADERS_IN_MESSAGE: Final = 30


@dataclass(frozen=True, slots=True)
class TableHeader:
    """A header row, understood.

    Attributes:
        line: Its line number.
        titles: Its cells as they stand, in one line each.
        positions: Field to position of its column.
        ignored: Titles that mean nothing for this table.
    """

    line: int
    titles: tuple[str, ...]
    positions: Mapping[str, int]
    ignored: tuple[str, ...]


def match_header(line: int, cells: Sequence[Cell], spec: TableSpec) -> TableHeader:
    """Understand one row as the header of a table: exact names first, then aliases, no guess.

    Raises:
        InvalidDocument: Two of its columns mean the same field.
    """
    titles = tuple(_title(cell) for cell in cells)
    positions: dict[str, int] = {}
    ignored: list[str] = []
    for position, title in enumerate(titles):
        name = normalise(title)
        field = spec.by_header.get(name)
        if field is None:
            if name and name != WRONG:
                ignored.append(title)
        elif (other := positions.setdefault(field.name, position)) != position:
            raise InvalidDocument(
                f"columns {titles[other]!r} and {title!r} on line {line} both mean "
                f"{field.name}; rename or remove one"
            )
    return TableHeader(line, titles, positions, tuple(ignored))


def find_header(
    rows: Iterable[tuple[int, Sequence[Cell]]], spec: TableSpec, sheet: str | None = None
) -> TableHeader:
    """Find the header among the first rows of a table.

    It is the row with every required column and, of several, the one with most columns; the
    first of equals.

    Args:
        rows: The first `HEADER_WITHIN` rows with their line numbers.
        spec: What the table should hold.
        sheet: Sheet of the workbook, for the message.

    Raises:
        InvalidDocument: No row has every required column, or two columns mean the same.
    """
    best: tuple[int, int, Sequence[Cell]] | None = None
    required = {field.name for field in spec.fields if field.required}
    closest: tuple[set[str], int, Sequence[Cell]] | None = None
    for line, cells in rows:
        if best is not None and len(cells) <= best[0]:
            continue
        fields = {
            field.name
            for cell in cells
            if isinstance(cell, str) and (field := spec.by_header.get(normalise(_title(cell))))
        }
        if required <= fields:
            if best is None or len(fields) > best[0]:
                best = (len(fields), line, cells)
        elif closest is None or len(fields) > len(closest[0]):
            closest = (fields, line, cells)
    if best is not None:
        return match_header(best[1], best[2], spec)
    raise InvalidDocument(_nothing_found(spec, required, closest, sheet))


def _nothing_found(
    spec: TableSpec,
    required: set[str],
    closest: tuple[set[str], int, Sequence[Cell]] | None,
    sheet: str | None,
) -> str:
    where = f"sheet {readable(sheet, _HEADER_CHARACTERS)!r}" if sheet else "the document"
    if closest is None:
        return f"{where} holds no rows"
    wanted = [field.name for field in spec.fields if field.name in required]
    fields, line, cells = closest
    if not fields:
        return (
            f"no header row in the first {HEADER_WITHIN} rows of {where}: none names the required "
            f"{_columns(wanted)}; add a row of column names above the data"
        )
    missing = [name for name in wanted if name not in fields]
    seen = [title for cell in cells if (title := _title(cell))]
    listed = ", ".join(repr(title) for title in seen[:_HEADERS_IN_MESSAGE])
    more = f" and {len(seen) - _HEADERS_IN_MESSAGE} more" if len(seen) > _HEADERS_IN_MESSAGE else ""
    return (
        f"the header row of {where} lacks the {_columns(missing)}: line {line} has {listed}{more}; "
        "add it or rename a column"
    )


def _columns(names: Sequence[str]) -> str:
    return f"column{'s' if len(names) > 1 else ''} {', '.join(names)}"


def _title(cell: Cell) -> str:
    return readable(cell, _HEADER_CHARACTERS) if cell is not None else ""
