"""What commands about imports use: tables and documents, the queue, Temporal."""

from contextlib import AbstractAsyncContextManager
from typing import TYPE_CHECKING

from workers.cli.context import CliContext

if TYPE_CHECKING:
    from adapters.database.imports.views import SqlImportTasks
    from workers.services.imports.access import ImportAccess
    from workers.services.imports.runs import ImportRuns
    from workers.services.service_bus import ServiceBusQueue


def open_imports(cli: CliContext) -> "AbstractAsyncContextManager[ImportAccess]":
    """Status rows, progress marks, rejected messages and documents.

    Raises:
        SettingsError: A setting is missing.
        SchemaBehind: The database waits for `docflow db upgrade`.
    """
    from workers.services.imports import access

    return access.open_imports(cli.environment)


def open_tasks(cli: CliContext) -> "AbstractAsyncContextManager[SqlImportTasks]":
    """Status rows.

    Raises:
        SettingsError: `DATABASE_URL` is missing or wrong.
        SchemaBehind: The database waits for `docflow db upgrade`.
    """
    from workers.services.imports import access

    return access.open_tasks(cli.environment)


def open_queue(cli: CliContext) -> "AbstractAsyncContextManager[ServiceBusQueue]":
    """The Service Bus queue of import messages.

    Raises:
        SettingsError: A setting is missing.
    """
    from workers.services import service_bus
    from workers.settings.imports import QueueSettings

    return service_bus.open_queue(QueueSettings.read(cli.environment))


async def open_runs(cli: CliContext) -> "ImportRuns":
    """Import runs in Temporal.

    Raises:
        TemporalUnreachable: Temporal does not answer.
    """
    from workers.services.imports import runs

    return await runs.open_runs(cli.environment)
