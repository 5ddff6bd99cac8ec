"""What a review of rows shows: what is wrong with which cell, before anything is written."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import TYPE_CHECKING, Final, NamedTuple

from workflows.shared.cells import Cell
from workflows.shared.contracts import Problem
from workflows.spreadsheets.edits import Correction
from workflows.spreadsheets.mappings import ColumnMapping, ReviewCounts
from workflows.spreadsheets.reviews import ReviewEffect, ReviewExample, ReviewOperation

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
