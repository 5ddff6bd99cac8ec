"""What `BatchTopic` promises, in memory and on everything that speaks as SNS does."""

import json
from collections import Counter
from collections.abc import AsyncIterator

import pytest
import pytest_asyncio

from adapters.ports import Denied
from contracts.batches import CANARY, DOCUMENT_EVENT_TYPES, Announcement, Publication
from tests.support.aws import clouds
from tests.support.batches.queues import (
    KEY,
    OTHER,
    AwsQueueSetup,
    MemoryQueueSetup,
    QueueSetup,
    QueueSetups,
    document,
    open_queue_setups,
)

pytestmark = pytest.mark.asyncio(loop_scope="module")

STARTED = Publication(
    event_type=Announcement.LOADER_STARTED, case_id=7, batch_id=3, message_id="batch/7/3/started"
)


@pytest_asyncio.fixture(scope="module", loop_scope="module", params=["memory", *clouds()])
async def benches(
    request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory
) -> AsyncIterator[QueueSetups]:
    async with open_queue_setups(request.param, tmp_path_factory.mktemp(request.param)) as opened:
        yield opened


@pytest_asyncio.fixture(loop_scope="module")
async def bench(benches: QueueSetups) -> QueueSetup:
    return await benches()


async def test_a_queue_gets_the_events_of_its_batch_as_they_were_sent(bench: QueueSetup) -> None:
    names, others = await bench.subscribe(), await bench.subscribe(OTHER)
    sent = [await bench.publish(event, documentId="a") for event in DOCUMENT_EVENT_TYPES]
    other = await bench.publish(DOCUMENT_EVENT_TYPES[0], OTHER, documentId="b")
    assert Counter(await bench.arrives(names.queue, count=3)) == Counter(sent)
    assert await bench.arrives(others.queue) == [other]
    await bench.holds(names.queue)


async def test_announcements_are_not_for_batches(bench: QueueSetup) -> None:
    names = await bench.subscribe()
    await bench.topic.publish(bench.plan, STARTED)
    await bench.topic.send_canary(bench.plan, KEY, "1")
    (body,) = await bench.arrives(names.queue)
    assert json.loads(body)["eventType"] == CANARY
    await bench.holds(names.queue)


async def test_a_canary_reaches_its_batch_alone(bench: QueueSetup) -> None:
    names, others = await bench.subscribe(), await bench.subscribe(OTHER)
    await bench.topic.send_canary(bench.plan, KEY, "batch/7/3/1")
    (body,) = await bench.arrives(names.queue)
    assert json.loads(body) == document(CANARY, messageId="batch/7/3/1")
    await bench.holds(others.queue)


async def test_subscribing_twice_is_once(bench: QueueSetup) -> None:
    for _ in range(2):
        names = await bench.subscribe()
    assert await bench.subscriptions() == [KEY]
    sent = await bench.publish("DOCUMENT_PROCESSED")
    assert await bench.arrives(names.queue) == [sent]
    await bench.holds(names.queue)


async def test_a_subscription_to_something_else_is_repaired(bench: QueueSetup) -> None:
    names = await bench.build()
    await bench.topic.subscribe(names, bench.plan, OTHER)
    await bench.topic.subscribe(names, bench.plan, KEY)
    assert len(await bench.subscriptions()) == 1
    await bench.publish("DOCUMENT_PROCESSED", OTHER)
    sent = await bench.publish("DOCUMENT_PROCESSED")
    assert await bench.arrives(names.queue) == [sent]
    await bench.holds(names.queue)


async def test_events_are_filtered_by_their_bodies_where_the_plan_requires_it(
    bench: QueueSetup,
) -> None:
    if bench.name != "moto":
        # There a filter policy keeps the scope with which it was set first.
        await bench.subscribe()
    names = await bench.subscribe(filter_scope="MessageBody")
    assert await bench.subscriptions() == [KEY]
    others = await bench.subscribe(OTHER)
    sent = await bench.publish("BATCH_ATTACHMENTS")
    if isinstance(bench, AwsQueueSetup):
        # Without attributes it reaches nobody who looks at them.
        await bench.clients.sns.publish(TopicArn=bench.plan.topic_arn, Message=sent)
        assert await bench.arrives(names.queue, count=2) == [sent, sent]
    else:
        assert await bench.arrives(names.queue) == [sent]
    await bench.topic.send_canary(bench.plan, KEY, "1")
    assert len(await bench.arrives(names.queue)) == 1
    await bench.holds(others.queue)


async def test_unsubscribing_twice_is_once(bench: QueueSetup) -> None:
    names, others = await bench.subscribe(), await bench.subscribe(OTHER)
    assert [await bench.topic.unsubscribe(names, bench.plan) for _ in range(2)] == [True, False]
    assert await bench.subscriptions() == [OTHER]
    await bench.publish("DOCUMENT_PROCESSED")
    sent = await bench.publish("DOCUMENT_PROCESSED", OTHER)
    assert await bench.arrives(others.queue) == [sent]
    await bench.holds(names.queue)


async def test_the_subscription_of_a_missing_queue_is_deleted_too(bench: QueueSetup) -> None:
    names = await bench.subscribe()
    await bench.subscribe(OTHER)
    await bench.queues.delete_queue(names.queue, KEY.workflow_id)
    assert await bench.topic.unsubscribe(names, bench.plan)
    assert await bench.subscriptions() == [OTHER]


async def test_a_queue_that_is_not_there_cannot_subscribe(bench: QueueSetup) -> None:
    with pytest.raises(Denied):
        await bench.topic.subscribe(bench.names(), bench.plan, KEY)
    assert await bench.subscriptions() == []


async def test_only_its_own_subscriptions_belong_to_an_installation(bench: QueueSetup) -> None:
    await bench.subscribe()
    for prefix in (f"{bench.plan.prefix}-longer", bench.plan.prefix[:-1]):
        found = bench.topic.found(prefix, bench.plan.topic_arn)
        assert [one async for one in found] == []


async def test_announcements_are_published(bench: QueueSetup) -> None:
    expected = {
        "eventType": "LOADER_STARTED",
        "caseId": 7,
        "batchId": 3,
        "status": "SUCCESS",
        "messageId": "batch/7/3/started",
    }
    if isinstance(bench, MemoryQueueSetup):
        await bench.topic.publish(bench.plan, STARTED)
        assert [said.model_dump(by_alias=True) for said in bench.cloud.published] == [expected]
        return
    assert isinstance(bench, AwsQueueSetup)
    # A queue that is subscribed to everything, as that of another system.
    names = await bench.build()
    queue = await bench.clients.sqs.get_queue_attributes(
        QueueUrl=await bench.url(names.queue), AttributeNames=["QueueArn"]
    )
    await bench.clients.sns.subscribe(
        TopicArn=bench.plan.topic_arn,
        Protocol="sqs",
        Endpoint=queue["Attributes"]["QueueArn"],
        Attributes={"RawMessageDelivery": "true"},
    )
    await bench.topic.publish(bench.plan, STARTED)
    got = await bench.clients.sqs.receive_message(
        QueueUrl=await bench.url(names.queue), WaitTimeSeconds=20, MessageAttributeNames=["All"]
    )
    (message,) = got["Messages"]
    assert json.loads(message.get("Body", "")) == expected
    attributes = message.get("MessageAttributes", {})
    assert {
        name: (value.get("DataType"), value.get("StringValue"))
        for name, value in attributes.items()
    } == {
        "eventType": ("String", "LOADER_STARTED"),
        "caseId": ("Number", "7"),
        "batchId": ("Number", "3"),
    }
