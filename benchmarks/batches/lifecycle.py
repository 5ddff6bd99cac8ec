"""A batch up and down through its workflow, against the same calls in a bare script."""

import asyncio
import time
import uuid
from collections.abc import AsyncGenerator, Awaitable, Callable
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, TypeVar

from temporalio.worker import Worker

from adapters.aws.functions import AwsFunctions, AwsGrants
from adapters.aws.queues import AwsQueues
from adapters.aws.session import AwsClients, open_aws
from adapters.aws.topic import AwsTopic
from adapters.ports.errors import NotYet
from benchmarks.report import Table, at_most, middle, spread
from stack.loader_function import install, loader_zip
from stack.ministack import ministack
from stack.postgres import migrated_database
from stack.temporal import temporal_server
from tests.support.batches.installation import BatchInstallation, batch_installation
from workers.batches.register import BATCHES
from workers.shared.connect import connect
from workers.shared.register import activities_of
from workflows.batches.batch_lifecycle import BatchLifecycle
from workflows.batches.names import BatchKey, BatchPlan, Timings, names_of
from workflows.batches.runs import BatchInput

T = TypeVar("T")

TARGET = 1.3
LATENCIES = (0.0, 0.05)
"""Seconds added to each call: the emulator answers in a few milliseconds, AWS in tens of them."""
HANDLER = "def handler(event, context):\n    return {'batchItemFailures': []}\n"
QUICK = Timings(settle=0, poll=1, hold=0)


@dataclass(frozen=True)
class Cloud:
    """The adapters of AWS over one set of clients."""

    queues: AwsQueues
    topic: AwsTopic
    functions: AwsFunctions
    grants: AwsGrants

    @classmethod
    def over(cls, clients: AwsClients) -> "Cloud":
        """Wire them."""

        return cls(
            AwsQueues(clients.sqs),
            AwsTopic(clients.sns, clients.sqs),
            AwsFunctions(clients.lambda_),
            AwsGrants(clients.iam),
        )


async def compare(folder: Path, rounds: int) -> Table:
    """Measure both, with and without latency."""
    table = Table(
        "One batch up and down",
        ("latency per call", "bare script s", "docflow s", "ratio"),
        notes=[
            "The bare script makes the same calls of the same adapters one after the other, and "
            "waits as long where AWS asks for it; median (extremes) of the rounds."
        ],
    )
    for latency in LATENCIES:
        async with _opened(folder / f"{latency}", latency) as (installation, cloud, plan):
            bare: list[float] = []
            ours: list[float] = []
            for _ in range(rounds):
                bare.append(await _timed(_bare(cloud, plan, _key())))
                ours.append(await _timed(_by_workflow(installation, _key())))
        ratio = middle(ours) / middle(bare)
        table.add(f"{latency * 1000:.0f} ms", spread(bare, 2), spread(ours, 2), f"{ratio:.2f}")
        table.notes.append(f"{latency * 1000:.0f} ms: {at_most(ratio, TARGET)}")
    return table


@asynccontextmanager
async def _opened(
    folder: Path, latency: float
) -> AsyncGenerator[tuple[BatchInstallation, Cloud, BatchPlan]]:
    folder.mkdir(parents=True)
    async with AsyncExitStack() as stack:
        settings = await stack.enter_async_context(ministack(folder))
        clients = await stack.enter_async_context(open_aws(settings))
        installed = await install(clients, {}, loader_zip(HANDLER))
        server = await stack.enter_async_context(
            temporal_server(folder / "temporal", ui=False, in_memory=True)
        )
        client = await connect(server.address)
        url = await stack.enter_async_context(migrated_database())
        installation = await stack.enter_async_context(
            batch_installation(client, folder, "batches", url=url)
        )
        for one in (clients.sqs, clients.sns, clients.lambda_, clients.iam):
            _slow_down(one, latency)
        cloud = Cloud.over(clients)
        plan = installation.resources.plan.model_copy(
            update={
                "topic_arn": installed.topic_arn,
                "source_function": installed.source_function,
            }
        )
        batches = replace(
            installation.resources,
            plan=plan,
            queues=cloud.queues,
            topic=cloud.topic,
            functions=cloud.functions,
            grants=cloud.grants,
        )
        await stack.enter_async_context(
            Worker(
                client,
                task_queue="batches",
                workflows=[BatchLifecycle],
                activities=activities_of(*BATCHES.activities(installation.common, batches)),
            )
        )
        yield installation, cloud, plan


def _slow_down(client: Any, latency: float) -> None:
    """Let every call of a client take longer by some time on the way."""
    call = client._make_api_call

    async def slower(name: str, arguments: Any) -> Any:
        await asyncio.sleep(latency)
        return await call(name, arguments)

    client._make_api_call = slower


def _key() -> BatchKey:
    return BatchKey(case_id=uuid.uuid4().int % 1_000_000_000 + 1, batch_id=1)


async def _timed(work: Awaitable[Any]) -> float:
    began = time.monotonic()
    await work
    return time.monotonic() - began


async def _until(call: Callable[[], Awaitable[T]]) -> T:
    while True:
        try:
            return await call()
        except NotYet as busy:
            await asyncio.sleep(busy.retry_after)


async def _bare(cloud: Cloud, plan: BatchPlan, key: BatchKey) -> None:
    names, owner = names_of(plan.prefix, key), key.workflow_id
    source = await cloud.functions.source(plan)
    await cloud.queues.ensure_queue(names, plan, owner, 6 * source.timeout)
    await cloud.queues.ensure_dead_letters(names, plan, owner)
    await cloud.queues.set_redrive_policy(names, plan)
    await cloud.queues.allow_topic(names, plan)
    await cloud.topic.subscribe(names, plan, key)
    await cloud.grants.grant(names, plan, source.role)
    await _until(lambda: cloud.functions.clone(names, plan, key, owner))
    await cloud.topic.send_canary(plan, key, "bare")
    while not await cloud.queues.has_proof(names.queue, "bare"):
        await asyncio.sleep(0.2)
    await cloud.functions.reserve(names, plan)
    await _until(lambda: cloud.functions.attach(names, plan))
    await cloud.queues.depth(names.queue)
    await cloud.queues.depth(names.dead_letters)
    await cloud.topic.unsubscribe(names, plan)
    await _until(lambda: cloud.functions.detach(names))
    await cloud.functions.delete(names.function, owner)
    await cloud.grants.revoke(names, source.role)
    await cloud.queues.delete_queue(names.queue, owner)
    await cloud.queues.depth(names.dead_letters)
    await cloud.queues.delete_queue(names.dead_letters, owner)


async def _by_workflow(installation: BatchInstallation, key: BatchKey) -> None:
    from tests.support.batches.scripted import ended, finished, started

    await installation.store.note(key.case_id, [started(key), finished(key), ended(key)])
    await installation.client.execute_workflow(
        BatchLifecycle.run,
        BatchInput(key=key, timings=QUICK, notify=False),
        id=key.workflow_id,
        task_queue="batches",
    )
