"""Case events while a worker, Temporal or a case does not answer: each is taken once in the end."""

import asyncio
import gc
import time
from contextlib import AsyncExitStack
from pathlib import Path

import pytest
from temporalio.client import Client

from stack.children import free_port
from stack.temporal import temporal_server
from tests.support.batches.case_event_bridges import (
    BlockedEvents,
    RecordedEvents,
    body,
    bridging,
    cases,
    working,
)
from tests.support.memory.rejected import MemoryRejectedMessages
from tests.support.sqs import Pair
from tests.support.waiting import eventually
from workers.batches.case_events import CaseEventIntake
from workers.shared.bridges.consumer import BridgeTotals
from workers.shared.connect import connect
from workers.shared.services.bodies import Abandon
from workflows.batches.case_queue import CaseQueue
from workflows.batches.events import JobStarted
from workflows.batches.names import TASK_QUEUE
from workflows.batches.runs import CaseInput

pytestmark = pytest.mark.asyncio(loop_scope="module")

one_cloud = pytest.mark.parametrize("some_cloud", ["ministack"], indirect=True, scope="module")
"""What differs between clouds is tested with the transport, on each of them."""


@one_cloud
async def test_without_a_worker_events_stay_in_flight_until_there_is_one(
    queues: Pair, rejected: MemoryRejectedMessages, tmp_path: Path
) -> None:
    book, ids = RecordedEvents(), cases(3)
    bodies = [body("JOB_STARTED", case_id, batch) for batch in (1, 2) for case_id in ids]
    async with temporal_server(tmp_path, ui=False, in_memory=True) as server:
        client = await connect(server.address)
        assert not await CaseEventIntake(client, rejected, queue="case-events").ready()
        await queues.send(bodies)
        async with bridging(client, queues, rejected) as stopped:
            await asyncio.sleep(8)
            assert await queues.left() == 6
            async with working(client, book):
                await eventually(queues.is_empty, seconds=60)
                assert await CaseEventIntake(client, rejected, queue="case-events").ready()

                async def all_are_written_down() -> bool:
                    return len(book.events) >= 6

                await eventually(all_are_written_down)
            totals = await stopped()
    assert totals == BridgeTotals(received=6, settled=6)
    for case_id in ids:
        assert [event.batch_id for event in book.of(case_id)] == [1, 2]


@one_cloud
async def test_an_outage_of_temporal_loses_and_doubles_nothing(
    queues: Pair, rejected: MemoryRejectedMessages, tmp_path: Path
) -> None:
    book, ids, port = RecordedEvents(), cases(5), free_port()
    batches = range(1, 7)
    bodies = [body("JOB_STARTED", case_id, batch) for batch in batches for case_id in ids]
    async with asyncio.timeout(120), AsyncExitStack() as stack:
        async with temporal_server(tmp_path, port=port, ui=False) as server:
            client = await connect(server.address)
            stopped = await stack.enter_async_context(bridging(client, queues, rejected))
            async with working(client, book):
                await queues.send(bodies[:10])
                await eventually(queues.is_empty)
        await queues.send(bodies[10:])
        await asyncio.sleep(6)
        assert await queues.left() == 20
        async with temporal_server(tmp_path, port=port, ui=False), working(client, book):
            await eventually(queues.is_empty, seconds=60)
            for case_id in ids:
                handle = client.get_workflow_handle_for(CaseQueue.run, f"case/{case_id}")
                assert (await handle.query(CaseQueue.status)).events == 6

            async def all_are_written_down() -> bool:
                return len(book.events) >= 30

            await eventually(all_are_written_down)
            totals = await stopped()
    assert (totals.settled, totals.received - totals.abandoned) == (30, 30)
    for case_id in ids:
        assert [event.batch_id for event in book.of(case_id)] == list(batches)


@one_cloud
async def test_a_case_that_does_not_answer_delays_no_other(
    client: Client, queues: Pair, rejected: MemoryRejectedMessages
) -> None:
    book, [stuck, *others] = RecordedEvents(), cases(6)
    # No worker polls the queue that its run waits in.
    await client.start_workflow(
        CaseQueue.run, CaseInput(case_id=stuck), id=f"case/{stuck}", task_queue="nobody"
    )
    await queues.send([body("JOB_STARTED", case_id) for case_id in (stuck, stuck, *others)])
    async with working(client, book), bridging(client, queues, rejected):

        async def others_are_taken() -> bool:
            return await queues.left() == 2

        await eventually(others_are_taken)
    assert sorted(event.case_id for event in book.events) == others
    assert await queues.left() == 2


async def test_a_cancellation_is_not_swallowed_by_the_client(
    client: Client, rejected: MemoryRejectedMessages
) -> None:
    [case_id] = cases(1)
    intake = CaseEventIntake(client, rejected, queue="case-events")
    # Without a worker the case does not answer.
    asked = asyncio.create_task(intake.accept(body("JOB_STARTED", case_id).encode(), 0, "m"))
    with pytest.raises(TimeoutError):
        await asyncio.wait_for(asked, 1)
    assert asked.cancelled()


async def test_what_does_not_answer_in_time_is_given_back(
    client: Client, rejected: MemoryRejectedMessages, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("workers.batches.case_events.TAKE_SECONDS", 0.5)
    [case_id] = cases(1)
    intake = CaseEventIntake(client, rejected, queue="case-events")
    began = time.monotonic()
    verdict = await intake.accept(body("JOB_STARTED", case_id).encode(), 0, "m")
    assert isinstance(verdict, Abandon)
    assert f"case/{case_id}" in verdict.reason
    assert time.monotonic() - began < 5


async def test_a_case_with_a_full_inbox_gives_events_back(
    client: Client, rejected: MemoryRejectedMessages
) -> None:
    [case_id] = cases(1)
    waiting = JobStarted(case_id=case_id, batch_id=1)
    await client.start_workflow(
        CaseQueue.run,
        CaseInput(case_id=case_id, inbox=(waiting,) * 1_000),
        id=f"case/{case_id}",
        task_queue=TASK_QUEUE,
    )
    intake = CaseEventIntake(client, rejected, queue="case-events")
    async with working(client, BlockedEvents()):
        verdict = await intake.accept(body("JOB_STARTED", case_id).encode(), 0, "m")
    assert isinstance(verdict, Abandon)
    assert "too many events" in verdict.reason


async def test_no_future_is_left_unawaited_when_temporal_is_unavailable(
    rejected: MemoryRejectedMessages, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    async with temporal_server(tmp_path, ui=False, in_memory=True) as server:
        client = await connect(server.address)
    intake = CaseEventIntake(client, rejected, queue="case-events")
    verdict = await intake.accept(body("JOB_STARTED", 7).encode(), 0, "m")
    assert isinstance(verdict, Abandon)
    assert not await intake.ready()
    gc.collect()
    await asyncio.sleep(0)
    assert not [entry for entry in caplog.records if entry.name == "asyncio"]
