"""Records of jobs and tasks: a projection that people read, and that decides nothing."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Protocol

from contracts.jobs import JobRecord, JobStatus, TaskRecord, TaskStatus


@dataclass(frozen=True, slots=True)
class TaskPage:
    """Some of the tasks of a job."""

    tasks: Sequence[TaskRecord]
    next: str | None = None
    """Token of the page after it."""


class JobStore(Protocol):
    """Tables `jobs` and `tasks` (schema `app` on PostgreSQL).

    Writes are upserts, so that each may be repeated. Every method raises `Unavailable` when the
    database does not answer.
    """

    async def put_job(self, record: JobRecord) -> None:
        """Insert or replace the record of a job; an older attempt never replaces a newer one."""
        ...

    async def put_tasks(self, tasks: Sequence[TaskRecord], /) -> None:
        """Insert or replace records of tasks; key: (job, attempt, stage, ordinal)."""
        ...

    async def cancel_tasks(self, job_id: str, attempt: int, stage: int | None = None) -> None:
        """Show tasks that have not ended as cancelled; those of a stage, or of all."""
        ...

    async def job(self, job_id: str) -> JobRecord | None:
        """One job; None: there is none."""
        ...

    async def find(self, prefix_or_alias: str) -> Sequence[JobRecord]:
        """Jobs whose id begins so (8 hex digits and more), or whose alias it is; at most 10."""
        ...

    async def jobs(
        self,
        *,
        limit: int,
        status: JobStatus | None = None,
        job_type: str | None = None,
        project: str | None = None,
        before: datetime | None = None,
        behind: str | None = None,
    ) -> Sequence[JobRecord]:
        """Jobs, the newest change first.

        Args:
            limit: At most so many.
            status: Only those in it.
            job_type: Only those of this type.
            project: Only those of this project.
            before: Only those that changed earlier, UTC.
            behind: Id of the last job of a page, which changed at `before`: those of that very
                moment that come behind it as well.
        """
        ...

    async def tasks(
        self,
        job_id: str,
        *,
        attempt: int | None = None,
        stage: int | None = None,
        status: TaskStatus | None = None,
        limit: int = 100,
        token: str | None = None,
    ) -> TaskPage:
        """Tasks of a job's attempt, by stage and ordinal; None: the newest and what it kept.

        Raises:
            RuleViolation: The token is not one that this method has given.
        """
        ...

    async def counts(self, job_id: str, attempt: int) -> Mapping[int, Mapping[TaskStatus, int]]:
        """Stage to how many of its tasks are in which state, at an attempt and as it kept them."""
        ...


@dataclass(frozen=True, slots=True)
class JobAlias:
    """The id that a foreign system gave to a job."""

    alias: str
    digest: str
    """Of the message that brought it, without secrets."""
    job_id: str


class JobAliases(Protocol):
    """Aliases of jobs; every method raises `Unavailable` when the database does not answer."""

    async def get(self, alias: str) -> JobAlias | None:
        """What is kept of a foreign id; None: nothing."""
        ...

    async def claim(self, alias: JobAlias) -> JobAlias:
        """Keep an alias, unless it is taken; what is kept."""
        ...

    async def move(self, alias: JobAlias) -> None:
        """Let an alias name another job: the one that it named was never started."""
        ...

    async def release(self, alias: JobAlias) -> None:
        """Forget an alias whose job will never be started; one that has changed stays."""
        ...


class JobLeftovers(Protocol):
    """Rows of jobs that ended long ago; every method raises `Unavailable` without the database."""

    async def expired(self, before: datetime, limit: int) -> Sequence[str]:
        """Ids of jobs that ended before and of which more than a record is left, oldest first."""
        ...

    async def remove(self, job_id: str, *, keep_record: bool) -> None:
        """Remove tasks and webhooks of a job; its record and aliases too unless they are kept."""
        ...

    async def remove_webhooks(self, before: datetime) -> None:
        """Remove secrets that belong to no job, and the state of hosts nothing was sent to."""
        ...
