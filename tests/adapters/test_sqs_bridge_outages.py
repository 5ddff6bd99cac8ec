"""The SQS bridge when something is slow or unavailable, stops or dies: nothing is lost."""

import asyncio
import time
from collections import Counter

import pytest

from tests.support.bridges import running
from tests.support.side_by_side import side_by_side
from tests.support.sqs import Pair, pair_of_queues
from tests.support.sqs_bridges import bridge_of, settle
from tests.support.waiting import eventually
from workers.shared.bridges.consumer import BridgeError, BridgeTotals, Retry
from workers.shared.bridges.sqs import Polling
from workers.shared.health import Health
from workers.shared.services.bodies import Abandon, DeadLetter, Settle, Verdict

pytestmark = pytest.mark.asyncio(loop_scope="module")


@side_by_side(queues="pairs")
async def test_a_slow_acceptance_stays_hidden_from_others(queues: Pair) -> None:
    seen: list[int] = []

    async def accept(raw: bytes, earlier: int, _message_id: str | None) -> Verdict:
        seen.append(earlier)
        await asyncio.sleep(4)
        return Settle("x")

    await queues.send(["slow"])
    polling = Polling(wait=1, quiet=1, visibility_timeout=2)
    totals = await bridge_of(queues, accept, polling=polling).run(asyncio.Event(), drain=True)
    assert totals == BridgeTotals(received=1, settled=1)
    assert seen == [0]


@side_by_side(queues="pairs")
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
    polling = Polling(in_flight=4, batch=4, wait=1, visibility_timeout=2)
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


@side_by_side(queues="pairs")
async def test_a_drain_gives_events_back_and_ends_without_temporal(queues: Pair) -> None:
    async def accept(raw: bytes, _earlier: int, _message_id: str | None) -> Verdict:
        return Abandon("away")

    async def ready() -> bool:
        return False

    await queues.send([str(number) for number in range(5)])
    bridge = bridge_of(queues, accept, ready=ready)
    totals = await bridge.run(asyncio.Event(), drain=True)
    assert totals.abandoned == totals.received > 0
    assert await queues.left() == 5


@side_by_side(queues="pairs")
async def test_a_drain_of_an_empty_queue_waits_and_ends(queues: Pair) -> None:
    began = time.monotonic()
    totals = await bridge_of(queues, settle).run(asyncio.Event(), drain=True)
    assert totals == BridgeTotals()
    assert 2 <= time.monotonic() - began < 20


@side_by_side(queues="pairs")
async def test_a_stop_ends_a_long_poll_at_once(queues: Pair) -> None:
    health, stop = Health(), asyncio.Event()
    bridge = bridge_of(queues, settle, polling=Polling(), health=health)
    await queues.send(["1"])
    run = asyncio.create_task(bridge.run(stop))
    await eventually(queues.is_empty)
    began = time.monotonic()
    stop.set()
    assert (await run).settled == 1
    assert time.monotonic() - began < 10


@side_by_side(queues="pairs")
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
    polling = Polling(wait=1, visibility_timeout=3)
    retry = Retry(first_pause=30, longest_pause=30, hold=60)
    bridge = bridge_of(queues, accept, polling=polling, retry=retry)
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


@side_by_side(queues="pairs")
async def test_messages_in_flight_at_a_killed_bridge_are_redelivered(queues: Pair) -> None:
    held = asyncio.Event()

    async def hold(raw: bytes, _earlier: int, _message_id: str | None) -> Verdict:
        held.set()
        await asyncio.Event().wait()
        raise AssertionError("nothing sets it")

    await queues.send(["1", "2"])
    polling = Polling(wait=1, visibility_timeout=2)
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


@side_by_side(queues="pairs")
async def test_a_queue_that_is_not_there_is_named(queues: Pair) -> None:
    await queues.client.delete_queue(QueueUrl=queues.url)
    with pytest.raises(BridgeError, match=queues.url.rsplit("/", 1)[-1]):
        await bridge_of(queues, settle).run(asyncio.Event())


@side_by_side(queues="pairs")
async def test_a_deleted_queue_is_waited_for_or_ends_the_run(queues: Pair) -> None:
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


@side_by_side(queues="pairs")
async def test_a_fifo_queue_keeps_its_groups_also_among_dead_letters(queues: Pair) -> None:
    queues = await pair_of_queues(
        queues.client, attributes={"FifoQueue": "true", "ContentBasedDeduplication": "true"}
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
    polling = Polling(batch=1, wait=1)
    async with running(bridge_of(queues, accept, polling=polling)):
        await eventually(queues.is_empty)
    assert taken == ["0", "1", "2", "3"]
    assert [letter["Body"] for letter in await queues.dead()] == ["bad 1", "bad 2"]
