"""The review of an import: corrections of its rows before anything is written.

Corrections are a list that only grows; each is an operation on the rows as the ones before it have
left them. They are stored beside the rows, and histories hold their numbers.
"""

from collections.abc import Mapping
from datetime import datetime
from enum import StrEnum
from types import MappingProxyType
from typing import Annotated, Final, Literal

from pydantic import Field, StringConstraints, TypeAdapter, model_validator

from contracts.base import Contract, built_when_used
from contracts.spreadsheets.mappings import (
    COLUMNS,
    ColumnMapping,
    Deciding,
    FieldName,
    Person,
    ReviewCounts,
)
from contracts.spreadsheets.runs import CHECK_REASON, SpreadsheetOrder, Staged

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
    SetCells | Replace | Constant | Split | Join | Notation | Exclude | UndoOperation,
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

    row: int
    column: int
    before: str | None = None
    after: str | None = None
    problem: str | None = None
    """What is wrong with it afterwards."""


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

    order: SpreadsheetOrder
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

    order: SpreadsheetOrder
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

    order: SpreadsheetOrder
    columns: tuple[ColumnMapping, ...] = Field(max_length=COLUMNS)
    version: int
    by: Person
    at: datetime
