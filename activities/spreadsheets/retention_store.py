"""What is no longer kept of spreadsheets, and rows that their runs left open."""

from collections.abc import Sequence
from datetime import UTC, datetime, timedelta
from typing import Any, Final

from sqlalchemy import Executable, and_, case, delete, func, literal, or_, select, update
from sqlalchemy.ext.asyncio import AsyncConnection

from activities.spreadsheets import import_rows
from activities.spreadsheets.import_rows import counted_values, lock, save
from adapters.database.models.spreadsheets import (
    spreadsheet_columns,
    spreadsheet_differences,
    spreadsheet_files,
    spreadsheet_imports,
    spreadsheet_journal,
    spreadsheet_parked,
    spreadsheet_results,
    spreadsheet_review_blocks,
    spreadsheet_review_operations,
    spreadsheet_review_problems,
    spreadsheet_reviews,
    spreadsheet_uploads,
    spreadsheet_values,
)
from adapters.database.records import clean
from adapters.ports.records import OpenRow
from workflows.shared.contracts import BlobRef
from workflows.spreadsheets.mappings import FINAL, SpreadsheetState, UndoState
from workflows.spreadsheets.runs import ExpiredPage, RetentionInput, undo_id, workflow_id

_ENDED: Final = sorted(state.value for state in FINAL)
_WAITING: Final = sorted(
    state.value
    for state in (
        SpreadsheetState.UPLOADED,
        SpreadsheetState.COLUMN_MAPPING,
        SpreadsheetState.CELL_MAPPING,
    )
)
_PURGED: Final = (
    spreadsheet_columns,
    spreadsheet_values,
    spreadsheet_results,
    spreadsheet_parked,
    spreadsheet_differences,
    spreadsheet_files,
    spreadsheet_reviews,
    spreadsheet_review_blocks,
    spreadsheet_review_problems,
    spreadsheet_review_operations,
)


async def expired(connection: AsyncConnection, order: RetentionInput, now: datetime) -> ExpiredPage:
    """Imports that are due, the oldest first."""
    imports = spreadsheet_imports
    ended = now - timedelta(seconds=order.finished_after)
    waited = now - timedelta(seconds=order.waiting_after)
    query = (
        select(imports.c.uuid, imports.c.state)
        .where(
            imports.c.purged_at.is_(None),
            func.coalesce(imports.c.undo_state, "") != UndoState.RUNNING.value,
            or_(
                and_(imports.c.state.in_(_ENDED), imports.c.state_since <= ended),
                and_(
                    imports.c.state.in_(_WAITING),
                    imports.c.state_since <= waited,
                    func.coalesce(imports.c.decided_at, imports.c.state_since) <= waited,
                ),
            ),
        )
        .order_by(imports.c.state_since, imports.c.id)
        .limit(order.page)
    )
    rows = (await connection.execute(query)).all()
    return ExpiredPage(
        uuids=tuple(row.uuid for row in rows),
        waiting=tuple(row.uuid for row in rows if row.state in _WAITING),
    )


async def files_of(connection: AsyncConnection, uuid: str) -> Sequence[BlobRef]:
    """Blobs of an import: source, what was made for it, report; none while it needs them."""
    imports, files = spreadsheet_imports, spreadsheet_files
    row = (
        await connection.execute(
            select(imports.c.id, imports.c.source, imports.c.report).where(
                imports.c.uuid == uuid, imports.c.state != SpreadsheetState.PROCESSING.value
            )
        )
    ).one_or_none()
    if row is None:
        return ()
    made = await connection.execute(
        select(files.c.blob).where(files.c.import_id == row.id).order_by(files.c.name)
    )
    texts = [row.source, *made.scalars(), row.report]
    return [BlobRef.model_validate_json(text) for text in texts if text is not None]


async def purge(connection: AsyncConnection, uuid: str, now: datetime) -> bool:
    """Remove what an import was about; False when that was done before, or may not be done."""
    opened = await lock(connection, uuid)
    if opened is None or opened.purged or opened.state is SpreadsheetState.PROCESSING:
        return False
    if opened.row.undo_state == UndoState.RUNNING.value:
        # It is purged when the undo has ended.
        return False
    for table in _PURGED:
        await connection.execute(delete(table).where(table.c.import_id == opened.id))
    await import_rows.pseudonymise(connection, opened.row.workflow_id)
    blank: dict[str, Any] = dict.fromkeys(("filename", "by", "assignee"), "")
    absent = ("source", "notify", "link", "fingerprint", "reason", "layout", "preview", "fields")
    gone = dict.fromkeys((*absent, "report", "undo_by", "undo_reason"))
    await save(connection, opened, {**blank, **gone, "parked": 0, "purged_at": now})
    return True


async def purge_journals(connection: AsyncConnection, before: datetime, limit: int) -> int:
    """Remove before-images of imports that ended before; how many imports."""
    imports, journal = spreadsheet_imports, spreadsheet_journal
    due = (
        select(imports.c.id, imports.c.workflow_id)
        .where(
            func.coalesce(imports.c.finished_at, imports.c.purged_at) < before,
            imports.c.journal_purged_at.is_(None),
            imports.c.dry_run.is_(False),
            func.coalesce(imports.c.undo_state, "") != UndoState.RUNNING.value,
        )
        .order_by(imports.c.finished_at, imports.c.id)
        .limit(limit)
        .with_for_update()
    )
    found = (await connection.execute(due)).all()
    ids = [row.id for row in found]
    if not ids:
        return 0
    for row in found:
        # Who had it undone after it was purged.
        await import_rows.pseudonymise(connection, row.workflow_id)
    await connection.execute(delete(journal).where(journal.c.import_id.in_(ids)))
    await connection.execute(
        update(imports)
        .where(imports.c.id.in_(ids))
        .values(
            journal_purged_at=datetime.now(UTC),
            undo_by=None,
            undo_reason=None,
            revision=imports.c.revision + 1,
        )
    )
    return len(ids)


async def stale_uploads(
    connection: AsyncConnection, before: datetime, limit: int
) -> Sequence[tuple[str, str]]:
    """Uuid and blob name of uploads that never became an import, the oldest first."""
    uploads = spreadsheet_uploads
    rows = await connection.execute(
        select(uploads.c.uuid, uploads.c.blob_name)
        .where(uploads.c.created_at < before)
        .order_by(uploads.c.created_at, uploads.c.blob_name)
        .limit(limit)
    )
    return [(row.uuid, row.blob_name) for row in rows]


def forgetting(blob_name: str) -> Executable:
    """The statement that forgets the note of an upload."""
    return delete(spreadsheet_uploads).where(spreadsheet_uploads.c.blob_name == blob_name)


async def open_rows(
    connection: AsyncConnection, before: datetime, after: str, limit: int
) -> Sequence[OpenRow]:
    """Imports that have not ended, and undos that are under way, by workflow id."""
    imports = spreadsheet_imports
    is_undone = imports.c.undo_state == UndoState.RUNNING.value
    run = case(
        (is_undone, literal(undo_id("")) + imports.c.uuid),
        else_=literal(workflow_id("")) + imports.c.uuid,
    )
    rows = await connection.execute(
        select(run.label("run"), imports.c.updated_at)
        .where(
            or_(imports.c.state.not_in(_ENDED), is_undone),
            imports.c.updated_at <= before,
            run > after,
        )
        .order_by(run)
        .limit(limit)
    )
    return [OpenRow(row.run, row.updated_at) for row in rows]


async def terminate(
    connection: AsyncConnection,
    run: str,
    reason: str,
    unchanged_since: datetime | None,
) -> bool:
    """Close an import, or an undo, as terminated; files and results go after their retention."""
    uuid = run.rpartition("/")[2]
    opened = await lock(connection, uuid)
    if opened is None or unchanged_since not in (None, opened.row.updated_at):
        return False
    now = datetime.now(UTC)
    values: dict[str, Any]
    if run == undo_id(uuid):
        if opened.row.undo_state != UndoState.RUNNING.value:
            return False
        values = {
            "undo_state": UndoState.TERMINATED.value,
            "undo_reason": None,
            "undo_finished_at": now,
        }
    else:
        if opened.ended:
            return False
        values = {
            "state": SpreadsheetState.TERMINATED.value,
            "state_since": now,
            "finished_at": now,
            "waiting_since": None,
            "reason": None if opened.purged else clean(reason),
            **await counted_values(connection, opened),
        }
    await save(connection, opened, values)
    return True
