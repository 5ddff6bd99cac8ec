"""What operations on imports use: status rows, progress marks, rejected messages, documents."""

from collections.abc import AsyncGenerator, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass

from adapters.database.imports.store import SqlImportStore
from adapters.database.imports.views import SqlImportTasks
from adapters.ports import Blobs, RejectedMessages
from workers.resources import common


@dataclass(frozen=True)
class ImportAccess:
    """Status rows, marks, rejected messages and documents of one installation."""

    tasks: SqlImportTasks
    store: SqlImportStore
    rejected: RejectedMessages
    blobs: Blobs


@asynccontextmanager
async def open_imports(environment: Mapping[str, str]) -> AsyncGenerator[ImportAccess]:
    """Open database and blob store.

    Raises:
        SettingsError: A setting is missing or wrong.
        SchemaBehind: The database waits for `docflow db upgrade`.
    """
    async with common.open_resources(environment) as opened:
        yield ImportAccess(
            SqlImportTasks(opened.database),
            SqlImportStore(opened.database),
            opened.rejected,
            opened.blobs,
        )
