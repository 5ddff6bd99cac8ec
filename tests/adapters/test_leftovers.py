"""Rows that runs left open are found and closed, and what they held is free, in every store."""

from collections.abc import Sequence
from datetime import UTC, datetime, timedelta

import pytest

from activities.batches.document_store import SqlLoadStore
from activities.batches.store import SqlBatchStore
from activities.imports.ports import EarlierImport
from activities.imports.store import SqlImportStore
from activities.imports.views import SqlImportTasks
from activities.spreadsheets.store import SqlSpreadsheetStore
from activities.spreadsheets.views import SqlSpreadsheetViews
from adapters.database.engine import Database
from adapters.database.models.every import metadata
from adapters.database.models.imports import import_progress, import_rejects
from adapters.ports.records import OpenRow, OpenRows
from stack.sample_club import SampleClub
from tests.support.batches.scripted import finished, started
from tests.support.batches.tables import FIRST, SqlBatchTables, document, load, source
from tests.support.imports.store import chunk, count, message, plan, reject, stored
from tests.support.spreadsheets.store import Runner, opened, undo_order
from workflows.batches.loads import DocumentState
from workflows.batches.names import BatchKey, LoaderStatus, Purpose
from workflows.batches.runs import Closing
from workflows.imports.messages import Strategy
from workflows.imports.runs import Closing as ImportClosing
from workflows.imports.runs import ImportState, LoadMark, TaskKey
from workflows.spreadsheets.mappings import SpreadsheetState, UndoState
from workflows.spreadsheets.runs import undo_id, workflow_id

WHY = "its run was terminated"


async def found(rows: OpenRows, after: str = "", limit: int = 10) -> Sequence[OpenRow]:
    later = datetime.now(UTC) + timedelta(minutes=1)
    return await rows.open_rows(later, after, limit)


async def ids(rows: OpenRows, after: str = "", limit: int = 10) -> list[str]:
    return [row.id for row in await found(rows, after, limit)]


@pytest.mark.parametrize("state", [ImportState.RUNNING, ImportState.PARKED])
async def test_a_terminated_import_leaves_nothing_and_its_key_is_free(
    store: SqlImportStore, tasks: SqlImportTasks, database: Database, state: ImportState
) -> None:
    given, key = message(strategy="replace"), TaskKey("p1", "t1")
    assert await store.begin(given, plan(), given.workflow_id, "K1") is None
    await store.restart(key, ["Code"])
    staged = chunk("equipment", "project_id code", ("p1", "E-1"), rejected=[reject(7)])
    await store.stage(key, staged)
    if state is ImportState.PARKED:
        parking = ImportClosing(message=given, plan=plan(), state=state, reason="why it waits")
        await store.close(parking, given.workflow_id)
    other = message(task_id="t2")
    assert await store.begin(other, plan(), other.workflow_id, "K1") == EarlierImport(state, "t1")

    [row] = await found(store)
    assert row.id == "import/p1/t1"
    long_before = row.changed_at - timedelta(days=1)
    assert not await store.terminate(row.id, WHY, long_before)
    assert await store.terminate(row.id, WHY, row.changed_at)
    assert not await store.terminate(row.id, WHY)
    closed = await tasks.get("p1", "t1")
    assert closed is not None and closed.finished_at is not None
    assert (closed.state, closed.reason) == (ImportState.TERMINATED, WHY)
    assert (closed.counts.rejected, closed.problem_count) == (1, 1)
    for table in (import_progress, import_rejects, metadata.tables["staged_equipment"]):
        assert await count(database, table) == 0
    # A chunk that an activity of the terminated run still had under way changes nothing.
    await store.stage(key, staged)
    await store.write(key, staged, Strategy.MERGE)
    assert await count(database, metadata.tables["staged_equipment"]) == 0
    assert await stored(database, "equipment", "code") == []

    assert await ids(store) == []
    assert await store.begin(other, plan(), other.workflow_id, "K1") is None
    assert await store.begin(given, plan(), given.workflow_id, "K2") is None
    assert await store.mark(key) == LoadMark()
    begun = await tasks.get("p1", "t1")
    assert begun is not None
    assert (begun.state, begun.reason, begun.finished_at) == (ImportState.RUNNING, None, None)


async def test_an_import_whose_ids_are_encoded_in_its_runs_id_is_terminated_as_well(
    store: SqlImportStore, tasks: SqlImportTasks
) -> None:
    given = message(project_id="Unit 100", task_id="a/b %2F")
    assert await store.begin(given, plan(), given.workflow_id, "K1") is None
    [row] = await found(store)
    assert await store.terminate(row.id, WHY, row.changed_at)
    closed = await tasks.get("Unit 100", "a/b %2F")
    assert closed is not None and closed.state is ImportState.TERMINATED
    other = message(project_id="Unit 100", task_id="t2")
    assert await store.begin(other, plan(), other.workflow_id, "K1") is None


async def test_open_imports_are_found_page_by_page(store: SqlImportStore) -> None:
    names = [f"import/p1/t{number}" for number in range(5)]
    for number in range(6):
        given = message(task_id=f"t{number}")
        await store.begin(given, plan(), given.workflow_id, None)
    done = ImportClosing(message=message(task_id="t5"), state=ImportState.COMPLETED)
    await store.close(done, "import/p1/t5")
    assert await ids(store, limit=3) == names[:3]
    assert await ids(store, after=names[2]) == names[3:]
    assert await store.open_rows(datetime.now(UTC) - timedelta(hours=1), "", 10) == []
    assert not await store.terminate("import/p1/unknown", WHY)


async def test_a_terminated_spreadsheet_has_ended_and_can_be_undone(
    sheets: SqlSpreadsheetStore, views: SqlSpreadsheetViews, club: SampleClub
) -> None:
    sheet = await opened(sheets, club)
    await sheet.write(Runner("email:anna", "Ahrens"))
    [row] = await found(sheets)
    assert row.id == workflow_id(sheet.uuid)
    assert not await sheets.terminate(row.id, WHY, row.changed_at - timedelta(days=1))
    assert await sheets.terminate(row.id, WHY, row.changed_at)
    assert not await sheets.terminate(row.id, WHY)
    seen = await views.get(sheet.uuid, (1,))
    assert seen is not None and seen.finished_at is not None
    assert (seen.state, seen.reason) == (SpreadsheetState.TERMINATED, WHY)
    # What an activity of the terminated run still had under way changes nothing.
    await sheet.write(Runner("email:bert", "Becker"), number=1, line=3)
    await sheet.end()
    assert await ids(sheets) == []

    undo = undo_order(sheet.order, requested_at=seen.finished_at)
    assert await sheets.begin_undo(undo) is None
    [row] = await found(sheets)
    assert row.id == undo_id(sheet.uuid)
    assert await sheets.terminate(row.id, WHY, row.changed_at)
    seen = await views.get(sheet.uuid, (1,))
    assert seen is not None
    assert seen.undo_state is UndoState.TERMINATED
    assert await ids(sheets) == []
    assert await sheets.begin_undo(undo) is None
    while await sheets.undo_chunk(undo):
        pass
    assert (await sheets.end_undo(undo)).counts.deleted > 0


async def test_a_terminated_batch_leaves_its_case_free(database: Database) -> None:
    batches = SqlBatchStore(database)
    first, second, third, known = (BatchKey(case_id=7, batch_id=id) for id in range(1, 5))
    await batches.expect([known])
    await batches.note(7, [started(first), finished(first), started(second), started(third)])
    assert await batches.claim(first, ())
    await batches.close(Closing(key=third, status=LoaderStatus.FAILED))
    processing, waiting = await found(batches)
    assert (processing.id, processing.run) == ("batch/7/1", "batch/7/1")
    assert (waiting.id, waiting.run) == ("batch/7/2", "case/7")
    assert processing.grace > waiting.grace
    assert not await batches.claim(second, ())
    for row in (processing, waiting):
        assert not await batches.terminate(row.id, WHY, row.changed_at - timedelta(days=1))
        assert await batches.terminate(row.id, WHY, row.changed_at)
        assert not await batches.terminate(row.id, WHY)
    for key in (first, second):
        view = await batches.get(key)
        assert view is not None
        assert (view.status, view.reason) == (LoaderStatus.TERMINATED, WHY)
    assert await ids(batches) == []

    line = await batches.note(7, [started(first)])
    assert {one.batch_id: one.purpose for one in line.batches} == {1: Purpose.LOAD, 4: None}
    facts = await batches.facts(first)
    assert facts is not None and not facts.job_finished
    assert await batches.claim(first, ())


@pytest.mark.parametrize(
    ("status", "state"),
    [
        (LoaderStatus.CANCELLED, DocumentState.CANCELLED),
        (LoaderStatus.FAILED, DocumentState.CANCELLED),
        (LoaderStatus.TERMINATED, DocumentState.TERMINATED),
    ],
)
async def test_no_document_of_a_batch_that_ended_early_stays_loading(
    loads: SqlLoadStore, database: Database, status: LoaderStatus, state: DocumentState
) -> None:
    batches, held = SqlBatchStore(database), document("D 1")
    await batches.note(FIRST.case_id, [started(FIRST)])
    assert await loads.save_source(held, source("a")) is None
    await batches.close(Closing(key=FIRST, status=status, reason="the case was closed"))
    for _ in range(2):
        counts = await batches.stop_documents(FIRST)
        assert (counts.loading, counts.cancelled + counts.terminated) == (0, 1)
    assert await SqlBatchTables(database).state(held.document_id) == (
        state,
        f"{FIRST} became {status} while this document was being loaded (the case was closed); "
        "send it again",
    )
    assert await ids(batches) == []


async def test_a_terminated_load_leaves_its_bytes_free(
    loads: SqlLoadStore, database: Database
) -> None:
    batches, held = SqlBatchStore(database), document("D 1")
    other = document("D-2")
    assert await loads.save_source(held, source("a")) is None
    assert await loads.save_source(other, source("a")) == held.document_id
    [row] = await found(batches)
    assert row.id == held.workflow_id
    assert "terminated" in row.only_after and "failed" not in row.only_after
    assert await ids(batches, after=row.id) == []
    assert not await batches.terminate(row.id, WHY, row.changed_at - timedelta(days=1))
    assert await batches.terminate(row.id, WHY, row.changed_at)
    assert not await batches.terminate(row.id, WHY)
    assert (await batches.counts(FIRST)).terminated == 1
    assert await SqlBatchTables(database).state(held.document_id) == (
        DocumentState.TERMINATED,
        WHY,
    )
    third = document("D-3")
    assert await loads.save_source(third, source("a")) is None
    assert await load(loads, held, source("a")) == third.document_id
    assert (await SqlBatchTables(database).state(held.document_id))[1] is None
