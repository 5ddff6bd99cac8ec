"""Azurite, the storage emulator, for tests and the embedded stack; a tool of node."""

import os
from collections.abc import AsyncGenerator, Mapping
from contextlib import asynccontextmanager
from pathlib import Path

from adapters.azure.storage_account import EMULATOR_ACCOUNT, EMULATOR_KEY
from stack.children import StackError, child, free_port, wait_for_port
from stack.node import NodeMissing, search_path

_PROGRAM = Path(__file__).parents[1] / "node_modules" / ".bin" / "azurite"


@asynccontextmanager
async def azurite(folder: Path, tls: tuple[Path, Path] | None = None) -> AsyncGenerator[str]:
    """Run Azurite on a free loopback port, with its data in memory.

    Args:
        folder: Takes its log.
        tls: Certificate and key: it speaks HTTPS, and takes tokens of Entra ID too.

    Yields:
        A connection string for its blobs, queues and tables.

    Raises:
        StackError: It is not installed, and how to get it; or it did not start, and where its log
            is.
    """
    environment = _environment()
    log = folder / "azurite.log"
    ports = {service: free_port() for service in ("blob", "queue", "table")}
    command = [str(_PROGRAM), "--inMemoryPersistence", "--skipApiVersionCheck"]
    command += ["--disableTelemetry", "--silent"]
    if tls is not None:
        command += ["--oauth", "basic", "--cert", str(tls[0]), "--key", str(tls[1])]
    scheme = "http" if tls is None else "https"
    for service, port in ports.items():
        command += [f"--{service}Host", "127.0.0.1", f"--{service}Port", str(port)]
    async with child(command, log, environment) as process:
        for service, port in ports.items():
            await wait_for_port(process, port, f"Azurite ({service})", log)
        endpoints = (
            f"{service.capitalize()}Endpoint={scheme}://127.0.0.1:{port}/{EMULATOR_ACCOUNT};"
            for service, port in ports.items()
        )
        yield (
            f"DefaultEndpointsProtocol={scheme};AccountName={EMULATOR_ACCOUNT};"
            f"AccountKey={EMULATOR_KEY};{''.join(endpoints)}"
        )


def azurite_problem() -> str | None:
    """Why Azurite cannot run here, and how to get what it lacks; None: it can."""
    try:
        _environment()
    except StackError as error:
        return str(error)
    return None


def _environment() -> Mapping[str, str]:
    if not _PROGRAM.exists():
        raise StackError(f"Azurite is missing ({_PROGRAM}): run `make tools`")
    try:
        return {**os.environ, "PATH": search_path()}
    except NodeMissing as missing:
        raise StackError(f"Azurite needs node; {missing}") from None
