"""The service and the intake of jobs over what a process has opened, and their bridge."""

import asyncio
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Final

from activities.jobs.api import JobTypes
from activities.jobs.folders import StageFolders
from activities.jobs.store import SqlJobAliases, SqlJobStore
from activities.jobs.webhook_store import SqlWebhookLog
from adapters.ports.blobs import Blobs
from workers.jobs.intake import JobIntake
from workers.jobs.resources import webhook_secrets
from workers.jobs.runs import JobRuns
from workers.jobs.service import InstalledTypes, JobQueries, JobService
from workers.jobs.settings import JobQueueSettings, TierSettings, WebhookSettings
from workers.jobs.submission import JobInputs, JobSubmission, WebhookReceivers
from workers.shared.bridges.consumer import BridgeTotals
from workers.shared.bridges.service_bus import ServiceBusBridge
from workers.shared.register import Context
from workers.shared.resources import Resources
from workers.shared.services.quotas import Quotas
from workers.shared.services.runs import TemporalRuns
from workers.shared.settings.common import BlobSettings
from workers.shared.tables import open_blobs

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
    named = TierSettings.read(environment).of(BlobSettings.read(environment))
    tiers: dict[str, Blobs] = {}
    for name, each in zip(TIERS, named, strict=True):
        tiers[name] = open_blobs(each)
    installed = InstalledTypes() if types is None else types
    database = resources.database
    store = SqlJobStore(database)
    folders = StageFolders(resources.blobs, resources.scratch)
    runs = JobRuns(client, store, folders, Quotas.read(environment, database))
    submission = JobSubmission(
        installed,
        JobInputs(tiers["bronze"], resources.scratch),
        WebhookReceivers(webhook_secrets(settings, database), settings.receivers),
        runs,
    )
    temporal = TemporalRuns(client, environment, seconds_to_answer=_SECONDS_TO_ANSWER)
    queries = JobQueries(store, SqlWebhookLog(database), temporal, installed)
    return JobService(queries, submission, runs, client, tiers)


def job_intake(
    environment: Mapping[str, str],
    client: "Client",
    resources: Resources,
    queue: str,
    types: JobTypes | None = None,
) -> JobIntake:
    """Put the intake of queue messages together; other arguments and errors as of `job_service`.

    Args:
        queue: Name of the queue.
    """
    service = job_service(environment, client, resources, types)
    aliases = SqlJobAliases(resources.database)
    return JobIntake(service.submission, aliases, resources.rejected, client, queue=queue)


async def receive(
    context: Context, settings: JobQueueSettings, stop: asyncio.Event, drain: bool
) -> BridgeTotals:
    """Receive messages that ask for jobs and start them; the entry point of the register."""
    intake = job_intake(context.environment, context.client, context.resources, settings.queue_name)
    bridge = ServiceBusBridge(settings, intake.accept, ready=intake.ready, health=context.health)
    return await bridge.run(stop, drain=drain)
