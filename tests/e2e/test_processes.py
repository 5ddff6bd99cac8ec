"""The processes as an operator starts and stops them."""

import asyncio
import os
import signal
import urllib.request
from collections.abc import AsyncIterator, Mapping
from pathlib import Path

import pytest
import pytest_asyncio
from temporalio.client import Client

from adapters.database import upgrade
from stack.children import free_port
from stack.embedded import service_bus
from stack.temporal import temporal_server
from tests.support.processes import says, start

pytestmark = pytest.mark.asyncio(loop_scope="module")

WORKER = ("worker", "imports", "--with-bridge")
BRIDGE = ("bridge", "service-bus")
SPREADSHEETS = ("worker", "spreadsheets")
GATEWAY = ("gateway", "--port", "0")
READY = {
    WORKER: b"receiving from queue",
    BRIDGE: b"receiving from queue",
    SPREADSHEETS: b"working on spreadsheets",
    GATEWAY: b"listening on",
}
"""What each process says once it works."""


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def settings(
    tmp_path_factory: pytest.TempPathFactory,
) -> AsyncIterator[Mapping[str, str]]:
    folder = tmp_path_factory.mktemp("processes")
    async with (
        temporal_server(folder, ui=False, in_memory=True) as temporal,
        service_bus(folder, ["import-queue:lock=5,max=10"]) as queue,
    ):
        url = f"sqlite:///{folder / 'docflow.db'}"
        await upgrade(url)
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


@pytest.mark.parametrize("command", READY, ids=["worker", "bridge", "spreadsheets", "gateway"])
@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
async def test_a_signal_ends_a_process_cleanly_within_ten_seconds(
    settings: Mapping[str, str], command: tuple[str, ...], number: signal.Signals
) -> None:
    process = await start(settings, *command)
    await says(process, READY[command])
    process.send_signal(number)
    _, errors = await asyncio.wait_for(process.communicate(), 10)
    assert process.returncode == 0, errors.decode()
    assert b"Traceback" not in errors


async def test_a_drained_bridge_ends_by_itself(settings: Mapping[str, str]) -> None:
    process = await start({**settings, "MAX_WAIT_TIME_SECONDS": "1"}, *BRIDGE, "--drain")
    output, errors = await asyncio.wait_for(process.communicate(), 120)
    assert (process.returncode, b"0 received" in output) == (0, True), errors.decode()


async def test_health_and_metrics_are_served(settings: Mapping[str, str]) -> None:
    health, metrics = free_port(), free_port()
    process = await start(
        settings, *WORKER, "--health-port", str(health), "--metrics-port", str(metrics)
    )
    try:
        await says(process, b"receiving from queue")
        assert await _fetch(f"http://127.0.0.1:{health}/health/ready") == '{"status":"ready"}'
        assert "temporal_num_pollers" in await _fetch(f"http://127.0.0.1:{metrics}/metrics")
    finally:
        process.terminate()
        await process.communicate()


async def test_a_worker_makes_the_schedules_of_its_pipeline(settings: Mapping[str, str]) -> None:
    process = await start(settings, *SPREADSHEETS)
    try:
        await says(process, READY[SPREADSHEETS])
        client = await Client.connect(settings["TEMPORAL_ADDRESS"])
        made = await client.get_schedule_handle("spreadsheet-retention").describe()
        assert made.info.next_action_times[0].hour == 2
    finally:
        process.terminate()
        await process.communicate()


async def test_a_gateway_without_a_key_does_not_start(settings: Mapping[str, str]) -> None:
    without = {name: value for name, value in settings.items() if "JWT" not in name}
    process = await start(without, *GATEWAY)
    _, errors = await asyncio.wait_for(process.communicate(), 120)
    assert process.returncode == 1
    assert b"DOCFLOW_JWT_KEY" in errors and len(errors.splitlines()) == 1


@pytest.mark.parametrize("command", [WORKER, BRIDGE], ids=["worker", "bridge"])
@pytest.mark.parametrize(
    ("setting", "named"),
    [
        ("AZURE_SERVICE_BUS_CONNECTION_STRING", b"AZURE_SERVICE_BUS_CONNECTION_STRING"),
        ("DOCFLOW_BLOB_FOLDER", b"AZURE_STORAGE_CONNECTION_STRING"),
        ("DATABASE_URL", b"DATABASE_URL"),
    ],
)
async def test_a_missing_setting_is_named_before_anything_starts(
    settings: Mapping[str, str], command: tuple[str, ...], setting: str, named: bytes
) -> None:
    without = {name: value for name, value in settings.items() if name != setting}
    process = await start(without, *command)
    _, errors = await asyncio.wait_for(process.communicate(), 120)
    assert process.returncode == 1
    assert named in errors
    assert len(errors.splitlines()) == 1


async def test_a_schema_that_is_behind_is_named_with_what_to_do(
    settings: Mapping[str, str], tmp_path: Path
) -> None:
    behind = {**settings, "DATABASE_URL": f"sqlite:///{tmp_path / 'new.db'}"}
    process = await start(behind, *WORKER)
    await says(process, b"run `docflow setup` or `docflow db upgrade`")
    process.terminate()
    _, errors = await asyncio.wait_for(process.communicate(), 10)
    assert process.returncode == 0, errors.decode()


async def test_a_temporal_that_is_not_there_is_named(settings: Mapping[str, str]) -> None:
    elsewhere = {**settings, "TEMPORAL_ADDRESS": "127.0.0.1:1"}
    process = await start(elsewhere, *WORKER)
    await says(process, b"TEMPORAL_ADDRESS")
    process.terminate()
    _, errors = await asyncio.wait_for(process.communicate(), 10)
    assert (process.returncode, b"Traceback" in errors) == (0, False), errors.decode()


async def test_a_drain_does_not_wait_for_temporal(settings: Mapping[str, str]) -> None:
    elsewhere = {**settings, "TEMPORAL_ADDRESS": "127.0.0.1:1"}
    process = await start(elsewhere, *BRIDGE, "--drain")
    _, errors = await asyncio.wait_for(process.communicate(), 120)
    assert (process.returncode, b"TEMPORAL_ADDRESS" in errors) == (1, True), errors.decode()
