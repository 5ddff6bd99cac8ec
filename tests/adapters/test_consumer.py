"""The consumer keeps its promises with every transport: nothing is lost, nothing settled early."""

import asyncio
import time
from collections import Counter
from collections.abc import AsyncGenerator, Mapping
from contextlib import AsyncExitStack

import pytest
import pytest_asyncio

from tests.support.bridges import running
from tests.support.consumer_queues import KINDS, LEASE, ConsumedQueue, MakeQueue, queue_maker
from tests.support.side_by_side import side_by_side
from tests.support.waiting import eventually
from workers.shared.bridges.consumer import BridgeError, BridgeTotals, Limits, Retry
from workers.shared.services.bodies import Abandon, DeadLetter, Settle, Verdict

pytestmark = pytest.mark.asyncio(loop_scope="module")

AT_ONCE = Retry(first_pause=0.01, longest_pause=0.01, hold=0)


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def make_queues(
    tmp_path_factory: pytest.TempPathFactory,
) -> AsyncGenerator[Mapping[str, MakeQueue]]:
    async with AsyncExitStack() as stack:
        yield {
            kind: await stack.enter_async_context(queue_maker(kind, tmp_path_factory.mktemp(kind)))
            for kind in KINDS
        }


@pytest_asyncio.fixture(loop_scope="module")
async def queues(make_queues: Mapping[str, MakeQueue]) -> Mapping[str, ConsumedQueue]:
    return {kind: await make() for kind, make in make_queues.items()}


async def settle(raw: bytes, _earlier: int, _message_id: str | None) -> Verdict:
    return Settle(raw.decode())


@side_by_side(queue="queues")
async def test_messages_are_completed_or_dead_lettered_as_decided(queue: ConsumedQueue) -> None:
    seen: list[tuple[bytes, int]] = []

    async def accept(raw: bytes, earlier: int, _message_id: str | None) -> Verdict:
        seen.append((raw, earlier))
        return Settle("x") if int(raw) % 4 else DeadLetter("InvalidMessage", f"number {int(raw)}")

    await queue.send(*map(str, range(24)))
    totals = await queue.consumer(accept).run(asyncio.Event(), drain=True)
    assert totals == BridgeTotals(received=24, settled=18, dead_lettered=6)
    assert sorted(seen) == sorted((b"%d" % number, 0) for number in range(24))
    assert await queue.is_empty()
    expected = [(f"{number}", "InvalidMessage", f"number {number}") for number in range(0, 24, 4)]
    assert sorted(await queue.dead()) == sorted(expected)


@side_by_side(queue="queues")
async def test_nothing_is_settled_before_it_is_accepted(queue: ConsumedQueue) -> None:
    accepted, deciding = asyncio.Event(), 0

    async def accept(raw: bytes, _earlier: int, _message_id: str | None) -> Verdict:
        nonlocal deciding
        deciding += 1
        await accepted.wait()
        return Settle("x")

    await queue.send(*"abcde")
    async with running(queue.consumer(accept)) as stopped:

        async def all_are_in_flight() -> bool:
            return deciding == 5

        await eventually(all_are_in_flight)
        assert await queue.left() == 5
        accepted.set()
        await eventually(queue.is_empty)
        assert await stopped() == BridgeTotals(received=5, settled=5)


@side_by_side(queue="queues")
async def test_messages_in_flight_never_exceed_the_limit(
    queue: ConsumedQueue,
) -> None:
    deciding = most = 0

    async def accept(raw: bytes, _earlier: int, _message_id: str | None) -> Verdict:
        nonlocal deciding, most
        deciding += 1
        most = max(most, deciding)
        await asyncio.sleep(0.05)
        deciding -= 1
        return Settle("x")

    await queue.send(*map(str, range(20)))
    limits = Limits(concurrency=3, in_flight=5, wait=1, quiet=queue.quiet)
    totals = await queue.consumer(accept, limits).run(asyncio.Event(), drain=True)
    assert totals.settled == 20
    assert most <= 3


@side_by_side(queue="queues")
async def test_the_lease_is_extended_as_long_as_a_decision_takes(queue: ConsumedQueue) -> None:
    seen: list[int] = []

    async def accept(raw: bytes, earlier: int, _message_id: str | None) -> Verdict:
        seen.append(earlier)
        await asyncio.sleep(1.5 * LEASE)
        return Settle("x")

    await queue.send("slow")
    totals = await queue.consumer(accept).run(asyncio.Event(), drain=True)
    assert totals == BridgeTotals(received=1, settled=1)
    assert seen == [0]


@side_by_side(queue="queues")
async def test_a_message_given_back_is_redelivered_and_counted(
    queue: ConsumedQueue,
) -> None:
    seen: list[tuple[int, str | None]] = []

    async def accept(raw: bytes, earlier: int, message_id: str | None) -> Verdict:
        seen.append((earlier, message_id))
        return Settle("x") if earlier else Abandon("not now")

    await queue.send("1")
    async with running(queue.consumer(accept, retry=AT_ONCE)) as stopped:
        await eventually(queue.is_empty)
        assert await stopped() == BridgeTotals(received=2, settled=1, abandoned=1)
    assert [earlier for earlier, _ in seen] == [0, 1]
    assert len({message_id for _, message_id in seen}) == 1


@side_by_side(queue="queues")
async def test_messages_of_one_key_keep_their_order_when_one_is_given_back(
    queue: ConsumedQueue,
) -> None:
    refused, order = 0, list[str]()

    async def accept(raw: bytes, _earlier: int, _message_id: str | None) -> Verdict:
        nonlocal refused
        if raw == b"a0" and not refused:
            refused += 1
            return Abandon("not now")
        order.append(raw.decode())
        return Settle("x")

    await queue.send("a0", "b0", "a1", "b1")
    consumer = queue.consumer(accept, retry=AT_ONCE, ordering_key=lambda raw: raw[:1])
    async with running(consumer):
        await eventually(queue.is_empty)
    assert sorted(order) == ["a0", "a1", "b0", "b1"]
    # Service Bus redelivers at once and behind the others, so no ordering key is used with it.
    if queue.keeps_order:
        assert sorted(order, key=lambda text: text[0]) == ["a0", "a1", "b0", "b1"]
        assert order.index("b0") < order.index("a1")


@side_by_side(queue="queues")
async def test_messages_stay_in_flight_while_a_dependency_is_unavailable(
    queue: ConsumedQueue,
) -> None:
    available, asked = False, 0
    seen: Counter[int] = Counter()

    async def accept(raw: bytes, earlier: int, _message_id: str | None) -> Verdict:
        if not available:
            return Abandon("unavailable")
        seen[earlier] += 1
        return Settle("x")

    async def ready() -> bool:
        nonlocal asked
        asked += 1
        return available

    await queue.send(*"abc")
    consumer = queue.consumer(accept, ready=ready, hold_while_unavailable=3600)
    async with running(consumer) as stopped:

        async def waited_for_longer_than_a_lease() -> bool:
            return asked >= 3 * 2 * LEASE

        await eventually(waited_for_longer_than_a_lease, seconds=60)
        assert await queue.left() == 3
        available = True
        await eventually(queue.is_empty)
        assert await stopped() == BridgeTotals(received=3, settled=3)
    assert seen == {0: 3}


@side_by_side(queue="queues")
async def test_nothing_is_received_while_a_dependency_is_unavailable(queue: ConsumedQueue) -> None:
    available, asked = False, 0

    async def accept(raw: bytes, _earlier: int, _message_id: str | None) -> Verdict:
        return Settle("x") if available else Abandon("unavailable")

    async def ready() -> bool:
        nonlocal asked
        asked += 1
        return available

    await queue.send("1")
    limits = Limits(concurrency=10, in_flight=30, refill=10, wait=1)
    async with running(queue.consumer(accept, limits, ready=ready, retry=AT_ONCE)) as stopped:

        async def asked_often() -> bool:
            return asked >= 50

        await eventually(asked_often)
        available = True
        await eventually(queue.is_empty)
        assert await stopped() == BridgeTotals(received=2, settled=1, abandoned=1)


@side_by_side(queue="queues")
async def test_a_stop_leaves_undecided_messages_to_redelivery(queue: ConsumedQueue) -> None:
    stop, deciding = asyncio.Event(), set[bytes]()

    async def accept(raw: bytes, _earlier: int, _message_id: str | None) -> Verdict:
        deciding.add(raw)
        await (asyncio.Event().wait() if raw == b"stuck" else stop.wait())
        return Settle("x")

    await queue.send("stuck", "1", "2")
    run = asyncio.create_task(queue.consumer(accept).run(stop))

    async def all_are_in_flight() -> bool:
        return len(deciding) == 3

    await eventually(all_are_in_flight)
    began = time.monotonic()
    stop.set()
    assert await run == BridgeTotals(received=3, settled=2)
    assert time.monotonic() - began < 10
    left = 3 if queue.is_log else 1
    assert await queue.left() == left
    async with running(queue.consumer(settle)) as stopped:
        await eventually(queue.is_empty)
        assert (await stopped()).settled == left


@side_by_side(queue="queues")
async def test_messages_of_a_killed_consumer_are_redelivered(queue: ConsumedQueue) -> None:
    deciding, seen = set[bytes](), list[tuple[bytes, int]]()

    async def hold(raw: bytes, _earlier: int, _message_id: str | None) -> Verdict:
        deciding.add(raw)
        await asyncio.Event().wait()
        raise AssertionError("nothing sets it")

    async def accept(raw: bytes, earlier: int, _message_id: str | None) -> Verdict:
        seen.append((raw, earlier))
        return Settle("x")

    await queue.send("1", "2")
    killed = asyncio.create_task(queue.consumer(hold).run(asyncio.Event()))

    async def all_are_in_flight() -> bool:
        return len(deciding) == 2

    await eventually(all_are_in_flight)
    killed.cancel()
    await asyncio.gather(killed, return_exceptions=True)
    async with running(queue.consumer(accept)):
        await eventually(queue.is_empty)
    earlier = 0 if queue.is_log else 1
    assert sorted(seen) == [(b"1", earlier), (b"2", earlier)]


@side_by_side(queue="queues")
async def test_a_drain_ends_when_the_queue_stays_empty(queue: ConsumedQueue) -> None:
    began = time.monotonic()
    assert await queue.consumer(settle).run(asyncio.Event(), drain=True) == BridgeTotals()
    assert queue.quiet <= time.monotonic() - began < queue.quiet + 10


@side_by_side(queue="queues")
async def test_a_missing_queue_is_named_with_what_to_check(queue: ConsumedQueue) -> None:
    await queue.remove()
    with pytest.raises(BridgeError, match="check"):
        await queue.consumer(settle).run(asyncio.Event())


@side_by_side(queue="queues")
async def test_a_run_may_end_with_its_queue(queue: ConsumedQueue) -> None:
    await queue.remove()
    run = queue.consumer(settle).run(asyncio.Event(), ends_with_queue=True)
    if queue.names_missing:
        assert await run == BridgeTotals()
        return
    # The client of Service Bus reports a missing queue as a refused token.
    with pytest.raises(BridgeError, match="check"):
        await run
