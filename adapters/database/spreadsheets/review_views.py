"""Reading reviews, for people: rows with problems first."""

from collections import defaultdict
from collections.abc import Mapping, Sequence

from sqlalchemy import ColumnElement, distinct, func, select

from adapters.database.engine import Database
from adapters.database.models.spreadsheet_reviews import (
    spreadsheet_review_blocks,
    spreadsheet_review_operations,
    spreadsheet_review_problems,
)
from adapters.database.spreadsheets import review_operations
from adapters.database.spreadsheets.records import Page
from adapters.database.spreadsheets.review_conditions import id_of
from adapters.database.spreadsheets.statuses import count, paged
from contracts.spreadsheets.reviews import UndoOperation
from domain.spreadsheets.review import RowProblem, StoredOperation


class SqlReviewViews:
    """Reviews as the gateway shows them; one that is not there is empty. Pages count from 0."""

    def __init__(self, database: Database) -> None:
        self._database = database

    async def problem_lines(
        self, uuid: str, *, column: int | None = None, page: int = 0, size: int = 50
    ) -> Sequence[int]:
        """Rows with problems, in the order of the file; in one column, if it is given."""
        problems = spreadsheet_review_problems
        conditions = _mine(uuid, column)
        query = select(problems.c.line).distinct().where(*conditions).order_by(problems.c.line)
        async with self._database.reading() as connection:
            return list((await connection.execute(paged(query, page, size))).scalars())

    async def all_problem_lines(self, uuid: str) -> Sequence[int]:
        """Every row with a problem, in the order of the file."""
        problems = spreadsheet_review_problems
        query = select(problems.c.line).distinct().where(*_mine(uuid)).order_by(problems.c.line)
        async with self._database.reading() as connection:
            return list((await connection.execute(query)).scalars())

    async def problem_count(self, uuid: str, column: int) -> int:
        """How many rows have a problem in a column."""
        problems = spreadsheet_review_problems
        query = select(func.count(distinct(problems.c.line))).where(*_mine(uuid, column))
        async with self._database.reading() as connection:
            return (await connection.execute(query)).scalar_one()

    async def problem_counts(self, uuid: str) -> Mapping[int, int]:
        """How many problems each column has; 0: rows as a whole."""
        problems = spreadsheet_review_problems
        query = (
            select(problems.c.column_id, func.count())
            .where(*_mine(uuid))
            .group_by(problems.c.column_id)
        )
        async with self._database.reading() as connection:
            return {column: found for column, found in await connection.execute(query)}

    async def problems(self, uuid: str, lines: Sequence[int]) -> Mapping[int, Sequence[RowProblem]]:
        """What is wrong with some rows, by row."""
        problems = spreadsheet_review_problems
        query = (
            select(problems)
            .where(*_mine(uuid), problems.c.line.in_(lines))
            .order_by(problems.c.line, problems.c.column_id)
        )
        found: dict[int, list[RowProblem]] = defaultdict(list)
        async with self._database.reading() as connection:
            for row in await connection.execute(query):
                found[row.line].append(RowProblem(row.line, row.column_id, row.value, row.reason))
        return found

    async def starts(self, uuid: str) -> Sequence[int]:
        """Line of the first row of each block."""
        blocks = spreadsheet_review_blocks
        query = (
            select(blocks.c.first_line)
            .where(blocks.c.import_id == id_of(uuid))
            .order_by(blocks.c.first_line)
        )
        async with self._database.reading() as connection:
            return list((await connection.execute(query)).scalars())

    async def operations(
        self, uuid: str, *, page: int = 0, size: int = 50
    ) -> Page[StoredOperation]:
        """The operations, the newest first."""
        table = spreadsheet_review_operations
        mine = (table.c.import_id == id_of(uuid), table.c.version.is_not(None))
        query = select(table).where(*mine).order_by(table.c.version.desc())
        undos = select(table).where(*mine, table.c.body.contains('"UNDO"'))
        async with self._database.reading() as connection:
            total = await connection.execute(count(table, *mine))
            rows = (await connection.execute(paged(query, page, size))).all()
            taken_back = _taken_back(
                [review_operations.stored(row) for row in await connection.execute(undos)]
            )
        items = [review_operations.stored(row, taken_back.get(row.version)) for row in rows]
        return Page(items, total.scalar_one())


def _taken_back(undos: Sequence[StoredOperation]) -> Mapping[int, int]:
    """Version of an operation to that of the undo which takes it back."""
    found: dict[int, int] = {}
    for each in sorted(undos, key=lambda each: -each.operation.version):
        operation, version = each.operation.operation, each.operation.version
        if isinstance(operation, UndoOperation) and version not in found:
            found[operation.version] = version
    return found


def _mine(uuid: str, column: int | None = None) -> list[ColumnElement[bool]]:
    problems = spreadsheet_review_problems
    conditions: list[ColumnElement[bool]] = [problems.c.import_id == id_of(uuid)]
    if column is not None:
        conditions.append(problems.c.column_id == column)
    return conditions
