"""The batches of a case, one after the other, with a cloud in memory and real tables."""

import asyncio
import random
import uuid
from collections.abc import AsyncIterator, Callable
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest
from temporalio.client import WorkflowExecutionStatus, WorkflowUpdateFailedError

from contracts.batches import (
    BatchKey,
    CaseResult,
    CaseStatus,
    JobStarted,
    LoaderStatus,
    Phase,
    Timings,
)
from tests.support.batches.installation import (
    BatchInstallation,
    all_complete,
    batch_installation,
    keys_of,
    tell_shuffled,
)
from tests.support.batches.scripted import again, cancelled, ended, finished, started
from tests.support.chaos import examples
from tests.support.waiting import eventually
from workflows.batches.batch_lifecycle import BatchLifecycle
from workflows.batches.case_queue import CaseQueue

pytestmark = [
    pytest.mark.asyncio(loop_scope="session"),
    # Without a cache, runs that wait for each other stand still for the timeout of a workflow task
    # again and again. Recorded histories replay the same runs without one.
    pytest.mark.cached(alone=True),
]

Worlds = Callable[..., AbstractAsyncContextManager[BatchInstallation]]
DONE = ["LOADER_STARTED", "BATCH_END_START", "LOADER_FINISHED"]


@pytest.fixture
def worlds(server: Any, run_worker: Any, tmp_path: Path) -> Worlds:
    @asynccontextmanager
    async def build(**options: Any) -> AsyncIterator[BatchInstallation]:
        queue = f"cases-{uuid.uuid4().hex}"
        async with (
            batch_installation(server.client, tmp_path, queue, **options) as world,
            run_worker(
                queue,
                [CaseQueue, BatchLifecycle],
                world.activities(),
                # What is being written when a test ends is written.
                graceful_shutdown_timeout=timedelta(seconds=5),
            ),
        ):
            yield world

    return build


def _case() -> int:
    return uuid.uuid4().int % 1_000_000_000 + 1


async def _status(world: BatchInstallation, key: BatchKey) -> LoaderStatus | None:
    view = await world.store.get(key)
    return view and view.status


async def _become(world: BatchInstallation, key: BatchKey, status: LoaderStatus) -> None:
    async def became() -> bool:
        return await _status(world, key) is status

    await eventually(became, seconds=60)


async def _gone(world: BatchInstallation, key: BatchKey) -> None:
    """Wait until the run of a batch has ended."""
    handle = world.client.get_workflow_handle(key.workflow_id)

    async def gone() -> bool:
        return (await handle.describe()).status is not WorkflowExecutionStatus.RUNNING

    await eventually(gone, seconds=60)


async def test_batches_of_a_case_run_one_after_the_other_whatever_the_order(
    worlds: Worlds,
) -> None:
    keys = keys_of(_case(), 3)
    async with worlds() as world:
        await world.store.expect(keys)
        for key in reversed(keys):
            await world.tell(finished(key))
            await world.tell(started(key))
            await world.tell(started(key))
        for key in keys:
            await _become(world, key, LoaderStatus.COMPLETE)
            await _gone(world, key)
        assert world.order == keys
        assert all(world.said(key) == DONE for key in keys)
        assert world.cloud.is_empty
        assert world.cloud.calls["clone"] == 3


async def test_a_batch_out_of_order_waits_for_those_before_it(server: Any, worlds: Worlds) -> None:
    first, second = keys_of(_case(), 2)
    async with worlds() as world:
        await world.store.expect([first, second])
        case = await world.tell(started(second))
        status = await case.query(CaseQueue.status)
        assert (status.running, status.waiting) == (None, (1, 2))
        assert world.order == []
        await world.tell(finished(second))
        await world.tell(started(first))
        await world.tell(finished(first))
        await _become(world, second, LoaderStatus.COMPLETE)
        assert world.order == [first, second]


async def test_a_batch_that_nobody_starts_is_passed_over_after_hours_and_can_start_later(
    server: Any, worlds: Worlds
) -> None:
    first, second = keys_of(_case(), 2)
    async with worlds() as world:
        await world.store.expect([first, second])
        case = await world.tell(started(second))
        await world.tell(finished(second))
        await server.skip(case, timedelta(hours=5, minutes=50))
        assert world.order == []
        await server.skip(case, timedelta(minutes=20))
        await _become(world, second, LoaderStatus.COMPLETE)
        view = await world.store.get(first)
        assert view is not None and view.status is LoaderStatus.WAITING
        assert view.reason is not None and view.reason.startswith("not started within 21600 s")
        await world.tell(started(first))
        await world.tell(finished(first))
        await _become(world, first, LoaderStatus.COMPLETE)


async def test_a_batch_is_not_loaded_twice(worlds: Worlds) -> None:
    (key,) = keys_of(_case(), 1)
    async with worlds() as world:
        for event in (started(key), finished(key)):
            await world.tell(event)
        await _become(world, key, LoaderStatus.COMPLETE)
        await _gone(world, key)
        for event in (started(key), finished(key), ended(key)):
            case = await world.tell(event)
        status: CaseStatus = await case.query(CaseQueue.status)
        assert (status.running, status.waiting) == (None, ())
        assert world.order == [key]


async def test_a_batch_that_was_cancelled_before_it_began_is_never_built(worlds: Worlds) -> None:
    (key,) = keys_of(_case(), 1)
    async with worlds() as world:
        await world.tell(cancelled(key=key))
        await world.tell(started(key))
        await world.tell(finished(key))
        await eventually(lambda: _seen(world, key, 3))
        assert await _status(world, key) is LoaderStatus.CANCELLED
        assert world.cloud.calls["ensure_queue"] == 0


async def _seen(world: BatchInstallation, key: BatchKey, events: int) -> bool:
    case = world.client.get_workflow_handle(key.case_workflow_id)
    status = await case.query(CaseQueue.status)
    return status.events == events and status.running is None


async def test_a_cancel_reaches_the_batch_that_runs_and_the_next_one_follows(
    worlds: Worlds,
) -> None:
    first, second = keys_of(_case(), 2)
    async with worlds() as world:
        await world.tell(started(first))
        await world.tell(started(second))
        await world.tell(finished(second))
        await eventually(lambda: _loads(world, first))
        await world.tell(cancelled(key=first))
        await _become(world, first, LoaderStatus.CANCELLED)
        await _become(world, second, LoaderStatus.COMPLETE)
        await _gone(world, second)
        assert world.cloud.is_empty


async def _loads(world: BatchInstallation, key: BatchKey) -> bool:
    return key in world.order


async def test_kept_dead_letters_are_redriven_when_somebody_asks(worlds: Worlds) -> None:
    (key,) = keys_of(_case(), 1)
    times = Timings(settle=0, poll=1, hold=0, max_redrives=0)
    async with worlds(timings=times) as world:
        await world.tell(started(key))
        await eventually(lambda: _loads(world, key))
        (dead,) = (name for name in world.cloud.queues_by_name if name.endswith("_dlq"))
        world.cloud.queues_by_name[dead].messages.append("poison")
        await world.tell(finished(key))
        await _become(world, key, LoaderStatus.COMPLETE)
        await _gone(world, key)
        assert list(world.cloud.queues_by_name) == [dead]
        await world.tell(again(key))
        await eventually(lambda: _redriven(world))
        assert world.cloud.queues_by_name[dead].messages == []


async def _redriven(world: BatchInstallation) -> bool:
    return world.cloud.calls["redrive"] == 1


async def test_a_case_that_is_cancelled_leaves_nothing(worlds: Worlds) -> None:
    (key,) = keys_of(_case(), 1)
    async with worlds() as world:
        case = await world.tell(started(key))
        await eventually(lambda: _loads(world, key))
        await case.cancel()
        await _gone(world, key)
        assert world.cloud.is_empty
        assert await _status(world, key) is LoaderStatus.CANCELLED


async def test_a_case_that_was_terminated_finds_its_batch_again(worlds: Worlds) -> None:
    first, second = keys_of(_case(), 2)
    async with worlds() as world:
        case = await world.tell(started(first))
        await world.tell(started(second))
        await eventually(lambda: _loads(world, first))
        await case.terminate()
        await world.tell(finished(second))
        await world.tell(finished(first))
        await _become(world, first, LoaderStatus.COMPLETE)
        await _become(world, second, LoaderStatus.COMPLETE)
        assert world.order == [first, second]


async def test_a_batch_that_was_terminated_lets_the_next_one_go_after_its_grace(
    worlds: Worlds,
) -> None:
    first, second = keys_of(_case(), 2)
    times = Timings(settle=0, poll=1, hold=0, grace=0)
    async with worlds(timings=times) as world:
        await world.tell(started(first))
        await world.tell(started(second))
        await world.tell(finished(second))
        await eventually(lambda: _loads(world, first))
        # Its infrastructure goes too, as the sweeper would have it.
        world.cloud.functions_by_name.clear()
        await world.client.get_workflow_handle(first.workflow_id).terminate()
        await _become(world, second, LoaderStatus.COMPLETE)
        assert await _status(world, first) is LoaderStatus.INCOMPLETE


async def test_a_case_with_nothing_to_do_ends_and_the_next_event_starts_another(
    server: Any, worlds: Worlds
) -> None:
    first, second = keys_of(_case(), 2)
    async with worlds(idle=60) as world:
        case = await world.tell(started(first))
        await world.tell(finished(first))
        await _become(world, first, LoaderStatus.COMPLETE)
        await _gone(world, first)

        async def over() -> bool:
            if (await case.describe()).status is WorkflowExecutionStatus.COMPLETED:
                return True
            await server.skip(case, timedelta(seconds=70))
            return False

        await eventually(over, pause=0.2)
        result = await case.result()
        assert isinstance(result, CaseResult) and result.finished == 1
        await world.tell(started(second))
        await world.tell(finished(second))
        await _become(world, second, LoaderStatus.COMPLETE)


async def test_an_event_of_another_case_is_refused(worlds: Worlds) -> None:
    (key,) = keys_of(_case(), 1)
    async with worlds() as world:
        case = await world.tell(started(key))
        other = JobStarted(case_id=key.case_id % 1_000_000_000 + 1, batch_id=1)
        with pytest.raises(WorkflowUpdateFailedError):
            await case.execute_update(CaseQueue.take, other)


async def test_a_long_case_begins_anew_and_loses_no_event(worlds: Worlds) -> None:
    first, second = keys_of(_case(), 2)
    async with worlds() as world:
        await world.tell(started(first))
        await eventually(lambda: _loads(world, first))
        case = world.client.get_workflow_handle(first.case_workflow_id)
        begun = (await case.describe()).run_id
        sent = 1

        async def anew() -> bool:
            nonlocal sent
            await asyncio.gather(*(world.tell(started(first)) for _ in range(10)))
            sent += 10
            return (await case.describe()).run_id != begun

        await eventually(anew, seconds=60)
        await world.tell(started(second))
        await world.tell(finished(second))
        await world.tell(finished(first))
        await _become(world, second, LoaderStatus.COMPLETE)
        assert world.order == [first, second]
        assert await _seen_all(world, first, sent + 3)


async def _seen_all(world: BatchInstallation, key: BatchKey, events: int) -> bool:
    case = world.client.get_workflow_handle(key.case_workflow_id)
    # The outside world's two answers count too.
    return (await case.query(CaseQueue.status)).events == events + 2


async def test_a_database_that_is_away_delays_events_and_loses_none(
    server: Any, worlds: Worlds, monkeypatch: pytest.MonkeyPatch
) -> None:
    from adapters.ports import Unavailable

    (key,) = keys_of(_case(), 1)
    async with worlds() as world:
        note, away = world.store.note, True

        async def failing(case_id: int, events: Any) -> Any:
            if away:
                raise Unavailable("the database is unavailable")
            return await note(case_id, events)

        monkeypatch.setattr(world.store, "note", failing)
        case = await world.tell(started(key))
        await world.tell(finished(key))
        away = False

        async def complete() -> bool:
            await server.skip(case, timedelta(seconds=30))
            return await _status(world, key) is LoaderStatus.COMPLETE

        await eventually(complete, seconds=60, pause=0.3)


@pytest.mark.chaos
async def test_many_cases_in_any_order_load_every_batch_once(worlds: Worlds) -> None:
    # Nothing waits for a poll: a batch that waits for its end looks at its queue once a day.
    async with worlds(timings=Timings(settle=0, poll=24 * 3600, hold=0)) as world:
        keys = await tell_shuffled(world, random.Random(7), cases=examples(10), batches=3)
        await eventually(lambda: all_complete(world, keys), seconds=300, pause=0.2)
        for case in {key.case_id for key in keys}:
            mine = [key for key in world.order if key.case_id == case]
            assert mine == keys_of(case, 3)

        async def all_told() -> bool:
            return all(world.said(key) == DONE for key in keys)

        # A batch is complete before its resources are removed.
        await eventually(all_told)
        await eventually(lambda: _is_empty(world))
        assert world.cloud.calls["clone"] == len(keys)


async def _is_empty(world: BatchInstallation) -> bool:
    return world.cloud.is_empty


async def test_phases_are_searchable(worlds: Worlds) -> None:
    (key,) = keys_of(_case(), 1)
    async with worlds() as world:
        await world.tell(started(key))
        await eventually(lambda: _loads(world, key))
        run = world.client.get_workflow_handle(key.workflow_id)
        assert (await run.query(BatchLifecycle.status)).phase is Phase.LOADING
