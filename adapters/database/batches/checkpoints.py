"""How far the load of a message is: one row for each step, in the transaction of its rows."""

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any, Final

from sqlalchemy import and_, delete, or_, select, text
from sqlalchemy.ext.asyncio import AsyncConnection

from adapters.database.bulk.protocol import advisory_lock_key
from adapters.database.models.batches import process_checkpoints
from contracts.batches import DocumentEvent, LoadStep, message_key

_LOCK: Final = text(
    "SELECT pg_advisory_xact_lock(key) FROM"
    " (SELECT unnest(CAST(:keys AS bigint[])) AS key ORDER BY 1) AS ordered"
)


@dataclass(frozen=True, slots=True)
class Checkpoints:
    """The steps of a message that are done."""

    steps: frozenset[LoadStep]
    etag: str | None = None
    """Of the file that `dedupe` has read; None: not read, or by a release that did not store it."""


async def lock(connection: AsyncConnection, *events: DocumentEvent) -> None:
    """Let one transaction at a time write what concerns documents of a case.

    The transactions of SQLite that write take turns anyhow.
    """
    names = [f"document {event.case_id}/{event.document_id}" for event in events]
    await lock_names(connection, names)


async def lock_names(connection: AsyncConnection, names: Iterable[str]) -> None:
    """Take the locks of these names, in one order for all, until the transaction ends."""
    if connection.dialect.name == "postgresql":
        keys = sorted(map(advisory_lock_key, names))
        await connection.execute(_LOCK, {"keys": keys})


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
    rows = _rows(event, steps, etag)
    written = await connection.execute(
        insert(process_checkpoints)
        .values(rows)
        .on_conflict_do_nothing()
        .returning(process_checkpoints.c.step)
    )
    return bool(written.all())


async def write_all(
    connection: AsyncConnection,
    insert: Callable[..., Any],
    done: Iterable[tuple[DocumentEvent, str | None]],
) -> None:
    """Record all steps of messages as done, each with the etag of the file that was read."""
    rows = [row for event, etag in done for row in _rows(event, LoadStep, etag)]
    await connection.execute(insert(process_checkpoints).on_conflict_do_nothing(), rows)


def _rows(
    event: DocumentEvent, steps: Iterable[LoadStep], etag: str | None
) -> list[dict[str, Any]]:
    of_message: dict[str, Any] = {
        "case_id": event.case_id,
        "batch_id": event.batch_id,
        "document_id": event.document_id,
        "event_type": event.event_type,
        "message_key": message_key(event),
        "etag": etag,
        "done_at": datetime.now(UTC),
    }
    return [{**of_message, "step": step.value} for step in steps]


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
