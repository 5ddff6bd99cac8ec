"""What a batch does when someone deletes its queue or its function behind its back."""

from collections.abc import Mapping
from typing import Any

import pytest

from tests.support.batches.installation import Installations, keys_of, new_case
from tests.support.batches.runs import BatchRuns, end, reach
from tests.support.batches.scripted import TODAY, ScriptedBatch, depth, finished, started
from tests.support.memory.cloud import MemoryQueue
from tests.support.waiting import eventually
from workers.batches.labels import shown_outcome
from workflows.batches.batch_lifecycle import BatchLifecycle
from workflows.batches.names import (
    BatchKey,
    LoaderStatus,
    Phase,
    Purpose,
    Resource,
    ResourceState,
    Timings,
    ValidationOutcome,
)
from workflows.batches.runs import BatchAnswer, StepDone, Validation

pytestmark = pytest.mark.asyncio(loop_scope="session")

QUICK = Timings(settle=0, poll=1, hold=0)
LOST = "deleted by someone else, with the documents that had not been loaded: send them again"
NOT_COME = (
    "deleted by someone else: documents that were published since have not come; send them again"
)


def found(*depths: Any) -> ScriptedBatch:
    script = ScriptedBatch(depths=list(depths))
    script.results["plan"] = TODAY
    return script


async def test_a_queue_that_was_deleted_while_loading_is_built_again_by_a_retry(
    batches: BatchRuns,
) -> None:
    script = found(depth(missing=[Resource.QUEUE]), depth())
    async with batches.running(script) as handle:
        status = await reach(handle, Phase.PARKED)
        assert status.reason is not None and f"queue {LOST}" in status.reason
        before = script.calls.count("look_for_delivery")
        await handle.execute_update(BatchLifecycle.retry, BatchAnswer())
        await reach(handle, Phase.LOADING)
        again = ["create_queue", "subscribe", "attach_mapping"]
        await eventually(lambda: _twice(script, again))
        # The function would take the canary out of the queue.
        assert script.calls.count("look_for_delivery") == before
        await handle.signal(BatchLifecycle.take, finished())
        await end(handle)
        result = await handle.result()
    assert (result.status, result.outcome) == (LoaderStatus.COMPLETE, "PARTIAL")
    assert result.reason is not None and LOST in result.reason
    [closing] = script.closings
    assert closing.lost == f"queue {LOST}", "its row says so when its run is forgotten"


async def test_another_pass_does_not_bring_back_what_a_run_before_has_lost(
    batches: BatchRuns,
) -> None:
    script = found(depth())
    script.validations = [Validation(outcome=ValidationOutcome.CONTINUE, lost=f"queue {LOST}")]
    async with batches.running(script, purpose=Purpose.REDRIVE) as handle:
        await end(handle)
        result = await handle.result()
    assert (result.status, result.outcome) == (LoaderStatus.COMPLETE, "PARTIAL")
    assert script.events[-1] == "LOADER_FINISHED PARTIAL"
    [closing] = script.closings
    assert closing.lost == f"queue {LOST}"


async def _twice(script: ScriptedBatch, names: list[str]) -> bool:
    return all(script.calls.count(name) == 2 for name in names)


async def test_a_function_that_was_deleted_is_named_and_built_again(batches: BatchRuns) -> None:
    script = found(depth(3), depth(3, missing=[Resource.FUNCTION]), depth())
    async with batches.running(script) as handle:
        await reach(handle, Phase.LOADING)
        await handle.signal(BatchLifecycle.take, finished())
        status = await reach(handle, Phase.PARKED)
        assert status.reason is not None and "function deleted by someone else" in status.reason
        await handle.execute_update(BatchLifecycle.retry, BatchAnswer())
        await end(handle)
        result = await handle.result()
    assert (result.status, result.outcome) == (LoaderStatus.COMPLETE, "SUCCESS")
    assert script.calls.count("create_function") == 2


async def test_a_mapping_that_was_disabled_behind_a_closed_intake_is_made_again(
    batches: BatchRuns,
) -> None:
    script = found(depth())
    async with batches.running(script) as handle:
        await reach(handle, Phase.LOADING)
        await handle.signal(BatchLifecycle.take, finished())
        await reach(handle, Phase.ENDING)
        script.depths = [depth(2, missing=[Resource.MAPPING]), depth()]
        await end(handle)
        status = await reach(handle, Phase.PARKED)
        said = "event source mapping disabled or deleted by someone else"
        assert status.reason is not None and said in status.reason
        await handle.execute_update(BatchLifecycle.retry, BatchAnswer())
        result = await handle.result()
    assert (result.status, result.outcome) == (LoaderStatus.COMPLETE, "SUCCESS")
    assert script.calls.count("attach_mapping") == 2
    assert script.calls.count("subscribe") == 1, "nothing more may come in"


async def test_documents_that_a_deleted_subscription_lost_are_named(batches: BatchRuns) -> None:
    script = found(depth(missing=[Resource.SUBSCRIPTION]), depth())
    script.results["subscribe"] = StepDone(state=ResourceState.READY, name="arn")
    async with batches.running(script) as handle:
        status = await reach(handle, Phase.PARKED)
        assert status.reason is not None and f"subscription {NOT_COME}" in status.reason
        await handle.execute_update(BatchLifecycle.retry, BatchAnswer())
        await reach(handle, Phase.LOADING)
        await handle.signal(BatchLifecycle.take, finished())
        await end(handle)
        result = await handle.result()
    assert (result.status, result.outcome) == (LoaderStatus.COMPLETE, "PARTIAL")
    assert result.reason is not None and NOT_COME in result.reason
    looks = [look.subscription for look in script.received["look"]]
    assert looks[0] == "arn", "it is looked for by its name"
    assert looks[-1] is None, "and no longer, once the batch has removed it"


async def test_a_batch_whose_queue_was_deleted_can_be_given_up(batches: BatchRuns) -> None:
    script = found(depth(missing=[Resource.QUEUE, Resource.DEAD_LETTERS]))
    async with batches.running(script) as handle:
        await reach(handle, Phase.PARKED)
        await handle.execute_update(BatchLifecycle.fail, BatchAnswer(reason="sent elsewhere"))
        await eventually(lambda: _closed(script))
    [closing] = script.closings
    assert closing.status is LoaderStatus.FAILED
    assert closing.reason is not None and "sent elsewhere" in closing.reason


async def _closed(script: ScriptedBatch) -> bool:
    return bool(script.closings)


async def test_dead_letters_that_are_deleted_at_the_end_make_it_partial(batches: BatchRuns) -> None:
    script = found(depth())
    async with batches.running(script) as handle:
        await reach(handle, Phase.LOADING)
        await handle.signal(BatchLifecycle.take, finished())
        await reach(handle, Phase.ENDING)
        script.depths = [depth(missing=[Resource.DEAD_LETTERS])]
        await end(handle)
        result = await handle.result()
    assert result.outcome == "PARTIAL"
    assert result.reason is not None and f"dead-letter queue {LOST}" in result.reason


async def _takes_documents(queues: Mapping[str, MemoryQueue], name: str) -> bool:
    return name in queues and queues[name].open_to_topic and queues[name].redrives


@pytest.mark.cached(alone=True)
async def test_a_queue_in_the_cloud_that_was_deleted_is_there_after_a_retry(
    installations: Installations,
) -> None:
    (key,) = keys_of(new_case(), 1)
    async with installations() as installation:
        await installation.send(started(key))
        await installation.loads(key)
        queues = installation.cloud.queues_by_name
        [name] = [name for name in queues if not name.endswith("_dlq")]
        del queues[name]
        handle = installation.client.get_workflow_handle_for(BatchLifecycle.run, key.workflow_id)
        await reach(handle, Phase.PARKED)
        await handle.execute_update(BatchLifecycle.retry, BatchAnswer())
        await eventually(lambda: _takes_documents(queues, name))
        await installation.send(finished(key))
        await installation.ended(key)
        assert (await handle.result()).outcome == "PARTIAL"
        assert installation.cloud.is_empty
        view = await installation.store.get(key)
        assert view is not None and view.lost == f"queue {LOST}"
        assert shown_outcome(view, None) == "PARTIAL"


async def _subscribed(subscriptions: Mapping[str, BatchKey], name: str) -> bool:
    return name in subscriptions


@pytest.mark.cached(alone=True)
async def test_a_subscription_in_the_cloud_that_was_deleted_is_there_after_a_retry(
    installations: Installations,
) -> None:
    (key,) = keys_of(new_case(), 1)
    async with installations() as installation:
        await installation.send(started(key))
        await installation.loads(key)
        subscriptions = installation.cloud.subscriptions
        [name] = subscriptions
        del subscriptions[name]
        handle = installation.client.get_workflow_handle_for(BatchLifecycle.run, key.workflow_id)
        await reach(handle, Phase.PARKED)
        await handle.execute_update(BatchLifecycle.retry, BatchAnswer())
        await eventually(lambda: _subscribed(subscriptions, name))
        await installation.send(finished(key))
        await installation.ended(key)
        assert (await handle.result()).outcome == "PARTIAL"
        assert installation.cloud.is_empty
