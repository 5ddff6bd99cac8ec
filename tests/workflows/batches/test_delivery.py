"""Proving delivery: timers of the run pass between two looks, and no step is held meanwhile."""

from datetime import timedelta
from typing import Any

import pytest

from tests.support.batches.runs import BatchRuns, attribute_of, reach, timers_of
from tests.support.batches.scripted import TODAY, ScriptedBatch, denied
from tests.support.waiting import eventually
from workflows.batches.names import Phase, Timings
from workflows.batches.runs import CanaryCheckInput, DeliverySeen
from workflows.shared import attributes

pytestmark = pytest.mark.asyncio(loop_scope="session")


def proving(*seen: bool) -> ScriptedBatch:
    """Looks find this, in order; the last answer stays."""
    script, answers = ScriptedBatch(), list(seen)
    script.results["plan"] = TODAY

    def look(order: CanaryCheckInput) -> DeliverySeen:
        return DeliverySeen(arrived=answers.pop(0) if len(answers) > 1 else answers[0])

    script.results["look_for_delivery"] = look
    return script


@pytest.mark.cached(alone=True)
async def test_between_two_looks_for_a_canary_a_timer_passes(
    server: Any, batches: BatchRuns
) -> None:
    script = proving(False, False, False, False, False, True)
    async with batches.running(script, Timings()) as handle:

        async def loading() -> bool:
            await server.skip(handle, timedelta(seconds=15))
            return await attribute_of(handle, attributes.STATE) == Phase.LOADING

        await eventually(loading, seconds=120, pause=0.5)
        timers = await timers_of(handle)
    assert timers[:5] == [1, 2, 4, 8, 15]
    sent = [order.canary for order in script.received["look_for_delivery"] if order.send]
    assert len(set(sent)) == len(sent), "a lost canary is followed by others"
    looks = [order.send for order in script.received["look_for_delivery"]]
    # At the start, then 3, 7, 15 and 30 seconds later; the look after one second is for the first.
    assert looks[:6] == [True, False, True, True, True, True]
    assert "prove_delivery" not in script.calls
    assert script.calls.index("attach_mapping") > script.calls.index("look_for_delivery")


async def test_as_many_canaries_arrive_as_the_plan_asks_for(batches: BatchRuns) -> None:
    script = proving(True)
    script.results["plan"] = TODAY.model_copy(update={"canaries": 3})
    async with batches.running(script) as handle:
        await reach(handle, Phase.LOADING)
    looks = script.received["look_for_delivery"]
    assert [order.send for order in looks] == [True] * 3
    assert len({order.canary for order in looks}) == 3


@pytest.mark.cached(alone=True)
async def test_only_pauses_count_for_the_time_of_delivery(server: Any, batches: BatchRuns) -> None:
    async with batches.running(proving(False), Timings(delivery=6)) as handle:

        async def parked() -> bool:
            await server.skip(handle, timedelta(seconds=4))
            return await attribute_of(handle, attributes.STATE) == Phase.PARKED

        await eventually(parked, seconds=120, pause=0.5)
        status = await reach(handle, Phase.PARKED)
        # A look that waits for a free worker takes nothing of it.
        assert (await timers_of(handle))[:3] == [1, 2, 3]
    assert "within 6 s: look at the filter policy" in (status.reason or "")


async def test_a_canary_that_cannot_be_published_parks(batches: BatchRuns) -> None:
    script = proving(True)
    script.fails["look_for_delivery"] = [denied("not allowed to publish")]
    async with batches.running(script) as handle:
        status = await reach(handle, Phase.PARKED)
        assert status.reason == "proof of delivery: not allowed to publish"
