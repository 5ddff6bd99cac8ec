"""An installation from nothing: processes say what is missing, `docflow setup` makes it."""

import asyncio
import json
import os
import signal
import urllib.error
import urllib.request
from collections.abc import AsyncIterator, Mapping
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
import pytest_asyncio
from azure.servicebus import ServiceBusMessage
from azure.servicebus.aio import ServiceBusClient
from temporalio.client import WorkflowExecutionStatus

from adapters.database.schema import current
from stack.children import free_port
from stack.embedded import service_bus
from stack.temporal import temporal_server
from tests.support.cli import run_docflow_in_thread
from tests.support.forks import PipedDocflow
from tests.support.processes import says, start
from tests.support.waiting import eventually
from workers.shared.cli.context import CliContext
from workers.shared.connect import connect
from workers.shared.services.runs import TemporalRuns
from workflows.imports.runs import TASK_QUEUE

pytestmark = pytest.mark.asyncio(loop_scope="module")

MESSAGE = {
    "document_type": "equipment",
    "task_id": "T1",
    "project_id": "P1",
    "blob_name": "no-such-file.csv",
}
WORKER = ("worker", "imports", "--with-bridge")
BRIDGE = ("bridge", "service-bus")


@dataclass
class BareInstallation:
    """What there is before docflow is set up: a bare namespace, and a queue."""

    folder: Path
    settings: Mapping[str, str]
    temporal_port: int
    temporal: AsyncExitStack

    async def start_temporal(self) -> None:
        server = temporal_server(
            self.folder / "temporal", port=self.temporal_port, ui=False, bare=True
        )
        await self.temporal.enter_async_context(server)

    async def send(self) -> None:
        queue = self.settings["AZURE_SERVICE_BUS_CONNECTION_STRING"]
        async with (
            ServiceBusClient.from_connection_string(queue) as client,
            client.get_queue_sender("import-queue") as sender,
        ):
            await sender.send_messages(ServiceBusMessage(json.dumps(MESSAGE), message_id="m1"))

    async def deliveries(self) -> list[int]:
        """Of each message in the queue, so far."""
        queue = self.settings["AZURE_SERVICE_BUS_CONNECTION_STRING"]
        async with (
            ServiceBusClient.from_connection_string(queue) as client,
            client.get_queue_receiver("import-queue") as receiver,
        ):
            return [each.delivery_count or 0 for each in await receiver.peek_messages(10)]

    async def docflow(self, *arguments: str) -> tuple[int, str]:
        """Run a command in a process of its own."""
        process = await start(self.settings, *arguments)
        output, errors = await asyncio.wait_for(process.communicate(), 120)
        assert b"Traceback" not in errors, errors.decode()
        assert process.returncode is not None
        return process.returncode, output.decode() + errors.decode()

    async def setup(self) -> tuple[int, str]:
        """Run `docflow setup` inside of this process."""
        return await self._inside("setup")

    async def doctor(self, *options: str) -> tuple[int, str]:
        """Run `docflow doctor` inside of this process."""
        return await self._inside("doctor", *options)

    async def _inside(self, *arguments: str) -> tuple[int, str]:
        settings = {**self.settings, "DOCFLOW_CONTEXTS": str(self.folder / "contexts.json")}
        done = await run_docflow_in_thread(*arguments, context=CliContext(settings))
        return done.exit_code, done.output


@pytest_asyncio.fixture(loop_scope="module")
async def site(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, empty_url: str
) -> AsyncIterator[BareInstallation]:
    port = free_port()
    async with (
        AsyncExitStack() as temporal,
        service_bus(tmp_path, ["import-queue:lock=5,max=2"]) as queue,
    ):
        settings = {
            "PATH": os.environ["PATH"],
            "TEMPORAL_ADDRESS": f"127.0.0.1:{port}",
            "AZURE_SERVICE_BUS_CONNECTION_STRING": queue,
            "DOCFLOW_BLOB_FOLDER": str(tmp_path / "blobs"),
            "DATABASE_URL": empty_url,
            "DOCFLOW_SCRATCH": str(tmp_path / "scratch"),
            "DOCFLOW_JWT_KEY": "a key that is at least 32 bytes long",
        }
        # Commands inside this process find Temporal there.
        monkeypatch.setenv("TEMPORAL_ADDRESS", settings["TEMPORAL_ADDRESS"])
        site = BareInstallation(tmp_path, settings, port, temporal)
        await site.start_temporal()
        yield site


@dataclass(frozen=True)
class Running:
    """A process of docflow and its health."""

    process: PipedDocflow
    port: int

    async def health(self, path: str = "ready") -> tuple[int, Any]:
        """Status and answer; 0 where nothing listens yet."""

        def fetch() -> tuple[int, Any]:
            url = f"http://127.0.0.1:{self.port}/health/{path}"
            try:
                with urllib.request.urlopen(url, timeout=20) as response:
                    return response.status, json.load(response)
            except urllib.error.HTTPError as error:
                return error.code, json.load(error)
            except urllib.error.URLError:
                return 0, {}

        return await asyncio.to_thread(fetch)

    async def ready(self) -> bool:
        return (await self.health())[0] == 200

    async def problems(self) -> str:
        """What is wrong, as soon as something is."""
        found: list[str] = []

        async def some() -> bool:
            found[:] = (await self.health())[1].get("problems", [])
            return bool(found)

        await eventually(some)
        return "; ".join(found)


@asynccontextmanager
async def running(
    site: BareInstallation, *command: str, option: str = "--health-port"
) -> AsyncIterator[Running]:
    port = free_port()
    process = await start(site.settings, *command, option, str(port))
    try:
        yield Running(process, port)
    finally:
        process.send_signal(signal.SIGTERM)
        _, errors = await asyncio.wait_for(process.communicate(), 30)
        assert process.returncode == 0, errors.decode()


async def test_processes_wait_for_what_docflow_setup_makes(site: BareInstallation) -> None:
    await site.send()
    client = await connect(site.settings["TEMPORAL_ADDRESS"])
    async with (
        running(site, *WORKER) as worker,
        running(site, "gateway", option="--port") as gateway,
    ):
        for each in (worker, gateway):
            await says(each.process, b"not ready: search attributes: Pipeline")
            await says(each.process, b"not ready: database schema")
            said = await each.problems()
            assert "run `docflow setup`" in said and "database schema" in said
            assert (await each.health("live"))[0] == 200
        code, said = await site.doctor()
        assert code == 1 and "missing" in said
        assert "gateway                      left out          no gateway is known" in said
        # The check has changed nothing, and nothing has been polled or received.
        assert await current(site.settings["DATABASE_URL"]) is None
        assert await TemporalRuns(client, {}).pollers(TASK_QUEUE) == 0
        assert await site.deliveries() == [0]

        code, said = await site.docflow("setup")
        assert code == 0, said
        assert "search attributes            made" in said and "batches" in said
        assert (await site.doctor())[0] == 0
        await eventually(worker.ready)
        await eventually(gateway.ready)
        run = client.get_workflow_handle("import/P1/T1")

        async def is_started() -> bool:
            found = [each async for each in client.list_workflows("WorkflowType='DocumentImport'")]
            return [each.id for each in found] == [run.id]

        await eventually(is_started)
        assert (await run.describe()).status is WorkflowExecutionStatus.RUNNING
        assert await site.deliveries() == []


async def test_readiness_follows_what_fails_later(site: BareInstallation) -> None:
    assert (await site.setup())[0] == 0
    blobs = site.folder / "blobs"
    async with running(site, *BRIDGE) as bridge:
        await eventually(bridge.ready)
        blobs.rename(site.folder / "away")
        assert "of DOCFLOW_BLOB_FOLDER is missing" in await bridge.problems()
        (site.folder / "away").rename(blobs)
        await eventually(bridge.ready)
        await site.temporal.aclose()
        assert "search attributes: Temporal does not answer" in await bridge.problems()
        await site.send()
        await site.start_temporal()
        await eventually(bridge.ready)

        async def is_received() -> bool:
            return await site.deliveries() == []

        await eventually(is_received)


async def test_a_bridge_waits_for_its_queue_and_a_drain_does_not(site: BareInstallation) -> None:
    assert (await site.setup())[0] == 0
    site.settings = {**site.settings, "AZURE_SERVICE_BUS_QUEUE_NAME": "no-such-queue"}
    async with running(site, *BRIDGE) as bridge:
        assert "cannot open queue 'no-such-queue'" in await bridge.problems()
        assert (await bridge.health("live"))[0] == 200
    code, said = await site.docflow(*BRIDGE, "--drain")
    assert code == 1 and "no-such-queue" in said
    code, said = await site.doctor("--json")
    assert code == 1
    found = {each["name"]: each for each in json.loads(said)}
    assert (found["import queue"]["state"], found["batches"]["state"]) == ("missing", "left out")
    assert "run `az servicebus queue create" in found["import queue"]["details"]
    assert "--lock-duration PT5M --max-delivery-count 10" in found["import queue"]["details"]
