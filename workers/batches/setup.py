"""What batches need on AWS before the first of them: topic, source function, case-events queue."""

import json
import shlex
from collections.abc import AsyncGenerator, Awaitable, Callable, Mapping, Sequence
from contextlib import asynccontextmanager
from typing import Any, Final, cast
from urllib.parse import urlsplit

from adapters.aws.functions import AwsFunctions
from adapters.aws.session import AwsClients, Missing, aws, has_code, open_aws
from adapters.ports.errors import Denied
from workers.batches.settings import BatchSettings, CaseEventSettings
from workers.shared.services.requirements import Finding, Requirement, State, seldom

RECEIVES: Final = 10
"""Of a case event, before the queue sets it aside."""
_FIFO: Final = ".fifo"
_OTHER_FORM: Final = ("QueueNameExists", "QueueAlreadyExists")
_PAGE: Final = "docs/batches.md, 'Setting it up'"


@asynccontextmanager
async def worker_requirements(
    environment: Mapping[str, str],
) -> AsyncGenerator[Sequence[Requirement]]:
    """What workers of batches need.

    Raises:
        SettingsError: A setting is missing or wrong.
    """
    settings = BatchSettings.read(environment)
    async with open_aws(settings.aws) as clients:
        found = [_topic(clients, settings.topic_arn)]
        if settings.with_function and settings.source_function:
            found.append(_function(clients, settings.source_function))
        yield found


@asynccontextmanager
async def case_event_requirements(
    environment: Mapping[str, str],
) -> AsyncGenerator[Sequence[Requirement]]:
    """What the bridge of case events needs.

    Raises:
        SettingsError: A setting is missing or wrong.
    """
    settings = CaseEventSettings.read(environment)
    url = settings.case_events_queue()
    async with open_aws(settings.aws) as clients:
        yield [_queue(clients, url), _dead_letters(clients, url)]


def _topic(clients: AwsClients, arn: str) -> Requirement:
    name = arn.rsplit(":", 1)[-1]

    async def look() -> Finding:
        try:
            with aws(f"look for the topic {arn}"):
                # The right to do this is one that workers need in any case.
                await clients.sns.list_subscriptions_by_topic(TopicArn=arn)
        except Missing:
            return Finding(State.MISSING, f"there is no topic {arn}")
        return Finding(State.OK, arn)

    async def make() -> Finding:
        with aws(f"make the topic {name}"):
            made = (await clients.sns.create_topic(Name=name))["TopicArn"]
        if made == arn:
            return Finding(State.MADE, arn)
        cure = "correct DOCFLOW_BATCH_TOPIC_ARN, AWS_REGION or the credentials"
        return Finding(State.DIFFERS, f"the topic was made as {made}, not as {arn}", cure)

    command = f"aws sns create-topic --name {shlex.quote(name)}"
    return Requirement(
        "topic",
        _if_allowed(look),
        consequence="no batch gets documents",
        cure=f"run `docflow setup`, or `{command}`",
        make=make,
        watch=seldom(_if_allowed(look)),
    )


def _function(clients: AwsClients, name: str) -> Requirement:
    async def look() -> Finding:
        if await AwsFunctions(clients.lambda_).exists(name):
            return Finding(State.OK, name)
        return Finding(State.MISSING, f"there is no function {name}")

    return Requirement(
        "source function",
        _if_allowed(look),
        consequence="no batch can have a function",
        cure=f"make it as {_PAGE}, says, or set DOCFLOW_BATCH_WITH_FUNCTION=false",
        watch=seldom(_if_allowed(look)),
    )


def _queue(clients: AwsClients, url: str) -> Requirement:
    name = _name(url)

    async def look() -> Finding:
        if await _attributes(clients, url) is None:
            return Finding(State.MISSING, f"there is no queue {url}")
        return Finding(State.OK, name)

    async def make() -> Finding:
        try:
            made = await _make_queues(clients, name)
        except Denied as error:
            if not has_code(error, *_OTHER_FORM):
                raise
            problem = f"a queue {name} exists with other attributes, and not at {url}"
            return Finding(State.DIFFERS, problem, "correct DOCFLOW_CASE_EVENTS_QUEUE_URL")
        if urlsplit(made).path == urlsplit(url).path:
            return Finding(State.MADE, f"{name}, with {_dead_name(name)} for its dead letters")
        cure = "correct DOCFLOW_CASE_EVENTS_QUEUE_URL, AWS_REGION or the credentials"
        return Finding(State.DIFFERS, f"the queue was made at {made}, not at {url}", cure)

    return Requirement(
        "case-events queue",
        _if_allowed(look),
        consequence="no case event is received",
        cure=f"run `docflow setup`, or make it as {_PAGE}, says",
        make=make,
    )


def _dead_letters(clients: AwsClients, url: str) -> Requirement:
    name = _name(url)

    async def look() -> Finding:
        attributes = await _attributes(clients, url)
        if attributes is None:
            return Finding(State.UNKNOWN, f"there is no queue {name}")
        policy = json.loads(attributes.get("RedrivePolicy") or "{}")
        if not policy.get("deadLetterTargetArn"):
            return Finding(State.MISSING, f"{name} has no dead-letter queue")
        receives = int(policy.get("maxReceiveCount", RECEIVES))
        if receives < RECEIVES:
            problem = f"{name} sets an event aside after {receives} receives"
            return Finding(State.DIFFERS, problem)
        return Finding(State.OK, policy["deadLetterTargetArn"].rsplit(":", 1)[-1])

    return Requirement(
        "dead letters of case events",
        _if_allowed(look),
        consequence="what cannot be accepted may be kept back for ever, or set aside too early",
        cure=f"give the queue a redrive policy with maxReceiveCount {RECEIVES}; docflow changes "
        "no queue that exists",
        needed=False,
    )


def _if_allowed(look: Callable[[], Awaitable[Finding]]) -> Callable[[], Awaitable[Finding]]:
    async def check() -> Finding:
        try:
            return await look()
        except Denied as error:
            return Finding(State.UNKNOWN, str(error), "grant the right, or look there yourself")

    return check


async def _attributes(clients: AwsClients, url: str) -> Mapping[str, str] | None:
    """Of a queue; None: there is no such queue."""
    try:
        with aws(f"look for the queue {url}"):
            got = await clients.sqs.get_queue_attributes(QueueUrl=url, AttributeNames=["All"])
    except Missing:
        return None
    return {str(name): value for name, value in got.get("Attributes", {}).items()}


async def _make_queues(clients: AwsClients, name: str) -> str:
    """Make a queue and its dead-letter queue; the URL of the former."""
    fifo = {"FifoQueue": "true"} if name.endswith(_FIFO) else {}
    dead = _dead_name(name)
    with aws(f"make the queue {dead}"):
        made = await clients.sqs.create_queue(QueueName=dead, Attributes=cast(Any, fifo))
        found = await clients.sqs.get_queue_attributes(
            QueueUrl=made["QueueUrl"], AttributeNames=["QueueArn"]
        )
    arn = found.get("Attributes", {})["QueueArn"]
    policy = json.dumps({"deadLetterTargetArn": arn, "maxReceiveCount": RECEIVES})
    with aws(f"make the queue {name}"):
        queue = await clients.sqs.create_queue(
            QueueName=name, Attributes=cast(Any, {**fifo, "RedrivePolicy": policy})
        )
    return queue["QueueUrl"]


def _name(url: str) -> str:
    return url.rstrip("/").rsplit("/", 1)[-1]


def _dead_name(name: str) -> str:
    stem = name.removesuffix(_FIFO)
    return f"{stem}_dlq{_FIFO if name.endswith(_FIFO) else ''}"
