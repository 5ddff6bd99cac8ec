"""What `AwsTopic` promises, in memory and on everything that speaks as SNS does."""

import json
import re
from collections import Counter
from collections.abc import AsyncIterator
from pathlib import Path

import pytest
import pytest_asyncio

from adapters.ports.errors import Denied
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
from workflows.batches.events import Announcement, Publication
from workflows.batches.loads import CANARY, DOCUMENT_EVENT_TYPES

pytestmark = pytest.mark.asyncio(loop_scope="module")

STARTED = Publication(
    event_type=Announcement.LOADER_STARTED,
    case_id=7,
    batch_id=3,
    message_id="batch/7/3/started",
    passed_on={"requestedBy": {"name": "ann"}, "status": "READY"},
)


@pytest_asyncio.fixture(scope="module", loop_scope="module", params=["memory", *clouds()])
async def setups(
    request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory
) -> AsyncIterator[QueueSetups]:
    async with open_queue_setups(request.param, tmp_path_factory.mktemp(request.param)) as opened:
        yield opened


@pytest_asyncio.fixture(loop_scope="module")
async def setup(setups: QueueSetups) -> QueueSetup:
    return await setups()


async def test_a_queue_gets_the_events_of_its_batch_as_they_were_sent(setup: QueueSetup) -> None:
    names, others = await setup.subscribe(), await setup.subscribe(OTHER)
    sent = [await setup.publish(event, documentId="a") for event in DOCUMENT_EVENT_TYPES]
    other = await setup.publish(DOCUMENT_EVENT_TYPES[0], OTHER, documentId="b")
    assert Counter(await setup.arrives(names.queue, count=3)) == Counter(sent)
    assert await setup.arrives(others.queue) == [other]
    await setup.holds(names.queue)


async def test_announcements_are_not_for_batches(setup: QueueSetup) -> None:
    names = await setup.subscribe()
    await setup.topic.publish(setup.plan, STARTED)
    await setup.topic.send_canary(setup.plan, KEY, "1")
    (body,) = await setup.arrives(names.queue)
    assert json.loads(body)["eventType"] == CANARY
    await setup.holds(names.queue)


async def test_a_canary_reaches_its_batch_alone(setup: QueueSetup) -> None:
    names, others = await setup.subscribe(), await setup.subscribe(OTHER)
    await setup.topic.send_canary(setup.plan, KEY, "batch/7/3/1")
    (body,) = await setup.arrives(names.queue)
    assert json.loads(body) == document(CANARY, messageId="batch/7/3/1")
    await setup.holds(others.queue)


async def test_a_subscriber_to_all_else_leaves_canaries_out(setup: QueueSetup) -> None:
    if not isinstance(setup, AwsQueueSetup):
        # In memory, batches alone subscribe.
        return
    page = (Path(__file__).parents[3] / "docs" / "batches.md").read_text()
    (policy,) = re.findall(r"`(\{.*anything-but.*\})`", page)
    names = await setup.subscribe(OTHER)
    async for subscription in setup.topic.found(setup.plan.prefix, setup.plan.topic_arn):
        await setup.clients.sns.set_subscription_attributes(
            SubscriptionArn=subscription.name,
            AttributeName="FilterPolicy",
            AttributeValue=policy,
        )
    await setup.topic.send_canary(setup.plan, KEY, "1")
    await setup.topic.publish(setup.plan, STARTED)
    (body,) = await setup.arrives(names.queue)
    assert json.loads(body)["eventType"] == STARTED.event_type
    await setup.holds(names.queue)


async def test_subscribing_twice_is_once(setup: QueueSetup) -> None:
    for _ in range(2):
        names = await setup.subscribe()
    assert await setup.subscriptions() == [KEY]
    sent = await setup.publish("DOCUMENT_PROCESSED")
    assert await setup.arrives(names.queue) == [sent]
    await setup.holds(names.queue)


async def test_a_subscription_to_something_else_is_repaired(setup: QueueSetup) -> None:
    names = await setup.build()
    await setup.topic.subscribe(names, setup.plan, OTHER)
    await setup.topic.subscribe(names, setup.plan, KEY)
    assert len(await setup.subscriptions()) == 1
    await setup.publish("DOCUMENT_PROCESSED", OTHER)
    sent = await setup.publish("DOCUMENT_PROCESSED")
    assert await setup.arrives(names.queue) == [sent]
    await setup.holds(names.queue)


async def test_events_are_filtered_by_their_bodies_where_the_plan_requires_it(
    setup: QueueSetup,
) -> None:
    if setup.name != "moto":
        # There a filter policy keeps the scope with which it was set first.
        await setup.subscribe()
    names = await setup.subscribe(filter_scope="MessageBody")
    assert await setup.subscriptions() == [KEY]
    others = await setup.subscribe(OTHER)
    sent = await setup.publish("BATCH_ATTACHMENTS")
    if isinstance(setup, AwsQueueSetup):
        # Without attributes it matches no filter policy.
        await setup.clients.sns.publish(TopicArn=setup.plan.topic_arn, Message=sent)
        assert await setup.arrives(names.queue, count=2) == [sent, sent]
    else:
        assert await setup.arrives(names.queue) == [sent]
    await setup.topic.send_canary(setup.plan, KEY, "1")
    assert len(await setup.arrives(names.queue)) == 1
    await setup.holds(others.queue)


async def test_unsubscribing_twice_is_once(setup: QueueSetup) -> None:
    names, others = await setup.subscribe(), await setup.subscribe(OTHER)
    assert [await setup.topic.unsubscribe(names, setup.plan) for _ in range(2)] == [True, False]
    assert await setup.subscriptions() == [OTHER]
    await setup.publish("DOCUMENT_PROCESSED")
    sent = await setup.publish("DOCUMENT_PROCESSED", OTHER)
    assert await setup.arrives(others.queue) == [sent]
    await setup.holds(names.queue)


async def test_a_deleted_subscription_is_reported_by_its_name(
    setup: QueueSetup,
) -> None:
    names = await setup.subscribe()
    name = await setup.topic.subscribe(names, setup.plan, KEY)
    assert await setup.topic.subscribe(names, setup.plan, KEY) == name
    assert await setup.topic.is_subscribed(name)
    await setup.topic.unsubscribe(names, setup.plan)
    assert not await setup.topic.is_subscribed(name)
    again = await setup.topic.subscribe(names, setup.plan, KEY)
    assert await setup.topic.is_subscribed(again)


async def test_the_subscription_of_a_missing_queue_is_deleted_too(setup: QueueSetup) -> None:
    names = await setup.subscribe()
    await setup.subscribe(OTHER)
    await setup.queues.delete_queue(names.queue, KEY.workflow_id)
    assert await setup.topic.unsubscribe(names, setup.plan)
    assert await setup.subscriptions() == [OTHER]


async def test_a_queue_that_is_not_there_cannot_subscribe(setup: QueueSetup) -> None:
    with pytest.raises(Denied):
        await setup.topic.subscribe(setup.names(), setup.plan, KEY)
    assert await setup.subscriptions() == []


async def test_only_its_own_subscriptions_belong_to_an_installation(setup: QueueSetup) -> None:
    await setup.subscribe()
    for prefix in (f"{setup.plan.prefix}-longer", setup.plan.prefix[:-1]):
        found = setup.topic.found(prefix, setup.plan.topic_arn)
        assert [one async for one in found] == []


async def test_announcements_are_published(setup: QueueSetup) -> None:
    expected = {
        "eventType": "LOADER_STARTED",
        "caseId": 7,
        "batchId": 3,
        "status": "SUCCESS",
        "messageId": "batch/7/3/started",
        "requestedBy": {"name": "ann"},
    }
    if isinstance(setup, MemoryQueueSetup):
        await setup.topic.publish(setup.plan, STARTED)
        assert [said.body() for said in setup.cloud.published] == [expected]
        return
    assert isinstance(setup, AwsQueueSetup)
    # A queue that is subscribed to everything, as that of another system.
    names = await setup.build()
    queue = await setup.clients.sqs.get_queue_attributes(
        QueueUrl=await setup.url(names.queue), AttributeNames=["QueueArn"]
    )
    await setup.clients.sns.subscribe(
        TopicArn=setup.plan.topic_arn,
        Protocol="sqs",
        Endpoint=queue["Attributes"]["QueueArn"],
        Attributes={"RawMessageDelivery": "true"},
    )
    await setup.topic.publish(setup.plan, STARTED)
    got = await setup.clients.sqs.receive_message(
        QueueUrl=await setup.url(names.queue), WaitTimeSeconds=20, MessageAttributeNames=["All"]
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
