"""Corrections of whole columns, remembered for the next file of the organisation."""

import hashlib
import json
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from sqlalchemy import ColumnElement, delete, select
from sqlalchemy.ext.asyncio import AsyncConnection

from adapters.database.bulk.protocol import BulkEngine
from adapters.database.codec import clean
from adapters.database.models.spreadsheet_reviews import remembered_edits
from adapters.database.spreadsheets.locked_import import LockedImport
from adapters.database.spreadsheets.records import LearntEdit, Page
from adapters.database.spreadsheets.statuses import count, paged
from contracts.spreadsheets.reviews import OPERATION, ReviewOperation
from domain.spreadsheets.match_keys import header_key
from domain.spreadsheets.operations import about_columns, with_columns
from domain.spreadsheets.review import RememberedEdit


async def learn(
    connection: AsyncConnection,
    bulk: BulkEngine,
    opened: LockedImport,
    headers: Mapping[int, str],
    edits: Sequence[ReviewOperation],
) -> None:
    """Remember the operations that are about columns of the file and nothing else.

    One that is about no column, as a constant for a field without one, is true of files with the
    same headers at most, and is remembered for those.
    """
    rows: dict[str, dict[str, Any]] = {}
    shape = _shape(headers.values())
    for position, each in enumerate(edits):
        columns = about_columns(each.operation)
        if columns is None or not all(headers.get(id, "").strip() for id in columns):
            continue
        named = {str(id): headers[id] for id in columns}
        kind = [each.operation.kind, *(header_key(header) for header in named.values())]
        field = getattr(each.operation, "field", None) or getattr(each.operation, "find", None)
        own = [] if columns else [shape]
        about = hashlib.sha256(json.dumps([*kind, field, *own]).encode()).hexdigest()
        rows[about] = {
            "organisation_id": opened.row.organisation_id,
            "import_type": opened.row.import_type,
            "about": about,
            "position": position,
            "body": clean(each.operation.model_dump_json()),
            "headers": clean(json.dumps(named, ensure_ascii=False)),
            "shape": None if columns else clean(json.dumps(shape, ensure_ascii=False)),
            "decided_at": each.at,
            "decided_by": clean(each.by),
        }
    if not rows:
        return
    insert = bulk.insert_statement(remembered_edits)
    changed = ("position", "body", "headers", "shape", "decided_at", "decided_by")
    await connection.execute(
        insert.on_conflict_do_update(
            index_elements=["organisation_id", "import_type", "about"],
            set_={name: getattr(insert.excluded, name) for name in changed},
        ),
        list(rows.values()),
    )


async def find(
    connection: AsyncConnection,
    organisation_id: int,
    import_type: str,
    headers: Sequence[tuple[int, str]],
) -> Sequence[RememberedEdit]:
    """What was done to columns of these headers before, or to files of all of these headers; in the
    order it was done."""
    memory = remembered_edits
    rows = await connection.execute(
        select(memory)
        .where(memory.c.organisation_id == organisation_id, memory.c.import_type == import_type)
        .order_by(memory.c.decided_at, memory.c.position)
    )
    ids = {header_key(header): id for id, header in reversed(headers)}
    shape = _shape([header for _, header in headers])
    found: list[RememberedEdit] = []
    for row in rows:
        named: dict[str, str] = json.loads(row.headers)
        places = {int(id): ids.get(header_key(header)) for id, header in named.items()}
        here = {before: now for before, now in places.items() if now is not None}
        if len(here) < len(places) or (row.shape is not None and json.loads(row.shape) != shape):
            continue
        operation = with_columns(OPERATION.validate_json(row.body), here)
        known = ReviewOperation(
            id=0, version=0, operation=operation, by=row.decided_by, at=row.decided_at
        )
        found.append(
            RememberedEdit(
                known,
                list(named.values()),
                row.decided_by,
                row.decided_at,
                is_of_file=row.shape is not None,
            )
        )
    return found


async def learnt(
    connection: AsyncConnection,
    organisations: Sequence[int],
    import_type: str | None,
    page: int,
    size: int,
) -> Page[LearntEdit]:
    """What is remembered of whole columns, the newest first."""
    memory = remembered_edits
    wanted: list[ColumnElement[bool]] = [memory.c.organisation_id.in_(sorted(organisations))]
    if import_type is not None:
        wanted.append(memory.c.import_type == import_type)
    order = (memory.c.decided_at.desc(), memory.c.position, memory.c.about)
    query = select(memory).where(*wanted).order_by(*order)
    total = (await connection.execute(count(memory, *wanted))).scalar_one()
    rows = (await connection.execute(paged(query, page, size))).all()
    return Page([_learnt(row) for row in rows], total)


async def forget(
    connection: AsyncConnection, organisation_id: int, import_type: str, about: str
) -> None:
    """No longer suggest one of them; nothing happens where there is none."""
    memory = remembered_edits
    await connection.execute(
        delete(memory).where(
            memory.c.organisation_id == organisation_id,
            memory.c.import_type == import_type,
            memory.c.about == about,
        )
    )


def _learnt(row: Any) -> LearntEdit:
    headers: dict[str, str] = json.loads(row.headers)
    return LearntEdit(
        row.organisation_id,
        row.import_type,
        row.about,
        {int(id): header for id, header in headers.items()},
        OPERATION.validate_json(row.body),
        row.decided_by,
        row.decided_at,
        json.loads(row.shape or "[]"),
    )


def _shape(headers: Iterable[str]) -> list[str]:
    """The headers of a file, whatever their order, case and punctuation."""
    return sorted(header_key(header) for header in headers if header.strip())
