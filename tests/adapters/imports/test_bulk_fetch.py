"""Statements that are handed to the driver belong to the transaction they run in."""

from datetime import UTC, datetime
from typing import Any

import pytest
from sqlalchemy import Executable, Text, bindparam, insert, make_url, select

from adapters.database.bulk import engine as bulk
from adapters.database.bulk.driver import driver_text
from adapters.database.engine import Database, open_database
from adapters.database.models.imports import import_answers, import_tasks
from adapters.ports.errors import Unavailable
from tests.support.fresh_database import administer

KEPT = insert(import_answers).returning(import_answers.c.task_id)
FOUND = select(import_answers.c.task_id, import_answers.c.answered_at).where(
    import_answers.c.project_id == "p1",
    import_answers.c.question == bindparam("asked", type_=Text),
)
NOW = datetime(2026, 3, 4, 5, 6, tzinfo=UTC)


class Given(Exception):
    """Ends a transaction."""


def answer(question: str) -> dict[str, Any]:
    given = {"project_id": "p1", "document_type": "equipment", "question": question}
    return {**given, "answer": "yes", "task_id": "t1", "answered_at": NOW}


async def rows(database: Database, statement: Executable, **values: Any) -> list[tuple[Any, ...]]:
    async with database.transaction() as connection:
        return [tuple(row) for row in await bulk.fetch(connection, statement, values)]


async def test_rows_come_by_place_with_the_values_that_stand_in_the_statement(
    database: Database,
) -> None:
    assert await rows(database, KEPT, **answer("first")) == [("t1",)]
    assert await rows(database, FOUND, asked="first") == [("t1", NOW)]
    assert await rows(database, FOUND, asked="second") == []


async def test_the_first_statement_and_those_behind_it_are_rolled_back(database: Database) -> None:
    with pytest.raises(Given):
        async with database.transaction() as connection:
            for question in ("first", "second"):
                assert await bulk.fetch(connection, KEPT, answer(question))
            raise Given
    for question in ("first", "second"):
        assert await rows(database, FOUND, asked=question) == []


async def test_a_lost_connection_is_an_outage_once(database_url: str, postgres_url: str) -> None:
    async with open_database(database_url) as database:
        await rows(database, KEPT, **answer("first"))
        name = make_url(database_url).database
        session = f"pg_stat_activity WHERE datname = '{name}'"
        await administer(postgres_url, f"SELECT pg_terminate_backend(pid, 10000) FROM {session}")
        with pytest.raises(Unavailable):
            await rows(database, FOUND, asked="first")
        assert await rows(database, FOUND, asked="first") == [("t1", NOW)]


def test_values_that_only_sqlalchemy_would_fill_in_are_refused() -> None:
    with pytest.raises(ValueError, match="created"):
        driver_text(insert(import_tasks), ("project_id", "task_id"))
