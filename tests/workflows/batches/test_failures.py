"""Batches that are cancelled, that fail, that cannot be removed: nothing is left of them."""

from datetime import timedelta
from typing import Any

import pytest
from temporalio.client import (
    WorkflowExecutionStatus,
    WorkflowFailureError,
    WorkflowUpdateFailedError,
)
from temporalio.exceptions import ApplicationError

from tests.support.batches.runs import (
    BatchRuns,
    attribute_of,
    end,
    holds,
    reach,
    removed_by,
    status_of,
)
from tests.support.batches.scripted import (
    MAKING,
    REMOVING,
    ScriptedBatch,
    cancelled,
    denied,
    depth,
    finished,
)
from tests.support.waiting import eventually
from workflows.batches.batch_lifecycle import BatchLifecycle
from workflows.batches.events import CancelMode
from workflows.batches.names import LoaderStatus, Phase, Purpose, Resource
from workflows.batches.runs import BatchAnswer
from workflows.shared import attributes
from workflows.shared.errors import BATCH_FAILED

pytestmark = pytest.mark.asyncio(loop_scope="session")

replayed = pytest.mark.cached(alone=True)
"""For cases that differ in their step alone: one of each is recorded, and its history replayed,
as a worker without a cache does."""


@replayed
@pytest.mark.parametrize("step", MAKING)
async def test_a_cancel_at_any_step_of_provisioning_leaves_nothing(
    batches: BatchRuns, step: str
) -> None:
    script = ScriptedBatch()
    script.hold(step)
    async with batches.running(script) as handle:
        await script.working.wait()
        await handle.signal(BatchLifecycle.take, cancelled())
        result = await handle.result()
    assert result.status is LoaderStatus.CANCELLED
    begun = script.calls.index(REMOVING[0])
    assert not set(script.calls[begun:]) & set(MAKING)
    assert removed_by(script) == list(REMOVING)
    assert script.events == ["LOADER_FINISHED CANCELLED"]
    assert script.inputs[-1].keep_dead_letters is False


@pytest.mark.parametrize(
    ("held", "phase"),
    [("look", Phase.LOADING), ("redrive", Phase.REDRIVING), ("announce", Phase.PROVISIONING)],
)
async def test_a_full_cancel_stops_whatever_is_under_way(
    batches: BatchRuns, held: str, phase: Phase
) -> None:
    script = ScriptedBatch(depths=[depth(dead=1)])
    script.hold(held)
    async with batches.running(script) as handle:
        if held == "redrive":
            await handle.signal(BatchLifecycle.take, finished())
        await script.working.wait()
        assert (await status_of(handle)).phase is phase
        script.held[held].set()
        await handle.signal(BatchLifecycle.take, cancelled())
        result = await handle.result()
    assert result.status is LoaderStatus.CANCELLED
    assert script.made("cancel_loads") == 1
    assert removed_by(script) == list(REMOVING)


async def test_messages_that_are_removed_with_the_queue_are_named(batches: BatchRuns) -> None:
    script = ScriptedBatch(depths=[depth(7)])
    async with batches.running(script) as handle:
        await reach(handle, Phase.LOADING)
        await eventually(lambda: holds(script.made("look") > 0))
        await handle.signal(BatchLifecycle.take, cancelled())
        result = await handle.result()
    assert result.status is LoaderStatus.CANCELLED
    assert result.reason == "7 messages in its queue were not loaded"
    assert script.closings[0].reason == result.reason


async def test_a_canary_in_the_queue_is_no_message_that_was_not_loaded(batches: BatchRuns) -> None:
    script = ScriptedBatch(depths=[depth(1)])
    script.hold("attach_mapping")
    async with batches.running(script) as handle:
        await script.working.wait()
        await handle.signal(BatchLifecycle.take, cancelled())
        script.held["attach_mapping"].set()
        result = await handle.result()
    assert (result.status, result.reason) == (LoaderStatus.CANCELLED, None)


async def test_a_partial_cancel_drains_what_is_in_flight(batches: BatchRuns) -> None:
    script = ScriptedBatch(depths=[depth(8), depth(3), depth(1, dead=1), depth(dead=1)], keeps=True)
    async with batches.running(script) as handle:
        await reach(handle, Phase.LOADING)
        await handle.signal(BatchLifecycle.take, cancelled(CancelMode.PARTIAL))
        result = await handle.result()
    assert (result.status, result.dead_letters) == (LoaderStatus.CANCELLED, 1)
    assert removed_by(script) == ["unsubscribe", *REMOVING]
    first = script.calls.index("unsubscribe")
    assert script.calls[first + 1 : first + 4] == ["look"] * 3
    assert script.passes == []
    assert script.inputs[-1].keep_dead_letters is True
    assert script.events == ["LOADER_STARTED SUCCESS", "LOADER_FINISHED CANCELLED"]


async def test_a_full_cancel_after_a_partial_one_waits_for_nothing(batches: BatchRuns) -> None:
    script = ScriptedBatch(depths=[depth(8)])
    async with batches.running(script) as handle:
        await reach(handle, Phase.LOADING)
        await handle.signal(BatchLifecycle.take, cancelled(CancelMode.PARTIAL))
        await reach(handle, Phase.DRAINING)
        await handle.signal(BatchLifecycle.take, cancelled())
        assert (await handle.result()).status is LoaderStatus.CANCELLED
    assert script.inputs[-1].keep_dead_letters is False


async def test_temporals_own_cancel_removes_everything_too(batches: BatchRuns) -> None:
    script = ScriptedBatch()
    script.hold("create_function")
    async with batches.running(script) as handle:
        await script.working.wait()
        await handle.cancel()
        with pytest.raises(WorkflowFailureError):
            await handle.result()
        described = await handle.describe()
    assert described.status is WorkflowExecutionStatus.CANCELED
    assert removed_by(script) == list(REMOVING)
    assert [closing.status for closing in script.closings] == [LoaderStatus.CANCELLED]


async def test_a_cancel_during_teardown_does_not_stop_it(batches: BatchRuns) -> None:
    script = ScriptedBatch()
    script.hold("delete_function")
    async with batches.running(script) as handle:
        await handle.signal(BatchLifecycle.take, finished())
        await end(handle)
        await script.working.wait()
        await handle.cancel()
        await handle.signal(BatchLifecycle.take, cancelled())
        script.held["delete_function"].set()
        result = await handle.result()
    assert result.status is LoaderStatus.COMPLETE
    assert removed_by(script) == ["unsubscribe", *REMOVING]


@replayed
@pytest.mark.parametrize("step", [*MAKING, "validate", "plan", "announce"])
async def test_a_failed_step_waits_and_resumes_where_it_failed(
    batches: BatchRuns, step: str
) -> None:
    script = ScriptedBatch()
    script.fails[step] = [denied()]
    async with batches.running(script) as handle:
        status = await reach(handle, Phase.PARKED)
        assert status.reason is not None and "no rights" in status.reason
        assert await attribute_of(handle, attributes.NEEDS_ATTENTION) is True
        await handle.execute_update(BatchLifecycle.retry, BatchAnswer(by="ann"))
        await reach(handle, Phase.LOADING)
    # Its row says so, and then no longer.
    asked, no_longer = (each.reason for each in script.received["call"])
    assert asked.endswith("no rights") and no_longer is None
    for name in MAKING:
        assert script.made(name) == (2 if name == step else 1)


@pytest.mark.parametrize("answer", ["fail", "skip", None])
async def test_a_batch_that_is_given_up_leaves_nothing(
    server: Any, batches: BatchRuns, answer: str | None
) -> None:
    script = ScriptedBatch()
    script.fails["subscribe"] = [denied("no room for another filter policy")]
    async with batches.running(script) as handle:
        await reach(handle, Phase.PARKED)
        if answer is None:
            await server.skip(handle, timedelta(hours=6, minutes=1))
        else:
            await handle.execute_update(answer, BatchAnswer(by="ann"))
        with pytest.raises(WorkflowFailureError) as failure:
            await handle.result()
    cause = failure.value.cause
    assert isinstance(cause, ApplicationError) and cause.type == BATCH_FAILED
    assert cause.message.startswith("provision: subscription: no room")
    assert cause.message.endswith("; not answered in time") is (answer is None)
    assert cause.details[0]["status"] == "failed"
    assert removed_by(script) == list(REMOVING)
    assert script.closings[0].status is LoaderStatus.FAILED
    assert script.events == ["LOADER_FINISHED FAILED"]


@replayed
@pytest.mark.parametrize("step", REMOVING)
async def test_what_cannot_be_removed_is_asked_about(batches: BatchRuns, step: str) -> None:
    script = ScriptedBatch()
    script.fails[step] = [denied(), denied()]
    async with batches.running(script) as handle:
        await handle.signal(BatchLifecycle.take, finished())
        await end(handle)
        await reach(handle, Phase.PARKED)
        await handle.execute_update(BatchLifecycle.retry, BatchAnswer())
        await eventually(lambda: holds(script.made(step) == 2))
        await reach(handle, Phase.PARKED)
        await handle.execute_update(BatchLifecycle.skip, BatchAnswer())
        result = await handle.result()
        # The subscription is removed before the last look, and once more with all else.
        left = 0 if step == "unsubscribe" else 1
        assert await attribute_of(handle, attributes.NEEDS_ATTENTION) is bool(left)
    assert (result.status, len(result.left)) == (LoaderStatus.COMPLETE, left)
    assert list(dict.fromkeys(removed_by(script))) == list(REMOVING)


async def test_an_answer_to_a_run_that_is_not_parked_is_refused(batches: BatchRuns) -> None:
    async with batches.running(ScriptedBatch()) as handle:
        await reach(handle, Phase.LOADING)
        for answer in ("retry", "skip", "fail"):
            with pytest.raises(WorkflowUpdateFailedError):
                await handle.execute_update(answer, BatchAnswer())


async def test_what_a_terminated_run_left_is_swept(batches: BatchRuns) -> None:
    script = ScriptedBatch()
    async with batches.running(script, purpose=Purpose.SWEEP) as handle:
        result = await handle.result()
    assert result.status is LoaderStatus.TERMINATED
    assert removed_by(script) == list(REMOVING)
    assert not set(script.calls) & set(MAKING) and script.made("validate") == 0
    assert script.closings[0].only_processing is True
    assert script.events == []


async def test_a_sweep_does_not_wait_for_an_answer(batches: BatchRuns) -> None:
    script = ScriptedBatch()
    script.fails["delete_function"] = [denied()]
    async with batches.running(script, purpose=Purpose.SWEEP) as handle:
        assert (await handle.result()).left == (Resource.FUNCTION,)
