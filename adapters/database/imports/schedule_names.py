"""Under which short names the schedules of a project are known, and which activities they hold."""

from collections.abc import Mapping, Sequence

from sqlalchemy import ColumnElement, and_, delete, exists, func, select, update
from sqlalchemy.ext.asyncio import AsyncConnection

from adapters.database.bulk.protocol import BulkEngine, Stamp
from adapters.database.codec import clean
from adapters.database.models.every import key_of
from adapters.database.models.schedules import (
    SCHEDULES,
    schedule_activities,
    schedule_aliases,
    schedule_projects,
    schedule_relationships,
)


async def names_of(connection: AsyncConnection, project_id: str) -> Mapping[str, str]:
    """Aliases and ids of the schedules of a project, to their ids."""
    projects, aliases = schedule_projects.c, schedule_aliases.c
    ids = await connection.scalars(
        select(projects.schedule_id).where(projects.project_id == project_id)
    )
    named = {id: id for id in ids}
    rows = await connection.execute(
        select(aliases.alias, aliases.schedule_id).where(aliases.project_id == project_id)
    )
    return named | {row.alias: row.schedule_id for row in rows}


async def holding(
    connection: AsyncConnection, bulk: BulkEngine, project_id: str, task_codes: Sequence[str]
) -> Mapping[str, int]:
    """How many of some task codes each schedule holds."""
    activities = schedule_activities.c
    rows = await connection.execute(
        select(activities.schedule_id, func.count())
        .where(
            activities.project_id == project_id,
            bulk.among(activities.task_code, [clean(code) for code in task_codes]),
        )
        .group_by(activities.schedule_id)
    )
    return {str(schedule): int(count) for schedule, count in rows}


async def remember(
    connection: AsyncConnection,
    bulk: BulkEngine,
    project_id: str,
    alias: str,
    schedule_id: str,
    stamp: Stamp,
) -> None:
    """Note a short name of a schedule; what was noted last counts."""
    id, name = clean(schedule_id), clean(alias)
    values = {"schedule_id": id, "source_task": stamp.task, "updated_at": stamp.now}
    own = {"project_id": project_id, "alias": name}
    await connection.execute(
        bulk.insert_statement(schedule_aliases)
        .values(**own, **values)
        .on_conflict_do_update(index_elements=[*own], set_=values)
    )
    if name != id:
        await _rename_ends(connection, project_id, name, id)


async def _rename_ends(
    connection: AsyncConnection, project_id: str, alias: str, schedule_id: str
) -> None:
    """Relationships that were read before the schedule at their other end was known name it now."""
    other = schedule_relationships.alias()
    for end in ("predecessor_project", "successor_project"):
        same = (
            other.c[name] == (schedule_id if name == end else schedule_relationships.c[name])
            for name in key_of(schedule_relationships)
        )
        await connection.execute(
            update(schedule_relationships)
            .where(
                schedule_relationships.c.project_id == project_id,
                schedule_relationships.c[end] == alias,
                ~exists().where(*same),
            )
            .values({end: schedule_id})
        )


async def remove_empty(
    connection: AsyncConnection, project_id: str, scope: ColumnElement[bool]
) -> Sequence[str]:
    """Remove all that is left of schedules without any activity; their ids.

    Args:
        connection: In a transaction.
        project_id: Of the message.
        scope: Bounds which rows of `schedule_projects` are looked at.
    """
    projects, activities = schedule_projects.c, schedule_activities.c
    is_empty = ~exists().where(
        activities.project_id == projects.project_id,
        activities.schedule_id == projects.schedule_id,
    )
    found = await connection.scalars(
        select(projects.schedule_id).where(projects.project_id == project_id, scope, is_empty)
    )
    ids = sorted(found)
    for table in (*SCHEDULES, schedule_aliases) if ids else ():
        own = and_(table.c.project_id == project_id, table.c.schedule_id.in_(ids))
        await connection.execute(delete(table).where(own))
    return ids
