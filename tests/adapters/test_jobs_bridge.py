"""Job events reach the run of their case: each once, in order, whatever is away meanwhile."""

import asyncio
import gc
import json
import random
import time
from collections import Counter
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest
import pytest_asyncio
from temporalio import activity
from temporalio.client import Client
from temporalio.exceptions import ApplicationError
from temporalio.worker import Worker

from adapters.memory.rejected import MemoryRejectedMessages
from contracts.batches import (
    EVENT_TYPES,
    TASK_QUEUE,
    CaseOrder,
    CaseStatus,
    JobEvent,
    JobStarted,
    Line,
    NoteEvents,
    Timings,
)
from tests.support.aws import Cloud, cloud, clouds
from tests.support.sqs import Pair, pair_of_queues
from tests.support.waiting import eventually
from workers.bridges.batch_door import BatchDoor
from workers.bridges.jobs import run_jobs_bridge
from workers.bridges.patience import Patience
from workers.bridges.sqs import Polling
from workers.bridges.totals import BridgeTotals
from workers.bridges.verdicts import Abandon, Settle
from workers.connect import connect
from workers.stack.children import free_port
from workers.stack.temporal import temporal_server
from workflows.batches import BatchLifecycle, CaseQueue

pytestmark = pytest.mark.asyncio(loop_scope="module")

QUICK = Patience(first_pause=0.05, longest_pause=0.3, hold=1)
ONE_BY_ONE = Polling(ask=1, wait=1, quiet=2)
TOGETHER = Polling(wait=1, quiet=2)


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def client(tmp_path_factory: pytest.TempPathFactory) -> AsyncIterator[Client]:
    folder = tmp_path_factory.mktemp("temporal")
    async with temporal_server(folder, ui=False, in_memory=True) as server:
        yield await connect(server.address)


@pytest_asyncio.fixture(scope="module", loop_scope="module", params=clouds())
async def some_cloud(
    request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory
) -> AsyncIterator[Cloud]:
    async with cloud(request.param, tmp_path_factory.mktemp(request.param)) as started:
        yield started


@pytest_asyncio.fixture(loop_scope="module")
async def queues(some_cloud: Cloud) -> Pair:
    return await pair_of_queues(some_cloud.clients.sqs)


@pytest.fixture
def rejected() -> MemoryRejectedMessages:
    return MemoryRejectedMessages()


@dataclass
class Book:
    """Stands for the table of batches: keeps what cases write down."""

    events: list[JobEvent] = field(default_factory=list[JobEvent])

    @activity.defn(name="batches.note")
    async def note(self, noted: NoteEvents) -> Line:
        """Keep events."""
        self.events += noted.events
        return Line()

    def of(self, case_id: int) -> list[JobEvent]:
        """What one case wrote down, in order."""
        return [event for event in self.events if event.case_id == case_id]


@asynccontextmanager
async def working(client: Client, book: Book) -> AsyncIterator[None]:
    """A worker that runs cases."""
    async with Worker(
        client,
        task_queue=TASK_QUEUE,
        workflows=[CaseQueue, BatchLifecycle],
        activities=[book.note],
    ):
        yield


@dataclass
class StuckBook(Book):
    """A table that is away."""

    @activity.defn(name="batches.note")
    async def note(self, noted: NoteEvents) -> Line:
        """Fail."""
        raise ApplicationError("the table is away")


def body(event_type: str, case_id: int, batch_id: int = 1, **more: Any) -> str:
    return json.dumps({"eventType": event_type, "caseId": case_id, "batchId": batch_id, **more})


def cases(count: int) -> list[int]:
    """Ids of cases that no other test uses."""
    first = random.randrange(1, 900_000_000)
    return list(range(first, first + count))


@asynccontextmanager
async def bridging(
    client: Client,
    queues: Pair,
    rejected: MemoryRejectedMessages,
    polling: Polling = ONE_BY_ONE,
) -> AsyncIterator[Callable[[], Awaitable[BridgeTotals]]]:
    """A bridge at work; the yielded call stops it."""
    stop = asyncio.Event()
    run = asyncio.create_task(
        run_jobs_bridge(
            client,
            queues.client,
            rejected,
            queue_url=queues.url,
            stop=stop,
            polling=polling,
            patience=QUICK,
        )
    )

    async def stopped() -> BridgeTotals:
        stop.set()
        return await run

    try:
        yield stopped
    finally:
        await stopped()


async def drain(
    client: Client,
    queues: Pair,
    rejected: MemoryRejectedMessages,
    polling: Polling = ONE_BY_ONE,
) -> BridgeTotals:
    return await run_jobs_bridge(
        client,
        queues.client,
        rejected,
        queue_url=queues.url,
        stop=asyncio.Event(),
        drain=True,
        polling=polling,
        patience=QUICK,
    )


async def test_every_event_is_taken_once_and_in_the_order_of_its_case(
    client: Client, queues: Pair, rejected: MemoryRejectedMessages
) -> None:
    book, ids = Book(), cases(4)
    sent = [(case_id, batch_id) for batch_id in range(1, 13) for case_id in ids]
    async with working(client, book):
        await queues.send([body("JOB_STARTED", *pair) for pair in sent])
        totals = await drain(client, queues, rejected)

        async def all_are_written_down() -> bool:
            return len(book.events) >= len(sent)

        await eventually(all_are_written_down)
        for case_id in ids:
            status = await client.get_workflow_handle_for(CaseQueue.run, f"case/{case_id}").query(
                CaseQueue.status
            )
            assert status == CaseStatus(case_id=case_id, events=12)
    assert totals == BridgeTotals(received=48, settled=48)
    assert await queues.is_empty()
    for case_id in ids:
        assert [event.batch_id for event in book.of(case_id)] == list(range(1, 13))


async def test_every_kind_of_event_is_taken_with_what_it_says(
    client: Client, queues: Pair, rejected: MemoryRejectedMessages
) -> None:
    book, [case_id] = Book(), cases(1)
    envelope = json.dumps({"Type": "Notification", "Message": body("JOB_STARTED", case_id, 2)})
    async with working(client, book):
        await queues.send([body(kind, case_id) for kind in EVENT_TYPES])
        await queues.send([body("JOB_STARTED", case_id, timings={"maxRedrives": 5}), envelope])
        assert (await drain(client, queues, rejected)).settled == 7

        async def all_are_written_down() -> bool:
            return len(book.events) >= 7

        await eventually(all_are_written_down)
        handle = client.get_workflow_handle(f"case/{case_id}")
        attributes = (await handle.describe()).typed_search_attributes
    found = {pair.key.name: pair.value for pair in attributes}
    assert (found["Pipeline"], found["DocumentType"]) == ("batches", "JOB_STARTED")
    assert found["ProjectId"] == str(case_id)
    assert [event.event_type for event in book.events] == [*EVENT_TYPES, *["JOB_STARTED"] * 2]
    assert book.events[5] == JobStarted(
        case_id=case_id, batch_id=1, timings=Timings(max_redrives=5)
    )
    assert book.events[6].batch_id == 2


async def test_a_message_that_comes_again_is_taken_once(
    client: Client, queues: Pair, rejected: MemoryRejectedMessages
) -> None:
    """The bridge died after Temporal had accepted, and before the message was deleted."""
    book, [case_id] = Book(), cases(1)
    await queues.send([body("JOB_STARTED", case_id)])
    got = await queues.client.receive_message(QueueUrl=queues.url, VisibilityTimeout=1)
    [message] = got["Messages"]
    door = BatchDoor(client, rejected, queue="jobs")
    async with working(client, book):
        for _ in range(3):
            verdict = await door.accept(message["Body"].encode(), 0, message["MessageId"])
            assert verdict == Settle(f"case/{case_id}")
        async with bridging(client, queues, rejected):
            await eventually(queues.is_empty)
        handle = client.get_workflow_handle_for(CaseQueue.run, f"case/{case_id}")
        assert (await handle.query(CaseQueue.status)).events == 1
        # Another message with the same words is another event.
        await door.accept(message["Body"].encode(), 0, "another")
        assert (await handle.query(CaseQueue.status)).events == 2


async def test_a_case_that_has_ended_begins_again(
    client: Client, rejected: MemoryRejectedMessages
) -> None:
    book, [case_id] = Book(), cases(1)
    door = BatchDoor(client, rejected, queue="jobs")
    raw = body("JOB_FINISHED", case_id).encode()
    async with working(client, book):
        for number in range(3):
            assert await door.accept(raw, 0, f"m{number}") == Settle(f"case/{case_id}")

            async def is_written_down(wanted: int = number + 1) -> bool:
                return len(book.events) == wanted

            await eventually(is_written_down)
            await client.get_workflow_handle(f"case/{case_id}").cancel()

            async def has_ended() -> bool:
                return (
                    await client.get_workflow_handle(f"case/{case_id}").describe()
                ).close_time is not None

            await eventually(has_ended)


def hostile(number: int) -> str:
    """A body that is no event, each of its own kind."""
    kinds = (
        f"not JSON {number}",
        json.dumps([number]),
        body("LOADER_FINISHED", 7, number),
        body("DOCUMENT_PROCESSED", 7, number),
        body("JOB_STARTED", 0, number),
        body("JOB_STARTED", 7, number, timings={"poll": -1}),
        json.dumps({"eventType": "JOB_STARTED", "caseId": "x" * (number % 90)}),
        f'{{"eventType":"JOB_STARTED","eventType":"JOB_FINISHED","n":{number}}}',
    )
    return kinds[number % len(kinds)]


async def test_what_is_no_event_goes_to_the_dead_letters_and_starts_nothing(
    client: Client, some_cloud: Cloud, queues: Pair, rejected: MemoryRejectedMessages
) -> None:
    # moto slows down with the length of its queues.
    count = 2_000 if some_cloud.name == "ministack" else 80
    bodies = [hostile(number) for number in range(count)]
    before = (await client.count_workflows()).count
    await queues.send(bodies)
    totals = await drain(client, queues, rejected, Polling(at_once=30, wait=1, quiet=1))
    assert totals == BridgeTotals(received=count, dead_lettered=count)
    assert await queues.is_empty()
    dead = await queues.dead()
    assert Counter(letter["Body"] for letter in dead) == Counter(bodies)
    reasons = Counter[str]()
    for letter in dead:
        said = letter["MessageAttributes"]
        reasons[said["Reason"]["StringValue"]] += 1
        assert said["Description"]["StringValue"]
    assert reasons == {
        "MalformedBody": count // 8 * 3,
        "UnknownEventType": count // 8 * 2,
        "InvalidMessage": count // 8 * 3,
    }
    records = await rejected.list(count + 1)
    assert Counter(record.body for record in records) == Counter(bodies)
    assert (await client.count_workflows()).count == before


async def test_rejected_messages_never_hold_up_events(
    client: Client, queues: Pair, rejected: MemoryRejectedMessages
) -> None:
    book, ids = Book(), cases(20)
    bodies = [text for case_id in ids for text in (hostile(case_id), body("JOB_STARTED", case_id))]
    async with working(client, book):
        await queues.send(bodies)
        totals = await drain(client, queues, rejected, TOGETHER)
    assert totals == BridgeTotals(received=40, settled=20, dead_lettered=20)
    assert len(await queues.dead()) == 20


async def test_nothing_is_set_aside_unrecorded(
    client: Client, queues: Pair, rejected: MemoryRejectedMessages
) -> None:
    book, [case_id] = Book(), cases(1)
    rejected.away = True
    await queues.send(["not JSON", body("JOB_STARTED", case_id)])
    async with working(client, book), bridging(client, queues, rejected):

        async def the_event_is_taken() -> bool:
            return await queues.left() == 1

        await eventually(the_event_is_taken)
        assert await queues.dead() == []
        rejected.away = False
        await eventually(queues.is_empty)
    [letter], [record] = await queues.dead(), await rejected.list()
    assert letter["Body"] == record.body == "not JSON"
    assert record.queue == queues.url.rsplit("/", 1)[-1]


async def test_without_a_worker_events_stay_in_hand_until_there_is_one(
    queues: Pair, rejected: MemoryRejectedMessages, tmp_path: Path
) -> None:
    book, ids = Book(), cases(3)
    bodies = [body("JOB_STARTED", case_id, batch) for batch in (1, 2) for case_id in ids]
    async with temporal_server(tmp_path, ui=False, in_memory=True) as server:
        client = await connect(server.address)
        assert not await BatchDoor(client, rejected, queue="jobs").ready()
        await queues.send(bodies)
        async with bridging(client, queues, rejected) as stopped:
            await asyncio.sleep(8)
            assert await queues.left() == 6
            async with working(client, book):
                await eventually(queues.is_empty, seconds=60)
                assert await BatchDoor(client, rejected, queue="jobs").ready()

                async def all_are_written_down() -> bool:
                    return len(book.events) >= 6

                await eventually(all_are_written_down)
            totals = await stopped()
    assert totals == BridgeTotals(received=6, settled=6)
    for case_id in ids:
        assert [event.batch_id for event in book.of(case_id)] == [1, 2]


async def test_an_outage_of_temporal_loses_and_doubles_nothing(
    queues: Pair, rejected: MemoryRejectedMessages, tmp_path: Path
) -> None:
    book, ids, port = Book(), cases(5), free_port()
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
    assert totals == BridgeTotals(received=30, settled=30)
    for case_id in ids:
        assert [event.batch_id for event in book.of(case_id)] == list(batches)


async def test_a_case_that_does_not_answer_holds_up_no_other(
    client: Client, queues: Pair, rejected: MemoryRejectedMessages
) -> None:
    book, [stuck, *others] = Book(), cases(6)
    # Nobody works on the queue that its run waits in.
    await client.start_workflow(
        CaseQueue.run, CaseOrder(case_id=stuck), id=f"case/{stuck}", task_queue="nobody"
    )
    await queues.send([body("JOB_STARTED", case_id) for case_id in (stuck, stuck, *others)])
    async with working(client, book), bridging(client, queues, rejected):

        async def others_are_taken() -> bool:
            return await queues.left() == 2

        await eventually(others_are_taken)
    assert sorted(event.case_id for event in book.events) == others
    assert await queues.left() == 2


async def test_a_wish_to_cancel_is_not_kept_by_the_client(
    client: Client, rejected: MemoryRejectedMessages
) -> None:
    [case_id] = cases(1)
    door = BatchDoor(client, rejected, queue="jobs")
    # Without a worker the case does not answer.
    asked = asyncio.create_task(door.accept(body("JOB_STARTED", case_id).encode(), 0, "m"))
    with pytest.raises(TimeoutError):
        await asyncio.wait_for(asked, 1)
    assert asked.cancelled()


async def test_what_does_not_answer_in_time_is_given_back(
    client: Client, rejected: MemoryRejectedMessages, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("workers.bridges.batch_door.TAKE_SECONDS", 0.5)
    [case_id] = cases(1)
    door = BatchDoor(client, rejected, queue="jobs")
    began = time.monotonic()
    verdict = await door.accept(body("JOB_STARTED", case_id).encode(), 0, "m")
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
        CaseOrder(case_id=case_id, inbox=(waiting,) * 1_000),
        id=f"case/{case_id}",
        task_queue=TASK_QUEUE,
    )
    door = BatchDoor(client, rejected, queue="jobs")
    async with working(client, StuckBook()):
        verdict = await door.accept(body("JOB_STARTED", case_id).encode(), 0, "m")
    assert isinstance(verdict, Abandon)
    assert "too many events" in verdict.reason


async def test_no_future_is_left_unlooked_at_when_temporal_is_away(
    rejected: MemoryRejectedMessages, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    async with temporal_server(tmp_path, ui=False, in_memory=True) as server:
        client = await connect(server.address)
    door = BatchDoor(client, rejected, queue="jobs")
    verdict = await door.accept(body("JOB_STARTED", 7).encode(), 0, "m")
    assert isinstance(verdict, Abandon)
    assert not await door.ready()
    gc.collect()
    await asyncio.sleep(0)
    assert not [entry for entry in caplog.records if entry.name == "asyncio"]
