"""Azurite, the storage emulator, for tests and the embedded stack; a tool of node."""

import shutil
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from pathlib import Path

from adapters.azure.storage_account import EMULATOR_ACCOUNT, EMULATOR_KEY
from workers.stack.children import child, free_port, wait_for_port

_ROOT = Path(__file__).parents[2]


def why_no_azurite() -> str | None:
    """What is missing to start Azurite, and how to get it; None when nothing is."""
    if shutil.which("node") is None:
        return "Azurite needs node, which is not installed"
    if not _program().exists():
        return "Azurite is not installed; run 'npm ci' in the project's folder"
    return None


@asynccontextmanager
async def azurite(folder: Path) -> AsyncGenerator[str]:
    """Run Azurite on a free loopback port, with its data in memory.

    Args:
        folder: Takes its log.

    Yields:
        A connection string for its blob service.

    Raises:
        StackError: It did not start; the message names its log.
    """
    log = folder / "azurite.log"
    ports = {service: free_port() for service in ("blob", "queue", "table")}
    command = [str(_program()), "--inMemoryPersistence", "--skipApiVersionCheck"]
    command += ["--disableTelemetry", "--silent"]
    for service, port in ports.items():
        command += [f"--{service}Host", "127.0.0.1", f"--{service}Port", str(port)]
    async with child(command, log) as process:
        await wait_for_port(process, ports["blob"], "Azurite", log)
        yield (
            f"DefaultEndpointsProtocol=http;AccountName={EMULATOR_ACCOUNT};AccountKey={EMULATOR_KEY};"
            f"BlobEndpoint=http://127.0.0.1:{ports['blob']}/{EMULATOR_ACCOUNT};"
        )


def _program() -> Path:
    return _ROOT / "node_modules" / ".bin" / "azurite"
