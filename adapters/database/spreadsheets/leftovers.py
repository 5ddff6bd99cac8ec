"""Rows that runs of spreadsheets left open."""

from collections.abc import Sequence
from datetime import UTC, datetime
from typing import Any, Final

from sqlalchemy import case, literal, or_, select
from sqlalchemy.ext.asyncio import AsyncConnection

from adapters.database.codec import clean
from adapters.database.models.spreadsheets import spreadsheet_imports
from adapters.database.spreadsheets.locked_import import counted_values, lock, save
from adapters.ports import OpenRow
from contracts.spreadsheets import FINAL, SpreadsheetState, UndoState, undo_id, workflow_id

_ENDED: Final = sorted(state.value for state in FINAL)


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
        values = {"undo_state": UndoState.TERMINATED.value, "undo_finished_at": now}
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
