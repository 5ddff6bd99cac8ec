"""Batches whose validation has read their plan, and taken leases where there was room."""

import pytest

from tests.support.batches.runs import BatchRuns, reach
from tests.support.batches.scripted import TODAY, ScriptedBatch, cancelled
from workflows.batches.batch_lifecycle import BatchLifecycle
from workflows.batches.names import LoaderStatus, Phase, ValidationOutcome
from workflows.batches.runs import Validation

pytestmark = pytest.mark.asyncio(loop_scope="session")


@pytest.mark.parametrize(("leased", "steps"), [(True, []), (False, ["take_leases"])])
async def test_a_batch_takes_its_leases_by_a_step_where_there_was_no_room(
    batches: BatchRuns, leased: bool, steps: list[str]
) -> None:
    go = Validation(outcome=ValidationOutcome.CONTINUE, plan=TODAY, leased=leased)
    script = ScriptedBatch(validations=[go])
    async with batches.running(script) as handle:
        await reach(handle, Phase.LOADING)
    others = [name for name in script.calls if name in ("validate", "plan", "take_leases")]
    assert others == ["validate", *steps]
    assert script.inputs[-1].plan == TODAY


@pytest.mark.parametrize("prepared", [True, False])
async def test_a_batch_that_is_cancelled_before_it_is_built_releases_its_leases_with_its_row(
    batches: BatchRuns, prepared: bool
) -> None:
    plan = TODAY if prepared else None
    go = Validation(outcome=ValidationOutcome.CONTINUE, plan=plan, leased=prepared)
    script = ScriptedBatch(validations=[go])
    script.hold("validate")
    async with batches.running(script) as handle:
        await script.working.wait()
        await handle.signal(BatchLifecycle.take, cancelled())
        script.held["validate"].set()
        assert (await handle.result()).status is LoaderStatus.CANCELLED
    assert [closing.unbuilt for closing in script.closings] == [True]
    assert script.calls == ["validate", "close"]
