"""Fakes of the services that `docflow` uses, and the command that reaches them."""

import re
from collections.abc import AsyncGenerator, Collection, Generator, Mapping, Sequence
from contextlib import asynccontextmanager, contextmanager
from dataclasses import dataclass, field
from datetime import UTC, datetime
from types import SimpleNamespace
from typing import Any

import pytest
from temporalio.client import WorkflowExecution, WorkflowExecutionStatus
from temporalio.common import SearchAttributeKey, SearchAttributePair, TypedSearchAttributes
from typer.testing import Result

from activities.imports.views import ImportTaskRow
from adapters.database import runs as table
from tests.support.cli import SETTINGS, run_docflow
from tests.support.memory.rejected import MemoryRejectedMessages
from workers.imports import bridge
from workers.imports.register import IMPORTS
from workers.imports.settings import QueueSettings
from workers.shared import tables
from workers.shared.cli.context import CliContext
from workers.shared.errors import TemporalUnreachable
from workers.shared.register import Pipeline, PipelineView
from workers.shared.services import runs, service_bus
from workers.shared.services.errors import ServiceError
from workers.shared.services.service_bus import QueueSnapshot
from workers.shared.settings.common import DatabaseSettings
from workflows.imports.messages import DocumentType, Strategy
from workflows.imports.runs import (
    Counts,
    ImportState,
)
from workflows.shared import attributes
from workflows.shared.runs import RunFilter, RunRecord, RunState

NOW = datetime(2026, 2, 3, 10, 15, tzinfo=UTC)


def a_row(project_id: str, task_id: str, **changes: Any) -> ImportTaskRow:
    """The status row of a completed import."""
    known: dict[str, Any] = {
        "project_id": project_id,
        "task_id": task_id,
        "document_type": DocumentType.EQUIPMENT,
        "state": ImportState.COMPLETED,
        "strategy": Strategy.MERGE,
        "path": "local",
        "counts": Counts(),
        "problem_count": 0,
        "problems": (),
        "workflow_id": f"import/{project_id}/{task_id}",
        **dict.fromkeys(("created_at", "started_at", "updated_at"), NOW),
    }
    return ImportTaskRow(**{**known, **changes})


class FakeTasks:
    """Status rows in a list."""

    def __init__(self) -> None:
        self.rows: list[ImportTaskRow] = []

    async def get(self, project_id: str, task_id: str) -> ImportTaskRow | None:
        found = [row for row in self.rows if (row.project_id, row.task_id) == (project_id, task_id)]
        return found[0] if found else None


@dataclass
class FakeTable:
    """The table of runs: what the status rows of imports make of it, and further rows."""

    tasks: FakeTasks
    more: list[RunRecord] = field(default_factory=list[RunRecord])

    @property
    def rows(self) -> list[RunRecord]:
        return [*map(a_run_of, self.tasks.rows), *self.more]

    async def list(self, wanted: RunFilter) -> Sequence[RunRecord]:
        rows = sorted(self.rows, key=lambda row: row.changed_at, reverse=True)
        own = [row for row in rows if row.pipeline in (wanted.pipelines or ())]
        return [row for row in own if row.state is RunState.NEEDS_ATTENTION][: wanted.limit]

    async def of(self, ids: Collection[str]) -> Mapping[str, RunRecord]:
        return {row.id: row for row in self.rows if row.id in ids}


_STATES = {
    ImportState.RUNNING: RunState.RUNNING,
    ImportState.PARKED: RunState.NEEDS_ATTENTION,
    ImportState.COMPLETED: RunState.COMPLETED,
    ImportState.SKIPPED: RunState.SKIPPED,
    ImportState.FAILED: RunState.FAILED,
    ImportState.CANCELLED: RunState.CANCELLED,
    ImportState.TERMINATED: RunState.CANCELLED,
}


def a_run(id: str, pipeline: str, state: RunState, **changes: Any) -> RunRecord:
    """A row of the table of runs."""
    row = {
        **dict.fromkeys(("id", "key", "short", "answers_at"), id),
        **dict.fromkeys(("created_at", "changed_at"), NOW),
        "pipeline": pipeline,
        "kind": "any",
        "state": state,
        "own_state": state,
        "counts": {},
        "links": {},
        "ended_at": None if state.is_open else NOW,
    }
    return RunRecord(**{**row, **changes})


def a_run_of(row: ImportTaskRow) -> RunRecord:
    """What the table of runs has of an import."""
    return a_run(
        row.workflow_id,
        "imports",
        _STATES[row.state],
        key=row.workflow_id.partition("/")[2],
        short=row.task_id,
        kind=row.document_type,
        own_state=row.state,
        project=row.project_id,
        reason=row.reason,
        counts={name: value for name, value in row.counts.model_dump().items() if value},
    )


class FakeQueue:
    """Keeps what was sent."""

    def __init__(self) -> None:
        self.sent: list[tuple[bytes, str]] = []
        self.error: ServiceError | None = None

    async def send(self, body: bytes, message_id: str) -> None:
        if self.error is not None:
            raise self.error
        self.sent.append((body, message_id))

    async def depth(self, at_most: int) -> QueueSnapshot:
        if self.error is not None:
            raise self.error
        return QueueSnapshot(waiting=at_most, dead_letters=1, at_most=at_most)


def an_execution(
    workflow_id: str,
    state: str,
    status: WorkflowExecutionStatus = WorkflowExecutionStatus.RUNNING,
    pipeline: str = "imports",
) -> Any:
    """A run, as Temporal lists it."""
    keywords = {"Pipeline": pipeline, "DocumentType": "equipment", "State": state}

    async def memo() -> dict[str, Any]:
        return {"waits": "waits for the archive"} if state == "waiting" else {}

    return SimpleNamespace(
        id=workflow_id,
        status=status,
        start_time=NOW,
        typed_search_attributes=TypedSearchAttributes(
            [
                SearchAttributePair(SearchAttributeKey.for_keyword(name), value)
                for name, value in keywords.items()
            ]
        ),
        workflow_type="DocumentImport",
        close_time=None if status is WorkflowExecutionStatus.RUNNING else NOW,
        memo=memo,
    )


class FakeRuns:
    """Temporal: what it would answer."""

    place = "localhost:7233, default"

    def __init__(self) -> None:
        self.polling = 1
        self.counts: Mapping[ImportState, int] = {}
        self.pipelines = {
            "spreadsheets": PipelineView(workers=1, open=12, waiting=3),
            "batches": PipelineView(workers=2, open=45, waiting=1, counts={"loading": 44}),
            "jobs": PipelineView(workers=1, open=7, waiting=2, lanes={"light": 1, "heavy": 2}),
            "transfers": PipelineView(workers=1, open=3, waiting=0),
        }
        self.reasons: dict[str, str | ServiceError] = {}
        """What workers say of runs that wait, by workflow id."""
        self.executions: list[Any] = []
        """What lists find."""
        self.outages: list[Any] = []
        """What is open of them."""
        self.counted = 0
        self.queries: list[str] = []

    async def pipeline(self, pipeline: Pipeline) -> PipelineView:
        if pipeline.name in self.pipelines:
            return self.pipelines[pipeline.name]
        assert pipeline is IMPORTS
        states = {str(state): self.counts.get(state, 0) for state in IMPORTS.runs[0].states}
        return PipelineView(self.polling, 41_001, 1, states)

    async def query(self, workflow_id: str, name: str, result_type: type[Any]) -> Any:
        assert name == "status"
        reason = self.reasons.get(workflow_id)
        if isinstance(reason, ServiceError):
            raise reason
        return None if reason is None else SimpleNamespace(reason=reason)

    async def awaiting(self, query: str, limit: int) -> Sequence[WorkflowExecution]:
        return await self.list(f"NeedsAttention = true AND {query}", limit)

    async def list(self, query: str, limit: int) -> Sequence[WorkflowExecution]:
        self.queries.append(query)
        of_outages = "WorkflowType = 'Outage'" in query or "Pipeline = 'outages'" in query
        executions = self.outages if of_outages else self.executions
        return [each for each in executions if of_outages or _fits(each, query)]

    async def newest(self, ids: Collection[str]) -> Mapping[str, WorkflowExecution]:
        return {each.id: each for each in self.executions if each.id in ids}

    async def pollers(self, task_queue: str) -> int:
        return self.polling

    async def count_runs(self, query: str) -> int:
        self.queries.append(query)
        return self.counted


def _fits(execution: Any, query: str) -> bool:
    """Whether a run has the state and the status that a query names."""
    state = execution.typed_search_attributes.get(attributes.STATE)
    pipeline = execution.typed_search_attributes.get(attributes.PIPELINE)
    status = execution.status.name.capitalize()
    has = {"State": state, "ExecutionStatus": status, "Pipeline": pipeline}
    return all(
        f"{name} = " not in query or re.search(rf"\b{name} = '{value}'", query)
        for name, value in has.items()
    )


@dataclass
class FakeInstallation:
    """Everything a command can reach, and what it said."""

    environment: dict[str, str] = field(default_factory=lambda: dict(SETTINGS))
    tasks: FakeTasks = field(default_factory=FakeTasks)
    rejected: MemoryRejectedMessages = field(default_factory=MemoryRejectedMessages)
    queue: FakeQueue = field(default_factory=FakeQueue)
    listed: list[RunRecord] = field(default_factory=list[RunRecord])
    """Rows of other pipelines in the table of runs."""
    runs: FakeRuns | None = field(default_factory=FakeRuns)
    """None: Temporal is unavailable."""

    @asynccontextmanager
    async def _tables(self, environment: Mapping[str, str]) -> AsyncGenerator["FakeInstallation"]:
        DatabaseSettings.read(environment)
        yield self

    @asynccontextmanager
    async def _queue(self, settings: QueueSettings) -> AsyncGenerator[FakeQueue]:
        yield self.queue

    async def _runs(self, environment: Mapping[str, str]) -> FakeRuns:
        if self.runs is None:
            raise TemporalUnreachable("cannot reach Temporal at localhost:7233: refused")
        return self.runs

    def docflow(self, *arguments: str) -> Result:
        """Run a command."""
        with self.reached():
            return run_docflow(*arguments, context=CliContext(self.environment))

    @contextmanager
    def reached(self) -> Generator[None]:
        """Commands of this process reach this installation inside the block."""
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(tables, "open_tables", self._tables)
            patch.setattr(table, "SqlRuns", lambda opened: FakeTable(self.tasks, self.listed))
            for module in (service_bus, bridge):
                patch.setattr(module, "open_queue", self._queue)
            patch.setattr(runs, "open_runs", self._runs)
            yield
