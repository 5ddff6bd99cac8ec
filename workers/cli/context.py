"""The context of a command; everything heavy is imported when it is opened."""

import os
from collections.abc import Awaitable, Callable, Mapping
from contextlib import AbstractAsyncContextManager
from dataclasses import dataclass, field

import typer

from workers.cli.imports.ports import ImportQueue, Resources, Runs
from workers.settings import QueueSettings


def _open_resources(environment: Mapping[str, str]) -> AbstractAsyncContextManager[Resources]:
    from workers.resources import open_resources

    return open_resources(environment)


def _open_queue(settings: QueueSettings) -> AbstractAsyncContextManager[ImportQueue]:
    from workers.services.imports.queue import open_queue

    return open_queue(settings)


async def _open_runs(environment: Mapping[str, str]) -> Runs:
    from workers.services.imports.runs import open_runs

    return await open_runs(environment)


@dataclass(frozen=True)
class CliContext:
    """Settings, and how to reach everything they name."""

    environment: Mapping[str, str] = field(default_factory=lambda: os.environ)
    open_resources: Callable[[Mapping[str, str]], AbstractAsyncContextManager[Resources]] = (
        _open_resources
    )
    open_queue: Callable[[QueueSettings], AbstractAsyncContextManager[ImportQueue]] = _open_queue
    open_runs: Callable[[Mapping[str, str]], Awaitable[Runs]] = _open_runs

    def resources(self) -> AbstractAsyncContextManager[Resources]:
        """Database and blob store.

        Raises:
            SettingsError: A setting is missing.
            SchemaBehind: The database waits for `docflow db upgrade`.
        """
        return self.open_resources(self.environment)

    def queue(self) -> AbstractAsyncContextManager[ImportQueue]:
        """The Service Bus queue.

        Raises:
            SettingsError: A setting is missing.
        """
        return self.open_queue(QueueSettings.read(self.environment))

    async def runs(self) -> Runs:
        """Temporal.

        Raises:
            TemporalUnreachable: Nobody answers.
        """
        return await self.open_runs(self.environment)

    @property
    def user(self) -> str | None:
        """Who types, for the record of answers."""
        names = (self.environment.get(name) for name in ("USER", "LOGNAME", "USERNAME"))
        return next((name[:200] for name in names if name), None)


def cli_context(context: typer.Context) -> CliContext:
    """The context of this invocation; tests pass their own as `obj`."""
    return context.ensure_object(CliContext)
