"""Parked runs of every pipeline on real workers, servers and tables: told, listed and retried."""

import base64
import json
import re
import uuid
from collections.abc import AsyncIterator
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import pytest
import pytest_asyncio
from temporalio.client import Client
from temporalio.testing import WorkflowEnvironment

from activities.batches.document_store import SqlLoadStore
from activities.batches.store import SqlBatchStore
from adapters.database.records import SqlLeases
from adapters.files.texts.pool import FileTexts
from adapters.temporal import TemporalOpenRuns
from stack.sample_club import sample_club
from stack.temporal import TUNING, temporal_binary
from tests.support.batches.installation import ROOMY
from tests.support.batches.scripted import PLAN
from tests.support.cli import run_docflow_in_thread
from tests.support.fresh_database import fresh_url
from tests.support.gateway import build_app, served, token
from tests.support.memory.cloud import MemoryCloud
from tests.support.memory.rejected import MemoryRejectedMessages
from tests.support.waiting import eventually
from tests.support.webhook import Receiver, receiving
from workers import catalogue
from workers.batches.register import BATCHES
from workers.batches.resources import BatchResources
from workers.imports.intake import ImportIntake
from workers.imports.register import IMPORTS
from workers.imports.resources import import_resources
from workers.imports.settings import RunSettings
from workers.shared.cli.context import CliContext
from workers.shared.plugin import docflow_plugin
from workers.shared.resources import open_resources
from workers.shared.worker_factory import build_worker
from workers.spreadsheets.register import SPREADSHEETS
from workers.spreadsheets.resources import spreadsheet_resources
from workflows.batches.runs import SweepInput
from workflows.batches.sweeper import BatchSweeper
from workflows.shared import attributes
from workflows.shared.record_workflows import RunSweeper
from workflows.shared.records import RunSweepInput

pytestmark = pytest.mark.asyncio(loop_scope="module")

REGISTRATIONS = Path(__file__).parents[2] / "samples" / "registrations.xlsx"
QUICK = {
    "DOCFLOW_BATCH_SETTLE_SECONDS": "0",
    "DOCFLOW_BATCH_POLL_SECONDS": "1",
    "DOCFLOW_BATCH_HOLD_SECONDS": "0",
}


@dataclass(frozen=True)
class Person:
    """Somebody at a terminal, and the ids of runs that are parked."""

    environment: dict[str, str]
    client: Client
    receiver: Receiver
    spreadsheet: str

    @property
    def notices(self) -> list[dict[str, Any]]:
        """What the webhook was sent."""
        return [json.loads(body) for _, _, body in self.receiver.requests]

    async def json(self, *arguments: str) -> Any:
        """What a command prints for programs."""
        context = CliContext(self.environment)
        option = ("--json",) if arguments[0] == "status" else ("-o", "json")
        done = await run_docflow_in_thread(*arguments, *option, context=context)
        assert done.stdout, done.stderr
        return json.loads(done.stdout)

    async def listed(self, *options: str) -> set[str]:
        """The runs of a list."""
        return {row["answers_at"] for row in await self.json("list", *options)}


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def terminal(tmp_path_factory: pytest.TempPathFactory) -> AsyncIterator[Person]:
    folder = tmp_path_factory.mktemp("parked")
    settings = {
        "DATABASE_URL": fresh_url(),
        "DOCFLOW_BLOB_FOLDER": str(folder / "blobs"),
        "DOCFLOW_SCRATCH": str(folder / "scratch"),
        "USER": "ada",
        **QUICK,
    }
    temporal = await WorkflowEnvironment.start_local(
        dev_server_existing_path=temporal_binary(),
        dev_server_extra_args=[w for value in TUNING for w in ("--dynamic-config-value", value)],
        search_attributes=attributes.ALL,
        plugins=[docflow_plugin()],
    )
    cloud = MemoryCloud()
    with pytest.MonkeyPatch.context() as patch:
        async with (
            receiving() as receiver,
            temporal,
            open_resources(settings | {"DOCFLOW_NOTIFY_WEBHOOK_URL": receiver.url}) as resources,
            FileTexts() as texts,
        ):
            client, database = temporal.client, resources.database
            patch.setenv("TEMPORAL_ADDRESS", client.service_client.config.target_host)
            batches = BatchResources(
                plan=PLAN,
                queues=cloud.queues,
                topic=cloud.topic,
                functions=cloud.functions,
                grants=cloud.grants,
                store=SqlBatchStore(database),
                loads=SqlLoadStore(database),
                texts=texts,
                runs=TemporalOpenRuns(client),
                leases=SqlLeases(database),
                limits=ROOMY,
            )
            club = await sample_club(database)
            imports = import_resources(database, client, RunSettings.read(settings))
            gateway, _ = build_app(
                client, resources, allowed_hosts=("127.0.0.1",), environment=QUICK
            )
            async with served(gateway) as address:
                at = {"DOCFLOW_ADDRESS": address, "DOCFLOW_TOKEN": token("ada", 1, "operator")}
                person = Person(settings | at, client, receiver, "")
                made = await person.json(
                    *("upload", "submit", str(REGISTRATIONS), "--type", "EVENT_PARTICIPANT"),
                    *("--context", str(club.event_id)),
                )
                for file in filter(Path.is_file, (folder / "blobs").rglob("*")):
                    file.unlink()
                await _start_import(client, "T1")
                async with (
                    build_worker(client, IMPORTS, resources, imports),
                    build_worker(client, SPREADSHEETS, resources, spreadsheet_resources(database)),
                    build_worker(client, BATCHES, resources, batches),
                ):
                    person = replace(person, spreadsheet=made["id"])
                    await person.json("batch", "start", "7/1", "--end", "0")
                    await person.json("batch", "finish", "7/1")
                    yield person


async def _start_import(client: Client, task_id: str, **fields: str) -> None:
    """Start the import of a file that is missing."""
    message = {
        "document_type": "equipment",
        "project_id": "P1",
        "task_id": task_id,
        "blob_name": "uploads/missing.csv",
        **fields,
    }
    intake = ImportIntake(client, MemoryRejectedMessages(), queue="import-queue", park_for_days=14)
    await intake.accept(json.dumps(message).encode(), 0, None)


async def test_parked_runs_of_every_pipeline_are_in_one_list(terminal: Person) -> None:
    waiting = {"import/P1/T1", terminal.spreadsheet, "batch/7/1"}

    async def all_listed() -> bool:
        return await terminal.listed("--state", "parked") == waiting

    await eventually(all_listed, seconds=60, pause=0.2)
    assert await terminal.listed("--state", "PARKED", "--pipeline", "batches") == {"batch/7/1"}
    assert await terminal.listed("--state", "parked", "--type", "EVENT_PARTICIPANT") == {
        terminal.spreadsheet
    }
    assert await terminal.listed("--state", "parked", "--type", "it's \\'") == set()
    assert await terminal.listed("--state", "Processing", "--limit", "1") >= {"batch/7/1"}
    # Its queue of imports is missing.
    status = await terminal.json("status")
    for pipeline in ("imports", "spreadsheets", "batches"):
        assert status["pipelines"][pipeline]["counts"]["parked"] == 1
        assert status["pipelines"][pipeline]["waiting"] == 1
    assert {row["answers_at"] for row in status["needs_attention"]} == waiting
    assert await terminal.listed("--needs-attention") == waiting
    # No row says why a batch waits: its run does.
    rows = await terminal.json("list", "--needs-attention", "--pipeline", "batches")
    assert [row["id"] for row in rows] == ["batch/7/1"]
    assert "BATCH_END_FINISHED has not come" in rows[0]["reason"]


async def test_people_of_every_pipeline_are_notified_at_once_how_to_answer(
    terminal: Person,
) -> None:
    waiting = {"import/P1/T1", terminal.spreadsheet, "batch/7/1"}

    async def all_told() -> bool:
        return {each["workflowId"] for each in terminal.notices} == waiting

    await eventually(all_told, seconds=60, pause=0.2)
    assert len({headers["webhook-id"] for _, headers, _ in terminal.receiver.requests}) == 3
    for reported in terminal.notices:
        assert (reported["kind"], reported["state"]) == ("parked", "parked")
        assert reported["givesUpAt"] > reported["waitingSince"]
        assert f"docflow retry {reported['workflowId']}" in reported["steps"][0]["command"]


async def test_all_that_are_parked_for_a_reason_are_retried_together(terminal: Person) -> None:
    waiting = {"import/P1/T1", terminal.spreadsheet, "batch/7/1"}

    async def all_found() -> bool:
        found = await terminal.json("retry", "--all", "--dry-run")
        return set(found["found"]) == waiting

    await eventually(all_found, seconds=60, pause=0.2)
    options = ("--all", "--yes", "--reason", "UPLOADS/missing.csv")
    done = await terminal.json("retry", *options)
    assert (done["found"], done["failed"]) == (["import/P1/T1"], {})

    async def told_again() -> bool:
        reported = [each for each in terminal.notices if each["workflowId"] == "import/P1/T1"]
        return [each["kind"] for each in reported] == ["parked", "parked"]

    # The file is still missing.
    await eventually(told_again, seconds=60, pause=0.2)
    await terminal.json("fail", "import/P1/T1", "--reason", "withdrawn")

    async def told_the_end() -> bool:
        reported = terminal.notices[-1]
        return (reported["kind"], reported["reason"]) == ("failed", "withdrawn (ada)")

    await eventually(told_the_end, seconds=60, pause=0.2)


async def test_the_reason_of_a_retry_is_kept_with_the_run(terminal: Person) -> None:
    async def parked() -> bool:
        return terminal.spreadsheet in await terminal.listed("--state", "parked")

    uuid = terminal.spreadsheet.removeprefix("spreadsheet/")
    await eventually(parked, seconds=60, pause=0.2)
    await terminal.json("retry", uuid, "--reason", "by docflow retry")
    handle = terminal.client.get_workflow_handle(terminal.spreadsheet)
    history = (await handle.fetch_history()).to_json()
    payloads = [base64.b64decode(each) for each in re.findall(r'"data": "([^"]+)"', history)]
    assert any(b"by docflow retry" in each for each in payloads)


async def test_terminated_runs_are_swept_whichever_pipeline_they_are_of(terminal: Person) -> None:
    await _start_import(terminal.client, "T2")
    parked = {"import/P1/T2", terminal.spreadsheet, "batch/7/1"}

    async def all_parked() -> bool:
        return await terminal.listed("--state", "parked") == parked

    await eventually(all_parked, seconds=60, pause=0.2)
    for id in parked:
        await terminal.client.get_workflow_handle(id).terminate("by mistake")

    # Before any sweep has closed their rows.
    shown = [await terminal.json("show", id) for id in sorted(parked)]
    assert {(each["state"], each["own_state"]) for each in shown} == {("cancelled", "terminated")}
    sweeps = [
        (RunSweeper.run, RunSweepInput(pipeline=each.name, closed_for=0), each.task_queue)
        for each in catalogue.PIPELINES
        if any(each.recognise(id) for id in parked)
    ]
    assert len(sweeps) == len(parked)
    for run, order, queue in [*sweeps, (BatchSweeper.run, SweepInput(grace=0), BATCHES.task_queue)]:
        id = f"sweep-{uuid.uuid4().hex}"
        await terminal.client.execute_workflow(run, order, id=id, task_queue=queue)
    assert await terminal.listed("--state", "terminated") == parked
    assert await terminal.listed("--state", "parked", "--pipeline", "imports") == set()

    async def none_is_counted_as_parked() -> bool:
        pipelines = (await terminal.json("status"))["pipelines"].values()
        return not any(each["counts"]["parked"] for each in pipelines)

    await eventually(none_is_counted_as_parked, seconds=60, pause=0.2)
    assert (await terminal.json("status"))["needs_attention"] == []


async def test_the_key_of_a_terminated_import_is_free_and_that_of_a_parked_one_is_named(
    terminal: Person,
) -> None:
    for task_id in ("K1", "K2", "K3"):
        await _start_import(terminal.client, task_id, idempotency_key="suppliers")

        async def is_parked(id: str = f"import/P1/{task_id}") -> bool:
            return id in await terminal.listed("--state", "parked", "--pipeline", "imports")

        await eventually(is_parked, seconds=60, pause=0.2)
        reason = (await terminal.json("show", f"import/P1/{task_id}"))["reason"]
        if task_id == "K2":
            assert "task K1 with the same idempotency key 'suppliers' is parked" in reason
            await terminal.client.get_workflow_handle("import/P1/K1").terminate()
        else:
            assert "uploads/missing.csv is not in the blob store" in reason
