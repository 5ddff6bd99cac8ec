"""Runs that Temporal has accepted and no worker has begun are in the table of runs as well."""

import asyncio
from contextlib import suppress
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any, Final

from temporalio.client import Client, Interceptor, OutboundInterceptor, StartWorkflowInput
from temporalio.common import TypedSearchAttributes

from adapters.database.runs import SqlRuns
from adapters.ports.errors import PortError
from workers import catalogue
from workers.shared.register import recognise
from workflows.shared import attributes
from workflows.shared.runs import ACCEPTED, RunRecord, RunState

if TYPE_CHECKING:
    from temporalio.client import WorkflowHandle

    from adapters.database.engine import Database


PATIENCE_SECONDS: Final = 1.0
"""How long a start waits for its row: a database that hangs must not hold up an intake."""
_MOST: Final = 100
"""Rows that are being written at once; the rows of further starts are left to their first step."""


def noting_starts(client: Client, database: "Database") -> Client:
    """A client whose starts of listed runs are noted in the table of runs.

    The first step of a run writes its row. Until then lists show this one. If it cannot be written,
    the run is listed from its first step on.

    Args:
        client: Of Temporal.
        database: With the table of runs.
    """
    config = client.config(active_config=True)
    config["interceptors"] = [*config["interceptors"], _Noting(SqlRuns(database))]
    # What they add is in the configuration already; only workers ask them for more.
    config["plugins"] = []
    return Client(**config)


class _Noting(Interceptor):
    def __init__(self, rows: SqlRuns) -> None:
        self._rows = rows

    def intercept_client(self, next: OutboundInterceptor) -> OutboundInterceptor:
        """Add to every start."""
        return _NotedStarts(next, self._rows)


class _NotedStarts(OutboundInterceptor):
    def __init__(self, next: OutboundInterceptor, rows: SqlRuns) -> None:
        super().__init__(next)
        self._rows = rows
        self._writing = set[asyncio.Task[None]]()

    async def start_workflow(self, input: StartWorkflowInput) -> "WorkflowHandle[Any, Any]":
        """Note a start that Temporal has accepted."""
        handle = await super().start_workflow(input)
        record = _accepted(input)
        if record is not None and len(self._writing) < _MOST:
            # Not interrupted: that would leave its connection behind.
            writing = asyncio.create_task(self._write(record))
            self._writing.add(writing)
            writing.add_done_callback(self._writing.discard)
            await asyncio.wait({writing}, timeout=PATIENCE_SECONDS)
        return handle

    async def _write(self, record: RunRecord) -> None:
        with suppress(PortError):
            await self._rows.accept(record)


def _accepted(start: StartWorkflowInput) -> RunRecord | None:
    """The row of a run that has not begun; None: it is not listed as a run of its own."""
    run = recognise(catalogue.PIPELINES, start.id)
    if run is None or run.kind.row is None:
        return None
    row, now = run.kind.row(run.key), datetime.now(UTC)
    found = start.search_attributes
    given = found if isinstance(found, TypedSearchAttributes) else TypedSearchAttributes.empty
    return RunRecord(
        id=row.id,
        pipeline=run.pipeline.name,
        kind=given.get(attributes.DOCUMENT_TYPE) or start.workflow,
        key=row.key,
        short=row.short,
        state=RunState.WAITING,
        own_state=ACCEPTED,
        reason="accepted; a worker has not begun it yet",
        counts={},
        links={},
        project=given.get(attributes.PROJECT_ID),
        organisation_id=attributes.organisation_of(given),
        answers_at=start.id,
        created_at=now,
        changed_at=now,
    )
