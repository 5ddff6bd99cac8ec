"""Imports whose key another task, or another message, has; every activity is scripted."""

import uuid
from collections.abc import AsyncIterator, Callable
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from datetime import timedelta
from typing import Any

import pytest
from temporalio.api.sdk.v1 import WorkflowMetadata
from temporalio.client import WorkflowFailureError, WorkflowHandle
from temporalio.exceptions import ApplicationError

from tests.support.imports.scripted import ScriptedImport, import_message, planned
from tests.support.waiting import eventually
from workflows.imports.document_import import DocumentImport
from workflows.imports.runs import (
    HandlerOutcome,
    ImportInput,
    ImportResult,
    ImportState,
    Preparation,
)
from workflows.shared import attributes
from workflows.shared.contracts import MEMO, Answer
from workflows.shared.errors import KEY_REUSED

pytestmark = pytest.mark.asyncio(loop_scope="session")

Running = Callable[[ScriptedImport], AbstractAsyncContextManager[WorkflowHandle[Any, ImportResult]]]


@pytest.fixture
def running(server: Any, run_worker: Any) -> Running:
    """Starts an import on a worker of the test's own."""

    @asynccontextmanager
    async def start(script: ScriptedImport) -> AsyncIterator[WorkflowHandle[Any, ImportResult]]:
        queue, message = f"keys-{uuid.uuid4().hex}", import_message()
        async with run_worker(queue, [DocumentImport], script.activities()):
            yield await server.client.start_workflow(
                DocumentImport.run,
                ImportInput(message=message),
                id=message.workflow_id,
                task_queue=queue,
                search_attributes=attributes.at_start("imports", "equipment", "p1"),
            )

    return start


async def test_a_run_waits_for_the_end_of_another_task_that_has_the_work(
    server: Any, running: Running
) -> None:
    reason = "task t-0 with the same idempotency key 'K' is running: this one waits for its end"
    script = ScriptedImport(preparations=[Preparation(waits=reason)] * 2)
    async with running(script) as handle:

        async def looked(times: int) -> bool:
            return len(script.prepared) == times

        await eventually(lambda: looked(1))
        await eventually(lambda: _shows(handle, reason))
        assert (await handle.query(DocumentImport.status)).reason == reason
        await server.skip(handle, by=timedelta(seconds=5))
        await eventually(lambda: looked(2))
        await server.skip(handle, by=timedelta(seconds=10))
        assert (await handle.result()).state is ImportState.COMPLETED
        assert not await _shows(handle, reason)


async def test_a_handler_that_waits_for_another_task_is_tried_again_from_the_first_step(
    server: Any, running: Running
) -> None:
    reason = "task t-0 is loading a schedule of the project: this one waits for its end"
    script = ScriptedImport(outcomes=[HandlerOutcome(waits=reason)])
    async with running(script) as handle:
        await eventually(lambda: _shows(handle, reason))
        status = await handle.query(DocumentImport.status)
        assert (status.state, status.reason) == (ImportState.RUNNING, reason)
        await server.skip(handle, by=timedelta(seconds=5))
        assert (await handle.result()).state is ImportState.COMPLETED
        assert not await _shows(handle, reason)
    assert (len(script.prepared), len(script.handled)) == (2, 2)


async def test_a_run_that_waits_for_another_task_can_be_cancelled(running: Running) -> None:
    script = ScriptedImport(preparations=[Preparation(waits="task t-0 is running")])
    async with running(script) as handle:
        await eventually(lambda: _shows(handle, "t-0"))
        await handle.execute_update(DocumentImport.cancel, Answer(reason="not needed"))
        assert (await handle.result()).state is ImportState.CANCELLED


async def _shows(handle: WorkflowHandle[Any, Any], text: str) -> bool:
    found = await handle.query("__temporal_workflow_metadata", result_type=WorkflowMetadata)
    return text in found.current_details


async def test_a_run_that_does_its_steps_again_completes_with_what_was_recorded(
    running: Running,
) -> None:
    script = ScriptedImport(preparations=[planned().model_copy(update={"done": True})])
    async with running(script) as handle:
        result = await handle.result()
    assert (result.state, result.reason, result.earlier) == (ImportState.COMPLETED, None, None)
    assert script.handlers == []
    assert [(each.state, each.outcome) for each in script.closed] == [(ImportState.COMPLETED, None)]


async def test_a_refused_message_ends_its_run_and_leaves_the_row_of_the_other(
    running: Running,
) -> None:
    refused = Preparation(refused="t-1 is completed already, by another message", digest="first")
    script = ScriptedImport(preparations=[refused])
    async with running(script) as handle:
        with pytest.raises(WorkflowFailureError) as failed:
            await handle.result()
    cause = failed.value.cause
    assert isinstance(cause, ApplicationError)
    assert (cause.type, cause.message) == (KEY_REUSED, refused.refused)
    result = ImportResult.model_validate(cause.details[0])
    assert (result.state, result.reason) == (ImportState.FAILED, refused.refused)
    assert (script.handlers, script.closed) == ([], [])
    described = await handle.describe()
    assert described.typed_search_attributes.get(attributes.STATE) == "failed"
    # Whoever comes with the first message again is answered for that one.
    assert (await described.memo())[MEMO] == "first"
