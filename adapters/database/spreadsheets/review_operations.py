"""Operations of reviews as they are stored: proposed first, applied by the run."""

import json
from collections.abc import Sequence
from datetime import datetime
from typing import Any

from sqlalchemy import delete, insert, select
from sqlalchemy.ext.asyncio import AsyncConnection

from adapters.database.codec import clean
from adapters.database.models.spreadsheet_reviews import spreadsheet_review_operations
from adapters.database.spreadsheets.locked_import import LockedImport
from contracts.spreadsheets.reviews import (
    OPERATION,
    ROWS,
    Exclude,
    ReviewEffect,
    ReviewExample,
    ReviewOperation,
)
from domain.spreadsheets.review import StoredOperation
from domain.spreadsheets.skipped_rows import DOCFLOW


async def propose(
    connection: AsyncConnection, opened: LockedImport, operation: ReviewOperation, key: str | None
) -> int | None:
    """Store an operation; its id, or that of the one with this key. None: that is another one."""
    table = spreadsheet_review_operations
    body, by = clean_body(operation), clean(operation.by)
    if key is not None:
        query = select(table).where(table.c.import_id == opened.id, table.c.key == key)
        known = (await connection.execute(query)).one_or_none()
        if known is not None:
            return known.id if (known.body, known.by) == (body, by) else None
    new = insert(table).values(import_id=opened.id, body=body, by=by, at=operation.at, key=key)
    return (await connection.execute(new.returning(table.c.id))).scalar_one()


async def purge_proposals(connection: AsyncConnection, before: datetime, limit: int) -> int:
    """Remove operations that were proposed before, and never applied; how many."""
    table = spreadsheet_review_operations
    due = select(table.c.id).where(table.c.version.is_(None), table.c.at < before).limit(limit)
    ids = list((await connection.execute(due)).scalars())
    if ids:
        # One that was applied meanwhile has a version, and stays.
        gone = delete(table).where(table.c.id.in_(ids), table.c.version.is_(None))
        await connection.execute(gone)
    return len(ids)


def clean_body(operation: ReviewOperation) -> str:
    """The body of an operation as it is stored."""
    # Characters that PostgreSQL refuses are escaped in JSON: they are cleaned before.
    text = json.dumps(operation.operation.model_dump(mode="json"), ensure_ascii=False)
    return clean(text.replace("\\u0000", "\ufffd"))


def stored(row: Any, undone_by: int | None = None) -> StoredOperation:
    """An operation from its row."""
    effect = ReviewEffect.model_validate_json(row.effect or "{}")
    examples = [ReviewExample.model_validate(each) for each in json.loads(row.examples or "[]")]
    return StoredOperation(operation_of(row), effect, examples, undone_by)


def operation_of(row: Any) -> ReviewOperation:
    """What was requested, from its row."""
    return ReviewOperation(
        id=row.id,
        version=row.version or 0,
        operation=OPERATION.validate_json(row.body),
        by=row.by,
        at=row.at,
    )


def outcome(effect: ReviewEffect, examples: Sequence[ReviewExample]) -> dict[str, str]:
    """What an operation changes, as its row has it."""
    shown = json.dumps([each.model_dump() for each in examples], ensure_ascii=False)
    return {"effect": effect.model_dump_json(), "examples": clean(shown)}


def skipping(preview: str | None, at: datetime) -> list[ReviewOperation]:
    """The rows that docflow skips as operations before all others, by reason."""
    by_reason: dict[str, list[int]] = {}
    for line, reason, is_skipped, _ in json.loads(preview or "{}").get("skipped", ()):
        if is_skipped:
            by_reason.setdefault(reason, []).append(line)
    return [
        ReviewOperation(
            id=0,
            version=0,
            operation=Exclude(rows=tuple(lines[i : i + ROWS]), reason=reason),
            by=DOCFLOW,
            at=at,
        )
        for reason, lines in by_reason.items()
        for i in range(0, len(lines), ROWS)
    ]
