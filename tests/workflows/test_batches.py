"""The story of one batch, with every activity scripted."""

import asyncio
import uuid
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from temporalio.api.enums.v1 import EventType
from temporalio.api.sdk.v1 import WorkflowMetadata
from temporalio.client import (
    WorkflowExecutionStatus,
    WorkflowFailureError,
    WorkflowHandle,
    WorkflowUpdateFailedError,
)
from temporalio.exceptions import ApplicationError

from contracts.batches import (
    BatchAnswer,
    BatchOrder,
    BatchResult,
    BatchStatus,
    CancelMode,
    LoaderStatus,
    Phase,
    Purpose,
    Resource,
    ResourceState,
    Timings,
    Validation,
    ValidationOutcome,
)
from contracts.errors import BATCH_FAILED
from tests.support.batches import (
    KEY,
    MAKING,
    REMOVING,
    BatchWorld,
    again,
    cancelled,
    denied,
    depth,
    ended,
    finished,
    started,
)
from tests.support.waiting import eventually
from workflows import attributes
from workflows.batch_lifecycle import BatchLifecycle

pytestmark = pytest.mark.asyncio(loop_scope="session")

Handle = WorkflowHandle[Any, BatchResult]
QUICK = Timings(settle=0, poll=1, hold=0)
"""For what time has no part in."""
LOADED = ["LOADER_STARTED SUCCESS", "BATCH_END_START SUCCESS", "LOADER_FINISHED SUCCESS"]


@dataclass
class Batches:
    """Starts runs of batches on a worker of the test's own."""

    server: Any
    run_worker: Any

    @asynccontextmanager
    async def running(
        self,
        world: BatchWorld,
        timings: Timings = QUICK,
        purpose: Purpose = Purpose.LOAD,
    ) -> AsyncIterator[Handle]:
        queue = f"batches-{uuid.uuid4().hex}"
        async with self.run_worker(queue, [BatchLifecycle], world.activities()):
            handle = await self.server.client.start_workflow(
                BatchLifecycle.run,
                BatchOrder(key=KEY, purpose=purpose, timings=timings),
                id=f"{KEY.workflow_id}/{queue}",
                task_queue=queue,
                search_attributes=attributes.at_start("batches", purpose, str(KEY.case_id)),
            )
            try:
                yield handle
            finally:
                # A run that a failed test leaves behind must not hold the worker up.
                if (await handle.describe()).status is WorkflowExecutionStatus.RUNNING:
                    await handle.terminate()


@pytest.fixture
def batches(server: Any, run_worker: Any) -> Batches:
    return Batches(server, run_worker)


async def _status(handle: Handle) -> BatchStatus:
    return await handle.query(BatchLifecycle.status)


async def _reach(handle: Handle, phase: Phase) -> BatchStatus:
    async def reached() -> bool:
        return (await _status(handle)).phase is phase

    await eventually(reached)
    return await _status(handle)


async def _timers(handle: Handle) -> list[int]:
    """Seconds of every timer that the run set, in order."""
    history = await handle.fetch_history()
    return [
        round(
            event.timer_started_event_attributes.start_to_fire_timeout.ToTimedelta().total_seconds()
        )
        for event in history.events
        if event.event_type == EventType.EVENT_TYPE_TIMER_STARTED
    ]


async def _skip_to_the_end(server: Any, handle: Handle, by: timedelta) -> None:
    async def over() -> bool:
        if (await handle.describe()).status is not WorkflowExecutionStatus.RUNNING:
            return True
        await server.skip(handle, by)
        return False

    # Every skip is an event of the run's history, so they are few.
    await eventually(over, seconds=60, pause=0.2)


async def _attribute(handle: Handle, key: Any) -> Any:
    return (await handle.describe()).typed_search_attributes.get(key)


def _removed(world: BatchWorld) -> list[str]:
    return [name for name in world.calls if name in REMOVING]


async def test_a_batch_goes_from_its_start_to_nothing_left(batches: Batches) -> None:
    world = BatchWorld()
    async with batches.running(world) as handle:
        await _reach(handle, Phase.LOADING)
        assert not _removed(world)
        await handle.signal(BatchLifecycle.take, finished())
        await _reach(handle, Phase.ENDING)
        assert world.closings == []
        await handle.signal(BatchLifecycle.take, ended())
        result = await handle.result()
    assert (result.status, result.documents, result.left) == (
        LoaderStatus.COMPLETE,
        world.counts,
        (),
    )
    assert world.events == LOADED
    assert _removed(world) == list(REMOVING)
    at_the_end = [name for name in world.calls if name in (*REMOVING, "close", "truncate")]
    assert at_the_end == ["close", *REMOVING, "truncate"]
    assert [closing.status for closing in world.closings] == [LoaderStatus.COMPLETE]


async def test_nothing_takes_the_canary_before_it_is_seen(batches: Batches) -> None:
    world = BatchWorld()
    async with batches.running(world) as handle:
        await _reach(handle, Phase.LOADING)
    made = [name for name in world.calls if name in MAKING]
    assert sorted(made) == sorted(MAKING)
    assert made.index("prove_delivery") < made.index("attach_mapping") == len(MAKING) - 1
    for before, after in (
        ("create_queue", "set_redrive_policy"),
        ("create_dead_letters", "set_redrive_policy"),
        ("set_queue_policy", "subscribe"),
        ("subscribe", "prove_delivery"),
        ("create_function", "reserve_concurrency"),
    ):
        assert made.index(before) < made.index(after)


async def test_the_queue_is_watched_by_the_times_of_the_plan(server: Any, batches: Batches) -> None:
    world = BatchWorld(depths=[depth(9), depth(4), depth(loads=1), depth(), depth(2), depth()])
    async with batches.running(world, Timings()) as handle:
        await _reach(handle, Phase.LOADING)
        await handle.signal(BatchLifecycle.take, finished())
        await handle.signal(BatchLifecycle.take, ended())
        await _skip_to_the_end(server, handle, timedelta(seconds=180))
        assert (await handle.result()).status is LoaderStatus.COMPLETE
        timers = await _timers(handle)
    # Loading looks every 180 s. Then it settles for 60 s; 4 messages, then an open load: 180 s
    # each; empty for less than 60 s does not count; empty for 60 s does.
    assert timers[0] == 180
    assert timers[1:] == [60, 180, 180, 60, 180, 60]


async def test_times_can_be_other_ones_for_a_run(server: Any, batches: Batches) -> None:
    world = BatchWorld(depths=[depth(), depth(1), depth(), depth(), depth()])
    times = Timings(settle=600, poll=300, hold=1200, end=4000)
    async with batches.running(world, times) as handle:
        await _reach(handle, Phase.LOADING)
        await handle.signal(BatchLifecycle.take, finished())

        async def ending() -> bool:
            await server.skip(handle, timedelta(seconds=300))
            return (await _status(handle)).phase is Phase.ENDING

        await eventually(ending, seconds=60, pause=0.2)
        # The last one begins when the announcement has been made.
        await eventually(lambda: _has(handle, 5))
        assert await _timers(handle) == [300, 600, 300, 1200, 4000]


async def _has(handle: Handle, timers: int) -> bool:
    return len(await _timers(handle)) == timers


@pytest.mark.parametrize(
    "outcome",
    [
        ValidationOutcome.SKIP_CANCELLED,
        ValidationOutcome.SKIP_DUPLICATE,
        ValidationOutcome.SKIP_INCOMPLETE,
    ],
)
async def test_a_batch_that_may_not_be_built_is_left_alone(
    batches: Batches, outcome: ValidationOutcome
) -> None:
    world = BatchWorld(validations=[Validation(outcome=outcome, reason="that is why")])
    async with batches.running(world) as handle:
        result = await handle.result()
    assert (result.status, result.validation) == (LoaderStatus.SKIPPED, outcome)
    assert result.reason == "that is why"
    assert world.calls == ["validate", "skip"]
    assert world.skips[0].reason == "that is why"


async def test_a_blocked_batch_asks_again_when_the_lock_may_be_old(
    server: Any, batches: Batches
) -> None:
    blocked = Validation(
        outcome=ValidationOutcome.BLOCKED,
        reason="batch 2 may be starting",
        retry_at=datetime.now(UTC) + timedelta(minutes=15),
    )
    go = Validation(outcome=ValidationOutcome.CONTINUE)
    world = BatchWorld(validations=[blocked, go, go])
    async with batches.running(world, Timings()) as handle:
        status = await _reach(handle, Phase.BLOCKED)
        assert status.reason == "batch 2 may be starting"
        await server.skip(handle, timedelta(minutes=14))
        assert world.made("validate") == 1
        await server.skip(handle, timedelta(minutes=2))
        await _reach(handle, Phase.LOADING)
        assert world.made("validate") == 2


async def test_a_batch_that_is_blocked_for_hours_is_skipped(server: Any, batches: Batches) -> None:
    world = BatchWorld(
        validations=[Validation(outcome=ValidationOutcome.BLOCKED, reason="batch 2 is loading")]
    )
    async with batches.running(world, Timings(poll=3600)) as handle:
        await _reach(handle, Phase.BLOCKED)
        await _skip_to_the_end(server, handle, timedelta(hours=1))
        result = await handle.result()
        # The moments that the steps themselves take count too.
        assert 6 * 3600 - 60 < sum(await _timers(handle)) <= 6 * 3600
    assert result.status is LoaderStatus.SKIPPED
    assert "stuck for 21600 s: batch 2 is loading" in world.skips[0].reason
    assert not _removed(world)


async def test_a_database_that_is_away_is_shown_and_asked_again(batches: Batches) -> None:
    away = Validation(
        outcome=ValidationOutcome.REQUEUE_DB_ERROR,
        reason="the database is away",
        retry_at=datetime.now(UTC) + timedelta(seconds=2),
    )
    world = BatchWorld(validations=[away, Validation(outcome=ValidationOutcome.CONTINUE)])
    async with batches.running(world) as handle:
        status = await _reach(handle, Phase.BLOCKED)
        assert status.validation is ValidationOutcome.REQUEUE_DB_ERROR
        assert status.reason == "the database is away"
        assert (await _reach(handle, Phase.LOADING)).validation is ValidationOutcome.CONTINUE


async def test_events_that_came_before_the_batch_count(batches: Batches) -> None:
    early = Validation(outcome=ValidationOutcome.CONTINUE, job_finished=True, end_finished=True)
    world = BatchWorld(validations=[early])
    async with batches.running(world) as handle:
        assert (await handle.result()).status is LoaderStatus.COMPLETE
    assert world.events == ["LOADER_STARTED SUCCESS", "LOADER_FINISHED SUCCESS"]


async def test_dead_letters_are_redriven_and_the_last_pass_is_final(batches: Batches) -> None:
    world = BatchWorld(depths=[depth(dead=2)], keeps=True)
    async with batches.running(world) as handle:
        await handle.signal(BatchLifecycle.take, finished())
        await handle.signal(BatchLifecycle.take, ended())
        result = await handle.result()
        assert await _attribute(handle, attributes.NEEDS_ATTENTION) is True
        assert await _attribute(handle, attributes.STATE) == "complete"
    assert [(one.number, one.final) for one in world.passes] == [(1, False), (2, True)]
    assert (result.status, result.redrives, result.dead_letters) == (LoaderStatus.COMPLETE, 2, 2)
    assert result.reason is not None and "2 dead letters are kept" in result.reason
    assert world.closings[0].dead_letters == 2


async def test_dead_letters_that_load_the_second_time_leave_nothing(batches: Batches) -> None:
    world = BatchWorld(depths=[depth(dead=5), depth(dead=5), depth(3), depth()])
    async with batches.running(world) as handle:
        await handle.signal(BatchLifecycle.take, finished())
        await handle.signal(BatchLifecycle.take, ended())
        result = await handle.result()
        assert await _attribute(handle, attributes.NEEDS_ATTENTION) is False
    assert (result.redrives, result.dead_letters, len(world.passes)) == (1, 0, 1)


async def test_a_pass_that_somebody_asks_for_is_one_more(batches: Batches) -> None:
    world = BatchWorld(depths=[depth(dead=1)], keeps=True)
    async with batches.running(world) as handle:
        await _reach(handle, Phase.LOADING)
        await handle.signal(BatchLifecycle.take, again())
        await handle.signal(BatchLifecycle.take, finished())
        await handle.signal(BatchLifecycle.take, ended())
        assert (await handle.result()).redrives == 3
    assert [one.final for one in world.passes] == [False, False, True]


async def test_kept_dead_letters_can_be_redriven_by_a_run_of_their_own(batches: Batches) -> None:
    world = BatchWorld(depths=[depth(dead=1), depth(dead=1), depth()])
    async with batches.running(world, purpose=Purpose.REDRIVE) as handle:
        await handle.signal(BatchLifecycle.take, ended())
        result = await handle.result()
    assert (result.status, result.redrives) == (LoaderStatus.COMPLETE, 1)
    assert sorted(name for name in world.calls if name in MAKING) == sorted(MAKING)
    assert _removed(world) == list(REMOVING)


async def test_a_missing_end_is_asked_for(server: Any, batches: Batches) -> None:
    world = BatchWorld()
    async with batches.running(world, Timings(settle=0, poll=1, hold=0)) as handle:
        await handle.signal(BatchLifecycle.take, finished())
        await _reach(handle, Phase.ENDING)
        await server.skip(handle, timedelta(hours=6, minutes=1))
        status = await _reach(handle, Phase.PARKED)
        assert status.reason == "BATCH_END_FINISHED has not come within 21600 s"
        assert status.next_steps == "retry, skip or fail"
        await handle.execute_update(BatchLifecycle.retry, BatchAnswer(by="ann"))
        await _reach(handle, Phase.ENDING)
        await eventually(lambda: _is(world.events.count("BATCH_END_START SUCCESS") == 2))
        await server.skip(handle, timedelta(hours=6, minutes=1))
        await _reach(handle, Phase.PARKED)
        await handle.signal("skip")
        assert (await handle.result()).status is LoaderStatus.COMPLETE


async def _is(truth: bool) -> bool:
    return truth


@pytest.mark.parametrize("step", MAKING)
async def test_a_cancel_at_any_step_of_provisioning_leaves_nothing(
    batches: Batches, step: str
) -> None:
    world = BatchWorld()
    world.hold(step)
    async with batches.running(world) as handle:
        await world.working.wait()
        await handle.signal(BatchLifecycle.take, cancelled())
        result = await handle.result()
    assert result.status is LoaderStatus.CANCELLED
    begun = world.calls.index(REMOVING[0])
    assert not set(world.calls[begun:]) & set(MAKING)
    assert _removed(world) == list(REMOVING)
    assert world.events == ["LOADER_FINISHED CANCELLED"]
    assert world.inputs[-1].keep_dead_letters is False


@pytest.mark.parametrize(
    ("held", "phase"),
    [("look", Phase.LOADING), ("redrive", Phase.REDRIVING), ("announce", Phase.PROVISIONING)],
)
async def test_a_full_cancel_stops_whatever_is_under_way(
    batches: Batches, held: str, phase: Phase
) -> None:
    world = BatchWorld(depths=[depth(dead=1)])
    world.hold(held)
    async with batches.running(world) as handle:
        if held == "redrive":
            await handle.signal(BatchLifecycle.take, finished())
        await world.working.wait()
        assert (await _status(handle)).phase is phase
        world.held[held].set()
        await handle.signal(BatchLifecycle.take, cancelled())
        result = await handle.result()
    assert result.status is LoaderStatus.CANCELLED
    assert world.made("cancel_loads") == 1
    assert _removed(world) == list(REMOVING)


async def test_a_partial_cancel_drains_what_is_in_flight(batches: Batches) -> None:
    world = BatchWorld(depths=[depth(8), depth(3), depth(1, dead=1), depth(dead=1)], keeps=True)
    async with batches.running(world) as handle:
        await _reach(handle, Phase.LOADING)
        await handle.signal(BatchLifecycle.take, cancelled(CancelMode.PARTIAL))
        result = await handle.result()
    assert (result.status, result.dead_letters) == (LoaderStatus.CANCELLED, 1)
    assert _removed(world) == ["unsubscribe", *REMOVING]
    first = world.calls.index("unsubscribe")
    assert world.calls[first + 1 : first + 4] == ["look"] * 3
    assert world.passes == []
    assert world.inputs[-1].keep_dead_letters is True
    assert world.events == ["LOADER_STARTED SUCCESS", "LOADER_FINISHED CANCELLED"]


async def test_a_full_cancel_after_a_partial_one_waits_for_nothing(batches: Batches) -> None:
    world = BatchWorld(depths=[depth(8)])
    async with batches.running(world) as handle:
        await _reach(handle, Phase.LOADING)
        await handle.signal(BatchLifecycle.take, cancelled(CancelMode.PARTIAL))
        await _reach(handle, Phase.DRAINING)
        await handle.signal(BatchLifecycle.take, cancelled())
        assert (await handle.result()).status is LoaderStatus.CANCELLED
    assert world.inputs[-1].keep_dead_letters is False


async def test_temporals_own_cancel_removes_everything_too(batches: Batches) -> None:
    world = BatchWorld()
    world.hold("create_function")
    async with batches.running(world) as handle:
        await world.working.wait()
        await handle.cancel()
        with pytest.raises(WorkflowFailureError):
            await handle.result()
        described = await handle.describe()
    assert described.status is WorkflowExecutionStatus.CANCELED
    assert _removed(world) == list(REMOVING)
    assert [closing.status for closing in world.closings] == [LoaderStatus.CANCELLED]


async def test_a_cancel_during_teardown_does_not_stop_it(batches: Batches) -> None:
    world = BatchWorld()
    world.hold("delete_function")
    async with batches.running(world) as handle:
        await handle.signal(BatchLifecycle.take, finished())
        await handle.signal(BatchLifecycle.take, ended())
        await world.working.wait()
        await handle.cancel()
        await handle.signal(BatchLifecycle.take, cancelled())
        world.held["delete_function"].set()
        result = await handle.result()
    assert result.status is LoaderStatus.COMPLETE
    assert _removed(world) == list(REMOVING)


@pytest.mark.parametrize("step", [*MAKING, "validate", "plan", "announce"])
async def test_a_step_that_cannot_be_done_waits_and_goes_on_where_it_failed(
    batches: Batches, step: str
) -> None:
    world = BatchWorld()
    world.fails[step] = [denied()]
    async with batches.running(world) as handle:
        status = await _reach(handle, Phase.PARKED)
        assert status.reason is not None and "no rights" in status.reason
        assert await _attribute(handle, attributes.NEEDS_ATTENTION) is True
        await handle.execute_update(BatchLifecycle.retry, BatchAnswer(by="ann"))
        await _reach(handle, Phase.LOADING)
    for name in MAKING:
        assert world.made(name) == (2 if name == step else 1)


@pytest.mark.parametrize("answer", ["fail", "skip", "nobody"])
async def test_a_batch_that_is_given_up_leaves_nothing(
    server: Any, batches: Batches, answer: str
) -> None:
    world = BatchWorld()
    world.fails["subscribe"] = [denied("no room for another filter policy")]
    async with batches.running(world) as handle:
        await _reach(handle, Phase.PARKED)
        if answer == "nobody":
            await server.skip(handle, timedelta(hours=6, minutes=1))
        else:
            await handle.execute_update(answer, BatchAnswer(by="ann"))
        with pytest.raises(WorkflowFailureError) as failure:
            await handle.result()
    cause = failure.value.cause
    assert isinstance(cause, ApplicationError) and cause.type == BATCH_FAILED
    assert cause.message.startswith("provision: subscription: no room")
    assert cause.details[0]["status"] == "failed"
    assert _removed(world) == list(REMOVING)
    assert world.closings[0].status is LoaderStatus.FAILED
    assert world.events == ["LOADER_FINISHED FAILED"]


@pytest.mark.parametrize("step", REMOVING)
async def test_what_cannot_be_removed_is_asked_about(batches: Batches, step: str) -> None:
    world = BatchWorld()
    world.fails[step] = [denied(), denied()]
    async with batches.running(world) as handle:
        await handle.signal(BatchLifecycle.take, finished())
        await handle.signal(BatchLifecycle.take, ended())
        await _reach(handle, Phase.PARKED)
        await handle.execute_update(BatchLifecycle.retry, BatchAnswer())
        await eventually(lambda: _is(world.made(step) == 2))
        await _reach(handle, Phase.PARKED)
        await handle.execute_update(BatchLifecycle.skip, BatchAnswer())
        result = await handle.result()
        assert await _attribute(handle, attributes.NEEDS_ATTENTION) is True
    assert (result.status, len(result.left)) == (LoaderStatus.COMPLETE, 1)
    assert list(dict.fromkeys(_removed(world))) == list(REMOVING)


async def test_an_answer_that_nobody_waits_for_is_refused(batches: Batches) -> None:
    async with batches.running(BatchWorld()) as handle:
        await _reach(handle, Phase.LOADING)
        for answer in ("retry", "skip", "fail"):
            with pytest.raises(WorkflowUpdateFailedError):
                await handle.execute_update(answer, BatchAnswer())


async def test_what_a_terminated_run_left_is_swept(batches: Batches) -> None:
    world = BatchWorld()
    async with batches.running(world, purpose=Purpose.SWEEP) as handle:
        result = await handle.result()
    assert result.status is LoaderStatus.INCOMPLETE
    assert _removed(world) == list(REMOVING)
    assert not set(world.calls) & set(MAKING) and world.made("validate") == 0
    assert world.closings[0].only_processing is True
    assert world.events == []


async def test_a_sweep_asks_nobody(batches: Batches) -> None:
    world = BatchWorld()
    world.fails["delete_function"] = [denied()]
    async with batches.running(world, purpose=Purpose.SWEEP) as handle:
        assert (await handle.result()).left == (Resource.FUNCTION,)


async def test_a_long_load_begins_anew_and_forgets_nothing(batches: Batches) -> None:
    world = BatchWorld(depths=[depth(5)])
    async with batches.running(world) as handle:
        await _reach(handle, Phase.LOADING)
        await handle.signal(BatchLifecycle.take, again())
        first = (await handle.describe()).run_id

        async def anew() -> bool:
            # Events that change nothing make the history long.
            await asyncio.gather(
                *(handle.signal(BatchLifecycle.take, started()) for _ in range(50))
            )
            return (await handle.describe()).run_id != first

        await eventually(anew, seconds=60, pause=0.2)
        world.depths = [depth(dead=1)]
        world.keeps = True
        await handle.signal(BatchLifecycle.take, finished())
        await handle.signal(BatchLifecycle.take, ended())
        assert (await handle.result()).redrives == 3
        rows = {row.resource: row.state for row in (await _status(handle)).resources}
    kept = rows.pop(Resource.DEAD_LETTERS)
    assert (kept, set(rows.values())) == (ResourceState.KEPT, {ResourceState.GONE})
    assert all(world.made(name) == 1 for name in MAKING)


async def test_a_person_sees_resources_and_depths(batches: Batches) -> None:
    world = BatchWorld(depths=[depth(41)])
    async with batches.running(world) as handle:
        await _reach(handle, Phase.LOADING)
        await eventually(lambda: _is(world.made("look") > 1))
        shown = await handle.query("__temporal_workflow_metadata", result_type=WorkflowMetadata)
    for line in ("**loading**", "| queue | ready |", "| event source mapping | ready |", "| 41 |"):
        assert line in shown.current_details


async def test_a_person_sees_how_far_building_and_removing_are(batches: Batches) -> None:
    world = BatchWorld()
    world.hold("subscribe")
    world.hold("delete_function")
    async with batches.running(world) as handle:
        await _tells(handle, "**provisioning**", "| queue | ready |", "| subscription | creating |")
        world.held["subscribe"].set()
        await handle.signal(BatchLifecycle.take, finished())
        await handle.signal(BatchLifecycle.take, ended())
        await _tells(handle, "**tearing down**", "| subscription | gone |", "| function | deleting")
        world.held["delete_function"].set()
        await handle.result()


async def _tells(handle: Handle, *lines: str) -> None:
    """Wait until the details of a run hold these lines."""

    async def told() -> bool:
        shown = await handle.query("__temporal_workflow_metadata", result_type=WorkflowMetadata)
        return all(line in shown.current_details for line in lines)

    await eventually(told)
