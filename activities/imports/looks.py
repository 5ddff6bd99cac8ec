"""The first rows of a document, for a person who says what its columns mean."""

from collections import Counter
from collections.abc import Mapping, Sequence
from contextlib import suppress
from itertools import islice
from pathlib import Path
from typing import Final

from pydantic import BaseModel

from adapters.files.documents import FileDocuments
from adapters.ports.documents import Book
from workflows.imports.header import (
    HEADER_WITHIN,
    NOT_USED,
    TableHeader,
    likely_header,
    names_of,
)
from workflows.imports.messages import TableMessage
from workflows.imports.types import TableSpec
from workflows.shared.cells import Cell, cell_text, column_letters
from workflows.shared.errors import InvalidDocument
from workflows.shared.titles import title_key

_SAMPLES: Final = 5
_ROWS: Final = 20
"""Rows of a preview."""
_COLUMNS: Final = 100
"""Columns that are shown: so many may a message map."""
_SHEETS: Final = 20
"""Sheets that are looked at."""
_CELL: Final = 60
"""Characters of a cell."""
_TITLE: Final = 255


class LookedColumn(BaseModel):
    """A column of a document."""

    name: str
    """As a message names it: its title, or its letters if others have the title, or it has none."""
    title: str
    samples: Sequence[str]
    field: str
    """What it means now; "": nothing, "-": it is left out."""
    missing: bool = False
    """The message maps it, and the sheet has no such column."""


class LookedField(BaseModel):
    """A field that a column may fill."""

    name: str
    title: str
    required: bool


class DocumentLook(BaseModel):
    """What the top of a document looks like."""

    sheets: Sequence[str]
    sheet: str | None
    """The one that is shown; None: the document has none."""
    line: int | None
    """Of the header; None: there are no rows."""
    columns: Sequence[LookedColumn]
    fields: Sequence[LookedField]
    rows: Sequence[tuple[int, Sequence[str]]]
    """The first ones from the header on, with their line numbers."""


_Top = Sequence[tuple[int, Sequence[Cell]]]


def look_at(
    documents: FileDocuments, path: Path, message: TableMessage, spec: TableSpec
) -> DocumentLook:
    """Read the top of a document; blocking.

    Args:
        documents: Opens files.
        path: The file.
        message: About it.
        spec: What it should hold.

    Raises:
        UnreadableDocument: No table can be read from it.
    """
    names: Mapping[str, str] = {}
    # What the message maps wrongly is for the same person to say anew.
    with suppress(InvalidDocument):
        names = names_of(message.map, spec)
    name, encoding = message.document_name, message.encoding
    with documents.open_workbook(path, filename=name, encoding=encoding) as book:
        sheets = [each.name for each in book.sheets if not each.hidden][:_SHEETS]
        sheet, top, header = _best(book, message.sheet, sheets, spec, names)
    fields = [
        LookedField(name=each.name, title=each.title or _words(each.name), required=each.required)
        for each in spec.fields
    ]
    if header is None:
        return DocumentLook(
            sheets=sheets, sheet=sheet, line=None, columns=(), fields=fields, rows=()
        )
    first = header.line - len(header.rows) + 1
    shown = [(line, cells) for line, cells in top if line >= first][: _ROWS + 1]
    below = [cells for line, cells in shown if line > header.line]
    return DocumentLook(
        sheets=sheets,
        sheet=sheet,
        line=header.line,
        columns=[*_columns(header, below), *_missing(header, message.map)],
        fields=fields,
        rows=[(line, [_text(cell) for cell in cells[:_COLUMNS]]) for line, cells in shown],
    )


def _best(
    book: Book,
    wanted: str | None,
    sheets: Sequence[str],
    spec: TableSpec,
    names: Mapping[str, str],
) -> tuple[str | None, _Top, TableHeader | None]:
    """The sheet that is meant, or else the one whose header names most fields."""
    known = [each.name for each in book.sheets]
    looked = [wanted] if wanted in known else sheets or [None]
    found: list[tuple[str | None, _Top, TableHeader | None]] = []
    for sheet in looked:
        top = list(islice(book.table(sheet).rows(), HEADER_WITHIN + _ROWS))
        found.append((sheet, top, likely_header(top[:HEADER_WITHIN], spec, names)))
    return max(found, key=lambda each: -1 if each[2] is None else len(each[2].positions))


def _columns(header: TableHeader, below: Sequence[Sequence[Cell]]) -> Sequence[LookedColumn]:
    repeated = Counter(map(title_key, header.titles))
    by_place = {place: name for name, place in header.positions.items()}
    by_place |= dict.fromkeys(header.dropped, NOT_USED)
    columns: list[LookedColumn] = []
    for place, title in enumerate(header.titles[:_COLUMNS]):
        samples = dict.fromkeys(_text(each[place]) for each in below if place < len(each))
        filled = [each for each in samples if each]
        if not title and not filled:
            continue
        is_named = bool(title_key(title)) and repeated[title_key(title)] == 1
        columns.append(
            LookedColumn(
                name=title[:_TITLE] if is_named else column_letters(place),
                title=title[:_TITLE] or column_letters(place),
                samples=filled[:_SAMPLES],
                field=by_place.get(place, ""),
            )
        )
    return columns


def _missing(header: TableHeader, mapped: Mapping[str, str]) -> Sequence[LookedColumn]:
    """What the message maps and no column is called."""
    known = {title_key(title) for title in header.titles}
    known |= {title_key(column_letters(place)) for place in range(len(header.titles))}
    return [
        LookedColumn(name=title, title=title, samples=(), field=name, missing=True)
        for title, name in mapped.items()
        if name != NOT_USED and title_key(title) not in known
    ]


def _text(cell: Cell) -> str:
    text = cell_text(cell)
    return text if len(text) <= _CELL else f"{text[: _CELL - 1]}…"


def _words(name: str) -> str:
    return name.replace("_", " ").capitalize()
