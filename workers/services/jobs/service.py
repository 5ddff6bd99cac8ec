"""Everything that people and programs do with jobs, whatever way they come."""

import asyncio
import hashlib
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import replace
from pathlib import Path
from typing import Any, Final, Protocol

from adapters.ports import BlobNotFound, Blobs
from adapters.ports.webhooks import WebhookDelivery
from contracts.answers import Answer, AnyAnswer
from contracts.blobs import BlobRef
from contracts.jobs import JobOutputs, JobRecord, JobRequest, JobRetry, job_workflow_id
from contracts.jobs.texts import text_problem
from workers.services.errors import NotFound, WrongState
from workers.services.identity import Identity, require_operator
from workers.services.jobs.documents import JobDocument
from workers.services.jobs.errors import FieldError, InvalidJob
from workers.services.jobs.queries import JobQueries
from workers.services.jobs.redelivery import Redelivery
from workers.services.jobs.runs import StartedJob
from workers.services.jobs.submission import (
    JobSubmission,
    StartsJobs,
    Submitted,
)
from workflows.parking import Decision

PUBLISHED: Final = ("silver", "gold")
"""Tiers that hold what jobs have made; bronze holds what they were given."""


class JobRunActions(StartsJobs, Protocol):
    """What is done to runs of jobs; every refusal is a `ServiceError`."""

    async def restart(self, job_id: str, from_stage: int | None = None) -> StartedJob:
        """Begin another attempt at the failed stage, or at an earlier one; good tasks are kept."""
        ...

    async def cancel(self, job_id: str, reason: str | None = None) -> None:
        """Begin no more tasks and end; running tasks clean up."""
        ...

    async def answer(self, job_id: str, decision: Decision, answer: AnyAnswer) -> None:
        """Answer a job that is parked."""
        ...


class JobService:
    """Every operation on jobs; a refusal is a `ServiceError`.

    Args:
        queries: Reads jobs.
        submission: Starts them.
        runs: Restarts and cancels them.
        redelivery: Sends webhooks again.
        tiers: Containers of bronze, silver and gold, by name.
    """

    def __init__(
        self,
        queries: JobQueries,
        submission: JobSubmission,
        runs: JobRunActions,
        redelivery: Redelivery,
        tiers: Mapping[str, Blobs],
    ) -> None:
        self.queries = queries
        self.submission = submission
        self._runs = runs
        self._redelivery = redelivery
        self._tiers = tiers

    @property
    def published(self) -> Mapping[str, Blobs]:
        """Containers of what jobs have made, by tier."""
        return {name: blobs for name, blobs in self._tiers.items() if name in PUBLISHED}

    async def submit(self, who: Identity, request: JobRequest) -> Submitted:
        """Start a job, or find the one that does the same.

        Raises:
            InvalidJob: A field is wrong; nothing was started.
        """
        require_operator(who, "jobs")
        done = await self.submission.submit(request)
        if done.created or (request.alias is None and request.project is None):
            return done
        known = await self.queries.record(who, done.job_id)
        return replace(done, notes=(*done.notes, *_not_used(request, known)))

    async def with_file(self, who: Identity, request: JobRequest, file: Path) -> JobRequest:
        """Upload a file to the bronze container; the request with it as its input.

        It is named after its content: the same file is uploaded once, and stays the same input.

        Raises:
            InvalidJob: Its type takes no file, or the request names another input.
            Unavailable: The blob store does not answer.
        """
        require_operator(who, "jobs")
        field = self.submission.file_parameter(request)
        digest = await asyncio.to_thread(_digest, file)
        name = f"uploads/{digest}/{file.name}"
        with suppress(FileExistsError):
            await self._tiers["bronze"].upload(file, name, overwrite=False)
        return request.model_copy(update={"parameters": {**request.parameters, field: name}})

    async def restart(self, who: Identity, name: str, from_stage: int | None = None) -> StartedJob:
        """Begin another attempt at the failed stage, or at an earlier one."""
        record = await self.queries.record(who, name)
        return await self._runs.restart(record.job_id, from_stage)

    async def cancel(self, who: Identity, name: str, reason: str | None = None) -> None:
        """Begin no more tasks of a job, and end it."""
        _check_reason(reason)
        record = await self.queries.record(who, name)
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
            reason: For `skip` and `fail`.

        Raises:
            InvalidJob: A parameter is wrong, or names another input; nothing has changed.
            Refused: The job is not parked, or asks for more.
        """
        _check_reason(reason)
        record = await self.queries.record(who, name)
        answer: AnyAnswer = Answer(reason=reason, by=who.subject)
        if decision is Decision.RETRY:
            given = self.submission.corrected(record, parameters or {})
            answer = JobRetry(parameters=given or None, by=who.subject)
        elif parameters:
            raise InvalidJob([FieldError("parameters", f"{decision} takes none")])
        try:
            await self._runs.answer(record.job_id, decision, answer)
        except NotFound as error:
            raise _over(record) from error
        return await self.queries.get(who, record.job_id)

    async def send_again(
        self, who: Identity, name: str, number: int, attempt: int | None = None
    ) -> WebhookDelivery:
        """Send a webhook again; the entry of the log that it is sent like.

        Args:
            who: Who asks.
            name: The job.
            number: Place of the receiver, from 0.
            attempt: Of the job; None: the newest whose end was delivered.
        """
        deliveries = await self.queries.deliveries(who, name)
        return await self._redelivery.send(deliveries, number, attempt)

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
        "the job has ended: nothing of it can be cancelled or answered; `docflow jobs restart "
        f"{record.job_id[:8]}` continues it",
        workflow_id=job_workflow_id(record.job_id),
    )


def _digest(file: Path) -> str:
    with file.open("rb") as source:
        return hashlib.file_digest(source, "sha256").hexdigest()
