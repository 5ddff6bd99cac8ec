"""Cases whose run ends, is ended, or begins anew, with a cloud in memory and real tables."""

import asyncio
from datetime import timedelta
from typing import Any

import pytest
from temporalio.client import WorkflowExecutionStatus

from tests.support.batches.installation import (
    BatchInstallation,
    Installations,
    keys_of,
    new_case,
)
from tests.support.batches.scripted import cancelled, finished, started
from tests.support.waiting import eventually
from workflows.batches.case_queue import CaseQueue
from workflows.batches.events import CancelMode
from workflows.batches.names import BatchKey, LoaderStatus, Timings
from workflows.batches.runs import CaseResult

pytestmark = [
    pytest.mark.asyncio(loop_scope="session"),
    # Several runs at once, which no worker without a cache can serve.
    pytest.mark.cached(alone=True),
]


async def test_a_case_that_is_cancelled_leaves_nothing(installations: Installations) -> None:
    (key,) = keys_of(new_case(), 1)
    async with installations() as installation:
        case = await installation.send(started(key))
        await installation.loads(key)
        await case.cancel()
        await installation.ended(key)
        assert installation.cloud.is_empty
        assert await installation.status(key) is LoaderStatus.CANCELLED


async def test_a_case_that_was_terminated_finds_its_batch_again(
    installations: Installations,
) -> None:
    first, second = keys_of(new_case(), 2)
    async with installations() as installation:
        case = await installation.send(started(first))
        await installation.send(started(second))
        await installation.loads(first)
        await case.terminate()
        await installation.send(finished(second))
        await installation.send(finished(first))
        await installation.reaches(first, LoaderStatus.COMPLETE)
        await installation.reaches(second, LoaderStatus.COMPLETE)
        assert installation.order == [first, second]


async def test_a_batch_that_was_terminated_lets_the_next_one_go_after_its_grace(
    installations: Installations,
) -> None:
    first, second = keys_of(new_case(), 2)
    times = Timings(settle=0, poll=1, hold=0, grace=0)
    async with installations(timings=times) as installation:
        await installation.send(started(first))
        await installation.send(started(second))
        await installation.send(finished(second))
        await installation.loads(first)
        # Its infrastructure goes too, as the sweeper would have it.
        installation.cloud.functions_by_name.clear()
        await installation.client.get_workflow_handle(first.workflow_id).terminate()
        await installation.reaches(second, LoaderStatus.COMPLETE)
        assert await installation.status(first) is LoaderStatus.INCOMPLETE


@pytest.mark.parametrize("mode", list(CancelMode))
async def test_a_batch_whose_run_was_terminated_is_removed_by_its_cancel(
    installations: Installations, mode: CancelMode
) -> None:
    first, second = keys_of(new_case(), 2)
    async with installations() as installation:
        await installation.send(started(first))
        await installation.loads(first)
        await installation.client.get_workflow_handle(first.workflow_id).terminate()
        await installation.send(cancelled(mode, first))
        await installation.reaches(first, LoaderStatus.CANCELLED)
        await installation.ended(first)
        assert installation.announced(first)[-1] == "LOADER_FINISHED"
        assert installation.cloud.is_empty
        view = await installation.store.get(first)
        assert view is not None and view.reason == "cancelled; its run was terminated"
        await installation.send(started(first))
        await installation.send(started(second))
        await installation.loads(second)
        assert await installation.status(first) is LoaderStatus.CANCELLED


async def test_a_cancelled_batch_is_removed_while_the_next_one_waits_for_it(
    installations: Installations,
) -> None:
    first, second = keys_of(new_case(), 2)
    async with installations() as installation:
        case = await installation.send(started(first))
        await installation.send(started(second))
        await installation.loads(first)
        await installation.client.get_workflow_handle(first.workflow_id).terminate()

        async def next_one_runs() -> bool:
            return (await case.query(CaseQueue.status)).running == second.batch_id

        await eventually(next_one_runs)
        await installation.send(cancelled(key=first))
        await installation.reaches(first, LoaderStatus.CANCELLED)


async def test_a_case_with_nothing_to_do_ends_and_the_next_event_starts_another(
    server: Any, installations: Installations
) -> None:
    first, second = keys_of(new_case(), 2)
    async with installations(idle=60) as installation:
        case = await installation.send(started(first))
        await installation.send(finished(first))
        await installation.reaches(first, LoaderStatus.COMPLETE)
        await installation.ended(first)

        async def over() -> bool:
            if (await case.describe()).status is WorkflowExecutionStatus.COMPLETED:
                return True
            await server.skip(case, timedelta(seconds=70))
            return False

        await eventually(over, pause=0.2)
        result = await case.result()
        assert isinstance(result, CaseResult) and result.finished == 1
        await installation.send(started(second))
        await installation.send(finished(second))
        await installation.reaches(second, LoaderStatus.COMPLETE)


async def test_a_long_case_begins_anew_and_loses_no_event(installations: Installations) -> None:
    first, second = keys_of(new_case(), 2)
    async with installations() as installation:
        await installation.send(started(first))
        await installation.loads(first)
        case = installation.client.get_workflow_handle(first.case_workflow_id)
        begun = (await case.describe()).run_id
        sent = 1

        async def anew() -> bool:
            nonlocal sent
            await asyncio.gather(*(installation.send(started(first)) for _ in range(10)))
            sent += 10
            return (await case.describe()).run_id != begun

        await eventually(anew, seconds=60)
        await installation.send(started(second))
        await installation.send(finished(second))
        await installation.send(finished(first))
        await installation.reaches(second, LoaderStatus.COMPLETE)
        assert installation.order == [first, second]
        assert await _seen_all(installation, first, sent + 3)


async def _seen_all(installation: BatchInstallation, key: BatchKey, events: int) -> bool:
    case = installation.client.get_workflow_handle(key.case_workflow_id)
    # The two answers of other services count too.
    return (await case.query(CaseQueue.status)).events == events + 2
