"""The one way in for jobs: HTTP, commands and queues call it."""

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final, Protocol

from activities.jobs.api import JobType
from contracts.jobs import JobOrder, JobRecord, JobRequest, JsonObject, WebhookParameters
from domain.errors import RuleViolation
from domain.jobs.ids import job_id
from workers.services.jobs.errors import FieldError, InvalidJob
from workers.services.jobs.inputs import JobInputs
from workers.services.jobs.parameters import divided, typed, validated
from workers.services.jobs.receivers import WebhookReceivers
from workers.services.jobs.runs import StartedJob

_LIMIT: Final = "--limit"
"""No name of a parameter."""


class StartsJobs(Protocol):
    """Starts runs of jobs."""

    async def start(self, order: JobOrder, *, rerun: bool = False) -> StartedJob:
        """Start a job, unless it was started before.

        Raises:
            TemporalUnavailable: Temporal does not answer.
        """
        ...


@dataclass(frozen=True, slots=True)
class Submitted:
    """What became of a request."""

    job_id: str
    attempt: int
    created: bool
    notes: tuple[str, ...] = ()
    """What of the request was not used, and why."""
    alias: str | None = None
    """Of the run that was started or met."""


@dataclass(frozen=True, slots=True)
class PreparedJob:
    """A request whose every field has been checked."""

    order: JobOrder
    """Without receivers of webhooks: their secret is not kept yet."""
    webhooks: WebhookParameters
    rerun: bool


class JobSubmission:
    """Makes a job of a request.

    Args:
        types: The job types that are installed, by name.
        inputs: Finds what a job reads.
        receivers: Takes the secrets of webhooks out of requests.
        runs: Starts jobs.
    """

    def __init__(
        self,
        types: Mapping[str, JobType[Any]],
        inputs: JobInputs,
        receivers: WebhookReceivers,
        runs: StartsJobs,
    ) -> None:
        self.types = types
        self._inputs = inputs
        self._receivers = receivers
        self._runs = runs

    async def submit(self, request: JobRequest) -> Submitted:
        """Start a job, or find the one that does the same.

        Raises:
            InvalidJob: A field is wrong, or an input is missing; nothing was started.
            Unavailable: Database or blob store do not answer.
            TemporalUnavailable: Temporal does not answer.
        """
        return await self.start(await self.prepare(request))

    async def prepare(self, request: JobRequest) -> PreparedJob:
        """Check a request and find its inputs; nothing is kept or started.

        Raises:
            InvalidJob: A field is wrong, or an input is missing.
            Unavailable: The blob store does not answer.
        """
        job_type = self._type(request.job_type)
        webhooks, given = divided(request.parameters)
        self._receivers.check(webhooks)
        parameters = _checked(job_type, given)
        inputs = await self._inputs.resolve(job_type.inputs(parameters))
        content = parameters.model_dump(mode="json")
        try:
            id = job_id(job_type.definition, _identifying(content, request.limit), inputs)
        except RuleViolation as error:
            raise InvalidJob([FieldError("parameters", str(error))]) from error
        order = JobOrder(
            job_id=id,
            definition=job_type.definition,
            parameters=content,
            inputs=inputs,
            project=request.project,
            alias=request.alias,
            limit=request.limit,
            notices=True,
        )
        return PreparedJob(order, webhooks, request.rerun)

    async def start(self, job: PreparedJob) -> Submitted:
        """Keep the secret of a checked request and start its job.

        Raises:
            InvalidJob: The secret cannot be kept.
            Unavailable: The database does not answer.
            TemporalUnavailable: Temporal does not answer.
        """
        receivers = await self._receivers.keep(job.order.job_id, job.webhooks)
        order = job.order.model_copy(update={"webhooks": receivers})
        started = await self._runs.start(order, rerun=job.rerun)
        notes = [] if started.note is None else [started.note]
        if receivers and not started.created:
            await self._receivers.forget(receivers)
            notes.append(
                "webhook_url is not used: the job was asked for before, and only the request that "
                "starts a job or its rerun names the receivers"
            )
        return Submitted(
            started.job_id, started.attempt, started.created, tuple(notes), started.alias
        )

    async def has_other_secret(self, job_id: str, parameters: Mapping[str, Any]) -> bool:
        """Whether a request that came before comes with another secret of its webhooks.

        Args:
            job_id: What it was started as.
            parameters: As it gives them now.

        Raises:
            InvalidJob: One of a webhook is wrong.
            Unavailable: The database does not answer.
        """
        webhooks, _ = divided(parameters)
        return await self._receivers.has_other_secret(job_id, webhooks)

    def corrected(self, record: JobRecord, given: Mapping[str, Any]) -> JsonObject:
        """Parameters that are given to a job that is parked, checked together with its others.

        Raises:
            InvalidJob: One is wrong, or not known, or names another input.
        """
        if not given:
            return {}
        webhooks, own = divided(given)
        if webhooks.model_fields_set:
            fields = sorted(webhooks.model_fields_set)
            text = "is not changed: only the request that starts a job names receivers"
            raise InvalidJob([FieldError(f"parameters.{name}", text) for name in fields])
        job_type = self._type(record.job_type)
        parameters = _checked(job_type, {**record.parameters, **own})
        if job_type.inputs(parameters) != job_type.inputs(
            validated(job_type.parameters, record.parameters)
        ):
            text = "they name other inputs, which make another job: submit that one"
            raise InvalidJob([FieldError("parameters", text)])
        content = parameters.model_dump(mode="json", by_alias=False)
        return {name: content[name] for name in own if name in content}

    def typed(self, job_type: str, texts: Mapping[str, str]) -> JsonObject:
        """Parameters that a person has typed, as their fields take them."""
        found = self.types.get(job_type)
        return typed(None if found is None else found.parameters, texts)

    def file_parameter(self, request: JobRequest) -> str:
        """The parameter that names the file which comes with a request.

        Raises:
            InvalidJob: Its type has none, or the request gives it a value.
        """
        field = self._type(request.job_type).file_parameter
        if field is None:
            raise InvalidJob([FieldError("file", f"{request.job_type} takes no file")])
        if field in request.parameters:
            raise InvalidJob([FieldError(f"parameters.{field}", "give it or a file, not both")])
        return field

    def beside(self, job_type: str, file: Path) -> list[str]:
        """Names of files that belong to a file of this machine and do not come with it."""
        return files_beside(self._type(job_type), file)

    def _type(self, name: str) -> JobType[Any]:
        found = self.types.get(name)
        if found is None:
            known = ", ".join(sorted(self.types)) or "none"
            raise InvalidJob(
                [FieldError("job_type", f"{name!r} is not installed; there are: {known}")]
            )
        return found


def _checked(job_type: JobType[Any], given: Mapping[str, Any]) -> Any:
    """Parameters that a run could use.

    Raises:
        InvalidJob: One is wrong, or not known.
    """
    parameters = validated(job_type.parameters, given)
    try:
        job_type.check(parameters)
    except RuleViolation as error:
        raise InvalidJob([FieldError("parameters", str(error))]) from error
    return parameters


def _identifying(parameters: JsonObject, limit: int | None) -> JsonObject:
    """What makes a job the same: a trial run is another one than the whole."""
    return parameters if limit is None else {**parameters, _LIMIT: limit}


def files_beside(job_type: JobType[Any], file: Path) -> list[str]:
    """Names of files that belong to a file by its job type, and lie in its folder."""
    return [name for name in job_type.beside(file.name) if file.with_name(name).is_file()]
