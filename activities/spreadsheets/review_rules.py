"""What a review of rows shows: what is wrong with which cell, before anything is written."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import TYPE_CHECKING, Annotated, Final, NamedTuple

from pydantic import computed_field

from workflows.shared.cells import Cell
from workflows.shared.contracts import PlainRecord, Problem, served
from workflows.spreadsheets.edits import Correction
from workflows.spreadsheets.mappings import ColumnMapping, ReviewCounts
from workflows.spreadsheets.reviews import Operation, ReviewEffect, ReviewExample, ReviewOperation

if TYPE_CHECKING:
    # Commands know reviews, and need nothing of what checks rows.
    from activities.spreadsheets.validation import CheckedRows

PROBLEMS: Final = 200_000
"""Problems of one review that are stored; further ones are met when rows are processed."""
NEW_VALUE: Final = (
    "is not known; correct it, or choose what it means when it is asked for after the review"
)
SAME_BIB: Final = "another person has this bib too; it is asked after the review"
UNCLEAR_PERSON: Final = "it is not clear who is meant; it is asked after the review"
REASON: Final = 500


class RowProblem(NamedTuple):
    """What is wrong with a cell, or with a row."""

    line: int
    column: int
    """Id of the column; 0: the row as a whole."""
    value: str | None
    reason: str


@dataclass(frozen=True, slots=True)
class ReviewState:
    """A review as it is stored.

    Attributes:
        version: Of the mappings, and of the newest operation.
        is_open: Corrections are accepted.
        counts: Its rows in figures.
        check_failure: Why all rows could not be checked at this version; None: they are, or it is
            under way.
    """

    version: int
    is_open: bool
    counts: ReviewCounts
    check_failure: str | None = None


@dataclass(frozen=True, slots=True)
class ReviewedRow:
    """A row as a review shows it.

    Attributes:
        line: Number of the row.
        cells: As they are now, by place.
        problems: What is wrong with it.
        corrections: The cells that are not as they stood in the file.
        excluded: Who left it out; None: it is imported.
    """

    line: int
    cells: Sequence[Cell]
    problems: Sequence[RowProblem]
    corrections: Sequence[Correction]
    excluded: str | None


@dataclass(frozen=True, slots=True)
class RememberedEdit:
    """A correction of columns that was made to an earlier file.

    Attributes:
        operation: As it would be for this file.
        headers: Of the columns that it is about.
        by: Who decided it.
        at: When.
        is_of_file: It is about no column, and the file had all headers that this one has.
    """

    operation: ReviewOperation
    headers: Sequence[str]
    by: str
    at: datetime
    is_of_file: bool = False

    @property
    def why(self) -> str:
        """Why it is suggested."""
        if self.is_of_file:
            return "done in an earlier file with the same headers"
        return f"done in an earlier file to {' and '.join(sorted(self.headers))}"


@dataclass(frozen=True, slots=True)
class StoredOperation:
    """An operation with what came of it.

    Attributes:
        operation: The operation.
        effect: In figures.
        examples: Some of them.
        undone_by: Version of the operation that takes it back; None: it counts.
    """

    operation: ReviewOperation
    effect: ReviewEffect
    examples: Sequence[ReviewExample]
    undone_by: int | None = None


class ReviewColumn(PlainRecord):
    """A column of a review."""

    id: Annotated[int, served("Number of the column", 3)]
    header: Annotated[str, served("The header, as it stands in the file", "E-Mail")]
    target: Annotated[str | None, served("Field that the column fills; null: none", "EMAIL")]
    title: Annotated[
        str | None, served("As people call the field; null: the column fills none", "Email")
    ] = None
    problems: Annotated[int, served("Cells of the column with a problem", 3)] = 0
    made: Annotated[bool, served("A change has made the column", False)] = False


class ReviewOverview(PlainRecord):
    """A review as a whole."""

    version: Annotated[
        int, served("Of the mappings and their corrections: the value of the ETag", 7)
    ]
    is_open: Annotated[bool, served("Corrections are accepted", True)]
    is_checked: Annotated[
        bool,
        served("All rows were checked against each other and people at this version", True),
    ]
    check_failure: Annotated[
        str | None,
        served(
            "Why all rows could not be checked at this version: retry its run to check them again; "
            "null: they are, or they are being checked",
            None,
        ),
    ] = None
    rows: Annotated[int, served("Rows of the file", 150)]
    wrong: Annotated[int, served("Rows with a problem", 3)]
    excluded: Annotated[int, served("Rows that a person has excluded", 1)]
    row_problems: Annotated[int, served("Problems of rows as a whole, as duplicates", 1)]
    missing: Annotated[Sequence[str], served("Required fields without a column", ["FIRST_NAME"])]
    dry_run: Annotated[
        bool, served("Nothing is written unless it is imported from the review", False)
    ]
    columns: Annotated[Sequence[ReviewColumn], served("The columns, by place", [])]

    @computed_field(
        description="Only the first 200,000 problems are known: rows further down may have more",
        examples=[False],
    )
    @property
    def is_cut(self) -> bool:
        """Whether rows further down may have problems that are not stored."""
        return self.row_problems + sum(each.problems for each in self.columns) >= PROBLEMS


class ReviewCell(PlainRecord):
    """A cell of a row."""

    column: Annotated[int, served("Number of the column", 3)]
    value: Annotated[
        str | None, served("What stands in the cell; null: nothing", "anna(at)example.org")
    ]
    problem: Annotated[
        str | None,
        served("What is wrong with the cell, in words; null: nothing", "is not a mail address"),
    ]
    remark: Annotated[
        str | None,
        served(
            "What to look at in the cell, which is imported as it stands; null: nothing",
            "is a name with digits",
        ),
    ]
    original: Annotated[
        str | None, served("What stands in the file, if the cell was corrected; else null", "anna@")
    ] = None
    corrected_by: Annotated[
        str | None, served("Who corrected it last; null: it was not corrected", "ben@example.org")
    ] = None
    corrected_at: Annotated[
        datetime | None, served("When; null: it was not corrected", "2026-01-03T10:02:00Z")
    ] = None


class ReviewRow(PlainRecord):
    """A row as it is now."""

    line: Annotated[int, served("Line of the row, as a spreadsheet shows it, from 1", 17)]
    excluded: Annotated[str | None, served("Who left the row out; null: it is imported", None)]
    problems: Annotated[
        Sequence[str],
        served("What is wrong with the row as a whole, in words", ["same person as line 4"]),
    ]
    cells: Annotated[Sequence[ReviewCell], served("The cells, by place", [])]


class ChangeEffect(PlainRecord):
    """What a change does, or would do."""

    version: Annotated[
        int, served("Of the mappings and their corrections: the value of the ETag", 7)
    ]
    changed_rows: Annotated[int, served("Rows that it changes", 12)] = 0
    changed_cells: Annotated[int, served("Cells that it changes", 12)] = 0
    problems_before: Annotated[int, served("Problems of the changed columns before", 12)] = 0
    problems_after: Annotated[int, served("Problems of the changed columns afterwards", 0)] = 0
    wrong_rows: Annotated[int, served("Rows with a problem", 3)]
    examples: Annotated[
        Sequence[ReviewExample], served("Some of the changed cells; at most 5", [])
    ] = ()


class ChangeRecord(PlainRecord):
    """A change to the rows of a review, in words and as it can be requested."""

    operation: Annotated[
        Operation, served("The change, as it can be requested", {"kind": "EXCLUDE", "rows": [4]})
    ]
    by: Annotated[str, served("Who made it", "ben@example.org")]
    at: Annotated[datetime, served("When", "2026-01-03T10:02:00Z")]
    subject: Annotated[str, served("What the change is about, in words", "row 17, E-Mail")]
    decision: Annotated[str, served("What it does, in words", "corrected")]


class ReviewOperationView(ChangeRecord):
    """A change of the list."""

    version: Annotated[int, served("Of the mappings that it has made", 7)]
    changed_rows: Annotated[int, served("Rows that it changes", 12)]
    changed_cells: Annotated[int, served("Cells that it changes", 12)]
    undone_by: Annotated[
        int | None, served("Version of the change that takes it back; null: it counts", None)
    ]


class RememberedOperation(ChangeRecord):
    """A change to an earlier file, as it can be requested for this one."""

    headers: Annotated[
        Sequence[str], served("Headers of the columns that it is about", ["Date of birth"])
    ]
    why: Annotated[str, served("Why it is suggested", "done in an earlier file to Date of birth")]


def numbered(columns: Sequence[ColumnMapping]) -> list[ColumnMapping]:
    """Columns whose problems name them by their ids, as two may have the same header."""
    return [column.model_copy(update={"header": str(column.id)}) for column in columns]


def problems_of(checked: "CheckedRows") -> Iterator[RowProblem]:
    """What is wrong with checked and settled rows of `numbered` columns, one for each cell."""
    flaws = checked.flaws or {}
    others = checked.problems.keys() | checked.open.keys() | checked.waiting
    if not others:
        # Of cells alone, each of which has one fault at most.
        ids = {id: int(id) for found in flaws.values() for id, _, _ in found}
        for i, found in sorted(flaws.items()):
            line = checked.source[i].line
            for id, text, reason in found:
                yield RowProblem(line, ids[id], text, reason)
        return
    concerned = flaws.keys() | others
    for i in sorted(concerned - checked.blank - checked.left_out):
        row = checked.source[i]
        found = [_problem(row.line, each) for each in checked.problems.get(i, ())]
        found += [
            RowProblem(row.line, int(id), text, reason) for id, text, reason in flaws.get(i, ())
        ]
        found += [
            RowProblem(row.line, int(column), text, NEW_VALUE)
            for column, text in checked.open.get(i, ())
        ]
        if i in checked.same_bib:
            column, text = checked.same_bib[i]
            found.append(RowProblem(row.line, int(column), text, SAME_BIB))
        person = checked.people.get(i)
        if not found and person is not None and i in checked.waiting and person.key is None:
            found.append(RowProblem(row.line, 0, None, UNCLEAR_PERSON))
        yield from found if len(found) == 1 else merged(found)


def merged(found: Sequence[RowProblem]) -> Iterator[RowProblem]:
    """Problems of one row, those of the same cell in one sentence."""
    by_column: dict[int, RowProblem] = {}
    for each in found:
        earlier = by_column.get(each.column)
        if earlier is not None:
            each = each._replace(reason=f"{earlier.reason}; {each.reason}"[:REASON])
        by_column[each.column] = each
    yield from by_column.values()


def _problem(line: int, problem: Problem) -> RowProblem:
    name = problem.column or ""
    if name.isdigit():
        return RowProblem(line, int(name), problem.value, problem.reason)
    reason = f"{name} {problem.reason}" if name else problem.reason
    return RowProblem(line, 0, problem.value, reason[:REASON])
