"""Tags of documents: the same tag in other cases or spaces is the same tag."""

import unicodedata
from collections.abc import Callable, Sequence
from typing import Any

from sqlalchemy import and_, delete, select
from sqlalchemy.ext.asyncio import AsyncConnection

from adapters.database.batches.keys import key_text
from adapters.database.codec import clean
from adapters.database.models.batches import document_tags, tag_dedupe
from contracts.batches import DocumentEvent


async def save(
    connection: AsyncConnection,
    insert: Callable[..., Any],
    event: DocumentEvent,
    tags: Sequence[str],
) -> None:
    """Give a document these tags and no others.

    Args:
        connection: Of the transaction.
        insert: Of the dialect.
        event: A message of the document.
        tags: As they came; the first spelling of a tag in its batch is written for all.
    """
    own = and_(
        document_tags.c.case_id == event.case_id,
        document_tags.c.document_id == event.document_id,
    )
    await connection.execute(delete(document_tags).where(own))
    await add(connection, insert, [(event, tags)])


async def add(
    connection: AsyncConnection,
    insert: Callable[..., Any],
    tagged: Sequence[tuple[DocumentEvent, Sequence[str]]],
) -> None:
    """Give documents of one batch their tags; those that they have stay."""
    keys = {
        event.document_id: {_key(tag): clean(tag) for tag in reversed(tags)}
        for event, tags in tagged
    }
    spelled: dict[str, str] = {}
    for tags in keys.values():
        spelled = {**tags, **spelled}
    if not spelled:
        return
    first = tagged[0][0]
    batch = {"case_id": first.case_id, "batch_id": first.batch_id}
    await connection.execute(
        insert(tag_dedupe).on_conflict_do_nothing(),
        # In one order for all, so that no two writers wait for each other.
        [{**batch, "tag_key": key, "tag": tag} for key, tag in sorted(spelled.items())],
    )
    query = select(tag_dedupe.c.tag_key, tag_dedupe.c.tag).where(
        tag_dedupe.c.case_id == first.case_id,
        tag_dedupe.c.batch_id == first.batch_id,
        tag_dedupe.c.tag_key.in_(spelled),
    )
    known = {key: tag for key, tag in await connection.execute(query)}
    await connection.execute(
        insert(document_tags).on_conflict_do_nothing(),
        [
            {"case_id": first.case_id, "document_id": id, "tag_key": key, "tag": known[key]}
            for id, tags in sorted(keys.items())
            for key in sorted(tags)
        ],
    )


def _key(tag: str) -> str:
    return key_text(" ".join(unicodedata.normalize("NFKC", tag).casefold().split()))
