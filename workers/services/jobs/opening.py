"""The service of jobs over what a process has opened."""

from collections.abc import AsyncGenerator, Mapping, Sequence
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING, Final

from activities.jobs.api import JobTypes
from adapters.database.jobs.store import SqlJobStore
from adapters.database.jobs.webhooks import SqlWebhookLog
from workers.resources.blobs import open_blobs
from workers.resources.common import Resources
from workers.resources.jobs import webhook_secrets
from workers.services.identity import OPERATOR, Identity
from workers.services.jobs.inputs import JobInputs
from workers.services.jobs.queries import JobQueries
from workers.services.jobs.receivers import WebhookReceivers
from workers.services.jobs.redelivery import Redelivery
from workers.services.jobs.runs import JobRuns
from workers.services.jobs.service import JobService
from workers.services.jobs.submission import JobSubmission
from workers.services.runs import TemporalRuns
from workers.settings.common import BlobSettings
from workers.settings.jobs import TierSettings
from workers.settings.webhooks import WebhookSettings

if TYPE_CHECKING:
    from temporalio.client import Client

_SECONDS_TO_ANSWER: Final = 2.0
"""A worker answers at once; without one the table says how far a job is."""
TIERS: Final[Sequence[str]] = ("bronze", "silver", "gold")


def job_service(
    environment: Mapping[str, str],
    client: "Client",
    resources: Resources,
    types: JobTypes | None = None,
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
    blobs = BlobSettings.read(environment)
    tiers = dict(zip(TIERS, map(open_blobs, TierSettings.read(environment).of(blobs)), strict=True))
    types = JobTypes.installed() if types is None else types
    database = resources.database
    store, runs = SqlJobStore(database), JobRuns(client)
    submission = JobSubmission(
        types,
        JobInputs(tiers["bronze"], resources.scratch),
        WebhookReceivers(webhook_secrets(settings, database), settings),
        runs,
    )
    temporal = TemporalRuns(client, environment, seconds_to_answer=_SECONDS_TO_ANSWER)
    queries = JobQueries(store, SqlWebhookLog(database), temporal, types)
    return JobService(queries, submission, runs, Redelivery(client), tiers)


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
