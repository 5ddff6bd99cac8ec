"""What AWS says and no emulator does, put into its mouth."""

import json
from collections.abc import AsyncIterator, Iterator
from typing import Any

import pytest
import pytest_asyncio
from botocore.exceptions import (
    ClientError,
    EndpointConnectionError,
    NoCredentialsError,
    ParamValidationError,
)

from adapters.aws.queues import AwsQueues
from adapters.aws.session import AwsClients, AwsSettings, Missing, aws, open_aws
from adapters.aws.topic import AwsTopic, filter_policy
from adapters.ports.errors import Denied, NotYet, PortError, Throttled, Unavailable
from tests.support.aws_answers import Answers, answers
from workflows.batches.names import BatchKey, BatchPlan, names_of
from workflows.batches.runs import Redriven
from workflows.shared.dependencies import Dependency

pytestmark = pytest.mark.asyncio(loop_scope="module")

KEY = BatchKey(case_id=7, batch_id=3)
ACCOUNT = "arn:aws:sqs:eu-central-1:123456789012:"
PLAN = BatchPlan(
    prefix="docflow",
    topic_arn="arn:aws:sns:eu-central-1:210987654321:documents",
    source_function="loader",
)
NAMES = names_of(PLAN.prefix, KEY)


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def clients() -> AsyncIterator[AwsClients]:
    async with open_aws(AwsSettings("eu-central-1", "http://nowhere.invalid", "a", "b")) as opened:
        yield opened


@pytest.fixture
def sqs(clients: AwsClients) -> Iterator[Answers]:
    with answers(clients.sqs, alone=True) as standing:
        yield standing


@pytest.fixture
def sns(clients: AwsClients) -> Iterator[Answers]:
    with answers(clients.sns, alone=True) as standing:
        yield standing


def letters(sqs: Answers, count: int) -> None:
    """There are so many dead letters."""
    for queue in (NAMES.dead_letters, NAMES.queue):
        sqs.say("GetQueueUrl", QueueUrl=f"http://nowhere.invalid/{queue}")
        counts = {
            "ApproximateNumberOfMessages": str(count),
            "ApproximateNumberOfMessagesDelayed": "0",
            "ApproximateNumberOfMessagesNotVisible": "0",
        }
        sqs.say("GetQueueAttributes", Attributes={"QueueArn": ACCOUNT + queue, **counts})


def arrive(sqs: Answers, *bodies: str) -> None:
    """These are received, then nothing."""
    messages = [{"Body": body, "ReceiptHandle": f"{body} {len(sqs.calls)}"} for body in bodies]
    sqs.say("ReceiveMessage", Messages=messages)
    sqs.say("ReceiveMessage")


def moves(*statuses: str) -> list[dict[str, Any]]:
    return [
        {"Status": status, "ApproximateNumberOfMessagesMoved": 4, "StartedTimestamp": 0}
        for status in statuses
    ]


@pytest.mark.parametrize("before", [(), ("COMPLETED",), ("CANCELLED",)])
async def test_sqs_moves_all_dead_letters_to_their_queue(
    clients: AwsClients, sqs: Answers, before: tuple[str, ...]
) -> None:
    letters(sqs, 9)
    sqs.say("ListMessageMoveTasks", Results=moves(*before))
    sqs.say("StartMessageMoveTask", TaskHandle="1")
    assert await AwsQueues(clients.sqs).redrive(NAMES) == Redriven(moved=9)
    assert sqs.body() == {
        "SourceArn": ACCOUNT + NAMES.dead_letters,
        "DestinationArn": ACCOUNT + NAMES.queue,
    }


@pytest.mark.parametrize("status", ["RUNNING", "CANCELLING"])
async def test_a_move_that_is_under_way_is_waited_for(
    clients: AwsClients, sqs: Answers, status: str
) -> None:
    letters(sqs, 9)
    sqs.say("ListMessageMoveTasks", Results=moves(status))
    with pytest.raises(NotYet, match="4 dead letters have been moved"):
        await AwsQueues(clients.sqs).redrive(NAMES)


async def test_what_a_move_has_failed_to_do_is_done_one_by_one(
    clients: AwsClients, sqs: Answers
) -> None:
    letters(sqs, 1)
    sqs.say("ListMessageMoveTasks", Results=moves("FAILED"))
    arrive(sqs, "a")
    sqs.say("SendMessage", MessageId="1")
    sqs.say("DeleteMessage")
    sqs.say("ReceiveMessage")
    assert await AwsQueues(clients.sqs).redrive(NAMES) == Redriven(moved=1)


@pytest.mark.parametrize("call", ["ListMessageMoveTasks", "StartMessageMoveTask"])
@pytest.mark.parametrize(
    ("code", "status"),
    [("AWS.SimpleQueueService.UnsupportedOperation", 400), ("InvalidAction", 400), ("500", 500)],
)
async def test_without_move_tasks_messages_are_moved_one_by_one(
    clients: AwsClients, sqs: Answers, call: str, code: str, status: int
) -> None:
    letters(sqs, 1)
    if call == "StartMessageMoveTask":
        sqs.say("ListMessageMoveTasks", Results=[])
    sqs.refuse(call, code, status)
    arrive(sqs, "a")
    sqs.say("SendMessage", MessageId="1")
    sqs.say("DeleteMessage")
    sqs.say("ReceiveMessage")
    assert await AwsQueues(clients.sqs).redrive(NAMES) == Redriven(moved=1)
    # A crash between the two doubles a message, and loses none.
    assert sqs.calls.index("SendMessage") < sqs.calls.index("DeleteMessage")


async def test_a_message_that_fails_again_meanwhile_is_left_to_the_next_pass(
    clients: AwsClients, sqs: Answers
) -> None:
    letters(sqs, 1)
    sqs.refuse("ListMessageMoveTasks", "InvalidAction")
    arrive(sqs, '{"documentId": 1, "caseId": 7}')
    sqs.say("SendMessage", MessageId="1")
    sqs.say("DeleteMessage")
    arrive(sqs, '{"caseId": 7, "documentId": 1}')
    sqs.say("ReceiveMessage")
    sqs.say("ChangeMessageVisibility")
    assert await AwsQueues(clients.sqs).redrive(NAMES) == Redriven(moved=1)
    assert sqs.calls.count("DeleteMessage") == 1
    assert sqs.body()["VisibilityTimeout"] == 0


async def test_dead_letters_that_an_attempt_before_has_are_waited_for(
    clients: AwsClients, sqs: Answers
) -> None:
    letters(sqs, 3)
    sqs.refuse("ListMessageMoveTasks", "InvalidAction")
    sqs.say("ReceiveMessage")
    with pytest.raises(NotYet, match="3 dead letters cannot be received"):
        await AwsQueues(clients.sqs).redrive(NAMES)


async def test_nothing_is_set_that_is_set_already(clients: AwsClients, sqs: Answers) -> None:
    queues = AwsQueues(clients.sqs)
    here = {"QueueArn": ACCOUNT + NAMES.queue}
    sqs.say("GetQueueUrl", QueueUrl="http://nowhere.invalid/queue")
    sqs.say("GetQueueAttributes", Attributes=here)
    sqs.say("SetQueueAttributes")
    await queues.allow_topic(NAMES, PLAN)
    policy = sqs.body()["Attributes"]["Policy"]
    # The same in another spelling.
    here["Policy"] = policy.replace('", "', '","')
    sqs.say("GetQueueUrl", QueueUrl="http://nowhere.invalid/queue")
    sqs.say("GetQueueAttributes", Attributes=here)
    await queues.allow_topic(NAMES, PLAN)
    assert sqs.calls.count("SetQueueAttributes") == 1


@pytest.mark.parametrize("code", ["ReceiptHandleIsInvalid", "MessageNotInflight"])
async def test_a_message_that_another_receiver_holds_by_now_is_still_proof(
    clients: AwsClients, sqs: Answers, code: str
) -> None:
    sqs.say("GetQueueUrl", QueueUrl="http://nowhere.invalid/queue")
    sqs.say("ReceiveMessage", Messages=[{"Body": "{}", "ReceiptHandle": "1"}])
    sqs.refuse("ChangeMessageVisibility", code)
    assert await AwsQueues(clients.sqs).has_proof(NAMES.queue, "1")


async def test_a_queue_deleted_during_the_listing_is_gone(
    clients: AwsClients, sqs: Answers
) -> None:
    url = f"http://nowhere.invalid/{NAMES.queue}"
    sqs.say("ListQueues", QueueUrls=[url], NextToken="more")
    sqs.say("ListQueues", QueueUrls=[])
    sqs.refuse("GetQueueAttributes", "AWS.SimpleQueueService.NonExistentQueue")
    sqs.say("ListQueueTags")
    assert [one async for one in AwsQueues(clients.sqs).found("docflow")] == []
    assert sqs.calls.count("ListQueues") == 2


def subscription(queue: str, number: int = 1) -> dict[str, str]:
    return {
        "SubscriptionArn": f"{PLAN.topic_arn}:{number}",
        "Protocol": "sqs",
        "Endpoint": ACCOUNT + queue,
    }


def subscriber(sqs: Answers) -> None:
    """The queue is in another account than the topic."""
    sqs.say("GetQueueUrl", QueueUrl="http://nowhere.invalid/queue")
    sqs.say("GetQueueAttributes", Attributes={"QueueArn": ACCOUNT + NAMES.queue})


async def test_a_queue_may_be_in_another_account_than_the_topic(
    clients: AwsClients, sqs: Answers, sns: Answers
) -> None:
    subscriber(sqs)
    sns.say("ListSubscriptionsByTopic", Subscriptions=[])
    sns.say("Subscribe", SubscriptionArn="1")
    await AwsTopic(clients.sns, clients.sqs).subscribe(NAMES, PLAN, KEY)
    assert sns.asked[-1]["body"]["Endpoint"] == ACCOUNT + NAMES.queue


async def test_every_subscription_of_a_queue_is_deleted_on_any_page(
    clients: AwsClients, sqs: Answers, sns: Answers
) -> None:
    subscriber(sqs)
    others = subscription(f"{NAMES.queue}0", 9)
    first = [subscription(NAMES.queue, 1), others]
    pending = {**subscription(NAMES.queue), "SubscriptionArn": "PendingConfirmation"}
    sns.say("ListSubscriptionsByTopic", Subscriptions=first, NextToken="more")
    sns.say("ListSubscriptionsByTopic", Subscriptions=[pending, subscription(NAMES.queue, 2)])
    for _ in range(2):
        sns.say("Unsubscribe")
    assert await AwsTopic(clients.sns, clients.sqs).unsubscribe(NAMES, PLAN)
    asked = [call["body"]["SubscriptionArn"] for call in sns.asked[2:]]
    assert asked == [f"{PLAN.topic_arn}:{number}" for number in (1, 2)]


async def test_a_topic_that_someone_has_deleted_has_no_subscriptions(
    clients: AwsClients, sns: Answers
) -> None:
    sns.refuse("ListSubscriptionsByTopic", "NotFound", 404)
    found = AwsTopic(clients.sns, clients.sqs).found(PLAN.prefix, PLAN.topic_arn)
    assert [one async for one in found] == []


async def test_of_two_subscriptions_one_stays_and_a_deleted_one_does_not_count(
    clients: AwsClients, sqs: Answers, sns: Answers
) -> None:
    subscriber(sqs)
    there = [subscription(NAMES.queue, number) for number in (1, 2, 3)]
    sns.say("ListSubscriptionsByTopic", Subscriptions=there)
    sns.refuse("GetSubscriptionAttributes", "NotFound", 404)
    has = {
        "FilterPolicy": str(filter_policy(KEY)).replace("'", '"'),
        "FilterPolicyScope": "MessageAttributes",
        "RawMessageDelivery": "true",
    }
    sns.say("GetSubscriptionAttributes", Attributes=has)
    sns.say("Unsubscribe")
    await AwsTopic(clients.sns, clients.sqs).subscribe(NAMES, PLAN, KEY)
    assert sns.asked[-1]["body"]["SubscriptionArn"] == f"{PLAN.topic_arn}:3"


@pytest.mark.parametrize(("filtered", "has_room"), [(199, True), (200, False)])
async def test_a_topic_has_room_for_two_hundred_filter_policies(
    clients: AwsClients, sqs: Answers, sns: Answers, filtered: int, has_room: bool
) -> None:
    subscriber(sqs)
    everybody = [subscription(f"other-{number}", number) for number in range(filtered + 30)]
    sns.say("ListSubscriptionsByTopic", Subscriptions=everybody)
    policies = [filter_policy(KEY)] * filtered + [{}] * 28
    for policy in policies:
        sns.say("GetSubscriptionAttributes", Attributes={"FilterPolicy": json.dumps(policy)})
    # One that is gone, and one of another account: they take no room of ours.
    sns.refuse("GetSubscriptionAttributes", "NotFound", 404)
    sns.refuse("GetSubscriptionAttributes", "AuthorizationError", 403)
    sns.say("Subscribe", SubscriptionArn="1")
    topic = AwsTopic(clients.sns, clients.sqs)
    if has_room:
        await topic.subscribe(NAMES, PLAN, KEY)
    else:
        with pytest.raises(Denied, match="has no room for another filter policy, it takes 200"):
            await topic.subscribe(NAMES, PLAN, KEY)
    assert ("Subscribe" in sns.calls) is has_room


async def test_only_a_full_topic_is_asked_for_its_filter_policies(
    clients: AwsClients, sqs: Answers, sns: Answers
) -> None:
    subscriber(sqs)
    everybody = [subscription(f"other-{number}", number) for number in range(199)]
    sns.say("ListSubscriptionsByTopic", Subscriptions=everybody)
    sns.say("Subscribe", SubscriptionArn="1")
    await AwsTopic(clients.sns, clients.sqs).subscribe(NAMES, PLAN, KEY)
    assert sns.calls == ["ListSubscriptionsByTopic", "Subscribe"]


@pytest.mark.parametrize("code", ["FilterPolicyLimitExceeded", "SubscriptionLimitExceeded"])
async def test_an_exceeded_limit_of_aws_is_reported_with_a_remedy(
    clients: AwsClients, sqs: Answers, sns: Answers, code: str
) -> None:
    subscriber(sqs)
    sns.say("ListSubscriptionsByTopic", Subscriptions=[])
    sns.refuse("Subscribe", code, 403)
    with pytest.raises(Denied, match="let other batches end first, or ask AWS for a higher quota"):
        await AwsTopic(clients.sns, clients.sqs).subscribe(NAMES, PLAN, KEY)


def refusal(code: str, status: int = 400, headers: dict[str, str] | None = None) -> ClientError:
    metadata: Any = {"HTTPStatusCode": status, "HTTPHeaders": headers or {}}
    said: Any = {"Error": {"Code": code, "Message": "no"}, "ResponseMetadata": metadata}
    return ClientError(said, "Something")


def translated(error: Exception) -> PortError:
    with pytest.raises(PortError) as reported, aws("do something"):
        raise error
    return reported.value


@pytest.mark.parametrize(
    ("error", "kind"),
    [
        (refusal("Unknown", 429), Throttled),
        (refusal("SlowDown", 503), Throttled),
        (refusal("Unknown", 502), Unavailable),
        (refusal("RequestTimeout", 400), Unavailable),
        (refusal("NoSuchEntity", 404), Missing),
        (refusal("ExpiredToken", 403), Unavailable),
        (refusal("AccessDenied", 403), Denied),
        (refusal("", 400), Denied),
        (NoCredentialsError(), Unavailable),
        (ParamValidationError(report="no"), Denied),
    ],
    ids=str,
)
async def test_every_refusal_is_one_of_a_few_kinds(error: Exception, kind: type[PortError]) -> None:
    reported = translated(error)
    assert type(reported) is kind
    assert str(reported).startswith("do something: ")


@pytest.mark.parametrize(
    ("error", "misconfigured"),
    [
        (refusal("InternalError", 500), False),
        (EndpointConnectionError(endpoint_url="http://aws"), False),
        (refusal("InvalidClientTokenId", 403), True),
        (NoCredentialsError(), True),
    ],
    ids=str,
)
async def test_what_is_wrong_with_the_cloud_or_with_its_settings_is_waited_for(
    error: Exception, misconfigured: bool
) -> None:
    failure = translated(error)
    assert isinstance(failure, Unavailable)
    assert (failure.dependency, failure.misconfigured) == (Dependency.CLOUD, misconfigured)


async def test_waits_are_as_long_as_aws_wants_them() -> None:
    recently = translated(refusal("AWS.SimpleQueueService.QueueDeletedRecently"))
    assert isinstance(recently, NotYet) and recently.retry_after > 60
    throttled = translated(refusal("TooManyRequestsException", 429, {"retry-after": "7"}))
    assert isinstance(throttled, Throttled) and throttled.retry_after == 7
    # However long it lasts, a batch waits for it and is not parked.
    assert throttled.dependency is Dependency.CLOUD
    unsaid = translated(refusal("Throttling"))
    assert isinstance(unsaid, Throttled) and unsaid.retry_after is None
