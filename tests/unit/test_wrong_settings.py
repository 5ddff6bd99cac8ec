"""A setting that cannot work is named before any work is taken in."""

import asyncio
import socket
from pathlib import Path
from typing import NoReturn

import pytest

from workers.bridges.service_bus import BridgeError, ServiceBusBridge
from workers.process import run_worker
from workers.settings.errors import SettingsError
from workers.settings.imports import QueueSettings


async def test_a_connection_string_that_cannot_be_read() -> None:
    async def accept(raw: bytes, delivery_count: int, message_id: str | None) -> NoReturn:
        raise AssertionError("nothing can have been received")

    bridge = ServiceBusBridge(QueueSettings(connection_string="nonsense"), accept)
    with pytest.raises(BridgeError, match="AZURE_SERVICE_BUS_CONNECTION_STRING cannot be read"):
        await bridge.run(asyncio.Event())


async def test_a_metrics_port_that_is_taken(tmp_path: Path) -> None:
    settings = {
        "DATABASE_URL": f"sqlite:///{tmp_path / 'docflow.db'}",
        "DOCFLOW_BLOB_FOLDER": str(tmp_path),
    }
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        with pytest.raises(SettingsError, match=f"metrics port {port} cannot be used"):
            await run_worker(["imports"], settings, metrics_port=port)
