"""The status row of an import, from its first line to its last."""

from datetime import datetime
from typing import Any, Final

from sqlalchemy import delete
from sqlalchemy.ext.asyncio import AsyncConnection

from adapters.database.bulk.protocol import BulkEngine
from adapters.database.codec import clean
from adapters.database.models.spreadsheets import (
    spreadsheet_files,
    spreadsheet_imports,
    spreadsheet_uploads,
)
from adapters.database.spreadsheets import audit_trail, values
from adapters.database.spreadsheets.locked_import import (
    LockedImport,
    counted_values,
    lock_known,
    save,
)
from adapters.database.spreadsheets.statuses import counts_of
from contracts.blobs import BlobRef
from contracts.spreadsheets import (
    FINAL,
    Processed,
    RowCounts,
    SpreadsheetOrder,
    SpreadsheetResult,
    SpreadsheetState,
    StatusRecord,
)

_ENDS: Final = frozenset(FINAL)


async def open_import(
    connection: AsyncConnection, bulk: BulkEngine, order: SpreadsheetOrder, run: str, now: datetime
) -> None:
    """Make the status row unless it is there, and forget the note of the upload."""
    by = clean(order.by)
    await connection.execute(
        bulk.insert_statement(spreadsheet_imports)
        .values(
            uuid=order.uuid,
            workflow_id=run,
            organisation_id=order.organisation_id,
            import_type=order.import_type,
            context_id=order.context_id,
            source=order.source.model_dump_json(),
            filename=clean(order.filename),
            by=by,
            notify=None if order.notify is None else clean(order.notify),
            auto_start=order.auto_start,
            dry_run=order.dry_run,
            fingerprint=None if order.fingerprint is None else clean(order.fingerprint),
            link=None if order.link is None else clean(order.link),
            state=SpreadsheetState.UPLOADED.value,
            state_since=now,
            assignee=by,
            layout=order.layout.model_dump_json(),
            created_at=now,
            updated_at=now,
        )
        .on_conflict_do_nothing(index_elements=["uuid"])
    )
    await connection.execute(
        delete(spreadsheet_uploads).where(spreadsheet_uploads.c.blob_name == order.source.name)
    )


async def record(connection: AsyncConnection, bulk: BulkEngine, record: StatusRecord) -> None:
    """Write one transition; nothing when a later one is written already, or the end.

    One of the same number counts: a worker that died before Temporal knew of its record is followed
    by one whose run went another way.
    """
    opened = await lock_known(connection, record.uuid)
    if not opened.ended and record.sequence >= opened.row.sequence:
        await _write(connection, bulk, opened, record)


async def finish(
    connection: AsyncConnection, bulk: BulkEngine, result: SpreadsheetResult, record: StatusRecord
) -> RowCounts:
    """Write the end of an import, once; the counts of the progress mark."""
    opened = await lock_known(connection, record.uuid)
    if opened.ended:
        return counts_of(opened.row)
    more: dict[str, Any] = {}
    if not opened.purged:
        report = None if result.report is None else result.report.model_dump_json()
        reason = result.reason if result.reason is not None else record.reason
        more = {"report": report, "reason": None if reason is None else clean(reason)}
    await _write(connection, bulk, opened, record, **more)
    return counts_of(opened.row)


async def _write(
    connection: AsyncConnection,
    bulk: BulkEngine,
    opened: LockedImport,
    record: StatusRecord,
    **more: Any,
) -> None:
    row = opened.row
    ends = record.state in _ENDS
    values: dict[str, Any] = {
        "sequence": max(row.sequence, record.sequence),
        "state": record.state.value,
        "step": clean(record.step),
        "version": max(row.version, record.version),
        "waiting_since": record.waiting_since,
        **await counted_values(connection, opened),
    }
    if record.state is not opened.state:
        values["state_since"] = record.at
    if ends:
        values["finished_at"] = row.finished_at or record.at
    if not opened.purged:
        values["reason"] = None if record.reason is None else clean(record.reason)
        if record.assignee is not None:
            values["assignee"] = clean(record.assignee)
        await audit_trail.add(connection, bulk, row.workflow_id, record.trail)
    if record.trail:
        values["decided_at"] = audit_trail.latest(record.trail)
    await save(connection, opened, values | more)


async def save_total(connection: AsyncConnection, uuid: str, total: int) -> None:
    """Rows of the file, as far as they are counted."""
    opened = await lock_known(connection, uuid)
    if opened.row.total != total:
        await save(connection, opened, {"total": total})


async def save_file(
    connection: AsyncConnection, bulk: BulkEngine, uuid: str, blob: BlobRef
) -> None:
    """Note a blob that was made for an import, so that it goes when the import is purged."""
    opened = await lock_known(connection, uuid)
    insert = bulk.insert_statement(spreadsheet_files).values(
        import_id=opened.id, name=blob.name, blob=blob.model_dump_json()
    )
    await connection.execute(
        insert.on_conflict_do_update(
            index_elements=["import_id", "name"], set_={"blob": insert.excluded.blob}
        )
    )


async def end_round(connection: AsyncConnection, uuid: str, round: int) -> Processed:
    """Mark a round as ended; figures of all rounds."""
    opened = await lock_known(connection, uuid)
    row = opened.row
    if round > row.mark_round or (round == row.mark_round and not row.round_ended):
        values_: dict[str, Any] = {"round_ended": True}
        if round > row.mark_round:
            values_ |= {"mark_round": round, "mark_chunk": 0, "mark_cursor": 0, "mark_offset": 0}
        await save(connection, opened, values_)
    return Processed(
        counts=counts_of(row),
        parked=row.parked,
        cells=await values.summary(connection, opened.id),
    )
