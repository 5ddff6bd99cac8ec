"""What operations on imports use: status rows, progress marks, rejected messages, documents."""

from collections.abc import AsyncGenerator, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING

from adapters.ports.blobs import Blobs
from adapters.ports.records import RejectedMessages

if TYPE_CHECKING:
    from activities.imports.store import SqlImportStore
    from activities.imports.views import SqlImportTasks


@dataclass(frozen=True)
class ImportAccess:
    """Status rows, marks, rejected messages and documents of one installation."""

    tasks: "SqlImportTasks"
    store: "SqlImportStore"
    rejected: RejectedMessages
    blobs: Blobs


@asynccontextmanager
async def open_tasks(environment: Mapping[str, str]) -> AsyncGenerator["SqlImportTasks"]:
    """Status rows alone, for what only reads them.

    Raises:
        SettingsError: `DATABASE_URL` is missing or wrong.
        SchemaBehind: The database waits for `docflow db upgrade`.
    """
    from activities.imports.views import SqlImportTasks
    from workers.shared.tables import open_tables

    async with open_tables(environment) as database:
        yield SqlImportTasks(database)


@asynccontextmanager
async def open_imports(environment: Mapping[str, str]) -> AsyncGenerator[ImportAccess]:
    """Open database and blob store.

    Raises:
        SettingsError: A setting is missing or wrong.
        SchemaBehind: The database waits for `docflow db upgrade`.
    """
    from activities.imports.store import SqlImportStore
    from activities.imports.views import SqlImportTasks
    from adapters.database.records import SqlRejectedMessages
    from workers.shared.settings.check import check_settings
    from workers.shared.settings.common import BlobSettings, DatabaseSettings
    from workers.shared.tables import open_blobs, open_tables

    check_settings(environment, BlobSettings, DatabaseSettings)
    async with open_tables(environment) as database:
        yield ImportAccess(
            SqlImportTasks(database),
            SqlImportStore(database),
            SqlRejectedMessages(database),
            open_blobs(BlobSettings.read(environment)),
        )
