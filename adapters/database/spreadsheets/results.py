"""Reading the outcomes of rows."""

from collections.abc import AsyncIterator, Sequence
from functools import lru_cache
from typing import Any, Final

from sqlalchemy import (
    BigInteger,
    ColumnElement,
    ScalarSelect,
    Select,
    and_,
    bindparam,
    select,
    text,
)
from sqlalchemy.ext.asyncio import AsyncConnection

from adapters.database.codec import load_problems
from adapters.database.engine import Database
from adapters.database.models.spreadsheets import (
    spreadsheet_imports,
    spreadsheet_parked,
    spreadsheet_results,
)
from contracts.problems import Problem
from contracts.spreadsheets import Outcome
from domain.spreadsheets.records import ParkedRow

PAGE: Final = 1_000


async def read_parked(
    connection: AsyncConnection, uuid: str, after: int, limit: int
) -> Sequence[ParkedRow]:
    """Parked rows by line, above line `after`."""
    parameters = {"uuid": uuid, "after": after, "most": limit}
    rows = await connection.execute(_parked(), parameters)
    return [ParkedRow(row.line, row.offset, row.person, row.person_key) for row in rows]


async def read_errors(
    database: Database, uuid: str
) -> AsyncIterator[Sequence[tuple[int, Sequence[Problem]]]]:
    """Rows with outcome ERROR by line, a page at a time, each read by itself."""
    after = -1
    while True:
        async with database.reading() as connection:
            parameters = {"uuid": uuid, "after": after}
            rows = (await connection.execute(_errors(), parameters)).all()
        if not rows:
            return
        yield [(row.line, load_problems(row.problems or "[]")) for row in rows]
        after = rows[-1].line


def is_outcome(outcome: Outcome) -> ColumnElement[bool]:
    """Rows of this outcome, by the index that has all but those created."""
    column = spreadsheet_results.c.outcome
    wanted = column == outcome.value
    if outcome is Outcome.CREATED:
        return wanted
    # Both databases use a partial index only where a statement repeats its condition.
    return and_(wanted, text("outcome <> 'CREATED'"))


def _import_id() -> ScalarSelect[int]:
    imports = spreadsheet_imports
    return select(imports.c.id).where(imports.c.uuid == bindparam("uuid")).scalar_subquery()


@lru_cache
def _parked() -> Select[*tuple[Any, ...]]:
    parked = spreadsheet_parked
    return (
        select(parked.c.line, parked.c.offset, parked.c.person, parked.c.person_key)
        .where(
            parked.c.import_id == _import_id(),
            parked.c.line > bindparam("after", type_=BigInteger),
        )
        .order_by(parked.c.line)
        .limit(bindparam("most", type_=BigInteger))
    )


@lru_cache
def _errors() -> Select[Any, Any]:
    results = spreadsheet_results
    return (
        select(results.c.line, results.c.problems)
        .where(
            results.c.import_id == _import_id(),
            is_outcome(Outcome.ERROR),
            results.c.line > bindparam("after", type_=BigInteger),
        )
        .order_by(results.c.line)
        .limit(PAGE)
    )
