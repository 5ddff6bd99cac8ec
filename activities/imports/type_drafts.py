"""Drafts of type files from a sample."""

import json
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import combinations, count, islice
from pathlib import Path
from statistics import median
from tempfile import TemporaryDirectory
from types import MappingProxyType
from typing import Final

from activities.imports.table_reader import TableReader
from activities.imports.tables import spec_of_file
from adapters.files.documents import FileDocuments
from adapters.ports.documents import Book
from adapters.types.files import read_type
from workflows.imports.header import HEADER_WITHIN, TableHeader, find_header, title_text
from workflows.imports.messages import DeclaredMessage, Strategy
from workflows.imports.types import TableSpec
from workflows.shared.cells import Cell, cell_text, is_blank, is_filled, readable
from workflows.shared.contracts import Problem
from workflows.shared.conversion import Flaw, read_cells, settle_notations, transpose
from workflows.shared.currencies import currency_of
from workflows.shared.declared_fields import (
    KEY_KINDS,
    MOST_FIELDS,
    NAME_CHARACTERS,
    NUMBER_KINDS,
)
from workflows.shared.declared_types import OWN_COLUMNS
from workflows.shared.durations import is_short_clock
from workflows.shared.errors import InvalidDocument
from workflows.shared.fields import (
    CODE_CHARACTERS,
    LINE_CHARACTERS,
    ColumnKind,
    FieldSpec,
    normalise,
    squash,
    unit_signs,
    written,
)
from workflows.shared.notations import Notation
from workflows.shared.titles import currency_in

SAMPLE_ROWS: Final = 5_000
"""Rows of a sample that a draft looks at."""
_NEARLY: Final = 0.75
"""A header has titles for so many of the cells that rows usually have."""
_PHONE_DIGITS: Final = 8
_PHONES: Final = frozenset(
    ("phone", "tel", "telefon", "telephone", "telefono", "fax", "mobile", "mobil", "movil", "handy")
)
_CHOICES: Final = 12
_WORD: Final = 40
_ODD: Final = 10
"""One row in so many may be odd, and a column is still nearly what its other rows show."""
_STRAY_SHARE: Final = 50
_STRAYS: Final = 3
"""One cell in `_STRAY_SHARE`, and so many at most, may not be of the kind that is drafted."""
_LISTED: Final = 3
_GUESSES: Final = (
    ("email", ColumnKind.MAIL),
    ("boolean", ColumnKind.BOOLEAN),
    ("date", ColumnKind.DATE),
    ("timestamp", ColumnKind.TIMESTAMP),
    ("time", ColumnKind.TIME),
    ("integer", ColumnKind.INTEGER),
    ("decimal", ColumnKind.DECIMAL),
    ("money", ColumnKind.MONEY),
)
"""Kinds in the order in which they are tried: the first that reads most cells is drafted."""
_WITH_CENTS: Final = re.compile(r"[.,][0-9]{1,2}(?![0-9.,])")
_RESERVED: Final = OWN_COLUMNS | {"sequence", "section", "project_id", "null"}
"""Names that a field of a draft does not have."""
_LONGEST_TEXT: Final = 100_000
_MOST_CHARACTERS: Final[Mapping[str, int]] = MappingProxyType(
    {"text": LINE_CHARACTERS, "code": CODE_CHARACTERS}
)
_NOTE: Final = 1_000
"""Characters of a note that is a comment."""
_NAMING: Final = frozenset({"code", "integer", "email"})
"""Kinds of a field that may be a key by itself; a part of a key may be a day as well."""


@dataclass(frozen=True, slots=True)
class _Column:
    """A column of the sample, and what it seems to hold."""

    name: str
    title: str
    kind: str
    texts: Sequence[str]
    """Of all rows; empty for a blank of its kind."""
    choices: Sequence[str] = ()
    unsure: str | None = None
    currency: str | None = None

    @property
    def is_filled(self) -> bool:
        return all(self.texts)

    @property
    def is_nearly_unique(self) -> bool:
        """Whether few rows lack a value or have that of another row."""
        return len(self.texts) - len({*self.texts} - {""}) <= len(self.texts) // _ODD

    @property
    def is_unique(self) -> bool:
        return self.is_filled and len(set(self.texts)) == len(self.texts)


def draft(name: str, sample: Path) -> str:
    """A type file for a sample: what it shows is declared, what is not sure is a comment.

    Args:
        name: What to call the type.
        sample: A spreadsheet or text table.

    Raises:
        UnreadableDocument: No table can be read from it.
        InvalidDocument: No row of it can be a header with rows below it.
    """
    with FileDocuments().open_workbook(sample, filename=sample.name) as book:
        titles, lines, rows = _table_of(book)
    names, notes = _names_of(titles), list(_unnamed(titles))
    columns = [
        _column(name, title, cells, lines)
        for name, title, cells in zip(names, titles, transpose(rows, len(titles)), strict=True)
        if name is not None
    ]
    if len(columns) >= MOST_FIELDS:
        # One more field may number the rows.
        gone = columns[MOST_FIELDS - 1 :]
        columns = columns[: MOST_FIELDS - 1]
        notes.append(
            f"a type has {MOST_FIELDS} fields at most, and these columns are none: "
            + ", ".join(map(repr, (each.title for each in gone)))
        )
    made = [*_lines(name, sample, columns, len(rows))]
    notes += _refused("\n".join(made), sample)
    return "\n".join([made[0], *(f"# {readable(note, _NOTE)}" for note in notes), *made[1:]]) + "\n"


def _refused(made: str, sample: Path) -> Iterator[str]:
    """What an import of the sample would refuse, if the draft stays as it is.

    Raises:
        RuleViolation: The name of the type is not possible.
    """
    declared = read_type(made, "draft")
    message = DeclaredMessage(
        document_type=declared.name,
        project_id="check",
        task_id="check",
        blob_name="sample",
        filename=sample.name[-LINE_CHARACTERS:],
        strategy=Strategy.MERGE,
    )
    with TemporaryDirectory(prefix="docflow-") as folder:
        spec = spec_of_file(declared)
        reader = TableReader(FileDocuments(), sample, message, spec, folder=Path(folder))
        problems: list[Problem] = []
        rejected = 0
        try:
            reader.open()
            while reader.rows_read < SAMPLE_ROWS and (chunk := reader.next_chunk()) is not None:
                rejected += len(chunk.rejected)
                problems += [row.problems[0] for row in chunk.rejected[:_LISTED]]
        except InvalidDocument as error:
            yield f"an import of the sample would be refused: {error}"
        finally:
            reader.close()
    for problem in problems[:_LISTED]:
        value = f" {readable(problem.value, 20)!r}" if problem.value else ""
        yield f"line {problem.line} would be rejected: {problem.column}{value} {problem.reason}"
    if rejected > _LISTED:
        yield f"{rejected - _LISTED:,} more rows would be rejected"


def _table_of(book: Book) -> tuple[list[str], list[int], list[list[Cell]]]:
    """Titles, line numbers and rows of the sheet that holds most."""
    best: tuple[list[str], list[int], list[list[Cell]]] | None = None
    for sheet in [each.name for each in book.sheets if not each.hidden] or [None]:
        rows = list(islice(book.table(sheet).rows(), SAMPLE_ROWS))
        header = _header_of(rows[:HEADER_WITHIN], sheet)
        below = [row for row in rows if header is not None and row[0] > header.line]
        if header is not None and below and (best is None or len(below) > len(best[1])):
            titles = [title_text(title).strip() for title in header.titles]
            best = titles, [line for line, _ in below], [cells for _, cells in below]
    if best is None:
        raise InvalidDocument("the sample has no header with rows below it")
    return best


def _header_of(top: Sequence[tuple[int, list[Cell]]], sheet: str | None) -> TableHeader | None:
    """The header among the first rows, as an import of its titles finds it."""
    texts = [sum(isinstance(each, str) and is_filled(each) for each in cells) for _, cells in top]
    if not any(texts):
        return None
    usual = median(sum(map(is_filled, cells)) for _, cells in top)
    likely = (
        place
        for place, (_, cells) in enumerate(top)
        if texts[place] >= _NEARLY * usual and _are_titles(cells)
    )
    start = next(likely, texts.index(max(texts)))
    titles = [title_text(cell) if is_filled(cell) else "" for cell in top[start][1]]
    fields = [
        FieldSpec(name, ColumnKind.TEXT, True, title=title)
        for name, title in zip(_names_of(titles), titles, strict=True)
        if name is not None
    ]
    if not fields:
        return None
    spec = TableSpec("", (), (fields[0].name,), tuple(fields))
    return find_header(top[start:], spec, sheet)


def _are_titles(cells: Sequence[Cell]) -> bool:
    """Whether a row holds texts alone, few of them twice: no number, day or address."""
    filled = [cell for cell in cells if is_filled(cell)]
    texts = [cell for cell in filled if isinstance(cell, str)]
    distinct = {*map(squash, texts)}
    if not texts or len(texts) < len(filled) or 2 * len(distinct) <= len(texts) > 1:
        return False
    kinds = (ColumnKind.DECIMAL, ColumnKind.DATE, ColumnKind.MAIL)
    return not any(len(_unread(FieldSpec("x", kind), [t])) == 0 for kind in kinds for t in texts)


def _meant(titles: Sequence[str]) -> dict[str, int]:
    """The column that each squashed header means: the first that has it."""
    meant: dict[str, int] = {}
    for place, title in enumerate(titles):
        for form in written(title):
            meant.setdefault(squash(form), place)
    return meant


def _names_of(titles: Sequence[str]) -> list[str | None]:
    """Names of fields for headers; None for a header that names nothing, or an earlier column."""
    meant, taken = _meant(titles), set[str]()
    names: list[str | None] = []
    for place, title in enumerate(titles):
        if not squash(title) or {meant[squash(form)] for form in written(title)} != {place}:
            names.append(None)
            continue
        plain = "".join(c if c.isascii() else " " for c in normalise(title))
        name = "_".join(plain.split())[:NAME_CHARACTERS].strip("_") or f"column_{place + 1}"
        if not name[0].isalpha():
            name = f"column_{name}"[:NAME_CHARACTERS].strip("_")
        if name in _RESERVED:
            name = f"{name}_"
        tries = (f"{name[: NAME_CHARACTERS - 6].strip('_')}_{each}" for each in count(place + 1))
        while squash(name) in taken or meant.get(squash(name), place) != place:
            name = next(tries)
        taken.add(squash(name))
        names.append(name)
    return names


def _unnamed(titles: Sequence[str]) -> Iterator[str]:
    """What is said of columns whose headers name no field of their own."""
    meant = _meant(titles)
    for place, title in enumerate(titles):
        if title and not squash(title):
            yield f"the header {title!r} has no letter and no digit: rename the column to import it"
        elif title and {meant[squash(form)] for form in written(title)} != {place}:
            yield f"the header {title!r} is there twice: rename one of the columns to import both"


def _column(name: str, title: str, cells: Sequence[Cell], lines: Sequence[int]) -> _Column:
    known = FieldSpec(name, ColumnKind.CODE)
    places = [n for n, cell in enumerate(cells) if is_filled(cell) and not is_blank(cell, known)]
    filled = [cells[place] for place in places]
    texts = [cell_text(cell).strip() if is_filled(cell) else "" for cell in cells]
    values = [""] * len(texts)
    for place in places:
        values[place] = texts[place]
    if not filled:
        return _Column(name, title, "text", texts, unsure="the sample has no value for it")
    if _are_phones(title, filled):
        return _Column(name, title, "phone", values)
    if any(_is_zero_led(text) for text in values) and not _unread(known, filled):
        return _Column(name, title, "code", values)
    kind, odd = _likeliest(name, filled)
    shown = ", ".join(
        f"{readable(filled[n], 20)!r} in line {lines[places[n]]}" for n in odd[:_LISTED]
    )
    if len(odd) > _LISTED:
        shown += f" and {len(odd) - _LISTED:,} more"
    if kind is not None and len(odd) <= min(_STRAYS, len(filled) // _STRAY_SHARE):
        is_code = kind == "integer" and len(set(values)) == len(values) and _names_a_thing(title)
        unsure = ["a number by which something is called, by its header"] if is_code else []
        if kind == "date" and (example := _open_day(filled)) is not None:
            unsure.append(
                f"day or month first, as in {example}? Imports need date_order=dmy or mdy"
            )
        if kind == "time" and any(
            isinstance(each, str) and is_short_clock(each) for each in filled
        ):
            unsure.append("a time of day, or a duration? Then add clock: hh:mm or mm:ss")
        if odd:
            unsure.append(f"rejected as no {kind}: {shown}")
        found = "code" if is_code else kind
        currency = currency_in(title) if found in NUMBER_KINDS else None
        if currency is not None:
            found = "money"
            unsure += ["a dollar of the United States?"] if "$" in title else []
        return _Column(
            name, title, found, values, unsure="; ".join(unsure) or None, currency=currency
        )
    distinct = {normalise(text): text for text in reversed(values) if text}
    if kind not in (None, "boolean") and not _names_a_thing(title):
        return _Column(name, title, "text", texts, unsure=f"nearly {kind}, but for {shown}")
    are_words = "" not in distinct and all(len(text) <= _WORD for text in distinct.values())
    if are_words and len(distinct) <= _CHOICES and len(filled) >= 3 * len(distinct):
        unsure = "the sample has these values; are there others?"
        return _Column(name, title, "choice", values, [*distinct.values()][::-1], unsure)
    if all(map(_is_code, values)) and not _unread(known, filled):
        return _Column(name, title, "code", values)
    return _Column(name, title, "text", texts)


def _likeliest(name: str, cells: Sequence[Cell]) -> tuple[str | None, Sequence[int]]:
    """The kind that reads most cells, and places of those that it does not; None: too many."""
    best, odd = None, [*range(len(cells))]
    for kind, column_kind in _GUESSES:
        if kind == "boolean" and {cell_text(cell).strip() for cell in cells} <= {"0", "1"}:
            continue
        found = _unread(FieldSpec(name, column_kind), cells)
        if len(found) < len(odd):
            best, odd = kind, found
        if not odd:
            break
    if best == "integer" and any(_WITH_CENTS.search(cell_text(cell)) for cell in cells):
        best = "decimal"
    if best in ("integer", "decimal") and any(currency_of(cell_text(cell)) for cell in cells):
        best = "money"
    is_near = len(odd) <= max(1, len(cells) // _ODD) and 3 * len(odd) <= len(cells)
    return (best, odd) if is_near else (None, ())


def _unread(field: FieldSpec, cells: Sequence[Cell]) -> Sequence[int]:
    """Places of the cells that a field would refuse; of open days the day comes first."""
    written = settle_notations({field.name: (field, cells)})[field.name]
    if field.kind is ColumnKind.DATE:
        written = written or Notation.DAY_FIRST
    values, _ = read_cells(field, cells, written)
    return [n for n, value in enumerate(values) if isinstance(value, Flaw) or value is None]


def _are_phones(title: str, cells: Sequence[Cell]) -> bool:
    """Whether cells are phone numbers, by their header or by a country's number."""
    texts = [cell for cell in cells if isinstance(cell, str)]
    if _unread(FieldSpec("x", ColumnKind.PHONE), cells):
        return False
    long = [text for text in texts if sum(map(str.isdigit, text)) >= _PHONE_DIGITS]
    return bool({*normalise(title).split()} & _PHONES) or any(
        text.lstrip().startswith(("+", "00")) for text in long
    )


def _open_day(cells: Sequence[Cell]) -> str | None:
    """A day that can be read in two ways, if no cell says which is meant."""
    field = FieldSpec("x", ColumnKind.DATE)
    if settle_notations({"x": (field, cells)})["x"] is not None:
        return None
    values, _ = read_cells(field, cells, None)
    odd = {*_unread(field, cells)}
    flaws = (n for n, value in enumerate(values) if isinstance(value, Flaw) and n not in odd)
    found = next(flaws, None)
    return None if found is None else readable(cells[found], 20)


def _is_code(text: str) -> bool:
    return len(text) <= _WORD and " " not in text


def _is_zero_led(text: str) -> bool:
    return len(text) > 1 and text[0] == "0" and text.isdigit()


def _names_a_thing(title: str) -> bool:
    words = set(normalise(title).split())
    return bool(words & {"no", "nr", "id", "number", "nummer", "code", "num", "ref"})


def _key_of(columns: Sequence[_Column]) -> tuple[list[str], str | None]:
    """The key that the sample shows, and what is not sure about it."""
    naming = [each for each in columns if each.kind in _NAMING]
    unique = [each for each in naming if each.is_unique]
    nearly = [each for each in naming if each.is_nearly_unique]
    keyed = [each for each in columns if each.kind in {*_NAMING, "date"} and each.is_filled]
    if unique:
        others = ", ".join(each.name for each in unique[1:4])
        return [unique[0].name], f"unique and filled as well: {others}" if others else None
    if nearly:
        return [nearly[0].name], "unique but for a few rows of the sample, which would be rejected"
    for first, second in combinations(keyed[:8], 2):
        pairs = list(zip(first.texts, second.texts, strict=True))
        if len(set(pairs)) == len(pairs):
            return [first.name, second.name], "unique together in the sample; is it always?"
    return [], "no column or pair of columns is unique and filled: choose what makes a row the same"


def _lines(name: str, sample: Path, columns: Sequence[_Column], rows: int) -> Iterator[str]:
    keyed, unsure = _key_of(columns)
    is_numbered = not keyed
    if is_numbered:
        # A column of that name holds the numbers.
        columns = [each for each in columns if squash(each.title) != "sequence"]
        if not columns:
            raise InvalidDocument("the sample has no column beside its sequence")
        able = [each for each in columns if each.kind in KEY_KINDS]
        first = next((each for each in able if each.is_filled), (able or columns)[0])
        if first.kind not in KEY_KINDS:
            columns = [replace(each, kind="text") if each is first else each for each in columns]
        keyed = [first.name]
    yield f"# A draft from {rows:,} rows of {sample.name}: read each line before you apply it."
    yield f"name: {name}"
    yield f"title: {json.dumps(name.replace('_', ' ').capitalize())}"
    yield f"key: [{', '.join([*keyed, *(['sequence'] if is_numbered else [])])}]" + (
        f"  # {unsure}" if unsure else ""
    )
    yield "fields:"
    for column in columns:
        yield f"  {column.name}:" + (f"  # {column.unsure}" if column.unsure else "")
        kind = column.kind
        yield f"    kind: {kind}"
        if column.is_filled or (column.name in keyed and kind in ("integer", "date")):
            yield "    required: true"
        elif column.name in keyed:
            yield '    default: ""'
        longest = max(map(len, column.texts), default=0)
        if longest > _MOST_CHARACTERS.get(kind, longest):
            yield f"    max_length: {min(2 * longest, _LONGEST_TEXT)}"
        if normalise(column.title) != normalise(column.name) or unit_signs(column.title):
            yield f"    aliases: [{json.dumps(column.title, ensure_ascii=False)}]"
        if column.currency:
            yield f"    currency: {column.currency}"
        if column.choices:
            listed = ", ".join(json.dumps(each, ensure_ascii=False) for each in column.choices)
            yield f"    choices: [{listed}]"
    if is_numbered:
        yield "  sequence:"
        yield "    kind: sequence"
