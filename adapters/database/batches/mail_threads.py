"""Mails that answer each other, found by their message ids."""

from collections.abc import Callable, Sequence
from typing import Any

from sqlalchemy import and_, delete, select
from sqlalchemy.ext.asyncio import AsyncConnection

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
    for place, key in enumerate(dict.fromkeys(map(key_text, thread))):
        await connection.execute(
            insert(document_messages).values(
                case_id=event.case_id,
                document_id=event.document_id,
                message_key=key,
                own=place == 0,
            )
        )


async def relations(
    connection: AsyncConnection, event: DocumentEvent
) -> list[tuple[str, str, str]]:
    """Who answers whom, as far as this document is part of it: document, related, kind.

    Whichever of two mails comes last finds the other.
    """
    ours, theirs = document_messages.alias("ours"), document_messages.alias("theirs")
    query = (
        select(ours.c.own, theirs.c.document_id)
        .join(
            theirs,
            and_(
                theirs.c.case_id == ours.c.case_id,
                theirs.c.message_key == ours.c.message_key,
                theirs.c.document_id != ours.c.document_id,
                theirs.c.own != ours.c.own,
            ),
        )
        .where(ours.c.case_id == event.case_id, ours.c.document_id == event.document_id)
    )
    reply = RelationKind.REPLY.value
    return [
        (other, event.document_id, reply) if own else (event.document_id, other, reply)
        for own, other in await connection.execute(query)
    ]
