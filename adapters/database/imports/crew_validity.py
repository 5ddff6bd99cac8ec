"""Assignments of crew members as they are stored; the rule is in `domain.imports`."""

from collections.abc import Mapping
from datetime import date
from typing import Any, Final

from sqlalchemy import and_, exists, or_, select, update
from sqlalchemy.ext.asyncio import AsyncConnection

from adapters.database.bulk.protocol import BulkEngine, RowBatch, Stamp
from adapters.database.models.every import STAGED
from adapters.database.models.tables import crew_members
from domain.imports.crew_assignments import Assignments, Term, end_before_next

_PERSON: Final = ("project_id", "employee_no")


async def stored_assignments(
    connection: AsyncConnection, bulk: BulkEngine, batch: RowBatch
) -> Assignments:
    """Read the assignments of the batch's employees."""
    people = sorted(set(batch.keys(_PERSON)))
    sent = bulk.keys(crew_members, _PERSON, people)
    members = crew_members.c
    query = (
        select(members.project_id, members.employee_no, members.valid_from, members.valid_to)
        .select_from(crew_members, sent.source)
        .where(*(members[name] == sent.columns[name] for name in _PERSON))
    )
    rows = await connection.execute(query, sent.parameters)
    return Assignments({(row[0], row[1], row[2]): row[3] for row in rows})


def without_overlaps(batch: RowBatch, stored: Assignments) -> tuple[RowBatch, dict[Term, date]]:
    """End each assignment before the next.

    Returns:
        The batch with the last days it may have, and the new last days of stored rows that
        are not in the batch.
    """
    keys: list[Term] = batch.keys()
    if "valid_to" in batch.columns:
        ends: list[date | None] = batch.column("valid_to")
    else:
        ends = [stored.ends.get(key) for key in keys]
    bounded, closed = end_before_next(keys, ends, stored)
    return batch.with_column("valid_to", bounded), closed


async def close_assignments(
    connection: AsyncConnection, closed: Mapping[Term, date], stamp: Stamp
) -> int:
    """Write the new last days of stored assignments; how many."""
    for (project, person, start), last in closed.items():
        await connection.execute(
            update(crew_members)
            .where(
                crew_members.c.project_id == project,
                crew_members.c.employee_no == person,
                crew_members.c.valid_from == start,
            )
            .values(valid_to=last, **_changed(stamp))
        )
    return len(closed)


async def close_absent(
    connection: AsyncConnection,
    load_id: int,
    scope: Mapping[str, Any],
    as_of: date,
    stamp: Stamp,
) -> int:
    """End the assignments that the staged file does not hold; how many.

    Those that a later assignment of the file ends are left to it. One that was to begin after
    `as_of` ends before it begins, which means that it never was.
    """
    members, staged = crew_members, STAGED[crew_members.name]
    person = and_(
        staged.c.load_id == load_id, *(staged.c[name] == members.c[name] for name in _PERSON)
    )
    held = exists().where(person, staged.c.valid_from >= members.c.valid_from)
    result = await connection.execute(
        update(members)
        .where(
            *(members.c[name] == value for name, value in scope.items()),
            or_(members.c.valid_to.is_(None), members.c.valid_to > as_of),
            or_(members.c.valid_to.is_(None), members.c.valid_to >= members.c.valid_from),
            ~held,
        )
        .values(valid_to=as_of, **_changed(stamp))
    )
    return result.rowcount


def _changed(stamp: Stamp) -> dict[str, Any]:
    return {
        "version": crew_members.c.version + 1,
        "source_task": stamp.task,
        "updated_at": stamp.now,
    }
