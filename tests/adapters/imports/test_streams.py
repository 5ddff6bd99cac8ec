"""Rows that are read page by page, for exports and trials, on every database."""

from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any

import asyncpg
import pytest
from sqlalchemy.exc import DBAPIError

from activities.imports.store import SqlImportStore
from activities.imports.tables import own_tables
from activities.imports.views import PAGE, SqlImportedRows
from adapters.database.engine import Database, open_database
from adapters.database.models.every import DOMAIN
from adapters.ports.errors import Unavailable
from tests.adapters.imports.test_store_schedules import load
from tests.support.imports.activities import message_of
from tests.support.imports.store import chunk, count
from workers.imports.rehearsal import rehearsed
from workflows.imports.messages import DocumentType, Strategy
from workflows.imports.runs import Counts, TaskKey
from workflows.shared.dependencies import Dependency
from workflows.shared.errors import RuleViolation

SAMPLES = Path(__file__).parents[3] / "samples"
KEY = TaskKey("P1", "T0")


async def test_more_than_a_page_of_rows_comes_out(
    store: SqlImportStore, database: Database
) -> None:
    rows = [("P1", f"E-{number:06}") for number in range(PAGE + 1)]
    machines = chunk("equipment", "project_id code", *rows, cells=False)
    await store.write(KEY, machines, Strategy.MERGE)
    spec = own_tables()[DocumentType.EQUIPMENT]
    pages = [page async for page in SqlImportedRows(database).read(spec, {"project_id": "P1"})]
    assert [len(page) for page in pages] == [PAGE, 1]
    assert pages[1][0][0] == rows[-1][1]


async def test_a_table_is_tried_on_a_copy(store: SqlImportStore, database: Database) -> None:
    known = ("P1", "CR-0050", "Crane")
    machines = chunk("equipment", "project_id code description", known, cells=False)
    await store.write(KEY, machines, Strategy.MERGE)
    message = message_of("equipment", blob_name="uploads/e.csv", filename="equipment.csv")
    async with rehearsed(database, message, SAMPLES / "equipment.csv") as found:
        assert found.parks is None
        assert found.outcome.counts == Counts(created=14, updated=1, rejected=5)


async def test_a_trial_whose_session_is_lost_writes_nothing(
    store: SqlImportStore,
    database: Database,
    stop_postgres_sessions: Callable[[str], Awaitable[int]],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    url = database.engine.url.render_as_string(hide_password=False)
    write, failures = SqlImportStore.write, list[str]()

    async def cut(*given: Any, **options: Any) -> Any:
        await stop_postgres_sessions(url)
        for _ in range(2):
            try:
                await write(*given, **options)
            except (Unavailable, RuleViolation, DBAPIError, asyncpg.PostgresError) as error:
                failures.append(str(error))
        raise Unavailable("the session is lost", Dependency.DATABASE)

    monkeypatch.setattr(SqlImportStore, "write", cut)
    message = message_of("equipment", blob_name="uploads/e.csv", filename="equipment.csv")
    with pytest.raises(Unavailable, match="the session is lost"):
        async with rehearsed(database, message, SAMPLES / "equipment.csv"):
            pass
    # The first attempt meets the lost session, the second one a new session without tables.
    assert len(failures) >= 2 and "does not exist" in failures[1]
    async with open_database(url) as again:
        assert await count(again, DOMAIN["equipment"]) == 0


async def test_a_schedule_is_tried_on_a_copy(store: SqlImportStore, database: Database) -> None:
    await load(store, TaskKey("p1", "t0"), "A", "B", project="UNIT100")
    message = message_of(
        "schedule_extraction",
        project_id="p1",
        blob_name="uploads/unit100.xer",
        primavera_project_id="UNIT100",
    )
    async with rehearsed(database, message, SAMPLES / "unit100.xer") as found:
        assert found.parks is None
        assert found.outcome.counts.flagged == 2
