"""Batches in a cloud of any kind, for tests of what the ports promise."""

import itertools
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TypeVar

from adapters.aws.functions import AwsFunctions, AwsGrants
from adapters.aws.queues import AwsQueues
from adapters.ports.errors import NotYet
from tests.support.aws import Cloud, cloud
from tests.support.memory.cloud import MemoryCloud
from tests.support.waiting import eventually
from workflows.batches.names import BatchKey, BatchPlan, Names, Resource, names_of
from workflows.batches.validation import FoundResource

Done = TypeVar("Done")

VISIBILITY = 180
IMAGE = "123456789012.dkr.ecr.eu-central-1.amazonaws.com/docflow-loader:1"


async def ready(call: Callable[[], Awaitable[Done]]) -> Done:
    """Ask until the cloud is no longer busy with what was asked before."""
    answers: list[Done] = []

    async def is_done() -> bool:
        try:
            answers.append(await call())
        except NotYet:
            return False
        return True

    await eventually(is_done, seconds=120, pause=0.1)
    return answers[0]


@dataclass(frozen=True)
class FunctionSetup:
    """The functions and grants of an installation, in one cloud."""

    functions: AwsFunctions
    grants: AwsGrants
    queues: AwsQueues
    plan: BatchPlan
    cloud: Cloud | None
    """None: the one in memory."""
    numbers: "itertools.count[int]"

    @asynccontextmanager
    async def batch(self, plan: BatchPlan | None = None) -> AsyncIterator["FunctionBatch"]:
        """A batch with a queue and nothing more; nothing is left of it afterwards."""
        key = BatchKey(case_id=7, batch_id=next(self.numbers))
        batch = FunctionBatch(self, key, plan or self.plan)
        await ready(
            lambda: self.queues.ensure_queue(batch.names, batch.plan, batch.owner, VISIBILITY)
        )
        try:
            yield batch
        finally:
            await batch.remove()

    async def found(self) -> list[FoundResource]:
        """Functions, mappings and reservations of the whole installation."""
        return [resource async for resource in self.functions.found(self.plan.prefix)]


@dataclass(frozen=True)
class FunctionBatch:
    """One batch of a site."""

    setup: FunctionSetup
    key: BatchKey
    plan: BatchPlan

    @property
    def names(self) -> Names:
        return names_of(self.plan.prefix, self.key)

    @property
    def owner(self) -> str:
        return self.key.workflow_id

    async def grant(self) -> None:
        role = (await self.setup.functions.source(self.plan)).role
        await self.setup.grants.grant(self.names, self.plan, role)

    async def clone(self) -> None:
        functions = self.setup.functions
        await ready(lambda: functions.clone(self.names, self.plan, self.key, self.owner))

    async def attach(self) -> None:
        await ready(lambda: self.setup.functions.attach(self.names, self.plan))

    async def reserve(self) -> None:
        await self.setup.functions.reserve(self.names, self.plan)

    async def detach(self) -> bool:
        return await ready(lambda: self.setup.functions.detach(self.names))

    async def delete(self) -> bool:
        return await self.setup.functions.delete(self.names.function, self.owner)

    async def build(self) -> None:
        """Make everything that a queue is fed to a function by."""
        await self.grant()
        await self.clone()
        await self.reserve()
        await self.attach()

    async def found(self) -> list[FoundResource]:
        """What exists of it."""
        return [resource for resource in await self.setup.found() if resource.key == self.key]

    async def kinds(self) -> list[Resource]:
        """What exists of it, by kind."""
        return sorted(resource.resource for resource in await self.found())

    async def remove(self) -> None:
        """Remove everything; what is gone is gone."""
        role = (await self.setup.functions.source(self.plan)).role
        await self.detach()
        await self.delete()
        await self.setup.grants.revoke(self.names, role)
        await self.setup.queues.delete_queue(self.names.queue, self.owner)


@asynccontextmanager
async def open_function_setup(name: str, folder: Path) -> AsyncIterator[FunctionSetup]:
    """Open an installation in the cloud of that name, or in memory."""
    numbers = itertools.count(1)
    if name == "memory":
        memory = MemoryCloud()
        plan = BatchPlan(
            prefix="docflow-tests",
            topic_arn="arn:aws:sns:eu-central-1:123456789012:documents",
            source_function="docflow_document_loader",
        )
        yield FunctionSetup(memory.functions, memory.grants, memory.queues, plan, None, numbers)
        return
    async with cloud(name, folder) as opened:
        plan = BatchPlan(
            prefix="docflow-tests",
            topic_arn=opened.installed.topic_arn,
            source_function=await _source(opened),
        )
        clients = opened.clients
        yield FunctionSetup(
            functions=AwsFunctions(clients.lambda_),
            grants=AwsGrants(clients.iam),
            queues=AwsQueues(clients.sqs),
            plan=plan,
            cloud=opened,
            numbers=numbers,
        )


async def _source(opened: Cloud) -> str:
    """The function to clone.

    The address that moto gives for a zipped package leads nowhere: there it is a container image.
    """
    zipped = opened.installed.source_function
    if opened.name != "moto":
        return zipped
    like = await opened.clients.lambda_.get_function_configuration(FunctionName=zipped)
    made = await opened.clients.lambda_.create_function(
        FunctionName=f"{zipped}_image",
        PackageType="Image",
        Code={"ImageUri": IMAGE},
        ImageConfig={"Command": ["loader.handler"]},
        Role=like["Role"],
        Timeout=like["Timeout"],
        MemorySize=like["MemorySize"],
        Environment={"Variables": {"SITE": "tests"}},
    )
    return made["FunctionName"]
