"""Fakes of the services that `docflow` uses, and the command that reaches them."""

import re
from collections.abc import AsyncGenerator, Collection, Generator, Iterator, Mapping, Sequence
from contextlib import asynccontextmanager, contextmanager
from dataclasses import dataclass, field
from datetime import UTC, datetime
from itertools import chain, repeat
from types import SimpleNamespace
from typing import Any

import pytest
from temporalio.client import WorkflowExecution, WorkflowExecutionStatus
from temporalio.common import SearchAttributeKey, SearchAttributePair, TypedSearchAttributes
from typer.testing import Result

from activities.imports.views import ImportTaskRow
from adapters.database import runs as table
from tests.support.cli import SETTINGS, run_docflow
from tests.support.memory.blobs import MemoryBlobs
from tests.support.memory.rejected import MemoryRejectedMessages
from workers.imports import access, runs
from workers.imports.register import IMPORTS
from workers.imports.settings import QueueSettings
from workers.shared import tables
from workers.shared.cli.context import CliContext
from workers.shared.errors import TemporalUnreachable
from workers.shared.register import Pipeline, PipelineView
from workers.shared.services import runs as all_runs
from workers.shared.services import service_bus
from workers.shared.services.errors import ServiceError
from workers.shared.services.runs import RunView
from workers.shared.services.service_bus import QueueSnapshot
from workers.shared.settings.common import BlobSettings, DatabaseSettings
from workflows.imports.messages import DocumentType, Strategy
from workflows.imports.runs import (
    Counts,
    ImportResult,
    ImportState,
    ImportStatus,
    LoadMark,
    Retry,
    TaskKey,
)
from workflows.shared import attributes
from workflows.shared.contracts import Answer
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


class FakeStore:
    """Progress marks, one after the other."""

    def __init__(self, *marks: LoadMark) -> None:
        self._marks: Iterator[LoadMark] = chain(marks, repeat(marks[-1] if marks else LoadMark()))

    async def mark(self, key: TaskKey) -> LoadMark:
        return next(self._marks)


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


def a_view(**changes: Any) -> RunView:
    """A run that is going on."""
    view = {
        "workflow_id": "import/P1/T1",
        "run_id": "r-1",
        "status": "running",
        "closed": False,
        "parked": False,
        "link": "http://ui/r-1",
    }
    return RunView(**{**view, **changes})


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


def a_result(**changes: Any) -> ImportResult:
    """The result of a good run."""
    result = {
        "task_id": "T1",
        "project_id": "P1",
        "document_type": DocumentType.EQUIPMENT,
        "state": ImportState.COMPLETED,
    }
    return ImportResult(**{**result, **changes})


class FakeRuns:
    """Temporal: what `look` sees, one view after the other, and what else it would answer."""

    place = "localhost:7233, default"

    def __init__(self, *views: RunView | None) -> None:
        self._views = chain(views, repeat(views[-1] if views else None))
        self.current: ImportStatus | None = None
        self.ending: ImportResult | ServiceError = a_result()
        self.refusal: ServiceError | None = None
        self.answers: list[tuple[str, str, Retry | Answer]] = []
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

    def link(self, workflow_id: str) -> str | None:
        return f"http://ui/{workflow_id}"

    async def look(self, workflow_id: str) -> RunView | None:
        return next(self._views)

    async def status(self, workflow_id: str) -> ImportStatus | None:
        return self.current

    async def result(self, workflow_id: str) -> ImportResult:
        if isinstance(self.ending, ServiceError):
            raise self.ending
        return self.ending

    async def answer(self, workflow_id: str, name: str, answer: Retry | Answer) -> ImportStatus:
        if self.refusal is not None:
            raise self.refusal
        self.answers.append((workflow_id, name, answer))
        return ImportStatus(state=ImportState.RUNNING, step="imports.load_rows")

    async def workers(self) -> int:
        return self.polling

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
    store: FakeStore = field(default_factory=FakeStore)
    rejected: MemoryRejectedMessages = field(default_factory=MemoryRejectedMessages)
    blobs: MemoryBlobs = field(default_factory=MemoryBlobs)
    queue: FakeQueue = field(default_factory=FakeQueue)
    listed: list[RunRecord] = field(default_factory=list[RunRecord])
    """Rows of other pipelines in the table of runs."""
    runs: FakeRuns | None = field(default_factory=FakeRuns)
    """None: Temporal is unavailable."""

    @asynccontextmanager
    async def _resources(
        self, environment: Mapping[str, str]
    ) -> AsyncGenerator["FakeInstallation"]:
        BlobSettings.read(environment)
        DatabaseSettings.read(environment)
        yield self

    @asynccontextmanager
    async def _tables(self, environment: Mapping[str, str]) -> AsyncGenerator["FakeInstallation"]:
        DatabaseSettings.read(environment)
        yield self

    @asynccontextmanager
    async def _tasks(self, environment: Mapping[str, str]) -> AsyncGenerator[FakeTasks]:
        DatabaseSettings.read(environment)
        yield self.tasks

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
            patch.setattr(access, "open_imports", self._resources)
            patch.setattr(access, "open_tasks", self._tasks)
            patch.setattr(tables, "open_tables", self._tables)
            patch.setattr(table, "SqlRuns", lambda opened: FakeTable(self.tasks, self.listed))
            patch.setattr(service_bus, "open_queue", self._queue)
            for module in (runs, all_runs):
                patch.setattr(module, "open_runs", self._runs)
            yield
