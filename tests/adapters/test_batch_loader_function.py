"""The function of a batch, invoked through its mapping: queue, function and Temporal are real."""

import itertools
import json
from collections.abc import AsyncIterator, Sequence
from dataclasses import dataclass
from typing import Any

import pytest
import pytest_asyncio
from temporalio.client import Client

from adapters.aws.functions import AwsFunctions
from adapters.aws.queues import AwsQueues
from adapters.aws.session import AwsClients, open_aws
from contracts.batches import BatchKey, BatchPlan, QueueDepth, names_of
from tests.support.batch_site import ready
from tests.support.waiting import eventually
from workers.stack.children import free_port
from workers.stack.loader_function import install
from workers.stack.ministack import ministack
from workers.stack.temporal import temporal_server

pytestmark = pytest.mark.asyncio(loop_scope="module")

HIDDEN_SECONDS = 2
"""AWS wants six times the function's timeout; MiniStack takes what lets a test see more receives."""
SEND = 10
"""Messages that SQS takes with one call."""
_BATCHES = itertools.count(1)


@dataclass(frozen=True)
class Loading:
    """An account with a batch in it, whose function finds Temporal at an address."""

    clients: AwsClients
    temporal: Client
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
        await functions.delete(names.function)
        for queue in (names.queue, names.dead_letters):
            await self.queues.delete_queue(queue)

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
        """Documents of the batch, once for every run."""
        prefix = self.key.load_prefix
        query = f"WorkflowId STARTS_WITH '{prefix}'"
        runs = self.temporal.list_workflows(query)
        return sorted([run.id.removeprefix(prefix) async for run in runs])

    async def wait_for(self, started: Sequence[str], left: int = 0) -> None:
        """Wait until these documents are started, and as many messages are left as given."""
        queue = names_of(self.plan.prefix, self.key).queue

        async def is_so() -> bool:
            depth = await self.queues.depth(queue)
            return await self.started() == sorted(started) and total(depth) == left

        await eventually(is_so, seconds=60, pause=0.1)

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
) -> AsyncIterator[tuple[AwsClients, Client, BatchPlan]]:
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
        yield clients, await Client.connect(server.address), plan


@pytest_asyncio.fixture(loop_scope="module")
async def loading(account: tuple[AwsClients, Client, BatchPlan]) -> AsyncIterator[Loading]:
    opened = Loading(*account, BatchKey(case_id=7, batch_id=next(_BATCHES)))
    yield opened
    await opened.remove()


async def test_every_message_starts_one_load_and_none_is_left(loading: Loading) -> None:
    await loading.add_dead_letters_to_a_new_batch()
