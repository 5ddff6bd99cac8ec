"""Rows of jobs that ended long ago."""

from collections.abc import Sequence
from datetime import UTC, datetime
from typing import Final

from sqlalchemy import delete, exists, or_, select

from adapters.database.engine import Database
from adapters.database.models.jobs import jobs, tasks
from adapters.database.models.webhooks import (
    job_aliases,
    webhook_deliveries,
    webhook_hosts,
    webhook_messages,
    webhook_secrets,
)
from contracts.jobs import JobStatus

_ENDED: Final = tuple(
    status.value
    for status in (
        JobStatus.COMPLETED,
        JobStatus.FAILED,
        JobStatus.CANCELLED,
        JobStatus.TERMINATED,
    )
)
_OF_WEBHOOKS: Final = (webhook_secrets, webhook_messages, webhook_deliveries)


class SqlJobLeftovers:
    """Finds and removes them; every method raises `Unavailable` without the database."""

    def __init__(self, database: Database) -> None:
        self._database = database

    async def expired(self, before: datetime, limit: int) -> Sequence[str]:
        """Jobs that ended and have not changed since, and of which more than a record is left."""
        has_tasks = exists().where(tasks.c.parent_job_id == jobs.c.job_id)
        query = (
            select(jobs.c.job_id)
            .where(
                jobs.c.status.in_(_ENDED),
                jobs.c.updated_at < before,
                or_(has_tasks, jobs.c.status != JobStatus.COMPLETED.value),
            )
            .order_by(jobs.c.updated_at, jobs.c.job_id)
            .limit(limit)
        )
        async with self._database.reading() as connection:
            return list((await connection.execute(query)).scalars())

    async def remove(self, job_id: str, *, keep_record: bool) -> None:
        """Remove tasks, webhooks and aliases of a job, and its record unless that is kept."""
        async with self._database.transaction() as connection:
            for table in _OF_WEBHOOKS:
                await connection.execute(delete(table).where(table.c.job_id == job_id))
            await connection.execute(delete(tasks).where(tasks.c.parent_job_id == job_id))
            if not keep_record:
                await connection.execute(delete(job_aliases).where(job_aliases.c.job_id == job_id))
                await connection.execute(delete(jobs).where(jobs.c.job_id == job_id))

    async def remove_webhooks(self, before: datetime) -> None:
        """Remove secrets of jobs without a record, and hosts that nothing was sent to since."""
        has_job = exists().where(jobs.c.job_id == webhook_secrets.c.job_id)
        hosts = webhook_hosts.c
        async with self._database.transaction() as connection:
            await connection.execute(
                delete(webhook_secrets).where(webhook_secrets.c.created_at < before, ~has_job)
            )
            await connection.execute(
                delete(webhook_hosts).where(
                    hosts.updated_at < before,
                    or_(hosts.open_until.is_(None), hosts.open_until < datetime.now(UTC)),
                )
            )
