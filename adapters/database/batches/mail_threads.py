"""Mails that answer each other, found by their message ids."""

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from sqlalchemy import and_, delete, select
from sqlalchemy.ext.asyncio import AsyncConnection

from adapters.database.batches.checkpoints import lock_names
from adapters.database.batches.keys import key_text
from adapters.database.models.batches import document_messages
from contracts.batches import DocumentEvent, RelationKind


async def save(
    connection: AsyncConnection,
    insert: Callable[..., Any],
    event: DocumentEvent,
    thread: Sequence[str],
) -> None:
    """Keep a mail's own message id, and those that it answers.

    Args:
        connection: Of the transaction.
        insert: Of the dialect.
        event: The mail.
        thread: Its own message id, then the others; empty for what is not a mail.
    """
    mine = and_(
        document_messages.c.case_id == event.case_id,
        document_messages.c.document_id == event.document_id,
    )
    await connection.execute(delete(document_messages).where(mine))
    await add(connection, insert, event.case_id, {event.document_id: thread})


async def add(
    connection: AsyncConnection,
    insert: Callable[..., Any],
    case_id: int,
    threads: Mapping[str, Sequence[str]],
) -> None:
    """Keep the message ids of mails of a case that have none yet, by document."""
    rows = [
        {"case_id": case_id, "document_id": id, "message_key": key, "own": place == 0}
        for id, thread in sorted(threads.items())
        for place, key in enumerate(dict.fromkeys(map(key_text, thread)))
    ]
    if not rows:
        return
    # Two mails that answer each other and are written at the same moment would not see each other.
    await lock_names(connection, {f"mail {case_id}/{row['message_key']}" for row in rows})
    await connection.execute(insert(document_messages), rows)


async def relations(
    connection: AsyncConnection, case_id: int, document_ids: Sequence[str]
) -> list[tuple[str, str, str]]:
    """Who answers whom, as far as these documents are part of it: document, related, kind.

    Whichever of two mails comes last finds the other.
    """
    if not document_ids:
        return []
    ours, theirs = document_messages.alias("ours"), document_messages.alias("theirs")
    query = (
        select(ours.c.document_id, ours.c.own, theirs.c.document_id)
        .join(
            theirs,
            and_(
                theirs.c.case_id == ours.c.case_id,
                theirs.c.message_key == ours.c.message_key,
                theirs.c.document_id != ours.c.document_id,
                theirs.c.own != ours.c.own,
            ),
        )
        .where(ours.c.case_id == case_id, ours.c.document_id.in_(document_ids))
    )
    reply = RelationKind.REPLY.value
    return [
        (other, mine, reply) if own else (mine, other, reply)
        for mine, own, other in await connection.execute(query)
    ]
