"""Loads of schedules take turns: two of one schedule at once would mix what both files hold."""

import json
from collections.abc import Mapping, Sequence

from sqlalchemy import and_, select
from sqlalchemy.ext.asyncio import AsyncConnection

from adapters.database.bulk.protocol import BulkEngine, Stamp, acquire_advisory_lock
from adapters.database.imports import progress as loads
from adapters.database.imports import schedule_names
from adapters.database.imports.progress import Load
from adapters.database.models.imports import import_progress, import_tasks
from adapters.database.models.schedules import schedule_projects
from adapters.ports import HeldBy, ScheduleClaim
from contracts.imports import DocumentType, ImportState
from domain.imports.chunks import LoadMark, TaskKey


class Held(Exception):
    """Rolls a transaction back that another task has to end before."""

    def __init__(self, by: HeldBy) -> None:
        super().__init__(by.task_id)
        self.by = by


async def begin(
    connection: AsyncConnection,
    bulk: BulkEngine,
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
    await _lock(connection, bulk, key.project_id)
    names = await schedule_names.names_of(connection, key.project_id)
    is_new = claim.schedule_id not in names.values()
    under_way = await _under_way(connection, key)
    for task_id, schedule_id in under_way.items():
        if is_new or schedule_id == claim.schedule_id:
            await loads.restart(connection, load, ())
            return HeldBy(task_id)
    if is_new and names != claim.known:
        return None
    if names.get(claim.short_name) != claim.schedule_id:
        await schedule_names.remember(
            connection, bulk, key.project_id, claim.short_name, claim.schedule_id, stamp
        )
    if is_same:
        return load.mark
    own = (*header, await _data_date(connection, key, claim.schedule_id))
    await loads.restart(connection, load, own)
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


async def refuse_beside(connection: AsyncConnection, bulk: BulkEngine, key: TaskKey) -> None:
    """Refuse work beside a load that is under way; none begins until the transaction ends.

    Raises:
        Held: There is one.
    """
    await _lock(connection, bulk, key.project_id)
    for task_id in await _under_way(connection, key):
        raise Held(HeldBy(task_id))


async def _lock(connection: AsyncConnection, bulk: BulkEngine, project_id: str) -> None:
    await acquire_advisory_lock(connection, bulk, f"schedules/{project_id}")


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
