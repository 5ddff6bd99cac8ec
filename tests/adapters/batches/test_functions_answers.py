"""What Lambda may answer, said in its place: states that emulators skip, limits, packages."""

from collections.abc import AsyncIterator, Iterator
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
import pytest_asyncio

from adapters.aws.functions import AwsFunctions
from adapters.aws.session import AwsClients, AwsSettings, open_aws
from adapters.ports.errors import Denied, NotYet
from tests.support.aws_answers import Answers, answers
from workflows.batches.names import BatchKey, BatchPlan, names_of
from workflows.batches.validation import WORKFLOW_TAG

pytestmark = pytest.mark.asyncio(loop_scope="module")

KEY = BatchKey(case_id=7, batch_id=3)
ROLE = "arn:aws:iam::123456789012:role/docflow/loader"
PLAN = BatchPlan(
    prefix="docflow",
    topic_arn="arn:aws:sns:eu-central-1:123456789012:documents",
    source_function="loader",
)
NAMES = names_of(PLAN.prefix, KEY)
ARN = f"arn:aws:lambda:eu-central-1:123456789012:function:{NAMES.function}"
SOURCE = {
    "FunctionName": "loader",
    "Role": ROLE,
    "Timeout": 30,
    "MemorySize": 512,
    "PackageType": "Image",
}
IMAGE = {"ImageUri": "123456789012.dkr.ecr.eu-central-1.amazonaws.com/loader:1"}
MAPPING = {
    "UUID": "1",
    "EventSourceArn": f"arn:aws:sqs:eu-central-1:123456789012:{NAMES.queue}",
    "FunctionArn": ARN,
    "BatchSize": PLAN.batch_size,
    "ScalingConfig": {"MaximumConcurrency": PLAN.concurrency},
    "FunctionResponseTypes": ["ReportBatchItemFailures"],
}


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def clients() -> AsyncIterator[AwsClients]:
    async with open_aws(AwsSettings("eu-central-1", "http://nowhere.invalid", "a", "b")) as opened:
        yield opened


@pytest.fixture
def aws(clients: AwsClients) -> Iterator[Answers]:
    with answers(clients.lambda_, alone=True) as standing:
        yield standing


@pytest.fixture
def functions(clients: AwsClients) -> AwsFunctions:
    return AwsFunctions(clients.lambda_)


def has_function(aws: Answers, **config: Any) -> None:
    """The batch's function is there."""
    aws.say(
        "GetFunction",
        Configuration={"FunctionName": NAMES.function, **config},
        Tags={WORKFLOW_TAG: KEY.workflow_id},
    )


def has_source(aws: Answers, code: dict[str, Any] = IMAGE, **config: Any) -> None:
    """There is no function yet, but its source."""
    aws.refuse("GetFunction", "ResourceNotFoundException", 404)
    aws.say("GetFunction", Configuration={**SOURCE, **config}, Code=code)


async def clone(functions: AwsFunctions) -> None:
    await functions.clone(NAMES, PLAN, KEY, KEY.workflow_id)


def text(moment: datetime) -> str:
    """As Lambda writes it."""
    return moment.strftime("%Y-%m-%dT%H:%M:%S.000+0000")


@pytest.mark.parametrize(("age", "pause"), [(0, 0.5), (4, 4), (600, 10)])
async def test_a_pending_function_is_polled_with_a_delay_proportional_to_its_age(
    functions: AwsFunctions, aws: Answers, age: int, pause: float
) -> None:
    since = datetime.now(UTC) - timedelta(seconds=age)
    has_function(aws, State="Pending", LastModified=text(since))
    with pytest.raises(NotYet, match="pending") as busy:
        await clone(functions)
    assert pause - 0.5 <= busy.value.retry_after <= pause + 1.5


async def test_a_failed_function_reports_why(functions: AwsFunctions, aws: Answers) -> None:
    has_function(aws, State="Failed", StateReason="the subnet has no addresses left")
    with pytest.raises(Denied, match="no addresses left"):
        await clone(functions)


@pytest.mark.parametrize("state", ["Active", "Inactive"])
async def test_a_function_that_can_be_invoked_is_made(
    functions: AwsFunctions, aws: Answers, state: str
) -> None:
    has_function(aws, State=state)
    await clone(functions)
    assert aws.calls == ["GetFunction"]


async def test_a_clone_made_by_another_attempt_is_waited_for(
    functions: AwsFunctions, aws: Answers
) -> None:
    has_source(aws)
    aws.refuse("CreateFunction", "ResourceConflictException", 409)
    with pytest.raises(NotYet):
        await clone(functions)


async def test_a_clone_has_its_sources_network_layers_files_and_image(
    functions: AwsFunctions, aws: Answers
) -> None:
    network = {"SubnetIds": ["subnet-1"], "SecurityGroupIds": ["sg-1"]}
    same = {
        "EphemeralStorage": {"Size": 2048},
        "FileSystemConfigs": [{"Arn": "arn:aws:efs:1", "LocalMountPath": "/mnt/files"}],
        "LoggingConfig": {"LogFormat": "JSON", "LogGroup": "/aws/lambda/loader"},
        "TracingConfig": {"Mode": "Active"},
        "DeadLetterConfig": {"TargetArn": "arn:aws:sqs:1"},
        "KMSKeyArn": "arn:aws:kms:1",
        "Architectures": ["arm64"],
    }
    has_source(
        aws,
        **same,
        VpcConfig={**network, "VpcId": "vpc-1", "Ipv6AllowedForDualStack": False},
        Layers=[{"Arn": "arn:aws:lambda:1:layer:1", "CodeSize": 5}],
        ImageConfigResponse={"ImageConfig": {"Command": ["loader.handler"]}},
        # What only AWS says of a function must not be said to it.
        SnapStart={"ApplyOn": "None", "OptimizationStatus": "Off"},
        StateReasonCode="Idle",
    )
    aws.say("CreateFunction", State="Active")
    await clone(functions)
    wanted = aws.body()
    assert wanted == {
        **same,
        "FunctionName": NAMES.function,
        "Role": ROLE,
        "Timeout": 30,
        "MemorySize": 512,
        "PackageType": "Image",
        "Code": IMAGE,
        "VpcConfig": network,
        "Layers": ["arn:aws:lambda:1:layer:1"],
        "ImageConfig": {"Command": ["loader.handler"]},
        "Environment": wanted["Environment"],
        "Tags": {WORKFLOW_TAG: KEY.workflow_id},
    }


async def test_an_environment_that_cannot_be_read_is_not_left_out(
    functions: AwsFunctions, aws: Answers
) -> None:
    error = {"ErrorCode": "AccessDeniedException", "Message": "the key is disabled"}
    has_source(aws, Environment={"Error": error})
    with pytest.raises(Denied, match="the key is disabled"):
        await clone(functions)


async def test_an_account_without_capacity_for_a_reservation_is_reported(
    functions: AwsFunctions, aws: Answers
) -> None:
    aws.refuse("PutFunctionConcurrency", "InvalidParameterValueException", message="below [100]")
    with pytest.raises(Denied, match="100 of an account's concurrency must stay unreserved"):
        await functions.reserve(NAMES, PLAN)


async def test_any_other_refusal_of_a_reservation_is_not_explained_by_that(
    functions: AwsFunctions, aws: Answers
) -> None:
    aws.refuse("PutFunctionConcurrency", "ResourceNotFoundException", 404)
    with pytest.raises(Denied) as denied:
        await functions.reserve(NAMES, PLAN)
    assert "unreserved" not in str(denied.value)


@pytest.mark.parametrize("state", ["Creating", "Enabling", "Disabling", "Updating"])
@pytest.mark.parametrize("change", [{}, {"BatchSize": 1}], ids=["as wanted", "changed"])
async def test_a_mapping_on_its_way_is_waited_for_and_not_touched(
    functions: AwsFunctions, aws: Answers, state: str, change: dict[str, Any]
) -> None:
    aws.say("ListEventSourceMappings", EventSourceMappings=[{**MAPPING, **change, "State": state}])
    with pytest.raises(NotYet, match=state):
        await functions.attach(NAMES, PLAN)
    assert aws.calls == ["ListEventSourceMappings"]


async def test_a_mapping_is_made_while_the_previous_one_is_deleted(
    functions: AwsFunctions, aws: Answers
) -> None:
    for _ in range(2):
        deleting = {**MAPPING, "State": "Deleting"}
        aws.say("ListEventSourceMappings", EventSourceMappings=[deleting])
    aws.refuse("CreateEventSourceMapping", "ResourceConflictException", 409)
    aws.say("CreateEventSourceMapping", **{**MAPPING, "UUID": "2", "State": "Creating"})
    for _ in range(2):
        with pytest.raises(NotYet):
            await functions.attach(NAMES, PLAN)
    aws.say("ListEventSourceMappings", EventSourceMappings=[{**MAPPING, "State": "Enabled"}])
    await functions.attach(NAMES, PLAN)


async def test_rights_that_have_not_arrived_yet_are_waited_for(
    functions: AwsFunctions, aws: Answers
) -> None:
    aws.say("ListEventSourceMappings", EventSourceMappings=[])
    aws.refuse(
        "CreateEventSourceMapping",
        "InvalidParameterValueException",
        message="The provided execution role does not have permissions to call ReceiveMessage",
    )
    with pytest.raises(NotYet, match="permissions") as busy:
        await functions.attach(NAMES, PLAN)
    assert busy.value.retry_after == 5


async def test_other_wrong_parameters_of_a_mapping_are_refused(
    functions: AwsFunctions, aws: Answers
) -> None:
    aws.say("ListEventSourceMappings", EventSourceMappings=[])
    aws.refuse(
        "CreateEventSourceMapping",
        "InvalidParameterValueException",
        message="Queue visibility timeout: 20 seconds is less than Function timeout: 30 seconds",
    )
    with pytest.raises(Denied, match="visibility timeout"):
        await functions.attach(NAMES, PLAN)


async def test_a_mapping_is_gone_when_it_is_no_longer_listed(
    functions: AwsFunctions, aws: Answers
) -> None:
    enabled, deleting = ({**MAPPING, "State": state} for state in ("Enabled", "Deleting"))
    aws.say("ListEventSourceMappings", EventSourceMappings=[enabled])
    aws.say("DeleteEventSourceMapping", **deleting)
    for _ in range(3):
        aws.say("ListEventSourceMappings", EventSourceMappings=[deleting])
    for _ in range(2):
        with pytest.raises(NotYet, match="Deleting"):
            await functions.detach(NAMES)
    aws.say("ListEventSourceMappings", EventSourceMappings=[])
    assert not await functions.detach(NAMES)
    assert aws.calls.count("DeleteEventSourceMapping") == 1


async def test_a_mapping_that_is_in_use_is_deleted_later(
    functions: AwsFunctions, aws: Answers
) -> None:
    aws.say("ListEventSourceMappings", EventSourceMappings=[{**MAPPING, "State": "Creating"}])
    aws.refuse("DeleteEventSourceMapping", "ResourceInUseException")
    with pytest.raises(NotYet) as busy:
        await functions.detach(NAMES)
    assert busy.value.retry_after == 5


async def test_a_mapping_to_another_queue_is_not_the_batchs(
    functions: AwsFunctions, aws: Answers
) -> None:
    other = {**MAPPING, "State": "Enabled", "EventSourceArn": f"{MAPPING['EventSourceArn']}0"}
    aws.say("ListEventSourceMappings", EventSourceMappings=[other])
    assert not await functions.detach(NAMES)


async def test_every_page_is_read(functions: AwsFunctions, aws: Answers) -> None:
    config = {"FunctionName": NAMES.function, "MemorySize": 512, "Timeout": 30}
    aws.say("ListFunctions", Functions=[{"FunctionName": "another"}], NextMarker="more")
    aws.say("ListFunctions", Functions=[config])
    aws.say("GetFunction", Configuration=config, Concurrency={"ReservedConcurrentExecutions": 10})
    other = {**MAPPING, "FunctionArn": ARN.replace(NAMES.function, "another")}
    aws.say("ListEventSourceMappings", EventSourceMappings=[other], NextMarker="more")
    moment = datetime(2026, 1, 1, tzinfo=UTC)
    aws.say("ListEventSourceMappings", EventSourceMappings=[{**MAPPING, "LastModified": moment}])
    found = [resource async for resource in functions.found(PLAN.prefix)]
    assert [(one.name, dict(one.details)) for one in found] == [
        (NAMES.function, {"state": "Active", "memory": "512 MB", "timeout": "30 s"}),
        (NAMES.function, {"reserved": "10"}),
        ("1", {"state": "unknown", "batch size": "10", "concurrency": "10"}),
    ]
    assert found[-1].made_at == moment


async def test_a_function_deleted_since_it_was_listed_is_not_found(
    functions: AwsFunctions, aws: Answers
) -> None:
    aws.say("ListFunctions", Functions=[{"FunctionName": NAMES.function}])
    aws.refuse("GetFunction", "ResourceNotFoundException", 404)
    aws.say("ListEventSourceMappings", EventSourceMappings=[])
    assert [resource async for resource in functions.found(PLAN.prefix)] == []
