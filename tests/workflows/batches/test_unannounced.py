"""Batches whose run was terminated after their end and before LOADER_FINISHED was published."""

import pytest

from adapters.ports.errors import Denied
from tests.support.batches.installation import (
    BatchInstallation,
    Installations,
    keys_of,
    new_case,
)
from tests.support.batches.runs import BatchRuns, reach
from tests.support.batches.scripted import ScriptedBatch, denied, finished, started
from workflows.batches.batch_lifecycle import BatchLifecycle
from workflows.batches.events import Announcement, Publication
from workflows.batches.names import BatchKey, LoaderStatus, Phase, Purpose
from workflows.batches.runs import DocumentCounts, SweepInfo, SweepInput, Swept
from workflows.batches.sweeper import BatchSweeper

pytestmark = pytest.mark.asyncio(loop_scope="session")


@pytest.mark.parametrize(
    ("facts", "counts", "said"),
    [
        (SweepInfo(unannounced=LoaderStatus.COMPLETE), DocumentCounts(loaded=2), "SUCCESS"),
        (SweepInfo(unannounced=LoaderStatus.COMPLETE), DocumentCounts(failed=1), "PARTIAL"),
        (
            SweepInfo(unannounced=LoaderStatus.COMPLETE, not_loaded=3),
            DocumentCounts(loaded=2),
            "PARTIAL",
        ),
        (SweepInfo(unannounced=LoaderStatus.FAILED), DocumentCounts(loaded=2), "FAILED"),
        (SweepInfo(unannounced=LoaderStatus.CANCELLED), DocumentCounts(loaded=2), "CANCELLED"),
    ],
)
async def test_a_sweep_announces_an_end_as_its_run_would_have(
    batches: BatchRuns, facts: SweepInfo, counts: DocumentCounts, said: str
) -> None:
    script = ScriptedBatch(counts=counts)
    script.facts = [facts]
    async with batches.running(script, purpose=Purpose.SWEEP) as handle:
        await handle.result()
    assert script.events == [f"LOADER_FINISHED {said}"]
    assert script.announced[0].documents == counts


async def test_a_cancel_that_a_sweep_has_recorded_is_announced(batches: BatchRuns) -> None:
    script = ScriptedBatch()
    script.facts = [
        SweepInfo(processing=True),
        SweepInfo(unannounced=LoaderStatus.CANCELLED),
    ]
    async with batches.running(script, purpose=Purpose.SWEEP) as handle:
        await handle.result()
    assert script.events == ["LOADER_FINISHED CANCELLED"]


async def test_the_result_of_a_sweep_says_what_could_not_be_announced(batches: BatchRuns) -> None:
    script = ScriptedBatch()
    script.facts = [SweepInfo(unannounced=LoaderStatus.COMPLETE)]
    script.fails["announce"] = [denied()]
    async with batches.running(script, purpose=Purpose.SWEEP) as handle:
        reason = (await handle.result()).reason
    assert reason is not None and "announce: " in reason


async def _terminated_while_torn_down(installation: BatchInstallation, key: BatchKey) -> None:
    """Terminate the run of a batch, and that of its case, where its teardown is parked."""
    case = await installation.send(started(key))
    await installation.loads(key)
    await installation.send(finished(key))
    handle = installation.client.get_workflow_handle_for(BatchLifecycle.run, key.workflow_id)
    await reach(handle, Phase.PARKED)
    assert await installation.status(key) is LoaderStatus.COMPLETE
    assert installation.announced(key) == ["LOADER_STARTED", "BATCH_END_START"]
    await case.terminate()
    await handle.terminate()


async def _sweep(installation: BatchInstallation, key: BatchKey) -> Swept:
    return await installation.client.execute_workflow(
        BatchSweeper.run,
        SweepInput(grace=0),
        id=f"sweep-of-{key.workflow_id}",
        task_queue=installation.task_queue,
    )


@pytest.mark.cached(alone=True)
async def test_a_batch_that_was_terminated_while_torn_down_is_announced_once(
    installations: Installations,
) -> None:
    (key,) = keys_of(new_case(), 1)
    async with installations() as installation:
        installation.cloud.fail("delete_queue", Denied("not allowed"))
        await _terminated_while_torn_down(installation, key)
        assert await _sweep(installation, key) == Swept(batches=1)
        assert installation.announced(key)[2:] == ["LOADER_FINISHED"]
        assert installation.cloud.published[-1].status == "EMPTY"
        assert await installation.status(key) is LoaderStatus.COMPLETE
        assert installation.cloud.is_empty
        assert await _sweep(installation, key) == Swept()


@pytest.mark.cached(alone=True)
async def test_an_announcement_that_failed_is_made_by_a_later_sweep(
    installations: Installations,
) -> None:
    (key,) = keys_of(new_case(), 1)
    async with installations() as installation:
        cloud = installation.cloud

        def refuse_what_follows(said: Publication) -> None:
            if said.event_type is Announcement.BATCH_END_START:
                cloud.fail("publish", Denied("not allowed"), times=2)

        cloud.listeners.append(refuse_what_follows)
        await _terminated_while_torn_down(installation, key)
        assert cloud.is_empty, "there is nothing to find it by"
        assert await _sweep(installation, key) == Swept(batches=1)
        assert installation.announced(key)[2:] == []
        assert await _sweep(installation, key) == Swept(batches=1)
        assert installation.announced(key)[2:] == ["LOADER_FINISHED"]
        assert await _sweep(installation, key) == Swept()
