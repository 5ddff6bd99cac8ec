"""Runs of every pipeline wait for what docflow itself needs, and need no person for that."""

import uuid
from collections.abc import Iterator
from contextlib import suppress
from datetime import timedelta
from typing import Any

import pytest
from temporalio.api.sdk.v1 import WorkflowMetadata
from temporalio.client import WorkflowFailureError, WorkflowHandle, WorkflowHistory

from tests.replay.record import cases
from tests.support.imports.scripted import ScriptedImport, import_message, permanent
from tests.support.scripted import still_down, unavailable
from tests.support.waiting import eventually
from workers.shared.services.runs import TemporalRuns
from workflows.imports.document_import import DocumentImport
from workflows.imports.runs import ImportInput, ImportState, Retry
from workflows.jobs.job import Job
from workflows.shared import attributes
from workflows.shared.contracts import Answer
from workflows.shared.dependencies import WAITING, Dependency, Recovery
from workflows.shared.waiting import CONTRADICTIONS

pytestmark = pytest.mark.asyncio(loop_scope="session")

Handle = WorkflowHandle[Any, Any]

OUTAGES = {
    f"{workflow}/{name}": case
    for workflow, found in cases().items()
    for name, case in found.items()
    if name.startswith("outage")
}


class Imports:
    """Imports with scripted activities, on a worker of the test's own."""

    def __init__(self, server: Any, run_worker: Any) -> None:
        self._server, self._run_worker = server, run_worker
        self._queue = f"waiting-{uuid.uuid4().hex}"

    def worker(self, script: ScriptedImport) -> Any:
        return self._run_worker(self._queue, [DocumentImport], script.activities())

    async def start(self) -> Handle:
        message = import_message()
        return await self._server.client.start_workflow(
            DocumentImport.run,
            ImportInput(message=message),
            id=message.workflow_id,
            task_queue=self._queue,
            search_attributes=attributes.at_start("imports", "equipment", "p1"),
        )

    async def completed(self, script: ScriptedImport) -> WorkflowHistory:
        """The history of an import that needs no answer."""
        async with self.worker(script):
            handle = await self.start()
            assert (await handle.result()).state is ImportState.COMPLETED
            return await handle.fetch_history()


@pytest.fixture
def imports(server: Any, run_worker: Any) -> Imports:
    return Imports(server, run_worker)


async def _state(handle: Handle) -> str | None:
    return (await handle.describe()).typed_search_attributes.get(attributes.STATE)


async def _is_waiting(handle: Handle) -> bool:
    return await _state(handle) == WAITING


async def _details(handle: Handle) -> str:
    found = await handle.query("__temporal_workflow_metadata", result_type=WorkflowMetadata)
    return found.current_details


def _states(history: WorkflowHistory) -> Iterator[str]:
    """What `State` became, in order."""
    for event in history.events:
        changed = event.upsert_workflow_search_attributes_event_attributes
        if found := changed.search_attributes.indexed_fields.get("State"):
            yield found.data.decode().strip('"')


def _waits(history: WorkflowHistory) -> int:
    names = (
        event.activity_task_scheduled_event_attributes.activity_type.name
        for event in history.events
    )
    return sum(name == "dependencies.wait" for name in names)


# Their recorded histories are replayed, which is what a worker without a cache does.
@pytest.mark.cached(alone=True)
@pytest.mark.parametrize("name", OUTAGES)
async def test_every_workflow_waits_and_parks_nothing(
    server: Any, run_worker: Any, name: str
) -> None:
    case, queue = OUTAGES[name], f"outages-{uuid.uuid4().hex}"
    workflows = getattr(case, "workflows", [case.workflow])
    async with run_worker(queue, workflows, case.activities()):
        handle = await case.start(server.client, uuid.uuid4().hex, queue)
        await case.go(handle)
        with suppress(WorkflowFailureError):
            await handle.result()
        history = await handle.fetch_history()
    assert _waits(history) >= 1
    assert "parked" not in set(_states(history))
    shown = list(_states(history)).count(WAITING)
    # A job shows what its stages and tasks wait for as well.
    assert shown >= _waits(history) if case.workflow is Job else shown == _waits(history)


async def test_a_waiting_import_says_for_what_and_continues_by_itself(imports: Imports) -> None:
    script = ScriptedImport(failures=[unavailable()])
    script.held.add("wait")
    async with imports.worker(script):
        handle = await imports.start()
        await eventually(lambda: _is_waiting(handle))
        status = await handle.query(DocumentImport.status)
        assert (status.state, status.waiting_for) == (ImportState.RUNNING, Dependency.DATABASE)
        assert status.next_steps is None
        details = await _details(handle)
        assert "**Waiting** for the database since" in details
        assert "connection refused" in details
        assert "`outage/database`" in details
        found = (await handle.describe()).typed_search_attributes
        assert found.get(attributes.NEEDS_ATTENTION) is False
        assert found.get(attributes.WAITING_FOR) == "outage/database"
        runs = TemporalRuns(handle._client, {})
        seen = await runs.look(handle.id)
        assert seen is not None and seen.waits_for == "outage/database"
        script.held.discard("wait")
        assert (await handle.result()).state is ImportState.COMPLETED
        found = (await handle.describe()).typed_search_attributes
        assert found.get(attributes.WAITING_FOR) is None
        assert (await handle.query(DocumentImport.status)).waiting_for is None
        seen = await runs.look(handle.id)
        assert seen is not None and seen.waits_for is None
    assert script.made("wait") == 1
    assert [closing.state for closing in script.closed] == [ImportState.COMPLETED]


async def test_a_step_is_repeated_in_the_state_that_it_had(imports: Imports) -> None:
    script = ScriptedImport(path="remote", failures=[unavailable()])

    def recover(awaited: Any) -> Recovery:
        # The step that is repeated now works until the test has looked.
        script.held.add("load_rows")
        return Recovery(was_down=True)

    script.results["wait"] = recover
    async with imports.worker(script):
        handle = await imports.start()
        await script.working.wait()
        assert (await _state(handle), await _details(handle)) == ("running", "")
        assert len(script.handled) == 2
        script.held.clear()
        assert (await handle.result()).state is ImportState.COMPLETED


async def test_an_outage_of_an_hour_parks_nothing(server: Any, imports: Imports) -> None:
    script = ScriptedImport(failures=[unavailable()])
    script.fails["wait"] = [still_down(timedelta(minutes=20))] * 3
    async with imports.worker(script):
        handle = await imports.start()
        for checks in (1, 2, 3):

            async def checked(checks: int = checks) -> bool:
                return script.made("wait") >= checks

            await eventually(checked)
            assert await _is_waiting(handle)
            await server.skip(handle, by=timedelta(minutes=20))
        assert (await handle.result()).state is ImportState.COMPLETED
    assert [closing.state for closing in script.closed] == [ImportState.COMPLETED]


@pytest.mark.parametrize(("path", "most"), [("local", 10), ("remote", 15)])
async def test_an_outage_costs_few_events_however_long_it_is(
    imports: Imports, path: str, most: int
) -> None:
    undisturbed = await imports.completed(ScriptedImport(path=path))
    script = ScriptedImport(path=path, failures=[unavailable()])
    script.fails["wait"] = [still_down(timedelta(milliseconds=10))] * 3
    disturbed = await imports.completed(script)
    assert script.made("wait") == 4
    assert len(disturbed.events) - len(undisturbed.events) <= most


async def test_a_document_that_fails_while_the_dependency_answers_parks(imports: Imports) -> None:
    script = ScriptedImport(failures=[unavailable(Dependency.BLOB_STORE)] * (CONTRADICTIONS + 1))
    script.results["wait"] = Recovery(was_down=False)
    async with imports.worker(script):
        handle = await imports.start()

        async def is_parked() -> bool:
            return bool((await handle.query(DocumentImport.status)).next_steps)

        await eventually(is_parked)
        assert script.made("wait") == CONTRADICTIONS
        assert await _state(handle) == "parked"
        await handle.execute_update(DocumentImport.retry, Retry(by="ann"))
        assert (await handle.result()).state is ImportState.COMPLETED


async def test_a_dependency_that_comes_and_goes_parks_nothing(imports: Imports) -> None:
    script = ScriptedImport(failures=[unavailable()] * (2 * CONTRADICTIONS))
    await imports.completed(script)
    assert script.made("wait") == 2 * CONTRADICTIONS


async def test_the_row_of_a_run_that_parks_in_an_outage_is_written_afterwards(
    imports: Imports,
) -> None:
    script = ScriptedImport(failures=[permanent()], finish_failures=[unavailable()] * 2)
    script.held.add("wait")
    async with imports.worker(script):
        handle = await imports.start()
        await script.working.wait()
        assert await _state(handle) == "parked"
        assert (await handle.query(DocumentImport.status)).waiting_for is None
        assert script.closed == []
        script.held.discard("wait")

        async def is_recorded() -> bool:
            return bool(script.closed)

        await eventually(is_recorded)
        assert script.closed[0].state is ImportState.PARKED
        assert await _state(handle) == "parked"
        await handle.execute_update(DocumentImport.retry, Retry(by="ann"))
        assert (await handle.result()).state is ImportState.COMPLETED


async def test_an_answer_in_an_outage_is_taken_and_ends_the_wait_for_the_row(
    imports: Imports,
) -> None:
    script = ScriptedImport(failures=[permanent()], finish_failures=[unavailable()] * 2)
    script.fails["wait"] = [still_down(timedelta(hours=1))]
    async with imports.worker(script):
        handle = await imports.start()

        async def waits() -> bool:
            return script.made("wait") == 1

        await eventually(waits)
        await handle.execute_update(DocumentImport.retry, Retry(by="ann"))
        assert (await handle.result()).state is ImportState.COMPLETED
    assert [closing.state for closing in script.closed] == [ImportState.COMPLETED]


async def test_a_waiting_import_is_cancelled_at_once(imports: Imports) -> None:
    script = ScriptedImport(failures=[unavailable()])
    script.fails["wait"] = [still_down(timedelta(hours=1))]
    async with imports.worker(script):
        handle = await imports.start()
        await eventually(lambda: _is_waiting(handle))
        await handle.execute_update(DocumentImport.cancel, Answer(by="ann", reason="enough"))
        result = await handle.result()
    assert (result.state, result.reason) == (ImportState.CANCELLED, "enough")
    assert await _state(handle) == "cancelled"


async def test_an_end_that_waits_is_recorded_in_spite_of_a_cancel(imports: Imports) -> None:
    script = ScriptedImport(finish_failures=[unavailable()])
    script.held.add("wait")
    async with imports.worker(script):
        handle = await imports.start()
        await eventually(lambda: _is_waiting(handle))
        await handle.cancel()
        script.held.discard("wait")
        assert (await handle.result()).state is ImportState.COMPLETED
    assert [closing.state for closing in script.closed] == [ImportState.COMPLETED]
