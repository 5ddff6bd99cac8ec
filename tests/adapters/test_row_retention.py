"""Rows whose time is over are removed with what only they name, and found by indexes."""

from collections.abc import Awaitable, Callable, Mapping, Sequence
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest
from sqlalchemy import Table, event, select, update
from temporalio.testing import ActivityEnvironment

from activities.batches.store import SqlBatchStore, old_documents
from activities.imports.store import SqlImportStore
from activities.imports.views import (
    SqlImportTasks,
    old_imports,
    old_problems,
    old_rejected,
    old_resubmitted,
)
from activities.jobs.store import SqlJobStore
from activities.transfers.store import SqlTransferStore
from adapters.database.engine import Database, open_database
from adapters.database.models.batches import document_tags, documents
from adapters.database.models.imports import import_tasks, rejected_messages
from adapters.database.models.transfers import jobstatus, transfers
from adapters.database.records import SqlRejectedMessages
from adapters.database.runs import SqlRuns
from adapters.ports.errors import BlobNotFound
from tests.support.batches.tables import FIRST, SqlBatchTables, document, load, source
from tests.support.imports.store import count, message, plan
from tests.support.memory.blobs import MemoryBlobs
from tests.support.transfers.events import a_transfer
from workers import catalogue
from workers.shared.resources import Resources
from workers.shared.settings.common import RetentionSettings
from workers.shared.worker_factory import row_removal
from workflows.batches.names import BatchKey, LoaderStatus
from workflows.batches.runs import Closing
from workflows.imports.runs import Closing as ImportClosing
from workflows.imports.runs import HandlerOutcome, ImportState
from workflows.shared.contracts import BlobRef, Problem
from workflows.shared.notifications import NotificationPolicies
from workflows.shared.records import RemovedRows, RowRetentionInput
from workflows.shared.runs import RunFilter, Visible
from workflows.transfers.events import TransferStatus
from workflows.transfers.runs import file_job_id

LONG_AGO = datetime.now(UTC) - timedelta(days=400)
KEEPS = {"DOCFLOW_KEEP_DOCUMENTS_DAYS": "365"}


async def removed(
    database: Database,
    blobs: MemoryBlobs,
    pipeline: str,
    keeps: Mapping[str, str] = KEEPS,
    **order: Any,
) -> Sequence[RemovedRows]:
    """What the retention of a pipeline removes, kinds without a row left out."""
    unused: Any = None
    resources = Resources(
        *(database, unused, blobs, {}, NotificationPolicies(), Path()),
        keeps=RetentionSettings.read(keeps),
    )
    [register] = [each for each in catalogue.PIPELINES if each.name == pipeline]
    removal = row_removal(resources, register)
    ordered = RowRetentionInput(pipeline=pipeline, **order)
    result = await ActivityEnvironment().run(removal.remove_old, ordered)
    return [kind for kind in result.kinds if kind.rows]


async def age(database: Database, table: Table, column: str, **own: Any) -> None:
    """Make the time of some rows over."""
    same = [table.c[name] == value for name, value in own.items()]
    async with database.transaction() as connection:
        await connection.execute(update(table).where(*same).values({column: LONG_AGO}))


async def put(blobs: MemoryBlobs, folder: Path, name: str) -> BlobRef:
    path = folder / "file"
    path.write_bytes(b"bytes")
    return await blobs.upload(path, name)


async def ended(store: SqlImportStore, task: str, report: BlobRef | None = None) -> None:
    """An import with one problem that has ended."""
    given = message(task_id=task)
    assert await store.begin(given, plan(), given.workflow_id, None) is None
    problem = Problem(line=2, column="rate", reason="no number")
    outcome = HandlerOutcome(problem_count=1, problems=(problem,), report=report)
    closing = ImportClosing(
        message=given, plan=plan(), state=ImportState.COMPLETED, outcome=outcome
    )
    await store.close(closing, given.workflow_id)


async def test_problems_and_reports_go_before_the_status_row(
    store: SqlImportStore, tasks: SqlImportTasks, database: Database, tmp_path: Path
) -> None:
    blobs = MemoryBlobs()
    report = await put(blobs, tmp_path, "reports/old.xlsx")
    await ended(store, "old", report)
    await ended(store, "young")
    running = message(task_id="running")
    await store.begin(running, plan(), running.workflow_id, None)
    async with database.transaction() as connection:
        ago = datetime.now(UTC) - timedelta(days=100)
        own = import_tasks.c.task_id == "old"
        await connection.execute(update(import_tasks).where(own).values(finished_at=ago))

    what = RemovedRows(what="problems and reports of imports", days=90, rows=1)
    assert await removed(database, blobs, "imports", dry_run=True) == [what]
    assert await removed(database, blobs, "imports") == [what.model_copy(update={"blobs": 1})]
    assert await removed(database, blobs, "imports") == []
    with pytest.raises(BlobNotFound):
        await blobs.stat("reports/old.xlsx")
    row = await tasks.get("p1", "old")
    assert row is not None and row.problems_removed_at is not None
    assert (row.problems, row.problem_count, row.report) == ((), 1, None)
    young = await tasks.get("p1", "young")
    assert young is not None and len(young.problems) == 1

    await age(database, import_tasks, "finished_at", task_id="old")
    [gone] = await removed(database, blobs, "imports")
    assert (gone.what, gone.rows) == ("status rows of imports", 1)
    assert await tasks.get("p1", "old") is None
    assert await count(database, import_tasks) == 2


async def test_a_run_removes_so_many_at_most_and_the_next_one_the_rest(
    store: SqlImportStore, database: Database
) -> None:
    for number in range(5):
        await ended(store, f"t{number}")
    await age(database, import_tasks, "finished_at")
    blobs = MemoryBlobs()
    first = await removed(database, blobs, "imports", most=3, page=2)
    assert [(kind.rows, kind.more) for kind in first] == [(3, True), (3, True)]
    dry = await removed(database, blobs, "imports", most=1, dry_run=True)
    assert (dry[-1].rows, dry[-1].more) == (1, True)
    rest = await removed(database, blobs, "imports", page=2)
    assert (rest[-1].rows, rest[-1].more) == (2, False)
    assert await count(database, import_tasks) == 0


async def test_a_row_that_has_changed_since_it_was_read_stays(
    store: SqlImportStore, database: Database
) -> None:
    given = message(task_id="again")
    await store.begin(given, plan(), given.workflow_id, None)
    await store.terminate(given.workflow_id, "gone")
    await age(database, import_tasks, "finished_at")
    rows, before = old_imports(database), datetime.now(UTC) - timedelta(days=365)
    due = await rows.due(before, 10)
    assert [row.key for row in due] == [("p1", "again")]
    assert await store.begin(given, plan(), given.workflow_id, None) is None
    assert await rows.remove(due, before) == 0
    assert await count(database, import_tasks) == 1


async def test_rejected_messages_go_sooner_when_they_were_sent_again(database: Database) -> None:
    rejected = SqlRejectedMessages(database)
    for name in ("sent", "open", "young"):
        await rejected.record("queue", name, "InvalidMessage", "why", name.encode())
    await age(database, rejected_messages, "received_at", message_id="open")
    await rejected.mark_resubmitted(1)
    await age(database, rejected_messages, "resubmitted_at", message_id="sent")
    done = await removed(database, MemoryBlobs(), "imports")
    assert [(kind.what, kind.days, kind.rows) for kind in done] == [
        ("rejected messages, sent again", 90, 1),
        ("rejected messages, not sent again", 365, 1),
    ]
    assert [each.message_id for each in await rejected.list()] == ["young"]


async def test_documents_of_open_batches_stay(database: Database) -> None:
    tables = SqlBatchTables(database)
    other = BatchKey(case_id=FIRST.case_id, batch_id=FIRST.batch_id + 1)
    store = SqlBatchStore(database)
    await store.expect([FIRST, other])
    for id, key, content in (("old", FIRST, "a"), ("open", other, "b")):
        tagged = document(id, key).model_copy(update={"tags": ("contract",)})
        await load(tables.loads, tagged, source(content))
    await store.close(Closing(key=FIRST, status=LoaderStatus.COMPLETE))
    await age(database, documents, "updated_at")
    [done] = await removed(database, MemoryBlobs(), "batches")
    assert (done.what, done.days, done.rows) == ("documents of batches", 365, 1)
    async with database.reading() as connection:
        for table in (documents, document_tags):
            left = (await connection.execute(select(table.c.document_id))).scalars().all()
            assert left == ["open"]


async def test_documents_are_kept_for_ever_unless_a_setting_says_otherwise(
    database: Database,
) -> None:
    tables = SqlBatchTables(database)
    await load(tables.loads, document("old"), source("a"))
    await age(database, documents, "updated_at")
    assert await removed(database, MemoryBlobs(), "batches", keeps={}) == []
    assert await count(database, documents) == 1


async def test_transfers_that_have_ended_go_with_their_trail(database: Database) -> None:
    store = SqlTransferStore(database)
    for id, status in (
        ("5eed" * 16, TransferStatus.SUCCEEDED),
        ("f00d" * 16, TransferStatus.ASSIGNED),
    ):
        at = LONG_AGO
        await store.record(a_transfer(id, status, at=at, source="TMS", run=file_job_id(id)))
    [done] = await removed(database, MemoryBlobs(), "transfers")
    assert (done.what, done.days, done.rows) == ("status rows of transfers", 365, 1)
    for table in (transfers, jobstatus):
        assert await count(database, table) == 1


OVERDUE = datetime(2026, 1, 1, tzinfo=UTC)
OURS = Visible((3,), others=False)
ASKED: Mapping[str, Callable[[Database], Awaitable[Any]]] = {
    "ix_runs_changed_at_id": lambda db: SqlRuns(db).list(RunFilter(50)),
    "ix_runs_pipeline_changed_at_id": lambda db: SqlRuns(db).list(
        RunFilter(50, pipelines=["imports"])
    ),
    "ix_runs_state_changed_at_id": lambda db: SqlRuns(db).list(RunFilter(50, state="failed")),
    "ix_runs_own_state": lambda db: SqlRuns(db).list(RunFilter(50, state="in-complete")),
    "ix_runs_answers_at": lambda db: SqlRuns(db).of(["import/P1/T1"]),
    "ix_runs_kind_changed_at_id": lambda db: SqlRuns(db).list(RunFilter(50, kind="equipment")),
    "ix_runs_words": lambda db: SqlRuns(db).list(RunFilter(50, text="list")),
    "ix_runs_project_changed_at_id": lambda db: SqlRuns(db).list(RunFilter(50, project="P1")),
    "ix_runs_revision_id": lambda db: SqlRuns(db).changes(RunFilter(50), 1_000_000_000),
    "ix_runs_open": lambda db: SqlRuns(db).usage(3, OVERDUE),
    "ix_runs_organisation_id_created_at": lambda db: SqlRuns(db).usage(3, OVERDUE),
    "ix_jobs_organisation_id_updated_at": lambda db: SqlJobStore(db).jobs(OURS, limit=50),
    "ix_import_tasks_finished_at": lambda db: old_imports(db).due(OVERDUE, 500),
    "ix_import_tasks_problems": lambda db: old_problems(db).due(OVERDUE, 500),
    "ix_rejected_messages_open": lambda db: old_rejected(db).due(OVERDUE, 500),
    "ix_rejected_messages_resubmitted_at": lambda db: old_resubmitted(db).due(OVERDUE, 500),
    "ix_documents_updated_at": lambda db: old_documents(db).due(OVERDUE, 500),
    "ix_transfers_at": lambda db: SqlTransferStore(db).newest(limit=50),
    "ix_transfers_queue_at": lambda db: SqlTransferStore(db).newest(limit=50, queue="a"),
    "ix_transfers_account_id_at": lambda db: SqlTransferStore(db).newest(limit=50, account_id="a"),
    "ix_transfers_organisation_id_at": lambda db: SqlTransferStore(db).newest(
        limit=50, visible=OURS
    ),
    "pk_transfers": lambda db: SqlTransferStore(db).find("5eed5eed"),
}
"""Index to what is answered by it."""
RIVALS = {
    "pk_transfers": "ix_transfers_at",
    "ix_runs_open": "ix_runs_organisation_id_created_at",
}
"""Index to one that costs as little while nothing is stored."""
OF_WORDS = "ix_runs_words"
"""Its kind is read by way of a bitmap alone."""


@pytest.mark.parametrize("index", ASKED)
async def test_lists_and_removals_are_answered_by_an_index(database_url: str, index: str) -> None:
    async with open_database(database_url) as database:
        asked: list[tuple[str, Any]] = []
        engine = database.engine.sync_engine

        def note(*arguments: Any) -> None:
            asked.append(arguments[2:4])

        event.listen(engine, "before_cursor_execute", note)
        await ASKED[index](database)
        event.remove(engine, "before_cursor_execute", note)
        [(statement, parameters)] = asked
        async with database.transaction() as connection:
            await connection.exec_driver_sql("SET LOCAL enable_seqscan = off")
            if index in RIVALS:
                await connection.exec_driver_sql(f"DROP INDEX {RIVALS[index]}")
            else:
                await connection.exec_driver_sql("SET LOCAL enable_sort = off")
            if index != OF_WORDS:
                await connection.exec_driver_sql("SET LOCAL enable_bitmapscan = off")
            plan = await connection.exec_driver_sql(f"EXPLAIN {statement}", parameters)
            assert index in "\n".join(plan.scalars())
