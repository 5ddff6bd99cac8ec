"""The story of one document of a batch, with every step scripted."""

import uuid
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from datetime import timedelta
from typing import Any

import pytest
from temporalio.api.enums.v1 import EventType
from temporalio.api.sdk.v1 import WorkflowMetadata
from temporalio.client import WorkflowExecutionStatus, WorkflowFailureError, WorkflowHandle
from temporalio.common import WorkflowIDReusePolicy
from temporalio.exceptions import ApplicationError, CancelledError

from tests.support.batches.scripted_load import (
    ATTACHMENTS,
    PROCESSED,
    RELATIONS,
    SOURCE,
    ScriptedLoad,
    refused,
    unreadable,
)
from tests.support.waiting import eventually
from workflows.batches.document_load import FIRST_PAUSE, DocumentLoad
from workflows.batches.loads import (
    DocumentEvent,
    DocumentLoadInput,
    DocumentState,
    GiveUp,
    LoadResult,
    LoadStep,
    StepOutcome,
)
from workflows.shared import attributes
from workflows.shared.contracts import MEMO
from workflows.shared.errors import DOCUMENT_FAILED, KEY_REUSED, TRANSIENT

pytestmark = pytest.mark.asyncio(loop_scope="session")

Handle = WorkflowHandle[Any, LoadResult]
ALL = [step.value for step in LoadStep]


@dataclass
class Loads:
    """Starts loads on a worker of the test's own."""

    server: Any
    run_worker: Any

    @asynccontextmanager
    async def worker(self, script: ScriptedLoad) -> AsyncIterator[str]:
        queue = f"loads-{uuid.uuid4().hex}"
        async with self.run_worker(queue, [DocumentLoad], script.activities()):
            yield queue

    async def start(self, queue: str, event: DocumentEvent = PROCESSED) -> Handle:
        return await self.server.client.start_workflow(
            DocumentLoad.run,
            DocumentLoadInput(event=event),
            id=f"{event.workflow_id}/{queue}",
            task_queue=queue,
            id_reuse_policy=WorkflowIDReusePolicy.ALLOW_DUPLICATE_FAILED_ONLY,
            search_attributes=attributes.at_start("batches", event.event_type, str(event.case_id)),
        )


@pytest.fixture
def loads(server: Any, run_worker: Any) -> Loads:
    return Loads(server, run_worker)


async def _details(handle: Handle) -> str:
    metadata = await handle.query("__temporal_workflow_metadata", result_type=WorkflowMetadata)
    return metadata.current_details


async def _pauses(handle: Handle) -> bool:
    """Whether a timer of the run has begun and not fired."""
    kinds = [event.event_type async for event in handle.fetch_history_events()]
    begun = kinds.count(EventType.EVENT_TYPE_TIMER_STARTED)
    return begun > kinds.count(EventType.EVENT_TYPE_TIMER_FIRED)


async def _failure(handle: Handle) -> ApplicationError:
    with pytest.raises(WorkflowFailureError) as raised:
        await handle.result()
    assert isinstance(raised.value.cause, ApplicationError)
    return raised.value.cause


@pytest.mark.cached
async def test_a_document_takes_every_step_once(loads: Loads) -> None:
    script = ScriptedLoad()
    async with loads.worker(script) as queue:
        handle = await loads.start(queue)
        result = await handle.result()
    assert result == LoadResult(
        document_id="DOC-1", state=DocumentState.LOADED, steps=tuple(LoadStep)
    )
    assert script.calls == ALL
    assert [order.source for order in script.orders] == [None, SOURCE, SOURCE, SOURCE, SOURCE]
    described = (await handle.describe()).typed_search_attributes
    assert described.get(attributes.STATE) == "loaded"


async def test_only_steps_that_move_bytes_are_remote(loads: Loads) -> None:
    assert await _remote_steps(loads, ScriptedLoad()) == ["batches.dedupe", "batches.extract"]


async def test_a_step_that_takes_long_continues_as_a_remote_one(loads: Loads) -> None:
    script, relations = ScriptedLoad(), [StepOutcome(unfinished=True), StepOutcome()]
    script.results[LoadStep.RELATIONS] = lambda order: relations.pop(0)
    remote = ["batches.dedupe", "batches.extract", "batches.relations"]
    assert await _remote_steps(loads, script) == remote
    assert script.calls == [*ALL[:4], LoadStep.RELATIONS, ALL[4]]


async def _remote_steps(loads: Loads, script: ScriptedLoad) -> list[str]:
    async with loads.worker(script) as queue:
        handle = await loads.start(queue)
        await handle.result()
        history = await handle.fetch_history()
    return [
        event.activity_task_scheduled_event_attributes.activity_type.name
        for event in history.events
        if event.event_type == EventType.EVENT_TYPE_ACTIVITY_TASK_SCHEDULED
    ]


async def test_a_message_whose_document_is_that_of_another_is_no_dead_letter(loads: Loads) -> None:
    script = ScriptedLoad()
    script.fails[LoadStep.DEDUPE] = [refused()]
    async with loads.worker(script) as queue:
        handle = await loads.start(queue)
        failure = await _failure(handle)
    assert (failure.type, failure.message) == (KEY_REUSED, "DOC-1 is that of another message")
    assert LoadResult.model_validate(failure.details[0]).state is DocumentState.FAILED
    assert script.calls == ["dedupe"]
    # Whoever comes with the first message again is answered for that one.
    assert (await (await handle.describe()).memo())[MEMO] == "first"


async def test_a_duplicate_is_read_no_further(loads: Loads) -> None:
    script = ScriptedLoad(duplicate_of="DOC-0")
    async with loads.worker(script) as queue:
        result = await (await loads.start(queue)).result()
    assert (result.state, result.duplicate_of) == (DocumentState.DUPLICATE, "DOC-0")
    assert script.calls == ["dedupe"]


async def test_a_file_that_a_later_message_came_before_is_read_no_further(loads: Loads) -> None:
    script = ScriptedLoad(superseded=True)
    async with loads.worker(script) as queue:
        result = await (await loads.start(queue)).result()
    assert (result.state, script.calls) == (DocumentState.SUPERSEDED, ["dedupe"])


@pytest.mark.parametrize(
    ("event", "steps"), [(RELATIONS, ["relations"]), (ATTACHMENTS, ["attachments"])]
)
async def test_other_events_take_their_own_step(
    loads: Loads, event: DocumentEvent, steps: list[str]
) -> None:
    script = ScriptedLoad()
    async with loads.worker(script) as queue:
        result = await (await loads.start(queue, event)).result()
    assert (result.state, script.calls) == (DocumentState.LOADED, steps)


@pytest.mark.parametrize("step", list(LoadStep))
async def test_a_load_after_a_failed_one_resumes_where_that_stopped(
    loads: Loads, step: LoadStep
) -> None:
    script = ScriptedLoad()
    script.fails[step].append(unreadable())
    async with loads.worker(script) as queue:
        failure = await _failure(await loads.start(queue))
        assert script.calls == [*ALL[: ALL.index(step) + 1], "give_up"]
        result = await (await loads.start(queue)).result()
    assert (failure.type, failure.message) == (DOCUMENT_FAILED, "the file is cut off")
    before = tuple(LoadStep)[: ALL.index(step)]
    assert LoadResult.model_validate(failure.details[0]) == LoadResult(
        document_id="DOC-1",
        state=DocumentState.FAILED,
        steps=before,
        reason="the file is cut off",
    )
    assert script.given_up == [GiveUp(event=PROCESSED, step=step, reason="the file is cut off")]
    assert result.state is DocumentState.LOADED
    assert result.steps == tuple(LoadStep)[len(before) :]


async def test_what_fails_for_a_moment_is_tried_again(loads: Loads) -> None:
    script = ScriptedLoad()
    script.fails["tags"].append(
        ApplicationError("away", type=TRANSIENT, next_retry_delay=timedelta(milliseconds=10))
    )
    async with loads.worker(script) as queue:
        result = await (await loads.start(queue)).result()
    assert result.steps == tuple(LoadStep)
    assert script.calls.count("tags") == 2


async def test_on_the_final_pass_a_failure_is_an_end(loads: Loads) -> None:
    script = ScriptedLoad(is_final=True)
    script.fails["extract"].append(unreadable())
    async with loads.worker(script) as queue:
        handle = await loads.start(queue)
        result = await handle.result()
    assert (result.state, result.reason) == (DocumentState.FAILED, "the file is cut off")
    assert script.calls == ["dedupe", "extract", "give_up"]
    described = (await handle.describe()).typed_search_attributes
    assert described.get(attributes.STATE) == "failed"


async def test_a_document_that_cannot_be_given_up_yet_is_not_lost(
    loads: Loads, server: Any
) -> None:
    script = ScriptedLoad()
    script.fails["extract"].append(unreadable())
    script.fails["give_up"] += [
        ApplicationError("the queue is unavailable", type=TRANSIENT, non_retryable=True)
        for _ in range(2)
    ]
    async with loads.worker(script) as queue:
        handle = await loads.start(queue)

        async def waits() -> bool:
            return "the queue is unavailable" in await _details(handle)

        await eventually(waits)
        assert "the file is cut off" in await _details(handle)
        assert (await handle.query(DocumentLoad.status)).reason == "the file is cut off"
        # Each pause is twice the one before.
        for pause in (FIRST_PAUSE, 2 * FIRST_PAUSE):
            await eventually(lambda: _pauses(handle))
            await server.skip(handle, pause)
        failure = await _failure(handle)
    assert failure.type == DOCUMENT_FAILED
    assert script.calls.count("give_up") == 3


@pytest.mark.parametrize("stubborn", [False, True])
async def test_a_cancelled_load_begins_no_further_step(loads: Loads, stubborn: bool) -> None:
    script = ScriptedLoad(held={"extract"}, stubborn={"extract"} if stubborn else set())
    async with loads.worker(script) as queue:
        handle = await loads.start(queue)
        await script.working.wait()
        status = await handle.query(DocumentLoad.status)
        assert (status.state, status.steps) == (DocumentState.LOADING, (LoadStep.DEDUPE,))
        assert "`extract` of DOC-1 (batch 3 of case 7)" in await _details(handle)
        await handle.cancel()
        with pytest.raises(WorkflowFailureError) as raised:
            await handle.result()
        assert isinstance(raised.value.cause, CancelledError)
        assert (await handle.describe()).status is WorkflowExecutionStatus.CANCELED
        assert script.calls == ["dedupe", "extract"]

        script.held.clear()
        result = await (await loads.start(queue)).result()
    assert result.state is DocumentState.LOADED


async def test_who_fails_while_being_cancelled_is_no_dead_letter(loads: Loads) -> None:
    script = ScriptedLoad(held={"extract"}, fails_when_cancelled=unreadable())
    async with loads.worker(script) as queue:
        handle = await loads.start(queue)
        await script.working.wait()
        await handle.cancel()
        with pytest.raises(WorkflowFailureError):
            await handle.result()
        assert (await handle.describe()).status is WorkflowExecutionStatus.CANCELED
    assert "give_up" not in script.calls
