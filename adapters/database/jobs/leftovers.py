"""Rows that runs of jobs left open."""

from collections.abc import Sequence
from datetime import UTC, datetime
from typing import Any, Final

from sqlalchemy import ColumnElement, Update, and_, literal, select, update
from sqlalchemy.ext.asyncio import AsyncConnection

from adapters.database.codec import clean
from adapters.database.models.jobs import jobs, tasks
from adapters.ports import OpenRow
from contracts.jobs import JobStatus, TaskStatus, job_workflow_id

_OPEN: Final = tuple(
    status.value for status in (JobStatus.QUEUED, JobStatus.PROCESSING, JobStatus.PARKED)
)
_OPEN_TASKS: Final = (TaskStatus.QUEUED.value, TaskStatus.PROCESSING.value)


def cancelled_tasks(condition: ColumnElement[bool], now: datetime) -> Update:
    """Shows open tasks as cancelled."""
    return (
        update(tasks)
        .where(condition, tasks.c.status.in_(_OPEN_TASKS))
        .values(status=TaskStatus.CANCELLED.value, updated_at=now)
    )


async def open_rows(
    connection: AsyncConnection, before: datetime, after: str, limit: int
) -> Sequence[OpenRow]:
    """Jobs that have not ended and have not changed since, by workflow id."""
    id: ColumnElement[Any] = literal(job_workflow_id("")) + jobs.c.job_id
    rows = await connection.execute(
        select(id.label("id"), jobs.c.updated_at)
        .where(jobs.c.status.in_(_OPEN), jobs.c.updated_at <= before, id > after)
        .order_by(id)
        .limit(limit)
    )
    return [OpenRow(row.id, row.updated_at) for row in rows]


async def terminate(
    connection: AsyncConnection, workflow_id: str, reason: str, unchanged_since: datetime | None
) -> bool:
    """Close a job as terminated, and its open tasks as cancelled."""
    job_id = workflow_id.rpartition("/")[2]
    own = jobs.c.job_id == job_id
    query = select(jobs.c.status, jobs.c.updated_at, jobs.c.attempt).where(own).with_for_update()
    row = (await connection.execute(query)).one_or_none()
    if row is None or row.status not in _OPEN or unchanged_since not in (None, row.updated_at):
        return False
    now = datetime.now(UTC)
    status = JobStatus.TERMINATED.value
    await connection.execute(
        update(jobs)
        .where(own)
        .values(status=status, error_details=clean(reason)[:1_500], updated_at=now)
    )
    tasks_of_it = and_(tasks.c.parent_job_id == job_id, tasks.c.attempt == row.attempt)
    await connection.execute(cancelled_tasks(tasks_of_it, now))
    return True
