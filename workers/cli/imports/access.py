"""What commands about imports use: status rows, marks, rejected messages, documents."""

from collections.abc import AsyncGenerator, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass

from adapters.database.imports.store import SqlImportStore
from adapters.database.imports.views import SqlImportTasks
from adapters.ports import Blobs, RejectedMessages
from workers.resources import common


@dataclass(frozen=True)
class ImportAccess:
    """The adapters of imports that are opened for one command."""

    tasks: SqlImportTasks
    store: SqlImportStore
    rejected: RejectedMessages
    blobs: Blobs


@asynccontextmanager
async def open_resources(environment: Mapping[str, str]) -> AsyncGenerator[ImportAccess]:
    """Open database and blob store.

    Raises:
        SettingsError: A setting is missing or makes no sense.
        SchemaBehind: The database waits for `docflow db upgrade`.
    """
    async with common.open_resources(environment) as opened:
        yield ImportAccess(
            SqlImportTasks(opened.database),
            SqlImportStore(opened.database),
            opened.rejected,
            opened.blobs,
        )
