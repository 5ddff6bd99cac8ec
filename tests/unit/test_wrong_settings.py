"""A setting that cannot work is named before any work is taken in."""

import asyncio
import socket
from collections.abc import Awaitable, Mapping
from pathlib import Path
from typing import NoReturn

import pytest

from stack.children import free_port
from tests.support.waiting import eventually
from workers.imports.register import IMPORTS
from workers.imports.settings import QueueSettings
from workers.shared.bridges.consumer import BridgeError
from workers.shared.bridges.service_bus import ServiceBusBridge
from workers.shared.errors import SettingsError
from workers.shared.gateway.process import run_gateway
from workers.shared.process import run_bridge, run_worker


async def test_a_connection_string_that_cannot_be_read() -> None:
    async def accept(raw: bytes, delivery_count: int, message_id: str | None) -> NoReturn:
        raise AssertionError("nothing can have been received")

    bridge = ServiceBusBridge(QueueSettings(connection_string="nonsense"), accept)
    with pytest.raises(BridgeError, match="AZURE_SERVICE_BUS_CONNECTION_STRING cannot be read"):
        await bridge.run(asyncio.Event())


def _settings(folder: Path) -> dict[str, str]:
    return {
        "DATABASE_URL": "postgresql://nobody@127.0.0.1:1/docflow",
        "DOCFLOW_BLOB_FOLDER": str(folder),
    }


def _run(process: str, settings: Mapping[str, str]) -> Awaitable[object]:
    if process == "worker":
        return run_worker(["imports"], settings)
    if process == "gateway":
        return run_gateway(settings, host="127.0.0.1", port=0)
    [bridge] = [each for each in IMPORTS.bridges if each.name == process]
    return run_bridge(bridge, settings)


@pytest.mark.parametrize("process", ["worker", "service-bus", "gateway"])
@pytest.mark.parametrize(
    ("name", "value"), [("TEMPORAL_TLS", "maybe"), ("TEMPORAL_ADDRESS", "temporal:port")]
)
async def test_settings_of_temporal_are_named_with_the_others(
    process: str, name: str, value: str
) -> None:
    with pytest.raises(SettingsError) as refused:
        await _run(process, {"DATABASE_URL": "mysql://server/name", name: value})
    named = {problem.split()[0].rstrip(":") for problem in refused.value.problems}
    assert named >= {"DATABASE_URL", name}


async def test_a_metrics_port_that_is_taken(tmp_path: Path) -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        with pytest.raises(SettingsError, match=f"metrics port {port} cannot be used"):
            await run_worker(["imports"], _settings(tmp_path), metrics_port=port)


async def test_metrics_at_a_host_that_cannot_be_used(tmp_path: Path) -> None:
    settings = {**_settings(tmp_path), "DOCFLOW_HTTP_HOST": "nosuch.invalid"}
    with pytest.raises(SettingsError, match=r"^DOCFLOW_HTTP_HOST: cannot listen at"):
        await run_worker(["imports"], settings, metrics_port=free_port())


@pytest.mark.parametrize("host", ["localhost", "::1"])
async def test_metrics_are_served_at_names_and_at_ipv6_addresses(host: str, tmp_path: Path) -> None:
    settings = {**_settings(tmp_path), "DOCFLOW_HTTP_HOST": host}
    port = free_port()
    # The metrics are up before the database is looked at, which has no schema here.
    working = asyncio.create_task(run_worker(["imports"], settings, metrics_port=port))

    async def answers() -> bool:
        try:
            _, writer = await asyncio.open_connection(host, port)
        except OSError:
            return working.done()
        writer.close()
        return True

    await eventually(answers)
    assert not working.done()
    working.cancel()
    with pytest.raises(asyncio.CancelledError):
        await working
