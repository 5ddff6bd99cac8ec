"""The SQS bridge against two servers that speak as SQS does: nothing is lost, nobody waits."""

import asyncio
import time
import uuid
from collections import Counter
from collections.abc import AsyncIterator, Awaitable, Callable, Hashable, Sequence
from typing import TYPE_CHECKING, Any

import pytest
import pytest_asyncio

from tests.support.aws import Cloud, cloud, clouds
from tests.support.bridges import running
from tests.support.sqs import Pair, pair_of_queues
from tests.support.waiting import eventually
from workers.bridges.patience import Accept, Patience
from workers.bridges.sqs import Polling, SqsBridge
from workers.bridges.sqs_queue import Received, RedriveTarget, SqsQueue
from workers.bridges.totals import BridgeError, BridgeTotals
from workers.bridges.verdicts import Abandon, DeadLetter, Settle, Verdict
from workers.health import Health

if TYPE_CHECKING:
    from types_aiobotocore_sqs import SQSClient

pytestmark = pytest.mark.asyncio(loop_scope="module")

QUICK = Patience(first_pause=0.05, longest_pause=0.2, hold=0.5)
SOON = Polling(wait=1, quiet=2)
WHOLE = 100
"""Bytes of a body that its record would hold."""


@pytest_asyncio.fixture(scope="module", loop_scope="module", params=clouds())
async def some_cloud(
    request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory
) -> AsyncIterator[Cloud]:
    async with cloud(request.param, tmp_path_factory.mktemp(request.param)) as started:
        yield started


@pytest.fixture
def sqs(some_cloud: Cloud) -> "SQSClient":
    return some_cloud.clients.sqs


@pytest_asyncio.fixture(loop_scope="module")
async def queues(sqs: "SQSClient") -> Pair:
    return await pair_of_queues(sqs)


async def settle(raw: bytes, _earlier: int, _message_id: str | None) -> Verdict:
    return Settle(raw.decode())


def bridge_of(
    queues: Pair,
    accept: Accept,
    *,
    polling: Polling = SOON,
    patience: Patience = QUICK,
    lane: Callable[[bytes], Hashable | None] | None = None,
    ready: Callable[[], Awaitable[bool]] | None = None,
    health: Health | None = None,
    queue: SqsQueue | None = None,
) -> SqsBridge:
    queue = queue or SqsQueue(queues.client, queues.url)
    return SqsBridge(
        queue,
        accept,
        RedriveTarget(queue, WHOLE).put,
        lane=lane,
        ready=ready,
        polling=polling,
        patience=patience,
        health=health or Health(),
    )


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
    assert await queues.is_empty()
    dead = await queues.dead()
    assert {letter["Body"] for letter in dead} == {str(number) for number in range(0, 60, 3)}
    for letter in dead:
        said = letter["MessageAttributes"]
        assert said["Reason"]["StringValue"] == "InvalidMessage"
        assert said["Description"]["StringValue"] == "caseId: Field required"


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


async def test_without_dead_letters_only_what_is_recorded_is_deleted(sqs: "SQSClient") -> None:
    async def accept(raw: bytes, _earlier: int, _message_id: str | None) -> Verdict:
        return DeadLetter("MalformedBody", "the body is not JSON")

    alone = (await sqs.create_queue(QueueName=f"alone-{uuid.uuid4().hex[:12]}"))["QueueUrl"]
    queues = Pair(sqs, alone, dead_url="there is none")
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


async def test_no_more_are_in_hand_than_asked_for(queues: Pair) -> None:
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
    polling = Polling(at_once=4, ask=3, wait=1, quiet=1)
    totals = await bridge_of(queues, accept, polling=polling).run(asyncio.Event(), drain=True)
    assert totals.settled == 30
    assert most == 4


async def test_one_lane_keeps_its_order_and_waits_for_nobody_else(queues: Pair) -> None:
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
    polling = Polling(at_once=10, ask=1, wait=1)
    bridge = bridge_of(queues, accept, polling=polling, lane=lambda raw: raw[:1])
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


async def test_what_cannot_be_taken_in_is_given_back_for_longer_and_blocks_nobody(
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

    patience = Patience(first_pause=0.01, longest_pause=0.01, hold=0)
    bridge = bridge_of(queues, accept, patience=patience, ready=ready)
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
    patience = Patience(first_pause=0.01, longest_pause=0.01, hold=0)
    bridge = bridge_of(queues, accept, patience=patience, lane=lambda _raw: "one")
    async with running(bridge) as stopped:
        await eventually(queues.is_empty)
        totals = await stopped()
    assert order == ["0", "1"]
    assert totals == BridgeTotals(received=4, settled=2, abandoned=2)


async def test_what_comes_again_before_all_behind_it_are_given_back_is_taken_first(
    queues: Pair,
) -> None:
    refused, order, first = 0, list[str](), list[Received]()
    again = asyncio.Event()

    class Behind(SqsQueue):
        """Gives back what waits for the first message only when that one has come again."""

        async def receive(self, most: int, wait: int, hidden: int) -> Sequence[Received]:
            messages = await super().receive(most, wait, hidden)
            first.extend(message for message in messages if message.text == "0")
            if len(first) > 1:
                again.set()
            return messages

        async def hide(self, message: Received, seconds: int) -> None:
            if message.text == "1":
                await again.wait()
            await super().hide(message, seconds)

    async def accept(raw: bytes, _earlier: int, _message_id: str | None) -> Verdict:
        nonlocal refused
        if raw == b"0" and not refused:
            refused += 1
            return Abandon("not now")
        order.append(raw.decode())
        return Settle("x")

    await queues.send(["0", "1"])
    patience = Patience(first_pause=0.01, longest_pause=0.01, hold=0)
    queue = Behind(queues.client, queues.url)
    bridge = bridge_of(queues, accept, patience=patience, lane=lambda _raw: "one", queue=queue)
    async with running(bridge):
        await eventually(queues.is_empty)
    assert order == ["0", "1"]


async def test_a_slow_acceptance_stays_hidden_from_others(queues: Pair) -> None:
    seen: list[int] = []

    async def accept(raw: bytes, earlier: int, _message_id: str | None) -> Verdict:
        seen.append(earlier)
        await asyncio.sleep(4)
        return Settle("x")

    await queues.send(["slow"])
    polling = Polling(wait=1, quiet=1, hidden=2)
    totals = await bridge_of(queues, accept, polling=polling).run(asyncio.Event(), drain=True)
    assert totals == BridgeTotals(received=1, settled=1)
    assert seen == [0]


async def test_an_outage_costs_no_receive_however_long(queues: Pair) -> None:
    away, asked = True, 0
    taken: Counter[int] = Counter()

    async def accept(raw: bytes, earlier: int, _message_id: str | None) -> Verdict:
        nonlocal asked
        if away:
            return Abandon("away")
        taken[earlier] += 1
        return Settle("x")

    async def ready() -> bool:
        nonlocal asked
        asked += 1
        return not away

    health = Health()
    polling = Polling(at_once=4, ask=4, wait=1, hidden=2)
    await queues.send([str(number) for number in range(20)])
    bridge = bridge_of(queues, accept, polling=polling, ready=ready, health=health)
    async with running(bridge) as stopped:

        async def waited_for_long() -> bool:
            return asked >= 20

        await eventually(waited_for_long, seconds=40)
        assert not health.ready
        away = False
        await eventually(queues.is_empty)
        assert health.ready
        totals = await stopped()
    assert taken == {0: 20}
    assert totals == BridgeTotals(received=20, settled=20)
    assert not health.ready


async def test_a_drain_gives_back_and_ends_when_temporal_is_away(queues: Pair) -> None:
    async def accept(raw: bytes, _earlier: int, _message_id: str | None) -> Verdict:
        return Abandon("away")

    async def ready() -> bool:
        return False

    await queues.send([str(number) for number in range(5)])
    bridge = bridge_of(queues, accept, ready=ready)
    totals = await bridge.run(asyncio.Event(), drain=True)
    assert totals.abandoned == totals.received > 0
    assert await queues.left() == 5


async def test_a_drain_of_an_empty_queue_waits_and_ends(queues: Pair) -> None:
    began = time.monotonic()
    totals = await bridge_of(queues, settle).run(asyncio.Event(), drain=True)
    assert totals == BridgeTotals()
    assert 2 <= time.monotonic() - began < 10


async def test_a_stop_ends_a_long_poll_at_once(queues: Pair) -> None:
    health, stop = Health(), asyncio.Event()
    bridge = bridge_of(queues, settle, polling=Polling(), health=health)
    await queues.send(["1"])
    run = asyncio.create_task(bridge.run(stop))
    await eventually(queues.is_empty)
    began = time.monotonic()
    stop.set()
    assert (await run).settled == 1
    assert time.monotonic() - began < 3


async def test_a_stop_mid_message_finishes_or_gives_back_and_loses_nothing(queues: Pair) -> None:
    stop, started, never = asyncio.Event(), asyncio.Event(), asyncio.Event()
    taken: set[str] = set()

    async def accept(raw: bytes, _earlier: int, _message_id: str | None) -> Verdict:
        number = int(raw)
        if number % 3 == 0:
            return Abandon("away")
        if number % 3 == 1:
            await stop.wait()
        else:
            started.set()
            await never.wait()
        taken.add(raw.decode())
        return Settle("x")

    await queues.send([str(number) for number in range(9)])
    polling = Polling(wait=1, hidden=3)
    patience = Patience(first_pause=30, longest_pause=30, hold=60)
    bridge = bridge_of(queues, accept, polling=polling, patience=patience)
    run = asyncio.create_task(bridge.run(stop))
    await started.wait()
    began = time.monotonic()
    stop.set()
    totals = await run
    assert time.monotonic() - began < 10
    assert totals.settled == len(taken)

    back: Counter[str] = Counter()

    async def again(raw: bytes, earlier: int, _message_id: str | None) -> Verdict:
        back[raw.decode()] += 1
        return Settle("x")

    async with running(bridge_of(queues, again)):
        await eventually(queues.is_empty)
    assert taken.isdisjoint(back)
    assert taken | set(back) == {str(number) for number in range(9)}
    assert set(back.values()) == {1}


async def test_what_a_killed_bridge_had_in_hand_comes_back(queues: Pair) -> None:
    held = asyncio.Event()

    async def hold(raw: bytes, _earlier: int, _message_id: str | None) -> Verdict:
        held.set()
        await asyncio.Event().wait()
        raise AssertionError("nothing sets it")

    await queues.send(["1", "2"])
    polling = Polling(wait=1, hidden=2)
    killed = asyncio.create_task(bridge_of(queues, hold, polling=polling).run(asyncio.Event()))
    await held.wait()
    killed.cancel()
    await asyncio.gather(killed, return_exceptions=True)
    assert await queues.left() == 2

    seen: list[tuple[bytes, int]] = []

    async def accept(raw: bytes, earlier: int, _message_id: str | None) -> Verdict:
        seen.append((raw, earlier))
        return Settle("x")

    async with running(bridge_of(queues, accept)):
        await eventually(queues.is_empty)
    assert sorted(seen) == [(b"1", 1), (b"2", 1)]


async def test_a_queue_that_is_not_there_is_named(queues: Pair) -> None:
    await queues.client.delete_queue(QueueUrl=queues.url)
    with pytest.raises(BridgeError, match=queues.url.rsplit("/", 1)[-1]):
        await bridge_of(queues, settle).run(asyncio.Event())


async def test_a_queue_that_goes_away_is_waited_for_or_ends_the_run(queues: Pair) -> None:
    health = Health()
    name = queues.url.rsplit("/", 1)[-1]
    stop = asyncio.Event()
    patient = asyncio.create_task(bridge_of(queues, settle, health=health).run(stop))
    ending = asyncio.create_task(bridge_of(queues, settle).run(stop, ends_with_queue=True))

    async def is_received_from() -> bool:
        return health.ready

    async def is_not() -> bool:
        return not health.ready

    await eventually(is_received_from)
    await queues.client.delete_queue(QueueUrl=queues.url)
    await eventually(is_not)
    assert await ending == BridgeTotals()
    await queues.client.create_queue(QueueName=name)
    await eventually(is_received_from)
    await queues.send(["1"])
    await eventually(queues.is_empty)
    stop.set()
    assert (await patient).settled == 1


async def test_a_fifo_queue_keeps_its_groups_also_among_dead_letters(sqs: "SQSClient") -> None:
    queues = await pair_of_queues(
        sqs, attributes={"FifoQueue": "true", "ContentBasedDeduplication": "true"}
    )
    taken: list[str] = []

    async def accept(raw: bytes, _earlier: int, _message_id: str | None) -> Verdict:
        if raw.startswith(b"bad"):
            return DeadLetter("MalformedBody", "the body is not JSON")
        taken.append(raw.decode())
        return Settle("x")

    for number in range(4):
        await queues.send([f"{number}"], MessageGroupId="7")
    await queues.send(["bad 1", "bad 2"], MessageGroupId="8")
    polling = Polling(ask=1, wait=1)
    async with running(bridge_of(queues, accept, polling=polling)):
        await eventually(queues.is_empty)
    assert taken == ["0", "1", "2", "3"]
    assert [letter["Body"] for letter in await queues.dead()] == ["bad 1", "bad 2"]
