"""What tests may ask of the cloud in memory beyond its ports."""

import json
from datetime import UTC, datetime, timedelta

import pytest

from adapters.ports.batches import SourceFunction
from adapters.ports.errors import Denied, NotYet, Throttled, Unavailable
from tests.support.batches.scripted import KEY, PLAN
from tests.support.memory.cloud import MemoryCloud
from workflows.batches.names import BatchKey, QueueDepth, names_of

NAMES = names_of(PLAN.prefix, KEY)
OWNER = KEY.workflow_id
LETTER = json.dumps({"eventType": "DOCUMENT_PROCESSED"})


async def built(cloud: MemoryCloud) -> MemoryCloud:
    """A batch that is ready, with whatever patience that takes."""
    await cloud.queues.ensure_dead_letters(NAMES, PLAN, OWNER)
    await cloud.queues.ensure_queue(NAMES, PLAN, OWNER, 30)
    await cloud.queues.set_redrive_policy(NAMES, PLAN)
    await cloud.queues.allow_topic(NAMES, PLAN)
    await cloud.topic.subscribe(NAMES, PLAN, KEY)
    await cloud.functions.clone(NAMES, PLAN, KEY, OWNER)
    await cloud.functions.attach(NAMES, PLAN)
    return cloud


async def test_a_call_fails_as_often_as_planned_before_or_after_its_work() -> None:
    cloud = MemoryCloud()
    cloud.fail("ensure_queue", Unavailable("away"))
    cloud.fail("ensure_queue", Unavailable("the answer was lost"), after=True)
    seen: list[int] = []
    for _ in range(2):
        with pytest.raises(Unavailable):
            await cloud.queues.ensure_queue(NAMES, PLAN, OWNER, 30)
        seen.append(len(cloud.queues_by_name))
    await cloud.queues.ensure_queue(NAMES, PLAN, OWNER, 30)
    assert seen == [0, 1]
    assert cloud.calls["ensure_queue"] == 3
    assert cloud.history == ["ensure_queue"] * 3


async def test_a_new_subscription_misses_what_was_published_before_it_works() -> None:
    cloud = await built(MemoryCloud(lost_deliveries=2))
    assert [cloud.topic.deliver(KEY, LETTER) for _ in range(3)] == [0, 0, 1]
    await cloud.topic.subscribe(NAMES, PLAN, KEY)
    assert cloud.topic.deliver(KEY, LETTER) == 1
    assert cloud.queue(NAMES.queue).messages == [LETTER, LETTER]


async def test_what_is_made_takes_its_time() -> None:
    cloud = MemoryCloud(pending_looks=2)
    await cloud.queues.ensure_queue(NAMES, PLAN, OWNER, 30)
    for call in (
        lambda: cloud.functions.clone(NAMES, PLAN, KEY, OWNER),
        lambda: cloud.functions.attach(NAMES, PLAN),
    ):
        for _ in range(2):
            with pytest.raises(NotYet):
                await call()
        await call()
    assert len(cloud.functions_by_name) == 1


async def test_functions_take_messages_and_what_fails_too_often_is_a_dead_letter() -> None:
    cloud = await built(MemoryCloud())
    tried: list[str] = []

    async def handler(queue: str, body: str) -> bool:
        assert cloud.queue(queue).in_flight == [body]
        tried.append(body)
        return body != "poison"

    cloud.handler = handler
    for body in ("1", "poison", "2"):
        cloud.topic.deliver(KEY, body)
    assert await cloud.queues.depth(NAMES.queue) == QueueDepth()
    assert tried == ["1", *["poison"] * PLAN.max_receives, "2"]
    assert cloud.queue(NAMES.dead_letters).messages == ["poison"]


async def test_a_function_that_is_not_mapped_takes_nothing() -> None:
    cloud = await built(MemoryCloud())

    async def handler(queue: str, body: str) -> bool:
        raise AssertionError("nothing feeds it")

    cloud.handler = handler
    await cloud.functions.detach(NAMES)
    cloud.topic.deliver(KEY, LETTER)
    assert await cloud.queues.depth(NAMES.queue) == QueueDepth(visible=1)


async def test_messages_move_from_state_to_state() -> None:
    cloud = await built(MemoryCloud())
    queue = cloud.queue(NAMES.queue)
    queue.messages += ["1", "2"]
    queue.delayed.append("3")
    assert [queue.take(), queue.take()] == ["1", "2"]
    assert queue.depth == QueueDepth(delayed=1, in_flight=2)
    queue.settle("1")
    queue.put_back("2")
    assert queue.depth == QueueDepth(visible=1, delayed=1)


async def test_quotas_are_kept_where_there_are_any() -> None:
    cloud = await built(MemoryCloud(filter_policies=1, reservable=PLAN.concurrency))
    other = BatchKey(case_id=KEY.case_id, batch_id=KEY.batch_id + 1)
    names = names_of(PLAN.prefix, other)
    await cloud.queues.ensure_queue(names, PLAN, other.workflow_id, 30)
    await cloud.functions.clone(names, PLAN, other, other.workflow_id)
    for _ in range(2):
        await cloud.functions.reserve(NAMES, PLAN)
    with pytest.raises(Denied, match="more than may be reserved"):
        await cloud.functions.reserve(names, PLAN)
    with pytest.raises(Denied, match="no room for another filter policy"):
        await cloud.topic.subscribe(names, PLAN, other)
    await cloud.topic.subscribe(NAMES, PLAN, KEY)


async def test_calls_beyond_the_rate_of_the_account_are_throttled() -> None:
    moment = datetime(2026, 1, 1, tzinfo=UTC)
    cloud = MemoryCloud(clock=lambda: moment, rates={"exists": 2})
    for _ in range(2):
        await cloud.functions.exists("f")
    with pytest.raises(Throttled, match="exists: more than 2 calls a second"):
        await cloud.functions.exists("f")
    assert (cloud.calls["exists"], cloud.throttled["exists"]) == (2, 1)
    moment += timedelta(seconds=0.5)
    await cloud.functions.exists("f")


async def test_without_a_source_there_is_nothing_to_clone() -> None:
    cloud = MemoryCloud(source=None)
    with pytest.raises(Denied):
        await cloud.functions.source(PLAN)
    with pytest.raises(Denied):
        await cloud.functions.clone(NAMES, PLAN, KEY, OWNER)
    cloud.source = SourceFunction(timeout=900, role="other")
    assert (await cloud.functions.source(PLAN)).timeout == 900
