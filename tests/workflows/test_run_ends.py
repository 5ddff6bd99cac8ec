"""The end of a run: one line, and one more in the counter, however often it is replayed."""

import logging
import re
from collections.abc import Mapping
from typing import Any

import pytest
from temporalio.client import WorkflowFailureError
from temporalio.runtime import BUFFERED_METRIC_KIND_COUNTER, MetricBuffer, Runtime, TelemetryConfig
from temporalio.worker import Worker

from activities.shared.records import RunSweep
from tests.support.imports.scripted import ScriptedImport, import_message, permanent
from tests.support.scripted import scripted
from tests.support.waiting import eventually
from workers.shared.connect import connect
from workflows.imports.document_import import DocumentImport
from workflows.imports.runs import ImportInput
from workflows.shared import attributes
from workflows.shared.contracts import Answer
from workflows.shared.record_workflows import RunSweeper
from workflows.shared.records import DOCUMENTS, RunsSwept, RunSweepInput


@pytest.fixture
def ends(caplog: pytest.LogCaptureFixture) -> Any:
    caplog.set_level(logging.INFO, "temporalio.workflow")
    return lambda: [
        record.getMessage()
        for record in caplog.records
        if re.search(r" after \d+\.\d s", record.getMessage())
    ]


async def test_every_way_to_end_is_logged_and_counted_once(server: Any, ends: Any) -> None:
    buffer = MetricBuffer(1000)
    runtime = Runtime(telemetry=TelemetryConfig(metrics=buffer))
    address = server.client.service_client.config.target_host
    client = await connect(address, runtime=runtime)

    async def run(script: ScriptedImport, task: str, answer: str | None = None) -> None:
        message = import_message().model_copy(update={"task_id": task})
        # Without a cache, every step replays the run from its beginning.
        async with Worker(
            client,
            task_queue=task,
            workflows=[DocumentImport],
            activities=script.activities(),
            max_cached_workflows=0,
        ):
            handle = await client.start_workflow(
                DocumentImport.run,
                ImportInput(message=message),
                id=message.workflow_id,
                task_queue=task,
                search_attributes=attributes.at_start("imports", "equipment", "p1"),
            )
            if answer is not None:

                async def parked() -> bool:
                    return (await handle.query(DocumentImport.status)).waiting_since is not None

                await eventually(parked)
                await handle.execute_update(answer, Answer(reason="so"))
            try:
                await handle.result()
            except WorkflowFailureError:
                assert answer == "fail"

    await run(ScriptedImport(), "ends-completed")
    await run(ScriptedImport(failures=[permanent()]), "ends-skipped", "skip")
    await run(ScriptedImport(failures=[permanent()]), "ends-failed", "fail")

    lines = [re.sub(r"after \d+\.\d s", "after", line) for line in ends()]
    assert [re.sub(r" \(\{.*", "", line) for line in lines] == [
        "equipment completed after, 3 created, 1 rejected",
        "equipment skipped after, 2 created",
        "equipment failed after, 2 created",
    ]
    counted: Mapping[str, int] = {}
    for update in buffer.retrieve_updates():
        if update.metric.name == DOCUMENTS:
            assert update.metric.kind == BUFFERED_METRIC_KIND_COUNTER
            known = update.attributes
            assert (known["pipeline"], known["type"]) == ("imports", "equipment")
            state = str(known["state"])
            counted = {**counted, state: counted.get(state, 0) + int(update.value)}
    assert counted == {"completed": 1, "skipped": 1, "failed": 1}


async def test_a_sweep_is_logged_and_is_no_document(server: Any, ends: Any) -> None:
    buffer = MetricBuffer(1000)
    runtime = Runtime(telemetry=TelemetryConfig(metrics=buffer))
    client = await connect(server.client.service_client.config.target_host, runtime=runtime)
    script = scripted(RunSweep, results={"sweep": RunsSwept()})
    async with Worker(
        client,
        task_queue="ends-sweep",
        workflows=[RunSweeper],
        activities=script.activities(),
        max_cached_workflows=0,
    ):
        await client.execute_workflow(
            RunSweeper.run,
            RunSweepInput(pipeline="imports"),
            id="ends-sweep",
            task_queue="ends-sweep",
            search_attributes=attributes.at_start("imports", "sweep", "p1"),
        )
    assert [line.startswith("sweep completed after") for line in ends()] == [True]
    assert [each for each in buffer.retrieve_updates() if each.metric.name == DOCUMENTS] == []
