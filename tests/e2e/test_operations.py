"""What operators see of all processes: logs, metrics, and no secret in either."""

import asyncio
import json
import os
import urllib.error
import urllib.request
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest
from azure.servicebus import ServiceBusMessage
from azure.servicebus.aio import ServiceBusClient

from stack.children import free_port
from stack.embedded import service_bus
from stack.temporal import temporal_server
from tests.support.forks import PipedDocflow
from tests.support.fresh_database import fresh_url
from tests.support.observe import asked, exposed, queries
from tests.support.processes import start
from tests.support.waiting import eventually

QUEUE = "import-queue"
SECRETS = {
    "DOCFLOW_NOTIFY_WEBHOOK_URL": "http://127.0.0.1:1/services/planted-in-the-webhook?to=planted",
    "DOCFLOW_NOTIFY_WEBHOOK_SECRET": "planted-secret-of-the-webhook",
    "DOCFLOW_SMTP_URL": "smtps://planted-user:planted-password@127.0.0.1",
    "DOCFLOW_NOTIFY_FROM": "docflow@example.org",
    "DOCFLOW_JWT_KEY": "planted-key-of-tokens-of-32-bytes",
    "TEMPORAL_API_KEY": "planted-key-of-temporal",
}
EQUIPMENT = "code,name\nE-1,Crane\nE-2,Pump\n"


def message(task: str, **changes: Any) -> str:
    body = {
        "document_type": "equipment",
        "task_id": task,
        "project_id": "P1",
        "blob_name": "uploads/equipment.csv",
    }
    return json.dumps({**body, **changes})


class Logged:
    """A process, and what it has logged."""

    def __init__(self, process: PipedDocflow) -> None:
        self.process = process
        self.lines: list[str] = []
        self._reading = asyncio.create_task(self._read())

    async def _read(self) -> None:
        async for line in self.process.stderr:
            self.lines.append(line.decode().rstrip("\n"))

    @property
    def events(self) -> list[dict[str, Any]]:
        return [json.loads(line) for line in self.lines]

    def about(self, text: str) -> list[dict[str, Any]]:
        return [event for event in self.events if text in event["message"]]

    async def says(self, text: str) -> dict[str, Any]:
        async def said() -> bool:
            return bool(self.about(text))

        try:
            await eventually(said, seconds=120)
        except TimeoutError:
            pytest.fail(f"nothing says {text!r}: {self.lines}")
        return self.about(text)[0]

    async def stop(self) -> str:
        self.process.terminate()
        output = await self.process.stdout.read()
        await self._reading
        assert await self.process.wait() == 0, self.lines
        return output.decode()


@asynccontextmanager
async def running(settings: Mapping[str, str], *arguments: str) -> AsyncIterator[Logged]:
    logged = Logged(await start(settings, *arguments))
    try:
        yield logged
    finally:
        if logged.process.returncode is None:
            logged.process.kill()
            await logged.process.wait()


async def metrics_of(port: int) -> str:
    def fetch() -> str:
        with urllib.request.urlopen(f"http://127.0.0.1:{port}/metrics", timeout=5) as response:
            return response.read().decode()

    return await asyncio.to_thread(fetch)


async def shows(port: int, name: str, value: str, **labels: str) -> None:
    """Wait until a metric has a value."""

    async def shown() -> bool:
        return any(
            line.startswith(f"{name}{{")
            and line.rpartition(" ")[2] == value
            and all(f'{label}="{text}"' in line for label, text in labels.items())
            for line in (await metrics_of(port)).splitlines()
        )

    await eventually(shown)


@pytest.fixture
async def settings(tmp_path: Path) -> AsyncIterator[Mapping[str, str]]:
    blobs = tmp_path / "blobs" / "imports" / "uploads"
    blobs.mkdir(parents=True)
    (blobs / "equipment.csv").write_text(EQUIPMENT)
    async with (
        temporal_server(tmp_path, ui=False, in_memory=True) as temporal,
        service_bus(tmp_path, [f"{QUEUE}:lock=5,max=10"]) as queue,
    ):
        url = fresh_url()
        yield {
            "PATH": os.environ["PATH"],
            "TEMPORAL_ADDRESS": temporal.address,
            "TEMPORAL_TLS": "false",
            "AZURE_SERVICE_BUS_CONNECTION_STRING": queue,
            "DOCFLOW_BLOB_FOLDER": str(tmp_path / "blobs"),
            "DATABASE_URL": url,
            "DOCFLOW_SCRATCH": str(tmp_path / "scratch"),
            "DOCFLOW_LOG_FORMAT": "json",
            **SECRETS,
        }


async def test_logs_and_metrics_tell_what_happens_and_hold_no_secret(
    settings: Mapping[str, str],
) -> None:
    of_worker, of_bridge, of_gateway = free_port(), free_port(), free_port()
    async with (
        running(settings, "worker", "all", "--metrics-port", str(of_worker)) as worker,
        running(settings, "bridge", "service-bus", "--metrics-port", str(of_bridge)) as bridge,
        running(settings, "gateway", "--port", "0", "--metrics-port", str(of_gateway)) as gateway,
    ):
        await worker.says("working on")
        await bridge.says("receiving from")
        address = (await gateway.says("listening on"))["message"].split()[-1]
        async with ServiceBusClient.from_connection_string(
            settings["AZURE_SERVICE_BUS_CONNECTION_STRING"]
        ) as client:
            sender = client.get_queue_sender(QUEUE)
            bodies = {
                "good": message("good"),
                "missing": message("missing", blob_name="uploads/missing.csv"),
                "wrong": message("wrong", document_type="planted-in-a-message"),
            }
            await sender.send_messages(
                [ServiceBusMessage(body, message_id=name) for name, body in bodies.items()]
            )
        ended = await worker.says("equipment completed after ")
        assert ended["message"].endswith(" s, 2 created")
        assert (ended["pipeline"], ended["workflow_id"]) == ("imports", "import/P1/good")
        assert ended["run_id"]
        # A step that fails by its document's fault.
        failed = await worker.says("Completing activity as failed")
        assert failed["workflow_id"] == "import/P1/missing" and failed["run_id"]
        assert failed["message_id"]
        assert "uploads/missing.csv" in failed["error"] and "Traceback" not in failed["error"]
        rejected = await bridge.says("UnknownDocumentType")
        assert rejected["message_id"] == "wrong" and rejected["queue"] == QUEUE

        await shows(
            of_worker,
            "docflow_documents_total",
            "1",
            pipeline="imports",
            type="equipment",
            state="completed",
        )
        for port in (of_worker, of_bridge, of_gateway):
            await shows(port, "docflow_runs", "1", pipeline="imports", state="parked")
            await shows(port, "docflow_runs", "0", pipeline="spreadsheets", state="open")
            await shows(port, "docflow_rejected_messages", "1", queue=QUEUE)
            assert "# TYPE docflow_runs gauge" in await metrics_of(port)
        await shows(of_bridge, "docflow_messages_total", "2", queue=QUEUE, outcome="settled")
        await shows(of_bridge, "docflow_messages_total", "1", outcome="dead_lettered")
        with pytest.raises(urllib.error.HTTPError, match="401"):
            await asyncio.to_thread(
                urllib.request.urlopen, f"{address}/api/inbox?token=planted-in-an-address"
            )
        await shows(of_gateway, "docflow_responses_total", "1", method="GET", status="401")

        metrics = [await metrics_of(port) for port in (of_worker, of_bridge, of_gateway)]
        outputs = [await each.stop() for each in (worker, bridge, gateway)]
    served = exposed(metrics)
    for query, _ in queries():
        for name, labels in asked(query).items():
            assert labels <= served[name], f"{name} of {query}"
    every = [line for each in (worker, bridge, gateway) for line in each.lines]
    # Each line is JSON, without colours, also of Temporal's core and of libraries.
    assert [line for line in every if not isinstance(json.loads(line), dict)] == []
    shown = "\n".join([*every, *metrics, *outputs])
    assert "\x1b" not in shown and "\\u001b" not in shown
    assert [
        line for line in shown.splitlines() if "planted" in line.replace("planted-in-a-message", "")
    ] == []
