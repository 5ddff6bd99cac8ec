"""Case events reach the run of their case: each once, in order, through every outage."""

import json
from collections import Counter

import pytest
from temporalio.client import Client

from tests.support.aws import Cloud
from tests.support.batches.case_event_bridges import (
    TOGETHER,
    RecordedEvents,
    body,
    bridging,
    cases,
    drain,
    working,
)
from tests.support.memory.rejected import MemoryRejectedMessages
from tests.support.sqs import Pair
from tests.support.waiting import eventually
from workers.batches.case_events import CaseEventIntake
from workers.shared.bridges.consumer import BridgeTotals
from workers.shared.bridges.sqs import Polling
from workers.shared.services.bodies import Settle
from workflows.batches.case_queue import CaseQueue
from workflows.batches.events import EVENT_TYPES, JobStarted
from workflows.batches.names import Timings
from workflows.batches.runs import CaseStatus

pytestmark = pytest.mark.asyncio(loop_scope="module")


async def test_every_event_is_accepted_once_and_in_the_order_of_its_case(
    client: Client, queues: Pair, rejected: MemoryRejectedMessages
) -> None:
    book, ids = RecordedEvents(), cases(4)
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
    await eventually(queues.is_empty)
    for case_id in ids:
        assert [event.batch_id for event in book.of(case_id)] == list(range(1, 13))


async def test_every_kind_of_event_is_accepted_with_its_content(
    client: Client, queues: Pair, rejected: MemoryRejectedMessages
) -> None:
    book, [case_id] = RecordedEvents(), cases(1)
    envelope = json.dumps({"Type": "Notification", "Message": body("JOB_STARTED", case_id, 2)})
    async with working(client, book):
        await queues.send([body(kind, case_id) for kind in EVENT_TYPES])
        timed = body("JOB_STARTED", case_id, 3, timings={"maxRedrives": 5})
        await queues.send([timed, envelope])
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
        case_id=case_id, batch_id=3, timings=Timings(max_redrives=5)
    )
    assert book.events[6].batch_id == 2


async def test_a_redelivered_message_is_accepted_once(
    client: Client, queues: Pair, rejected: MemoryRejectedMessages
) -> None:
    """The bridge died after Temporal had accepted, and before the message was deleted."""
    book, [case_id] = RecordedEvents(), cases(1)
    await queues.send([body("JOB_STARTED", case_id)])
    got = await queues.client.receive_message(QueueUrl=queues.url, VisibilityTimeout=1)
    [message] = got["Messages"]
    intake = CaseEventIntake(client, rejected, queue="case-events")
    async with working(client, book):
        for _ in range(3):
            verdict = await intake.accept(message["Body"].encode(), 0, message["MessageId"])
            assert verdict == Settle(f"case/{case_id}")
        async with bridging(client, queues, rejected):
            await eventually(queues.is_empty)
        handle = client.get_workflow_handle_for(CaseQueue.run, f"case/{case_id}")
        assert (await handle.query(CaseQueue.status)).events == 1
        # Another message with the same words is another event.
        await intake.accept(message["Body"].encode(), 0, "another")
        assert (await handle.query(CaseQueue.status)).events == 2


async def test_a_case_that_has_ended_begins_again(
    client: Client, rejected: MemoryRejectedMessages
) -> None:
    book, [case_id] = RecordedEvents(), cases(1)
    intake = CaseEventIntake(client, rejected, queue="case-events")
    raw = body("JOB_FINISHED", case_id).encode()
    async with working(client, book):
        for number in range(3):
            assert await intake.accept(raw, 0, f"m{number}") == Settle(f"case/{case_id}")

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
    """A body that is not an event, each of its own kind."""
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


async def test_an_invalid_event_is_dead_lettered_and_starts_nothing(
    client: Client, some_cloud: Cloud, queues: Pair, rejected: MemoryRejectedMessages
) -> None:
    # moto slows down with the length of its queues.
    count = 400 if some_cloud.name == "ministack" else 80
    bodies = [hostile(number) for number in range(count)]
    before = (await client.count_workflows()).count
    await queues.send(bodies)
    totals = await drain(client, queues, rejected, Polling(in_flight=30, wait=1, quiet=1))
    assert totals == BridgeTotals(received=count, dead_lettered=count)
    await eventually(queues.is_empty)
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
    book, ids = RecordedEvents(), cases(20)
    bodies = [text for case_id in ids for text in (hostile(case_id), body("JOB_STARTED", case_id))]
    async with working(client, book):
        await queues.send(bodies)
        totals = await drain(client, queues, rejected, TOGETHER)
    assert totals == BridgeTotals(received=40, settled=20, dead_lettered=20)
    assert len(await queues.dead()) == 20


async def test_nothing_is_set_aside_unrecorded(
    client: Client, queues: Pair, rejected: MemoryRejectedMessages
) -> None:
    book, [case_id] = RecordedEvents(), cases(1)
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
