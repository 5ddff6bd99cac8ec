"""Taking the rows of an import back, newest chunk first.

A row is taken back only when it still is as the import left it, in the columns that the import
wrote. One that was changed since, or that others refer to, is left alone and reported.
"""

from collections.abc import Mapping, Sequence
from datetime import UTC, datetime, timedelta
from typing import Any, Final

from sqlalchemy import Table, func, select, update
from sqlalchemy.ext.asyncio import AsyncConnection

from adapters.database.codec import clean
from adapters.database.models.spreadsheets import (
    spreadsheet_journal,
    spreadsheet_undo_conflicts,
)
from adapters.database.spreadsheets.before_images import TableImages, UpdatedImage, unpack
from adapters.database.spreadsheets.bulk import Bulk, children_of, target_table
from adapters.database.spreadsheets.locked_import import (
    LockedImport,
    Tools,
    acquire_organisation_lock,
    lock,
    lock_known,
    save,
)
from contracts.spreadsheets import (
    PROBLEMS_NAMED,
    SpreadsheetState,
    UndoCounts,
    UndoOrder,
    UndoResult,
    UndoState,
)

CHANGED: Final = "was changed since"
GONE: Final = "was deleted since"
Conflict = tuple[int, str, int, str]
"""Line, table, row and why it is left alone."""


async def begin_undo(connection: AsyncConnection, order: UndoOrder) -> str | None:
    """Mark an import as being undone; None, or why it cannot be."""
    opened = await lock(connection, order.uuid)
    if opened is None or opened.row.organisation_id != order.organisation_id:
        return "there is no such import"
    row = opened.row
    if row.undo_state == UndoState.UNDONE.value:
        if row.undo_requested_at == order.requested_at:
            # The same request again: its worker died before it could report the result.
            return None
        return f"this import was undone on {row.undo_finished_at:%Y-%m-%d} already"
    if row.undo_state == UndoState.RUNNING.value:
        return None
    if row.dry_run:
        return "this import was a dry run: it wrote nothing that could be undone"
    if not opened.ended:
        state = SpreadsheetState(row.state).value
        return f"this import is still {state}: cancel it, or wait until it has ended, then undo it"
    if row.journal_purged_at is not None:
        return (
            "the rows as they were before this import are no longer kept; they were removed on "
            f"{row.journal_purged_at:%Y-%m-%d}"
        )
    ended = row.finished_at
    if order.requested_at > ended + timedelta(seconds=order.within):
        days = order.within // 86_400
        return f"this import ended on {ended:%Y-%m-%d}; an import can be undone for {days} days"
    await save(
        connection,
        opened,
        {
            "undo_state": UndoState.RUNNING.value,
            "undo_by": None if opened.purged else clean(order.by),
            "undo_requested_at": order.requested_at,
        },
    )
    return None


async def undo_chunk(connection: AsyncConnection, tools: Tools, uuid: str) -> bool:
    """Take back the newest chunk that is not taken back yet; False: there is none."""
    opened = await lock_known(connection, uuid)
    if opened.row.undo_state != UndoState.RUNNING.value:
        return False
    journal = spreadsheet_journal
    mine = journal.c.import_id == opened.id
    newest = (
        select(journal)
        .where(mine, journal.c.undone.is_(False))
        .order_by(journal.c.round.desc(), journal.c.chunk.desc())
        .limit(1)
    )
    chunk = (await connection.execute(newest)).one_or_none()
    if chunk is None:
        return False
    await acquire_organisation_lock(connection, tools, opened.row.organisation_id)
    await tools.bulk.prepare(connection)
    deleted = restored = 0
    conflicts: list[Conflict] = []
    for images in reversed(unpack(chunk.images)):
        table = target_table(images.table)
        restored += await _restore(connection, tools.bulk, table, images, conflicts)
        deleted += await _delete(connection, tools.bulk, table, images, conflicts)
    await _report(connection, opened, conflicts)
    await connection.execute(
        update(journal)
        .where(mine, journal.c.round == chunk.round, journal.c.chunk == chunk.chunk)
        .values(undone=True)
    )
    await save(
        connection,
        opened,
        {
            "undo_deleted": opened.row.undo_deleted + deleted,
            "undo_restored": opened.row.undo_restored + restored,
            "undo_left_alone": opened.row.undo_left_alone + len(conflicts),
        },
    )
    return True


async def end_undo(connection: AsyncConnection, uuid: str) -> UndoResult:
    """Mark an import as undone, once every chunk is taken back."""
    opened = await lock_known(connection, uuid)
    row, journal = opened.row, spreadsheet_journal
    state = UndoState(row.undo_state or UndoState.FAILED.value)
    if state is UndoState.RUNNING:
        waiting = select(func.count()).where(
            journal.c.import_id == opened.id, journal.c.undone.is_(False)
        )
        left = (await connection.execute(waiting)).scalar_one()
        state = UndoState.FAILED if left else UndoState.UNDONE
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


async def _restore(
    connection: AsyncConnection,
    bulk: Bulk,
    table: Table,
    images: TableImages,
    conflicts: list[Conflict],
) -> int:
    """Give changed rows their values back; how many."""
    if not images.updated:
        return 0
    names = sorted({images.columns[n] for image in images.updated for n in image.columns})
    ids = [image.id for image in images.updated]
    found = await bulk.rows(connection, table, ids, names)
    there = {row[0]: dict(zip(names, tuple(row)[1:], strict=True)) for row in found}
    rows: list[tuple[Any, ...]] = []
    for image in images.updated:
        current = there.get(image.id)
        columns = [images.columns[n] for n in image.columns]
        reason = _why_not(bulk, table, current, columns, image)
        if current is None or reason is not None:
            conflicts.append((image.line, images.table, image.id, reason or GONE))
            continue
        before = dict(zip(columns, _parsed(bulk, table, columns, image.before), strict=True))
        rows.append((image.id, *(before.get(name, current[name]) for name in names)))
    if rows:
        await bulk.update(connection, table, names, rows)
    return len(rows)


def _why_not(
    bulk: Bulk,
    table: Table,
    current: Mapping[str, Any] | None,
    columns: Sequence[str],
    image: UpdatedImage,
) -> str | None:
    if current is None:
        return GONE
    after = _parsed(bulk, table, columns, image.after)
    return None if [current[name] for name in columns] == after else CHANGED


def _parsed(bulk: Bulk, table: Table, columns: Sequence[str], values: Sequence[Any]) -> list[Any]:
    return [
        bulk.parsed(table, name, [value])[0] for name, value in zip(columns, values, strict=True)
    ]


async def _delete(
    connection: AsyncConnection,
    bulk: Bulk,
    table: Table,
    images: TableImages,
    conflicts: list[Conflict],
) -> int:
    """Delete created rows; how many. One that is gone already is as it should be."""
    if not images.created:
        return 0
    lines, ids, *columns = zip(*images.created, strict=True)
    columns = [
        bulk.parsed(table, name, values)
        for name, values in zip(images.columns, columns, strict=True)
    ]
    written = dict(zip(ids, zip(lines, zip(*columns, strict=True), strict=True), strict=True))
    # What the import left blank is a person's work too, once it is filled.
    blank = [name for name in table.c.keys() if name not in {"id", *images.columns}]  # noqa: SIM118
    wanted: list[int] = []
    for row in await bulk.rows(connection, table, ids, (*images.columns, *blank)):
        id, *values = row
        line, after = written[id]
        if tuple(values) == (*after, *(None for _ in blank)):
            wanted.append(id)
        else:
            conflicts.append((line, images.table, id, CHANGED))
    for child, column in children_of(images.table):
        if not wanted:
            break
        held = await bulk.referred(connection, child, column, wanted)
        reason = f"is referred to by {child.name.replace('_', ' ')}"
        conflicts.extend((written[id][0], images.table, id, reason) for id in wanted if id in held)
        wanted = [id for id in wanted if id not in held]
    if wanted:
        await bulk.delete(connection, table, wanted)
    return len(wanted)


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
        f"row {row.line}: {row.table_name.replace('_', ' ')} {row.row_id} {row.reason}"
        for row in rows
    )
