"""Schedules in the database: loads that take turns, names, and what a file no longer holds."""

import json
from collections.abc import Iterable, Mapping, Sequence
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
from sqlalchemy.dialects.postgresql import insert
from sqlalchemy.ext.asyncio import AsyncConnection

from activities.imports import status_store
from activities.imports.ports import HeldBy, ScheduleClaim
from activities.imports.status_store import Load, drop_staged_rows
from adapters.database.bulk import engine as bulk
from adapters.database.bulk.engine import acquire_advisory_lock
from adapters.database.bulk.rows import RowBatch, Stamp
from adapters.database.models.every import key_of
from adapters.database.models.imports import (
    RETIRED,
    SCHEDULES,
    SCOPE,
    import_progress,
    import_tasks,
    schedule_activities,
    schedule_activity_codes,
    schedule_aliases,
    schedule_assignments,
    schedule_file_projects,
    schedule_projects,
    schedule_relationships,
    schedule_seen,
    schedule_udf_values,
    schedule_uploads,
)
from adapters.database.records import clean
from workflows.imports.messages import (
    BulkMessage,
    DocumentType,
    FilterValue,
    ScheduleClearLevelMessage,
    ScheduleDeleteAllMessage,
    ScheduleFillColumnMessage,
    ScheduleFillLevelMessage,
)
from workflows.imports.runs import Counts, ImportState, LoadMark, TaskKey
from workflows.imports.schedules import ScheduleProject
from workflows.shared.contracts import BlobRef


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
    connection: AsyncConnection, project_id: str, task_codes: Sequence[str]
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
        insert(schedule_aliases)
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


SCHEDULE_FILTERS: Final = frozenset({"schedule_id", "primavera_project_id"})
"""Filters that name a schedule: by its id, or by that or any short name it came under."""
_SEPARATOR: Final = "\x1f"
SEEN_TABLES: Final = frozenset({schedule_activities.name, *(table.name for table in RETIRED)})
"""Tables of which an open load remembers the keys it has held."""


async def remember_seen(connection: AsyncConnection, load: Load, batch: RowBatch) -> str:
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
    await drop_staged_rows(connection, load)
    return Counts(flagged=flagged.rowcount, deleted=deleted)


async def change_activities(
    connection: AsyncConnection, message: BulkMessage, now: datetime
) -> Counts:
    """Apply a bulk operation; `deleted` counts activities, not what went with them."""
    selected = _selected(message)
    match message:
        case ScheduleDeleteAllMessage():
            return await _delete_selected(connection, message, selected)
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


def _selected(message: BulkMessage) -> ColumnElement[bool]:
    """Ids and filters both hold; without either, every activity of the project."""
    columns = schedule_activities.c
    conditions: list[ColumnElement[bool]] = [columns.project_id == message.project_id]
    if message.activity_ids:
        conditions.append(bulk.among(columns.task_code, _cleaned(message.activity_ids)))
    for name, wanted in (message.filters or {}).items():
        values = wanted if isinstance(wanted, tuple) else (wanted,)
        if name in SCHEDULE_FILTERS:
            conditions.append(_of_schedule(message, name, columns.schedule_id))
        else:
            conditions.append(_one_of(columns[name], values))
    return and_(*conditions)


def _of_schedule(
    message: BulkMessage, name: str, schedule_id: ColumnElement[str]
) -> ColumnElement[bool]:
    """Whether a schedule has one of the ids, or short names, that a filter names."""
    wanted = (message.filters or {})[name]
    values = wanted if isinstance(wanted, tuple) else (wanted,)
    by_id = _one_of(schedule_id, values)
    if name == "schedule_id":
        return by_id
    aliases = schedule_aliases.c
    known = exists().where(
        aliases.project_id == message.project_id,
        aliases.schedule_id == schedule_id,
        _one_of(aliases.alias, values),
    )
    return or_(by_id, known)


def _cleaned(values: Iterable[str]) -> list[str]:
    return [clean(value) for value in values]


def _one_of(column: ColumnElement[Any], values: Sequence[FilterValue]) -> ColumnElement[bool]:
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
    message: BulkMessage,
    selected: ColumnElement[bool],
) -> Counts:
    """Delete activities with what hangs on them; a schedule that loses its last one goes whole."""
    scope = await _emptied(connection, message, selected)
    for table, condition in _children():
        hangs_on = exists().where(schedule_activities.c.project_id == table.c.project_id, condition)
        await connection.execute(delete(table).where(hangs_on.where(selected)))
    gone = await connection.execute(delete(schedule_activities).where(selected))
    await remove_empty(connection, message.project_id, scope)
    return Counts(deleted=gone.rowcount)


async def _emptied(
    connection: AsyncConnection,
    message: BulkMessage,
    selected: ColumnElement[bool],
) -> ColumnElement[bool]:
    """Which schedules go when they have no activity left: those that the message is about."""
    schedule_id = schedule_projects.c.schedule_id
    filters = message.filters or {}
    if not message.activity_ids and set(filters) <= SCHEDULE_FILTERS:
        whole = (_of_schedule(message, name, schedule_id) for name in filters)
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


class Held(Exception):
    """Rolls a transaction back that another task has to end before."""

    def __init__(self, by: HeldBy) -> None:
        super().__init__(by.task_id)
        self.by = by


async def begin_schedule_load(
    connection: AsyncConnection,
    key: TaskKey,
    load: Load,
    header: Sequence[str],
    claim: ScheduleClaim,
    stamp: Stamp,
) -> LoadMark | HeldBy | None:
    """Begin or continue a load, whose header ends with the id of its schedule.

    A new schedule waits for every other load of the project: what they bring in shows whether it
    is a new one. A load that has to wait begins from the start, so that no two wait for each other.

    The mark's header has one more part: the data date that the schedule had before the load.
    """
    is_same = load.mark.header[:-1] == tuple(header)
    if load.mark.finished and is_same:
        return load.mark
    await _lock(connection, key.project_id)
    names = await names_of(connection, key.project_id)
    is_new = claim.schedule_id not in names.values()
    under_way = await _under_way(connection, key)
    for task_id, schedule_id in under_way.items():
        if is_new or schedule_id == claim.schedule_id:
            await status_store.restart(connection, load, ())
            return HeldBy(task_id)
    if is_new and names != claim.known:
        return None
    if names.get(claim.short_name) != claim.schedule_id:
        await remember(connection, key.project_id, claim.short_name, claim.schedule_id, stamp)
    if is_same:
        return load.mark
    own = (*header, await _data_date(connection, key, claim.schedule_id))
    await status_store.restart(connection, load, own)
    return LoadMark(header=own)


async def _data_date(connection: AsyncConnection, key: TaskKey, schedule_id: str) -> str:
    """Data date of a schedule as another task has left it, ISO 8601; empty: there is none."""
    projects = schedule_projects.c
    date = await connection.scalar(
        select(projects.data_date).where(
            projects.project_id == key.project_id,
            projects.schedule_id == schedule_id,
            projects.source_task != key.task_id,
        )
    )
    return "" if date is None else date.isoformat()


async def refuse_beside(connection: AsyncConnection, key: TaskKey) -> None:
    """Refuse work beside a load that is under way; none begins until the transaction ends.

    Raises:
        Held: There is one.
    """
    await _lock(connection, key.project_id)
    for task_id in await _under_way(connection, key):
        raise Held(HeldBy(task_id))


async def _lock(connection: AsyncConnection, project_id: str) -> None:
    await acquire_advisory_lock(connection, f"schedules/{project_id}")


async def _under_way(connection: AsyncConnection, key: TaskKey) -> Mapping[str, str]:
    """Other tasks that load schedules of the project, to the ids of these.

    Those that wait for a person are not among them: their next attempt takes its turn again.
    """
    progress, tasks = import_progress.c, import_tasks.c
    same = and_(tasks.project_id == progress.project_id, tasks.task_id == progress.task_id)
    rows = await connection.execute(
        select(progress.task_id, progress.header)
        .join_from(import_progress, import_tasks, same)
        .where(
            progress.project_id == key.project_id,
            progress.task_id != key.task_id,
            progress.finished.is_(False),
            tasks.document_type == DocumentType.SCHEDULE_EXTRACTION.value,
            tasks.state == ImportState.RUNNING.value,
        )
        .order_by(progress.task_id)
    )
    headers = {row.task_id: json.loads(row.header) for row in rows}
    return {task_id: header[-2] for task_id, header in headers.items() if len(header) > 1}


def file_projects(key: TaskKey, source: BlobRef, projects: Sequence[ScheduleProject]) -> RowBatch:
    """Which projects and data dates a file holds."""
    columns = (
        *("project_id", "task_id", "primavera_project_id", "object_id", "name", "data_date"),
        *("planned_start", "finish", "activities", "source_name", "source_sha256"),
    )
    rows = [
        (
            *(key.project_id, key.task_id, clean(project.primavera_project_id)),
            *(clean(project.object_id), None if project.name is None else clean(project.name)),
            *(project.data_date, project.planned_start, project.finish, project.activities),
            *(source.name, source.sha256),
        )
        for project in projects
    ]
    return _batch(schedule_file_projects, columns, rows)


def upload(key: TaskKey, blob: BlobRef, original_filename: str | None) -> RowBatch:
    """A stored schedule file."""
    columns = ("project_id", "blob_name", "size", "sha256", "etag", "original_filename")
    name = None if original_filename is None else clean(original_filename)
    row = (key.project_id, blob.name, blob.size, blob.sha256, blob.etag, name)
    return _batch(schedule_uploads, columns, [row])


def _batch(table: Table, columns: tuple[str, ...], rows: Sequence[tuple[Any, ...]]) -> RowBatch:
    return RowBatch(table, columns, rows, [0] * len(rows), range(len(rows)))
