"""How commands see and answer runs, on a real server with the real workflow."""

import asyncio
import uuid
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import replace

import pytest
import pytest_asyncio
from temporalio import activity
from temporalio.client import Client, WorkflowHandle
from temporalio.common import SearchAttributePair, TypedSearchAttributes
from temporalio.testing import WorkflowEnvironment
from temporalio.worker import Worker

from stack.temporal import temporal_binary
from tests.support.imports.scripted import OUTCOME, ScriptedImport, import_message, permanent
from tests.support.waiting import eventually
from workers.imports.register import IMPORTS
from workers.imports.runs import ImportRuns
from workers.shared.plugin import docflow_plugin
from workers.shared.register import Lane
from workers.shared.services.errors import ServiceError
from workers.spreadsheets.register import SPREADSHEETS
from workflows.imports.document_import import DocumentImport
from workflows.imports.messages import ImportMessage
from workflows.imports.runs import TASK_QUEUE, ImportInput, ImportResult, ImportState, Retry
from workflows.shared import attributes
from workflows.shared.contracts import Answer

pytestmark = pytest.mark.asyncio(loop_scope="module")


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def client() -> AsyncIterator[Client]:
    environment = await WorkflowEnvironment.start_local(
        dev_server_existing_path=temporal_binary(),
        search_attributes=attributes.ALL,
        plugins=[docflow_plugin()],
    )
    async with environment:
        yield environment.client


@pytest.fixture
def runs(client: Client) -> ImportRuns:
    return ImportRuns(client, {"TEMPORAL_UI_ADDRESS": "http://ui:8233/"})


async def start(
    client: Client, message: ImportMessage, task_queue: str
) -> WorkflowHandle[DocumentImport, ImportResult]:
    return await client.start_workflow(
        DocumentImport.run,
        ImportInput(message=message),
        id=message.workflow_id,
        task_queue=task_queue,
        search_attributes=attributes.at_start("imports", "equipment", "p1"),
    )


@asynccontextmanager
async def running(client: Client, script: ScriptedImport) -> AsyncIterator[str]:
    """An import on a worker of its own; yields its workflow id."""
    task_queue, message = uuid.uuid4().hex, import_message()
    activities = script.activities()
    async with Worker(
        client,
        task_queue=task_queue,
        workflows=[DocumentImport],
        activities=activities,
        max_cached_workflows=0,
    ):
        yield (await start(client, message, task_queue)).id


async def until_parked(runs: ImportRuns, workflow_id: str) -> None:
    async with asyncio.timeout(20):
        while not ((view := await runs.look(workflow_id)) and view.parked):
            await asyncio.sleep(0.02)


async def test_a_run_that_is_not_there(runs: ImportRuns) -> None:
    assert await runs.look("import/p1/nobody") is None
    assert await runs.status("import/p1/nobody") is None
    with pytest.raises(ServiceError, match="no open run import/p1/nobody"):
        await runs.answer("import/p1/nobody", "skip", Answer())


async def test_a_completed_run(client: Client, runs: ImportRuns) -> None:
    async with running(client, ScriptedImport()) as workflow_id:
        result = await runs.result(workflow_id)
    assert (result.state, result.counts) == (ImportState.COMPLETED, OUTCOME.counts)
    view = await runs.look(workflow_id)
    assert view is not None
    assert (view.status, view.closed, view.parked) == ("completed", True, False)
    assert view.link == (
        f"http://ui:8233/namespaces/default/workflows/{workflow_id.replace('/', '%2F')}/"
        f"{view.run_id}"
    )


async def test_a_parked_run_is_seen_explained_and_answered(
    client: Client, runs: ImportRuns
) -> None:
    async with running(
        client, ScriptedImport(failures=[permanent("the disk is full")])
    ) as workflow_id:
        await until_parked(runs, workflow_id)
        status = await runs.status(workflow_id)
        assert status is not None and status.reason == "the disk is full"
        other = Retry(message=import_message())
        with pytest.raises(ServiceError, match=r"retry was refused: .*keeps its task_id"):
            await runs.answer(workflow_id, "retry", other)
        await runs.answer(workflow_id, "retry", Retry(by="ada"))
        assert (await runs.result(workflow_id)).state is ImportState.COMPLETED


async def test_a_failed_run_has_its_result(client: Client, runs: ImportRuns) -> None:
    async with running(client, ScriptedImport(failures=[permanent()])) as workflow_id:
        await until_parked(runs, workflow_id)
        await runs.answer(workflow_id, "fail", Answer(reason="withdrawn", by="ada"))
        result = await runs.result(workflow_id)
    assert (result.state, result.reason) == (ImportState.FAILED, "withdrawn (ada)")
    view = await runs.look(workflow_id)
    assert view is not None and (view.status, view.parked) == ("failed", False)


async def test_what_is_not_parked_refuses_answers(client: Client, runs: ImportRuns) -> None:
    script = ScriptedImport(path="remote", block=True)
    async with running(client, script) as workflow_id:
        await script.working.wait()
        with pytest.raises(ServiceError, match="skip was refused: this run is not parked"):
            await runs.answer(workflow_id, "skip", Answer())
        await client.get_workflow_handle(workflow_id).terminate("by hand")
        with pytest.raises(ServiceError, match=r"ended without a result: "):
            await runs.result(workflow_id)


async def test_an_answer_that_no_worker_takes_is_not_waited_for(
    client: Client,
) -> None:
    runs = ImportRuns(client, {}, seconds_to_answer=0.5)
    handle = await start(client, import_message(), "nobody polls this")
    with pytest.raises(ServiceError, match=r"no worker answered within 0\.5 s"):
        await runs.answer(handle.id, "cancel", Answer())
    assert await runs.status(handle.id) is None
    view = await runs.look(handle.id)
    assert view is not None and (view.closed, view.link) == (False, None)


async def test_workers_are_counted(client: Client, runs: ImportRuns) -> None:
    assert await runs.pollers(TASK_QUEUE) == 0
    script = ScriptedImport()
    message = import_message()
    async with Worker(
        client,
        task_queue=TASK_QUEUE,
        workflows=[DocumentImport],
        activities=script.activities(),
        max_cached_workflows=0,
    ):
        await (await start(client, message, TASK_QUEUE)).result()
        assert await runs.pollers(TASK_QUEUE) == 1


@activity.defn
async def heavy_work() -> None:
    """What is served on a lane."""


async def test_workers_of_each_lane_are_counted(client: Client, runs: ImportRuns) -> None:
    def lane(name: str) -> Lane:
        return Lane(name, f"{TASK_QUEUE}-{name}", lambda own: 1, lambda common, own: ())

    laned = replace(IMPORTS, lanes=(lane("light"), lane("heavy")))
    assert (await runs.pipeline(laned)).idle_lanes == ["light", "heavy"]

    async def heavy_is_polled() -> bool:
        return (await runs.pipeline(laned)).lanes == {"light": 0, "heavy": 1}

    async with Worker(client, task_queue=f"{TASK_QUEUE}-heavy", activities=[heavy_work]):
        await eventually(heavy_is_polled)


async def test_imports_are_counted_by_state(client: Client, runs: ImportRuns) -> None:
    async with running(client, ScriptedImport(skip="done before")) as workflow_id:
        await runs.result(workflow_id)
        async with asyncio.timeout(20):
            while (seen := await runs.pipeline(IMPORTS)).counts[ImportState.SKIPPED] != 1:
                await asyncio.sleep(0.05)
    assert seen.counts[ImportState.CANCELLED] == 0


async def test_a_state_that_two_kinds_of_run_share_is_counted_for_both(
    client: Client, runs: ImportRuns
) -> None:
    [kind] = IMPORTS.runs
    other = replace(kind, workflow="OtherImport")
    both = replace(IMPORTS, runs=(kind, other))
    before = (await runs.pipeline(both)).counts[ImportState.RUNNING]
    for each in both.runs:
        await client.start_workflow(
            each.workflow,
            id=uuid.uuid4().hex,
            task_queue="nobody polls this",
            search_attributes=attributes.at_start("imports", "equipment", "p1"),
        )
    async with asyncio.timeout(20):
        while (await runs.pipeline(both)).counts[ImportState.RUNNING] != before + 2:
            await asyncio.sleep(0.05)


async def test_a_parked_run_that_was_terminated_is_counted_as_such(
    client: Client, runs: ImportRuns
) -> None:
    before = (await runs.pipeline(IMPORTS)).counts
    script = ScriptedImport(failures=[permanent("the disk is full")])
    async with running(client, script) as workflow_id:
        async with asyncio.timeout(20):
            while not (await runs.pipeline(IMPORTS)).counts[ImportState.PARKED]:
                await asyncio.sleep(0.05)
        await client.get_workflow_handle(workflow_id).terminate()
        async with asyncio.timeout(20):
            while (seen := await runs.pipeline(IMPORTS)).counts[ImportState.PARKED]:
                await asyncio.sleep(0.05)
    terminated = ImportState.TERMINATED
    assert seen.counts[terminated] == before[terminated] + 1


async def test_another_pipeline_is_counted_by_who_is_waited_for(
    client: Client, runs: ImportRuns
) -> None:
    before = await runs.pipeline(SPREADSHEETS)
    assert (before.workers, before.open, before.waiting) == (0, 0, 0)
    for needs_attention in (True, False):
        await client.start_workflow(
            "Anything",
            id=uuid.uuid4().hex,
            task_queue="nobody polls this",
            search_attributes=TypedSearchAttributes(
                [
                    SearchAttributePair(attributes.PIPELINE, "spreadsheets"),
                    SearchAttributePair(attributes.NEEDS_ATTENTION, needs_attention),
                ]
            ),
        )
    async with asyncio.timeout(20):
        # Each is counted by a question of its own, and what is listed is late by a moment.
        while ((seen := await runs.pipeline(SPREADSHEETS)).open, seen.waiting) != (2, 1):
            await asyncio.sleep(0.05)
    assert seen.workers == 0
