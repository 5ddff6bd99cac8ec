"""Everything that people and programs do with jobs, whatever way they come."""

import hashlib
from collections.abc import AsyncGenerator, AsyncIterator, Callable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Annotated, Any, Final

from temporalio.client import Client, WorkflowExecutionDescription
from temporalio.common import WorkflowIDConflictPolicy, WorkflowIDReusePolicy
from temporalio.exceptions import WorkflowAlreadyStartedError
from temporalio.service import RPCError, RPCStatusCode

from activities.jobs.api import JobType, JobTypes
from activities.jobs.ports import TaskPage, TaskSpan, WebhookDelivery
from activities.jobs.store import SqlJobStore
from activities.jobs.webhook_store import SqlWebhookLog
from adapters.ports.blobs import Blobs
from adapters.ports.errors import BlobNotFound
from workers.jobs.runs import ENDED, JobDocument, JobRuns, StartedJob, from_run, from_table
from workers.jobs.submission import UPLOADS, FieldError, InvalidJob, JobSubmission, input_name
from workers.shared.services.errors import NotFound, Refused, TemporalUnavailable, WrongState
from workers.shared.services.identity import (
    OPERATOR,
    VIEWER,
    Identity,
    owner_for,
    require_role,
)
from workers.shared.services.intake import START_TIMEOUT
from workers.shared.services.lists import Cursor, watched
from workers.shared.services.runs import TemporalRuns, temporal_errors
from workflows.jobs.definitions import TASK_QUEUE, text_problem
from workflows.jobs.records import (
    WEBHOOK_DELIVERY,
    JobOutputs,
    JobRecord,
    JobStatus,
    JsonObject,
    TaskStatus,
    webhook_delivery_id,
)
from workflows.jobs.runs import (
    JobRequest,
    JobRetry,
    JobView,
    job_workflow_id,
)
from workflows.shared import attributes
from workflows.shared.contracts import Answer, AnyAnswer, BlobRef, PlainRecord, served
from workflows.shared.errors import RuleViolation
from workflows.shared.parking import Decision
from workflows.shared.runs import Visible

PAGE: Final = 50
LARGEST_PAGE: Final = 500
STATUS: Final = "status"
"""The query of a run."""
_FULL: Final = 64


class JobPage(PlainRecord):
    """Some of the jobs, the newest change first."""

    jobs: Annotated[Sequence[JobRecord], served("The jobs", [])]
    next: Annotated[str | None, served("`before` of the next page; null: there is none", None)]


class JobTypeHead(PlainRecord):
    """A job type that is installed."""

    job_type: Annotated[str, served("Its name", "hello_world")]
    version: Annotated[int, served("Of its definition", 1)]
    package: Annotated[str | None, served("The package that brings it", "docflow")]
    description: Annotated[str, served("What it does", "Greets, and has the greetings answered.")]
    stages: Annotated[Sequence[str], served("Names of its stages", ["greeting", "reply"])]
    file_parameter: Annotated[str | None, served("Names the file that it reads", "source")]
    parameters: Annotated[dict[str, Any], served("JSON schema of its parameters", {})]


class JobTypeList(PlainRecord):
    """The job types that are installed."""

    items: Annotated[Sequence[JobTypeHead], served("By name", [])]
    problems: Annotated[Sequence[str], served("Types that cannot be used, and why", [])]


class StoredFile(PlainRecord):
    """A file that jobs read."""

    name: Annotated[str, served("Its name in the bronze container", "uploads/5eed.../scene.tif")]
    parameter: Annotated[str, served("The parameter of the job that takes the name", "source")]
    beside: Annotated[
        Sequence[str],
        served("Names of files that belong to it, if there are any; these are not sent", []),
    ]


class InstalledTypes(Mapping[str, JobType[Any]]):
    """The job types that are installed, imported when they are first asked for: some bring
    libraries that take a moment to load."""

    @cached_property
    def all(self) -> JobTypes:
        """All of them."""
        return JobTypes.installed()

    def __getitem__(self, name: str) -> JobType[Any]:
        return self.all[name]

    def __iter__(self) -> Iterator[str]:
        return iter(self.all)

    def __len__(self) -> int:
        return len(self.all)


@dataclass(frozen=True, slots=True)
class Revision:
    """A job as it is at a moment."""

    id: str
    """The same for the same content."""
    job: JobDocument


class JobQueries:
    """Reads jobs. Each method is given who asks: they see jobs of their organisations.

    Jobs that belong to none are for operators of the installation.

    Args:
        store: Records of jobs.
        log: Of webhooks.
        runs: Of Temporal, which know what the table does not know yet.
        types: The job types that are installed.
    """

    def __init__(
        self,
        store: SqlJobStore,
        log: SqlWebhookLog,
        runs: TemporalRuns,
        types: JobTypes | InstalledTypes,
    ) -> None:
        self.types = types
        self._store = store
        self._log = log
        self._runs = runs

    def job_types(self) -> JobTypeList:
        """The job types that are installed."""
        found = self.types.all if isinstance(self.types, InstalledTypes) else self.types
        heads = [
            JobTypeHead(
                job_type=name,
                version=each.definition.version,
                package=found.packages.get(name),
                description=each.definition.description,
                stages=[stage.stage_name for stage in each.definition.stages],
                file_parameter=each.file_parameter,
                parameters=each.parameters.model_json_schema(),
            )
            for name, each in sorted(found.items())
        ]
        return JobTypeList(items=heads, problems=found.problems)

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
        limit = min(limit, LARGEST_PAGE)
        found = await self._store.jobs(
            who.sees,
            limit=limit + 1,
            status=status,
            job_type=job_type,
            project=project,
            before=before and before.at,
            behind=before and before.id,
        )
        page = found[:limit]
        has_more = len(found) > limit
        next = f"{Cursor(page[-1].updated_at, page[-1].job_id)}" if has_more else None
        return JobPage(jobs=page, next=next)

    async def record(self, who: Identity, name: str, role: str = VIEWER) -> JobRecord:
        """The record of a job.

        Args:
            who: Who asks.
            name: Its id, the beginning of its id, or its alias.
            role: What they need in the organisation of the job.

        Raises:
            NotFound: There is none that they may see.
            Refused: There are several.
            Forbidden: They lack the role.
        """
        found = await self._store.find(name, who.sees)
        exact = [each for each in found if name in (each.job_id, each.alias)]
        match exact or list(found):
            case [one]:
                record = one
            case []:
                record = await self._not_written_yet(name, who.sees)
            case several:
                named = ", ".join(each.job_id[:12] for each in several)
                raise Refused(f"{name!r} may be {named}; give more of the id")
        require_role(who, role, record.organisation_id)
        return record

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

    async def spans(self, who: Identity, name: str, most: int) -> Sequence[TaskSpan]:
        """When the tasks of the newest attempt of a job were planned and seen last, by stage.

        Args:
            who: Who asks.
            name: The job.
            most: Tasks of a stage that are told apart.
        """
        record = await self.record(who, name)
        return await self._store.spans(record.job_id, record.attempt, most)

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

    async def _not_written_yet(self, name: str, visible: Visible) -> JobRecord:
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
            record = found and _just_started(name, found)
            if record is not None and visible.shows(record.organisation_id):
                return record
        raise NotFound(f"there is no job {name!r}")


def _just_started(job_id: str, found: WorkflowExecutionDescription) -> JobRecord:
    return JobRecord(
        job_id=job_id,
        job_type=found.typed_search_attributes.get(attributes.DOCUMENT_TYPE) or "unknown",
        status=JobStatus.QUEUED,
        total_stages=0,
        parameters={},
        organisation_id=attributes.organisation_of(found.typed_search_attributes),
        created_at=found.start_time,
        updated_at=found.start_time,
    )


def revision(job: JobDocument) -> Revision:
    """A job with what distinguishes it from others."""
    text = job.model_dump_json(exclude={"updated_at"})
    return Revision(hashlib.sha256(text.encode()).hexdigest()[:16], job)


PUBLISHED: Final = ("silver", "gold")
"""Tiers that hold what jobs have made; bronze holds what they were given."""


class JobService:
    """Every operation on jobs; a refusal is a `ServiceError`.

    Args:
        queries: Reads jobs.
        submission: Starts them.
        runs: Restarts and cancels them.
        client: Of Temporal, to send webhooks again.
        tiers: Containers of bronze, silver and gold, by name.
    """

    def __init__(
        self,
        queries: JobQueries,
        submission: JobSubmission,
        runs: JobRuns,
        client: Client,
        tiers: Mapping[str, Blobs],
    ) -> None:
        self.queries = queries
        self.submission = submission
        self._runs = runs
        self._client = client
        self._tiers = tiers

    @property
    def published(self) -> Mapping[str, Blobs]:
        """Containers of what jobs have made, by tier."""
        return {name: blobs for name, blobs in self._tiers.items() if name in PUBLISHED}

    async def submit(
        self, who: Identity, request: JobRequest, organisation_id: int | None = None
    ) -> StartedJob:
        """Start a job, or find the one that does the same.

        Args:
            who: Who asks.
            request: What for.
            organisation_id: Organisation that the job belongs to; None: the first one in which the
                caller is an operator, or none if they are one of the installation.

        Raises:
            InvalidJob: A field is wrong; nothing was started.
            Forbidden: The caller is no operator there.
        """
        owner = owner_for(who, OPERATOR, organisation_id)
        done = await self.submission.submit(request, owner, None if who.is_operator else owner)
        if done.created or (request.alias is None and request.project is None):
            return done
        known = await self.queries.record(who, done.job_id)
        return done.model_copy(update={"notes": (*done.notes, *_not_used(request, known))})

    async def store_file(
        self, who: Identity, job_type: str, name: str, sha256: str, content: AsyncIterator[bytes]
    ) -> StoredFile:
        """Store a file in the bronze container, for jobs of a type that read one.

        It is named after its content: the same file is stored once, and stays the same input.

        Args:
            who: Who sends it.
            job_type: Whose jobs read it.
            name: Of the file.
            sha256: Of its content, in lower-case hexadecimal.
            content: Its bytes.

        Raises:
            InvalidJob: The type takes no file, or the file cannot have this name.
            Refused: The content is another one.
            Unavailable: The blob store does not answer.
        """
        owner_for(who, OPERATOR, None)
        parameter, beside = self.submission.file_of(job_type, name)
        blob = input_name(f"{UPLOADS}/{sha256}/{name}")
        with suppress(FileExistsError):
            await self._tiers["bronze"].write(blob, _checked(content, sha256))
        return StoredFile(name=blob, parameter=parameter, beside=beside)

    async def restart(self, who: Identity, name: str, from_stage: int | None = None) -> StartedJob:
        """Begin another attempt at the failed stage, or at an earlier one."""
        record = await self.queries.record(who, name, OPERATOR)
        return await self._runs.restart(record.job_id, from_stage)

    async def cancel(self, who: Identity, name: str, reason: str | None = None) -> None:
        """Begin no more tasks of a job, and end it."""
        _check_reason(reason)
        record = await self.queries.record(who, name, OPERATOR)
        try:
            await self._runs.cancel(record.job_id, reason)
        except NotFound as error:
            raise _over(record) from error

    async def answer(
        self,
        who: Identity,
        name: str,
        decision: Decision = Decision.RETRY,
        *,
        parameters: Mapping[str, Any] | None = None,
        reason: str | None = None,
    ) -> JobDocument:
        """Answer a job that is parked; the job afterwards.

        Args:
            who: Who answers.
            name: The job.
            decision: Do its failed stage again, leave out what has failed, or give the job up.
            parameters: What it asks for, and others to correct; for `retry` alone.
            reason: Why.

        Raises:
            InvalidJob: A parameter is wrong, or names another input; nothing has changed.
            Refused: The job is not parked, or asks for more.
        """
        _check_reason(reason)
        record = await self.queries.record(who, name, OPERATOR)
        answer: AnyAnswer = Answer(reason=reason, by=who.subject)
        if decision is Decision.RETRY:
            given = self.submission.corrected(record, parameters or {})
            answer = JobRetry(parameters=given or None, by=who.subject, reason=reason)
        elif parameters:
            raise InvalidJob([FieldError("parameters", f"{decision} takes none")])
        try:
            await self._runs.answer(record.job_id, decision, answer)
        except NotFound as error:
            raise _over(record) from error
        return await self.queries.get(who, record.job_id)

    async def typed(self, who: Identity, name: str, given: Mapping[str, Any]) -> JsonObject:
        """Parameters for a job, where texts are as a person has typed them."""
        record = await self.queries.record(who, name)
        texts = {key: value for key, value in given.items() if isinstance(value, str)}
        return {**given, **self.submission.typed(record.job_type, texts)}

    async def send_again(
        self, who: Identity, name: str, number: int, attempt: int | None = None
    ) -> WebhookDelivery:
        """Send a webhook again; the entry of the log that it is sent like.

        Args:
            who: Who asks.
            name: The job.
            number: Place of the receiver, from 0.
            attempt: Of the job; None: the newest whose end was delivered.

        Raises:
            NotFound: Nothing was ever sent to this receiver.
            WrongState: It is being sent again already.
            TemporalUnavailable: Temporal does not answer.
        """
        record = await self.queries.record(who, name, OPERATOR)
        same = [
            each
            for each in await self.queries.deliveries(who, record.job_id)
            if each.number == number and attempt in (None, each.attempt)
        ]
        if not same:
            raise NotFound("nothing was sent to this receiver so far")
        newest = max(same, key=lambda each: (each.attempt, each.redelivery))
        again = {"redelivery": newest.redelivery + 1, "delivery_attempt": 1}
        order = newest.order.model_copy(update=again)
        with temporal_errors():
            try:
                await self._client.start_workflow(
                    WEBHOOK_DELIVERY,
                    order,
                    id=webhook_delivery_id(order),
                    task_queue=TASK_QUEUE,
                    id_reuse_policy=WorkflowIDReusePolicy.REJECT_DUPLICATE,
                    id_conflict_policy=WorkflowIDConflictPolicy.FAIL,
                    search_attributes=attributes.at_start(
                        "jobs", "webhook", "webhooks", record.organisation_id
                    ),
                    static_summary=f"Webhook {number + 1} of job {order.job_id[:8]}, sent again",
                    rpc_timeout=START_TIMEOUT,
                )
            except WorkflowAlreadyStartedError as error:
                raise WrongState("this webhook is being sent again already") from error
        return newest

    async def download(self, who: Identity, name: str, uri: str, target: Path) -> BlobRef:
        """Fetch a file that the result of a job names.

        Raises:
            NotFound: The result names no such file, or it has been removed.
        """
        record = await self.queries.record(who, name)
        outputs = JobOutputs.of(record.result_data)
        if uri != outputs.preview and uri not in {each.uri for each in outputs.files}:
            raise NotFound("the result of this job names no such file")
        tier, _, blob = uri.partition("://")
        try:
            return await self._tiers[tier].download(blob, target)
        except BlobNotFound as error:
            raise NotFound("this file has been removed") from error


def _not_used(request: JobRequest, known: JobRecord) -> Sequence[str]:
    """What of a request for a job that was asked for before is not used."""
    asked = {"alias": request.alias, "project": request.project}
    kept = {"alias": known.alias, "project": known.project}
    return [
        f"{field} is not used: the job was asked for before, "
        + (f"with {field} {kept[field]!r}" if kept[field] else f"without {field}")
        for field, value in asked.items()
        if value is not None and value != kept[field]
    ]


def _check_reason(reason: str | None) -> None:
    if problem := text_problem(reason or ""):
        raise InvalidJob([FieldError("reason", problem)])


def _over(record: JobRecord) -> WrongState:
    return WrongState(
        "the job has ended: nothing of it can be cancelled or answered; `docflow job restart "
        f"{record.job_id[:8]}` continues it",
        workflow_id=job_workflow_id(record.job_id),
    )


async def _checked(content: AsyncIterator[bytes], sha256: str) -> AsyncGenerator[bytes]:
    digest = hashlib.sha256()
    async for block in content:
        digest.update(block)
        yield block
    if digest.hexdigest() != sha256:
        raise Refused("sha256: the file that has arrived has another one; send it again")
