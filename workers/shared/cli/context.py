"""The context of a command; everything heavy is imported when it is opened."""

import os
from collections.abc import Mapping
from contextlib import AbstractAsyncContextManager
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

import typer

if TYPE_CHECKING:
    from adapters.database.engine import Database
    from adapters.ports.access import Act
    from workers.shared.services.runs import TemporalRuns


@dataclass(frozen=True)
class CliContext:
    """Settings of an invocation, and who typed it."""

    environment: Mapping[str, str] = field(default_factory=lambda: os.environ)

    def tables(self) -> "AbstractAsyncContextManager[Database]":
        """The database alone.

        Raises:
            SettingsError: `DATABASE_URL` is missing or wrong.
            SchemaBehind: The database waits for `docflow db upgrade`.
        """
        from workers.shared import tables

        return tables.open_tables(self.environment)

    async def runs(self) -> "TemporalRuns":
        """Runs of every pipeline in Temporal.

        Raises:
            TemporalUnreachable: Temporal does not answer.
        """
        from workers.shared.services import runs

        return await runs.open_runs(self.environment)

    def noted(
        self, database: "Database", action: str, object: str
    ) -> "AbstractAsyncContextManager[Act]":
        """Note in the audit what a command changes; as `noted` of the service."""
        from workers.shared.services.access import noted

        return noted(database, self.environment, action, object)

    @property
    def user(self) -> str:
        """Who types, for the record of answers."""
        from workers.shared.services.identity import acting_user

        return acting_user(self.environment)


def cli_context(context: typer.Context) -> CliContext:
    """The context of this invocation; tests pass their own as `obj`."""
    return context.ensure_object(CliContext)
