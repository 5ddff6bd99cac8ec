"""The header of a table: where it is, and what each of its columns means."""

import re
from bisect import bisect_right
from collections.abc import Collection, Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from difflib import get_close_matches
from enum import IntEnum
from itertools import accumulate
from types import MappingProxyType
from typing import Final, NamedTuple, cast

from workflows.imports.types import TableSpec
from workflows.shared.cells import (
    TITLE_CHARACTERS,
    Cell,
    column_letters,
    is_filled,
    readable,
    titles_in_columns,
)
from workflows.shared.errors import InvalidDocument
from workflows.shared.fields import FieldSpec, normalise, squash
from workflows.shared.header_rows import (
    adds_titles,
    counts_columns,
    joined_titles,
    may_be_second,
    title_cells,
    title_text,
    without_blanks,
)
from workflows.shared.titles import (
    field_named,
    field_without_unit,
    plain_title,
    title_key,
)


def marks_of(
    required: Collection[str], spec: TableSpec, names: Mapping[str, str]
) -> Sequence[Sequence[str]]:
    """For each required field one word of every title that names it, the longest."""
    required_titles = [(title, name) for title, name in names.items() if name in required]
    return [
        [*spec.by_name[field].title_words]
        + [
            # The letters of a column may stand in place of its title.
            "" if _LETTERS.fullmatch(title) else max(normalise(title).split(), key=len, default="")
            for title, name in required_titles
            if name == field
        ]
        for field in sorted(required)
    ]


def rows_worth_reading(
    top: Sequence[tuple[int, Sequence[Cell]]], marks: Sequence[Sequence[str]]
) -> Iterable[int]:
    """Rows that may be a header, alone or with the one below, by what they must hold for that.

    What a title means is looked up cell by cell; most rows are data, and lack such a word.
    """
    texts = [_folded(cells) for _, cells in top]
    together = "\n".join(texts)
    begins = [*accumulate((len(text) + 1 for text in texts), initial=0)]
    found = [_rows_with(words, together, begins) for words in marks]
    for index in range(len(texts)):
        if all(index in rows or index + 1 in rows for rows in found):
            yield index


def _rows_with(words: Sequence[str], together: str, begins: Sequence[int]) -> set[int]:
    """Which rows hold one of these words, by where each begins; words hold no blanks."""
    if "" in words:
        return set(range(len(begins)))
    rows: set[int] = set()
    for word in words:
        place = together.find(word)
        while place >= 0:
            row = bisect_right(begins, place) - 1
            rows.add(row)
            place = together.find(word, begins[row + 1])
    return rows


def _folded(cells: Sequence[Cell]) -> str:
    """A text that holds every word of a row's titles as `squash` writes them."""
    try:
        return squash("\n".join(cast("Sequence[str]", cells)))
    except TypeError:  # a cell that is no text
        texts = (cell if isinstance(cell, str) else title_text(cell) for cell in cells)
        return squash("\n".join(texts))


class Specificity(IntEnum):
    """How exactly a title names a field."""

    SPLIT = 1
    """Only without the unit or currency that it names as well."""
    WORD = 2
    """One word that is another name."""
    WORDS = 3
    """Several words that are another name."""
    NAME = 4
    """The field's own name."""
    MAPPED = 5
    """The message says what it means."""


@dataclass(frozen=True, slots=True)
class Meaning:
    """What a title means."""

    field: FieldSpec
    specificity: Specificity


def meaning_of(title: str, spec: TableSpec) -> Meaning | None:
    """The field that a title names: exact names first, then without units; no similarity.

    Args:
        title: As it stands in the header.
        spec: What the table holds.
    """
    if (field := field_named(title, spec.by_header)) is not None:
        return Meaning(field, _specificity(field, plain_title(title)))
    field = field_without_unit(title, spec.by_header)
    return None if field is None else Meaning(field, Specificity.SPLIT)


def _specificity(field: FieldSpec, name: str) -> Specificity:
    if name.replace(" ", "") in field.own_headers:
        return Specificity.NAME
    return Specificity.WORDS if " " in name else Specificity.WORD


CLOSE: Final = 0.7
"""Share of letters in which a title has to agree with a name of the field."""


def nearest(missing: Sequence[str], titles: Sequence[str], spec: TableSpec) -> dict[str, str]:
    """The closest title to each field that no title means, where one comes close.

    Args:
        missing: Names of fields.
        titles: As they stand in the file.
        spec: What the table holds.
    """
    by_name = {key: title for title in titles if (key := squash(title))}
    found: dict[str, str] = {}
    for name in missing:
        for header in (squash(name), *sorted(spec.by_name[name].other_headers)):
            if close := get_close_matches(header, by_name, 1, CLOSE):
                found[name] = by_name[close[0]]
                break
    return found


def suggestion(missing: Sequence[str], titles: Sequence[str], spec: TableSpec) -> str:
    """The same as the end of a sentence; empty where nothing comes close."""
    found = nearest(missing, titles, spec)
    if not found:
        return ""
    near = " and ".join(f"{title!r} comes close to {name}" for name, title in found.items())
    options = " ".join(f'--map "{title}={name}"' for name, title in found.items())
    return f"; {near}: retry with {options} if it is meant"


SIDEWAYS: Final = "seems to lie on its side"
_TITLES_NAMED: Final = 4


def sideways(
    top: Sequence[tuple[int, Sequence[Cell]]],
    spec: TableSpec,
    names: Mapping[str, str],
    fields: int,
) -> str | None:
    """What is said of a table whose titles stand below each other; None: it is not one.

    Most texts of a column name fields, those that are required and more than any row names.

    Args:
        top: The first rows of a sheet, with their line numbers.
        spec: What the table should hold.
        names: Normalised title to the field that the message says it means.
        fields: How many fields its best header row names.
    """
    required = {each.name for each in spec.fields if each.required}
    rows = [cells for _, cells in top]
    for place, known in titles_in_columns(rows, lambda title: _field(title, spec, names), fields):
        if required <= set(known.values()):
            listed = ", ".join(map(repr, list(known)[:_TITLES_NAMED]))
            return (
                f"{SIDEWAYS}: column {column_letters(place)} holds the titles ({listed}), and "
                "each column beside it a record; transpose it (in Excel: copy it, Paste Special, "
                "Transpose), so that each record is a row, and send it again"
            )
    return None


def _field(title: str, spec: TableSpec, names: Mapping[str, str]) -> str | None:
    if (mapped := names.get(title_key(title))) is not None:
        return mapped if mapped in spec.by_name else None
    meaning = meaning_of(title, spec)
    return None if meaning is None else meaning.field.name


HEADER_WITHIN: Final = 50
"""Rows that may stand above the header: titles, logos, revision blocks."""
WRONG: Final = "what is wrong"
"""First header of the report of rejected rows, which may be sent again as it is."""
NOT_USED: Final = "-"
"""What a message maps a title to whose column is to be left out."""
_COLUMNS_OF_TABLE: Final = 2
"""Columns that a table and its rows have at least, where a better header stands below."""
_FIELDS_OF_SIDEWAYS: Final = 2
"""Fields that a row of a table names at most that lies on its side."""
_HEADERS_IN_MESSAGE: Final = 30
_LETTERS: Final = re.compile("[a-z]{1,3}")
_NO_NAMES: Final[Mapping[str, str]] = MappingProxyType({})


@dataclass(frozen=True, slots=True)
class TableHeader:
    """A header, understood.

    Attributes:
        line: Line number of its last row.
        titles: Its cells as they stand, in one line each.
        positions: Field to position of its column.
        ignored: Titles that mean nothing for this table.
        candidates: Field to every column that its title fits, the one that fits best first,
            where there are several.
        meanings: Position to what the title there means.
        rows: Cells of its rows as read: what repeats them further down is not data.
        wrong: Position of the report's column that says what is wrong.
        dropped: Positions of columns that the message leaves out.
    """

    line: int
    titles: tuple[str, ...]
    positions: Mapping[str, int]
    ignored: tuple[str, ...]
    candidates: Mapping[str, Sequence[int]] = field(default_factory=dict[str, Sequence[int]])
    meanings: Mapping[int, Meaning] = field(default_factory=dict[int, Meaning])
    rows: Sequence[Sequence[Cell]] = ()
    wrong: int | None = None
    dropped: frozenset[int] = frozenset()

    def with_positions(self, chosen: Mapping[str, int]) -> "TableHeader":
        """The same where other columns hold some fields."""
        return replace(self, positions={**self.positions, **chosen})


def match_header(
    line: int,
    cells: Sequence[Cell],
    spec: TableSpec,
    names: Mapping[str, str] = _NO_NAMES,
) -> TableHeader:
    """Understand one row as the header of a table.

    Of several columns for one field the title that names it most exactly counts, then the other
    name that is listed first, then the first column; `candidates` has the others.

    Args:
        line: Its line number.
        cells: As read.
        spec: What the table holds.
        names: Normalised title, or letters of a column if no title is the same, to the field that
            the message says it means.
    """
    titles = tuple(title_text(cell) for cell in cells)
    mapped = _mapped(titles, names) if names else dict[int, str]()
    meanings: dict[int, Meaning] = {}
    ignored: list[str] = []
    wrong: int | None = None
    for position, title in enumerate(titles):
        if wrong is None and plain_title(title) == WRONG:
            wrong = position
        elif (meaning := _meaning(title, spec, names, mapped.get(position))) is not None:
            meanings[position] = meaning
        elif plain_title(title):
            ignored.append(title)
    candidates: dict[str, list[int]] = {}
    for position, meaning in meanings.items():
        candidates.setdefault(meaning.field.name, []).append(position)
    for places in candidates.values():
        if len(places) > 1:
            places.sort(key=lambda place: _order(meanings[place], titles[place]))
    return TableHeader(
        line,
        titles,
        {name: places[0] for name, places in candidates.items()},
        tuple(ignored),
        {name: places for name, places in candidates.items() if len(places) > 1},
        meanings,
        (cells,),
        wrong,
        frozenset(place for place, name in mapped.items() if name == NOT_USED),
    )


def refuse_unknown_titles(mapped: Mapping[str, str], headers: Sequence[TableHeader]) -> None:
    """Refuse a message that says what a column means which no table of its document has.

    Args:
        mapped: Title to the name of a field, or to `-`.
        headers: Of the tables of the document.

    Raises:
        InvalidDocument: There is such a column.
    """
    there: dict[str, str] = {}
    for header in headers:
        there |= {title_key(title): title for title in header.titles if plain_title(title)}
    widest = max(len(header.titles) for header in headers)
    letters = {title_key(column_letters(place)) for place in range(widest)}
    for title, name in mapped.items():
        if name.strip() != NOT_USED and title_key(title) not in there.keys() | letters:
            listed = ", ".join(map(repr, [*there.values()][:_HEADERS_IN_MESSAGE]))
            raise InvalidDocument(
                f"the message maps {readable(title, TITLE_CHARACTERS)!r} to {name}, and the "
                f"document has no such column; its columns are {listed}"
            )


def _mapped(titles: Sequence[str], names: Mapping[str, str]) -> dict[int, str]:
    """What a message says of columns, by position: of their titles, or of their letters."""
    keys = [title_key(title) for title in titles]
    by_letter = {
        place: names[letters]
        for place in range(len(titles))
        if (letters := title_key(column_letters(place))) in names and letters not in keys
    }
    by_title = {place: names[key] for place, key in enumerate(keys) if key in names}
    return by_title | by_letter


def _meaning(
    title: str, spec: TableSpec, names: Mapping[str, str], mapped: str | None = None
) -> Meaning | None:
    """What a title means; `mapped` is what the message says of its column."""
    if mapped is None and names:
        mapped = names.get(title_key(title))
    if mapped == NOT_USED:
        return None
    if mapped is not None:
        return Meaning(spec.by_name[mapped], Specificity.MAPPED)
    meaning = meaning_of(title, spec)
    # A field that the message names a column for is held by no other.
    return None if meaning is not None and meaning.field.name in names.values() else meaning


def _order(meaning: Meaning, title: str) -> tuple[int, int]:
    spellings = [squash(name) for name in (meaning.field.name, *meaning.field.aliases)]
    name = squash(title)
    listed = spellings.index(name) if name in spellings else len(spellings)
    return -meaning.specificity, listed


def names_of(mapped: Mapping[str, str], spec: TableSpec) -> Mapping[str, str]:
    """What a message says that titles mean, as `match_header` takes it.

    Args:
        mapped: Title to the name of a field, or to `-`.
        spec: What the table holds.

    Raises:
        InvalidDocument: There is no such field.
    """
    names: dict[str, str] = {}
    for title, name in mapped.items():
        meaning = meaning_of(name, spec)
        if name.strip() != NOT_USED and meaning is None:
            known = ", ".join(field.name for field in spec.fields)
            raise InvalidDocument(
                f"the message maps {readable(title, TITLE_CHARACTERS)!r} to "
                f"{readable(name, TITLE_CHARACTERS)!r}, which is not a field of this type; "
                f"its fields are {known}, and {NOT_USED!r} leaves a column out"
            )
        names[title_key(title)] = NOT_USED if meaning is None else meaning.field.name
    return names


def find_header(
    rows: Iterable[tuple[int, Sequence[Cell]]],
    spec: TableSpec,
    sheet: str | None = None,
    names: Mapping[str, str] = _NO_NAMES,
) -> TableHeader:
    """Find the header among the first rows of a table.

    It is the row, or two rows, with every required column and, of several, that with most
    columns; the first of equals. Where rows of a table stand between an earlier one and that one
    it is the earlier one: what follows is a second table, which is for a person to settle. Rows
    below it that hold only units, or the numbers of the columns, belong to it.

    Args:
        rows: The first `HEADER_WITHIN` rows with their line numbers.
        spec: What the table should hold.
        sheet: Sheet of the workbook, for the message.
        names: Normalised title to the field that the message says it means.

    Raises:
        InvalidDocument: No row has every required column, or they stand below each other.
    """
    top = list(rows)
    required = {each.name for each in spec.fields if each.required}
    fitting: list[_Fitting] = []
    for index in rows_worth_reading(top, marks_of(required, spec, names)):
        for header, used in _readings(top, index, spec, names):
            has_key = not header.positions.keys().isdisjoint(spec.key)
            if has_key and required <= header.positions.keys():
                fitting.append(_Fitting(len(header.positions), index, used, header))
    if fitting:
        best = _best(fitting)
        if best.fields <= _FIELDS_OF_SIDEWAYS:
            _refuse_sideways(sideways(top, spec, names, best.fields), sheet)
        best = next((each for each in fitting if _has_rows(each, best, top, required)), best)
        return _with_rows_below(best.header, top[best.start + best.rows :])
    closest = _closest(top, spec, names)
    if closest is not None:
        _refuse_sideways(sideways(top, spec, names, closest[0]), sheet)
    raise InvalidDocument(_nothing_found(spec, required, closest, sheet))


def likely_header(
    top: Sequence[tuple[int, Sequence[Cell]]], spec: TableSpec, names: Mapping[str, str] = _NO_NAMES
) -> TableHeader | None:
    """Return the header of a table, or else the row that is most like one; None: there is no row.

    It is for a person, who says what its columns mean.

    Args:
        top: The first rows of a sheet, with their line numbers.
        spec: What the table should hold.
        names: Normalised title to the field that the message says it means.
    """
    with suppress(InvalidDocument):
        return find_header(top, spec, names=names)
    closest = _closest(top, spec, names)
    if closest is None or closest[0]:
        return None if closest is None else closest[1]
    texts = [sum(isinstance(each, str) and is_filled(each) for each in cells) for _, cells in top]
    line, cells = top[texts.index(max(texts))]
    return match_header(line, title_cells(cells), spec, names)


def _closest(
    top: Sequence[tuple[int, Sequence[Cell]]], spec: TableSpec, names: Mapping[str, str]
) -> tuple[int, TableHeader] | None:
    """The first of the rows that name most fields, and how many; None: there is no row."""
    found = [
        len(match_header(line, title_cells(cells), spec, names).positions) for line, cells in top
    ]
    if not found:
        return None
    most = max(found)
    line, cells = top[found.index(most)]
    return most, match_header(line, cells, spec, names)


class _Fitting(NamedTuple):
    """A header that has every required column."""

    fields: int
    start: int
    rows: int
    header: TableHeader


def _best(fitting: Sequence[_Fitting]) -> _Fitting:
    """Most fields; of equals the first in one row, with its second row where it has one."""
    most = max(each.fields for each in fitting)
    equals = [each for each in fitting if each.fields == most]
    first = next((each for each in equals if each.rows == 1), equals[0])
    return next((each for each in equals if each.rows == 2 and each.start == first.start), first)


def _has_rows(
    first: _Fitting,
    best: _Fitting,
    top: Sequence[tuple[int, Sequence[Cell]]],
    required: set[str],
) -> bool:
    """Whether a table begins with a header and has rows above the one that fits best.

    A form at the top of a sheet may name a column or two beside what it says: most titles of a
    table are those of its columns, and a row of it holds more than its key.
    """
    positions = first.header.positions
    titles = sum(map(bool, first.header.titles))
    if len(positions) < _COLUMNS_OF_TABLE or 2 * len(positions) <= titles:
        return False
    for _, cells in top[first.start + first.rows : best.start]:
        filled = {name for name, p in positions.items() if p < len(cells) and title_text(cells[p])}
        if required <= filled and len(filled) >= _COLUMNS_OF_TABLE:
            return True
    return False


def _readings(
    top: Sequence[tuple[int, Sequence[Cell]]],
    index: int,
    spec: TableSpec,
    names: Mapping[str, str],
) -> Iterable[tuple[TableHeader, int]]:
    """A row as a header, alone and with the one below it; and how many rows each takes."""
    line, cells = top[index]
    alone = match_header(line, title_cells(cells), spec, names)
    yield replace(alone, rows=(cells,)), 1
    if index + 1 == len(top) or top[index + 1][0] != line + 1:
        return
    below_line, second = top[index + 1]
    if not may_be_second(second):
        return
    below = without_blanks(second)
    joined = joined_titles(cells, below, lambda title: _meaning(title, spec, names) is not None)
    both = match_header(below_line, joined, spec, names)
    meant = {place: each.field for place, each in both.meanings.items()}
    if adds_titles(both.titles, meant, spec.key, cells, below):
        yield replace(both, rows=(cells, second)), 2


def _with_rows_below(
    header: TableHeader, rows: Sequence[tuple[int, Sequence[Cell]]]
) -> TableHeader:
    """The header with the row of column numbers below it, where there is one."""
    if not rows or rows[0][0] != header.line + 1:
        return header
    line, cells = rows[0]
    if not counts_columns(cells, len(header.positions)):
        return header
    return replace(header, line=line, rows=(*header.rows, cells))


def _refuse_sideways(said: str | None, sheet: str | None) -> None:
    if said is not None:
        raise InvalidDocument(f"the table of {_place(sheet)} {said}")


def _place(sheet: str | None) -> str:
    return f"sheet {readable(sheet, TITLE_CHARACTERS)!r}" if sheet else "the document"


def _nothing_found(
    spec: TableSpec,
    required: set[str],
    closest: tuple[int, TableHeader] | None,
    sheet: str | None,
) -> str:
    where = _place(sheet)
    if closest is None:
        return f"{where} holds no rows"
    found, header = closest
    names = spec.key if required <= header.positions.keys() else required
    wanted = [each.name for each in spec.fields if each.name in names]
    if not found:
        return (
            f"no header row in the first {HEADER_WITHIN} rows of {where}: none names the required "
            f"{_columns(wanted)}; add a row of column names above the data"
        )
    missing = [name for name in wanted if name not in header.positions]
    seen = [title for title in header.titles if title]
    listed = ", ".join(repr(title) for title in seen[:_HEADERS_IN_MESSAGE])
    more = f" and {len(seen) - _HEADERS_IN_MESSAGE} more" if len(seen) > _HEADERS_IN_MESSAGE else ""
    return (
        f"the header row of {where} lacks the {_columns(missing)}: line {header.line} has "
        f"{listed}{more}; add it or rename a column{suggestion(missing, seen, spec)}"
    )


def _columns(names: Sequence[str]) -> str:
    return f"column{'s' if len(names) > 1 else ''} {', '.join(names)}"
