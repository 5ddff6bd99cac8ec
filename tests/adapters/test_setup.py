"""What `docflow setup` checks and makes, each thing on the real service."""

import json
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack
from pathlib import Path
from typing import Any

import pytest
import pytest_asyncio
from sqlalchemy import text
from temporalio.api.enums.v1 import IndexedValueType
from temporalio.api.operatorservice.v1 import (
    AddSearchAttributesRequest,
    RemoveSearchAttributesRequest,
)
from temporalio.client import Client

from adapters.aws.session import AwsSettings, open_aws
from adapters.database.engine import open_database
from stack.azurite import azurite
from stack.children import free_port
from stack.embedded import aws_pointers
from stack.temporal import TUNING, temporal_server
from tests.support.aws import Cloud
from tests.support.memory.rejected import MemoryRejectedMessages
from tests.support.waiting import eventually
from workers.batches.case_events import CaseEventIntake
from workers.batches.documents import DocumentIntake
from workers.batches.setup import _topic, case_event_requirements, worker_requirements
from workers.imports.intake import ImportIntake
from workers.imports.register import IMPORTS
from workers.shared.connect import connect
from workers.shared.health import Health
from workers.shared.services import requirements, search_attributes, temporal_requirements
from workers.shared.services.bodies import Abandon, Settle
from workers.shared.services.errors import TemporalUnavailable
from workers.shared.services.readiness import Readiness
from workers.shared.services.requirements import Requirement, State, container_of, schema_of
from workers.shared.services.runs import TemporalRuns
from workers.shared.services.temporal_requirements import (
    Connection,
    fairness_of,
    search_attributes_of,
)
from workers.shared.settings.common import BlobSettings, DatabaseSettings
from workflows.batches.names import BatchKey
from workflows.shared import attributes

pytestmark = pytest.mark.asyncio(loop_scope="module")

IMPORT = {"document_type": "equipment", "task_id": "T1", "project_id": "P1", "blob_name": "a.csv"}
CASE_EVENT = {"eventType": "JOB_STARTED", "caseId": 7, "batchId": 1}
DOCUMENT = {
    "eventType": "DOCUMENT_PROCESSED",
    "caseId": 7,
    "batchId": 1,
    "documentId": "D1",
    "blobName": "a.pdf",
}


def connection_of(client: Client) -> Connection:
    async def connected() -> Client:
        return client

    return Connection(connected)


@pytest_asyncio.fixture(loop_scope="module")
async def bare(tmp_path: Path) -> AsyncIterator[Client]:
    """Of a server without search attributes, whose keys take no turns."""
    unfair = [value for value in TUNING if not value.startswith("matching.")]
    server = temporal_server(tmp_path, ui=False, in_memory=True, bare=True, tuning=unfair)
    async with server as started:
        yield await connect(started.address)


async def states(requirement: Requirement) -> list[State]:
    """What is found before, by setting it up, and after."""
    return [
        (await requirement.found()).finding.state,
        (await requirement.made()).finding.state,
        (await requirement.found()).finding.state,
    ]


async def test_search_attributes_are_made_and_messages_wait_for_them(
    bare: Client, rejected: MemoryRejectedMessages, monkeypatch: pytest.MonkeyPatch
) -> None:
    requirement = search_attributes_of(connection_of(bare))
    imports = ImportIntake(bare, rejected, queue="q")
    documents = DocumentIntake(bare, BatchKey(case_id=7, batch_id=1), "docflow_doc_loader_7_1")
    events = CaseEventIntake(bare, rejected, queue="q")
    sent = (
        (imports, json.dumps(IMPORT).encode()),
        (documents, json.dumps(DOCUMENT).encode()),
        (events, json.dumps(CASE_EVENT).encode()),
    )
    for intake, body in sent:
        verdict = await intake.accept(body, 0, "m")
        assert isinstance(verdict, Abandon) and "docflow setup" in verdict.reason
        # Nothing more is received: deliveries would be used up, and the queue dead-letters then.
        assert not await intake.ready()
    with pytest.raises(TemporalUnavailable, match="run `docflow setup`"):
        await TemporalRuns(bare, {}).pipeline(IMPORTS)
    found = await requirement.found()
    names = ", ".join(key.name for key in attributes.ALL)
    assert found.details.startswith(f"{names} in namespace default at 127.0.0.1:")
    assert "`temporal operator search-attribute create --namespace default" in found.details
    assert await states(requirement) == [State.MISSING, State.MADE, State.OK]
    watched = await requirement.watched()
    assert watched is not None and watched.is_there
    for intake, body in sent[:2]:
        assert isinstance(await intake.accept(body, 0, "m"), Settle)
        assert await intake.ready()
    monkeypatch.setattr(temporal_requirements, "QUERY_SECONDS", 0)
    await bare.operator_service.remove_search_attributes(
        RemoveSearchAttributesRequest(namespace=bare.namespace, search_attributes=["State"])
    )

    async def is_noticed() -> bool:
        seen = await requirement.watched()
        return seen is not None and (seen.problem or "").startswith("search attributes: State in")

    await eventually(is_noticed)


async def test_search_attributes_of_another_type_are_named_and_left_alone(bare: Client) -> None:
    kinds = {"Pipeline": IndexedValueType.INDEXED_VALUE_TYPE_TEXT}
    await bare.operator_service.add_search_attributes(
        AddSearchAttributesRequest(namespace=bare.namespace, search_attributes=kinds)
    )
    requirement = search_attributes_of(connection_of(bare))
    found = await requirement.made()
    assert found.finding.state is State.DIFFERS and found.problem is not None
    assert "Pipeline is Text, not Keyword" in found.details
    assert await search_attributes.missing(bare)


@pytest.fixture
def patient(monkeypatch: pytest.MonkeyPatch) -> None:
    """The trial of fairness starts and removes 84 runs, which takes a busy machine its time."""
    monkeypatch.setattr(requirements, "CHECK_SECONDS", 60.0)


@pytest.mark.usefixtures("patient")
async def test_keys_take_turns_where_fairness_is_on(client: Client) -> None:
    async def is_fair() -> bool:
        found = await fairness_of(connection_of(client)).made()
        return found.finding.state is State.OK

    # On a busy machine the runs of the second key may come to their queue too late for a trial.
    await eventually(is_fair)

    async def nothing_is_left() -> bool:
        return (await client.count_workflows("WorkflowType = 'DocflowSetup'")).count == 0

    await eventually(nothing_is_left)


@pytest.mark.usefixtures("patient")
async def test_keys_that_take_no_turns_are_a_warning(bare: Client) -> None:
    found = await fairness_of(connection_of(bare)).made()
    assert found.finding.state is State.MISSING
    assert "delays all others; set matching.enableFairness" in found.details
    assert found.problem is None


async def test_a_schema_is_made(empty_url: str) -> None:
    async with open_database(empty_url) as database:
        requirement = schema_of(database, DatabaseSettings(url=empty_url))
        assert await states(requirement) == [State.MISSING, State.MADE, State.OK]
        async with database.transaction() as connection:
            await connection.execute(text("UPDATE alembic_version SET version_num = 'later'"))
        assert (await requirement.made()).finding.state is State.DIFFERS


async def test_a_database_that_does_not_answer_is_no_missing_schema() -> None:
    url = f"postgresql://docflow@127.0.0.1:{free_port()}/docflow"
    async with open_database(url) as database:
        requirement = schema_of(database, DatabaseSettings(url=url))
        health = Health(ready=True)
        assert await Readiness([requirement], health).watched()
        assert "database is not available" in health.problems[0]
        assert (await requirement.made()).finding.state is State.UNAVAILABLE


async def test_a_container_is_made(tmp_path: Path) -> None:
    async with azurite(tmp_path) as connection_string:
        settings = BlobSettings(connection_string=connection_string, container="documents")
        requirement = container_of(settings)
        assert await states(requirement) == [State.MISSING, State.MADE, State.OK]
    assert (await requirement.found()).finding.state is State.UNAVAILABLE


async def test_a_folder_is_made(tmp_path: Path) -> None:
    settings = BlobSettings(root=tmp_path / "blobs", container="documents")
    requirement = container_of(settings)
    assert await states(requirement) == [State.MISSING, State.MADE, State.OK]
    assert (tmp_path / "blobs" / "documents").is_dir()
    (tmp_path / "file").write_text("")
    within_a_file = container_of(BlobSettings(root=tmp_path / "file", container="documents"))
    assert "correct DOCFLOW_BLOB_FOLDER" in (await within_a_file.made()).details


def _settings(cloud: Cloud, topic: str, queue: str) -> dict[str, str]:
    account_and_region = cloud.installed.topic_arn.rsplit(":", 1)[0]
    queues = cloud.installed.case_events_queue_url.rsplit("/", 1)[0]
    return {
        **aws_pointers(cloud.settings),
        "DOCFLOW_BATCH_TOPIC_ARN": f"{account_and_region}:{topic}",
        "DOCFLOW_BATCH_SOURCE_FUNCTION": cloud.installed.source_function,
        "DOCFLOW_CASE_EVENTS_QUEUE_URL": f"{queues}/{queue}",
    }


@pytest.mark.parametrize("fifo", ["", ".fifo"])
async def test_topic_and_queues_are_made_on_aws(some_cloud: Cloud, fifo: str) -> None:
    settings = _settings(some_cloud, f"setup-topic{len(fifo)}", f"setup-events{fifo}")
    async with AsyncExitStack() as stack:
        topic, function = await stack.enter_async_context(worker_requirements(settings))
        queue, dead = await stack.enter_async_context(case_event_requirements(settings))
        assert (await dead.found()).finding.state is State.UNKNOWN
        for each in (topic, queue):
            assert await states(each) == [State.MISSING, State.MADE, State.OK]
        assert (await function.found()).finding.state is State.OK
        sns: Any = some_cloud.clients.sns
        await sns.delete_topic(TopicArn=settings["DOCFLOW_BATCH_TOPIC_ARN"])
        later = await topic.watched()
        assert later is not None and "there is no topic" in (later.problem or "")
        found = await dead.found()
        assert (found.finding.state, found.details) == (State.OK, f"setup-events_dlq{fifo}")


async def test_what_exists_in_another_form_is_named_and_left_alone(some_cloud: Cloud) -> None:
    sqs: Any = some_cloud.clients.sqs
    url = (await sqs.create_queue(QueueName="plain-events"))["QueueUrl"]
    settings = _settings(some_cloud, "other-topic", "plain-events")
    elsewhere = settings["DOCFLOW_BATCH_TOPIC_ARN"].replace("eu-central-1", "eu-west-1")
    settings = {**settings, "DOCFLOW_BATCH_TOPIC_ARN": elsewhere}
    async with AsyncExitStack() as stack:
        queue, dead = await stack.enter_async_context(case_event_requirements(settings))
        assert (await queue.made()).finding.state is State.OK
        found = await dead.made()
        assert (found.finding.state, found.problem) == (State.MISSING, None)
        assert "docflow changes no queue that exists" in found.details
    got = await sqs.get_queue_attributes(QueueUrl=url, AttributeNames=["All"])
    assert "RedrivePolicy" not in got["Attributes"]


async def test_a_source_function_is_never_made(some_cloud: Cloud) -> None:
    settings = _settings(some_cloud, "setup-function", "setup-function")
    settings["DOCFLOW_BATCH_SOURCE_FUNCTION"] = "no-such-function"
    async with worker_requirements(settings) as (_, function):
        found = await function.made()
    assert found.finding.state is State.MISSING
    assert "there is no function no-such-function; no batch can have a function" in found.details


async def test_an_aws_that_does_not_answer_is_unavailable() -> None:
    nowhere = f"http://127.0.0.1:{free_port()}"
    async with open_aws(
        AwsSettings("eu-central-1", nowhere, "test", "test", attempts=1)
    ) as clients:
        requirement = _topic(clients, "arn:aws:sns:eu-central-1:1:t")
        assert (await requirement.found()).finding.state is State.UNAVAILABLE
