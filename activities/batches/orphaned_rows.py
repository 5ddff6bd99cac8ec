"""Rows that runs of cases and batches left open."""

from collections.abc import Sequence
from datetime import UTC, datetime, timedelta
from typing import Any, Final

from sqlalchemy import (
    ColumnElement,
    Text,
    and_,
    case,
    cast,
    delete,
    func,
    literal,
    or_,
    select,
    update,
)
from sqlalchemy.ext.asyncio import AsyncConnection

from adapters.database.models.batches import (
    TEMPORARY,
    batches,
    doc_dedupe,
    documents,
    process_checkpoints,
)
from adapters.database.models.runs import leases
from adapters.database.records import clean, release
from adapters.ports.records import OpenRow
from workflows.batches.events import columns_after_end
from workflows.batches.loads import DocumentProcessed, DocumentState, LoadStep
from workflows.batches.names import BatchKey, LoaderStatus

AFTER_RESOURCES: Final = timedelta(minutes=45)
"""The sweeper of resources goes first: it closes the row, and stops loads that are open."""
LOADS_ASKED_FOR: Final = timedelta(days=2)
"""One whose load is gone by then is not asked for any longer."""

MOST_UNANNOUNCED: Final = 1_000
"""Those whose run is open, and which are torn down, are among them."""

_FROM_OUTSIDE: Final = frozenset({"terminated", "timed_out", "canceled"})
_PROCESSING: Final = LoaderStatus.PROCESSING.value
_REQUESTED: Final = and_(
    batches.c.loader_status == LoaderStatus.WAITING.value, batches.c.purpose.is_not(None)
)


async def open_rows(
    connection: AsyncConnection, before: datetime, after: str, limit: int
) -> Sequence[OpenRow]:
    """Batches that have begun or were started, leases without one, loading documents, by id."""
    found = await _open_batches(connection, before, after, limit)
    for query in (_open_leases, _open_documents):
        if len(found) < limit:
            found += await query(connection, before, after, limit - len(found))
    return found


async def _open_batches(
    connection: AsyncConnection, before: datetime, after: str, limit: int
) -> list[OpenRow]:
    """Batches in `processing`, and those that were started and wait for their case."""
    id = literal("batch/") + cast(batches.c.case_id, Text) + "/" + cast(batches.c.batch_id, Text)
    run = case(
        (batches.c.loader_status == _PROCESSING, id),
        else_=literal("case/") + cast(batches.c.case_id, Text),
    )
    rows = await connection.execute(
        select(id.label("id"), run.label("run"), batches.c.updated_at)
        .where(
            or_(batches.c.loader_status == _PROCESSING, _REQUESTED),
            batches.c.updated_at <= before,
            id > after,
        )
        .order_by(id)
        .limit(limit)
    )
    return [
        OpenRow(
            row.id,
            row.updated_at,
            run=row.run,
            grace=AFTER_RESOURCES if row.run == row.id else timedelta(),
        )
        for row in rows
    ]


_LEASE: Final = "lease/"


async def _open_leases(
    connection: AsyncConnection, before: datetime, after: str, limit: int
) -> list[OpenRow]:
    """Leases of batches whose row is closed or is not there: the end of no row releases them.

    A step that still asked when its batch was closed has taken them again.
    """
    owner = literal("batch/") + cast(batches.c.case_id, Text) + "/" + cast(batches.c.batch_id, Text)
    open_batches = select(owner).where(or_(batches.c.loader_status == _PROCESSING, _REQUESTED))
    id, changed_at = literal(_LEASE) + leases.c.owner, func.max(leases.c.expires_at)
    rows = await connection.execute(
        select(id.label("id"), leases.c.owner, changed_at.label("changed_at"))
        .where(leases.c.owner.not_in(open_batches), id > after)
        .group_by(leases.c.owner)
        .having(changed_at <= before)
        .order_by(id)
        .limit(limit)
    )
    return [OpenRow(row.id, row.changed_at, run=row.owner) for row in rows]


async def _release_leases(
    connection: AsyncConnection, owner: str, unchanged_since: datetime | None
) -> bool:
    query = select(func.max(leases.c.expires_at)).where(leases.c.owner == owner)
    changed_at = (await connection.execute(query)).scalar_one()
    if changed_at is None or unchanged_since not in (None, changed_at):
        return False
    await release(connection, owner)
    return True


async def _open_documents(
    connection: AsyncConnection, before: datetime, after: str, limit: int
) -> list[OpenRow]:
    """Documents that are `loading`, also those whose load has failed."""
    parts = (documents.c.case_id, documents.c.batch_id, documents.c.document_id)
    case_id, batch_id, document_id = (cast(part, Text) for part in parts)
    id = literal("load/") + case_id + "/" + batch_id + "/" + document_id
    rows = await connection.execute(
        select(id.label("id"), documents.c.updated_at)
        .where(
            documents.c.state == DocumentState.LOADING.value,
            documents.c.updated_at <= before,
            documents.c.updated_at > before - LOADS_ASKED_FOR,
            id > after,
        )
        .order_by(id)
        .limit(limit)
    )
    return [OpenRow(row.id, row.updated_at, only_after=_FROM_OUTSIDE) for row in rows]


async def terminate(
    connection: AsyncConnection,
    run: str,
    reason: str,
    unchanged_since: datetime | None,
) -> bool:
    """Close a batch or a document as terminated, or release leases without a batch.

    The case of a batch is free, and it may be started again. The bytes of a document are free for
    another one that has the same, and its message may be sent again.
    """
    if run.startswith(_LEASE):
        return await _release_leases(connection, run.removeprefix(_LEASE), unchanged_since)
    kind, case_id, batch_id, *rest = run.split("/", 3)
    if kind == "load":
        document = and_(
            documents.c.case_id == int(case_id),
            documents.c.batch_id == int(batch_id),
            documents.c.document_id == rest[0],
        )
        return await _terminate_document(connection, document, reason, unchanged_since)
    key = BatchKey(case_id=int(case_id), batch_id=int(batch_id))
    own = and_(batches.c.case_id == key.case_id, batches.c.batch_id == key.batch_id)
    query = select(batches).where(own, or_(batches.c.loader_status == _PROCESSING, _REQUESTED))
    row = (await connection.execute(query.with_for_update())).one_or_none()
    if row is None or unchanged_since not in (None, row.updated_at):
        return False
    now = datetime.now(UTC)
    values = ended_without_run(row, LoaderStatus.TERMINATED, reason, now)
    await connection.execute(update(batches).where(own).values(**values, updated_at=now))
    for table in TEMPORARY:
        mine = and_(table.c.case_id == key.case_id, table.c.batch_id == key.batch_id)
        await connection.execute(delete(table).where(mine))
    await release(connection, key.workflow_id)
    return True


def ended_without_run(
    row: Any, status: LoaderStatus, reason: str | None, now: datetime
) -> dict[str, Any]:
    """Columns of a batch that ends without a run of its own.

    One that was cancelled is not started again, and its end is announced; another one is loaded
    again, and announced then.

    Args:
        row: The batch as it is; its reason says who cancelled it.
        status: What it becomes where it was not cancelled.
        reason: Why, for people.
        now: UTC.
    """
    if row.cancelled_mode is None:
        return {
            **columns_after_end(status, now),
            "reason": None if reason is None else clean(reason),
        }
    why = "; ".join(filter(None, (row.reason, reason)))
    return {
        **columns_after_end(LoaderStatus.CANCELLED, now),
        "reason": clean(why) or None,
        "unannounced_since": now,
    }


async def unannounced(connection: AsyncConnection, before: datetime) -> Sequence[BatchKey]:
    """Batches that ended before a moment and whose end was not announced, the oldest first."""
    rows = await connection.execute(
        select(batches.c.case_id, batches.c.batch_id)
        .where(
            batches.c.unannounced_since <= before,
            # One that was started again announces its next end.
            batches.c.loader_status.not_in((LoaderStatus.WAITING.value, _PROCESSING)),
        )
        .order_by(batches.c.unannounced_since, batches.c.case_id, batches.c.batch_id)
        .limit(MOST_UNANNOUNCED)
    )
    return [BatchKey(case_id=row.case_id, batch_id=row.batch_id) for row in rows]


async def fail_dead_letters(connection: AsyncConnection, key: BatchKey) -> None:
    """Close the documents of a complete batch whose messages are dead letters that it keeps."""
    name = f"{key.case_id}/{key.batch_id}"
    reason = (
        "a dead letter of the batch holds its message: "
        f"`docflow batch show {name} dead-letters` says why, "
        f"`docflow batch redrive {name}` tries it again"
    )
    await _close_loading(connection, key, DocumentState.FAILED, reason)


async def stop_documents(connection: AsyncConnection, key: BatchKey) -> None:
    """Close the documents of a batch that are `loading`; the batch's row says why it ended."""
    own = and_(batches.c.case_id == key.case_id, batches.c.batch_id == key.batch_id)
    query = select(batches.c.loader_status, batches.c.reason).where(own)
    row = (await connection.execute(query)).one_or_none()
    status = LoaderStatus.TERMINATED if row is None else LoaderStatus(row.loader_status)
    state = DocumentState.CANCELLED
    if status is LoaderStatus.TERMINATED:
        state = DocumentState.TERMINATED
    why = f" ({row.reason})" if row is not None and row.reason else ""
    reason = f"{key} became {status} while this document was being loaded{why}; send it again"
    await _close_loading(connection, key, state, reason)


async def _close_loading(
    connection: AsyncConnection, key: BatchKey, state: DocumentState, reason: str
) -> None:
    await connection.execute(
        update(documents)
        .where(
            documents.c.case_id == key.case_id,
            documents.c.batch_id == key.batch_id,
            documents.c.state == DocumentState.LOADING.value,
        )
        .values(
            state=state.value,
            reason=clean(reason),
            failed_event=DocumentProcessed.model_fields["event_type"].default,
            updated_at=datetime.now(UTC),
        )
    )


async def _terminate_document(
    connection: AsyncConnection,
    own: ColumnElement[bool],
    reason: str,
    unchanged_since: datetime | None,
) -> bool:
    is_loading = documents.c.state == DocumentState.LOADING.value
    query = select(documents).where(own, is_loading).with_for_update()
    row = (await connection.execute(query)).one_or_none()
    if row is None or unchanged_since not in (None, row.updated_at):
        return False
    event_type = DocumentProcessed.model_fields["event_type"].default
    await connection.execute(
        update(documents)
        .where(own)
        .values(
            state=DocumentState.TERMINATED.value,
            reason=clean(reason),
            failed_event=event_type,
            updated_at=datetime.now(UTC),
        )
    )
    # As after a failure: it has to claim its bytes again.
    for table in (doc_dedupe, process_checkpoints):
        mine = and_(
            table.c.case_id == row.case_id,
            table.c.batch_id == row.batch_id,
            table.c.document_id == row.document_id,
        )
        if table is process_checkpoints:
            mine &= and_(table.c.event_type == event_type, table.c.step == LoadStep.DEDUPE.value)
            # Those of other messages are of versions that are kept.
            mine &= table.c.message_key.in_(("", row.message_key or ""))
        await connection.execute(delete(table).where(mine))
    return True
