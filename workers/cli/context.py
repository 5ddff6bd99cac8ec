"""The context of a command; everything heavy is imported when it is opened."""

import os
from collections.abc import Mapping
from contextlib import AbstractAsyncContextManager
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

import typer

if TYPE_CHECKING:
    from workers.services.imports.access import ImportAccess
    from workers.services.imports.queue import ServiceBusQueue
    from workers.services.imports.runs import ImportRuns


@dataclass(frozen=True)
class CliContext:
    """Settings of an invocation, and who typed it."""

    environment: Mapping[str, str] = field(default_factory=lambda: os.environ)

    def resources(self) -> "AbstractAsyncContextManager[ImportAccess]":
        """Database and blob store of imports.

        Raises:
            SettingsError: A setting is missing.
            SchemaBehind: The database waits for `docflow db upgrade`.
        """
        from workers.services.imports import access

        return access.open_imports(self.environment)

    def queue(self) -> "AbstractAsyncContextManager[ServiceBusQueue]":
        """The Service Bus queue of import messages.

        Raises:
            SettingsError: A setting is missing.
        """
        from workers.services.imports import queue
        from workers.settings.common import QueueSettings

        return queue.open_queue(QueueSettings.read(self.environment))

    async def runs(self) -> "ImportRuns":
        """Import runs in Temporal.

        Raises:
            TemporalUnreachable: Temporal does not answer.
        """
        from workers.services.imports import runs

        return await runs.open_runs(self.environment)

    @property
    def user(self) -> str | None:
        """Who types, for the record of answers."""
        names = (self.environment.get(name) for name in ("USER", "LOGNAME", "USERNAME"))
        return next((name[:200] for name in names if name), None)


def cli_context(context: typer.Context) -> CliContext:
    """The context of this invocation; tests pass their own as `obj`."""
    return context.ensure_object(CliContext)
