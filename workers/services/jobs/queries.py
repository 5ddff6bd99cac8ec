"""What people and programs ask about jobs."""

import hashlib
from collections.abc import AsyncGenerator, Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

from temporalio.client import WorkflowExecutionDescription
from temporalio.service import RPCError, RPCStatusCode

from activities.jobs.api import JobType
from adapters.ports.jobs import JobStore, TaskPage
from adapters.ports.webhooks import WebhookDelivery, WebhookLog
from contracts.jobs import JobRecord, JobStatus, JobView, TaskStatus, job_workflow_id
from domain.errors import RuleViolation
from workers.services.cursors import Cursor
from workers.services.errors import NotFound, Refused, TemporalUnavailable
from workers.services.identity import Identity, require_operator
from workers.services.jobs.documents import ENDED, JobDocument, from_run, from_table
from workers.services.progress_stream import watched
from workers.services.runs import TemporalRuns, temporal_errors
from workflows import attributes

PAGE: Final = 50
LARGEST_PAGE: Final = 500
STATUS: Final = "status"
"""The query of a run."""
_FULL: Final = 64


@dataclass(frozen=True, slots=True)
class JobPage:
    """Some of the jobs, the newest change first."""

    jobs: Sequence[JobRecord]
    next: Cursor | None = None
    """Jobs of the next page are behind it; None: there is none."""


@dataclass(frozen=True, slots=True)
class Revision:
    """A job as it is at a moment."""

    id: str
    """The same for the same content."""
    job: JobDocument


class JobQueries:
    """Reads jobs. Each method is given who asks: operators alone see jobs.

    Args:
        store: Records of jobs.
        log: Of webhooks.
        runs: Of Temporal, which know what the table does not know yet.
        types: The job types that are installed.
    """

    def __init__(
        self,
        store: JobStore,
        log: WebhookLog,
        runs: TemporalRuns,
        types: Mapping[str, JobType[Any]],
    ) -> None:
        self.types = types
        self._store = store
        self._log = log
        self._runs = runs

    async def list(
        self,
        who: Identity,
        *,
        status: JobStatus | None = None,
        job_type: str | None = None,
        project: str | None = None,
        before: Cursor | None = None,
        limit: int = PAGE,
    ) -> JobPage:
        """Jobs, the newest change first."""
        require_operator(who, "jobs")
        limit = min(limit, LARGEST_PAGE)
        found = await self._store.jobs(
            limit=limit + 1,
            status=status,
            job_type=job_type,
            project=project,
            before=before and before.at,
            behind=before and before.id,
        )
        page = found[:limit]
        is_last = len(found) <= limit
        return JobPage(page, None if is_last else Cursor(page[-1].updated_at, page[-1].job_id))

    async def record(self, who: Identity, name: str) -> JobRecord:
        """The record of a job.

        Args:
            who: Who asks.
            name: Its id, the beginning of its id, or its alias.

        Raises:
            NotFound: There is none.
            Refused: There are several.
        """
        require_operator(who, "jobs")
        found = await self._store.find(name)
        exact = [each for each in found if name in (each.job_id, each.alias)]
        match exact or list(found):
            case [one]:
                return one
            case []:
                return await self._not_written_yet(name)
            case several:
                named = ", ".join(each.job_id[:12] for each in several)
                raise Refused(f"{name!r} may be {named}; give more of the id")

    async def get(self, who: Identity, name: str) -> JobDocument:
        """A job, with its stages as they are at this moment."""
        record = await self.record(who, name)
        if record.status not in ENDED:
            try:
                view = await self._runs.query(job_workflow_id(record.job_id), STATUS, JobView)
            except TemporalUnavailable:
                view = None
            if view is not None and view.attempt >= record.attempt:
                return from_run(record, view)
        counts = await self._store.counts(record.job_id, record.attempt)
        found = self.types.get(record.job_type)
        same = found is not None and found.definition.version == record.version
        return from_table(record, counts, found.definition if found and same else None)

    async def tasks(
        self,
        who: Identity,
        name: str,
        *,
        attempt: int | None = None,
        stage: int | None = None,
        status: TaskStatus | None = None,
        limit: int = PAGE,
        token: str | None = None,
    ) -> TaskPage:
        """Tasks of a job, by stage and place."""
        record = await self.record(who, name)
        try:
            return await self._store.tasks(
                record.job_id,
                attempt=attempt,
                stage=stage,
                status=status,
                limit=min(limit, LARGEST_PAGE),
                token=token,
            )
        except RuleViolation as error:
            raise Refused(str(error)) from error

    async def parked(self, who: Identity) -> Mapping[str, str]:
        """Why jobs are parked, by workflow id; those that changed last, where there are many."""
        require_operator(who, "jobs")
        found = await self._store.jobs(limit=LARGEST_PAGE, status=JobStatus.PARKED)
        return {
            job_workflow_id(each.job_id): each.error_details
            for each in found
            if each.error_details is not None
        }

    async def deliveries(self, who: Identity, name: str) -> Sequence[WebhookDelivery]:
        """What was sent to the receivers of a job, the newest first."""
        record = await self.record(who, name)
        return await self._log.deliveries(record.job_id)

    def events(
        self,
        who: Identity,
        name: str,
        last_seen: str | None = None,
        stopping: Callable[[], bool] = lambda: False,
    ) -> AsyncGenerator[Revision | None]:
        """The job whenever it changes, until it has ended.

        Args:
            who: Who asks.
            name: The job.
            last_seen: Revision that the asker has; None: begin with the job as it is.
            stopping: Whether the process is about to end.
        """

        async def read() -> Revision:
            return revision(await self.get(who, name))

        return watched(
            read,
            lambda now: now.id,
            lambda now: now.job.ended,
            last_seen=last_seen,
            stopping=stopping,
        )

    async def _not_written_yet(self, name: str) -> JobRecord:
        """A job that has just been started: its run is there before its record."""
        if len(name) == _FULL:
            handle = self._runs.client.get_workflow_handle(job_workflow_id(name))
            with temporal_errors():
                try:
                    found = await handle.describe()
                except RPCError as error:
                    if error.status is not RPCStatusCode.NOT_FOUND:
                        raise
                    found = None
            if found is not None:
                return _just_started(name, found)
        raise NotFound(f"there is no job {name!r}")


def _just_started(job_id: str, found: WorkflowExecutionDescription) -> JobRecord:
    return JobRecord(
        job_id=job_id,
        job_type=found.typed_search_attributes.get(attributes.DOCUMENT_TYPE) or "unknown",
        status=JobStatus.QUEUED,
        total_stages=0,
        parameters={},
        created_at=found.start_time,
        updated_at=found.start_time,
    )


def revision(job: JobDocument) -> Revision:
    """A job with what distinguishes it from others."""
    text = job.model_dump_json(exclude={"updated_at"})
    return Revision(hashlib.sha256(text.encode()).hexdigest()[:16], job)
