"""Loads of schedules take turns: two of one schedule at once would mix what both files hold."""

import json
from collections.abc import Mapping, Sequence

from sqlalchemy import and_, select
from sqlalchemy.ext.asyncio import AsyncConnection

from adapters.database.bulk.protocol import BulkWriter, Stamp, acquire_advisory_lock
from adapters.database.imports import progress as loads
from adapters.database.imports import schedule_names
from adapters.database.imports.progress import Load
from adapters.database.models.imports import import_progress, import_tasks
from adapters.ports import HeldBy, ScheduleClaim
from contracts.imports import DocumentType, ImportState
from domain.imports.chunks import LoadMark, TaskKey


async def begin(
    connection: AsyncConnection,
    writer: BulkWriter,
    key: TaskKey,
    load: Load,
    header: Sequence[str],
    claim: ScheduleClaim,
    stamp: Stamp,
) -> LoadMark | HeldBy | None:
    """Begin or continue a load, whose header ends with the id of its schedule.

    A new schedule waits for every other load of the project: what they bring in shows whether it
    is a new one. A load that has to wait begins from the start, so that no two wait for each other.
    """
    if load.mark.finished and list(load.mark.header) == list(header):
        return load.mark
    await _lock(connection, writer, key.project_id)
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
            connection, writer, key.project_id, claim.short_name, claim.schedule_id, stamp
        )
    if list(load.mark.header) == list(header):
        return load.mark
    await loads.restart(connection, load, header)
    return LoadMark(header=tuple(header))


async def holder(connection: AsyncConnection, writer: BulkWriter, key: TaskKey) -> HeldBy | None:
    """A load that is under way; none begins until the transaction ends."""
    await _lock(connection, writer, key.project_id)
    under_way = await _under_way(connection, key)
    return next(map(HeldBy, under_way), None)


async def _lock(connection: AsyncConnection, writer: BulkWriter, project_id: str) -> None:
    await acquire_advisory_lock(connection, writer, f"schedules/{project_id}")


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
    return {task_id: header[-1] for task_id, header in headers.items() if header}
