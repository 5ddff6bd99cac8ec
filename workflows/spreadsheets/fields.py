"""What a column of a spreadsheet may mean, and the records that rules and stores share."""

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Final, Literal, NamedTuple

from workflows.shared.contracts import Problem
from workflows.shared.fields import FieldSpec, normalise, squash, unit_signs
from workflows.spreadsheets.mappings import FIELD_TITLE, FieldMetadata
from workflows.spreadsheets.runs import RowCounts

KEYS: Final = frozenset(("FIRST_NAME", "LAST_NAME", "BIB", "MEMBER_NO"))
"""Fields that make a line of a list a row, whatever else it holds."""


def facts_of(field: FieldSpec) -> FieldMetadata:
    """Return what a run knows about a field."""
    return FieldMetadata(
        name=field.name,
        required=field.required,
        resolver=field.resolver,
        creates=field.creates,
        title=field.title[:FIELD_TITLE],
        either=field.either,
    )


class SkippedRow(NamedTuple):
    """A row that is no person, or may be none."""

    line: int
    reason: str
    is_skipped: bool
    """Unless a person keeps it; else it is imported unless a person leaves it out."""
    cells: Sequence[str] = ()
    """Its first cells, as a person sees them."""


@dataclass(frozen=True, slots=True)
class Preview:
    """What a person sees of a file before columns are mapped."""

    format: str
    """`csv`, `xlsx`, `xls` or `ods`, or the name of the reader of a package."""
    sheets: Sequence[str]
    rows: Sequence[tuple[int, Sequence[str]]]
    """The first 20 rows from the header on: line, and cells as text."""
    samples: Sequence[Sequence[str]]
    """Up to 5 distinct values for each mapped column, in the order of the columns."""
    blanks: Sequence[Sequence[str]] = ()
    """Texts of each column that count as blank, as far as they were looked at."""
    other_sheets: Sequence[str] = ()
    """Further sheets that hold something."""
    lines_above: Sequence[int] = ()
    """Lines of another table above the header, which are not read."""
    hidden_rows: int = 0
    """Rows that are read although the program of the file's owner does not show them."""
    hidden_lines: str = ""
    """Their lines, the first ones named."""
    hidden_columns: Sequence[str] = ()
    """Headers of hidden columns that matched a field."""
    hidden_sheet: bool = False
    """The sheet itself is hidden."""
    skipped: Sequence[SkippedRow] = ()
    """Rows of the whole file that are no people, or may be none, once it is staged."""


@dataclass(frozen=True, slots=True)
class Entity:
    """A row that cells can refer to."""

    id: int
    name: str
    """As people see it."""
    spellings: Sequence[str] = ()
    """Codes and other names."""
    key: str | None = None
    """What is stored of it; None: its id."""


@dataclass(frozen=True, slots=True)
class RememberedValue:
    """What people chose for a value before; nothing of both: it was left empty."""

    target_id: int | None = None
    target_name: str | None = None
    """Of the row, which in another event has another id."""


@dataclass(frozen=True, slots=True)
class CustomList:
    """A list of choices that an organisation made for itself; a field CUSTOM_LIST_{KEY}."""

    id: int
    key: str
    """Upper case, as in the field's name."""
    name: str
    open: bool
    """People may add choices."""


TargetStrategy = Literal["merge", "replace", "append", "create_only", "update_only"]
"""How rows meet those that are there: they change them, stand in their place, are added to them,
leave them, or need them. `replace` acts as `merge` until all rows are in."""


@dataclass(frozen=True, slots=True)
class TargetRows:
    """What some rows of a spreadsheet become in one target table.

    An absent value (None) leaves what is there.
    """

    table: str
    columns: tuple[str, ...]
    """Natural key and values, without references and ids."""
    rows: Sequence[tuple[Any, ...]]
    """Python values in the order of `columns`."""
    origin: Sequence[int]
    """Place of each row's source in the chunk; a source has at most one row per table, except
    where `columns` complete the key."""
    references: Mapping[str, str] = field(default_factory=dict[str, str])
    """Column to an earlier target table of the chunk: the id of the row of the same origin."""
    strategy: TargetStrategy = "merge"


@dataclass(frozen=True, slots=True)
class FoundValue:
    """A distinct value met while rows were read."""

    field: str
    value: str
    rows: int
    target_id: int | None = None
    """What it means, where that is certain; None: a person has to decide."""
    target_name: str | None = None
    confidence: float = 0
    alternatives: Sequence[tuple[int, str, float]] = ()
    """Id, name and score of the likeliest candidates."""
    ignored: bool = False
    """It counts as empty."""
    create: bool = False
    """It is certain that a new row is to be made."""
    question: str | None = None
    """Kind of the question, where one is asked about a person."""
    reason: str | None = None
    """Why it is asked."""


@dataclass(frozen=True, slots=True)
class ParkedRow:
    """A row that waits for the meaning of a value."""

    line: int
    offset: int
    """Byte of the staged file where the row begins."""
    person: str | None = None
    """The question about its person, as it stands among the values."""
    person_key: str | None = None
    """Key of its person, where that is certain; of a declared type, what the rows above give it."""


@dataclass(frozen=True, slots=True)
class SheetChunk:
    """Some rows of a spreadsheet, converted, checked and ready to write in one transaction."""

    number: int
    """From 0 within its round."""
    round: int
    cursor: int
    """Rows consumed once this chunk is in: of the file, or of the parked ones."""
    offset: int
    """Bytes of the staged file consumed; in later rounds line of the last row."""
    lines: Sequence[int]
    """Line of each row that goes to the targets; `origin` counts in it."""
    main: str
    """Target table whose rows decide between CREATED, UPDATED and SKIPPED."""
    targets: Sequence[TargetRows]
    errors: Sequence[tuple[int, Sequence[Problem]]] = ()
    """Line, and what is wrong with it."""
    skipped: Sequence[tuple[int, str]] = ()
    """Line, and why it is left out."""
    parked: Sequence[ParkedRow] = ()
    found: Sequence[FoundValue] = ()
    """Values that no mapping knew."""
    left_keys: Sequence[str] = ()
    """First parts of the keys of rows that are left out, if rows that the file lacks are removed.
    """


@dataclass(frozen=True, slots=True)
class SheetMark:
    """How far the rows have come; written with each chunk, in its transaction."""

    round: int = 0
    chunk: int = 0
    """Number of the next chunk."""
    cursor: int = 0
    offset: int = 0
    counts: RowCounts = field(default_factory=RowCounts)
    finished: bool = False
    """The round has ended."""


_LETTER_THEN_DIGIT: Final = re.compile(r"(?<=[^\W\d]) (?=\d)")
_SIGNS: Final = re.compile(
    r"[+<>\u2264\u2265#]"
    # A minus before a number, or at the end, where other signs may surround it.
    r"|(?<!\w)[-\u2212](?=\d)"
    r"|(?<=[\w+<>\u2264\u2265#\u2212-])[-\u2212](?=[+<>\u2264\u2265#\u2212-]*\)?$)"
)


def header_key(header: str) -> str:
    """What makes two headers the same: letters, digits and signs of units, `$price`.

    Of a header without letters and digits, all signs. The key of a key is the key itself.
    """
    plain = squash(header)
    signs = {mark for sign in unit_signs(header) for mark in sign if not mark.isalnum()}
    return "".join(sorted(signs)) + plain if plain else _signs_only(header)


def value_key(text: str) -> str:
    """What makes two values the same: case, accents, spacing and punctuation do not count.

    Signs do: `A+` and `A-` are two blood groups. `U 18` and `U18` are one age group. The key of
    a key is the key itself.
    """
    bare = text.strip()
    if bare.isalpha() and bare.isascii():
        return bare.casefold()
    plain = _LETTER_THEN_DIGIT.sub("", normalise(bare))
    return plain + "".join(_SIGNS.findall(bare)) if plain else _signs_only(bare)


def search_key(text: str) -> str:
    """What a part of a value is looked for in: words without case, accents and punctuation."""
    return normalise(text) or _signs_only(text)


def _signs_only(text: str) -> str:
    return " ".join(text.split()).casefold()
