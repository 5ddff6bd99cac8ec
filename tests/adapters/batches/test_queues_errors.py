"""Every error of AWS at every single call of queues and topic: told apart, and survived."""

import copy
import json
from collections.abc import AsyncIterator, Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from functools import partial
from typing import Any

import pytest
import pytest_asyncio
from aiobotocore.awsrequest import AioAWSResponse as AWSResponse
from botocore.exceptions import (
    ConnectTimeoutError,
    EndpointConnectionError,
    ReadTimeoutError,
)

from adapters.aws import queues
from adapters.aws.queues import AwsQueues
from adapters.aws.session import AwsClients, AwsSettings, open_aws
from adapters.ports.errors import Denied, NotYet, PortError, Throttled, Unavailable
from tests.support.aws_answers import Answers, answers
from tests.support.batches.functions import ready
from tests.support.batches.queue_steps import LETTERS, STEPS, Step
from tests.support.batches.queues import (
    AwsQueueSetup,
    QueueSetup,
    QueueSetups,
    open_queue_setups,
)
from tests.support.chaos import some_of
from workflows.batches.runs import Redriven

pytestmark = pytest.mark.asyncio(loop_scope="module")

CODES: list[tuple[str, int, type[PortError]]] = [
    ("RequestThrottled", 403, Throttled),
    ("ThrottlingException", 400, Throttled),
    ("TooManyRequestsException", 429, Throttled),
    ("OverLimit", 403, Throttled),
    ("AWS.SimpleQueueService.QueueDeletedRecently", 400, NotYet),
    ("AWS.SimpleQueueService.PurgeQueueInProgress", 403, NotYet),
    ("ResourceInUseException", 400, NotYet),
    ("InternalError", 500, Unavailable),
    ("ServiceUnavailable", 503, Unavailable),
    ("AccessDenied", 403, Denied),
    ("KmsAccessDenied", 400, Denied),
    ("InvalidParameterValue", 400, Denied),
]
LOST = [
    EndpointConnectionError(endpoint_url="http://sqs"),
    ConnectTimeoutError(endpoint_url="http://sqs"),
    ReadTimeoutError(endpoint_url="http://sqs"),
]


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def setups(tmp_path_factory: pytest.TempPathFactory) -> AsyncIterator[QueueSetups]:
    async with open_queue_setups("moto", tmp_path_factory.mktemp("moto")) as opened:
        yield opened


@pytest.fixture(autouse=True)
def hurry(monkeypatch: pytest.MonkeyPatch) -> None:
    """The counters of moto are exact: no wait for messages that are not there."""
    monkeypatch.setattr(queues, "HIDDEN_SECONDS", 2)
    monkeypatch.setattr(queues, "POLL_SECONDS", 0)
    monkeypatch.setattr(queues, "LOOK_SECONDS", 0)
    monkeypatch.setattr(queues, "HIDDEN_SECONDS", 2)
    monkeypatch.setattr(queues, "POLL_SECONDS", 0)


@dataclass(frozen=True)
class Said:
    """One call of a step, and what came of it."""

    service: str
    operation: str
    answer: Any


@contextmanager
def taped(setup: QueueSetup) -> Iterator[list[Said]]:
    """Listen to the calls of both clients."""
    assert isinstance(setup, AwsQueueSetup)
    tape: list[Said] = []
    with ExitStack() as stack:
        for service, client in services(setup.clients):

            def listen(model: Any, parsed: Any, service: str = service, **_: Any) -> None:
                tape.append(Said(service, model.name, copy.deepcopy(parsed)))

            client.meta.events.register("after-call", listen)
            stack.callback(client.meta.events.unregister, "after-call", listen)
        yield tape


def services(clients: AwsClients) -> list[tuple[str, Any]]:
    return [("sqs", clients.sqs), ("sns", clients.sns)]


async def tape_of(setups: QueueSetups, step: Step) -> tuple[QueueSetup, list[Said]]:
    """The calls that a step makes, found by letting it work, and where it did."""
    setup = await setups()
    await step.needs(setup)
    with taped(setup) as tape:
        await step.call(setup)
    assert tape
    return setup, tape


@contextmanager
def replayed(setup: QueueSetup, tape: Sequence[Said]) -> Iterator[dict[str, Answers]]:
    """Answer from a recording, without a service."""
    assert isinstance(setup, AwsQueueSetup)
    with ExitStack() as stack:
        yield {
            name: stack.enter_context(answers(client, alone=True))
            for name, client in services(setup.clients)
        }


def play(standing: dict[str, Answers], tape: Sequence[Said]) -> None:
    """Let the next calls be answered as they were once."""
    for said in tape:
        if "Error" in said.answer:
            status = said.answer["ResponseMetadata"]["HTTPStatusCode"]
            standing[said.service].refuse(said.operation, said.answer["Error"]["Code"], status)
        else:
            rest = {name: it for name, it in said.answer.items() if name != "ResponseMetadata"}
            standing[said.service].say(said.operation, **copy.deepcopy(rest))


async def outcomes(
    setup: QueueSetup, step: Step, tape: Sequence[Said], spoil: Callable[[Answers, str], None]
) -> AsyncIterator[tuple[str, Any]]:
    """Let each call of a step fail in turn, the others being answered as they were once."""
    for failing, said in enumerate(tape):
        with replayed(setup, tape) as standing:
            play(standing, tape[:failing])
            spoil(standing[said.service], said.operation)
            play(standing, tape[failing:])
            for _ in (*LETTERS, LETTERS[0]):
                standing["sqs"].say("ChangeMessageVisibility")
            try:
                outcome = await step.call(setup)
            except PortError as error:
                outcome = error
        yield said.operation, outcome


@pytest.mark.parametrize("name", STEPS)
async def test_every_error_at_any_call_is_classified(setups: QueueSetups, name: str) -> None:
    step = STEPS[name]
    setup, tape = await tape_of(setups, step)
    for code, status, kind in CODES:
        spoil = partial(Answers.refuse, code=code, status=status)
        async for operation, outcome in outcomes(setup, step, tape, spoil):
            # What SQS cannot move, or not now, is moved one by one.
            moved = operation == "ListMessageMoveTasks" and status >= 500
            wanted = Redriven if moved else kind
            assert type(outcome) is wanted, f"{code} at {operation}: {outcome!r}"


@pytest.mark.parametrize("name", STEPS)
async def test_a_timeout_at_any_call_is_reported(setups: QueueSetups, name: str) -> None:
    step = STEPS[name]
    setup, tape = await tape_of(setups, step)
    for error in LOST:
        async for operation, outcome in outcomes(
            setup, step, tape, partial(Answers.lose, error=error)
        ):
            assert type(outcome) is Unavailable, f"{error} at {operation}: {outcome!r}"


FINE_WHEN_GONE = {
    "depth": {"GetQueueUrl", "GetQueueAttributes"},
    "dead_letters": {"GetQueueUrl", "ReceiveMessage", "ChangeMessageVisibility"},
    "delete_queue": {"GetQueueUrl", "ListQueueTags", "DeleteQueue"},
    "found": {"GetQueueAttributes", "ListQueueTags"},
    "found_subscriptions": {"ListSubscriptionsByTopic"},
    "redrive": {"GetQueueUrl", "GetQueueAttributes"},
    "repair": {"GetSubscriptionAttributes", "SetSubscriptionAttributes", "Subscribe"},
    "unsubscribe": {"GetQueueUrl", "GetQueueAttributes", "ListSubscriptionsByTopic", "Unsubscribe"},
}
"""Calls of a step that may find that there is nothing any more."""


@pytest.mark.parametrize("code", ["AWS.SimpleQueueService.NonExistentQueue", "NotFound"])
@pytest.mark.parametrize("name", STEPS)
async def test_what_is_gone_is_refused_unless_the_step_can_do_without(
    setups: QueueSetups, name: str, code: str
) -> None:
    step = STEPS[name]
    setup, tape = await tape_of(setups, step)
    if name == "repair":
        # It subscribes again, then.
        tape = [*tape, Said("sns", "Subscribe", {"SubscriptionArn": "arn:aws:sns:again"})]
    spoil = partial(Answers.refuse, code=code, status=400)
    seen: set[str] = set()
    async for operation, outcome in outcomes(setup, step, tape, spoil):
        is_fine = operation in FINE_WHEN_GONE.get(name, ())
        if name == "redrive" and operation in seen:
            # The second time it asks for the queue that they come from.
            is_fine = False
        seen.add(operation)
        assert isinstance(outcome, Denied) is not is_fine, f"{operation}: {outcome!r}"


@contextmanager
def broken(setup: QueueSetup, operation: str, before: int, *, done: bool) -> Iterator[None]:
    """Let one call fail to connect, or carry it out and lose its answer."""
    assert isinstance(setup, AwsQueueSetup)
    left = before

    def lose(model: Any, **_: Any) -> None:
        nonlocal left
        left -= model.name == operation
        if left < 0 and model.name == operation:
            left = 1_000
            raise ReadTimeoutError(endpoint_url="http://aws")

    event = "after-call" if done else "before-call"
    with ExitStack() as stack:
        for _, client in services(setup.clients):
            client.meta.events.register(event, lose)
            stack.callback(client.meta.events.unregister, event, lose)
        yield


@pytest.mark.chaos
@pytest.mark.parametrize("done", [False, True], ids=["not done", "answer lost"])
@pytest.mark.parametrize("name", STEPS)
async def test_a_second_attempt_does_the_work_wherever_the_first_one_broke(
    setups: QueueSetups, name: str, done: bool
) -> None:
    step = STEPS[name]
    _, tape = await tape_of(setups, step)
    operations = [said.operation for said in tape]
    for failing in some_of(len(operations), done):
        operation = operations[failing]
        setup = await setups()
        await step.needs(setup)
        with broken(setup, operation, operations[:failing].count(operation), done=done):
            with pytest.raises(Unavailable):
                await step.call(setup)
            await ready(lambda setup=setup: step.call(setup))
        assert await step.left(setup) == step.leaves, operation


async def test_throttling_that_passes_is_ridden_out_by_the_client(setups: QueueSetups) -> None:
    setup = await setups()
    assert isinstance(setup, AwsQueueSetup)
    names = await setup.build()
    settings = AwsSettings("eu-central-1", setup.clients.sqs.meta.endpoint_url, "test", "test")
    async with open_aws(settings) as clients:
        refusals = iter([refused(403, "RequestThrottled"), refused(503, "ServiceUnavailable")])
        clients.sqs.meta.events.register(
            "before-send.sqs.GetQueueUrl", lambda **_: next(refusals, None)
        )
        assert await AwsQueues(clients.sqs).depth(names.queue) is not None
        assert next(refusals, None) is None


def refused(status: int, code: str) -> AWSResponse:
    body = json.dumps({"__type": code, "message": "no"}).encode()
    return Silence("http://sqs", status, {"content-type": "application/x-amz-json-1.0"}, body)


class Silence(AWSResponse):
    """An answer that came over no wire."""

    def __init__(self, url: str, status: int, headers: dict[str, str], body: bytes) -> None:
        super().__init__(url, status, headers, None)
        self._body = body

    @property
    async def content(self) -> bytes:
        return self._body
