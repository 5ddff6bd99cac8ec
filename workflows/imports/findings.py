"""What of a document did not become rows, and what happens when a report of it comes back.

Which blobs an import message may name.

Documents of every pipeline share a container: what docflow keeps there for itself, a message must
not read, move or delete.
"""

import hashlib
import json
import re
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import date, datetime
from decimal import Decimal
from itertools import groupby
from types import MappingProxyType
from typing import Any, Final

from pydantic import ValidationError

from workflows.imports.column_scan import LetterCases, UnusedColumn
from workflows.imports.messages import (
    IMPORT_MESSAGE,
    FileMessage,
    ImportMessage,
    ScheduleUploadMessage,
    encoded,
)
from workflows.imports.runs import NOTE_CHARACTERS, HandlerOutcome
from workflows.shared.cells import (
    Cell,
    RejectedRow,
    SkippedTable,
    is_filled,
    listed_lines,
    readable,
)
from workflows.shared.contracts import OWN_PLACES, Problem, problem_text
from workflows.shared.conversion import Flaw
from workflows.shared.declared_types import OTHER
from workflows.shared.errors import RuleViolation
from workflows.shared.left_out import Left
from workflows.shared.notations import Notation

VALUE_CHARACTERS: Final = 200
SKIPPED_ROWS: Final = 10_000
"""Rows that are kept with their cells; all are counted."""
_LINES_NAMED: Final = 6
_NAMED: Final = (60, 40, 30, 20, 14, 10, 7, 5, 3, 1)
"""How many names of a kind are listed: as many as there is room for."""
_LONGEST_NAME: Final = 90
_ONE: Final = MappingProxyType(
    {
        Left.TOTAL: "total",
        Left.FOOTER: "page footer",
        Left.HEADER: "repeated header",
        Left.HEADING: "heading or remark without a key",
    }
)


@dataclass(frozen=True, slots=True)
class HiddenParts:
    """What was read of a table although the user's program does not show it.

    Attributes:
        sheet: Its sheet; None: it is the only one that was read.
        rows: Line numbers of rows below the header, rising.
        columns: Titles of columns in use.
    """

    sheet: str | None = None
    rows: Sequence[int] = ()
    columns: Sequence[str] = ()


@dataclass
class Findings:
    """Collects what is found on the way through a document.

    Attributes:
        sheets_read: Sheets whose rows were read, where there are several or one was chosen.
        sheets_left: Sheets that hold something and were not read, each with why.
        unused: Columns that hold data and are not used.
        kept: Columns that mean no field, and whose cells are kept beside the fields.
        hidden: What was read of each table and is not shown.
        skipped: Rows that were left out, the first 10,000 of them, with cells and reason.
        left: Lines of the first rows that were left out, by reason.
        counts: All rows that were left out, by reason.
        odd: Lines, with the key, of rows with a doubtful key: like a total or a footer.
        lone: Lines of rows that hold nothing but their key.
        headings: Lines of rows that are headings of the rows below them as well.
        judged: Rows that were looked at.
        unused_rows: Rows that hold something in columns only that are not used.
        filled_down: Cells filled from the merged cell above, by title.
        repeated: Rows that stand on several sheets with the same values, counted once.
        garbled: Texts that were saved in a wrong encoding, and what was meant.
        parts: Title of each column with years or months without a day, and some of them.
        cases: Codes that differ in the case of letters only.
        left_keys: What stands in the place of the key in rows that were left out.
        kept_lines: Lines of rows that a person keeps, as the message has them.
        titles: Titles of the columns by sheet.
    """

    sheets_read: Sequence[str] = ()
    sheets_left: Sequence[str] = ()
    unused: Sequence[UnusedColumn] = ()
    kept: Sequence[UnusedColumn] = ()
    hidden: Sequence[HiddenParts] = ()
    skipped: list[RejectedRow] = field(default_factory=list[RejectedRow])
    left: dict[Left, list[str]] = field(default_factory=dict[Left, list[str]])
    counts: Counter[Left] = field(default_factory=Counter[Left])
    odd: list[str] = field(default_factory=list[str])
    lone: list[str] = field(default_factory=list[str])
    headings: list[str] = field(default_factory=list[str])
    judged: int = 0
    unused_rows: int = 0
    filled_down: Counter[str] = field(default_factory=Counter[str])
    repeated: int = 0
    garbled: Mapping[str, str] = field(default_factory=dict[str, str])
    parts: Mapping[str, Sequence[str]] = field(default_factory=dict[str, Sequence[str]])
    cases: LetterCases = field(default_factory=LetterCases)
    left_keys: set[str] = field(default_factory=set[str])
    kept_lines: set[str] = field(default_factory=set[str])
    titles: Mapping[str | None, Sequence[str]] = field(
        default_factory=dict[str | None, Sequence[str]]
    )

    def leave_out(
        self, why: Left, sheet: str | None, line: int, cells: Sequence[Cell], key: object
    ) -> None:
        """Keep a row that is left out.

        Args:
            why: The reason.
            sheet: Its sheet; None: the document has only one table.
            line: Line number in it, from 1.
            cells: As read.
            key: What stands in the place of its key, which may be one.
        """
        self.counts[why] += 1
        if isinstance(key, str):
            self.left_keys.add(key)
        if len(self.skipped) < SKIPPED_ROWS:
            values = [readable(cell, VALUE_CHARACTERS) for cell in cells if is_filled(cell)]
            shown = " | ".join(values)[:VALUE_CHARACTERS]
            reason = f"left out: {_ONE[why]}"
            problem = Problem(line=line, sheet=sheet, value=shown, reason=reason)
            kept = [_shortened(cell) for cell in cells]
            self.skipped.append(RejectedRow(line, kept, [problem]))
        lines = self.left.setdefault(why, [])
        if len(lines) < _LINES_NAMED:
            lines.append(place_of(sheet, line))

    def skipped_tables(self) -> Sequence[SkippedTable]:
        """Return the titles of each sheet, and its rows that were left out."""
        by_sheet = groupby(self.skipped, key=lambda row: row.problems[0].sheet)
        return [(self.titles.get(sheet, ()), list(rows)) for sheet, rows in by_sheet]

    def sentences(self, room: int) -> Sequence[str]:
        """Everything that a person has to know, most important first.

        Args:
            room: Characters that they may have; where names do not fit, their number is said.
        """
        every = (list(self._sentences(most)) for most in _NAMED)
        fitting = (found for found in every if len(" ".join(found)) <= room)
        return next(fitting, None) or list(self._sentences(_NAMED[-1]))

    def _sentences(self, most: int) -> Iterable[str]:
        if len(self.sheets_read) > 1:
            yield f"Sheets read: {_listed(map(repr, self.sheets_read), most)}."
        if self.sheets_left:
            yield f"Sheets not read: {_listed(self.sheets_left, most)}."
        yield from self._hidden(most)
        for why, count in self.counts.items():
            what = f"1 {_ONE[why]} was" if count == 1 else f"{count:,} {why.value} were"
            yield f"{what} left out ({_lines(self.left[why], count)})."
        if self.headings:
            count = len(self.headings)
            what = "1 row with a key heads" if count == 1 else f"{count:,} rows with a key head"
            yield f"{what} the rows below ({_lines(self.headings, count)})."
        if self.odd:
            what = _taken(len(self.odd), "a doubtful key")
            yield f"{what} ({_lines(self.odd, len(self.odd))})."
        if self.lone and 2 * len(self.lone) < self.judged:
            what = _taken(len(self.lone), "nothing but a key")
            yield f"{what} ({_lines(self.lone, len(self.lone))})."
        for title, parts in self.parts.items():
            texts = _listed(map(repr, parts), most)
            yield f"{title!r} has dates without a day, read as the first or last one: {texts}."
        if self.garbled:
            texts = [f"{text!r} (meant: {said!r})" for text, said in self.garbled.items()]
            yield f"Saved in a wrong encoding and taken as they stand: {_listed(texts, most)}."
        if self.cases.pairs:
            pairs = [f"{first!r} and {other!r}" for first, other in self.cases.pairs]
            listed = _listed(pairs, most)
            yield f"Codes that differ in capital letters only count as different: {listed}."
        if self.repeated:
            yield f"{_rows(self.repeated)} on several sheets with the same values, counted once."
        if self.unused_rows:
            yield f"{_rows(self.unused_rows)} in columns only that are not used."
        if self.filled_down:
            named = [f"{title!r} ({count:,})" for title, count in self.filled_down.items()]
            yield f"Merged cells were filled down, with the number of rows: {_listed(named, most)}."
        if self.unused:
            yield f"Columns not used: {_listed(map(_column, self.unused), most)}."
        if self.kept:
            yield f"Columns kept in {OTHER!r}: {_listed(map(_column, self.kept), most)}."

    def _hidden(self, most: int) -> Iterable[str]:
        for each in self.hidden:
            count = len(each.rows)
            if count:
                what = "1 hidden row was" if count == 1 else f"{count:,} hidden rows were"
                lines = f"line{'' if count == 1 else 's'} {listed_lines(each.rows)}"
                yield f"{what} read too ({lines}{_of(each.sheet)})."
            if each.columns:
                titles = _listed(map(repr, each.columns), most)
                yield f"Hidden columns{_of(each.sheet)} were read too: {titles}."


def _shortened(cell: Cell) -> Cell:
    return readable(cell, VALUE_CHARACTERS) if isinstance(cell, str) else cell


def place_of(sheet: str | None, line: int) -> str:
    """Return a line as a person finds it."""
    return str(line) if sheet is None else f"{line} of {sheet!r}"


def _lines(places: Sequence[str], count: int) -> str:
    more = ", ..." if count > _LINES_NAMED else ""
    return f"line{'' if count == 1 else 's'} {', '.join(places[:_LINES_NAMED])}{more}"


def _taken(count: int, what: str) -> str:
    return (
        f"1 row with {what} was taken" if count == 1 else f"{count:,} rows with {what} were taken"
    )


def _of(sheet: str | None) -> str:
    return f" of {sheet!r}" if sheet else ""


def _column(column: UnusedColumn) -> str:
    values = "1 value" if column.values == 1 else f"{column.values:,} values"
    also = f", fits {column.field} too" if column.field else ""
    return f"{column.name} ({values}{also})"


def _rows(count: int) -> str:
    return "1 row stands" if count == 1 else f"{count:,} rows stand"


def _listed(names: Iterable[str], most: int) -> str:
    every = [name if len(name) <= _LONGEST_NAME else f"{name[:_LONGEST_NAME]}..." for name in names]
    more = len(every) - most
    return ", ".join(every[:most]) + (f" and {more} more" if more > 0 else "")


_MARK: Final = re.compile(r"\[([0-9a-f]{12})\]")
_MARK_CHARACTERS: Final = 14
_WHY_CHARACTERS: Final = 300
_AGAIN: Final = "came back as it was: "


def mark_of(fields: Mapping[str, Any]) -> str:
    """Recognises a row by what its columns say, however a program writes it.

    Args:
        fields: Field to the converted value, or to the cell where it could not be converted.
    """
    parts = [f"{name}={_text(fields[name])}" for name in sorted(fields) if _text(fields[name])]
    return hashlib.sha256("\x1f".join(parts).encode("utf-8", "replace")).hexdigest()[:12]


def _text(value: Any) -> str:
    match value:
        case None:
            return ""
        case Decimal():
            return format(value.normalize(), "f")
        case date():
            return value.isoformat()
        case _:
            return str(value).strip()


def cell_fingerprint(value: Any, cell: Cell) -> Any:
    """What stands for a cell in a mark: its value, or its text where it has none."""
    if not isinstance(value, Flaw):
        return value
    return cell.date() if isinstance(cell, datetime) else readable(cell, _WHY_CHARACTERS)


def marked(cells: Sequence[Cell]) -> dict[int, tuple[str, str]]:
    """The marks in a report's column that says what is wrong, and what it says.

    Returns:
        Index of the row to its mark and reason; rows without a mark are not among them.
    """
    found: dict[int, tuple[str, str]] = {}
    for i, cell in enumerate(cells):
        if not isinstance(cell, str):
            continue
        text = cell.rstrip()
        if (mark := _MARK.fullmatch(text[-_MARK_CHARACTERS:])) is not None:
            whole = text[:-_MARK_CHARACTERS].rstrip()
            why = (whole.partition(": ")[2] or whole).removeprefix(_AGAIN)
            found[i] = (mark[1], f"{_AGAIN}{why[:_WHY_CHARACTERS]}")
    return found


_TITLE: Final = "docflow report"
_NOTATION: Final = "notation"
_COLUMN: Final = "column"
_PERCENTAGE: Final = "percentage"
_DOTTED: Final = "dotted"
_OPEN: Final = "open"


@dataclass(frozen=True, slots=True)
class ReportMemory:
    """What was settled about the columns of a document.

    Attributes:
        notations: Field to how its column writes numbers or dates; None: that was open.
        columns: Title to the field that a person said it means.
        percentages: Fields whose values have a percent sign.
        dotted: Dates with dots do not say their order.
    """

    notations: Mapping[str, Notation | None] = field(default_factory=dict[str, Notation | None])
    columns: Mapping[str, str] = field(default_factory=dict[str, str])
    percentages: frozenset[str] = frozenset()
    dotted: bool = False

    def rows(self) -> list[tuple[str, str, str]]:
        """As rows of a sheet."""
        return [
            (_TITLE, "1", ""),
            *(
                (_NOTATION, name, _OPEN if notation is None else notation.name)
                for name, notation in self.notations.items()
            ),
            *((_COLUMN, title, name) for title, name in self.columns.items()),
            *((_PERCENTAGE, name, "") for name in sorted(self.percentages)),
            *([(_DOTTED, "", "")] if self.dotted else []),
        ]


def read_memory(rows: Iterable[Sequence[Cell]]) -> ReportMemory:
    """What a sheet remembers; nothing where it is another one."""
    notations: dict[str, Notation | None] = {}
    columns: dict[str, str] = {}
    percentages: set[str] = set()
    dotted = False
    known = {notation.name: notation for notation in Notation}
    for number, cells in enumerate(rows):
        if number == 0 and cells[:1] != [_TITLE]:
            break
        texts = [str(cell or "") for cell in cells[:3]]
        kind, name, value = texts + [""] * (3 - len(texts))
        if kind == _NOTATION and (value == _OPEN or value in known):
            notations[name] = known.get(value)
        elif kind == _COLUMN:
            columns[name] = value
        elif kind == _PERCENTAGE:
            percentages.add(name)
        dotted = dotted or kind == _DOTTED
    return ReportMemory(notations, columns, frozenset(percentages), dotted)


FIXED: Final = ("project_id", "task_id", "document_type")
"""Fields that name the work: they stay."""
BLOBS: Final = ("blob_name", "temp_blob_name", "target_blob_name")
SHOWN: Final = 120
"""Characters of a new value in the trail of corrections."""
LONGEST: Final = 300
"""Characters of all of them."""


def changed(message: ImportMessage, changes: Mapping[str, Any]) -> ImportMessage:
    """The message with some of its fields changed.

    Args:
        message: As it was.
        changes: Field to its new value; of a mapping only the entries that are named change.

    Raises:
        RuleViolation: A field is not one of this type of document, stays as it is, or cannot have
            this value.
    """
    if not changes:
        return message
    fields = message.model_dump(mode="json", exclude_unset=True)
    for name, value in changes.items():
        if name in FIXED:
            raise RuleViolation(f"a corrected message keeps its {name}")
        if name not in type(message).model_fields:
            raise RuleViolation(f"{message.document_type!s} has no field {name}")
        old = fields.get(name)
        fields[name] = (
            {**old, **value} if isinstance(old, dict) and isinstance(value, dict) else value
        )
    try:
        return IMPORT_MESSAGE.validate_python(fields)
    except ValidationError as error:
        problem = error.errors(include_url=False, include_input=False, include_context=False)[0]
        field = ".".join(str(part) for part in problem["loc"][1:])
        raise RuleViolation(f"{field or 'the message'}: {problem_text(problem)}") from error


def changes_of(old: ImportMessage, new: ImportMessage) -> str:
    """Fields whose values differ, with the new value; those that people know best come first."""
    before, after = old.model_dump(mode="json"), new.model_dump(mode="json")
    differing = [name for name, value in after.items() if value != before.get(name)]
    differing.sort(key=lambda name: name in BLOBS)
    return _cut("; ".join(f"{name}: {_shown(after[name])}" for name in differing), LONGEST)


def _shown(value: Any) -> str:
    return _cut(value if isinstance(value, str) else json.dumps(value, ensure_ascii=False), SHOWN)


def _cut(text: str, most: int) -> str:
    return text if len(text) <= most else f"{text[: most - 1]}\N{HORIZONTAL ELLIPSIS}"


UPLOADS: Final = "uploads/"
"""Where commands and pages put documents, each below its project and task."""


def uploads_of(project_id: str, task_id: str) -> str:
    """Where the documents of one import are that commands and pages have put there."""
    return f"{UPLOADS}{encoded(project_id)}/{encoded(task_id)}/"


def named_blobs(message: ImportMessage) -> dict[str, str]:
    """Field to the blob that it names."""
    if isinstance(message, ScheduleUploadMessage):
        named = {
            name: getattr(message, name)
            for name in ("temp_blob_name", "blob_name", "target_blob_name")
        }
        return {name: blob for name, blob in named.items() if blob is not None}
    return {"blob_name": message.blob_name} if isinstance(message, FileMessage) else {}


def foreign_blob(message: ImportMessage, prefixes: Sequence[str]) -> str | None:
    """Why a message may not name a blob that it names; None: it may name all of them.

    Args:
        message: The message.
        prefixes: Where the documents of its queue are, each ending with a slash; none: anywhere
            but where docflow keeps its own.

    A document that docflow itself has stored for the import is always one of them: what a person
    submits, or gives a parked import.
    """
    allowed = (*prefixes, uploads_of(message.project_id, message.task_id))
    for place, blob in named_blobs(message).items():
        if blob.startswith(OWN_PLACES):
            return f"{place}: {blob.partition('/')[0]}/ is docflow's own place"
        if prefixes and not blob.startswith(allowed):
            return f"{place}: must be below {', '.join(prefixes)}"
    return None


def naming_unused_fields(message: ImportMessage, outcome: HandlerOutcome) -> HandlerOutcome:
    """The same outcome, its note naming the fields of the message that are not used."""
    names = message.unknown_fields
    if not names:
        return outcome
    sentence = f"Fields of the message that are not used: {', '.join(names)}."
    note = f"{outcome.note.rstrip('.')}. {sentence}" if outcome.note else sentence
    shortened = note if len(note) <= NOTE_CHARACTERS else f"{note[: NOTE_CHARACTERS - 1]}\u2026"
    return outcome.model_copy(update={"note": shortened})
