"""What `AwsGrants` promises, in memory and on everything that speaks as IAM does."""

import json
from collections.abc import AsyncIterator
from typing import Any

import pytest
import pytest_asyncio

from adapters.aws.functions import AwsGrants, policy_of
from adapters.aws.session import AwsSettings, open_aws
from adapters.ports.errors import Denied
from tests.support.aws import clouds
from tests.support.aws_answers import answers
from tests.support.batches.functions import FunctionBatch, FunctionSetup, open_function_setup
from workflows.batches.names import BatchKey, BatchPlan, Resource, names_of

PLAN = BatchPlan(
    prefix="docflow",
    topic_arn="arn:aws:sns:eu-central-1:123456789012:documents",
    source_function="loader",
)
NAMES = names_of(PLAN.prefix, BatchKey(case_id=7, batch_id=3))
SECRET = "arn:aws:secretsmanager:eu-central-1:123456789012:secret:docflow/database-AbCdEf"
OTHER_SECRET = "arn:aws:secretsmanager:eu-central-1:123456789012:secret:docflow/key-AbCdEf"
DATABASE_USER = "arn:aws:rds-db:eu-central-1:123456789012:dbuser:prx-0123456789/loader"


@pytest_asyncio.fixture(scope="module", loop_scope="module", params=["memory", *clouds()])
async def setup(
    request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory
) -> AsyncIterator[FunctionSetup]:
    async with open_function_setup(request.param, tmp_path_factory.mktemp(request.param)) as opened:
        yield opened


@pytest_asyncio.fixture(loop_scope="module")
async def batch(setup: FunctionSetup) -> AsyncIterator[FunctionBatch]:
    async with setup.batch() as batch:
        yield batch


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def role(setup: FunctionSetup) -> str:
    return (await setup.functions.source(setup.plan)).role


async def found(setup: FunctionSetup, role: str) -> list[tuple[Resource, str]]:
    return [(one.resource, one.name) async for one in setup.grants.found(setup.plan.prefix, role)]


@pytest.mark.asyncio(loop_scope="module")
async def test_a_policy_put_twice_is_there_once(
    setup: FunctionSetup, batch: FunctionBatch, role: str
) -> None:
    for _ in range(2):
        await setup.grants.grant(batch.names, batch.plan, role)
    assert await found(setup, role) == [(Resource.PERMISSIONS, batch.names.policy)]


@pytest.mark.asyncio(loop_scope="module")
async def test_a_policy_removed_twice_is_gone(
    setup: FunctionSetup, batch: FunctionBatch, role: str
) -> None:
    await setup.grants.grant(batch.names, batch.plan, role)
    taken = [await setup.grants.revoke(batch.names, role) for _ in range(2)]
    assert taken == [True, False]
    assert await found(setup, role) == []


@pytest.mark.asyncio(loop_scope="module")
async def test_a_batch_takes_nothing_from_another(
    setup: FunctionSetup, batch: FunctionBatch, role: str
) -> None:
    async with setup.batch() as other:
        for each in (batch, other):
            await setup.grants.grant(each.names, each.plan, role)
        assert {name for _, name in await found(setup, role)} == {
            batch.names.policy,
            other.names.policy,
        }
        await setup.grants.revoke(other.names, role)
    assert await found(setup, role) == [(Resource.PERMISSIONS, batch.names.policy)]


@pytest.mark.asyncio(loop_scope="module")
async def test_iam_has_the_policy_as_it_was_meant(
    setup: FunctionSetup, batch: FunctionBatch, role: str
) -> None:
    plan = batch.plan.model_copy(update={"grants": (SECRET, DATABASE_USER)})
    await setup.grants.grant(batch.names, plan, role)
    if setup.cloud is not None:
        iam = setup.cloud.clients.iam
        got: Any = await iam.get_role_policy(RoleName=role, PolicyName=batch.names.policy)
        document = got["PolicyDocument"]
        has = json.loads(document) if isinstance(document, str) else document
        assert has == policy_of(batch.names, plan)
    assert await found(setup, role) == [(Resource.PERMISSIONS, batch.names.policy)]


@pytest.mark.asyncio(loop_scope="module")
async def test_what_is_granted_to_all_batches_is_one_policy_that_no_batch_takes_back(
    setup: FunctionSetup, batch: FunctionBatch, role: str
) -> None:
    plan = batch.plan.model_copy(update={"grants": (SECRET, DATABASE_USER)})
    for _ in range(2):
        await setup.grants.grant_once(plan, role)
    assert not await setup.grants.revoke(batch.names, role)
    assert await found(setup, role) == [], "it is left over from no batch"
    if setup.cloud is not None:
        iam = setup.cloud.clients.iam
        name = f"{plan.prefix}_doc_loader_grants"
        got: Any = await iam.get_role_policy(RoleName=role, PolicyName=name)
        assert SECRET in json.dumps(got["PolicyDocument"])
        assert "sqs:" not in json.dumps(got["PolicyDocument"])


@pytest.mark.asyncio(loop_scope="module")
async def test_a_grant_that_is_there_is_not_made_again() -> None:
    plan = PLAN.model_copy(update={"grants": (SECRET,)})
    [granted] = policy_of(NAMES, plan)["Statement"][2:]
    document = json.dumps({"Version": "2012-10-17", "Statement": [granted]})
    async with open_aws(AwsSettings("eu-central-1", "http://nowhere.invalid", "a", "b")) as clients:
        with answers(clients.iam, alone=True) as iam:
            iam.say("GetRolePolicy", PolicyDocument=document)
            await AwsGrants(clients.iam).grant_once(plan, "loader")


@pytest.mark.asyncio(loop_scope="module")
async def test_a_role_without_capacity_is_reported() -> None:
    async with open_aws(AwsSettings("eu-central-1", "http://nowhere.invalid", "a", "b")) as clients:
        with answers(clients.iam, alone=True) as iam:
            iam.refuse("PutRolePolicy", "LimitExceeded", 409, "Maximum policy size exceeded")
            with pytest.raises(Denied, match="loader may have 10240 characters together"):
                await AwsGrants(clients.iam).grant(NAMES, PLAN, "loader")


def test_a_function_may_use_its_own_queues_and_what_the_plan_grants() -> None:
    plan = PLAN.model_copy(update={"grants": (DATABASE_USER, SECRET, OTHER_SECRET)})
    queue = "arn:aws:sqs:eu-central-1:123456789012:docflow_doc_loader_7_3"
    assert {
        action: statement["Resource"]
        for statement in policy_of(NAMES, plan)["Statement"]
        for action in statement["Action"]
    } == {
        "sqs:ReceiveMessage": [queue],
        "sqs:DeleteMessage": [queue],
        "sqs:GetQueueAttributes": [queue],
        "sqs:ChangeMessageVisibility": [queue],
        "sqs:GetQueueUrl": [f"{queue}_dlq"],
        "sqs:SendMessage": [f"{queue}_dlq"],
        "secretsmanager:GetSecretValue": [SECRET, OTHER_SECRET],
        "secretsmanager:DescribeSecret": [SECRET, OTHER_SECRET],
        "rds-db:connect": [DATABASE_USER],
    }


@pytest.mark.parametrize("arn", ["*", "arn:aws:s3:::bucket", "arn:aws:iam::1:role/admin", "secret"])
def test_nothing_else_is_granted(arn: str) -> None:
    with pytest.raises(Denied, match="cannot be granted"):
        policy_of(NAMES, PLAN.model_copy(update={"grants": (SECRET, arn)}))
