"""Rows that runs of imports left open, and what they hold."""

from collections.abc import Sequence
from datetime import UTC, datetime
from typing import Any, Final

from sqlalchemy import and_, select, update
from sqlalchemy.ext.asyncio import AsyncConnection

from adapters.database.codec import clean, literals
from adapters.database.imports.progress import end_load, lock_existing
from adapters.database.models.imports import import_tasks
from adapters.ports import OpenRow
from contracts.imports import Counts, ImportState, key_in
from domain.imports.chunks import TaskKey

_OPEN: Final = (ImportState.RUNNING.value, ImportState.PARKED.value)


async def open_rows(
    connection: AsyncConnection, before: datetime, after: str, limit: int
) -> Sequence[OpenRow]:
    """Rows that are running or parked and have not changed since, by workflow id."""
    tasks = import_tasks
    rows = await connection.execute(
        select(tasks.c.workflow_id, tasks.c.updated_at)
        .where(
            # In the text of the statement: the index covers states that are not `completed`.
            tasks.c.state.in_(literals(_OPEN)),
            tasks.c.updated_at <= before,
            tasks.c.workflow_id > after,
        )
        .order_by(tasks.c.workflow_id)
        .limit(limit)
    )
    return [OpenRow(row.workflow_id, row.updated_at) for row in rows]


async def terminate(
    connection: AsyncConnection, workflow_id: str, reason: str, unchanged_since: datetime | None
) -> bool:
    """Close a row as terminated; mark, rejects, staged rows and guard are free."""
    project_id, task_id = key_in(workflow_id)
    key, tasks = TaskKey(project_id, task_id), import_tasks
    own = and_(tasks.c.project_id == project_id, tasks.c.task_id == task_id)
    query = select(tasks.c.state, tasks.c.updated_at).where(own).with_for_update()
    row = (await connection.execute(query)).one_or_none()
    if row is None or row.state not in _OPEN or unchanged_since not in (None, row.updated_at):
        return False
    now = datetime.now(UTC)
    load = await lock_existing(connection, key)
    counts: dict[str, Any] = {}
    if load is not None:
        counts = {
            **load.mark.counts.plus(load.retired or Counts()).model_dump(),
            "problem_count": load.mark.problem_count,
        }
        await end_load(connection, load)
    await connection.execute(
        update(tasks)
        .where(own)
        .values(
            state=ImportState.TERMINATED.value,
            reason=clean(reason),
            finished_at=now,
            updated_at=now,
            **counts,
        )
    )
    return True
