"""The consumer when a queue fails: settlements are tried again, and nothing is settled twice."""

import asyncio
import random
import time
from collections import Counter
from collections.abc import Callable
from typing import Any

import pytest

from tests.support.bridges import running
from tests.support.memory_queue import MemoryQueue, MemoryTransport
from tests.support.waiting import eventually
from workers.shared.bridges.consumer import (
    Accept,
    BridgeError,
    BridgeTotals,
    Consumer,
    Limits,
    Retry,
)
from workers.shared.bridges.transport import LeaseLost, NotDeadLettered, TransportError
from workers.shared.health import Health
from workers.shared.logs import about
from workers.shared.services.bodies import Abandon, DeadLetter, Settle, Verdict

AT_ONCE = Retry(first_pause=0.01, longest_pause=0.01, hold=0)
LIMITS = Limits(wait=0.2, quiet=0.5)


async def settle(raw: bytes, _earlier: int, _message_id: str | None) -> Verdict:
    return Settle(raw.decode())


async def reject(raw: bytes, _earlier: int, _message_id: str | None) -> Verdict:
    return DeadLetter("InvalidMessage", raw.decode())


def failing(call: str, times: int, error: type[Exception]) -> Callable[[str], None]:
    """What fails a kind of call so many times."""
    left = times

    def fail(made: str) -> None:
        nonlocal left
        if made == call and left:
            left -= 1
            raise error("planted")

    return fail


async def drained(transport: MemoryTransport, accept: Accept) -> BridgeTotals:
    consumer = Consumer(transport, accept, LIMITS, retry=AT_ONCE)
    return await consumer.run(asyncio.Event(), drain=True)


async def test_a_settlement_that_fails_is_tried_again_under_the_same_delivery() -> None:
    queue = MemoryQueue()
    queue.send("1")
    transport = MemoryTransport(queue, failing("complete", 3, TransportError))
    assert await drained(transport, settle) == BridgeTotals(received=1, settled=1)
    assert transport.calls["complete"] == 4
    assert queue.left == 0


async def test_a_dead_letter_that_fails_is_written_once_in_the_end() -> None:
    queue = MemoryQueue()
    queue.send("1")
    transport = MemoryTransport(queue, failing("dead_letter", 2, TransportError))
    assert await drained(transport, reject) == BridgeTotals(received=1, dead_lettered=1)
    assert queue.dead == [(b"1", "InvalidMessage", "1")]


async def test_a_message_that_cannot_be_dead_lettered_is_given_back() -> None:
    queue = MemoryQueue(second=0.01)
    queue.send("1")
    transport = MemoryTransport(queue, failing("dead_letter", 1, NotDeadLettered))
    expected = BridgeTotals(received=2, dead_lettered=1, abandoned=1)
    assert await drained(transport, reject) == expected


async def test_a_lost_lease_is_not_settled_again() -> None:
    queue = MemoryQueue(lease=0.3)
    queue.send("1")
    transport = MemoryTransport(queue, failing("complete", 1, LeaseLost))
    assert await drained(transport, settle) == BridgeTotals(received=2, settled=1)
    assert transport.calls["complete"] == 2


async def test_calls_about_one_message_never_overlap() -> None:
    queue, fails = MemoryQueue(lease=3), failing("complete", 30, TransportError)
    queue.send(*"abcdef")
    transport = MemoryTransport(queue, fails, pause=0.15)
    assert (await drained(transport, settle)).settled == 6
    assert transport.calls["extend"]
    assert transport.overlaps == []


async def test_what_is_behind_a_message_that_is_given_back_comes_again_after_it() -> None:
    async def accept(raw: bytes, earlier: int, _message_id: str | None) -> Verdict:
        return Settle("x") if earlier else Abandon("not now")

    queue = MemoryQueue(second=0.01)
    queue.send("a", "b", "c")
    transport = MemoryTransport(queue)
    consumer = Consumer(transport, accept, LIMITS, ordering_key=lambda _raw: "one", retry=AT_ONCE)
    async with running(consumer):

        async def is_empty() -> bool:
            return queue.left == 0

        await eventually(is_empty)
    assert transport.delays == [("m1", 0), ("m2", 1), ("m3", 2)]


async def test_an_extension_that_fails_is_tried_again() -> None:
    async def accept(raw: bytes, _earlier: int, _message_id: str | None) -> Verdict:
        await asyncio.sleep(3)
        return Settle("x")

    queue = MemoryQueue(lease=2)
    queue.send("1")
    transport = MemoryTransport(queue, failing("extend", 1, TransportError))
    consumer = Consumer(transport, accept, LIMITS)
    assert await consumer.run(asyncio.Event(), drain=True) == BridgeTotals(received=1, settled=1)
    assert transport.calls["extend"] >= 2


async def test_a_task_that_is_cancelled_before_it_begins_leaves_nothing_unawaited() -> None:
    loop, begun = asyncio.get_running_loop(), 0

    def cancelling(loop: asyncio.AbstractEventLoop, work: Any, **more: Any) -> asyncio.Task[Any]:
        nonlocal begun
        task = asyncio.Task(work, loop=loop, **more)
        # What closes a generator at the end of the loop has no name in newer Pythons.
        if getattr(work, "__qualname__", None) == about.__qualname__:
            begun += 1
            task.cancel()
        return task

    queue, stop = MemoryQueue(lease=0.1), asyncio.Event()
    queue.send("1")
    loop.set_task_factory(cancelling)
    run = asyncio.create_task(Consumer(MemoryTransport(queue), settle, LIMITS).run(stop))

    async def messages_were_taken() -> bool:
        return begun > 1

    # A coroutine that was made and never awaited would be a warning, and warnings are errors.
    await eventually(messages_were_taken)
    stop.set()
    assert (await run).settled == 0


async def test_a_queue_that_is_missing_later_is_waited_for() -> None:
    queue, health = MemoryQueue(), Health()
    transport = MemoryTransport(queue)
    consumer = Consumer(transport, settle, LIMITS, retry=AT_ONCE, health=health)

    async def is_received_from() -> bool:
        return health.ready

    async def is_not() -> bool:
        return not health.ready

    async with running(consumer) as stopped:
        await eventually(is_received_from)
        queue.is_there = False
        await eventually(is_not)
        queue.is_there = True
        queue.send("1")
        await eventually(is_received_from)
        assert (await stopped()).settled == 1
    assert transport.calls["close"] == 1
    assert not health.ready


async def test_a_queue_that_is_missing_from_the_beginning_ends_the_run_closed() -> None:
    transport = MemoryTransport(MemoryQueue(is_there=False))
    with pytest.raises(BridgeError, match="'memory'; check its name"):
        await Consumer(transport, settle, LIMITS).run(asyncio.Event())
    assert transport.calls["close"] == 1


async def test_an_unreachable_queue_is_not_an_empty_one() -> None:
    queue = MemoryQueue()
    queue.send("1")
    outage = Retry(first_pause=0.2, longest_pause=0.2, hold=0)
    transport = MemoryTransport(queue, failing("receive", 8, TransportError))
    consumer = Consumer(transport, settle, LIMITS, retry=outage)
    assert (await consumer.run(asyncio.Event(), drain=True)).settled == 1


async def test_a_stop_does_not_wait_for_a_settlement_that_hangs() -> None:
    queue, stop = MemoryQueue(lease=60), asyncio.Event()
    queue.send("1")
    transport = MemoryTransport(queue, pause=60)
    run = asyncio.create_task(Consumer(transport, settle, LIMITS).run(stop))

    async def is_received() -> bool:
        return transport.calls["receive"] >= 2

    await eventually(is_received)
    began = time.monotonic()
    stop.set()
    assert await run == BridgeTotals(received=1)
    assert time.monotonic() - began < 10
    assert transport.calls["close"] == 1


@pytest.mark.parametrize("seed", range(5))
async def test_any_mix_of_faults_settles_each_message_once_and_keeps_every_order(
    seed: int,
) -> None:
    dice = random.Random(seed)
    queue = MemoryQueue(lease=30, second=0.01)
    sent = [f"{key}{number}" for number in range(12) for key in "abcd"]
    queue.send(*sent)
    settled: dict[str, list[str]] = {key: [] for key in "abcd"}

    def fails(call: str) -> None:
        if dice.random() < 0.1 and call not in ("close", "abandon"):
            raise TransportError("planted")

    async def accept(raw: bytes, earlier: int, _message_id: str | None) -> Verdict:
        await asyncio.sleep(dice.random() * 0.01)
        if not earlier and dice.random() < 0.15:
            return Abandon("not now")
        text = raw.decode()
        settled[text[0]].append(text)
        return DeadLetter("InvalidMessage", text) if dice.random() < 0.2 else Settle(text)

    transport = MemoryTransport(queue, fails)
    consumer = Consumer(
        transport,
        accept,
        Limits(concurrency=100, in_flight=100, wait=0.2, quiet=0.5),
        ordering_key=lambda raw: raw[:1],
        retry=AT_ONCE,
        hold_while_unavailable=3600,
    )
    totals = await consumer.run(asyncio.Event(), drain=True)
    assert settled == {key: [text for text in sent if text[0] == key] for key in "abcd"}
    assert totals.settled + totals.dead_lettered == len(sent)
    assert max(Counter(body for body, *_ in queue.dead).values(), default=1) == 1
    assert transport.overlaps == []


async def test_no_message_is_given_up_for_a_service_that_does_not_let_us_in() -> None:
    queue = MemoryQueue(second=0.01)
    queue.send("1")

    async def at_last(_raw: bytes, earlier: int, _message_id: str | None) -> Verdict:
        return Abandon("PERMISSION_DENIED") if earlier < 6 else Settle("1")

    async def give_up(_raw: bytes, _earlier: int, _id: str | None, reason: str) -> Verdict:
        return DeadLetter("NotAccepted", reason)

    transport = MemoryTransport(queue)
    consumer = Consumer(
        transport, at_last, LIMITS, retry=AT_ONCE, hold_while_unavailable=3600, give_up=give_up
    )
    totals = await consumer.run(asyncio.Event(), drain=True)
    assert totals == BridgeTotals(received=7, abandoned=6, settled=1)


@pytest.mark.parametrize("available", [True, False])
async def test_a_message_is_given_up_only_where_everything_else_is_available(
    available: bool,
) -> None:
    queue, asked = MemoryQueue(second=0.01), list[int]()
    queue.send("1")
    outages = iter([] if available else [False, True, False])

    async def never(_raw: bytes, _earlier: int, _message_id: str | None) -> Verdict:
        return Abandon("not this one", passes=False)

    async def ready() -> bool:
        return next(outages, True)

    async def give_up(_raw: bytes, earlier: int, _id: str | None, reason: str) -> Verdict:
        asked.append(next(outages, -1))
        return Abandon(reason) if earlier < 4 else DeadLetter("NotAccepted", reason)

    consumer = Consumer(
        MemoryTransport(queue),
        never,
        LIMITS,
        ready=ready,
        retry=AT_ONCE,
        hold_while_unavailable=3600,
        give_up=give_up,
    )
    stop = asyncio.Event()
    run = asyncio.create_task(consumer.run(stop))

    async def is_set_aside() -> bool:
        return queue.dead == [(b"1", "NotAccepted", "not this one")]

    await eventually(is_set_aside)
    stop.set()
    assert await run == BridgeTotals(received=5, abandoned=4, dead_lettered=1)
    # It was never asked while something was missing: all outages were over by then.
    assert asked == [-1] * 5
