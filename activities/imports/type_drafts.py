"""Drafts of type files from a sample."""

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import combinations, count
from pathlib import Path
from tempfile import TemporaryDirectory
from types import MappingProxyType
from typing import Final

from activities.imports.column_drafts import ColumnDraft, column_draft, with_open_notations
from activities.imports.rows import note_of
from activities.imports.sample_tables import SAMPLE_ROWS, Judged, SampleTable, judged, table_of
from activities.imports.table_reader import TableReader
from activities.imports.tables import spec_of_file
from adapters.files.documents import FileDocuments
from adapters.types.files import read_type
from workflows.imports.messages import DeclaredMessage, Strategy
from workflows.shared.cells import cell_text, first_lines, is_filled, readable
from workflows.shared.contracts import Problem
from workflows.shared.conversion import transpose
from workflows.shared.declared_fields import KEY_KINDS, MOST_FIELDS, NAME_CHARACTERS
from workflows.shared.declared_types import OWN_COLUMNS
from workflows.shared.errors import InvalidDocument
from workflows.shared.fields import (
    CODE_CHARACTERS,
    LINE_CHARACTERS,
    normalise,
    squash,
    unit_signs,
    written,
)

_RESERVED: Final = OWN_COLUMNS | {"sequence", "section", "project_id", "null"}
"""Names that a field of a draft does not have."""
_LONGEST_TEXT: Final = 100_000
_MOST_CHARACTERS: Final[Mapping[str, int]] = MappingProxyType(
    {"text": LINE_CHARACTERS, "code": CODE_CHARACTERS}
)
_NOTE: Final = 1_000
"""Characters of a note that is a comment."""
_LISTED: Final = 3
_NAMING: Final = frozenset({"code", "integer", "email"})
"""Kinds of a field that may be a key by itself."""
_BESIDE: Final = frozenset({"date", "choice", "country", "text"})
"""Kinds of a field that may be a part of a key."""
_TOGETHER: Final = "unique together in the sample; is it always?"
_CANDIDATES: Final = 8
"""Columns that are tried as keys."""
_WORD: Final = 40
_MOSTLY: Final = 0.75


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
        table = table_of(book, _names_of)
    notes = [*_unnamed(table.titles), *table.untitled()]
    if table.others:
        others = ", ".join(map(repr, table.others))
        notes.append(f"the draft is of the sheet {table.sheet!r}, and not of {others}")
    key = _key_of(table)
    columns = key.columns
    if len(columns) >= MOST_FIELDS - 1:
        # Two more fields may hold the headings above rows, and number them.
        gone = [each for each in columns[MOST_FIELDS - 2 :] if each.name not in key.names]
        names = {each.name for each in gone}
        columns = [each for each in columns if each.name not in names]
        notes.append(
            f"a type has {MOST_FIELDS} fields at most, and these columns are none: "
            + ", ".join(map(repr, (each.title for each in gone)))
        )
    made = [*_lines(name, sample, columns, key)]
    notes += _read_back("\n".join(made), sample)
    return "\n".join([made[0], *(f"# {readable(note, _NOTE)}" for note in notes), *made[1:]]) + "\n"


def _read_back(made: str, sample: Path) -> Iterator[str]:
    """What an import of the sample would refuse and leave out, if the draft stays as it is.

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
        problems: dict[str, Problem] = {}
        rejected = list[int]()
        try:
            reader.open()
            while reader.rows_read < SAMPLE_ROWS and (chunk := reader.next_chunk()) is not None:
                for row in chunk.rejected:
                    rejected.append(row.line)
                    problems.setdefault(row.problems[0].column or "", row.problems[0])
        except InvalidDocument as error:
            yield f"an import of the sample would be refused: {error}"
        else:
            # What is said of columns is above already.
            reader.findings.unused = ()
            reader.findings.sheets_left = ()
            yield from [note] if (note := note_of(reader)) else []
        finally:
            reader.close()
    listed = list(problems.values())[:_LISTED]
    for problem in listed:
        value = f" {readable(problem.value, 20)!r}" if problem.value else ""
        yield f"line {problem.line} would be rejected: {problem.column}{value} {problem.reason}"
    if len(rejected) > len(listed):
        yield f"{len(rejected):,} rows would be rejected: {first_lines(rejected)}"


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


@dataclass(frozen=True, slots=True)
class _Key:
    """What makes rows of a sample the same.

    Attributes:
        names: Fields.
        columns: All columns, judged by the rows that are data if these fields are the key.
        rows: How many rows are data.
        unsure: What a person has to look at.
        is_grouped: The headings above a row are a part of the key.
        headings: What is said of them.
        is_numbered: Rows of the same key are numbered.
    """

    names: Sequence[str]
    columns: Sequence[ColumnDraft]
    rows: int
    unsure: str | None = None
    is_grouped: bool = False
    headings: str | None = None
    is_numbered: bool = False


_Tried = tuple[ColumnDraft, Judged, list[ColumnDraft]]
"""A column as the key, the rows that are data then, and all columns judged by them."""


def _columns_of(table: SampleTable, data: Sequence[int]) -> list[ColumnDraft]:
    """The columns of a sample, judged by some of its rows."""
    titles = table.titles
    rows = [table.rows[place] for place in data]
    columns = transpose([cells for _, cells in rows], len(titles))
    lines = [line for line, _ in rows]
    drafts = [
        column_draft(name, title, cells, lines)
        for name, title, cells in zip(_names_of(titles), titles, columns, strict=True)
        if name is not None
    ]
    return with_open_notations(drafts)


def _key_of(table: SampleTable) -> _Key:
    """The key that the sample shows, given the rows that an import with it would take as data."""
    known: dict[tuple[int, ...], list[ColumnDraft]] = {}
    tried: list[_Tried] = []
    for name, place in _candidates(table):
        found = judged(table, place)
        if found is None or not found.data:
            continue
        data = tuple(found.data)
        columns = known.setdefault(data, []) or _columns_of(table, data)
        known[data] = columns
        own = next(each for each in columns if each.name == name)
        if own.kind in _NAMING:
            tried.append((own, found, columns))
            if own.is_unique and not found.odd and not _is_measure(own):
                break
    tried.sort(key=lambda each: each[1].odd)
    # A number that is unique may just count something: what names a row comes first.
    measures = [each for each in tried if _is_measure(each[0])]
    tried = [each for each in tried if not _is_measure(each[0])]
    unique = [each for each in tried if each[0].is_unique]
    if unique:
        own, found, columns = unique[0]
        others = (each for each in columns if each.is_unique and each.name != own.name)
        naming = [each.name for each in others if each.kind in _NAMING and not _is_measure(each)]
        also = ", ".join(naming[:_LISTED])
        unsure = f"unique and filled as well: {also}" if also else None
        if not found.are_grouped:
            return _Key([own.name], columns, len(found.data), unsure)
        headings = f"the headings above rows; {own.name} is unique without them"
        return _Key([own.name], columns, len(found.data), unsure, True, headings)
    for own, found, columns in (*tried, *measures):
        pairs = {*zip(own.texts, found.sections, strict=True)}
        if own.is_filled and found.are_grouped and len(pairs) == len(found.data):
            headings = f"the headings above rows; {own.name} repeats without them"
            return _Key([own.name], columns, len(found.data), None, True, headings)
    for own, found, columns in tried:
        if own.is_nearly_unique:
            unsure = "unique but for a few rows of the sample, which would be rejected"
            return _Key([own.name], columns, len(found.data), unsure)
    return _key_of_several(table, tried, measures)


def _candidates(table: SampleTable) -> list[tuple[str, int]]:
    """Names and places of columns whose cells look like codes, and are rarely the same."""
    titles = table.titles
    columns = transpose([cells for _, cells in table.rows], len(titles))
    found: list[tuple[str, int]] = []
    for place, name in enumerate(_names_of(titles)):
        texts = [cell_text(cell).strip() for cell in columns[place] if is_filled(cell)]
        codes = sum(1 for text in texts if len(text) <= _WORD and " " not in text)
        are_codes = codes >= _MOSTLY * len(texts) and 3 * len({*texts}) > len(texts)
        if name is not None and are_codes and 3 * len(texts) > len(table.rows):
            found.append((name, place))
    return found[:_CANDIDATES]


def _key_of_several(
    table: SampleTable, tried: Sequence[_Tried], measures: Sequence[_Tried]
) -> _Key:
    """A key of two columns, of a number, or of a column whose rows are numbered."""
    based = next((each for each in tried if each[0].is_filled), None)
    if based is not None:
        _, found, columns = based
    else:
        titles = table.titles
        cells = transpose([cells for _, cells in table.rows], len(titles))
        named = [place for place, name in enumerate(_names_of(titles)) if name is not None]
        held = (n for n in named if sum(map(is_filled, cells[n])) >= _MOSTLY * len(table.rows))
        found = judged(table, next(held, (named or [0])[0])) if named else None
        data = found.data if found is not None else ()
        columns = _columns_of(table, data or range(len(table.rows)))
    rows = len(columns[0].texts) if columns else len(table.rows)
    first = columns[0] if columns else None
    if first is not None and first.kind == "text" and first.is_unique and _are_names(first):
        return _Key([first.name], columns, rows, "unique in the sample; is it always?")
    if (pair := _pair_of(columns)) is not None:
        return _Key(pair, columns, rows, _TOGETHER)
    for own, judgement, others in measures:
        if own.is_nearly_unique:
            unsure = None if own.is_unique else "unique but for a few rows, which would be rejected"
            return _Key([own.name], others, len(judgement.data), unsure)
    # A column of that name holds the numbers.
    columns = [each for each in columns if squash(each.title) != "sequence"]
    if not columns:
        raise InvalidDocument("the sample has no column beside its sequence")
    able = [each for each in columns if each.kind in KEY_KINDS]
    first = next((each for each in able if each.is_filled), (able or columns)[0])
    if based is not None and based[0].name in {each.name for each in able}:
        first = based[0]
    if first.kind not in KEY_KINDS:
        columns = [
            replace(each, kind="text", words={}) if each is first else each for each in columns
        ]
    unsure = "no column or pair of columns is unique and filled: choose what makes a row the same"
    return _Key([first.name], columns, rows, unsure, is_numbered=True)


def _pair_of(columns: Sequence[ColumnDraft]) -> Sequence[str] | None:
    """Two columns that are unique together; None: there are none."""
    for kinds in (_NAMING | {"date"}, _NAMING | _BESIDE):
        keyed = [each for each in columns if each.kind in kinds and _is_part(each)]
        for first, second in combinations(keyed[:_CANDIDATES], 2):
            if len({*zip(first.texts, second.texts, strict=True)}) == len(first.texts):
                return [first.name, second.name]
    return None


def _is_part(column: ColumnDraft) -> bool:
    """Whether a column may be a part of a key: it holds names, and no unique numbers."""
    is_count = column.kind == "integer" and column.is_nearly_unique
    return column.is_filled and _are_names(column) and not is_count


def _is_measure(column: ColumnDraft) -> bool:
    """Whether a column of unique values may count something, and name nothing."""
    return column.kind == "integer" and not column.names_a_thing


def _are_names(column: ColumnDraft) -> bool:
    """Whether a column may name things: its texts are short, and of a free text most are words."""
    words = sum(1 for text in column.texts if any(map(str.isalpha, text)))
    is_word = column.kind != "text" or 2 * words > len(column.texts)
    return is_word and all(len(text) <= _WORD for text in column.texts)


def _lines(name: str, sample: Path, columns: Sequence[ColumnDraft], key: _Key) -> Iterator[str]:
    # A column of that name holds the headings.
    is_grouped = key.is_grouped and all(squash(each.title) != "section" for each in columns)
    made = [*(["section"] if is_grouped else []), *(["sequence"] if key.is_numbered else [])]
    yield f"# A draft from {key.rows:,} rows of {sample.name}: read each line before you apply it."
    yield f"name: {name}"
    yield f"title: {json.dumps(name.replace('_', ' ').capitalize())}"
    yield f"key: [{', '.join([*key.names, *made])}]" + (f"  # {key.unsure}" if key.unsure else "")
    yield "fields:"
    for column in columns:
        yield f"  {column.name}:" + (f"  # {'; '.join(column.unsure)}" if column.unsure else "")
        kind = column.kind
        yield f"    kind: {kind}"
        if column.is_filled or (column.name in key.names and kind in ("integer", "date")):
            yield "    required: true"
        elif column.name in key.names:
            yield '    default: ""'
        longest = max(map(len, column.texts), default=0)
        if longest > _MOST_CHARACTERS.get(kind, longest):
            yield f"    max_length: {min(2 * longest, _LONGEST_TEXT)}"
        if normalise(column.title) != normalise(column.name) or unit_signs(column.title):
            yield f"    aliases: [{json.dumps(column.title, ensure_ascii=False)}]"
        for word, value in column.words.items():
            yield f"    {word}: {value}"
        if column.choices:
            listed = ", ".join(json.dumps(each, ensure_ascii=False) for each in column.choices)
            yield f"    choices: [{listed}]"
    for each in made:
        yield f"  {each}:" + (f"  # {key.headings}" if each == "section" else "")
        yield f"    kind: {each}"
