"""The processes as an operator starts and stops them."""

import asyncio
import os
import signal
import urllib.request
from collections.abc import AsyncIterator, Mapping

import pytest
import pytest_asyncio
from temporalio.client import Client

from stack.children import free_port
from stack.embedded import service_bus
from stack.temporal import temporal_server
from tests.support.cli import run_docflow_in_thread
from tests.support.fresh_database import fresh_url
from tests.support.processes import ends_cleanly, running, says, start
from workers.shared.cli.context import CliContext

pytestmark = pytest.mark.asyncio(loop_scope="module")

WORKER = ("worker", "imports", "--with-bridge")
BRIDGE = ("bridge", "service-bus")
SPREADSHEETS = ("worker", "spreadsheets")
GATEWAY = ("gateway", "--port", "0")
RECEIVING = b"receiving from queue"
LISTENING = b"listening on"
"""What a process says once it works."""


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def settings(
    tmp_path_factory: pytest.TempPathFactory,
) -> AsyncIterator[Mapping[str, str]]:
    folder = tmp_path_factory.mktemp("processes")
    async with (
        temporal_server(folder, ui=False, in_memory=True) as temporal,
        service_bus(folder, ["import-queue:lock=5,max=10"]) as queue,
    ):
        url = fresh_url()
        yield {
            "PATH": os.environ["PATH"],
            "TEMPORAL_ADDRESS": temporal.address,
            "AZURE_SERVICE_BUS_CONNECTION_STRING": queue,
            "DOCFLOW_BLOB_FOLDER": str(folder / "blobs"),
            "DATABASE_URL": url,
            "DOCFLOW_SCRATCH": str(folder / "scratch"),
            "DOCFLOW_JWT_KEY": "a key that is at least 32 bytes long",
        }


async def _fetch(url: str) -> str:
    def fetch() -> str:
        with urllib.request.urlopen(url, timeout=5) as response:
            return response.read().decode()

    return await asyncio.to_thread(fetch)


@pytest.mark.parametrize(
    ("command", "ready", "number"),
    [
        (BRIDGE, RECEIVING, signal.SIGTERM),
        (GATEWAY, LISTENING, signal.SIGTERM),
        # Its HTTP server has signal handlers of its own.
        (GATEWAY, LISTENING, signal.SIGINT),
    ],
    ids=["bridge", "gateway", "interrupted gateway"],
)
async def test_a_signal_ends_a_process_cleanly_within_ten_seconds(
    settings: Mapping[str, str], command: tuple[str, ...], ready: bytes, number: signal.Signals
) -> None:
    async with running(settings, *command) as process:
        await says(process, ready)
        await ends_cleanly(process, number)


async def test_a_drained_bridge_ends_by_itself(settings: Mapping[str, str]) -> None:
    process = await start({**settings, "MAX_WAIT_TIME_SECONDS": "1"}, *BRIDGE, "--drain")
    output, errors = await asyncio.wait_for(process.communicate(), 120)
    assert (process.returncode, b"0 received" in output) == (0, True), errors.decode()


async def test_health_and_metrics_are_served_until_a_signal(settings: Mapping[str, str]) -> None:
    health, metrics = free_port(), free_port()
    async with running(
        settings, *WORKER, "--health-port", str(health), "--metrics-port", str(metrics)
    ) as process:
        await says(process, RECEIVING)
        assert await _fetch(f"http://127.0.0.1:{health}/health/ready") == '{"status":"ready"}'
        assert "temporal_num_pollers" in await _fetch(f"http://127.0.0.1:{metrics}/metrics")
        await ends_cleanly(process, signal.SIGTERM)


async def test_a_worker_makes_the_schedules_of_its_pipeline_until_it_is_interrupted(
    settings: Mapping[str, str],
) -> None:
    async with running(settings, *SPREADSHEETS) as process:
        await says(process, b"working on spreadsheets")
        client = await Client.connect(settings["TEMPORAL_ADDRESS"])
        made = await client.get_schedule_handle("spreadsheet-retention").describe()
        assert made.info.next_action_times[0].hour == 2
        await ends_cleanly(process, signal.SIGINT)


@pytest.mark.parametrize(
    ("command", "setting", "named"),
    [
        (GATEWAY, "DOCFLOW_JWT_KEY", "DOCFLOW_JWT_KEY"),
        *(
            (command, setting, named)
            for command in (WORKER, BRIDGE)
            for setting, named in (
                ("AZURE_SERVICE_BUS_CONNECTION_STRING", "AZURE_SERVICE_BUS_CONNECTION_STRING"),
                ("DOCFLOW_BLOB_FOLDER", "AZURE_STORAGE_CONNECTION_STRING"),
                ("DATABASE_URL", "DATABASE_URL"),
            )
        ),
    ],
    ids=str,
)
async def test_a_missing_setting_is_named_before_anything_starts(
    settings: Mapping[str, str], command: tuple[str, ...], setting: str, named: str
) -> None:
    without = {name: value for name, value in settings.items() if name != setting}
    done = await run_docflow_in_thread(*command, context=CliContext(without))
    assert done.exit_code == 1
    assert named in done.stderr
    assert len(done.stderr.splitlines()) == 1


async def test_a_schema_that_is_behind_is_named_with_what_to_do(
    settings: Mapping[str, str], empty_url: str
) -> None:
    behind = {**settings, "DATABASE_URL": empty_url}
    async with running(behind, *WORKER) as process:
        await says(process, b"run `docflow setup` or `docflow db upgrade`")
        await ends_cleanly(process, signal.SIGTERM)


async def test_a_temporal_that_is_not_there_is_named(settings: Mapping[str, str]) -> None:
    elsewhere = {**settings, "TEMPORAL_ADDRESS": "127.0.0.1:1"}
    async with running(elsewhere, *WORKER) as process:
        await says(process, b"TEMPORAL_ADDRESS")
        await ends_cleanly(process, signal.SIGTERM)


async def test_a_drain_does_not_wait_for_temporal(settings: Mapping[str, str]) -> None:
    elsewhere = {**settings, "TEMPORAL_ADDRESS": "127.0.0.1:1"}
    process = await start(elsewhere, *BRIDGE, "--drain")
    _, errors = await asyncio.wait_for(process.communicate(), 120)
    assert (process.returncode, b"TEMPORAL_ADDRESS" in errors) == (1, True), errors.decode()
