"""Batches that were cancelled and whose run was terminated, removed by the sweeper."""

import pytest

from tests.support.batches.installation import (
    BatchInstallation,
    Installations,
    keys_of,
    new_case,
)
from tests.support.batches.runs import BatchRuns
from tests.support.batches.scripted import ScriptedBatch, cancelled, denied, started
from workflows.batches.batch_lifecycle import BatchLifecycle
from workflows.batches.events import CancelMode
from workflows.batches.names import BatchKey, LoaderStatus, Purpose
from workflows.batches.runs import BatchInput, BatchResult, SweepInfo
from workflows.shared import attributes

pytestmark = pytest.mark.asyncio(loop_scope="session")

CANCELLED = SweepInfo(processing=True, cancelled=CancelMode.FULL)


async def _swept(installation: BatchInstallation, key: BatchKey) -> BatchResult:
    """The result of the run that the sweeper starts."""
    return await installation.client.execute_workflow(
        BatchLifecycle.run,
        BatchInput(key=key, purpose=Purpose.SWEEP, notify=False),
        id=key.workflow_id,
        task_queue=installation.task_queue,
        search_attributes=attributes.at_start("batches", Purpose.SWEEP, str(key.case_id)),
    )


@pytest.mark.cached(alone=True)
@pytest.mark.parametrize("mode", list(CancelMode))
async def test_a_cancelled_batch_is_announced_once_however_often_it_is_swept(
    installations: Installations, mode: CancelMode
) -> None:
    (key,) = keys_of(new_case(), 1)
    async with installations() as installation:
        case = await installation.send(started(key))
        await installation.loads(key)
        await case.terminate()
        await installation.client.get_workflow_handle(key.workflow_id).terminate()
        await installation.store.note(key.case_id, [cancelled(mode, key)])
        assert (await _swept(installation, key)).status is LoaderStatus.CANCELLED
        assert (await _swept(installation, key)).status is LoaderStatus.TERMINATED
        assert installation.announced(key) == ["LOADER_STARTED", "LOADER_FINISHED"]
        assert installation.cloud.published[-1].status == "CANCELLED"
        assert await installation.status(key) is LoaderStatus.CANCELLED
        assert installation.cloud.is_empty


@pytest.mark.parametrize(("mode", "kept"), [(CancelMode.FULL, False), (CancelMode.PARTIAL, True)])
async def test_dead_letters_of_a_cancelled_batch_are_kept_as_its_cancel_says(
    batches: BatchRuns, mode: CancelMode, kept: bool
) -> None:
    script = ScriptedBatch(keeps=True)
    script.facts = [SweepInfo(processing=True, cancelled=mode)]
    async with batches.running(script, purpose=Purpose.SWEEP) as handle:
        result = await handle.result()
    assert (result.status, script.inputs[-1].keep_dead_letters) == (LoaderStatus.CANCELLED, kept)
    assert script.events == ["LOADER_FINISHED CANCELLED"]


async def test_a_cancel_that_comes_while_a_batch_is_swept_is_announced(
    batches: BatchRuns,
) -> None:
    script = ScriptedBatch()
    script.facts = [
        SweepInfo(processing=True),
        SweepInfo(processing=False, cancelled=CancelMode.FULL),
    ]
    async with batches.running(script, purpose=Purpose.SWEEP) as handle:
        await handle.result()
    assert script.events == ["LOADER_FINISHED CANCELLED"]


@pytest.mark.parametrize(
    "facts",
    [
        # It ended as cancelled before, and has announced it.
        SweepInfo(processing=False, cancelled=CancelMode.FULL),
        SweepInfo(processing=False),
        SweepInfo(processing=True),
    ],
)
async def test_another_end_is_not_announced_by_a_sweep(
    batches: BatchRuns, facts: SweepInfo
) -> None:
    script = ScriptedBatch()
    script.facts = [facts]
    async with batches.running(script, purpose=Purpose.SWEEP) as handle:
        assert (await handle.result()).status is LoaderStatus.TERMINATED
    assert script.events == []


async def test_an_announcement_that_cannot_be_made_does_not_hold_a_sweep_up(
    batches: BatchRuns,
) -> None:
    script = ScriptedBatch()
    script.facts, script.fails["announce"] = [CANCELLED], [denied()]
    async with batches.running(script, purpose=Purpose.SWEEP) as handle:
        assert (await handle.result()).status is LoaderStatus.CANCELLED
