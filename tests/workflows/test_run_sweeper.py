"""Runs that were terminated are swept: real runs, real rows, in every pipeline."""

import uuid
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any, cast

import pytest
from temporalio.client import Client
from temporalio.runtime import MetricBuffer, Runtime, TelemetryConfig

from activities.batches.store import SqlBatchStore
from activities.imports.store import SqlImportStore
from activities.jobs.store import SqlJobStore
from activities.shared.records import RunSweep
from activities.spreadsheets.store import SqlSpreadsheetStore
from activities.transfers.store import SqlTransferStore
from adapters.database.engine import Database, open_database
from adapters.ports.records import OpenRow, OpenRows, RunEnd
from adapters.staging import BlobStaging
from adapters.temporal import TemporalRunEnds
from tests.support.fresh_database import fresh_url
from tests.support.imports.activities import environment
from tests.support.imports.store import message, plan
from tests.support.jobs.records import a_record
from tests.support.memory.runs import MemoryRuns
from tests.support.spreadsheets.store import order
from tests.support.transfers.events import a_transfer
from workers import catalogue
from workers.transfers.resources import TransferRows
from workflows.batches.events import JobStarted
from workflows.batches.names import BatchKey
from workflows.jobs.records import JobStatus
from workflows.jobs.runs import job_workflow_id
from workflows.shared.record_workflows import RunSweeper
from workflows.shared.records import DOCUMENTS, RunsSwept, RunSweepInput
from workflows.spreadsheets.runs import workflow_id
from workflows.transfers.events import TransferStatus
from workflows.transfers.runs import file_job_id

pytestmark = pytest.mark.asyncio(loop_scope="session")


@dataclass(frozen=True)
class Opened:
    """Rows of one pipeline."""

    rows: OpenRows
    open: Callable[[], Awaitable[tuple[str, str]]]
    """Opens a row; its id, and that of its run."""


def _imports(database: Database) -> Opened:
    store = SqlImportStore(database)

    async def open() -> tuple[str, str]:
        given = message(task_id=uuid.uuid4().hex)
        await store.begin(given, plan(), given.workflow_id, None)
        return given.workflow_id, given.workflow_id

    return Opened(store, open)


def _spreadsheets(database: Database) -> Opened:
    store = SqlSpreadsheetStore(database)

    async def open() -> tuple[str, str]:
        new = order()
        await store.open(new, workflow_id(new.uuid), datetime.now(UTC))
        return workflow_id(new.uuid), workflow_id(new.uuid)

    return Opened(store, open)


def _batches(database: Database) -> Opened:
    store = SqlBatchStore(database)

    async def open() -> tuple[str, str]:
        key = BatchKey(case_id=uuid.uuid4().int % 1_000_000_000 + 1, batch_id=1)
        await store.note(key.case_id, [JobStarted(case_id=key.case_id, batch_id=1)])
        return key.workflow_id, key.case_workflow_id

    return Opened(store, open)


def _jobs(database: Database) -> Opened:
    store = SqlJobStore(database)

    async def open() -> tuple[str, str]:
        job = uuid.uuid4().hex * 2
        running = JobStatus.PROCESSING
        await store.put_job(a_record(job_id=job, status=running, updated_at=datetime.now(UTC)))
        return job_workflow_id(job), job_workflow_id(job)

    return Opened(store, open)


class NothingStaged:
    """A staging area in which no run has left anything."""

    async def remove(self, run: str) -> int:
        return 0


def _transfers(database: Database) -> Opened:
    store = SqlTransferStore(database)

    async def open() -> tuple[str, str]:
        id = uuid.uuid4().hex * 2
        run = file_job_id(id)
        now, status = datetime.now(UTC), TransferStatus.READ_MESSAGE
        await store.record(a_transfer(id, status, at=now, source="TMS", run=run))
        return run, run

    return Opened(TransferRows(store, cast(BlobStaging, NothingStaged())), open)


OPENED: Mapping[str, Callable[[Database], Opened]] = {
    "imports": _imports,
    "spreadsheets": _spreadsheets,
    "batches": _batches,
    "jobs": _jobs,
    "transfers": _transfers,
}


async def test_every_pipeline_is_tested() -> None:
    assert list(OPENED) == [pipeline.name for pipeline in catalogue.PIPELINES]


@pytest.mark.parametrize("pipeline", OPENED)
async def test_rows_of_terminated_and_unknown_runs_are_closed_and_no_others(
    server: Any, run_worker: Any, tmp_path: Path, pipeline: str
) -> None:
    client: Client = server.client
    url = fresh_url()
    async with open_database(url) as database:
        opened = OPENED[pipeline](database)
        rows = [await opened.open() for _ in range(4)]
        queue = uuid.uuid4().hex
        for _, run in rows[:3]:
            await client.start_workflow("Nothing", id=run, task_queue=f"nobody-{queue}")
        for _, run in rows[:2]:
            await client.get_workflow_handle(run).terminate()
        sweep = RunSweep({pipeline: [opened.rows]}, TemporalRunEnds(client), tmp_path)

        async def swept(**order: int) -> RunsSwept:
            return await client.execute_workflow(
                RunSweeper.run,
                RunSweepInput(pipeline=pipeline, **order),
                id=f"sweep-{uuid.uuid4().hex}",
                task_queue=queue,
            )

        async with run_worker(queue, [RunSweeper], [sweep.sweep]):
            assert await swept() == RunsSwept()
            terminated = sorted(id for id, _ in rows[:2])
            assert await swept(closed_for=0) == RunsSwept(terminated=2, runs=tuple(terminated))
            unknown, _ = rows[3]
            forgotten = await swept(closed_for=0, unknown_for=0)
            assert forgotten == RunsSwept(terminated=1, runs=(unknown,))
        [left] = await opened.rows.open_rows(datetime.now(UTC), "", 10)
        assert left.id == rows[2][0]
        await client.get_workflow_handle(rows[2][1]).terminate()


@dataclass
class Rows:
    """One row, which is never as it was."""

    row: OpenRow
    asked: list[tuple[str, datetime | None]] = field(default_factory=list)
    closes: bool = False

    async def open_rows(self, before: datetime, after: str, limit: int) -> list[OpenRow]:
        return [] if after else [self.row]

    async def terminate(
        self, id: str, reason: str, unchanged_since: datetime | None = None
    ) -> bool:
        self.asked.append((id, unchanged_since))
        return self.closes


@pytest.mark.parametrize(
    ("grace", "only_after", "asks"),
    [(0, (), True), (10, (), False), (0, ("terminated",), True), (0, ("timed_out",), False)],
)
async def test_a_row_that_has_changed_meanwhile_is_left_alone(
    tmp_path: Path, grace: int, only_after: Sequence[str], asks: bool
) -> None:
    now, id = datetime.now(UTC), "import/P1/T1"
    row = OpenRow(id, now, grace=timedelta(minutes=grace), only_after=frozenset(only_after))
    rows, runs = Rows(row), MemoryRuns()
    runs.ends[id] = RunEnd("terminated", now)
    sweep = RunSweep({"imports": [rows]}, runs, tmp_path)
    order = RunSweepInput(pipeline="imports", closed_for=0)
    assert await environment().run(sweep.sweep, order) == RunsSwept()
    assert rows.asked == ([(id, now)] if asks else [])


@pytest.mark.parametrize(
    ("end", "counted"),
    [
        (RunEnd("terminated", datetime.now(UTC), "equipment"), "equipment"),
        (RunEnd("timed_out", datetime.now(UTC), "equipment"), "equipment"),
        # It was counted by its worker.
        (RunEnd("failed", datetime.now(UTC), "equipment"), None),
    ],
)
async def test_a_run_that_no_worker_sees_end_is_counted_as_terminated(
    tmp_path: Path, end: RunEnd, counted: str | None
) -> None:
    id, buffer, runs = "import/P1/T1", MetricBuffer(100), MemoryRuns()
    runs.ends[id] = end
    rows = Rows(OpenRow(id, datetime.now(UTC)), closes=True)
    swept = environment()
    swept.metric_meter = Runtime(telemetry=TelemetryConfig(metrics=buffer)).metric_meter
    sweep = RunSweep({"imports": [rows]}, runs, tmp_path)
    await swept.run(sweep.sweep, RunSweepInput(pipeline="imports", closed_for=0))
    seen = [
        (update.attributes["type"], update.attributes["state"], update.value)
        for update in buffer.retrieve_updates()
        if update.metric.name == DOCUMENTS
    ]
    assert seen == ([] if counted is None else [(counted, "terminated", 1)])
