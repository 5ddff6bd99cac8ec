"""The function of a batch, called as Lambda calls it."""

import asyncio
import io
import json
import re
import subprocess
import sys
import zipfile
from collections.abc import AsyncIterator, Callable, Iterator
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import aioboto3
import pytest
import pytest_asyncio
from pydantic import ValidationError
from temporalio.client import Client

from adapters.aws.session import AwsSettings, open_aws
from stack.children import free_port
from stack.loader_function import HANDLER, loader_zip
from stack.temporal import temporal_server
from tests.support.aws import moto
from tests.support.batches.groups import groups_of, groups_with_documents
from tests.support.waiting import eventually
from workers.batches import loader_lambda
from workers.batches.loader_lambda import SPARE_SECONDS, LoaderFunction
from workers.shared.errors import SettingsError
from workers.shared.plugin import docflow_plugin
from workflows.batches.loads import CANARY, GROUP_BYTES, DocumentLoadInput
from workflows.batches.names import API_KEY_SECRET, BatchKey
from workflows.shared.records import Rejection

ROOT = Path(__file__).parents[3]
KEY = BatchKey(case_id=7, batch_id=3)
ENVIRONMENT = {
    "DOCFLOW_BATCH_PREFIX": "docflow",
    "DOCFLOW_CASE_ID": str(KEY.case_id),
    "DOCFLOW_BATCH_ID": str(KEY.batch_id),
    "AWS_REGION": "eu-central-1",
    "AWS_ACCESS_KEY_ID": "a",
    "AWS_SECRET_ACCESS_KEY": "b",
}


@dataclass(frozen=True)
class Invocation:
    """What Lambda hands to a handler beside the event."""

    seconds: float = 30
    aws_request_id: str = "r1"

    def get_remaining_time_in_millis(self) -> int:
        return int(self.seconds * 1000)


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def address(tmp_path_factory: pytest.TempPathFactory) -> AsyncIterator[str]:
    folder = tmp_path_factory.mktemp("temporal")
    async with temporal_server(folder, ui=False, in_memory=True) as server:
        yield server.address


@pytest.fixture(scope="module")
def aws() -> Iterator[AwsSettings]:
    with moto() as settings:
        yield settings


@pytest.fixture
def start(monkeypatch: pytest.MonkeyPatch) -> Iterator[Callable[..., LoaderFunction]]:
    """Starts execution environments that find Temporal at an address."""
    started: list[LoaderFunction] = []

    def start(address: str, **environment: str) -> LoaderFunction:
        monkeypatch.setenv("TEMPORAL_ADDRESS", address)
        started.append(LoaderFunction(ENVIRONMENT | environment))
        return started[-1]

    yield start
    for function in started:
        function.close()


def document(name: str, **changed: Any) -> str:
    return json.dumps(
        {
            "eventType": "DOCUMENT_PROCESSED",
            "caseId": KEY.case_id,
            "batchId": KEY.batch_id,
            "documentId": name,
            "blobName": f"{name}.pdf",
            **changed,
        }
    )


async def keep_secret(aws: AwsSettings, name: str, content: str) -> None:
    session: Any = aioboto3.Session("a", "b", region_name=aws.region)
    async with session.client("secretsmanager", endpoint_url=aws.endpoint_url) as client:
        await client.create_secret(Name=name, SecretString=content)


BAD = [
    "{",
    "[]",
    '{"eventType": "OTHER"}',
    document("of-another", caseId=8),
    document("a/b"),
]
REASONS = {"MalformedBody", "UnknownEventType", "InvalidMessage"}


def event(**bodies: str) -> dict[str, Any]:
    """An event of SQS: message id to body."""
    return {
        "Records": [
            {
                "messageId": message_id,
                "receiptHandle": "handle",
                "body": body,
                "attributes": {"ApproximateReceiveCount": "1"},
                "messageAttributes": {},
                "eventSource": "aws:sqs",
                "eventSourceARN": "arn:aws:sqs:eu-central-1:123456789012:docflow_doc_loader_7_3",
                "awsRegion": "eu-central-1",
            }
            for message_id, body in bodies.items()
        ]
    }


def failures(answer: dict[str, Any]) -> set[str]:
    """What comes again, when the answer has the one shape that Lambda reads."""
    assert json.loads(json.dumps(answer)) == answer
    assert set(answer) == {"batchItemFailures"}
    items = answer["batchItemFailures"]
    assert all(set(item) == {"itemIdentifier"} for item in items)
    return {item["itemIdentifier"] for item in items}


def loads(address: str, *documents: str) -> list[list[DocumentLoadInput]]:
    """What every group of the batch was started with that has the first of the documents."""
    groups = asyncio.run(groups_of(address, KEY, dict.fromkeys(documents, 1)))
    return [group for group in groups if group[0].event.document_id in documents]


def runs(address: str, **at_least: int) -> dict[str, int]:
    """In how many groups each document is, once it is in so many."""
    found = groups_with_documents(asyncio.run(groups_of(address, KEY, at_least)))
    return {name: found[name] for name in at_least}


async def recorded_by(address: str, queue: str, count: int) -> list[Rejection]:
    """So many messages of a queue that a worker is asked to record."""
    client = await Client.connect(address, plugins=[docflow_plugin()])
    found: list[Rejection] = []

    async def is_listed() -> bool:
        # The list is late by a moment.
        found.clear()
        async for run in client.list_workflows("WorkflowType = 'RejectionRecord'"):
            history = await client.get_workflow_handle(run.id).fetch_history()
            payloads = history.events[0].workflow_execution_started_event_attributes.input.payloads
            decoded = await client.data_converter.decode(payloads, [Rejection])
            found.extend(each for each in decoded if each.queue == queue)
        return len(found) >= count

    await eventually(is_listed)
    return found


async def make_queue(settings: AwsSettings, name: str) -> None:
    async with open_aws(settings) as clients:
        await clients.sqs.create_queue(QueueName=name)


async def take_all(settings: AwsSettings, name: str) -> list[tuple[str, str]]:
    """Bodies and reasons of what is in a queue."""
    async with open_aws(settings) as clients:
        url = (await clients.sqs.get_queue_url(QueueName=name))["QueueUrl"]
        got = await clients.sqs.receive_message(
            QueueUrl=url, MaxNumberOfMessages=10, MessageAttributeNames=["All"]
        )
    return [
        (message["Body"], message["MessageAttributes"]["Reason"]["StringValue"])
        for message in got["Messages"]
    ]


def test_loads_are_started_and_canaries_settled(start: Any, address: str) -> None:
    canary = json.dumps({"eventType": CANARY, "caseId": 7, "batchId": 3, "messageId": "c"})
    bodies = {"1": document("first"), "2": document("second"), "3": canary}
    assert failures(start(address).handle(event(**bodies), Invocation())) == set()
    [group] = loads(address, "first")
    assert [load.event.document_id for load in group] == ["first", "second"]


def test_a_redelivered_message_is_settled_and_comes_into_another_group(
    start: Any, address: str
) -> None:
    function = start(address)
    for message_id in ("1", "1", "2"):
        again = event(**{message_id: document("repeated")})
        assert failures(function.handle(again, Invocation())) == set()
    # Whatever comes last finds the checkpoints of the first.
    assert runs(address, repeated=3) == {"repeated": 3}


def test_a_message_was_sent_when_its_sender_says_so_or_else_when_its_queue_took_it(
    start: Any, address: str
) -> None:
    bodies = {"1": document("undated"), "2": document("dated", sentAt="2025-12-31T00:00:00Z")}
    asked = event(**bodies)
    for record in asked["Records"]:
        record["attributes"]["SentTimestamp"] = "1767225600500"
    assert failures(start(address).handle(asked, Invocation())) == set()
    [group] = loads(address, "undated")
    assert [load.event.sent_at for load in group] == [
        datetime(2026, 1, 1, 0, 0, 0, 500_000, UTC),
        datetime(2025, 12, 31, tzinfo=UTC),
    ]


def test_a_time_that_lies_behind_the_one_at_which_its_queue_took_a_message_is_not_used(
    start: Any, address: str, caplog: pytest.LogCaptureFixture
) -> None:
    bodies = {
        "1": document("ahead", sentAt="2099-01-01T00:00:00Z"),
        "2": document("close", sentAt="2026-01-01T00:04:59Z"),
    }
    asked = event(**bodies)
    for record in asked["Records"]:
        record["attributes"]["SentTimestamp"] = "1767225600000"
    assert failures(start(address).handle(asked, Invocation())) == set()
    [group] = loads(address, "ahead")
    assert [load.event.sent_at for load in group] == [
        datetime(2026, 1, 1, tzinfo=UTC),
        datetime(2026, 1, 1, 0, 4, 59, tzinfo=UTC),
    ]
    assert "sentAt 2099-01-01 00:00:00+00:00 is later than 2026-01-01" in caplog.text


def test_large_messages_have_groups_of_their_own(start: Any, address: str) -> None:
    relations = [{"relatedId": f"r-{number}"} for number in range(6_000)]
    bodies = {f"{n}": document(f"big-{n}", relations=relations) for n in range(3)}
    assert GROUP_BYTES / 2 < len(bodies["0"]) < GROUP_BYTES
    assert failures(start(address).handle(event(**bodies), Invocation())) == set()
    big = loads(address, "big-0", "big-1", "big-2")
    assert [len(group) for group in big] == [1, 1, 1]


@pytest.mark.parametrize("body", BAD)
def test_a_message_that_cannot_be_set_aside_is_redelivered_alone(
    start: Any, address: str, aws: AwsSettings, body: str
) -> None:
    function = start(address, AWS_ENDPOINT_URL=aws.endpoint_url)
    answer = function.handle(event(good=document("beside"), bad=body), Invocation())
    assert failures(answer) == {"bad"}
    assert runs(address, beside=1)


def test_an_unreadable_message_is_set_aside_with_the_reason(
    start: Any, address: str, aws: AwsSettings
) -> None:
    queue = "elsewhere_doc_loader_7_3_dlq"
    asyncio.run(make_queue(aws, queue))
    function = start(address, AWS_ENDPOINT_URL=aws.endpoint_url, DOCFLOW_BATCH_PREFIX="elsewhere")
    bodies = dict(zip("abcdef", BAD, strict=False))
    assert failures(function.handle(event(**bodies), Invocation())) == set()
    set_aside = asyncio.run(take_all(aws, queue))
    assert {body for body, _ in set_aside} == set(bodies.values())
    recorded = asyncio.run(recorded_by(address, "elsewhere_doc_loader_7_3", len(bodies)))
    assert {each.message_id: each.body.decode() for each in recorded} == bodies
    assert {each.reason for each in recorded} == REASONS
    assert all(reason.split(":")[0] in REASONS and len(reason) > 20 for _, reason in set_aside)


def test_everything_is_redelivered_in_time_while_temporal_is_unavailable(
    start: Any, address: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    function = start(f"127.0.0.1:{free_port()}")
    bodies = event(**{"1": document("late"), "2": "{"})
    brief = Invocation(SPARE_SECONDS + 0.5)
    assert failures(function.handle(bodies, brief)) == {"1", "2"}
    monkeypatch.setenv("TEMPORAL_ADDRESS", address)
    assert failures(function.handle(event(**{"1": document("late")}), Invocation())) == set()
    assert runs(address, late=1) == {"late": 1}


def test_the_key_of_temporal_is_what_the_secret_holds(
    start: Any, address: str, aws: AwsSettings, monkeypatch: pytest.MonkeyPatch
) -> None:
    keys: list[str | None] = []
    connect = loader_lambda.connect

    async def connect_and_record(**options: Any) -> Client:
        keys.append(options["api_key"])
        return await connect()

    monkeypatch.setattr(loader_lambda, "connect", connect_and_record)
    asyncio.run(keep_secret(aws, "docflow/temporal", " the key\n"))
    secret = {"AWS_ENDPOINT_URL": aws.endpoint_url, API_KEY_SECRET: "docflow/temporal"}
    for function in (start(address), start(address, **secret)):
        assert failures(function.handle(event(**{"1": document("keyed")}), Invocation())) == set()
    assert keys == [None, "the key"]


def test_an_environment_connects_once(
    start: Any, address: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    connected: list[Client] = []
    connect = loader_lambda.connect

    async def connect_and_record(**options: Any) -> Client:
        connected.append(await connect(**options))
        return connected[-1]

    monkeypatch.setattr(loader_lambda, "connect", connect_and_record)
    function = start(address)
    for number in range(3):
        function.handle(event(**{"1": document(f"warm{number}")}), Invocation())
    assert len(connected) == 1
    warm = {"warm0": 1, "warm1": 1, "warm2": 1}
    assert runs(address, **warm) == warm


@pytest.mark.parametrize(
    "other", [{}, {"Records": [{"s3": {}}]}, {"Records": [{"messageId": "", "body": ""}]}, [], None]
)
def test_an_event_of_something_else_fails_as_a_whole(start: Any, address: str, other: Any) -> None:
    with pytest.raises(ValidationError):
        start(address).handle(other, Invocation())


@pytest.mark.parametrize("missing", ["DOCFLOW_CASE_ID", "DOCFLOW_BATCH_ID"])
def test_the_source_itself_is_no_loader(start: Any, address: str, missing: str) -> None:
    with pytest.raises(SettingsError, match=missing):
        start(address, **{missing: ""}).handle(event(**{"1": document("x")}), Invocation())


def test_a_cold_start_loads_no_database_reader_activity_or_workflow() -> None:
    code = f"import sys, {loader_lambda.__name__}; print(*sys.modules)"
    done = subprocess.run(
        [sys.executable, "-c", code], cwd=ROOT, capture_output=True, text=True, check=True
    )
    loaded = done.stdout.split()
    assert loader_lambda.__name__ in loaded
    modules = {name for name in loaded if re.match(r"workflows\.\w+\.", name)}
    sources = {name: (ROOT / f"{name.replace('.', '/')}.py").read_text() for name in modules}
    defining = {name for name, source in sources.items() if "@workflow.defn" in source}
    assert defining == {"workflows.shared.run_notifications"}
    unused = r"(sqlalchemy|aioboto3|activities|adapters\.(?!ports\b)\w+)(\.|$)"
    assert [name for name in loaded if re.match(unused, name)] == []


def test_image_and_package_name_this_handler() -> None:
    image = (ROOT / "deploy" / "lambda" / "Dockerfile").read_text()
    [named] = re.findall(r'CMD \["([^"]+)"\]', image)
    assert named == f"{loader_lambda.__name__}.handler"
    with zipfile.ZipFile(io.BytesIO(loader_zip())) as package:
        [module] = package.namelist()
        packed: dict[str, Any] = {}
        exec(package.read(module), packed)
    assert f"{module.removesuffix('.py')}.handler" == HANDLER
    assert packed["handler"] == loader_lambda.handler
