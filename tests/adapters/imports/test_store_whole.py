"""An import that is written and recorded in one transaction ends as one that takes its steps."""

import asyncio
from decimal import Decimal
from pathlib import Path
from typing import Any

import pytest
from sqlalchemy import Table, event, select

from activities.imports.lifecycle import ImportLifecycle, SmallTables
from activities.imports.ports import WholeImport
from activities.imports.rows import RowImports
from activities.imports.store import SqlImportStore
from activities.imports.tables import own_tables
from activities.imports.views import SqlImportTasks
from adapters.database.engine import Database
from adapters.database.models.base import UtcDateTime
from adapters.database.models.every import DOMAIN
from adapters.database.models.imports import import_progress, import_tasks
from tests.support.imports.activities import ActivityPorts, environment, message_of
from tests.support.imports.store import chunk, count, message, plan, stored
from tests.support.memory.rejected import MemoryRejectedMessages
from tests.support.memory.runs import MemoryRuns
from workflows.imports.messages import DocumentType, Strategy
from workflows.imports.runs import (
    Closing,
    Counts,
    HandlerInput,
    HandlerOutcome,
    ImportInput,
    ImportState,
    RowChunk,
    TaskKey,
)
from workflows.imports.types import REGISTRY
from workflows.imports.validation import QUESTION

EQUIPMENT = "project_id code description rate"
PASSING = frozenset({"project_id", "workflow_id", "run_id", "source_name"})
STATEMENTS = 5
"""Of a document: a look, an upsert or two statements of its kind, a status row; on PostgreSQL
also the begin and the end of the transaction."""


def machine(code: str, rate: int = 1, description: str | None = "a crane") -> tuple[Any, ...]:
    return ("p1", code, description, Decimal(rate))


def whole(*rows: tuple[Any, ...], note: str | None = None, **fields: Any) -> WholeImport:
    """An import of equipment; `guard` is its idempotency key."""
    guard = fields.get("idempotency_key")
    given = message(**fields)
    return WholeImport(
        *(given, plan(), given.workflow_id, guard, "digest", "run"),
        spec=own_tables()[DocumentType.EQUIPMENT],
        chunk=chunk("equipment", EQUIPMENT, *rows, cells=False),
        note=note,
    )


async def complete(store: SqlImportStore, *rows: tuple[Any, ...], **fields: Any) -> Any:
    return await store.complete(whole(*rows, **fields))


async def test_rows_and_status_row_are_written_at_once(
    store: SqlImportStore, tasks: SqlImportTasks, database: Database
) -> None:
    outcome = await complete(store, machine("A"), machine("B"), note="colour was ignored")
    assert outcome == HandlerOutcome(counts=Counts(created=2), note="colour was ignored")
    row = await tasks.get("p1", "t1")
    assert row is not None
    assert (row.state, row.counts, row.note) == (
        ImportState.COMPLETED,
        Counts(created=2),
        "colour was ignored",
    )
    assert row.created_at == row.finished_at
    assert await stored(database, "equipment", "code version") == [("A", 1), ("B", 1)]
    assert await count(database, import_progress) == 0
    closing = Closing(message=message(), plan=plan(), state=ImportState.COMPLETED)
    assert await store.close(closing, "w") == outcome


async def test_the_run_that_has_done_it_is_known(store: SqlImportStore) -> None:
    await complete(store, machine("A"))
    earlier = await store.begin(message(), plan(), "w", None, "digest", "run")
    assert earlier is not None
    assert (earlier.state, earlier.by_this_run) == (ImportState.COMPLETED, True)


async def test_it_is_one_transaction_of_few_statements(
    store: SqlImportStore, database: Database
) -> None:
    await complete(store, machine("A"))
    statements: list[str] = []
    commits: list[Any] = []
    engine = database.engine.sync_engine
    event.listen(engine, "before_cursor_execute", lambda *args: statements.append(args[2]))
    event.listen(engine, "commit", commits.append)
    # The one connection of the pool; SQLAlchemy does not see what its driver is sent directly.
    async with database.reading() as connection:
        driver: Any = (await connection.get_raw_connection()).driver_connection
    driver.add_query_logger(lambda record: statements.append(record.query))
    await complete(store, machine("B"), task_id="t2")
    assert 3 <= len(statements) <= STATEMENTS, statements
    assert len(commits) == 1


async def test_an_import_that_has_begun_takes_its_steps(
    store: SqlImportStore, database: Database
) -> None:
    for state in (None, ImportState.PARKED, ImportState.TERMINATED):
        await store.begin(message(), plan(), "import/p1/t1", None)
        if state is ImportState.TERMINATED:
            await store.terminate("import/p1/t1", "gone")
        elif state is not None:
            await store.close(Closing(message=message(), plan=plan(), state=state), "import/p1/t1")
        assert await complete(store, machine("A")) is None
    assert await stored(database, "equipment", "code") == []


async def test_the_work_of_another_task_takes_the_steps_that_wait_for_it(
    store: SqlImportStore, database: Database
) -> None:
    freed = (ImportState.SKIPPED, ImportState.CANCELLED)
    holding = (ImportState.PARKED, ImportState.COMPLETED, ImportState.FAILED)
    for state in (None, *holding, *freed):
        key = str(state)
        other = message(task_id=f"first-{key}", idempotency_key=key)
        await store.begin(other, plan(), "w", key)
        if state is not None:
            await store.close(Closing(message=other, plan=plan(), state=state), "w")
        mine = {"task_id": f"second-{key}", "idempotency_key": key}
        outcome = await complete(store, machine(key), **mine)
        assert (outcome is not None) is (state in freed), state
    assert len(await stored(database, "equipment", "code")) == len(freed)
    third = message(task_id="third", idempotency_key=str(freed[0]))
    earlier = await store.begin(third, plan(), "w", str(freed[0]))
    assert earlier is not None and earlier.task_id == f"second-{freed[0]}"


async def test_of_attempts_at_once_one_completes(store: SqlImportStore, database: Database) -> None:
    rows = [machine(f"E-{number}") for number in range(50)]
    outcomes = await asyncio.gather(*(complete(store, *rows) for _ in range(4)))
    assert sorted(outcome is None for outcome in outcomes) == [False, True, True, True]
    assert {row[0] for row in await stored(database, "equipment", "version")} == {1}


async def test_of_tasks_with_the_same_guard_one_completes(
    store: SqlImportStore, database: Database
) -> None:
    outcomes = await asyncio.gather(
        *(
            complete(store, machine(f"E-{n}"), task_id=f"t{n}", idempotency_key="k")
            for n in range(4)
        )
    )
    assert sum(outcome is not None for outcome in outcomes) == 1
    assert len(await stored(database, "equipment", "code")) == 1
    assert await count(database, import_tasks) == 1


async def test_a_row_that_no_database_holds_takes_the_steps_that_report_it(
    store: SqlImportStore, database: Database
) -> None:
    too_large = ("p1", "B", "a crane", Decimal(10) ** 15)
    assert await complete(store, machine("A"), too_large) is None
    assert await stored(database, "equipment", "code") == []
    assert await count(database, import_tasks) == 0


async def test_codes_are_spelled_as_a_person_has_decided(
    store: SqlImportStore, database: Database
) -> None:
    assert await complete(store, machine("007"), task_id="t0") is not None

    async def codes() -> list[str]:
        return [row[0] for row in await stored(database, "equipment", "code")]

    assert await complete(store, machine("7", rate=2), task_id="asked") is None
    assert await codes() == ["007"]
    for answer, counts, known in (
        ("same", Counts(updated=1), ["007"]),
        ("distinct", Counts(created=1), ["007", "7"]),
    ):
        await store.remember(TaskKey("p1", "t0"), DocumentType.EQUIPMENT, QUESTION, answer)
        outcome = await complete(store, machine("7", rate=2), task_id=answer)
        assert outcome.counts == counts
        assert await codes() == known


DOCUMENTS = {
    "created, updated and left": (
        "equipment",
        b"Code,Description,Rate\nE-1,crane,5\nE-2,hoist,6\n",
        b"Code,Description,Rate,Colour\nE-1,crane,5,red\nE-2,hoist,7,blue\nE-3,pipe,8.5,\n",
        {},
    ),
    "fields that are not used": ("equipment", b"Code\nE-1\n", b"Code\nE-2\n", {"colour": "red"}),
    "created alone": (
        "equipment",
        b"Code,Rate\nE-1,5\n",
        b"Code,Rate\nE-1,6\nE-2,7\n",
        {"strategy": "create_only"},
    ),
    "lines by their order": (
        "mto",
        b"Drawing,Commodity,Size,Qty\nD-1,P,2,1\n",
        b"Drawing,Commodity,Size,Qty\nD-1,P,2,3\nD-1,P,2,4\nD-2,Q,,5\n",
        {"service_id": "S1"},
    ),
    "assignments that end others": (
        "crew_member",
        b"Employee No,Name,Valid From\n7,Ann,2025-01-01\n",
        b"Employee No,Name,Valid From\n7,Ann,2025-06-01\n8,Bea,2025-06-01\n",
        {},
    ),
    "a guess": (
        "equipment",
        b"Code\nE-1\n",
        "Code,Description\nE-2,Kranhöhe\n".encode("cp1252"),
        {},
    ),
}


async def test_both_ways_leave_the_same(
    store: SqlImportStore, database: Database, tmp_path: Path
) -> None:
    ports = ActivityPorts(tmp_path)
    for number, (name, (kind, before, document, fields)) in enumerate(DOCUMENTS.items()):
        steps, at_once = f"{number}-steps", f"{number}-at-once"
        outcomes: list[HandlerOutcome] = []
        for project in (steps, at_once):
            given = {"type": kind, "project_id": project, **fields}
            await imported(ports, store, before, at_once=False, **given)
            given |= {"task_id": "T2", "at_once": project == at_once}
            outcomes.append(await imported(ports, store, document, **given))
        assert outcomes[0] == outcomes[1], name
        table = REGISTRY[DocumentType(kind)].table
        assert table is not None
        for left in (DOMAIN[table], import_tasks):
            rows = await left_in(database, left, steps)
            assert rows, name
            assert await left_in(database, left, at_once) == rows, name
    assert await count(database, import_progress) == 0


async def left_in(database: Database, table: Table, project: str) -> list[tuple[Any, ...]]:
    """Rows of a project, without what differs between runs that do the same."""
    columns = [
        column
        for column in table.columns
        if column.name not in PASSING and not isinstance(column.type, UtcDateTime)
    ]
    query = select(*columns).where(table.c.project_id == project)
    async with database.reading() as connection:
        return sorted(map(tuple, await connection.execute(query)), key=repr)


async def imported(
    ports: ActivityPorts, store: SqlImportStore, content: bytes, *, at_once: bool, **fields: Any
) -> HandlerOutcome:
    """One import, by its steps or by the first one alone."""
    name = f"in/{fields['project_id']}"
    await ports.put(name, content)
    given = message_of(fields.pop("type"), blob_name=name, **fields)
    lifecycle = ImportLifecycle(
        *(store, ports.blobs, MemoryRuns(), MemoryRejectedMessages()),
        tables=SmallTables(store, ports.blobs, ports.documents, ports.scratch) if at_once else None,
    )
    step = environment(is_local=True)
    preparation = await step.run(lifecycle.prepare, ImportInput(message=given))
    assert (preparation.outcome is not None) is at_once
    if preparation.outcome is not None:
        return preparation.outcome
    assert preparation.plan is not None
    loads = RowImports(store, ports.blobs, ports.documents, ports.reports, ports.scratch)
    work = HandlerInput(message=given, plan=preparation.plan)
    outcome = await environment().run(loads.load_rows, work)
    closing = Closing(
        message=given, plan=preparation.plan, state=ImportState.COMPLETED, outcome=outcome
    )
    return await environment().run(lifecycle.finish, closing)


async def test_a_chunk_of_columns_that_are_not_the_tables_is_refused(store: SqlImportStore) -> None:
    given = message()
    wrong = RowChunk("equipment", ("colour",), [("red",)], [2], (), (), 1)
    with pytest.raises(ValueError, match="colour"):
        spec = own_tables()[DocumentType.EQUIPMENT]
        await store.complete(WholeImport(given, plan(), "w", None, None, None, spec, wrong))
    assert given.strategy is Strategy.MERGE
