"""What the `jobs` pipeline uses beyond the adapters that all pipelines share."""

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import timedelta
from pathlib import Path
from typing import Any

from activities.jobs.api import JobPorts, JobResources, JobTypes
from activities.jobs.catalogue import Catalogue
from activities.jobs.folders import StageFolders
from activities.jobs.geopackages import InstalledFeatures
from activities.jobs.ports import Features
from activities.jobs.store import SqlJobLeftovers, SqlJobStore
from activities.jobs.webhook_store import SqlWebhookLog, SqlWebhookSecrets
from activities.jobs.webhooks import ReceiverRules, WebhookPorts
from adapters.database.engine import Database
from adapters.files.vectors.reader import VectorFiles
from adapters.ports.blobs import Blobs
from adapters.ports.spatial import Vectors
from adapters.webhooks import HttpWebhooks
from workers.jobs.settings import JobSettings, WebhookSettings
from workers.shared.settings.common import BlobSettings
from workers.shared.tables import open_blobs


@dataclass(frozen=True)
class JobsOpened:
    """The tables of jobs, what tasks are given, and how many run at once."""

    store: SqlJobStore
    ports: JobPorts
    light_slots: int
    heavy_slots: int
    light_tuned: bool
    """Whether fewer light tasks begin while memory or processor are scarce."""
    webhooks: WebhookPorts
    blobs: Blobs
    """The container with plans and results of stages."""
    leftovers: SqlJobLeftovers
    keep: timedelta
    """Jobs that have ended."""


def job_resources(
    settings: JobSettings,
    blob_settings: BlobSettings,
    blobs: Blobs,
    database: Database,
    scratch: Path,
    types: JobTypes | None = None,
    more: Mapping[type, Any] | None = None,
    webhooks: WebhookSettings | None = None,
) -> JobsOpened:
    """Wire the adapters of jobs.

    Args:
        settings: Of its workers.
        blob_settings: Where the containers of its data are.
        blobs: The container of documents; plans and results of stages lie there.
        database: Where records and the catalogue of spatial data are kept.
        scratch: Folder for temporary files.
        types: Job types; None: those that are installed.
        more: Further ports of tasks, by protocol.
        webhooks: Which receivers are accepted; None: as without settings.
    """
    bronze, silver, gold = map(open_blobs, settings.of(blob_settings))
    store = SqlJobStore(database)
    resources = JobResources(
        bronze=bronze,
        silver=silver,
        gold=gold,
        catalogue=Catalogue(database),
        scratch=scratch,
        more={
            Vectors: VectorFiles(memory_bytes=settings.heavy_memory),
            Features: InstalledFeatures(database, silver, scratch),
            **(more or {}),
        },
    )
    return JobsOpened(
        store=store,
        ports=JobPorts(
            types=JobTypes.installed() if types is None else types,
            resources=resources,
            folders=StageFolders(blobs, scratch),
            store=store,
            result_bytes=settings.result_bytes,
        ),
        light_slots=settings.light_slots,
        heavy_slots=settings.heavy,
        light_tuned=settings.light_tuned,
        webhooks=webhook_ports(webhooks or WebhookSettings.read({}), database),
        blobs=blobs,
        leftovers=SqlJobLeftovers(database),
        keep=timedelta(days=settings.keep_days),
    )


def webhook_ports(settings: WebhookSettings, database: Database) -> WebhookPorts:
    """Wire the adapters of webhooks."""
    return WebhookPorts(
        HttpWebhooks(local=settings.receivers.local),
        webhook_secrets(settings, database),
        SqlWebhookLog(database),
        ReceiverRules(settings.receivers.hosts, settings.receivers.local),
    )


def webhook_secrets(settings: WebhookSettings, database: Database) -> SqlWebhookSecrets:
    """The secrets of webhooks, under the keys of the settings."""
    return SqlWebhookSecrets(database, settings.receivers.secret_keys, settings.named_secrets)
