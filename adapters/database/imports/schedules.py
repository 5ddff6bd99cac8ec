"""Schedules after their rows are in: what the file no longer holds, and bulk operations."""

from collections.abc import Iterable, Sequence
from datetime import datetime
from typing import Any, Final

from sqlalchemy import (
    ColumnElement,
    Table,
    Text,
    and_,
    cast,
    delete,
    exists,
    false,
    func,
    literal,
    or_,
    select,
    true,
    update,
)
from sqlalchemy.ext.asyncio import AsyncConnection

from adapters.database.bulk.protocol import BulkEngine, RowBatch, Stamp
from adapters.database.codec import clean
from adapters.database.imports.progress import Load, forget_aside
from adapters.database.imports.schedule_names import remove_empty
from adapters.database.models.every import key_of
from adapters.database.models.schedules import (
    RETIRED,
    SCOPE,
    schedule_activities,
    schedule_activity_codes,
    schedule_aliases,
    schedule_assignments,
    schedule_projects,
    schedule_relationships,
    schedule_seen,
    schedule_udf_values,
)
from contracts.imports import (
    BulkMessage,
    Counts,
    FilterValue,
    ScheduleClearLevelMessage,
    ScheduleDeleteAllMessage,
    ScheduleFillColumnMessage,
    ScheduleFillLevelMessage,
)

SCHEDULE_FILTERS: Final = frozenset({"schedule_id", "primavera_project_id"})
"""Filters that name a schedule: by its id, or by that or any short name it came under."""
_SEPARATOR: Final = "\x1f"
SEEN_TABLES: Final = frozenset({schedule_activities.name, *(table.name for table in RETIRED)})
"""Tables of which an open load remembers the keys it has held."""


async def remember_seen(
    connection: AsyncConnection, bulk: BulkEngine, load: Load, batch: RowBatch
) -> str:
    """Note which keys the file holds, also of rows that it did not change; in which table."""
    name = batch.table.name
    keys = batch.keys(_own_key(batch.table))
    rows = [(load.id, name, _SEPARATOR.join(map(str, key))) for key in keys]
    await bulk.fill(connection, schedule_seen, ("load_id", "table_name", "key"), rows)
    return schedule_seen.name


def _own_key(table: Table) -> tuple[str, ...]:
    return tuple(name for name in key_of(table) if name not in SCOPE)


def _seen(table: Table, load: Load) -> ColumnElement[bool]:
    first, *others = (cast(table.c[name], Text) for name in _own_key(table))
    key = first
    for other in others:
        key = key.concat(literal(_SEPARATOR)).concat(other)
    return exists().where(
        schedule_seen.c.load_id == load.id,
        schedule_seen.c.table_name == table.name,
        schedule_seen.c.key == key,
    )


async def retire_unseen(
    connection: AsyncConnection,
    bulk: BulkEngine,
    load: Load,
    project_id: str,
    schedule_id: str,
    stamp: Stamp,
) -> Counts:
    """Flag the activities that the file did not hold, and delete what hung on them."""
    await bulk.expect_many(connection)
    activities = schedule_activities
    changed = {
        "version": activities.c.version + 1,
        "source_task": stamp.task,
        "updated_at": stamp.now,
    }

    def of_project(table: Table) -> ColumnElement[bool]:
        return and_(
            table.c.project_id == project_id,
            table.c.schedule_id == schedule_id,
        )

    flagged = await connection.execute(
        update(activities)
        .where(of_project(activities), activities.c.missing_since.is_(None))
        .where(~_seen(activities, load))
        .values(missing_since=stamp.now, **changed)
    )
    await connection.execute(
        update(activities)
        .where(of_project(activities), activities.c.missing_since.is_not(None))
        .where(_seen(activities, load))
        .values(missing_since=None, **changed)
    )
    deleted = 0
    for table in RETIRED:
        unseen = delete(table).where(of_project(table), ~_seen(table, load))
        deleted += (await connection.execute(unseen)).rowcount
    await forget_aside(connection, load)
    return Counts(flagged=flagged.rowcount, deleted=deleted)


async def change_activities(
    connection: AsyncConnection, bulk: BulkEngine, message: BulkMessage, now: datetime
) -> Counts:
    """Apply a bulk operation; `deleted` counts activities, not what went with them."""
    selected = _selected(bulk, message)
    match message:
        case ScheduleDeleteAllMessage():
            return await _delete_selected(connection, bulk, message, selected)
        case ScheduleFillLevelMessage(payload=payload):
            column, value = f"level_{payload.level}", clean(payload.value)
        case ScheduleClearLevelMessage(payload=payload):
            column, value = f"level_{payload.level}", None
        case ScheduleFillColumnMessage(payload=payload):
            column = payload.column
            value = None if payload.value is None else clean(payload.value)
        case _:
            raise TypeError(f"{type(message).__name__} is not a bulk operation")
    return await _set_column(connection, selected, column, value, Stamp(message.task_id, now))


def _selected(bulk: BulkEngine, message: BulkMessage) -> ColumnElement[bool]:
    """Ids and filters both hold; without either, every activity of the project."""
    columns = schedule_activities.c
    conditions: list[ColumnElement[bool]] = [columns.project_id == message.project_id]
    if message.activity_ids:
        conditions.append(bulk.among(columns.task_code, _cleaned(message.activity_ids)))
    for name, wanted in (message.filters or {}).items():
        values = wanted if isinstance(wanted, tuple) else (wanted,)
        if name in SCHEDULE_FILTERS:
            conditions.append(_of_schedule(bulk, message, name, columns.schedule_id))
        else:
            conditions.append(_one_of(bulk, columns[name], values))
    return and_(*conditions)


def _of_schedule(
    bulk: BulkEngine, message: BulkMessage, name: str, schedule_id: ColumnElement[str]
) -> ColumnElement[bool]:
    """Whether a schedule has one of the ids, or short names, that a filter names."""
    wanted = (message.filters or {})[name]
    values = wanted if isinstance(wanted, tuple) else (wanted,)
    by_id = _one_of(bulk, schedule_id, values)
    if name == "schedule_id":
        return by_id
    aliases = schedule_aliases.c
    known = exists().where(
        aliases.project_id == message.project_id,
        aliases.schedule_id == schedule_id,
        _one_of(bulk, aliases.alias, values),
    )
    return or_(by_id, known)


def _cleaned(values: Iterable[str]) -> list[str]:
    return [clean(value) for value in values]


def _one_of(
    bulk: BulkEngine, column: ColumnElement[Any], values: Sequence[FilterValue]
) -> ColumnElement[bool]:
    """Every column that can be filtered by is text; null stands for an empty one."""
    texts = [_as_text(value) for value in values if value is not None]
    choices: list[ColumnElement[bool]] = []
    if texts:
        choices.append(bulk.among(column, _cleaned(texts)))
    if None in values:
        choices.append(func.coalesce(column, "") == "")
    return or_(false(), *choices)


def _as_text(value: str | float) -> str:
    return str(value).lower() if isinstance(value, bool) else str(value)


async def _set_column(
    connection: AsyncConnection,
    selected: ColumnElement[bool],
    column: str,
    value: str | None,
    stamp: Stamp,
) -> Counts:
    activities = schedule_activities
    # Locks the rows, so that both counts are of the same ones.
    rows = select(activities.c.task_code).where(selected).with_for_update().subquery()
    total = await connection.scalar(select(func.count()).select_from(rows))
    changed = await connection.execute(
        update(activities)
        .where(selected, activities.c[column].is_distinct_from(value))
        .values(
            {
                column: value,
                "version": activities.c.version + 1,
                "source_task": stamp.task,
                "updated_at": stamp.now,
            }
        )
    )
    return Counts(updated=changed.rowcount, unchanged=(total or 0) - changed.rowcount)


async def _delete_selected(
    connection: AsyncConnection,
    bulk: BulkEngine,
    message: BulkMessage,
    selected: ColumnElement[bool],
) -> Counts:
    """Delete activities with what hangs on them; a schedule that loses its last one goes whole."""
    scope = await _emptied(connection, bulk, message, selected)
    for table, condition in _children():
        hangs_on = exists().where(schedule_activities.c.project_id == table.c.project_id, condition)
        await connection.execute(delete(table).where(hangs_on.where(selected)))
    gone = await connection.execute(delete(schedule_activities).where(selected))
    await remove_empty(connection, message.project_id, scope)
    return Counts(deleted=gone.rowcount)


async def _emptied(
    connection: AsyncConnection,
    bulk: BulkEngine,
    message: BulkMessage,
    selected: ColumnElement[bool],
) -> ColumnElement[bool]:
    """Which schedules go when they have no activity left: those that the message is about."""
    schedule_id = schedule_projects.c.schedule_id
    filters = message.filters or {}
    if not message.activity_ids and set(filters) <= SCHEDULE_FILTERS:
        whole = (_of_schedule(bulk, message, name, schedule_id) for name in filters)
        return and_(true(), *whole)
    touched = select(schedule_activities.c.schedule_id).where(selected).distinct()
    return schedule_id.in_(list(await connection.scalars(touched)))


def _children() -> list[tuple[Table, ColumnElement[bool]]]:
    """What hangs on an activity, with the condition that ties it to one."""
    activity = schedule_activities.c

    def end(project: ColumnElement[Any], code: ColumnElement[Any]) -> ColumnElement[bool]:
        """An end of a relationship names its project only when that is another one."""
        own = schedule_relationships.c.schedule_id
        named = func.coalesce(func.nullif(project, ""), own)
        return and_(activity.schedule_id == named, activity.task_code == code)

    relationship, udf = schedule_relationships.c, schedule_udf_values.c
    in_project = [
        (table, activity.schedule_id == table.c.schedule_id)
        for table in (schedule_assignments, schedule_activity_codes)
    ]
    return [
        (
            schedule_relationships,
            end(relationship.predecessor_project, relationship.predecessor_code),
        ),
        (schedule_relationships, end(relationship.successor_project, relationship.successor_code)),
        *(
            (table, and_(same, activity.task_code == table.c.task_code))
            for table, same in in_project
        ),
        (
            schedule_udf_values,
            and_(
                udf.entity == "activity",
                activity.schedule_id == udf.schedule_id,
                activity.task_code == udf.entity_code,
            ),
        ),
    ]
