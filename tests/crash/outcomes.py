"""What imports have left behind, compared with what they leave behind when nothing happens."""

from collections.abc import Sequence
from itertools import zip_longest
from pathlib import Path
from typing import Any

from sqlalchemy import func, select
from temporalio.api.enums.v1 import EventType
from temporalio.client import Client

from activities.imports.views import ImportTaskRow, SqlImportTasks
from adapters.database.models.every import DOMAIN, STAGED, key_of
from adapters.database.models.imports import import_progress, import_rejects
from tests.crash.documents import PROJECT, Document
from tests.crash.harness import System
from workers.shared.resources import Resources
from workflows.imports.runs import ImportState
from workflows.shared.cells import Cell

Lines = Sequence[Sequence[Any]]


async def assert_as_undisturbed(
    documents: Sequence[Document], found: Resources, calm: Resources, folder: Path
) -> None:
    """Status, counts, problems, report and every row of each document are those of a calm run.

    Args:
        documents: What was imported in both.
        found: Where it was disturbed.
        calm: Where it was not.
        folder: For copies of the reports.
    """
    for document in documents:
        expected, seen = await _task(calm, document), await _task(found, document)
        assert seen.state is ImportState.COMPLETED, f"{document.name}: {seen.state} {seen.reason}"
        assert _facts(seen) == _facts(expected), f"{document.name}: {seen} {expected}"
        counts = seen.counts
        assert (
            counts.created + counts.updated + counts.unchanged + counts.rejected == document.rows
        ), document.name
        _assert_same(
            f"report of {document.name}",
            await _report(found, seen, folder),
            await _report(calm, expected, folder),
        )
        _assert_same(
            f"rows of {document.name}", await _rows(found, document), await _rows(calm, document)
        )


async def assert_nothing_left(system: System) -> None:
    """Queue and dead letters are empty; no progress, reject or staged row is left behind."""
    depth = await system.queue.depth(10)
    assert (depth.waiting, depth.dead_letters) == (0, 0)
    async with system.resources.database.reading() as connection:
        # Another test of this process may have tables of declared types, in a schema of their own.
        staged = (each for each in STAGED.values() if each.schema is None)
        for table in (import_progress, import_rejects, *staged):
            left = (await connection.execute(select(func.count()).select_from(table))).scalar_one()
            assert left == 0, f"{left} rows left in {table.name}"


async def lost_attempts(client: Client, documents: Sequence[Document]) -> tuple[int, int]:
    """How many attempts of remote activities, and of workflow tasks, died on the way."""
    activities = tasks = 0
    for document in documents:
        handle = client.get_workflow_handle(document.message.workflow_id)
        async for event in handle.fetch_history_events():
            if event.event_type == EventType.EVENT_TYPE_ACTIVITY_TASK_STARTED:
                activities += event.activity_task_started_event_attributes.attempt - 1
            elif event.event_type == EventType.EVENT_TYPE_WORKFLOW_TASK_TIMED_OUT:
                tasks += 1
    return activities, tasks


async def _task(resources: Resources, document: Document) -> ImportTaskRow:
    row = await SqlImportTasks(resources.database).get(PROJECT, document.task_id)
    assert row is not None, f"{document.name} has no status row"
    return row


def _facts(row: ImportTaskRow) -> dict[str, Any]:
    return {
        name: getattr(row, name)
        for name in (
            *("document_type", "strategy", "path", "guard", "counts", "problem_count"),
            *("problems", "source_name", "source_size", "workflow_id", "note"),
        )
    }


async def _rows(resources: Resources, document: Document) -> Lines:
    table = DOMAIN[document.table]
    owner = (
        table.c.service_id == document.name
        if "service_id" in table.c
        else table.c.code.startswith(f"{document.name}.", autoescape=True)
    )
    # When a row was written is all that may differ; how often, its version, may not.
    columns = [column for column in table.c if column.name not in ("created_at", "updated_at")]
    query = (
        select(*columns)
        .where(table.c.project_id == PROJECT, owner)
        .order_by(*(table.c[name] for name in key_of(table)))
    )
    async with resources.database.reading() as connection:
        return [tuple(row) for row in await connection.execute(query)]


async def _report(
    resources: Resources, row: ImportTaskRow, folder: Path
) -> list[tuple[int, list[Cell]]]:
    if row.report is None:
        return []
    copy = folder / "report.xlsx"
    copy.unlink(missing_ok=True)
    await resources.blobs.download(row.report.name, copy)
    with resources.documents.open_table(copy) as table:
        return list(table.rows())


def _assert_same(what: str, found: Lines, expected: Lines) -> None:
    # Naming the first difference takes no time; a diff of 40,000 rows takes for ever.
    for number, (one, other) in enumerate(zip_longest(found, expected)):
        assert one == other, f"{what}, number {number}: {one}, undisturbed {other}"
