"""Functions and mappings as Lambda has them, and in which state they are found."""

import asyncio
from collections.abc import AsyncIterator
from dataclasses import dataclass
from typing import Any

import pytest
import pytest_asyncio

from adapters.ports.errors import Denied
from tests.support.aws import Cloud, clouds
from tests.support.batches.functions import FunctionBatch, FunctionSetup, open_function_setup
from workflows.batches.names import API_KEY, API_KEY_SECRET, BatchPlan, Resource
from workflows.batches.validation import WORKFLOW_TAG

pytestmark = pytest.mark.asyncio(loop_scope="module")


@dataclass(frozen=True)
class Account:
    """What lies behind the ports."""

    setup: FunctionSetup
    cloud: Cloud

    async def function(self, name: str) -> Any:
        return await self.cloud.clients.lambda_.get_function(FunctionName=name)

    async def mappings(self, batch: FunctionBatch) -> list[Any]:
        listed = await self.cloud.clients.lambda_.list_event_source_mappings()
        arn = f":{batch.names.function}"
        return [
            one for one in listed["EventSourceMappings"] if one.get("FunctionArn", "").endswith(arn)
        ]


@pytest_asyncio.fixture(scope="module", loop_scope="module", params=clouds())
async def account(
    request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory
) -> AsyncIterator[Account]:
    async with open_function_setup(request.param, tmp_path_factory.mktemp(request.param)) as setup:
        assert setup.cloud is not None
        yield Account(setup, setup.cloud)


@pytest_asyncio.fixture(loop_scope="module")
async def batch(account: Account) -> AsyncIterator[FunctionBatch]:
    async with account.setup.batch() as batch:
        yield batch


async def test_a_source_that_is_missing_is_named(account: Account) -> None:
    plan = account.setup.plan.model_copy(update={"source_function": "nobody"})
    with pytest.raises(Denied, match="source function nobody"):
        await account.setup.functions.source(plan)


async def test_a_source_with_a_key_of_temporal_is_cloned_once_a_secret_has_its_place(
    account: Account, batch: FunctionBatch
) -> None:
    client, name = account.cloud.clients.lambda_, batch.plan.source_function
    before = await client.get_function_configuration(FunctionName=name)
    variables = before.get("Environment", {}).get("Variables", {})

    async def give(more: dict[str, str]) -> None:
        environment: Any = {"Variables": {**variables, **more}}
        await client.update_function_configuration(FunctionName=name, Environment=environment)

    try:
        await give({API_KEY: "not to be said"})
        with pytest.raises(Denied, match=f"put {API_KEY_SECRET} with the ARN") as refused:
            await batch.clone()
        assert "not to be said" not in str(refused.value)
        # The plan of the batch stays as it is: what the source has is cloned along.
        await give({API_KEY_SECRET: "docflow/temporal"})
        await batch.clone()
    finally:
        await give({})
    clone = await account.function(batch.names.function)
    has = clone["Configuration"]["Environment"]["Variables"]
    assert has[API_KEY_SECRET] == "docflow/temporal"
    assert API_KEY not in has


async def test_a_clone_is_its_source_with_the_batch_in_its_environment(account: Account) -> None:
    plan = account.setup.plan.model_copy(update={"environment": {"TEMPORAL_ADDRESS": "there"}})
    async with account.setup.batch(plan) as batch:
        await batch.clone()
        source = await account.function(plan.source_function)
        clone = await account.function(batch.names.function)
    same = {"Role", "Timeout", "MemorySize", "PackageType", "Architectures", "TracingConfig"}
    if account.cloud.name == "moto":
        # It takes a container image to clone here, see `open_function_setup`.
        same.add("ImageConfigResponse")
        assert clone["Code"]["ImageUri"] == source["Code"]["ResolvedImageUri"]
    else:
        same |= {"Runtime", "Handler", "CodeSha256", "CodeSize"}
    has, wanted = clone["Configuration"], source["Configuration"]
    assert {name: has[name] for name in same} == {name: wanted[name] for name in same}
    assert has["Environment"]["Variables"] == {
        **wanted["Environment"]["Variables"],
        "TEMPORAL_ADDRESS": "there",
        "DOCFLOW_BATCH_PREFIX": plan.prefix,
        "DOCFLOW_CASE_ID": str(batch.key.case_id),
        "DOCFLOW_BATCH_ID": str(batch.key.batch_id),
    }
    assert clone["Tags"] == {WORKFLOW_TAG: batch.owner}


async def test_a_mapping_takes_few_at_once_and_accepts_partial_failures(
    account: Account, batch: FunctionBatch
) -> None:
    await batch.build()
    [mapping] = await account.mappings(batch)
    assert mapping["EventSourceArn"].endswith(f":{batch.names.queue}")
    assert mapping["State"] == "Enabled"
    assert mapping["BatchSize"] == batch.plan.batch_size
    assert mapping["FunctionResponseTypes"] == ["ReportBatchItemFailures"]
    assert mapping["ScalingConfig"] == {"MaximumConcurrency": batch.plan.concurrency}


async def test_a_mapping_that_someone_has_disabled_feeds_no_function(
    account: Account, batch: FunctionBatch
) -> None:
    await batch.build()
    [mapping] = await account.mappings(batch)
    disable = account.cloud.clients.lambda_.update_event_source_mapping
    await disable(UUID=mapping["UUID"], Enabled=False)
    assert not await account.setup.functions.is_fed(batch.names)
    await account.setup.functions.attach(batch.names, batch.plan)
    assert await account.setup.functions.is_fed(batch.names)


@pytest.mark.parametrize("change", [{"BatchSize": 1}, {"Enabled": False}], ids=str)
async def test_a_changed_mapping_is_restored(
    account: Account, batch: FunctionBatch, change: dict[str, Any]
) -> None:
    await batch.build()
    [mapping] = await account.mappings(batch)
    client = account.cloud.clients.lambda_
    await client.update_event_source_mapping(UUID=mapping["UUID"], **change)
    await batch.attach()
    [again] = await account.mappings(batch)
    assert again["UUID"] == mapping["UUID"]
    assert (again["State"], again["BatchSize"]) == ("Enabled", batch.plan.batch_size)


async def test_of_two_mappings_one_stays(account: Account, batch: FunctionBatch) -> None:
    await batch.build()
    [mapping] = await account.mappings(batch)
    client = account.cloud.clients.lambda_
    again = client.create_event_source_mapping(
        EventSourceArn=mapping["EventSourceArn"], FunctionName=batch.names.function
    )
    if account.cloud.name == "aws":
        # Only the emulators have a second one between the same two.
        with pytest.raises(client.exceptions.ResourceConflictException):
            await again
    else:
        await again
        assert len(await account.mappings(batch)) == 2
    await asyncio.gather(batch.attach(), batch.attach())
    assert len(await account.mappings(batch)) == 1


async def test_a_mapping_that_outlived_its_function_is_found_and_removed(
    account: Account, batch: FunctionBatch
) -> None:
    await batch.build()
    await batch.delete()
    assert await batch.kinds() == [Resource.MAPPING]
    assert await batch.detach()
    assert await account.mappings(batch) == []


async def test_an_untagged_function_is_left_alone(account: Account, batch: FunctionBatch) -> None:
    await batch.clone()
    client = account.cloud.clients.lambda_
    arn = (await account.function(batch.names.function))["Configuration"]["FunctionArn"]
    await client.untag_resource(Resource=arn, TagKeys=[WORKFLOW_TAG])
    for step in (batch.clone, batch.delete):
        with pytest.raises(Denied, match="tagged with None"):
            await step()
    [function] = await batch.found()
    assert function.owner == ""
    await client.tag_resource(Resource=arn, Tags={WORKFLOW_TAG: batch.owner})


async def test_the_concurrency_of_a_plan_is_reserved(account: Account) -> None:
    plan: BatchPlan = account.setup.plan.model_copy(update={"concurrency": 3})
    async with account.setup.batch(plan) as batch:
        await batch.clone()
        for _ in range(2):
            await batch.reserve()
        function = await account.function(batch.names.function)
        assert function["Concurrency"] == {"ReservedConcurrentExecutions": 3}


async def test_the_key_and_the_tags_of_the_plan_are_on_everything_that_can_have_them(
    account: Account,
) -> None:
    tags = {"team": "plant", "cost centre": "4711"}
    plan = account.setup.plan.model_copy(update={"kms_key": "alias/docflow", "tags": tags})
    sqs = account.cloud.clients.sqs
    async with account.setup.batch(plan) as batch:
        await batch.clone()
        await account.setup.queues.ensure_dead_letters(batch.names, plan, batch.owner)
        for name in (batch.names.queue, batch.names.dead_letters):
            url = (await sqs.get_queue_url(QueueName=name))["QueueUrl"]
            got = await sqs.get_queue_attributes(QueueUrl=url, AttributeNames=["All"])
            assert got["Attributes"].get("KmsMasterKeyId") == "alias/docflow"
            found = (await sqs.list_queue_tags(QueueUrl=url))["Tags"]
            assert found == {**tags, WORKFLOW_TAG: batch.owner}
        clone = await account.function(batch.names.function)
        assert clone["Tags"] == {**tags, WORKFLOW_TAG: batch.owner}
        await account.setup.queues.delete_queue(batch.names.dead_letters, batch.owner)
