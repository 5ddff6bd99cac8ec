"""Schedules are brought in line with the table, on a real server."""

import asyncio
from collections.abc import AsyncIterator, Mapping
from dataclasses import replace
from datetime import datetime, timedelta
from itertools import pairwise

import pytest
import pytest_asyncio
from cryptography.fernet import Fernet
from temporalio import workflow
from temporalio.client import (
    Client,
    Schedule,
    ScheduleActionStartWorkflow,
    ScheduleCalendarSpec,
    ScheduleSpec,
    ScheduleUpdate,
    ScheduleUpdateInput,
)
from temporalio.service import RPCError, RPCStatusCode
from temporalio.testing import WorkflowEnvironment

from stack.temporal import temporal_binary
from workers import catalogue
from workers.shared.declared_schedules import Declared, daily, every
from workers.shared.errors import TemporalUnreachable
from workers.shared.plugin import docflow_plugin
from workers.shared.register import Pipeline, recognise
from workers.shared.schedules import (
    Change,
    declared_schedules,
    delete_undeclared,
    look,
    reconcile,
)
from workers.shared.worker_factory import COMMON_WORKFLOWS
from workflows.shared import attributes
from workflows.shared.records import ROW_RETENTION, RUN_SWEEPER, RowRetentionInput, RunSweepInput
from workflows.shared.run_webhooks import SCHEDULE
from workflows.spreadsheets.runs import RetentionInput

pytestmark = pytest.mark.asyncio(loop_scope="module")

NIGHTLY = Declared("imports", "Sweep", "imports", RetentionInput(page=7), daily(3, 15))
TABLE: Mapping[str, Declared] = {"sweep": NIGHTLY, "other": replace(NIGHTLY, pipeline="batches")}


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def server() -> AsyncIterator[Client]:
    environment = await WorkflowEnvironment.start_local(
        dev_server_existing_path=temporal_binary(),
        search_attributes=attributes.ALL,
        plugins=[docflow_plugin()],
    )
    async with environment:
        yield environment.client


@pytest_asyncio.fixture(loop_scope="module")
async def client(server: Client) -> AsyncIterator[Client]:
    """The server's client; no schedule is left behind."""
    yield server
    # Listing lags behind, so that what was made is named.
    for id in (*TABLE, *declared_schedules(), SCHEDULE, "theirs"):
        try:
            await server.get_schedule_handle(id).delete()
        except RPCError as error:
            if error.status is not RPCStatusCode.NOT_FOUND:
                raise


async def changed_at(client: Client, id: str) -> datetime | None:
    """When the schedule was changed last; None: never since it was made."""
    return (await client.get_schedule_handle(id).describe()).info.last_updated_at


async def test_a_schedule_is_made_once_and_left_alone_then(client: Client) -> None:
    assert await reconcile(client, ["imports"], TABLE) == {"sweep": Change.CREATED}
    found = await client.get_schedule_handle("sweep").describe()
    (times, *_) = found.info.next_action_times
    assert (times.hour, times.minute, times.utcoffset()) == (3, 15, timedelta(0))
    assert await reconcile(client, ["imports"], TABLE) == {"sweep": Change.NONE}
    assert await changed_at(client, "sweep") is None
    assert [(view.id, view.state) for view in await look(client, TABLE)] == [
        ("sweep", "active"),
        ("other", "missing"),
    ]


@pytest.mark.parametrize(
    "changed",
    [
        replace(NIGHTLY, at=daily(4)),
        replace(NIGHTLY, at=every(20)),
        replace(NIGHTLY, input=RetentionInput(page=8)),
        replace(NIGHTLY, workflow="OtherSweep"),
        replace(NIGHTLY, task_queue="elsewhere"),
        replace(NIGHTLY, catch_up=timedelta(hours=1)),
        replace(NIGHTLY, pipeline="jobs"),
    ],
    ids=["time", "interval", "input", "workflow", "task queue", "catch-up", "pipeline"],
)
async def test_a_changed_row_updates_its_schedule_and_keeps_it_paused(
    client: Client, changed: Declared
) -> None:
    await reconcile(client, ["imports"], {"sweep": NIGHTLY})
    await client.get_schedule_handle("sweep").pause(note="the disk is being replaced")
    table = {"sweep": changed}
    assert [view.state for view in await look(client, table)] == ["differs"]
    assert await reconcile(client, [changed.pipeline], table) == {"sweep": Change.UPDATED}
    assert [view.state for view in await look(client, table)] == ["paused"]
    found = await client.get_schedule_handle("sweep").describe()
    assert found.schedule.state.note == "the disk is being replaced"
    assert await reconcile(client, [changed.pipeline], table) == {"sweep": Change.NONE}


async def test_a_change_by_hand_is_taken_back(client: Client) -> None:
    await reconcile(client, ["imports"], TABLE)

    def twice_a_day(now: ScheduleUpdateInput) -> ScheduleUpdate:
        schedule = now.description.schedule
        schedule.spec = ScheduleSpec(calendars=[daily(3, 15), daily(15)])
        return ScheduleUpdate(schedule)

    await client.get_schedule_handle("sweep").update(twice_a_day)
    assert await reconcile(client, ["imports"], TABLE) == {"sweep": Change.UPDATED}
    found = await client.get_schedule_handle("sweep").describe()
    assert found.schedule.spec.calendars == [daily(3, 15)]


async def test_schedules_of_others_are_not_touched(client: Client) -> None:
    spec = ScheduleSpec(calendars=[ScheduleCalendarSpec(comment="theirs")])
    action = ScheduleActionStartWorkflow("Theirs", id="theirs", task_queue="theirs")
    await client.create_schedule("theirs", Schedule(action=action, spec=spec))
    await reconcile(client, ["batches"], TABLE)
    changed = {id: replace(declared, at=daily(5)) for id, declared in TABLE.items()}
    assert await reconcile(client, ["imports"], changed) == {"sweep": Change.CREATED}
    assert (await changed_at(client, "other"), await changed_at(client, "theirs")) == (None, None)


async def test_workers_that_start_at_once_agree(client: Client) -> None:
    done = await asyncio.gather(*(reconcile(client, ["imports"], TABLE) for _ in range(8)))
    changes = [change["sweep"] for change in done]
    assert changes.count(Change.CREATED) == 1
    assert changes.count(Change.NONE) == 7


async def test_a_namespace_that_is_not_there_is_named(client: Client) -> None:
    config = client.config()
    config["namespace"] = "nowhere"
    with pytest.raises(TemporalUnreachable, match="cannot reconcile schedule sweep"):
        await reconcile(Client(**config), ["imports"], TABLE)


async def test_every_declared_schedule_is_as_the_server_gives_it_back(client: Client) -> None:
    pipelines = {declared.pipeline for declared in declared_schedules().values()}
    assert set((await reconcile(client, pipelines)).values()) == {Change.CREATED}
    assert [view.state for view in await look(client)] == ["active"] * len(declared_schedules())
    assert set((await reconcile(client, pipelines)).values()) == {Change.NONE}


async def test_retention_runs_at_two_at_night(client: Client) -> None:
    made = await reconcile(client, ["spreadsheets"])
    assert made == dict.fromkeys(
        ("spreadsheet-retention", "spreadsheets-run-sweeper"), Change.CREATED
    )
    found = await client.get_schedule_handle("spreadsheet-retention").describe()
    assert {(time.hour, time.minute) for time in found.info.next_action_times} == {(2, 0)}


async def test_the_sweeper_of_batches_runs_every_quarter_of_an_hour(client: Client) -> None:
    made = await reconcile(client, ["batches"])
    assert made == dict.fromkeys(
        ("batch-sweeper", "batches-run-sweeper", "batches-retention"), Change.CREATED
    )
    found = await client.get_schedule_handle("batch-sweeper").describe()
    times = found.info.next_action_times
    assert {time.minute for time in times} == {0, 15, 30, 45}
    assert {after - before for before, after in pairwise(times)} == {timedelta(minutes=15)}


@pytest.mark.parametrize("pipeline", catalogue.PIPELINES, ids=lambda pipeline: pipeline.name)
async def test_runs_of_every_pipeline_are_swept(pipeline: Pipeline) -> None:
    assert pipeline.sweep_id is not None
    declared = declared_schedules([pipeline.name])[pipeline.sweep_id]
    assert declared.workflow == RUN_SWEEPER
    assert declared.input == RunSweepInput(pipeline=pipeline.name)
    assert declared.at == every(15)
    run = pipeline.recognise(f"schedule/{pipeline.sweep_id}-2026-11-22T02:00:00Z")
    assert run is not None
    assert (run.kind.workflow, run.kind.scheduled) == (RUN_SWEEPER, True)


@pytest.mark.parametrize("pipeline", catalogue.PIPELINES, ids=lambda pipeline: pipeline.name)
async def test_old_rows_of_a_pipeline_that_keeps_some_are_removed_every_night(
    pipeline: Pipeline,
) -> None:
    if pipeline.retention_id is None:
        assert pipeline.kept_rows is None
        return
    declared = declared_schedules([pipeline.name])[pipeline.retention_id]
    assert declared.workflow == ROW_RETENTION
    assert declared.input == RowRetentionInput(pipeline=pipeline.name)
    assert declared.at == daily(4)
    run = pipeline.recognise(f"schedule/{pipeline.retention_id}-2026-11-22T04:00:00Z")
    assert run is not None
    assert (run.kind.workflow, run.kind.scheduled) == (ROW_RETENTION, True)


async def test_receivers_are_looked_for_if_a_key_is_set_and_kept_without(client: Client) -> None:
    environment = {"DOCFLOW_WEBHOOK_KEY": Fernet.generate_key().decode()}
    declared = declared_schedules(environment=environment)[SCHEDULE]
    table = {SCHEDULE: declared}
    assert declared.at == every(1) and SCHEDULE not in declared_schedules(environment={"A": "b"})
    assert await reconcile(client, [declared.pipeline], table) == {SCHEDULE: Change.CREATED}
    run = recognise(catalogue.PIPELINES, f"schedule/{SCHEDULE}-2026-11-22T04:00:00Z")
    assert run is not None and run.pipeline.name == declared.pipeline
    # A machine without the key, where somebody reconciles, takes it from nobody.
    assert SCHEDULE not in await delete_undeclared(client, [declared.pipeline], {"A": "b"})


async def test_every_schedule_starts_a_workflow_of_its_pipeline_with_its_input() -> None:
    pipelines = {pipeline.name: pipeline for pipeline in catalogue.PIPELINES}
    for declared in declared_schedules().values():
        pipeline = pipelines[declared.pipeline]
        known = {
            definition.name: definition
            for definition in map(
                workflow._Definition.must_from_class, (*pipeline.workflows(), *COMMON_WORKFLOWS)
            )
        }
        assert declared.task_queue == pipeline.task_queue
        assert known[declared.workflow].arg_types == [type(declared.input)]
