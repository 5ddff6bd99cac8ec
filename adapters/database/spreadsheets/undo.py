"""Taking the rows of an import back, newest chunk first, as far as they are as it left them."""

from collections.abc import Sequence
from datetime import UTC, datetime, timedelta
from typing import Any, Final

from sqlalchemy import ColumnElement, delete, func, select, update
from sqlalchemy.ext.asyncio import AsyncConnection

from adapters.database.bulk.protocol import BulkEngine
from adapters.database.codec import clean
from adapters.database.models.spreadsheets import (
    spreadsheet_journal,
    spreadsheet_undo_conflicts,
)
from adapters.database.spreadsheets import audit_trail, people
from adapters.database.spreadsheets.before_images import pack, unpack
from adapters.database.spreadsheets.locked_import import (
    LockedImport,
    acquire_organisation_lock,
    lock,
    lock_known,
    save,
)
from adapters.database.spreadsheets.undo_rows import Conflict, take_back
from contracts.spreadsheets import (
    PROBLEMS_NAMED,
    DecisionRecord,
    SpreadsheetState,
    UndoCounts,
    UndoOrder,
    UndoPreview,
    UndoResult,
    UndoState,
)
from domain.spreadsheets.plain_words import record_title

PREVIEWED: Final = 100
"""Rows that a preview names."""


async def begin_undo(connection: AsyncConnection, bulk: BulkEngine, order: UndoOrder) -> str | None:
    """Mark an import as being undone; None, or why it cannot be."""
    opened = await lock(connection, order.uuid)
    if opened is None or opened.row.organisation_id != order.organisation_id:
        return "there is no such import"
    row = opened.row
    if row.undo_state == UndoState.RUNNING.value:
        await _note_retries(connection, bulk, opened, order)
        return None
    if row.undo_requested_at == order.requested_at and row.undo_state in _DONE:
        # The same request again: its worker died before it could report the result.
        return None
    refusal = _refusal(opened, order)
    if refusal is not None:
        return refusal
    line = DecisionRecord(kind="undo", decision="import", by=order.by, at=order.requested_at)
    await audit_trail.add(connection, bulk, row.workflow_id, [line])
    # Of rows that an earlier undo left alone it is found out anew.
    conflicts = spreadsheet_undo_conflicts
    await connection.execute(delete(conflicts).where(conflicts.c.import_id == opened.id))
    resumes = row.undo_state in (UndoState.FAILED.value, UndoState.TERMINATED.value)
    attempts = row.undo_attempts or 0
    await save(
        connection,
        opened,
        {
            "undo_state": UndoState.RUNNING.value,
            "undo_by": clean(order.by),
            "undo_requested_at": order.requested_at,
            "undo_finished_at": None,
            "undo_attempts": attempts if resumes and attempts else attempts + 1,
            "undo_left_alone": 0,
        },
    )
    return None


_DONE: Final = (UndoState.UNDONE.value, UndoState.UNDONE_PARTLY.value)


def _refusal(opened: LockedImport, order: UndoOrder) -> str | None:
    row = opened.row
    if row.undo_state == UndoState.UNDONE.value:
        return f"this import was undone on {row.undo_finished_at:%Y-%m-%d} already"
    if row.dry_run:
        return "this import was a dry run: it wrote nothing that could be undone"
    if not opened.ended:
        state = SpreadsheetState(row.state).value
        return f"this import is still {state}: cancel it, or wait until it has ended, then undo it"
    ended = row.finished_at
    if order.requested_at > ended + timedelta(seconds=order.within):
        days = order.within // 86_400
        return f"this import ended on {ended:%Y-%m-%d}; an import can be undone for {days} days"
    if row.journal_purged_at is not None:
        return (
            "the rows as they were before this import are no longer kept; they were removed on "
            f"{row.journal_purged_at:%Y-%m-%d}"
        )
    return None


async def _note_retries(
    connection: AsyncConnection, bulk: BulkEngine, opened: LockedImport, order: UndoOrder
) -> None:
    lines = [
        DecisionRecord(
            kind="retry",
            subject=f"retry {number}",
            decision="undo",
            by=by,
            at=order.requested_at,
        )
        for number, by in enumerate(order.retried_by, start=1)
    ]
    await audit_trail.add(connection, bulk, opened.row.workflow_id, lines)


async def undo_chunk(connection: AsyncConnection, bulk: BulkEngine, uuid: str) -> bool:
    """Take back the newest chunk that is not taken back yet; False: there is none."""
    opened = await lock_known(connection, uuid)
    if opened.row.undo_state != UndoState.RUNNING.value:
        return False
    attempt = opened.row.undo_attempts or 1
    done = await _next_chunk(connection, bulk, opened, attempt)
    if done is None:
        return False
    deleted, restored, conflicts = done
    await _report(connection, opened, conflicts)
    await save(
        connection,
        opened,
        {
            "undo_deleted": opened.row.undo_deleted + deleted,
            "undo_restored": opened.row.undo_restored + restored,
            "undo_left_alone": opened.row.undo_left_alone + _rows(conflicts),
        },
    )
    return True


async def preview(
    connection: AsyncConnection, bulk: BulkEngine, uuid: str
) -> tuple[UndoPreview, Sequence[Conflict]]:
    """What an undo would do. It is done here: the caller rolls the transaction back."""
    opened = await lock_known(connection, uuid)
    attempt = (opened.row.undo_attempts or 0) + 1
    deleted = restored = 0
    conflicts: list[Conflict] = []
    while (done := await _next_chunk(connection, bulk, opened, attempt)) is not None:
        deleted, restored = deleted + done[0], restored + done[1]
        conflicts += done[2]
    counts = UndoCounts(deleted=deleted, restored=restored, left_alone=_rows(conflicts))
    return UndoPreview(uuid=uuid, counts=counts), sorted(conflicts)[:PREVIEWED]


async def _next_chunk(
    connection: AsyncConnection, bulk: BulkEngine, opened: LockedImport, attempt: int
) -> tuple[int, int, Sequence[Conflict]] | None:
    """Take back what can be of the newest chunk that this attempt has not looked at."""
    journal = spreadsheet_journal
    newest = (
        select(journal)
        .where(*_left(opened, attempt))
        .order_by(journal.c.round.desc(), journal.c.chunk.desc())
        .limit(1)
    )
    chunk = (await connection.execute(newest)).one_or_none()
    if chunk is None:
        return None
    await acquire_organisation_lock(connection, bulk, opened.row.organisation_id)
    await bulk.expect_lookups(connection)
    done = await take_back(connection, bulk, unpack(chunk.images))
    change: dict[str, Any] = {"undone": not done.left, "attempt": attempt}
    if done.left and done.conflicts:
        change["images"] = pack(done.left)
    await connection.execute(
        update(journal)
        .where(
            journal.c.import_id == opened.id,
            journal.c.round == chunk.round,
            journal.c.chunk == chunk.chunk,
        )
        .values(**change)
    )
    return done.deleted, done.restored, done.conflicts


def _left(opened: LockedImport, attempt: int) -> tuple[ColumnElement[bool], ...]:
    """Chunks that are not taken back and that an attempt has not looked at."""
    journal = spreadsheet_journal.c
    return (
        journal.import_id == opened.id,
        journal.undone.is_(False),
        func.coalesce(journal.attempt, 0) < attempt,
    )


def _rows(conflicts: Sequence[Conflict]) -> int:
    return len({line for line, *_ in conflicts})


async def end_undo(connection: AsyncConnection, uuid: str) -> UndoResult:
    """Mark an import as undone, once every chunk was looked at."""
    opened = await lock_known(connection, uuid)
    row, journal = opened.row, spreadsheet_journal
    state = UndoState(row.undo_state or UndoState.FAILED.value)
    if state is UndoState.RUNNING:
        mine = select(func.count()).select_from(journal)
        left = mine.where(*_left(opened, row.undo_attempts or 1))
        kept = mine.where(journal.c.import_id == opened.id, journal.c.undone.is_(False))
        if (await connection.execute(left)).scalar_one():
            state = UndoState.FAILED
        elif (await connection.execute(kept)).scalar_one():
            state = UndoState.UNDONE_PARTLY
        else:
            state = UndoState.UNDONE
        await people.forget(connection, opened.id)
        await save(
            connection,
            opened,
            {"undo_state": state.value, "undo_finished_at": datetime.now(UTC)},
        )
    return UndoResult(
        uuid=uuid,
        state=state,
        counts=UndoCounts(
            deleted=row.undo_deleted, restored=row.undo_restored, left_alone=row.undo_left_alone
        ),
        problems=await _first_problems(connection, opened),
    )


async def _report(
    connection: AsyncConnection, opened: LockedImport, conflicts: Sequence[Conflict]
) -> None:
    rows = [
        {
            "import_id": opened.id,
            "line": line,
            "table_name": table,
            "row_id": id,
            "reason": reason,
        }
        for line, table, id, reason in sorted(conflicts)
    ]
    if rows:
        await connection.execute(spreadsheet_undo_conflicts.insert(), rows)


async def _first_problems(connection: AsyncConnection, opened: LockedImport) -> tuple[str, ...]:
    conflicts = spreadsheet_undo_conflicts
    rows = await connection.execute(
        select(conflicts)
        .where(conflicts.c.import_id == opened.id)
        .order_by(conflicts.c.line, conflicts.c.id)
        .limit(PROBLEMS_NAMED)
    )
    return tuple(
        f"row {row.line}: {record_title(row.table_name).lower()} {row.row_id} {row.reason}"
        for row in rows
    )
