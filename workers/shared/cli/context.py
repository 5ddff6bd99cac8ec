"""The context of a command; everything heavy is imported when it is opened."""

import os
from collections.abc import Mapping
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

import typer

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator

    from adapters.database.engine import Database
    from adapters.ports.access import Act
    from adapters.ports.records import RejectedMessages
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

    def rejected(self) -> "AbstractAsyncContextManager[RejectedMessages]":
        """The record of rejected messages.

        Raises:
            SettingsError: `DATABASE_URL` is missing or wrong.
            SchemaBehind: The database waits for `docflow db upgrade`.
        """
        from workers.shared import tables as rejected

        return rejected.open_rejected(self.environment)

    async def runs(self) -> "TemporalRuns":
        """Runs of every pipeline in Temporal.

        Raises:
            TemporalUnreachable: Temporal does not answer.
        """
        from workers.shared.services import runs

        return await runs.open_runs(self.environment)

    @asynccontextmanager
    async def noted(self, database: "Database", action: str, object: str) -> "AsyncGenerator[Act]":
        """Note in the audit what a command changes, before it does so; the block may add to it.

        Args:
            database: Where the audit is.
            action: The command, as it is typed.
            object: What it changes.

        Raises:
            Unavailable: The database is not available: nothing was changed.
        """
        import socket

        from adapters.database.access import SqlAudit
        from adapters.ports.access import Act

        audit, act = SqlAudit(database), Act(self.user, "command", action, object=object)
        act.from_where = socket.gethostname()
        await audit.begin(act)
        try:
            yield act
        except Exception:
            await audit.end(act, 1)
            raise
        await audit.end(act, 0)

    @property
    def user(self) -> str:
        """Who types, for the record of answers."""
        from workers.shared.services.identity import acting_user

        return acting_user(self.environment)


def cli_context(context: typer.Context) -> CliContext:
    """The context of this invocation; tests pass their own as `obj`."""
    return context.ensure_object(CliContext)
