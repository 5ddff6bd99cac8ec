"""The review of an import: corrections of its rows before anything is written.

The review of an import: corrections of its rows before anything is written.

Corrections are a list that only grows; each is an operation on the rows as the ones before it have
left them. They are stored beside the rows, and histories hold their numbers.
"""

from collections.abc import Mapping, Sequence
from datetime import datetime
from enum import StrEnum
from types import MappingProxyType
from typing import Annotated, Final, Literal

from pydantic import Field, StringConstraints, TypeAdapter, model_validator

from workflows.shared.contracts import Contract, Person, built_when_used, served
from workflows.shared.notifications import NextStep
from workflows.spreadsheets.mappings import (
    COLUMNS,
    ColumnMapping,
    Deciding,
    FieldName,
    ReviewCounts,
    SpreadsheetState,
)
from workflows.spreadsheets.runs import CHECK_REASON, SpreadsheetInput, Staged

REVIEW: Final = "REVIEW"
"""The step of a run whose rows are being reviewed; its state is CELL_MAPPING."""
CELLS: Final = 200_000
"""Cells that one operation sets: those of a corrected export."""
ROWS: Final = 10_000
"""Rows that one operation leaves out or takes in again."""
EXAMPLES: Final = 5

ReviewText = Annotated[str, StringConstraints(max_length=2_000)]
"""What a person writes into a cell."""
ColumnId = Annotated[int, Field(ge=1, le=COLUMNS)]
"""Id of a column: of the file, or one that an operation has made."""
RowNumber = Annotated[int, Field(ge=1, le=2**53)]
"""Line of a row, as the user's program shows it; identifies the row in exports too."""


class NotationName(StrEnum):
    """How the cells of a column are to be read."""

    DAY_FIRST = "DAY_FIRST"
    """3/4/2026 is the third of April."""
    MONTH_FIRST = "MONTH_FIRST"
    DECIMAL_COMMA = "DECIMAL_COMMA"
    """1.234,5"""
    DECIMAL_POINT = "DECIMAL_POINT"
    HOURS_MINUTES = "HOURS_MINUTES"
    """3:45 is three hours and three quarters."""
    MINUTES_SECONDS = "MINUTES_SECONDS"


class CellValue(Contract):
    """What a cell is to hold."""

    row: RowNumber
    column: ColumnId
    value: ReviewText | None = None
    """None: nothing."""


class SetCells(Contract):
    """Correct cells in place."""

    kind: Literal["SET"] = "SET"
    cells: tuple[CellValue, ...] = Field(min_length=1, max_length=CELLS)


class Replace(Contract):
    """Find and replace in a column."""

    kind: Literal["REPLACE"] = "REPLACE"
    column: ColumnId
    find: ReviewText = Field(min_length=1)
    put: ReviewText = ""
    whole: bool = False
    """Only cells that hold the text and nothing else."""
    case: bool = False
    """Capitals and small letters differ."""


class Constant(Contract):
    """The same value in every row: of a column, or of a field that has none."""

    kind: Literal["CONSTANT"] = "CONSTANT"
    column: ColumnId | None = None
    field: FieldName | None = None
    value: ReviewText
    blanks: bool = False
    """Only where the cell is blank."""

    @model_validator(mode="after")
    def _one_of_two(self) -> "Constant":
        if (self.column is None) == (self.field is None):
            raise ValueError("set exactly one of column and field")
        return self


class Split(Contract):
    """One column into two: `Ada Lovelace` into first and last name."""

    kind: Literal["SPLIT"] = "SPLIT"
    column: ColumnId
    separator: Annotated[str, StringConstraints(min_length=1, max_length=20)] = " "
    last: bool = False
    """At the last separator; else at the first."""
    fields: tuple[FieldName, FieldName]
    """What the two parts mean."""


class Join(Contract):
    """Two columns into one."""

    kind: Literal["JOIN"] = "JOIN"
    columns: tuple[ColumnId, ColumnId]
    separator: Annotated[str, StringConstraints(max_length=20)] = " "
    field: FieldName
    """What the joined column means."""


class Move(Contract):
    """Let a column fill another field; the column that filled it fills none any more."""

    kind: Literal["MOVE"] = "MOVE"
    column: ColumnId
    field: FieldName


class Notation(Contract):
    """How dates, numbers or times of a column are written."""

    kind: Literal["NOTATION"] = "NOTATION"
    column: ColumnId
    notation: NotationName


class Exclude(Contract):
    """Leave rows out, or take them in again."""

    kind: Literal["EXCLUDE"] = "EXCLUDE"
    rows: tuple[RowNumber, ...] = Field(min_length=1, max_length=ROWS)
    back: bool = False
    """They are imported after all."""
    reason: Annotated[str, StringConstraints(max_length=200)] = ""
    """Why; it is kept with the rows."""


class UndoOperation(Contract):
    """Take an earlier operation back; those after it stay."""

    kind: Literal["UNDO"] = "UNDO"
    version: int = Field(ge=1)
    """Of the operation."""


Operation = Annotated[
    SetCells | Replace | Constant | Split | Join | Notation | Exclude | UndoOperation | Move,
    Field(discriminator="kind"),
]
OPERATION: Final[TypeAdapter[Operation]] = TypeAdapter(Operation, config=built_when_used())
KINDS: Final[Mapping[str, type[Contract]]] = MappingProxyType(
    {
        "SET": SetCells,
        "REPLACE": Replace,
        "CONSTANT": Constant,
        "SPLIT": Split,
        "JOIN": Join,
        "MOVE": Move,
        "NOTATION": Notation,
        "EXCLUDE": Exclude,
        "UNDO": UndoOperation,
    }
)
"""Operations by the name that they carry."""


class ReviewOperation(Contract):
    """An operation of the list."""

    id: int
    version: int
    """Of the mappings: the operation has made it. 0: it is not applied."""
    operation: Operation
    by: Person
    at: datetime


class ReviewExample(Contract):
    """A cell before and after a change."""

    row: Annotated[int, served("Line of the row", 17)]
    column: Annotated[int, served("Number of the column", 3)]
    before: Annotated[
        str | None, served("What the cell holds before; null: nothing", "3/4/2026")
    ] = None
    after: Annotated[
        str | None, served("What it holds afterwards; null: nothing", "2026-04-03")
    ] = None
    problem: Annotated[
        str | None, served("What is wrong with it afterwards; null: nothing", "is no date")
    ] = None


class ReviewEffect(Contract):
    """What an operation changes, in figures; texts stand in the database."""

    rows: int = 0
    """Rows in which a cell differs."""
    cells: int = 0
    problems_before: int = 0
    """Cells of the changed columns with a problem."""
    problems_after: int = 0


class ReviewInput(Contract):
    """Input of `spreadsheets.open_review` and `spreadsheets.check_review`."""

    order: SpreadsheetInput
    staged: Staged
    columns: tuple[ColumnMapping, ...] = Field(max_length=COLUMNS)
    version: int
    """Of the mappings."""


class ReviewChange(Deciding):
    """Input of `change_review`: an operation that is stored is applied, or looked at."""

    operation: int = Field(ge=1)
    """Its number in the database."""
    preview: bool = False
    """Find out what it would change, and change nothing."""


class ChangeReview(Contract):
    """Input of `spreadsheets.change_review`."""

    order: SpreadsheetInput
    columns: tuple[ColumnMapping, ...] = Field(max_length=COLUMNS)
    operation: int
    version: int
    """Of the mappings after it."""
    by: Person
    at: datetime
    preview: bool = False


class ReviewChanged(Contract):
    """Outcome of `spreadsheets.change_review`, and answer of the update."""

    version: int
    effect: ReviewEffect = ReviewEffect()
    counts: ReviewCounts = ReviewCounts()


class RowDecisions(Deciding):
    """Input of `decide_rows`: rows are kept or left out before columns are confirmed."""

    rows: tuple[RowNumber, ...] = Field(min_length=1, max_length=ROWS)
    keep: bool = False
    """They are imported, although they look like totals, footers or headers; else left out."""


class DecideRows(Contract):
    """Input of `spreadsheets.decide_rows`."""

    uuid: str
    version: int
    """Of the mappings after it."""
    rows: tuple[RowNumber, ...] = Field(min_length=1, max_length=ROWS)
    keep: bool
    by: Person
    at: datetime


class CheckAgain(Contract):
    """Input of `check_review`: a person has the check of all rows tried again, after it failed."""

    by: Person


class CheckNote(Contract):
    """Input of `spreadsheets.note_check`."""

    uuid: str
    version: int
    """Of the mappings that were to be checked."""
    reason: str | None = Field(default=None, max_length=CHECK_REASON)
    """Why the check has failed; None: it is under way again."""


class CloseReview(Contract):
    """Input of `spreadsheets.close_review`."""

    order: SpreadsheetInput
    columns: tuple[ColumnMapping, ...] = Field(max_length=COLUMNS)
    version: int
    by: Person
    at: datetime


def active_operations(operations: Sequence[ReviewOperation]) -> list[ReviewOperation]:
    """The operations that count, undos left out.

    Args:
        operations: All of them, by version. An undo can be taken back as well.
    """
    gone = undone_versions(operations)
    return [
        each
        for each in operations
        if each.version not in gone and not isinstance(each.operation, UndoOperation)
    ]


def undone_versions(operations: Sequence[ReviewOperation]) -> set[int]:
    """Versions of the operations, undos among them, that are taken back."""
    found: set[int] = set()
    for each in reversed(operations):
        if isinstance(each.operation, UndoOperation) and each.version not in found:
            found.add(each.operation.version)
    return found


def changed_rows(operation: Operation, operations: Sequence[ReviewOperation]) -> set[int] | None:
    """The only rows that an operation can change; None: any."""
    match operation:
        case SetCells(cells=cells):
            return {cell.row for cell in cells}
        case Exclude(rows=rows):
            return set(rows)
        case UndoOperation(version=version):
            found = [each.operation for each in operations if each.version == version]
            return changed_rows(found[0], operations) if found else set()
        case _:
            return None


def changed_columns(
    operation: Operation, operations: Sequence[ReviewOperation], made: Mapping[int, Sequence[int]]
) -> set[int] | None:
    """Ids of the columns whose cells an operation can change; None: of rows as a whole.

    Args:
        operation: The last one, or one that is taken back.
        operations: Those that were applied, by version.
        made: Version to the columns that its operation has made.
    """
    match operation:
        case UndoOperation(version=version):
            later = [each for each in operations if each.version > version]
            undone = [each for each in operations if each.version == version]
            if not undone:
                return set()
            found = changed_columns(undone[0].operation, operations, made)
            if found is None:
                return None
            found |= set(made.get(version, ()))
            for each in later:
                # What is made of a changed column changes with it.
                if found & (about_columns(each.operation) or set()):
                    found |= set(made.get(each.version, ()))
            return found
        case SetCells(cells=cells):
            return {cell.column for cell in cells}
        case Exclude():
            return None
        case Replace(column=column) | Notation(column=column) | Move(column=column):
            return {column}
        case Constant(column=column):
            return set() if column is None else {column}
        case _:
            return set()


def about_columns(operation: Operation) -> set[int] | None:
    """Ids of the columns that an operation is about as a whole; None: it is about rows."""
    match operation:
        case Replace() | Notation() | Split() | Move():
            return {operation.column}
        case Constant(column=column):
            return set() if column is None else {column}
        case Join(columns=columns):
            return set(columns)
        case _:
            return None


def remap_columns(operation: Operation, ids: Mapping[int, int]) -> Operation:
    """An operation about columns, for others in their places."""
    match operation:
        case Join(columns=(one, other)):
            return operation.model_copy(update={"columns": (ids[one], ids[other])})
        case Replace() | Notation() | Split() | Move():
            return operation.model_copy(update={"column": ids[operation.column]})
        case Constant(column=int(column)):
            return operation.model_copy(update={"column": ids[column]})
        case _:
            return operation


def described(operation: Operation, headers: Mapping[int, str]) -> tuple[str, str]:
    """What an operation is about, and what it does, for people and without values of cells.

    Args:
        operation: The operation.
        headers: Id of each column to its header.
    """

    def named(id: int) -> str:
        return headers.get(id, f"column {id}")

    match operation:
        case SetCells(cells=[cell]):
            return f"row {cell.row}, {named(cell.column)}", "corrected"
        case SetCells(cells=cells):
            return f"{len(cells)} cells", "corrected"
        case Replace(column=column):
            return named(column), "text replaced"
        case Constant(column=int(column)):
            return named(column), "blank cells filled" if operation.blanks else "filled"
        case Constant(field=field):
            return str(field), "filled"
        case Split(column=column, fields=fields):
            return named(column), f"split into {' and '.join(fields)}"
        case Join(columns=(one, other), field=field):
            return f"{named(one)} and {named(other)}", f"joined as {field}"
        case Move(column=column, field=field):
            return named(column), f"moved to {field}"
        case Notation(column=column, notation=notation):
            words = notation.value.lower().replace("_", " ")
            return named(column), f"read as {words}"
        case Exclude(rows=rows, back=back):
            count = f"row {rows[0]}" if len(rows) == 1 else f"{len(rows)} rows"
            return count, "taken in again" if back else "left out"
        case UndoOperation(version=version):
            return f"change {version}", "taken back"


def awaited(review: ReviewCounts) -> str:
    """What the run waits for, in a sentence."""
    if review.wrong:
        return f"{review.wrong} of {review.rows} rows have a problem; correct or confirm them"
    return "its rows have to be confirmed"


def next_steps(uuid: str) -> tuple[NextStep, ...]:
    """Commands that answer it."""
    confirm = f"docflow upload confirm {uuid} values"
    return (NextStep(does="confirm the rows as they are and continue", command=confirm),)


def details(
    run: str, state: SpreadsheetState, since: datetime, assignee: str, review: ReviewCounts
) -> str:
    """Markdown for the Web UI."""
    command = f"temporal workflow update execute --workflow-id {run} --name"
    return (
        f"**{state}**, review of rows, since {since:%Y-%m-%d %H:%M} UTC, waits for "
        f"{assignee}: {awaited(review)}\n\n"
        "Rows are corrected on the page of the import, or through the API.\n\n"
        "Put your own choices in the place of what stands in angle brackets; as they are, these "
        "commands change nothing:\n\n"
        f'- confirm: `{command} confirm_cell_mappings --input \'{{"by":<"you">}}\'`\n'
        f'- stop: `{command} cancel --input \'{{"by":<"you">}}\'`\n'
    )
