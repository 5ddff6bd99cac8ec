"""How far the load of a message is: one row for each step, in the transaction of its rows."""

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any

from sqlalchemy import and_, delete, func, or_, select
from sqlalchemy.ext.asyncio import AsyncConnection

from adapters.database.bulk.protocol import advisory_lock_key
from adapters.database.models.batches import process_checkpoints
from contracts.batches import DocumentEvent, LoadStep, message_key


@dataclass(frozen=True, slots=True)
class Checkpoints:
    """The steps of a message that are done."""

    steps: frozenset[LoadStep]
    etag: str | None = None
    """Of the file that `dedupe` has read; None: not read, or by a release that did not store it."""


async def lock(connection: AsyncConnection, event: DocumentEvent) -> None:
    """Let one transaction at a time write what concerns a document of a case.

    The transactions of SQLite that write take turns anyhow.
    """
    if connection.dialect.name == "postgresql":
        key = advisory_lock_key(f"document {event.case_id}/{event.document_id}")
        await connection.execute(select(func.pg_advisory_xact_lock(key)))


async def of(connection: AsyncConnection, event: DocumentEvent) -> Checkpoints:
    """Those of a message."""
    columns = process_checkpoints.c
    query = select(columns.step, columns.etag).where(of_message(event))
    found = {LoadStep(step): etag for step, etag in await connection.execute(query)}
    return Checkpoints(frozenset(found), found.get(LoadStep.DEDUPE))


async def write(
    connection: AsyncConnection,
    insert: Callable[..., Any],
    event: DocumentEvent,
    steps: Iterable[LoadStep],
    etag: str | None = None,
) -> bool:
    """Record steps as done; False: they are recorded already.

    Args:
        connection: Of the transaction.
        insert: Of the dialect.
        event: The message.
        steps: Of the message.
        etag: Of the file that was read.
    """
    rows = [
        {
            "case_id": event.case_id,
            "batch_id": event.batch_id,
            "document_id": event.document_id,
            "event_type": event.event_type,
            "step": step.value,
            "message_key": message_key(event),
            "etag": etag,
            "done_at": datetime.now(UTC),
        }
        for step in steps
    ]
    written = await connection.execute(
        insert(process_checkpoints)
        .values(rows)
        .on_conflict_do_nothing()
        .returning(process_checkpoints.c.step)
    )
    return bool(written.all())


async def forget(
    connection: AsyncConnection, event: DocumentEvent, step: LoadStep | None = None
) -> None:
    """Remove those of a message; only that of one step where it is given."""
    mine = of_message(event)
    if step is not None:
        mine &= process_checkpoints.c.step == step.value
    await connection.execute(delete(process_checkpoints).where(mine))


def of_message(event: DocumentEvent) -> Any:
    """Rows of a message; of releases that had one for each kind, those that it wrote."""
    columns, key = process_checkpoints.c, message_key(event)
    return and_(
        columns.case_id == event.case_id,
        columns.batch_id == event.batch_id,
        columns.document_id == event.document_id,
        columns.event_type == event.event_type,
        or_(columns.message_key == key, and_(columns.message_key == "", columns.digest == key)),
    )
