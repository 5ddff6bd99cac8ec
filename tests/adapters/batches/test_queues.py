"""What `BatchQueues` promises, in memory and on everything that speaks as SQS does."""

import json
from collections import Counter
from collections.abc import AsyncIterator
from datetime import UTC, datetime, timedelta

import pytest
import pytest_asyncio

from adapters.ports import Denied, NotYet
from contracts.batches import (
    CANARY,
    LONGEST_RETENTION,
    MESSAGE_BYTES,
    QueueDepth,
    Redriven,
    Resource,
)
from tests.support.aws import clouds
from tests.support.batches.queues import (
    KEY,
    OTHER,
    VISIBILITY,
    AwsQueueSetup,
    MemoryQueueSetup,
    QueueSetup,
    QueueSetups,
    Settings,
    document,
    open_queue_setups,
)

pytestmark = pytest.mark.asyncio(loop_scope="module")


@pytest_asyncio.fixture(scope="module", loop_scope="module", params=["memory", *clouds()])
async def benches(
    request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory
) -> AsyncIterator[QueueSetups]:
    async with open_queue_setups(request.param, tmp_path_factory.mktemp(request.param)) as opened:
        yield opened


@pytest_asyncio.fixture(loop_scope="module")
async def bench(benches: QueueSetups) -> QueueSetup:
    return await benches()


async def test_everything_made_twice_exists_once_and_follows_the_plan(
    bench: QueueSetup,
) -> None:
    for _ in range(2):
        names = await bench.build(max_receives=5, retention=7200)
    found = await bench.found_queues()
    assert [one.name for one in found] == [names.queue, names.dead_letters]
    assert await bench.settings(names.queue) == Settings(
        7200, VISIBILITY, names.dead_letters, 5, bench.plan.topic_arn
    )
    dead = await bench.settings(names.dead_letters)
    assert (dead.retention, dead.dead_letters, dead.topic_arn) == (LONGEST_RETENTION, None, None)


async def test_a_queue_with_other_attributes_is_changed_to_the_plan(
    bench: QueueSetup,
) -> None:
    await bench.build(retention=3600, max_receives=9)
    names = await bench.build(retention=7200, max_receives=2)
    assert await bench.settings(names.queue) == Settings(
        7200, VISIBILITY, names.dead_letters, 2, bench.plan.topic_arn
    )


async def test_a_queue_without_an_owner_becomes_ours(bench: QueueSetup) -> None:
    names = await bench.build(retention=3600)
    await bench.untag(names.queue)
    assert [one.owner for one in await bench.found_queues()] == [None, KEY.workflow_id]
    await bench.build(retention=7200)
    assert {one.owner for one in await bench.found_queues()} == {KEY.workflow_id}


async def test_a_queue_of_another_owner_stays_as_it_is(bench: QueueSetup) -> None:
    names, plan = bench.names(), bench.plan.model_copy(update={"retention": 3600})
    await bench.queues.ensure_queue(names, plan, "somebody", VISIBILITY)
    with pytest.raises(Denied, match=f"a queue {names.queue} exists and belongs to somebody"):
        await bench.queues.ensure_queue(names, bench.plan, KEY.workflow_id, VISIBILITY)
    with pytest.raises(Denied, match="somebody"):
        await bench.queues.delete_queue(names.queue, KEY.workflow_id)
    assert (await bench.settings(names.queue)).retention == 3600
    assert [one.owner for one in await bench.found_queues()] == ["somebody"]


@pytest.mark.parametrize("step", ["set_redrive_policy", "allow_topic"])
async def test_what_is_not_there_cannot_be_set(bench: QueueSetup, step: str) -> None:
    with pytest.raises(Denied):
        await getattr(bench.queues, step)(bench.names(), bench.plan)


async def test_found_resources_carry_their_owner_and_age(bench: QueueSetup) -> None:
    before = datetime.now(UTC).replace(microsecond=0) - timedelta(seconds=2)
    names, others = await bench.build(), await bench.build(OTHER)
    await bench.send(names.queue, "{}")
    await bench.holds(names.queue, visible=1)
    found = {one.name: one for one in await bench.found_queues()}
    assert {(one.key, one.resource) for one in found.values()} == {
        (KEY, Resource.QUEUE),
        (KEY, Resource.DEAD_LETTERS),
        (OTHER, Resource.QUEUE),
        (OTHER, Resource.DEAD_LETTERS),
    }
    assert found[names.queue].owner == KEY.workflow_id
    assert found[others.queue].owner == OTHER.workflow_id
    assert found[names.queue].details["messages"] == "1"
    assert found[names.dead_letters].details["messages"] == "0"
    made = [one.made_at for one in found.values()]
    assert all(at and before <= at <= datetime.now(UTC) + timedelta(seconds=2) for at in made)
    longer = [one async for one in bench.queues.found(f"{bench.plan.prefix}-longer")]
    shorter = [one async for one in bench.queues.found(bench.plan.prefix[:-1])]
    assert longer == shorter == []


async def test_messages_are_counted_in_every_state(bench: QueueSetup) -> None:
    names = await bench.build()
    assert await bench.queues.depth(names.queue) == QueueDepth()
    for number in range(3):
        await bench.send(names.queue, str(number))
    await bench.send(names.queue, "later", delay=300)
    await bench.holds(names.queue, visible=3, delayed=1)
    await bench.receive(names.queue)
    await bench.holds(names.queue, visible=2, delayed=1, in_flight=1)


async def test_a_queue_deleted_twice_is_gone(bench: QueueSetup) -> None:
    names = await bench.build()
    assert [await bench.queues.delete_queue(names.queue, KEY.workflow_id) for _ in range(2)] == [
        True,
        False,
    ]
    assert await bench.queues.depth(names.queue) is None
    assert await bench.queues.depth(names.dead_letters) == QueueDepth()
    assert [one.name for one in await bench.found_queues()] == [names.dead_letters]


async def test_a_message_received_too_often_becomes_a_dead_letter(bench: QueueSetup) -> None:
    names = await bench.build(max_receives=2)
    await bench.send(names.queue, "poison")
    await bench.fail(names.queue, times=2)
    await bench.holds(names.queue)
    assert await bench.arrives(names.dead_letters) == ["poison"]


async def test_nothing_proves_nothing(bench: QueueSetup) -> None:
    names = await bench.build()
    assert not await bench.queues.has_proof(names.queue, "1")


async def test_a_canary_is_proof_and_leaves_no_trace(bench: QueueSetup) -> None:
    names = await bench.build()
    await bench.send(names.queue, json.dumps(document(CANARY, messageId="1")))
    assert await bench.queues.has_proof(names.queue, "1")
    await bench.holds(names.queue)


@pytest.mark.parametrize(
    "body", [json.dumps(document("DOCUMENT_PROCESSED")), "no json", "[]", '"BATCH_CANARY"']
)
async def test_any_message_is_proof_and_stays(bench: QueueSetup, body: str) -> None:
    names = await bench.build()
    await bench.send(names.queue, body)
    assert await bench.queues.has_proof(names.queue, "1")
    assert await bench.arrives(names.queue) == [body]


async def test_there_is_no_proof_in_a_queue_that_is_gone(bench: QueueSetup) -> None:
    with pytest.raises(Denied):
        await bench.queues.has_proof(bench.names().queue, "1")


async def test_dead_letters_are_kept_unchanged(bench: QueueSetup) -> None:
    names = await bench.build()
    body = '{"eventType": "ünknown", "caseId": "\\u0000"}'
    await bench.queues.dead_letter(names, body, "no \x00 such \ud800 event", "load/7/3/a")
    assert await bench.arrives(names.dead_letters) == [body]


async def test_a_dead_letter_without_room_for_its_reason_is_kept(bench: QueueSetup) -> None:
    names = await bench.build()
    body = "x" * MESSAGE_BYTES
    await bench.queues.dead_letter(names, body, "too long to be true", "load/7/3/a")
    assert await bench.arrives(names.dead_letters) == [body]


async def test_a_dead_letter_needs_a_queue(bench: QueueSetup) -> None:
    with pytest.raises(Denied):
        await bench.queues.dead_letter(bench.names(), "{}", "broken", "load/7/3/a")


async def test_dead_letters_are_moved_back_once_each(bench: QueueSetup) -> None:
    names = await bench.build()
    bodies = [json.dumps(document("DOCUMENT_PROCESSED", documentId=str(n))) for n in range(12)]
    for body in bodies:
        await bench.queues.dead_letter(names, body, "broken", body)
    for _ in range(2):
        await bench.queues.dead_letter(names, bodies[0], "broken again", bodies[0])
    redriven = await bench.queues.redrive(names)
    arrived = Counter(await bench.arrives(names.queue, count=12))
    if bench.name == "aws":
        # A move task of SQS moves copies as well; who reads them loads a document once.
        assert set(arrived) == set(bodies)
    else:
        assert redriven == Redriven(moved=12, duplicates=2)
        assert arrived == Counter(bodies)
    await bench.holds(names.dead_letters)


async def test_a_second_pass_has_nothing_to_move(bench: QueueSetup) -> None:
    names = await bench.build()
    await bench.queues.dead_letter(names, "{}", "broken", "load/7/3/a")
    await bench.queues.redrive(names)
    assert await bench.arrives(names.queue) == ["{}"]
    await bench.holds(names.dead_letters)
    assert await bench.queues.redrive(names) == Redriven(moved=0)
    await bench.holds(names.queue)


async def test_there_are_no_dead_letters_where_there_is_no_queue_for_them(
    bench: QueueSetup,
) -> None:
    names = await bench.build()
    await bench.queues.delete_queue(names.dead_letters, KEY.workflow_id)
    assert await bench.queues.redrive(names) == Redriven(moved=0)


async def test_dead_letters_stay_when_there_is_nowhere_to_move_them(bench: QueueSetup) -> None:
    names = await bench.build()
    await bench.queues.dead_letter(names, "{}", "broken", "load/7/3/a")
    await bench.queues.delete_queue(names.queue, KEY.workflow_id)
    with pytest.raises(Denied):
        await bench.queues.redrive(names)
    assert await bench.arrives(names.dead_letters) == ["{}"]


async def test_a_name_rests_for_a_minute(bench: QueueSetup) -> None:
    # The emulators give it free at once; what AWS says to that is put into its mouth elsewhere.
    if isinstance(bench, MemoryQueueSetup):
        now = [datetime(2026, 1, 1, tzinfo=UTC)]
        bench.cloud.name_rest = timedelta(seconds=60)
        bench.cloud.clock = lambda: now[0]
    names = await bench.build()
    await bench.queues.delete_queue(names.queue, KEY.workflow_id)
    if bench.name in ("ministack", "moto"):
        await bench.build()
        return
    with pytest.raises(NotYet) as told:
        await bench.build()
    assert 59 < told.value.retry_after < 62
    if isinstance(bench, MemoryQueueSetup):
        now[0] += timedelta(seconds=told.value.retry_after)
        await bench.build()


async def test_a_dead_letter_and_its_copy_carry_the_reason(
    bench: QueueSetup,
) -> None:
    names = await bench.build()
    await bench.queues.dead_letter(names, "{}", "a\x01b", "load/7/3/a")
    if isinstance(bench, MemoryQueueSetup):
        (letter,) = bench.cloud.dead_lettered
        assert (letter.reason, letter.deduplication) == ("a\x01b", "load/7/3/a")
        return
    assert isinstance(bench, AwsQueueSetup)
    await bench.queues.redrive(names)
    got = await bench.clients.sqs.receive_message(
        QueueUrl=await bench.url(names.queue),
        WaitTimeSeconds=20,
        MessageAttributeNames=["All"],
    )
    attributes = got["Messages"][0].get("MessageAttributes", {})
    assert {name: value.get("StringValue") for name, value in attributes.items()} == {
        "Reason": "a?b",
        "Key": "load/7/3/a",
    }
