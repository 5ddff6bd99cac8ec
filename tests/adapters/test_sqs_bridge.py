"""The SQS bridge against two servers that speak SQS: nothing is lost, no key waits for another."""

import asyncio
import time
import uuid
from collections.abc import Sequence
from typing import Any

import pytest

from tests.support.bridges import running
from tests.support.side_by_side import side_by_side
from tests.support.sqs import Pair, pair_of_queues
from tests.support.sqs_bridges import WHOLE, bridge_of
from tests.support.waiting import eventually
from workers.shared.bridges.consumer import BridgeTotals, Retry
from workers.shared.bridges.sqs import Polling, Received, SqsQueue
from workers.shared.services.bodies import Abandon, DeadLetter, Settle, Verdict

pytestmark = pytest.mark.asyncio(loop_scope="module")


@side_by_side(queues="pairs")
async def test_every_verdict_is_carried_out(queues: Pair) -> None:
    seen: list[tuple[bytes, int]] = []

    async def accept(raw: bytes, earlier: int, message_id: str | None) -> Verdict:
        assert message_id
        seen.append((raw, earlier))
        if int(raw) % 3:
            return Settle("case/7")
        return DeadLetter("InvalidMessage", "caseId: Field required")

    await queues.send([str(number) for number in range(60)])
    totals = await bridge_of(queues, accept).run(asyncio.Event(), drain=True)

    assert totals == BridgeTotals(received=60, settled=40, dead_lettered=20)
    assert sorted(seen) == sorted((b"%d" % number, 0) for number in range(60))
    await eventually(queues.is_empty)
    dead = await queues.dead()
    assert {letter["Body"] for letter in dead} == {str(number) for number in range(0, 60, 3)}
    for letter in dead:
        said = letter["MessageAttributes"]
        assert said["Reason"]["StringValue"] == "InvalidMessage"
        assert said["Description"]["StringValue"] == "caseId: Field required"


@side_by_side(queues="pairs")
async def test_a_dead_letter_keeps_its_own_attributes(queues: Pair) -> None:
    async def accept(raw: bytes, _earlier: int, _message_id: str | None) -> Verdict:
        return DeadLetter("UnknownEventType", "eventType is missing")

    attributes: dict[str, Any] = {
        f"a{number}": {"DataType": "Number", "StringValue": str(number)} for number in range(9)
    }
    attributes["Reason"] = {"DataType": "String", "StringValue": "somebody else's"}
    await queues.send(["{}"], MessageAttributes=attributes)
    await bridge_of(queues, accept).run(asyncio.Event(), drain=True)
    [letter] = await queues.dead()
    said = letter["MessageAttributes"]
    assert len(said) == 10
    assert said["Reason"]["StringValue"] == "UnknownEventType"
    assert said["a7"] == {"DataType": "Number", "StringValue": "7"}


@side_by_side(queues="pairs")
async def test_without_dead_letters_only_what_is_recorded_is_deleted(queues: Pair) -> None:
    async def accept(raw: bytes, _earlier: int, _message_id: str | None) -> Verdict:
        return DeadLetter("MalformedBody", "the body is not JSON")

    made = await queues.client.create_queue(QueueName=f"alone-{uuid.uuid4().hex[:12]}")
    queues = Pair(queues.client, made["QueueUrl"], dead_url="there is none")
    await queues.send(["x" * WHOLE, "y" * (WHOLE + 1)])
    stop = asyncio.Event()
    run = asyncio.create_task(bridge_of(queues, accept).run(stop))

    async def one_is_left() -> bool:
        return await queues.left() == 1

    await eventually(one_is_left)
    stop.set()
    totals = await run
    assert totals.dead_lettered == 1
    assert totals.abandoned >= 1
    assert await queues.left() == 1


@side_by_side(queues="pairs")
async def test_a_queue_of_dead_letters_that_is_replaced_is_found(queues: Pair) -> None:
    rejected = 0

    async def accept(raw: bytes, _earlier: int, _message_id: str | None) -> Verdict:
        nonlocal rejected
        rejected += 1
        return DeadLetter("MalformedBody", "the body is not JSON")

    other = await pair_of_queues(queues.client)
    got = await queues.client.get_queue_attributes(
        QueueUrl=other.url, AttributeNames=["RedrivePolicy"]
    )
    async with running(bridge_of(queues, accept)):
        await queues.send(["first"])
        await eventually(queues.is_empty)
        await queues.client.set_queue_attributes(
            QueueUrl=queues.url, Attributes={"RedrivePolicy": got["Attributes"]["RedrivePolicy"]}
        )
        await queues.client.delete_queue(QueueUrl=queues.dead_url)
        await queues.send(["second"])
        await eventually(queues.is_empty)
    assert [letter["Body"] for letter in await other.dead()] == ["second"]
    assert rejected >= 3


@side_by_side(queues="pairs")
async def test_messages_in_flight_never_exceed_the_requested_number(queues: Pair) -> None:
    at_once = most = 0
    full = asyncio.Event()

    async def accept(raw: bytes, _earlier: int, _message_id: str | None) -> Verdict:
        nonlocal at_once, most
        at_once += 1
        most = max(most, at_once)
        if at_once == 4:
            full.set()
        await full.wait()
        await asyncio.sleep(0.05)
        at_once -= 1
        return Settle("x")

    await queues.send([str(number) for number in range(30)])
    polling = Polling(in_flight=4, batch=3, wait=1, quiet=1)
    totals = await bridge_of(queues, accept, polling=polling).run(asyncio.Event(), drain=True)
    assert totals.settled == 30
    assert most == 4


@side_by_side(queues="pairs")
async def test_one_ordering_key_keeps_its_order_and_waits_for_no_other(queues: Pair) -> None:
    held = asyncio.Event()
    order: dict[str, list[str]] = {"a": [], "b": []}

    async def accept(raw: bytes, _earlier: int, _message_id: str | None) -> Verdict:
        lane, number = raw.decode().split()
        if (lane, number) == ("a", "0"):
            await held.wait()
        order[lane].append(number)
        return Settle("x")

    for number in range(5):
        await queues.send([f"a {number}", f"b {number}"])
    polling = Polling(in_flight=10, batch=1, wait=1)
    bridge = bridge_of(queues, accept, polling=polling, ordering_key=lambda raw: raw[:1])
    async with running(bridge) as stopped:

        async def others_are_done() -> bool:
            return len(order["b"]) == 5

        await eventually(others_are_done)
        assert order["a"] == []
        held.set()
        await eventually(queues.is_empty)
        totals = await stopped()
    assert totals == BridgeTotals(received=10, settled=10)
    assert order == {"a": list("01234"), "b": list("01234")}


@side_by_side(queues="pairs")
async def test_an_unaccepted_event_is_given_back_for_longer_and_blocks_no_other(
    queues: Pair,
) -> None:
    asked: dict[int, float] = {}

    async def accept(raw: bytes, earlier: int, _message_id: str | None) -> Verdict:
        if raw != b"poison":
            return Settle("x")
        asked.setdefault(earlier, time.monotonic())
        return Abandon("this one fails")

    async def ready() -> bool:
        return True

    retry = Retry(first_pause=0.01, longest_pause=0.01, hold=0)
    bridge = bridge_of(queues, accept, retry=retry, ready=ready)
    async with running(bridge) as stopped:
        await queues.send(["poison", *(str(number) for number in range(30))])

        async def only_the_poison_is_left() -> bool:
            return await queues.left() == 1

        await eventually(only_the_poison_is_left)

        async def came_four_times() -> bool:
            return len(asked) >= 4

        await eventually(came_four_times)
        totals = await stopped()
    assert totals.settled == 30
    assert asked[3] - asked[2] >= 2.5
    assert asked[2] - asked[1] >= 0.5
    assert await queues.left() == 1


@side_by_side(queues="pairs")
async def test_what_is_behind_a_message_that_is_given_back_does_not_overtake_it(
    queues: Pair,
) -> None:
    refused, order = 0, list[str]()

    async def accept(raw: bytes, _earlier: int, _message_id: str | None) -> Verdict:
        nonlocal refused
        if raw == b"0" and not refused:
            refused += 1
            return Abandon("not now")
        order.append(raw.decode())
        return Settle("x")

    await queues.send(["0", "1"])
    retry = Retry(first_pause=0.01, longest_pause=0.01, hold=0)
    bridge = bridge_of(queues, accept, retry=retry, ordering_key=lambda _raw: "one")
    async with running(bridge) as stopped:
        await eventually(queues.is_empty)
        totals = await stopped()
    assert order == ["0", "1"]
    assert totals == BridgeTotals(received=4, settled=2, abandoned=2)


@side_by_side(queues="pairs")
async def test_an_event_redelivered_before_its_successors_is_accepted_first(
    queues: Pair,
) -> None:
    refused, order, first = 0, list[str](), list[Received]()
    again = asyncio.Event()

    class Behind(SqsQueue):
        """Gives back what waits for the first message only when that one has come again."""

        async def receive(
            self, most: int, wait: int, visibility_timeout: int
        ) -> Sequence[Received]:
            messages = await super().receive(most, wait, visibility_timeout)
            first.extend(message for message in messages if message.text == "0")
            if len(first) > 1:
                again.set()
            return messages

        async def change_visibility(self, message: Received, seconds: int) -> None:
            if message.text == "1":
                await again.wait()
            await super().change_visibility(message, seconds)

    async def accept(raw: bytes, _earlier: int, _message_id: str | None) -> Verdict:
        nonlocal refused
        if raw == b"0" and not refused:
            refused += 1
            return Abandon("not now")
        order.append(raw.decode())
        return Settle("x")

    await queues.send(["0", "1"])
    retry = Retry(first_pause=0.01, longest_pause=0.01, hold=0)
    queue = Behind(queues.client, queues.url)
    bridge = bridge_of(queues, accept, retry=retry, ordering_key=lambda _raw: "one", queue=queue)
    async with running(bridge):
        await eventually(queues.is_empty)
    assert order == ["0", "1"]
