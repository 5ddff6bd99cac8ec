"""What the `imports` pipeline uses beyond the adapters that all pipelines share."""

from collections.abc import Mapping
from dataclasses import dataclass

from temporalio.client import Client

from activities.imports.store import SqlImportStore
from activities.imports.views import SqlImportTasks
from adapters.database.engine import Database
from adapters.database.foreign import ForeignDatabases
from adapters.ports.records import Runs
from adapters.signed_webhook import SignedWebhook
from adapters.temporal import TemporalRunEnds
from adapters.types.targets import TargetTables
from workers.imports.settings import RunSettings


@dataclass(frozen=True)
class ImportResources:
    """The tables of imports."""

    store: SqlImportStore
    tasks: SqlImportTasks
    runs: RunSettings
    ends: Runs
    """How runs ended in Temporal."""
    databases: ForeignDatabases
    """Of teams, whose tables rows go to."""
    receivers: Mapping[str, SignedWebhook]
    """Who is notified of files with accepted rows."""


def import_resources(
    database: Database,
    client: Client,
    runs: RunSettings,
    databases: ForeignDatabases | None = None,
    receivers: Mapping[str, SignedWebhook] | None = None,
) -> ImportResources:
    """Wire the adapters of imports."""
    databases = databases or ForeignDatabases(database)
    return ImportResources(
        SqlImportStore(database, targets=TargetTables(databases)),
        SqlImportTasks(database),
        runs,
        TemporalRunEnds(client),
        databases,
        receivers or {},
    )
