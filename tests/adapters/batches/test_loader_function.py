"""The function of a batch, invoked through its mapping: queue, function and Temporal are real."""

import itertools
import json
from collections.abc import AsyncIterator, Sequence
from dataclasses import dataclass, replace
from typing import Any

import aioboto3
import pytest
import pytest_asyncio

from adapters.aws.functions import AwsFunctions
from adapters.aws.queues import AwsQueues
from adapters.aws.session import AwsClients, open_aws
from stack.children import free_port
from stack.loader_function import install
from stack.ministack import ministack
from stack.temporal import temporal_server
from tests.support.batches.functions import ready
from tests.support.batches.groups import groups_of
from tests.support.waiting import eventually
from workflows.batches.loads import CANARY
from workflows.batches.names import (
    API_KEY,
    API_KEY_SECRET,
    BatchKey,
    BatchPlan,
    QueueDepth,
    names_of,
)
from workflows.batches.runs import Redriven

pytestmark = pytest.mark.asyncio(loop_scope="module")

HIDDEN_SECONDS = 2
"""AWS wants more than the function's timeout; MiniStack takes what a test can wait for."""
SEND = 10
"""Messages that SQS takes with one call."""
_BATCHES = itertools.count(1)


@dataclass(frozen=True)
class Loading:
    """An account with a batch in it, whose function finds Temporal at an address."""

    clients: AwsClients
    address: str
    """Of Temporal."""
    plan: BatchPlan
    key: BatchKey

    @property
    def queues(self) -> AwsQueues:
        return AwsQueues(self.clients.sqs)

    async def build(self) -> None:
        """Everything but the dead-letter queue, the subscription and the grants."""
        names, owner = names_of(self.plan.prefix, self.key), self.key.workflow_id
        functions = AwsFunctions(self.clients.lambda_)
        await self.queues.ensure_queue(names, self.plan, owner, HIDDEN_SECONDS)
        await ready(lambda: functions.clone(names, self.plan, self.key, owner))
        await ready(lambda: functions.attach(names, self.plan))

    async def add_dead_letters(self) -> None:
        names = names_of(self.plan.prefix, self.key)
        await self.queues.ensure_dead_letters(names, self.plan, self.key.workflow_id)
        await self.queues.set_redrive_policy(names, self.plan)

    async def remove(self) -> None:
        names, functions = names_of(self.plan.prefix, self.key), AwsFunctions(self.clients.lambda_)
        await ready(lambda: functions.detach(names))
        await functions.delete(names.function, self.key.workflow_id)
        for queue in (names.queue, names.dead_letters):
            await self.queues.delete_queue(queue, self.key.workflow_id)

    def document(self, name: str, **changed: Any) -> str:
        ids = {"caseId": self.key.case_id, "batchId": self.key.batch_id, "documentId": name}
        return json.dumps(
            {"eventType": "DOCUMENT_PROCESSED", **ids, "blobName": f"{name}.pdf", **changed}
        )

    async def send(self, bodies: Sequence[str]) -> None:
        queue = names_of(self.plan.prefix, self.key).queue
        url = (await self.clients.sqs.get_queue_url(QueueName=queue))["QueueUrl"]
        for start in range(0, len(bodies), SEND):
            await self.clients.sqs.send_message_batch(
                QueueUrl=url,
                Entries=[
                    {"Id": str(number), "MessageBody": body}
                    for number, body in enumerate(bodies[start : start + SEND])
                ],
            )

    async def started(self) -> list[str]:
        """Documents of the batch that are in a group, once for each."""
        groups = await groups_of(self.address, self.key)
        return sorted({load.event.document_id for group in groups for load in group})

    async def wait_for(self, started: Sequence[str], left: int = 0) -> None:
        """Wait until these documents are started, and as many messages are left as given."""
        queue = names_of(self.plan.prefix, self.key).queue

        async def is_so() -> bool:
            depth = await self.queues.depth(queue)
            return await self.started() == sorted(started) and total(depth) == left

        await eventually(is_so, seconds=120, pause=0.1)

    async def dead(self) -> list[dict[str, Any]]:
        """What is in the dead-letter queue."""
        queue = names_of(self.plan.prefix, self.key).dead_letters
        url = (await self.clients.sqs.get_queue_url(QueueName=queue))["QueueUrl"]
        found: list[Any] = []
        while got := await self.clients.sqs.receive_message(
            QueueUrl=url, MaxNumberOfMessages=SEND, MessageAttributeNames=["All"]
        ):
            if not got.get("Messages"):
                return found
            found += got["Messages"]
        return found


def total(depth: QueueDepth | None) -> int:
    assert depth is not None
    return depth.total


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def account(
    tmp_path_factory: pytest.TempPathFactory,
) -> AsyncIterator[tuple[AwsClients, str, BatchPlan]]:
    folder = tmp_path_factory.mktemp("account")
    async with (
        temporal_server(folder / "temporal", ui=False, in_memory=True) as server,
        ministack(folder) as settings,
        open_aws(settings) as clients,
    ):
        installed = await install(clients, {"TEMPORAL_ADDRESS": server.address})
        plan = BatchPlan(
            prefix="docflow",
            topic_arn=installed.topic_arn,
            source_function=installed.source_function,
        )
        yield clients, server.address, plan


@pytest_asyncio.fixture(loop_scope="module")
async def secrets(account: tuple[AwsClients, str, BatchPlan]) -> AsyncIterator[Any]:
    """Secrets Manager of the account."""
    meta = account[0].sqs.meta
    session: Any = aioboto3.Session("test", "test", region_name=meta.region_name)
    async with session.client("secretsmanager", endpoint_url=meta.endpoint_url) as client:
        yield client


@pytest_asyncio.fixture(loop_scope="module")
async def loading(account: tuple[AwsClients, str, BatchPlan]) -> AsyncIterator[Loading]:
    opened = Loading(*account, BatchKey(case_id=7, batch_id=next(_BATCHES)))
    yield opened
    await opened.remove()


async def test_every_document_is_started_and_unreadable_messages_are_set_aside(
    loading: Loading,
) -> None:
    await loading.build()
    await loading.add_dead_letters()
    documents = [f"document-{number}" for number in range(200)]
    ids = {"caseId": loading.key.case_id, "batchId": loading.key.batch_id}
    canary = json.dumps({"eventType": CANARY, **ids, "messageId": "canary"})
    malformed = [loading.document(f"{number}", tags=3) for number in range(5)]
    malformed += [f"{{ {number}" for number in range(5)]
    good = [loading.document(name) for name in documents]
    await loading.send([*good[:100], *malformed, canary, *good[100:], *good[:20]])
    await loading.wait_for(documents)
    dead = await loading.dead()
    assert sorted(message["Body"] for message in dead) == sorted(malformed)
    for message in dead:
        reason = message["MessageAttributes"]["Reason"]["StringValue"]
        assert reason.startswith(("InvalidMessage: tags: ", "MalformedBody: the body is not JSON"))


async def test_a_failed_message_is_redelivered_and_blocks_no_other(loading: Loading) -> None:
    await loading.build()
    documents = [f"document-{number}" for number in range(20)]
    bodies = [loading.document(name) for name in documents]
    # What is unreadable cannot be set aside: there is no dead-letter queue yet.
    await loading.send([*bodies[:5], "{", *bodies[5:12], "[", *bodies[12:]])
    await loading.wait_for(documents, left=2)
    await loading.add_dead_letters()
    await loading.wait_for(documents)
    assert sorted(message["Body"] for message in await loading.dead()) == ["[", "{"]


async def test_nothing_is_lost_while_temporal_is_unavailable(loading: Loading) -> None:
    away = {"environment": {"TEMPORAL_ADDRESS": f"127.0.0.1:{free_port()}"}, "max_receives": 2}
    loading = replace(loading, plan=loading.plan.model_copy(update=away))
    await loading.build()
    await loading.add_dead_letters()
    bodies = [loading.document(f"document-{number}") for number in range(12)]
    await loading.send(bodies)
    await loading.wait_for([])
    assert sorted(message["Body"] for message in await loading.dead()) == sorted(bodies)


async def test_the_key_of_temporal_comes_from_a_secret(loading: Loading, secrets: Any) -> None:
    name = "docflow/temporal"
    # The server has neither TLS, which a key asks for, nor looks at keys.
    environment = {API_KEY_SECRET: name, "TEMPORAL_TLS": "false"}
    changed = {"environment": environment, "max_receives": 2}
    loading = replace(loading, plan=loading.plan.model_copy(update=changed))
    names = names_of(loading.plan.prefix, loading.key)
    await loading.build()
    await loading.add_dead_letters()
    clone = await loading.clients.lambda_.get_function_configuration(FunctionName=names.function)
    variables = clone["Environment"]["Variables"]
    assert variables[API_KEY_SECRET] == name and API_KEY not in variables
    documents = [f"document-{number}" for number in range(3)]
    await loading.send([loading.document(each) for each in documents])
    # There is no such secret: nothing is started without the key, and nothing is lost.
    await loading.wait_for([])
    await secrets.create_secret(Name=name, SecretString="the key of Temporal")
    assert await loading.queues.redrive(names) == Redriven(moved=3)
    await loading.wait_for(documents)
    assert await loading.dead() == []
