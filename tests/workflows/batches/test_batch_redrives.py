"""Dead letters and failed documents of a batch are tried again, with every activity scripted."""

import pytest

from tests.support.batches.runs import (
    BatchRuns,
    attribute_of,
    end,
    reach,
    removed_by,
)
from tests.support.batches.scripted import (
    MAKING,
    REMOVING,
    ScriptedBatch,
    again,
    depth,
    finished,
)
from workflows.batches.batch_lifecycle import BatchLifecycle
from workflows.batches.names import LoaderStatus, Phase, Purpose
from workflows.batches.runs import BatchAnswer, DocumentCounts
from workflows.shared import attributes

pytestmark = pytest.mark.asyncio(loop_scope="session")


async def test_dead_letters_are_redriven_and_the_last_pass_is_final(batches: BatchRuns) -> None:
    script = ScriptedBatch(depths=[depth(dead=2)], keeps=True)
    async with batches.running(script) as handle:
        await handle.signal(BatchLifecycle.take, finished())
        await end(handle)
        result = await handle.result()
        assert await attribute_of(handle, attributes.NEEDS_ATTENTION) is True
        assert await attribute_of(handle, attributes.STATE) == "complete"
    assert [(one.number, one.final) for one in script.passes] == [(1, False), (2, True)]
    assert (result.status, result.redrives, result.dead_letters) == (LoaderStatus.COMPLETE, 2, 2)
    assert result.reason is not None and "2 dead letters are kept" in result.reason
    assert script.closings[0].dead_letters == 2


async def test_dead_letters_that_load_the_second_time_leave_nothing(batches: BatchRuns) -> None:
    script = ScriptedBatch(depths=[depth(dead=5), depth(3), depth()])
    async with batches.running(script) as handle:
        await handle.signal(BatchLifecycle.take, finished())
        await end(handle)
        result = await handle.result()
        assert await attribute_of(handle, attributes.NEEDS_ATTENTION) is False
    assert (result.redrives, result.dead_letters, len(script.passes)) == (1, 0, 1)
    assert result.reason is None, "the pass is over, and no reason for anything"


async def test_a_pass_leaves_the_reason_that_people_had_given_before(batches: BatchRuns) -> None:
    script = ScriptedBatch(counts=DocumentCounts(loaded=2))
    async with batches.running(script) as handle:
        await handle.signal(BatchLifecycle.take, finished(documents=3))
        await reach(handle, Phase.PARKED)
        await handle.execute_update(BatchLifecycle.skip, BatchAnswer(reason="one is lost"))
        await reach(handle, Phase.ENDING)
        script.depths = [depth(dead=1), depth()]
        await end(handle)
        result = await handle.result()
    assert result.redrives == 1
    assert result.reason is not None and "one is lost" in result.reason


async def test_a_requested_pass_is_an_additional_one(batches: BatchRuns) -> None:
    script = ScriptedBatch(depths=[depth(dead=1)], keeps=True)
    async with batches.running(script) as handle:
        await reach(handle, Phase.LOADING)
        await handle.signal(BatchLifecycle.take, again())
        await handle.signal(BatchLifecycle.take, finished())
        await end(handle)
        assert (await handle.result()).redrives == 3
    assert [one.final for one in script.passes] == [False, False, True]


async def test_kept_dead_letters_can_be_redriven_by_a_run_of_their_own(batches: BatchRuns) -> None:
    script = ScriptedBatch(depths=[depth(dead=1), depth()])
    async with batches.running(script, purpose=Purpose.REDRIVE) as handle:
        await end(handle)
        result = await handle.result()
    assert (result.status, result.redrives) == (LoaderStatus.COMPLETE, 1)
    assert sorted(name for name in script.calls if name in MAKING) == sorted(MAKING)
    assert removed_by(script) == ["unsubscribe", *REMOVING]


async def test_failed_documents_are_tried_again_by_a_run_of_their_own(batches: BatchRuns) -> None:
    script = ScriptedBatch()
    async with batches.running(script, purpose=Purpose.RETRY_FAILED) as handle:
        await end(handle)
        result = await handle.result()
    assert (result.status, result.redrives) == (LoaderStatus.COMPLETE, 1)
    assert [(one.final, one.with_failed) for one in script.passes] == [(False, True)]


async def test_failed_documents_are_tried_again_by_the_run_that_loads(batches: BatchRuns) -> None:
    script = ScriptedBatch(depths=[depth(dead=1)], keeps=True)
    async with batches.running(script) as handle:
        await handle.signal(BatchLifecycle.take, finished())
        await reach(handle, Phase.ENDING)
        script.depths = [depth()]
        await handle.signal(BatchLifecycle.take, again(with_failed=True))
        await end(handle)
        assert (await handle.result()).redrives == 3
    assert [(one.final, one.with_failed) for one in script.passes] == [
        (False, False),
        (True, False),
        (True, True),
    ]


async def test_no_documents_at_all_are_held_against_what_was_loaded(batches: BatchRuns) -> None:
    script = ScriptedBatch(counts=DocumentCounts(loaded=2))
    async with batches.running(script) as handle:
        await handle.signal(BatchLifecycle.take, finished(documents=0))
        await end(handle)
        result = await handle.result()
    assert result.reason == "JOB_FINISHED said 0 documents, and 2 are known"
