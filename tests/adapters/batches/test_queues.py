"""What `AwsQueues` promises, in memory and on everything that speaks as SQS does."""

import json
from collections import Counter
from collections.abc import AsyncIterator
from datetime import UTC, datetime, timedelta

import pytest
import pytest_asyncio

from adapters.ports.errors import Denied, NotYet
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
from workflows.batches.events import MESSAGE_BYTES
from workflows.batches.loads import CANARY
from workflows.batches.names import LONGEST_RETENTION, QueueDepth, Resource
from workflows.batches.runs import Redriven

pytestmark = pytest.mark.asyncio(loop_scope="module")


@pytest_asyncio.fixture(scope="module", loop_scope="module", params=["memory", *clouds()])
async def setups(
    request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory
) -> AsyncIterator[QueueSetups]:
    async with open_queue_setups(request.param, tmp_path_factory.mktemp(request.param)) as opened:
        yield opened


@pytest_asyncio.fixture(loop_scope="module")
async def setup(setups: QueueSetups) -> QueueSetup:
    return await setups()


async def test_everything_made_twice_exists_once_and_follows_the_plan(
    setup: QueueSetup,
) -> None:
    for _ in range(2):
        names = await setup.build(max_receives=5, retention=7200)
    found = await setup.found_queues()
    assert [one.name for one in found] == [names.queue, names.dead_letters]
    assert await setup.settings(names.queue) == Settings(
        7200, VISIBILITY, names.dead_letters, 5, setup.plan.topic_arn
    )
    dead = await setup.settings(names.dead_letters)
    assert (dead.retention, dead.dead_letters, dead.topic_arn) == (LONGEST_RETENTION, None, None)


async def test_a_queue_with_other_attributes_is_changed_to_the_plan(
    setup: QueueSetup,
) -> None:
    await setup.build(retention=3600, max_receives=9)
    names = await setup.build(retention=7200, max_receives=2)
    assert await setup.settings(names.queue) == Settings(
        7200, VISIBILITY, names.dead_letters, 2, setup.plan.topic_arn
    )


async def test_a_queue_without_an_owner_becomes_ours(setup: QueueSetup) -> None:
    names = await setup.build(retention=3600)
    await setup.untag(names.queue)
    assert [one.owner for one in await setup.found_queues()] == [None, KEY.workflow_id]
    await setup.build(retention=7200)
    assert {one.owner for one in await setup.found_queues()} == {KEY.workflow_id}


async def test_a_queue_of_another_owner_stays_as_it_is(setup: QueueSetup) -> None:
    names, plan = setup.names(), setup.plan.model_copy(update={"retention": 3600})
    await setup.queues.ensure_queue(names, plan, "somebody", VISIBILITY)
    with pytest.raises(Denied, match=f"a queue {names.queue} exists and belongs to somebody"):
        await setup.queues.ensure_queue(names, setup.plan, KEY.workflow_id, VISIBILITY)
    with pytest.raises(Denied, match="somebody"):
        await setup.queues.delete_queue(names.queue, KEY.workflow_id)
    assert (await setup.settings(names.queue)).retention == 3600
    assert [one.owner for one in await setup.found_queues()] == ["somebody"]


@pytest.mark.parametrize("step", ["set_redrive_policy", "allow_topic"])
async def test_what_is_not_there_cannot_be_set(setup: QueueSetup, step: str) -> None:
    with pytest.raises(Denied):
        await getattr(setup.queues, step)(setup.names(), setup.plan)


async def test_found_resources_carry_their_owner_and_age(setup: QueueSetup) -> None:
    before = datetime.now(UTC).replace(microsecond=0) - timedelta(seconds=2)
    names, others = await setup.build(), await setup.build(OTHER)
    await setup.send(names.queue, "{}")
    await setup.holds(names.queue, visible=1)
    found = {one.name: one for one in await setup.found_queues()}
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
    longer = [one async for one in setup.queues.found(f"{setup.plan.prefix}-longer")]
    shorter = [one async for one in setup.queues.found(setup.plan.prefix[:-1])]
    assert longer == shorter == []


async def test_messages_are_counted_in_every_state(setup: QueueSetup) -> None:
    names = await setup.build()
    assert await setup.queues.depth(names.queue) == QueueDepth()
    for number in range(3):
        await setup.send(names.queue, str(number))
    await setup.send(names.queue, "later", delay=300)
    await setup.holds(names.queue, visible=3, delayed=1)
    await setup.receive(names.queue)
    await setup.holds(names.queue, visible=2, delayed=1, in_flight=1)


async def test_a_queue_deleted_twice_is_gone(setup: QueueSetup) -> None:
    names = await setup.build()
    assert [await setup.queues.delete_queue(names.queue, KEY.workflow_id) for _ in range(2)] == [
        True,
        False,
    ]
    assert await setup.queues.depth(names.queue) is None
    assert await setup.queues.depth(names.dead_letters) == QueueDepth()
    assert [one.name for one in await setup.found_queues()] == [names.dead_letters]


async def test_a_message_received_too_often_becomes_a_dead_letter(setup: QueueSetup) -> None:
    names = await setup.build(max_receives=2)
    await setup.send(names.queue, "poison")
    await setup.fail(names.queue, times=2)
    await setup.holds(names.queue)
    assert await setup.arrives(names.dead_letters) == ["poison"]


async def test_nothing_proves_nothing(setup: QueueSetup) -> None:
    names = await setup.build()
    assert not await setup.queues.has_proof(names.queue, "1")


async def test_a_canary_is_proof_and_leaves_no_trace(setup: QueueSetup) -> None:
    names = await setup.build()
    await setup.send(names.queue, json.dumps(document(CANARY, messageId="1")))
    assert await setup.queues.has_proof(names.queue, "1")
    await setup.holds(names.queue)


@pytest.mark.parametrize(
    "body", [json.dumps(document("DOCUMENT_PROCESSED")), "no json", "[]", '"BATCH_CANARY"']
)
async def test_any_message_is_proof_and_stays(setup: QueueSetup, body: str) -> None:
    names = await setup.build()
    await setup.send(names.queue, body)
    assert await setup.queues.has_proof(names.queue, "1")
    assert await setup.arrives(names.queue) == [body]


async def test_there_is_no_proof_in_a_queue_that_is_gone(setup: QueueSetup) -> None:
    with pytest.raises(Denied):
        await setup.queues.has_proof(setup.names().queue, "1")


async def test_dead_letters_are_kept_unchanged(setup: QueueSetup) -> None:
    names = await setup.build()
    body = '{"eventType": "ünknown", "caseId": "\\u0000"}'
    await setup.queues.dead_letter(names, body, "no \x00 such \ud800 event", "load/7/3/a")
    assert await setup.arrives(names.dead_letters) == [body]


async def test_a_dead_letter_without_room_for_its_reason_is_kept(setup: QueueSetup) -> None:
    names = await setup.build()
    body = "x" * MESSAGE_BYTES
    await setup.queues.dead_letter(names, body, "too long to be true", "load/7/3/a")
    assert await setup.arrives(names.dead_letters) == [body]


async def test_a_dead_letter_needs_a_queue(setup: QueueSetup) -> None:
    with pytest.raises(Denied):
        await setup.queues.dead_letter(setup.names(), "{}", "broken", "load/7/3/a")


async def test_dead_letters_are_looked_at_and_stay(setup: QueueSetup) -> None:
    names = setup.names()
    assert list(await setup.queues.dead_letters(names, 10)) == []
    await setup.build()
    bodies = [json.dumps(document("DOCUMENT_PROCESSED", documentId=str(n))) for n in range(12)]
    for body in bodies:
        await setup.queues.dead_letter(names, body, f"broken {body}", body)
    await setup.send(names.dead_letters, "unsettled")
    for most in (20, 5):
        found = {one.body: one.reason for one in await setup.queues.dead_letters(names, most)}
        assert len(found) == min(most, 13)
        everything = {**{body: f"broken {body}" for body in bodies}, "unsettled": None}
        assert found.items() <= everything.items()
    await setup.holds(names.dead_letters, visible=13)


async def test_dead_letters_are_moved_back_once_each(setup: QueueSetup) -> None:
    names = await setup.build()
    bodies = [json.dumps(document("DOCUMENT_PROCESSED", documentId=str(n))) for n in range(12)]
    for body in bodies:
        await setup.queues.dead_letter(names, body, "broken", body)
    for _ in range(2):
        await setup.queues.dead_letter(names, bodies[0], "broken again", bodies[0])
    redriven = await setup.queues.redrive(names)
    arrived = Counter(await setup.arrives(names.queue, count=12))
    if setup.name == "aws":
        # A move task of SQS moves copies as well; who reads them loads a document once.
        assert set(arrived) == set(bodies)
    else:
        assert redriven == Redriven(moved=12, duplicates=2)
        assert arrived == Counter(bodies)
    await setup.holds(names.dead_letters)


async def test_a_second_pass_has_nothing_to_move(setup: QueueSetup) -> None:
    names = await setup.build()
    await setup.queues.dead_letter(names, "{}", "broken", "load/7/3/a")
    await setup.queues.redrive(names)
    assert await setup.arrives(names.queue) == ["{}"]
    await setup.holds(names.dead_letters)
    assert await setup.queues.redrive(names) == Redriven(moved=0)
    await setup.holds(names.queue)


async def test_there_are_no_dead_letters_where_there_is_no_queue_for_them(
    setup: QueueSetup,
) -> None:
    names = await setup.build()
    await setup.queues.delete_queue(names.dead_letters, KEY.workflow_id)
    assert await setup.queues.redrive(names) == Redriven(moved=0)


async def test_dead_letters_stay_when_there_is_nowhere_to_move_them(setup: QueueSetup) -> None:
    names = await setup.build()
    await setup.queues.dead_letter(names, "{}", "broken", "load/7/3/a")
    await setup.queues.delete_queue(names.queue, KEY.workflow_id)
    with pytest.raises(Denied):
        await setup.queues.redrive(names)
    assert await setup.arrives(names.dead_letters) == ["{}"]


async def test_the_name_of_a_deleted_queue_is_free_after_a_minute(setup: QueueSetup) -> None:
    # The emulators give it free at once; what AWS says to that is put into its mouth elsewhere.
    if isinstance(setup, MemoryQueueSetup):
        now = [datetime(2026, 1, 1, tzinfo=UTC)]
        setup.cloud.name_rest = timedelta(seconds=60)
        setup.cloud.clock = lambda: now[0]
    names = await setup.build()
    await setup.queues.delete_queue(names.queue, KEY.workflow_id)
    if setup.name in ("ministack", "moto"):
        await setup.build()
        return
    with pytest.raises(NotYet) as reported:
        await setup.build()
    assert 59 < reported.value.retry_after < 62
    if isinstance(setup, MemoryQueueSetup):
        now[0] += timedelta(seconds=reported.value.retry_after)
        await setup.build()


async def test_a_dead_letter_and_its_copy_carry_the_reason(
    setup: QueueSetup,
) -> None:
    names = await setup.build()
    await setup.queues.dead_letter(names, "{}", "a\x01b", "load/7/3/a")
    if isinstance(setup, MemoryQueueSetup):
        (letter,) = setup.cloud.dead_lettered
        assert (letter.reason, letter.deduplication) == ("a\x01b", "load/7/3/a")
        return
    assert isinstance(setup, AwsQueueSetup)
    await setup.queues.redrive(names)
    got = await setup.clients.sqs.receive_message(
        QueueUrl=await setup.url(names.queue),
        WaitTimeSeconds=20,
        MessageAttributeNames=["All"],
    )
    attributes = got["Messages"][0].get("MessageAttributes", {})
    assert {name: value.get("StringValue") for name, value in attributes.items()} == {
        "Reason": "a?b",
        "Key": "load/7/3/a",
    }


async def test_messages_are_sent_however_many_and_large_they_are(setup: QueueSetup) -> None:
    names = await setup.build()
    large = "x" * (MESSAGE_BYTES // 2 + 1)
    bodies = [*(f'{{"n": {number}}}' for number in range(25)), f'"{large}"', f'"{large}"']
    await setup.queues.send(names, bodies)
    assert sorted(await setup.drain(names.queue)) == sorted(bodies)
    with pytest.raises(Denied):
        await setup.queues.send(names._replace(queue="test_doc_loader_9_9"), ["{}"])
