"""The one way in for jobs: HTTP, commands and queues call it."""

import json
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import islice
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, Final, TypeVar, cast
from urllib.parse import urlsplit

from pydantic import BaseModel, TypeAdapter, ValidationError

from activities.jobs.api import JobType
from activities.jobs.webhook_store import SqlWebhookSecrets
from adapters.http import is_local, is_public, literal, secret_bytes
from adapters.ports.blobs import Blobs
from adapters.ports.errors import BlobNotFound, Denied, PortError, Unavailable
from workers.jobs.runs import JobRuns, StartedJob
from workers.shared.services.bodies import printable
from workers.shared.services.errors import Refused
from workers.shared.settings.webhooks import ReceiverSettings
from workflows.jobs.definitions import unkept
from workflows.jobs.records import InputIdentity, JobRecord, JsonObject, WebhookReceiver
from workflows.jobs.runs import WEBHOOK_URLS, JobInput, JobRequest, WebhookParameters, job_id
from workflows.shared.contracts import BlobName, BlobRef, Contract, problem_text
from workflows.shared.errors import RuleViolation
from workflows.shared.webhook_addresses import InvalidReceiver, check_receiver


@dataclass(frozen=True, slots=True)
class FieldError:
    """What is wrong with one field of a request; never its value."""

    location: str
    """Names joined by dots, as in `parameters.tile_size`."""
    message: str


class InvalidJob(Refused):
    """Fields of a request are wrong; nothing was started.

    Attributes:
        errors: Each of them.
    """

    kind = "invalid-job"
    title = "The job cannot be started as it is asked for"

    def __init__(self, errors: Sequence[FieldError]) -> None:
        super().__init__("; ".join(f"{each.location}: {each.message}" for each in errors[:5]))
        self.errors = tuple(errors)


INPUTS: Final = 1_000
"""A job that reads more is refused."""
MANIFEST: Final = "@"
"""Begins the name of a blob that lists names, one a line."""
MANIFEST_BYTES: Final = 1_000_000
TIER: Final = "bronze://"
OF_ORGANISATIONS: Final = "organisations"
"""Folder of the bronze container with a folder for each organisation."""
UPLOADS: Final = "uploads"
"""Folder of files that were sent: who knows the SHA-256 in a name has the file."""
_SENT: Final = re.compile(rf"{UPLOADS}/[0-9a-f]{{64}}/.")
_NAME: Final = TypeAdapter[str](BlobName)


class JobInputs:
    """Finds the blobs that a job reads.

    Args:
        bronze: The container that they lie in.
        scratch: Folder for a manifest while it is read.
    """

    def __init__(self, bronze: Blobs, scratch: Path) -> None:
        self._bronze = bronze
        self._scratch = scratch

    async def resolve(
        self, names: Sequence[str], reader: int | None = None
    ) -> tuple[InputIdentity, ...]:
        """Size and version of every input, each once, in the order of the names.

        Args:
            names: Of blobs; `name/` is all of a folder, `@name` what a blob lists.
            reader: Organisation that reads its own files and those that it sends alone; None: any.

        Raises:
            InvalidJob: One is missing or not theirs, a folder is empty, or there are too many.
            Unavailable: The blob store does not answer.
        """
        found: dict[str, BlobRef] = {}
        for name in names:
            for each in await self._blobs(name, reader):
                found[each.name] = each
                if len(found) > INPUTS:
                    raise _refused(f"a job reads at most {INPUTS:,} files; divide it")
        return tuple(
            InputIdentity(uri=f"{TIER}{each.name}", size=each.size, etag=each.etag)
            for each in found.values()
        )

    async def _blobs(self, name: str, reader: int | None) -> Sequence[BlobRef]:
        name = name.removeprefix(TIER)
        if name.startswith(MANIFEST):
            manifest = name.removeprefix(MANIFEST)
            _refuse_foreign(manifest, reader)
            return [
                each
                for line in await self._manifest(manifest)
                for each in await self._of_name(line, reader)
            ]
        return await self._of_name(name, reader)

    async def _of_name(self, name: str, reader: int | None) -> Sequence[BlobRef]:
        _refuse_foreign(name, reader)
        if name.endswith("/"):
            found = await self._bronze.list(f"{input_name(name[:-1])}/", INPUTS + 1)
            if not found:
                raise _refused(f"the folder {name!r} of the bronze container holds no file")
            return found
        return [await self._stat(name)]

    async def _stat(self, name: str) -> BlobRef:
        try:
            return await self._bronze.stat(input_name(name))
        except BlobNotFound:
            raise _refused(f"there is no file {name!r} in the bronze container") from None
        except Unavailable:
            raise
        except PortError as error:
            raise _refused(str(error)) from error

    async def _manifest(self, name: str) -> Sequence[str]:
        if (await self._stat(name)).size > MANIFEST_BYTES:
            raise _refused(f"the manifest {name!r} has more than {MANIFEST_BYTES:,} bytes")
        with TemporaryDirectory(dir=self._scratch) as folder:
            path = Path(folder) / "manifest"
            await self._bronze.download(name, path)
            try:
                text = path.read_text("utf-8-sig")
            except UnicodeDecodeError:
                raise _refused(f"the manifest {name!r} is not UTF-8") from None
        lines = [line.strip() for line in text.splitlines()]
        listed = [line for line in lines if line and not line.startswith("#")]
        if not listed:
            raise _refused(f"the manifest {name!r} lists no file")
        return listed


def _refuse_foreign(name: str, reader: int | None) -> None:
    """Refuse a name outside of an organisation's folder that is not made of a file's content.

    Raises:
        InvalidJob: It is one.
    """
    if reader is None or name.startswith(own := f"{OF_ORGANISATIONS}/{reader}/"):
        return
    if not _SENT.match(name):
        raise _refused(
            f"{name[:100]!r} is not a file of organisation {reader}: jobs of an organisation read "
            f"files that were sent to `POST /api/v1/jobs/files`, and those below {own}"
        )


def input_name(name: str) -> str:
    """The name of a blob that a job may read.

    Raises:
        InvalidJob: No blob can have it.
    """
    try:
        return _NAME.validate_python(name)
    except ValidationError as error:
        why = problem_text(error.errors(include_url=False, include_input=False)[0])
        raise _refused(f"{name[:100]!r} is not the name of a file: {why}") from None


def _refused(message: str) -> InvalidJob:
    return InvalidJob([FieldError("parameters", message)])


ERRORS_LISTED: Final = 20
_OF_WEBHOOKS: Final = frozenset(WebhookParameters.model_fields)
HIDDEN: Final = "***"
LEVELS: Final = 64
"""Of lists and objects in a parameter: readers of JSON give up at different depths, and one that a
worker cannot read would leave its run waiting for ever."""

M = TypeVar("M", bound=Contract)


def without_secret(parameters: Mapping[str, Any]) -> dict[str, Any]:
    """Parameters as they may be recorded: with the secret masked."""
    return {
        name: HIDDEN if name == "webhook_secret" and value else value
        for name, value in parameters.items()
    }


def divided(parameters: Mapping[str, Any]) -> tuple[WebhookParameters, JsonObject]:
    """Parameters of webhooks, and those of the job.

    Raises:
        InvalidJob: One of a webhook is wrong, or a text cannot be kept as it is.
    """
    lost = islice(unkept(parameters, "parameters"), ERRORS_LISTED)
    if errors := [FieldError(printable(place)[:200], problem) for place, problem in lost]:
        raise InvalidJob(errors)
    given = {name: value for name, value in parameters.items() if name in _OF_WEBHOOKS}
    rest = {name: value for name, value in parameters.items() if name not in _OF_WEBHOOKS}
    return validated(WebhookParameters, given), rest


def validated(model: type[M], given: Mapping[str, Any]) -> M:
    """Parameters as their model.

    Raises:
        InvalidJob: They do not fit, or one is not known: it would be ignored otherwise.
    """
    errors = [
        FieldError(f"parameters.{printable(name)[:100]}", f"is not known; {_known(model)}")
        for name in sorted(given.keys() - _names(model))
    ]
    deep = [
        FieldError(
            f"parameters.{printable(name)[:100]}", f"is nested more than {LEVELS} levels deep"
        )
        for name, value in given.items()
        if _is_deep(value)
    ]
    if deep:
        raise InvalidJob([*errors, *deep])
    try:
        parsed = model.model_validate(dict(given))
    except ValidationError as error:
        known = {each.location for each in errors}
        errors += [each for each in errors_of(error) if each.location not in known]
        raise InvalidJob(errors) from None
    if errors:
        raise InvalidJob(errors)
    return parsed


def _is_deep(value: object) -> bool:
    level = [value]
    for _ in range(LEVELS):
        level = [inner for each in level for inner in _within(each)]
    return bool(level)


def _within(value: object) -> Iterable[object]:
    if isinstance(value, Mapping):
        return cast(Mapping[Any, object], value).values()
    return cast(Sequence[object], value) if isinstance(value, list | tuple) else ()


def typed(model: type[BaseModel] | None, texts: Mapping[str, str]) -> JsonObject:
    """Parameters that a person has typed: JSON where it fits the field, else the text as it is.

    Args:
        model: Parameters of the job type; None: it is not installed.
        texts: Name to what was typed.
    """
    return {name: _typed(model, name, text) for name, text in texts.items()}


def _typed(model: type[BaseModel] | None, name: str, text: str) -> Any:
    try:
        value = json.loads(text)
    except ValueError:
        return text
    field = (model and model.model_fields.get(name)) or WebhookParameters.model_fields.get(name)
    if field is None or field.annotation is None:
        return value
    fields: TypeAdapter[Any] = TypeAdapter(field.annotation)
    for each in (value, text):
        try:
            fields.validate_python(each)
        except ValidationError:
            continue
        return each
    return value


def errors_of(error: ValidationError, *, within: str = "parameters") -> Iterator[FieldError]:
    """The problems of pydantic, without the values that they are about."""
    found = error.errors(include_url=False, include_context=False, include_input=False)
    for problem in found[:ERRORS_LISTED]:
        location = ".".join(str(part) for part in (within, *problem["loc"]) if part != "")
        yield FieldError(printable(location), problem_text(problem)[:300])


def _names(model: type[BaseModel]) -> frozenset[str]:
    aliases = (each.alias for each in model.model_fields.values())
    return frozenset((*model.model_fields, *filter(None, aliases)))


def _known(model: type[BaseModel]) -> str:
    names = ", ".join(model.model_fields)
    return f"known are {names}" if names else "this type has no parameters"


_URL: Final = "parameters.webhook_url"
_SECRET: Final = "parameters.webhook_secret"  # noqa: S105 - the name of a field


class WebhookReceivers:
    """Makes receivers of the parameters of a request.

    Args:
        secrets: Where secrets are kept.
        settings: Which receivers are accepted.
    """

    def __init__(self, secrets: SqlWebhookSecrets, settings: ReceiverSettings) -> None:
        self._secrets = secrets
        self._settings = settings

    def check(self, given: WebhookParameters) -> None:
        """See whether the parameters can be used.

        Raises:
            InvalidJob: They cannot.
        """
        urls = _urls(given)
        errors = [
            FieldError(_URL, str(refusal))
            for url in urls
            if (refusal := self._refusal(url)) is not None
        ]
        if len(urls) > WEBHOOK_URLS:
            errors.append(FieldError(_URL, f"names more than {WEBHOOK_URLS} receivers"))
        if given.webhook_secret is not None and given.webhook_secret_name is not None:
            errors.append(FieldError(_SECRET, "give it or webhook_secret_name, not both"))
        if not urls and (given.webhook_secret or given.webhook_secret_name):
            errors.append(FieldError(_SECRET, "is of no use without webhook_url"))
        try:
            if given.webhook_secret is not None:
                secret_bytes(given.webhook_secret)
        except ValueError as error:
            errors.append(FieldError(_SECRET, str(error)))
        if errors:
            raise InvalidJob(errors)

    async def keep(self, job_id: str, given: WebhookParameters) -> tuple[WebhookReceiver, ...]:
        """The receivers, with a reference in the place of a secret.

        Args:
            job_id: Of the job.
            given: As `check` accepts them.

        Raises:
            InvalidJob: The secret cannot be kept, or there is none of that name.
            Unavailable: The database is not available.
        """
        urls = _urls(given)
        if not urls:
            return ()
        try:
            reference = await self._reference(job_id, given)
        except Denied as error:
            raise InvalidJob([FieldError(_SECRET, str(error))]) from error
        return tuple(
            WebhookReceiver(
                url=url,
                secret=reference,
                retry_count=given.webhook_retry_count,
                timeout_seconds=given.webhook_timeout_seconds,
            )
            for url in urls
        )

    async def has_other_secret(self, job_id: str, given: WebhookParameters) -> bool:
        """Whether the parameters bring another secret than those that a job was asked for with.

        Raises:
            Unavailable: The database is not available.
        """
        secret = given.webhook_secret
        return secret is not None and await self._secrets.is_other(job_id, secret)

    async def forget(self, receivers: Sequence[WebhookReceiver]) -> None:
        """Remove the secret of receivers that are not used.

        Raises:
            Unavailable: The database is not available.
        """
        for reference in {each.secret for each in receivers if each.secret is not None}:
            await self._secrets.forget(reference)

    async def _reference(self, job_id: str, given: WebhookParameters) -> str | None:
        if given.webhook_secret is not None:
            return await self._secrets.keep(job_id, given.webhook_secret)
        if given.webhook_secret_name is not None:
            return self._secrets.reference_of(given.webhook_secret_name)
        return None

    def _refusal(self, url: str) -> str | None:
        local = self._settings.local
        try:
            check_receiver(url, self._settings.hosts, local=local)
        except InvalidReceiver as refusal:
            return str(refusal)
        address = literal(urlsplit(url).hostname or "")
        if address is None or is_public(address) or (local and is_local(address)):
            return None
        return "names an address that is not of the public internet"


def _urls(given: WebhookParameters) -> Sequence[str]:
    if given.webhook_url is None:
        return ()
    urls = (given.webhook_url,) if isinstance(given.webhook_url, str) else given.webhook_url
    return tuple(dict.fromkeys(urls))


_LIMIT: Final = "--limit"
_ORGANISATION: Final = "--organisation"
"""No names of parameters."""


@dataclass(frozen=True, slots=True)
class PreparedJob:
    """A request whose every field has been checked."""

    order: JobInput
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
        runs: JobRuns,
    ) -> None:
        self.types = types
        self._inputs = inputs
        self._receivers = receivers
        self._runs = runs

    async def submit(
        self, request: JobRequest, organisation_id: int | None = None, reader: int | None = None
    ) -> StartedJob:
        """Start a job, or find the one that does the same; arguments as of `prepare`.

        Raises:
            InvalidJob: A field is wrong, or an input is missing; nothing was started.
            Unavailable: Database or blob store do not answer.
            TemporalUnavailable: Temporal does not answer.
        """
        return await self.start(await self.prepare(request, organisation_id, reader))

    async def prepare(
        self, request: JobRequest, organisation_id: int | None = None, reader: int | None = None
    ) -> PreparedJob:
        """Check a request and find its inputs; nothing is kept or started.

        Args:
            request: What is asked for.
            organisation_id: Organisation that the job belongs to; None: the installation.
            reader: Organisation whose files alone are read; None: all may be.

        Raises:
            InvalidJob: A field is wrong, or an input is missing.
            Unavailable: The blob store does not answer.
        """
        job_type = self._type(request.job_type)
        webhooks, given = divided(request.parameters)
        self._receivers.check(webhooks)
        if organisation_id is not None:
            given = {**job_type.of_organisation(organisation_id), **given}
        parameters = _checked_parameters(job_type, given)
        inputs = await self._inputs.resolve(job_type.inputs(parameters), reader)
        content = parameters.model_dump(mode="json")
        named = _identifying(content, request.limit, organisation_id)
        try:
            id = job_id(job_type.definition, named, inputs)
        except RuleViolation as error:
            raise InvalidJob([FieldError("parameters", str(error))]) from error
        order = JobInput(
            job_id=id,
            definition=job_type.definition,
            parameters=content,
            inputs=inputs,
            project=request.project,
            organisation_id=organisation_id,
            alias=request.alias,
            limit=request.limit,
            notices=True,
        )
        return PreparedJob(order, webhooks, request.rerun)

    async def start(self, job: PreparedJob) -> StartedJob:
        """Keep the secret of a checked request and start its job.

        Raises:
            InvalidJob: The secret cannot be kept.
            Unavailable: The database does not answer.
            TemporalUnavailable: Temporal does not answer.
        """
        receivers = await self._receivers.keep(job.order.job_id, job.webhooks)
        order = job.order.model_copy(update={"webhooks": receivers})
        started = await self._runs.start(order, rerun=job.rerun)
        if not receivers or started.created:
            return started
        await self._receivers.forget(receivers)
        note = (
            "webhook_url is not used: the job was asked for before, and only the request that "
            "starts a job or its rerun names the receivers"
        )
        return started.model_copy(update={"notes": (*started.notes, note)})

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
        parameters = _checked_parameters(job_type, {**record.parameters, **own})
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

    def file_of(self, job_type: str, name: str) -> tuple[str, Sequence[str]]:
        """The parameter that names a file, and names of files that belong to the file.

        Raises:
            InvalidJob: The type takes no file.
        """
        found = self._type(job_type)
        if found.file_parameter is None:
            raise InvalidJob([FieldError("file", f"{job_type} takes no file")])
        return found.file_parameter, found.beside(name)

    def _type(self, name: str) -> JobType[Any]:
        found = self.types.get(name)
        if found is None:
            known = ", ".join(sorted(self.types)) or "none"
            raise InvalidJob(
                [FieldError("job_type", f"{name!r} is not installed; there are: {known}")]
            )
        return found


def _checked_parameters(job_type: JobType[Any], given: Mapping[str, Any]) -> Any:
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


def _identifying(
    parameters: JsonObject, limit: int | None, organisation_id: int | None
) -> JsonObject:
    """What makes a job the same: a trial run is another one than the whole, and two organisations
    share none."""
    more = {_LIMIT: limit, _ORGANISATION: organisation_id}
    return {**parameters, **{name: value for name, value in more.items() if value is not None}}
