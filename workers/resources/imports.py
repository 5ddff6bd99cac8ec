"""What the `imports` pipeline uses beyond the adapters that all pipelines share."""

from dataclasses import dataclass

from temporalio.client import Client

from adapters.database import Database
from adapters.database.imports.store import SqlImportStore
from adapters.database.imports.views import SqlImportTasks
from adapters.ports import Runs
from adapters.temporal.runs import TemporalRunEnds
from workers.settings.imports import RunSettings


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
