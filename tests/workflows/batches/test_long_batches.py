"""A batch whose history has become long is continued by another run."""

import asyncio

import pytest

from tests.support.batches.runs import (
    BatchRuns,
    Handle,
    end,
    holds,
    reach,
    status_of,
)
from tests.support.batches.scripted import (
    MAKING,
    ScriptedBatch,
    again,
    depth,
    finished,
    started,
)
from tests.support.waiting import eventually
from workflows.batches.batch_lifecycle import BatchLifecycle
from workflows.batches.names import Phase, Resource, ResourceState
from workflows.batches.runs import BatchAnswer

pytestmark = pytest.mark.asyncio(loop_scope="session")


# Without a cache, each of its thousands of events would replay all those before it.
@pytest.mark.cached(alone=True)
async def test_a_long_load_begins_anew_and_forgets_nothing(batches: BatchRuns) -> None:
    script = ScriptedBatch(depths=[depth(5)])
    async with batches.running(script) as handle:
        await reach(handle, Phase.LOADING)
        await handle.signal(BatchLifecycle.take, again())
        await _begin_anew(handle)
        script.depths = [depth(dead=1)]
        script.keeps = True
        await handle.signal(BatchLifecycle.take, finished())
        await end(handle)
        assert (await handle.result()).redrives == 3
        rows = {row.resource: row.state for row in (await status_of(handle)).resources}
    kept = rows.pop(Resource.DEAD_LETTERS)
    assert (kept, set(rows.values())) == (ResourceState.KEPT, {ResourceState.GONE})
    assert all(script.made(name) == 1 for name in MAKING)


@pytest.mark.cached(alone=True)
async def test_a_long_drain_begins_anew_and_keeps_its_reason(batches: BatchRuns) -> None:
    script = ScriptedBatch(depths=[depth(missing=[Resource.FUNCTION, Resource.QUEUE]), depth()])
    async with batches.running(script) as handle:
        await reach(handle, Phase.PARKED)
        await handle.execute_update(BatchLifecycle.retry, BatchAnswer())
        await reach(handle, Phase.LOADING)
        script.depths = [depth(dead=1), depth(5)]
        await handle.signal(BatchLifecycle.take, finished())
        await eventually(lambda: holds(script.made("redrive") == 1))
        await _begin_anew(handle)
        view = await reach(handle, Phase.DRAINING)
        assert view.redrives == 1
        assert view.reason is not None and "deleted by someone else" in view.reason
        script.depths = [depth()]
        await end(handle)
        assert (await handle.result()).redrives == 1
    [closing] = script.closings
    assert closing.reason is not None and "deleted by someone else" in closing.reason


async def _begin_anew(handle: Handle) -> None:
    """Make the history of a run so long that another run continues it."""
    first = (await handle.describe()).run_id

    async def anew() -> bool:
        # Events that change nothing make the history long.
        await asyncio.gather(*(handle.signal(BatchLifecycle.take, started()) for _ in range(50)))
        return (await handle.describe()).run_id != first

    await eventually(anew, seconds=60, pause=0.2)
