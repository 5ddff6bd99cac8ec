"""The intake with a real Temporal, and the same messages through both of its hosts."""

import asyncio
import json
import random
from collections import Counter
from collections.abc import AsyncIterator
from datetime import timedelta
from pathlib import Path
from typing import Any

import azure.functions as func
import pytest
from azure.functions.meta import Datum
from azure.functions.servicebus import ServiceBusMessageInConverter
from azure.servicebus import ServiceBusMessage, ServiceBusSubQueue
from temporalio.client import Client, WorkflowExecutionStatus
from temporalio.common import SearchAttributeKey

from adapters.ports.records import REJECTED_BODY_BYTES
from emulators.service_bus import QueueSettings as EmulatedQueue
from emulators.service_bus import ServiceBusEmulator
from emulators.tests.clients import quick_client
from stack.temporal import temporal_server
from tests.support.memory.rejected import MemoryRejectedMessages
from tests.support.waiting import eventually
from workers.imports.function_app import GivenBack, build
from workers.imports.intake import ImportIntake
from workers.imports.messages import read_message
from workers.imports.settings import QueueSettings
from workers.shared.bridges.consumer import Accept, BridgeTotals, Retry
from workers.shared.bridges.service_bus import ServiceBusBridge
from workers.shared.plugin import docflow_plugin
from workers.shared.services.bodies import KEY_REUSED, Abandon, DeadLetter, Settle, Verdict
from workflows.imports.messages import DocumentType
from workflows.shared import attributes
from workflows.shared.contracts import MEMO, digest_of

QUEUE = "import-queue"
ONCE = Retry(first_pause=0.01, longest_pause=0.01, hold=0)


@pytest.fixture
async def client(tmp_path: Path) -> AsyncIterator[Client]:
    async with temporal_server(tmp_path, ui=False, in_memory=True) as server:
        yield await Client.connect(server.address, plugins=[docflow_plugin()])


def valid(kind: DocumentType, task_id: str) -> dict[str, Any]:
    return {
        "document_type": kind.value,
        "task_id": task_id,
        "project_id": "P1",
        "blob_name": "incoming/file.bin",
        "target_blob_name": "plans/file.xer",
        "service_id": "S1",
        "extraction_id": "X1",
        "primavera_project_id": "PLANT",
        "payload": {"level": 2, "column": "area", "value": "North"},
    }


def generated(count: int) -> list[tuple[str, bytes]]:
    """Message ids and bodies: valid ones of all types, malformed, unknown, invalid, repeated."""
    dice = random.Random(2024)
    bodies: list[bytes] = []
    for number in range(count):
        kind = list(DocumentType)[number % len(DocumentType)]
        body = valid(kind, f"T{number}")
        raw = json.dumps(body).encode()
        match dice.randrange(8):
            case 0:
                raw = raw[: dice.randrange(len(raw))]
            case 1:
                raw = json.dumps({**body, "document_type": f"type-{number}"}).encode()
            case 2:
                del body[dice.choice(["task_id", "project_id"])]
                raw = json.dumps(body).encode()
            case 3 if bodies:
                raw = dice.choice(bodies)
            case 4:
                raw = dice.randbytes(50)
            case _:
                pass
        bodies.append(raw)
    return [(f"m{number}", raw) for number, raw in enumerate(bodies)]


class Recorded:
    """An entry point that remembers every verdict."""

    def __init__(self, accept: Accept) -> None:
        self._accept = accept
        self.verdicts: dict[str | None, Verdict] = {}

    async def accept(self, raw: bytes, deliveries: int, message_id: str | None) -> Verdict:
        verdict = await self._accept(raw, deliveries, message_id)
        self.verdicts[message_id] = verdict
        return verdict


def trigger(raw: bytes, message_id: str, delivery: int = 1) -> func.ServiceBusMessage:
    """A message as the Functions host passes it."""
    return ServiceBusMessageInConverter.decode(
        Datum(raw, "bytes"),
        trigger_metadata={
            "MessageId": Datum(json.dumps(message_id), "json"),
            "DeliveryCount": Datum(str(delivery), "json"),
            "UserProperties": Datum("{}", "json"),
        },
    )


def function_of(app: func.FunctionApp) -> Any:
    [function] = app.get_functions()
    return function.get_user_function()


async def through_the_bridge(messages: list[tuple[str, bytes]], accept: Accept) -> BridgeTotals:
    async with ServiceBusEmulator([EmulatedQueue(QUEUE, 30, 10)]) as emulator:
        sender = quick_client(emulator.connection_string)
        async with sender, sender.get_queue_sender(QUEUE) as queue:
            await queue.send_messages([ServiceBusMessage(raw, message_id=i) for i, raw in messages])
        # One at a time, so that repeated messages meet each other in the same order.
        settings = QueueSettings(
            connection_string=emulator.connection_string,
            queue_name=QUEUE,
            max_messages=1,
            max_wait_seconds=1,
        )
        totals = await ServiceBusBridge(settings, accept).run(asyncio.Event(), drain=True)
        reader = quick_client(emulator.connection_string)
        dead = reader.get_queue_receiver(QUEUE, sub_queue=ServiceBusSubQueue.DEAD_LETTER)
        async with reader, dead:
            kept = await dead.peek_messages(max_message_count=len(messages))
        assert len(kept) == totals.dead_lettered
        return totals


async def rows_of(rejected: MemoryRejectedMessages) -> set[tuple[Any, ...]]:
    rows = await rejected.list(1000)
    return {(row.message_id, row.reason, row.description, row.body) for row in rows}


async def ids_of(client: Client) -> set[str]:
    return {execution.id async for execution in client.list_workflows()}


async def test_bridge_and_function_reach_the_same_outcomes(tmp_path: Path) -> None:
    messages = generated(200)
    outcomes: list[tuple[Any, ...]] = []
    for host in ("bridge", "function"):
        async with temporal_server(tmp_path / host, ui=False, in_memory=True) as server:
            client = await Client.connect(server.address, plugins=[docflow_plugin()])
            rejected = MemoryRejectedMessages()
            recorded = Recorded(ImportIntake(client, rejected, queue=QUEUE).accept)
            if host == "bridge":
                totals = await through_the_bridge(messages, recorded.accept)
                assert totals.settled + totals.dead_lettered == len(messages)
            else:
                run = function_of(build(recorded.accept, ONCE))
                for message_id, raw in messages:
                    await run(trigger(raw, message_id))
            async with asyncio.timeout(60):
                expected = {v.workflow_id for v in recorded.verdicts.values() if type(v) is Settle}
                while (started := await ids_of(client)) != expected:
                    await asyncio.sleep(0.05)
            outcomes.append((recorded.verdicts, await rows_of(rejected), started))
    assert outcomes[0] == outcomes[1]
    verdicts, rows, started = outcomes[0]
    assert len(verdicts) == 200
    assert 40 < len(rows) < 160
    assert 40 < len(started) < 160


@pytest.mark.parametrize(
    ("verdict", "size", "given_back"),
    [
        (Settle("import/P1/T1"), 10, False),
        (DeadLetter("MalformedBody", "no"), REJECTED_BODY_BYTES, False),
        (DeadLetter("MalformedBody", "no"), REJECTED_BODY_BYTES + 1, True),
        (Abandon("away"), 10, True),
    ],
)
async def test_the_function_completes_only_what_is_kept_elsewhere(
    verdict: Verdict, size: int, given_back: bool
) -> None:
    seen: list[tuple[int, int, str | None]] = []

    async def accept(raw: bytes, deliveries: int, message_id: str | None) -> Verdict:
        seen.append((len(raw), deliveries, message_id))
        return verdict

    run = function_of(build(accept, ONCE))
    message = trigger(b"x" * size, "m1", delivery=3)
    if given_back:
        with pytest.raises(GivenBack):
            await run(message)
    else:
        await run(message)
    assert seen == [(size, 2, "m1")]


async def test_an_accepted_message_is_a_run_with_a_summary(client: Client) -> None:
    intake = ImportIntake(client, MemoryRejectedMessages(), queue=QUEUE, park_for_days=3)
    raw = json.dumps({**valid(DocumentType.EQUIPMENT, "T1"), "strategy": "replace"}).encode()
    assert await intake.accept(raw, 0, "m1") == Settle("import/P1/T1")

    handle = client.get_workflow_handle("import/P1/T1")
    described = await handle.describe()
    assert (described.workflow_type, described.task_queue) == ("DocumentImport", "imports")
    assert await described.static_summary() == ("Import of file.bin as equipment into project P1")
    assert "Strategy replace" in (await described.static_details() or "")
    shown = {pair.key.name: pair.value for pair in described.typed_search_attributes}
    assert shown == {
        "Pipeline": "imports",
        "DocumentType": "equipment",
        "ProjectId": "P1",
        "State": "running",
        "NeedsAttention": False,
    }
    history = await handle.fetch_history()
    started = history.events[0].workflow_execution_started_event_attributes
    order = json.loads(started.input.payloads[0].data)
    assert order["park_for_seconds"] == 3 * 24 * 3600
    assert order["message"]["blob_name"] == "incoming/file.bin"


STARTED = Settle("import/P1/T1")
AGAIN = Settle("import/P1/T1", duplicate=True)


def equipment(**changed: Any) -> bytes:
    return json.dumps({**valid(DocumentType.EQUIPMENT, "T1"), **changed}).encode()


async def test_a_message_that_comes_again_is_settled(client: Client) -> None:
    rejected = MemoryRejectedMessages()
    intake = ImportIntake(client, rejected, queue=QUEUE)
    verdicts = await asyncio.gather(*(intake.accept(equipment(), 0, f"m{n}") for n in range(20)))
    assert Counter(verdicts) == {STARTED: 1, AGAIN: 19}
    body = valid(DocumentType.EQUIPMENT, "T1") | {"all_or_nothing": False}
    spelled_out = json.dumps(dict(reversed(body.items())), indent=4).encode()
    assert await intake.accept(spelled_out, 0, "m21") == AGAIN
    assert await rejected.list() == []


async def test_another_message_of_a_task_is_refused_and_recorded(client: Client) -> None:
    rejected = MemoryRejectedMessages()
    intake = ImportIntake(client, rejected, queue=QUEUE)
    assert await intake.accept(equipment(), 0, "m1") == STARTED
    others = [equipment(blob_name=f"{number}.csv") for number in range(2)]
    for other in others:
        verdict = await intake.accept(other, 0, "m1")
        assert isinstance(verdict, DeadLetter)
        assert verdict.reason == KEY_REUSED
        assert "import/P1/T1 was started by a message with other content" in verdict.description
    kept = [(row.message_id, row.reason, row.body.encode()) for row in await rejected.list()]
    assert kept == [("m1", KEY_REUSED, other) for other in reversed(others)]


async def test_a_task_whose_run_was_terminated_runs_again(client: Client) -> None:
    intake = ImportIntake(client, MemoryRejectedMessages(), queue=QUEUE)
    assert await intake.accept(equipment(), 0, "m1") == STARTED
    handle = client.get_workflow_handle("import/P1/T1")
    first = await handle.describe()
    await handle.terminate()
    assert await intake.accept(equipment(blob_name="corrected.csv"), 0, "m2") == STARTED
    last = await handle.describe()
    assert last.run_id != first.run_id
    assert last.status is WorkflowExecutionStatus.RUNNING


@pytest.mark.parametrize("digest", [None, digest_of(read_message(equipment()))])
async def test_a_task_that_is_over_is_not_run_again(client: Client, digest: str | None) -> None:
    """Also when an earlier release started it, which kept no digest."""
    intake = ImportIntake(client, MemoryRejectedMessages(), queue=QUEUE)
    handle = await client.start_workflow(
        "DocumentImport",
        id="import/P1/T1",
        task_queue="imports",
        run_timeout=timedelta(seconds=1),
        memo={} if digest is None else {MEMO: digest},
    )

    async def is_over() -> bool:
        return (await handle.describe()).status is WorkflowExecutionStatus.TIMED_OUT

    await eventually(is_over)
    assert await intake.accept(equipment(), 0, "m1") == AGAIN
    other = await intake.accept(equipment(blob_name="b.csv"), 0, "m1")
    assert other == AGAIN if digest is None else isinstance(other, DeadLetter)


async def test_a_server_without_our_search_attributes_gives_messages_back(
    client: Client, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(attributes, "PIPELINE", SearchAttributeKey.for_keyword("Unregistered"))
    intake = ImportIntake(client, MemoryRejectedMessages(), queue=QUEUE)
    raw = json.dumps(valid(DocumentType.EQUIPMENT, "T1")).encode()
    verdict = await intake.accept(raw, 0, "m1")
    assert isinstance(verdict, Abandon)
    assert "Unregistered" in verdict.reason


async def test_the_intake_is_ready_only_with_temporal_and_the_database(client: Client) -> None:
    rejected = MemoryRejectedMessages()
    intake = ImportIntake(client, rejected, queue=QUEUE)
    assert await intake.ready()
    rejected.away = True
    assert not await intake.ready()


async def test_an_unavailable_temporal_gives_the_message_back(tmp_path: Path) -> None:
    async with temporal_server(tmp_path, ui=False, in_memory=True) as server:
        client = await Client.connect(server.address, plugins=[docflow_plugin()])
    intake = ImportIntake(client, MemoryRejectedMessages(), queue=QUEUE)
    raw = json.dumps(valid(DocumentType.EQUIPMENT, "T1")).encode()
    assert isinstance(await intake.accept(raw, 0, "m1"), Abandon)
    assert not await intake.ready()
