"""What the `imports` pipeline uses beyond the adapters that all pipelines share."""

from dataclasses import dataclass

from temporalio.client import Client

from activities.imports.store import SqlImportStore
from activities.imports.views import SqlImportTasks
from adapters.database.engine import Database
from adapters.ports.records import Runs
from adapters.temporal import TemporalRunEnds
from workers.imports.settings import RunSettings


@dataclass(frozen=True)
class ImportResources:
    """The tables of imports."""

    store: SqlImportStore
    tasks: SqlImportTasks
    runs: RunSettings
    ends: Runs
    """How runs ended in Temporal."""


def import_resources(database: Database, client: Client, runs: RunSettings) -> ImportResources:
    """Wire the adapters of imports."""
    return ImportResources(
        SqlImportStore(database), SqlImportTasks(database), runs, TemporalRunEnds(client)
    )
