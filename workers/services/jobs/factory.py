"""The service of jobs over what a process has opened."""

from collections.abc import AsyncGenerator, Iterator, Mapping, Sequence
from contextlib import asynccontextmanager
from functools import cached_property
from typing import TYPE_CHECKING, Any, Final

from activities.jobs.api import JobType, JobTypes
from activities.jobs.folders import StageFolders
from adapters.database.jobs.aliases import SqlJobAliases
from adapters.database.jobs.store import SqlJobStore
from adapters.database.jobs.webhooks import SqlWebhookLog
from adapters.ports import Blobs
from workers.resources.blobs import open_blobs
from workers.resources.common import Resources
from workers.resources.jobs import webhook_secrets
from workers.services.identity import OPERATOR, Identity
from workers.services.jobs.inputs import JobInputs
from workers.services.jobs.intake import JobIntake
from workers.services.jobs.queries import JobQueries
from workers.services.jobs.receivers import WebhookReceivers
from workers.services.jobs.redelivery import Redelivery
from workers.services.jobs.runs import JobRuns
from workers.services.jobs.service import JobService
from workers.services.jobs.submission import JobSubmission
from workers.services.runs import TemporalRuns
from workers.settings.blobs import BlobSettings
from workers.settings.jobs import TierSettings
from workers.settings.webhooks import WebhookSettings

if TYPE_CHECKING:
    from temporalio.client import Client

_SECONDS_TO_ANSWER: Final = 2.0
"""A worker answers at once; without one the table says how far a job is."""
TIERS: Final[Sequence[str]] = ("bronze", "silver", "gold")


class InstalledTypes(Mapping[str, JobType[Any]]):
    """The job types that are installed, imported when they are first asked for: some bring
    libraries that take a moment to load, and most commands need none of them."""

    @cached_property
    def _types(self) -> JobTypes:
        return JobTypes.installed()

    def __getitem__(self, name: str) -> JobType[Any]:
        return self._types[name]

    def __iter__(self) -> Iterator[str]:
        return iter(self._types)

    def __len__(self) -> int:
        return len(self._types)


def job_service(
    environment: Mapping[str, str],
    client: "Client",
    resources: Resources,
    types: Mapping[str, JobType[Any]] | None = None,
) -> JobService:
    """Put the service together.

    Args:
        environment: Settings of blobs and webhooks.
        client: Of Temporal.
        resources: What the process has opened.
        types: Job types; None: those that are installed.

    Raises:
        SettingsError: A setting is missing or wrong.
    """
    settings = WebhookSettings.read(environment)
    named = TierSettings.read(environment).of(BlobSettings.read(environment))
    tiers: dict[str, Blobs] = {}
    for name, each in zip(TIERS, named, strict=True):
        tiers[name] = open_blobs(each)
    types = InstalledTypes() if types is None else types
    database = resources.database
    store = SqlJobStore(database)
    runs = JobRuns(client, store, StageFolders(resources.blobs, resources.scratch))
    submission = JobSubmission(
        types,
        JobInputs(tiers["bronze"], resources.scratch),
        WebhookReceivers(webhook_secrets(settings, database), settings),
        runs,
    )
    temporal = TemporalRuns(client, environment, seconds_to_answer=_SECONDS_TO_ANSWER)
    queries = JobQueries(store, SqlWebhookLog(database), temporal, types)
    return JobService(queries, submission, runs, Redelivery(client), tiers)


def job_intake(
    environment: Mapping[str, str],
    client: "Client",
    resources: Resources,
    queue: str,
    types: Mapping[str, JobType[Any]] | None = None,
) -> JobIntake:
    """Put the intake of queue messages together; other arguments and errors as of `job_service`.

    Args:
        queue: Name of the queue.
    """
    service = job_service(environment, client, resources, types)
    aliases = SqlJobAliases(resources.database)
    return JobIntake(service.submission, aliases, resources.rejected, client, queue=queue)


@asynccontextmanager
async def open_service(
    environment: Mapping[str, str],
) -> AsyncGenerator[tuple[JobService, Identity]]:
    """The service for an operator at a terminal: who has the settings may do everything.

    Raises:
        SettingsError: A setting is missing or wrong.
        SchemaBehind: The database waits for `docflow db upgrade`.
        TemporalUnreachable: Temporal does not answer.
    """
    from workers.connect import connect
    from workers.resources.common import open_resources

    async with open_resources(environment) as resources:
        service = job_service(environment, await connect(), resources)
        yield service, Identity("operator", (), frozenset({OPERATOR}))
